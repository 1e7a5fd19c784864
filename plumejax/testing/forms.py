"""testing/forms: comparisons of trees that say what differs."""

from collections.abc import Callable
from typing import Any

import chex
import jax
import jax.numpy as jnp

RTOL = 1e-5
"""How far floats may differ between two ways to compute the same; all else must be equal."""


def require_that(ok: Any, message: str) -> None:
    """Raise `AssertionError` unless `ok`."""
    if not ok:
        raise AssertionError(message)


def explain(check: Callable[..., None], what: str, *args: Any, **kwargs: Any) -> None:
    """A chex assertion, with what it is about before its message."""
    try:
        check(*args, **kwargs)
    except AssertionError as error:
        raise AssertionError(f"{what}: {error}") from error


def same_form(a: Any, b: Any, what: str) -> None:
    """The same structure, shapes and dtypes."""
    explain(chex.assert_trees_all_equal_structs, what, a, b)
    explain(chex.assert_trees_all_equal_shapes_and_dtypes, what, a, b)


def equal(a: Any, b: Any, what: str) -> None:
    """The same in form, and every number the same."""
    same_form(a, b, what)
    explain(chex.assert_trees_all_equal, what, a, b)


def is_equal(a: Any, b: Any) -> bool:
    """Whether every number is the same."""
    try:
        chex.assert_trees_all_equal(a, b)
    except AssertionError:
        return False
    return True


def close(a: Any, b: Any, what: str, rtol: float) -> None:
    """Floats to rounding, all else exactly."""
    same_form(a, b, what)
    floats, rest = (_part(a, True), _part(b, True)), (_part(a, False), _part(b, False))
    explain(chex.assert_trees_all_equal, what, *rest)
    explain(chex.assert_trees_all_close, what, *floats, rtol=rtol, atol=rtol)


def stack(trees: list[Any]) -> Any:
    """Trees as lanes: leaves lead with their number."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)


def is_float(x: Any) -> bool:
    """Whether an array holds floats."""
    return jnp.issubdtype(x.dtype, jnp.floating)


def _part(tree: Any, floats: bool) -> Any:
    """The tree with its floats alone, or without them."""
    return jax.tree.map(lambda x: x if is_float(x) == floats else None, tree)
