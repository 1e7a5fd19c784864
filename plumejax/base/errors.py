"""base/errors: the exceptions, and the one way to refuse a bad value."""

import difflib
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np


class PlumeError(Exception):
    """Whatever plumejax raises on purpose."""


class ValidationError(PlumeError, ValueError):
    """A value is outside what is allowed; the message names field, value and range."""


class StateError(PlumeError, RuntimeError):
    """The lifecycle forbids the operation now."""


class ComponentError(PlumeError, TypeError):
    """An object given as a component lacks a method that its place needs."""


class RenderingError(PlumeError, RuntimeError):
    """A picture could not be made or shown."""


def require(ok: Any, field: str, value: Any, allowed: str) -> None:
    """Raise `ValidationError` unless `ok`, saying what was given and what is allowed."""
    if not ok:
        small_array = hasattr(value, "tolist") and value.size <= 8
        shown = value.tolist() if small_array else value
        raise ValidationError(f"{field} = {shown!r} is not allowed: it must be {allowed}")


def near(name: Any, known: Iterable[str]) -> str:
    """A hint, as in `Did you mean 'X'?`, where one of `known` is like `name`; else empty."""
    found = difflib.get_close_matches(str(name), list(known), n=1)
    return f" Did you mean {found[0]!r}?" if found else ""


@contextmanager
def within(path: str, name: str) -> Iterator[None]:
    """What is refused inside is of the part `name` of `path`, and named so: `sensor.low` is
    `sensor.of.low` within ("sensor", "of")."""
    try:
        yield
    except ValidationError as error:
        named = re.sub(rf"\b{path}\.(?=\w)", f"{path}.{name}.", str(error))
        raise ValidationError(named) from None


def require_positive(field_name: str, value: Any) -> None:
    """Raise `ValidationError` unless every number is finite and > 0."""
    numbers = np.asarray(value)
    require(np.all((numbers > 0) & np.isfinite(numbers)), field_name, value, "finite and > 0")
