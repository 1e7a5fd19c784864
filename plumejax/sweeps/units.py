"""sweeps/units: what a number is and its unit, as the docstring of its class says."""

import dataclasses
import inspect
import re
from collections.abc import Mapping
from typing import Any

_STEPS = (
    "median_steps",
    "mean_steps_found",
    "error_steps_found",
    "restricted_mean",
    "error_restricted_mean",
)


def unit(measure: str) -> str:
    """Of a field of `Summary`; all but steps are pure numbers, or in the unit of the reward."""
    return "step" if measure in _STEPS else "1"


_UNIT = re.compile(
    r"(cells?|steps?|bits?|degrees|rad|mm|cm|m|ms|s|Hz|lengths?|1/s)"
    r"(\^\d)?( a second|( a |/)(step|s|m|cell|mm|bit)(\^\d)?)?"
)


def described(tree: Any, path: str) -> dict[str, str]:
    """`{"long_name": ..., "units": ...}` of the number at `path`, as far as it is documented."""
    *inner, name = path.split(".")
    for part in inner:
        tree = tree[part] if isinstance(tree, Mapping) else getattr(tree, part)
    text = _attribute(type(tree), name) if dataclasses.is_dataclass(tree) else None
    if text is None:
        return {}
    first, *parts = text.split(", ")
    about = {"long_name": ", ".join(parts) or first}
    for part in parts:
        end = part.split(";")[0].rpartition(" in ")[2].removesuffix(" of the plume")
        if _UNIT.fullmatch(end):
            return {**about, "units": end.replace(" a second", "/s").replace(" a ", "/")}
    return about


def _attribute(kind: type, name: str) -> str | None:
    """What the docstring of a class, or of those that it is derived from, says of an attribute."""
    line = re.compile(rf"^  (?:\w+, )*{name}(?:, \w+)*: (.*(?:\n    .*)*)", re.MULTILINE)
    for each in kind.__mro__:
        found = line.search(inspect.cleandoc(each.__doc__ or ""))
        if found:
            return " ".join(found[1].split()).rstrip(".")
    return None
