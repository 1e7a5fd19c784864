"""viewing/scenery: what a picture of a search shows, pixel by pixel."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from plumejax.base.errors import RenderingError

LONGEST = 160
"""Pixels along the longer side of a box without cells."""


class Canvas(NamedTuple):
    """The pixels of a picture of an arena.

    Attributes:
      size: width and height; the height of a line is 1.
      origin: float32[2], the middle of the first pixel, lengths.
      spacing: float32[2], lengths from pixel to pixel.
    """

    size: tuple[int, int]
    origin: np.ndarray
    spacing: np.ndarray

    @property
    def extent(self) -> tuple[float, float, float, float]:
        """x from and to, y from and to, of the outer edges, lengths."""
        low = self.origin - self.spacing / 2
        high = low + self.spacing * np.asarray(self.size)
        return float(low[0]), float(high[0]), float(low[1]), float(high[1])


def canvas(arena: Any, params: Any) -> Canvas:
    """One pixel a cell of a grid or of obstacles; another box has `LONGEST` along its longer side.

    Raises `RenderingError` for an arena that says neither.
    """
    if hasattr(arena, "grid_size"):
        width, height = (*arena.grid_size, 1)[:2]
        return Canvas((width, height), np.zeros(2, np.float32), np.ones(2, np.float32))
    own = params.arena
    if hasattr(own, "spacing"):
        width, height = arena.cells[:2]
        return Canvas((width, height), np.asarray(own.origin)[:2], np.asarray(own.spacing)[:2])
    if not (hasattr(own, "low") and hasattr(own, "high")):
        raise RenderingError(f"the arena {arena!r} says no size to make a picture of")
    low, high = (np.asarray(end, np.float32)[..., :2] for end in (own.low, own.high))
    sides = high - low
    pixel = sides.max() / LONGEST
    width, height = np.maximum(np.rint(sides / pixel), 1).astype(int).tolist()
    spacing = sides / np.asarray([width, height], np.float32)
    return Canvas((width, height), low + spacing / 2, spacing)


def concentration_field(env: Any, state: Any, params: Any, where: Canvas) -> jax.Array:
    """float32[height, width], indexed [y, x]: what a probe at each pixel would read, in three
    dimensions at the height of the agent."""
    return scenery(env, state, params, where)[0]


def scenery(env: Any, state: Any, params: Any, where: Canvas) -> tuple[jax.Array, ...]:
    """`(field, free, sources, position, heading)`: float32[H, W] and bool[H, W] by pixel, and
    float32[S, 2] and float32[2] in pixels; pure, and one compilation for each size of picture."""
    return _scenery(env, where.size, state, params, where.origin, where.spacing)


@partial(jax.jit, static_argnames=("env", "size"))
def _scenery(
    env: Any, size: tuple[int, int], state: Any, params: Any, origin: Any, spacing: Any
) -> tuple[jax.Array, ...]:
    width, height = size
    y, x = jnp.divmod(jnp.arange(width * height, dtype=jnp.int32), jnp.int32(width))
    flat = origin[None] + spacing[None] * jnp.stack([x, y], axis=-1).astype(jnp.float32)
    position = state.agent.position
    above = jnp.broadcast_to(position[2:], (len(flat), len(position[2:])))
    places = jnp.concatenate([flat[:, : len(position)], above], axis=1)
    # An agent with its nose in the air has a height that the arena knows nothing of.
    ground = getattr(env.arena, "dimensions", len(position))

    def pixels(points: jax.Array) -> jax.Array:
        level = jnp.zeros((len(points), max(0, 2 - points.shape[1])), jnp.float32)
        return (jnp.concatenate([points[:, :2], level], axis=1) - origin[None]) / spacing[None]

    return (
        env.plume.sample(state.plume, places, params.plume).concentration.reshape(height, width),
        env.arena.inside(places[:, :ground], params).reshape(height, width),
        pixels(env.plume.sources(state.plume, params.plume)),
        pixels(position[None])[0],
        state.agent.heading,
    )
