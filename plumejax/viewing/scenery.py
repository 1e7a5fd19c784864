"""viewing/scenery: what a picture of a search shows, pixel by pixel."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from plumejax.base.errors import RenderingError
from plumejax.search.motion import AxisMoves, Moves, WindRelative

LONGEST = 160
"""Pixels along the longer side of a box without cells."""

ANTENNAE = 8
"""Probes that are shown, at most: more are a field of view."""


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


class Scenery(NamedTuple):
    """What there is to see; places in pixels of a canvas, [x, y] from the middle of its first one.

    Attributes:
      field: float32[H, W], indexed [y, x]: what a probe at each pixel would read, in three
        dimensions at the height of the first agent.
      free: bool[H, W], the pixels an agent may be on.
      sources: float32[S, 2].
      agents: float32[A, 2]; A is 1 but in a team.
      headings: float32[A], degrees counter-clockwise from +x.
      probes: float32[n, 2], of a sensor that has up to `ANTENNAE`; else n is 0.
      wind: float32[2], that the first agent feels, lengths of the plume a unit of time.
    """

    field: jax.Array
    free: jax.Array
    sources: jax.Array
    agents: jax.Array
    headings: jax.Array
    probes: jax.Array
    wind: jax.Array


def concentration_field(env: Any, state: Any, params: Any, where: Canvas) -> jax.Array:
    """float32[H, W], indexed [y, x]: the `field` of a `Scenery`."""
    return scenery(env, state, params, where).field


def turns(env: Any) -> bool:
    """Whether an agent's heading says something: a motion along fixed directions keeps it."""
    motion = search_of(env).motion
    return not isinstance(getattr(motion, "of", motion), Moves | AxisMoves | WindRelative)


def search_of(env: Any) -> Any:
    """The search whose numbers are drawn anew, or that a team does."""
    for name in ("env", "search"):
        env = getattr(env, name, env)
    return env


def scenery(env: Any, state: Any, params: Any, where: Canvas) -> Scenery:
    """The `Scenery` of a search as it stands; pure, one compilation for each size of picture."""
    return _scenery(search_of(env), where.size, state, params, where.origin, where.spacing)


@partial(jax.jit, static_argnames=("env", "size"))
def _scenery(
    env: Any, size: tuple[int, int], state: Any, params: Any, origin: Any, spacing: Any
) -> Scenery:
    width, height = size
    alone = state.agent.position.ndim == 1
    agents = jax.tree.map(lambda x: x[None], state.agent) if alone else state.agent
    positions = agents.position
    dimensions = positions.shape[1]
    y, x = jnp.divmod(jnp.arange(width * height, dtype=jnp.int32), jnp.int32(width))
    flat = origin[None] + spacing[None] * jnp.stack([x, y], axis=-1).astype(jnp.float32)
    above = jnp.broadcast_to(positions[0, 2:], (len(flat), max(0, dimensions - 2)))
    places = jnp.concatenate([flat[:, :dimensions], above], axis=1)
    # An agent with its nose in the air has a height that the arena knows nothing of.
    ground = getattr(env.arena, "dimensions", dimensions)
    probes = jax.vmap(lambda agent: env.sensor.probes(agent, params))(agents)
    probes = probes.reshape(-1, probes.shape[-1]) if probes.shape[1] <= ANTENNAE else positions[:0]
    wind = env.plume.sample(state.plume, positions[:1], params.plume).wind[0]

    def pixels(points: jax.Array) -> jax.Array:
        return (_in_the_plane(points) - origin[None]) / spacing[None]

    return Scenery(
        env.plume.sample(state.plume, places, params.plume).concentration.reshape(height, width),
        env.arena.inside(places[:, :ground], params).reshape(height, width),
        pixels(env.plume.sources(state.plume, params.plume)),
        pixels(positions),
        agents.heading,
        pixels(probes),
        _in_the_plane(wind[None])[0],
    )


def _in_the_plane(vectors: jax.Array) -> jax.Array:
    """float32[n, 2]: x and y of float32[n, d]; y is 0 on a line."""
    missing = jnp.zeros((len(vectors), max(0, 2 - vectors.shape[1])), jnp.float32)
    return jnp.concatenate([vectors[:, :2].astype(jnp.float32), missing], axis=1)
