"""base/lifecycle: the five codes of an episode's life and the rules between them, on int32."""

from enum import IntEnum
from typing import Any, TypeVar

import jax
import jax.numpy as jnp

State = TypeVar("State")


class Lifecycle(IntEnum):
    """The int32 field `lifecycle` of every state."""

    CREATED = 0
    READY = 1
    TERMINATED = 2
    TRUNCATED = 3
    CLOSED = 4


def code(member: Lifecycle) -> jax.Array:
    """The member as an int32 scalar."""
    return jnp.asarray(int(member), jnp.int32)


def is_ready(lifecycle: jax.Array) -> jax.Array:
    """bool, same shape: whether a step may change the episode."""
    return lifecycle == code(Lifecycle.READY)


def after_step(terminated: jax.Array, truncated: jax.Array) -> jax.Array:
    """int32: where a READY episode stands after a step. Both flags: TERMINATED."""
    return jnp.where(
        terminated,
        code(Lifecycle.TERMINATED),
        jnp.where(truncated, code(Lifecycle.TRUNCATED), code(Lifecycle.READY)),
    )


def flags(
    lifecycle: jax.Array, step_count: jax.Array, max_steps: Any
) -> tuple[jax.Array, jax.Array]:
    """`(terminated, truncated)`, bool, of an episode that stands at `lifecycle`.

    An episode found on its very last step is TERMINATED and carries both flags.
    """
    terminated = lifecycle == code(Lifecycle.TERMINATED)
    truncated = (lifecycle == code(Lifecycle.TRUNCATED)) | (terminated & (step_count >= max_steps))
    return terminated, truncated


def created(state: State) -> State:
    """`state` as it would be before its first reset: a step leaves it alone."""
    return _at(state, Lifecycle.CREATED)


def closed(state: State) -> State:
    """`state` after close: no step changes it again."""
    return _at(state, Lifecycle.CLOSED)


def _at(state: State, member: Lifecycle) -> State:
    # With its dtype: `full_like` of a Python number is weakly typed, and a step would recompile.
    codes = jnp.full(jnp.shape(state.lifecycle), int(member), jnp.int32)  # type: ignore[attr-defined]
    return state.replace(lifecycle=codes)  # type: ignore[attr-defined]
