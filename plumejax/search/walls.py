"""search/walls: what a wall does to an agent that walks into it."""

from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp
from flax import struct

from plumejax.base.errors import require
from plumejax.search.state import Params

AtWall = Literal["settle", "stay", "slide", "end"]
"""A motion's choice: the name of a rule in `RULES`."""


class Touch(struct.PyTreeNode):
    """What a motion keeps that remembers walls.

    Attributes:
      touched: bool[], whether the way of the last move was barred.
    """

    touched: jax.Array


def settle(origin: jax.Array, target: jax.Array, arena: Any, params: Params) -> jax.Array:
    """float32[d]: where the arena lets the way from `origin` to `target` end."""
    return arena.settle(origin, target, params)


def stay(origin: jax.Array, target: jax.Array, arena: Any, params: Params) -> jax.Array:
    """float32[d]: `origin` if the way is barred, else where it ends."""
    barred = arena.blocked(origin, target, params)
    return jnp.where(barred, origin, arena.settle(origin, target, params))


def slide(origin: jax.Array, target: jax.Array, arena: Any, params: Params) -> jax.Array:
    """float32[d]: of a barred way, the components that are free, x before y before z."""
    axes = jnp.arange(origin.shape[-1], dtype=jnp.int32)
    place = origin
    for axis in range(origin.shape[-1]):
        place = stay(place, jnp.where(axes == axis, target, place), arena, params)
    barred = arena.blocked(origin, target, params)
    return jnp.where(barred, place, arena.settle(origin, target, params))


RULES: dict[str, Callable[[jax.Array, jax.Array, Any, Params], jax.Array]] = {
    "settle": settle,
    "stay": stay,
    "slide": slide,
    "end": stay,
}
"""The rules by name. "end" stays, for the ending `AtWall`, which reads `agent.motion.touched`."""


def require_rule(at_wall: str) -> None:
    """Raise `ValidationError` if there is no such rule."""
    require(at_wall in RULES, "motion.at_wall", at_wall, f"one of {', '.join(RULES)}")
