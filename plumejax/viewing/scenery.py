"""viewing/scenery: the concentration of a state on every cell, for pictures."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp


@partial(jax.jit, static_argnames="env")
def concentration_field(env: Any, state: Any, params: Any) -> jax.Array:
    """float32[height, width], indexed [y, x]: what a probe at each cell of the arena would read."""
    width, height = env.arena.grid_size
    y, x = jnp.mgrid[:height, :width]
    cells = jnp.stack([x.ravel(), y.ravel()], axis=-1).astype(jnp.float32)
    air = env.plume.sample(state.plume, cells, params.plume)
    return air.concentration.reshape(height, width)
