"""base/paths: dotted paths ("plume.sigma"), the one way to name a number of a task."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from plumejax.base.errors import ValidationError, near, require

Tree = TypeVar("Tree")


def leaves(
    tree: Any, prefix: str = "", is_leaf: Callable[[Any], bool] = lambda part: False
) -> dict[str, Any]:
    """Every number of a params tree (dataclasses and dicts) by its dotted path, in order.

    A part that `is_leaf` is not looked into.
    """
    if is_leaf(tree):
        return {prefix: tree}
    if isinstance(tree, Mapping):
        parts = dict(tree)
    elif dataclasses.is_dataclass(tree):
        parts = {field.name: getattr(tree, field.name) for field in dataclasses.fields(tree)}
    else:
        return {} if tree is None or isinstance(tree, tuple) else {prefix: tree}
    found: dict[str, Any] = {}
    for name, part in parts.items():
        found.update(leaves(part, f"{prefix}.{name}" if prefix else name, is_leaf))
    return found


def find(tree: Any, path: str) -> Any:
    """The number at `path`. Raises `ValidationError`, naming the nearest path, if there is none."""
    known = leaves(tree)
    if path not in known:
        hint, names = near(path, known), ", ".join(known)
        raise ValidationError(f"{path!r} names no number of this task.{hint} It has: {names}")
    return known[path]


def override(tree: Tree, values: Mapping[str, Any]) -> Tree:
    """`tree` with the numbers at the given paths replaced, dtype and shape kept.

    Raises `ValidationError` for a path that is not there (naming the nearest one) and for a value
    whose shape or kind does not fit; then nothing has changed.
    """
    for path, value in values.items():
        tree = replace(tree, path, fit(path, value, find(tree, path)))
    return tree


def replace(tree: Tree, path: str, value: Any) -> Tree:
    """`tree` with what stands at `path` replaced, whatever it is; pure."""
    return _replace(tree, path.split("."), value)


def _replace(tree: Any, path: list[str], value: Any) -> Any:
    head, *rest = path
    is_dict = isinstance(tree, Mapping)
    old = tree[head] if is_dict else getattr(tree, head)
    new = {head: _replace(old, rest, value) if rest else value}
    return {**tree, **new} if is_dict else tree.replace(**new)


def require_like(tree: Any, model: Any) -> None:
    """Raise `ValidationError` unless `tree` has just the numbers that `model` has, each finite, of
    a dtype of the same kind and of the same shape, before which a sweep may put axes."""
    given, expected = leaves(tree), leaves(model)
    strange = ", ".join(sorted(given.keys() - expected.keys())) or "none"
    missing = ", ".join(sorted(expected.keys() - given.keys())) or "none"
    if given.keys() != expected.keys():
        raise ValidationError(
            f"the numbers are not those of this task: not known {strange}; missing {missing}"
        )
    for path, old in expected.items():
        _require_number(path, given[path], np.asarray(old))


_KINDS = {"b": "b", "i": "iu", "u": "iu", "f": "iuf"}
"""NumPy's letters of the kinds that may stand for one."""


def _require_number(path: str, value: Any, old: np.ndarray) -> None:
    new = np.asarray(value)
    kinds = _KINDS.get(old.dtype.kind, old.dtype.kind)
    require(new.dtype.kind in kinds, path, value, f"of dtype {old.dtype}")
    fits = new.ndim >= old.ndim and new.shape[new.ndim - old.ndim :] == old.shape
    require(fits, f"{path}.shape", new.shape, f"{old.shape}, after the axes of a sweep, if any")
    bad = ~np.isfinite(new)
    require(not bad.any(), path, new[bad] if new.ndim else value, "finite")


def fit(path: str, value: Any, old: Any) -> np.ndarray:
    """`value` as an array like the number `old`. Raises `ValidationError` if it does not fit."""
    old = np.asarray(old)
    try:
        new = np.asarray(value)
        with np.errstate(all="ignore"):  # what does not fit is refused below
            fitted = new.astype(old.dtype)
    except (TypeError, ValueError):
        raise ValidationError(f"{path} = {value!r} is not a number of dtype {old.dtype}") from None
    kinds = "b" if old.dtype.kind == "b" else "iuf"
    if new.dtype.kind not in kinds or new.shape != old.shape:
        raise ValidationError(
            f"{path} = {value!r} does not fit: it must be a number of dtype {old.dtype}"
            f" and shape {old.shape}"
        )
    if old.dtype.kind in "iu" and not np.array_equal(fitted, new):
        raise ValidationError(f"{path} = {value!r} is not a whole number that {old.dtype} holds")
    return fitted
