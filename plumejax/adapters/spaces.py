"""adapters/spaces: our spaces as Gymnasium's."""

from typing import Any

import gymnasium
import numpy as np

from plumejax.base.errors import ComponentError


def to_gymnasium(space: Any) -> gymnasium.Space:
    """The Gymnasium space of a plumejax space, or of one that has the same attributes.

    A Gymnasium space is returned as it is. Raises `ComponentError` for what is no space.
    """
    if isinstance(space, gymnasium.Space):
        return space
    if hasattr(space, "spaces"):
        return gymnasium.spaces.Dict({k: to_gymnasium(s) for k, s in space.spaces.items()})
    if hasattr(space, "nvec"):
        return gymnasium.spaces.MultiDiscrete(space.nvec, np.int32)
    if hasattr(space, "n"):
        return gymnasium.spaces.Discrete(int(space.n))
    if hasattr(space, "low") and hasattr(space, "high"):
        dtype = np.dtype(space.dtype).type
        low, high = (
            np.broadcast_to(np.asarray(bound), space.shape).astype(dtype)
            for bound in (space.low, space.high)
        )
        return gymnasium.spaces.Box(low, high, tuple(space.shape), dtype)
    raise ComponentError(
        f"{space!r} is no space: it needs `n`, or `nvec`, or `low`, `high`, `shape` and `dtype`, or"
        " `spaces`"
    )


def same_space(a: gymnasium.Space, b: gymnasium.Space) -> bool:
    """Whether two spaces have the same members."""
    return type(a) is type(b) and a == b


def is_member(space: gymnasium.Space, value: Any) -> bool:
    """Whether `value` is in `space`; a bool is no number, and no value makes this raise."""
    if isinstance(space, gymnasium.spaces.Discrete):
        number = np.asarray(value) if isinstance(value, np.ndarray | np.generic | int) else None
        if number is None or number.shape != () or number.dtype.kind not in "iu":
            return False
        return 0 <= int(number) - int(space.start) < int(space.n)
    if isinstance(space, gymnasium.spaces.Box) and not isinstance(value, np.ndarray):
        return False
    try:
        return bool(space.contains(value))
    except (OverflowError, TypeError, ValueError):
        return False
