"""arms/camera: a small picture of the two arms and their objects from above, pure."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from plumejax.arms.state import ARMS, ArmsParams, ArmsState

SIZE = 48

COLOURS = np.asarray([[0, 180, 255], [255, 120, 0], [120, 255, 120], [120, 255, 120]], np.uint8)
"""Of the arms and the objects, in the order in which they are painted."""


def picture(state: ArmsState, exists: Any, params: ArmsParams) -> jax.Array:
    """uint8[48, 48, 3]: black, with a square of 3 x 3 pixels for each arm, then each object.

    x goes right and y goes down: row 0 is the lowest y. Neither height nor goals are shown.

    Args:
      exists: bool[2], which slots hold an object.
    """
    places = jnp.concatenate([state.arm_position, state.object_position])[:, :2]
    low, high = params.workspace_low[:2], params.workspace_high[:2]
    # A hair less than 1, so that the farthest edge is pixel 46 in either precision.
    part = (places - low[None]) / (high - low)[None] * (1 - 1e-6)
    pixels = jnp.clip(part * (SIZE - 1), 0, SIZE - 1).astype(jnp.uint8)
    shown = jnp.concatenate([jnp.ones(ARMS, bool), exists])
    # Bytes with all bits set or none, a row of pixels as one line: wide instructions paint.
    line = np.arange(SIZE, dtype=np.uint8)
    image = jnp.zeros((SIZE, 3 * SIZE), jnp.uint8)
    for (x, y), colour, there in zip(pixels, COLOURS, shown, strict=True):
        rows = _bits(_near(line, y) & there)
        inside = rows[:, None] & _bits(_near(np.repeat(line, 3), x))[None]
        image = (image & ~inside) | (inside & np.tile(colour, SIZE)[None])
    return image.reshape(SIZE, SIZE, 3)


def _near(line: np.ndarray, place: jax.Array) -> jax.Array:
    """bool[n]: where a line of uint8 is `place` or next to it; what is less than 0 is large."""
    return jnp.asarray(line) + jnp.uint8(1) - place <= 2


def _bits(where: jax.Array) -> jax.Array:
    """uint8[n]: all bits set, or none."""
    return jnp.where(where, jnp.uint8(255), jnp.uint8(0))
