"""plumes/rolling: a plume by itself: its states one after another, each by a numbered key.

The plume of `key` starts with `fold_in(key, 0)`, and its n-th advance takes `fold_in(key, n)`. So
its state after n advances is the same whether it is rolled out in one go, in pieces, or by hand.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from plumejax.plumes.interface import Air


@partial(jax.jit, static_argnames="plume")
def begin(plume: Any, key: jax.Array, params: Any) -> Any:
    """The state after no advance."""
    return plume.start(jax.random.fold_in(key, 0), params)


def advance(plume: Any, key: jax.Array, number: Any, state: Any, params: Any) -> Any:
    """The state after advance `number` int32[], counted from 1, of the one after `number - 1`."""
    number = jnp.asarray(number).astype(jnp.uint32)
    return plume.advance(jax.random.fold_in(key, number), state, params)


@partial(jax.jit, static_argnames="plume")
def skip(plume: Any, key: jax.Array, done: Any, steps: Any, state: Any, params: Any) -> Any:
    """The state `steps` int32[] advances after the one of `done` int32[]."""
    done = jnp.asarray(done, jnp.int32)

    def one(i: jax.Array, state: Any) -> Any:
        return advance(plume, key, done + i + 1, state, params)

    return jax.lax.fori_loop(jnp.int32(0), jnp.asarray(steps, jnp.int32), one, state)


@partial(jax.jit, static_argnames=("plume", "steps"))
def follow(
    plume: Any,
    key: jax.Array,
    done: Any,
    steps: int,
    state: Any,
    positions: jax.Array,
    params: Any,
) -> tuple[Any, Air]:
    """`(state, air)`: `steps` advances more, and the air at `positions` after each.

    Args:
      plume: any plume.
      key: of the plume as a whole.
      done: int32[], advances that `state` has behind it.
      steps: static.
      state: from `begin`, `skip` or an earlier `follow`.
      positions: float32[n, d].
      params: of the plume.

    Returns:
      `air` leads with `steps`: concentration float32[steps, n], wind float32[steps, n, d].
    """
    done = jnp.asarray(done, jnp.int32)

    def one(state: Any, i: jax.Array) -> tuple[Any, Air]:
        state = advance(plume, key, done + i, state, params)
        return state, plume.sample(state, positions, params)

    return jax.lax.scan(one, state, jnp.arange(1, steps + 1, dtype=jnp.int32))
