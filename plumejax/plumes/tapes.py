"""plumes/tapes: plumes of puffs rolled out once, for training: what a step asks is looked up.

A `Bank` keeps every puff, and each step of a search looks at all of them. A tape keeps the answers:
the odour on a fine grid, how far the nearest puff is on a coarse one, the wind, and where puffs are
for those that start there. A step is then a few gathers, to the rounding of the grids: train on
tapes, and evaluate on the plume itself.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from scipy.ndimage import distance_transform_edt

from plumejax.base.errors import require
from plumejax.plumes.bank import roll, starts_within
from plumejax.plumes.grids import Grid, grid_over
from plumejax.plumes.interface import Air
from plumejax.plumes.movies import MovieMeta, encode, log_coding
from plumejax.plumes.recorded import Playing, RecordedParams, RecordedPlume

NEAREST_STEP = 0.02
"""Lengths of a step of the distance to the nearest puff; 255 steps are the farthest."""


class TapeParams(struct.PyTreeNode):
    """Numbers of a `Tape` of P plumes, T frames each; what leads with P * T is shared.

    Attributes:
      gas: of the movie of the odour.
      wind: float32[P * T, 2, h, w], lengths a second.
      wind_origin, wind_spacing: float32[2], of its grid.
      nearest: uint8[P * T, h', w'], steps of `NEAREST_STEP` lengths.
      nearest_origin, nearest_spacing: float32[2], of its grid.
      puffs: float32[P * T, K, d], K puffs or fewer, from the least x to the greatest.
      shares: float32[P], >= 0, how often an episode draws each plume, whatever their sum.
      plume: numbers of the plumes, for those who ask for their region.
    """

    gas: RecordedParams
    wind: Any
    wind_origin: Any
    wind_spacing: Any
    nearest: Any
    nearest_origin: Any
    nearest_spacing: Any
    puffs: Any
    shares: Any
    plume: Any


@dataclass(frozen=True)
class Tape:
    """The plume that plays tapes; an episode has one of them, from a frame drawn at its start.

    The state is a `Playing`, as of a movie.

    Attributes:
      plume: whose tapes they are.
      player: of the odour.
      wind_grid, nearest_grid: width and height in cells.
      num_puffs: K.
    """

    plume: Any
    player: RecordedPlume
    wind_grid: tuple[int, int] = (1, 1)
    nearest_grid: tuple[int, int] = (1, 1)
    num_puffs: int = 1
    random_step = False

    @property
    def unit(self) -> str:
        """Of the concentration."""
        return self.plume.unit

    def default_params(self) -> TapeParams:
        """Clean air, with all puffs at the origin."""
        count = self.player.num_movies * self.player.num_frames
        gas = self.player.default_params()
        gas = gas.replace(frames=np.zeros(gas.frames.shape, np.uint8))
        zero, one = np.zeros(2, np.float32), np.ones(2, np.float32)
        return TapeParams(
            gas=gas,
            wind=np.zeros((count, 2, *self.wind_grid[::-1]), np.float32),
            wind_origin=zero,
            wind_spacing=one,
            nearest=np.zeros((count, *self.nearest_grid[::-1]), np.uint8),
            nearest_origin=gas.source,
            nearest_spacing=one,
            puffs=np.zeros((count, self.num_puffs, self.plume.dimensions), np.float32),
            shares=np.ones(self.player.num_movies, np.float32),
            plume=self.plume.default_params(),
        )

    def start(self, key: jax.Array, params: TapeParams) -> Playing:
        key, which_key = jax.random.split(key)
        playing = self.player.start(key, params.gas)
        if self.player.num_movies == 1:
            return playing
        upto = jnp.cumsum(jnp.asarray(params.shares, jnp.float32))
        drawn = jax.random.uniform(which_key, (), jnp.float32) * upto[-1]
        which = jnp.sum(drawn >= upto[:-1], dtype=jnp.int32)
        return playing.replace(movie=which)

    def advance(self, key: jax.Array, state: Playing, params: TapeParams) -> Playing:
        return self.player.advance(key, state, params.gas)

    def sample(self, state: Playing, positions: jax.Array, params: TapeParams) -> Air:
        air = self.player.sample(state, positions, params.gas)
        seen = self._seen(state, positions, params)
        table = jnp.asarray(params.wind)
        x, y, _ = _cell(seen, params.wind_origin, params.wind_spacing, table.shape)
        wind = table[self._frame(state), :, y, x]
        if self.player.mirrored:
            wind = wind.at[:, 1].set(jnp.where(state.mirrored, -wind[:, 1], wind[:, 1]))
        level = jnp.zeros((len(positions), positions.shape[1] - 2), jnp.float32)
        return air.replace(wind=jnp.concatenate([wind, level], axis=1))

    def sources(self, state: Playing, params: TapeParams) -> jax.Array:
        return self.player.sources(state, params.gas)

    def nearest(self, state: Playing, place: jax.Array, params: TapeParams) -> jax.Array:
        """float32[]: from `place` float32[d] to the nearest puff."""
        seen = self._seen(state, place[None, :2], params)
        table = jnp.asarray(params.nearest)
        x, y, beyond = _cell(seen, params.nearest_origin, params.nearest_spacing, table.shape)
        steps = table[self._frame(state), y[0], x[0]].astype(jnp.float32)
        return steps * np.float32(NEAREST_STEP) + beyond[0]

    def puffs_along(self, state: Playing, percents: jax.Array, params: TapeParams) -> jax.Array:
        """float32[n, d]: puffs at the percentiles along x float32[n], in 0..100."""
        puffs = jnp.asarray(params.puffs)
        last = puffs.shape[1] - 1
        rank = jnp.clip(jnp.round(percents / 100 * last).astype(jnp.int32), 0, last)
        return self._seen(state, puffs[self._frame(state), rank], params)

    def validate(self, params: TapeParams) -> None:
        """Raise `ValidationError` if tables do not fit or a number is not allowed."""
        self.player.validate(params.gas)
        count = self.player.num_movies * self.player.num_frames
        for name in ("wind", "nearest", "puffs"):
            given = np.shape(getattr(params, name))
            require(count in given[:1], f"plume.{name}: shape", given, f"{count} frames")
        shares = np.asarray(params.shares)
        good = np.all(shares >= 0) and np.all(shares.sum(-1) > 0)
        require(good, "plume.shares", params.shares, ">= 0, and one of them > 0")

    def _frame(self, state: Playing) -> jax.Array:
        first = 0 if isinstance(state.movie, tuple) else state.movie * self.player.num_frames
        return first + jnp.floor(state.phase).astype(jnp.int32)

    def _seen(self, state: Playing, places: jax.Array, params: TapeParams) -> jax.Array:
        """`places` float32[n, d] as the tape has them, and the other way round."""
        if not self.player.mirrored:
            return places
        y = places[:, 1]
        flipped = 2 * jnp.asarray(params.gas.axis, jnp.float32) - y
        return places.at[:, 1].set(jnp.where(state.mirrored, flipped, y))


def _cell(
    places: jax.Array, origin: Any, spacing: Any, shape: tuple[int, ...]
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """`(x, y, beyond)`, int32[n] twice and float32[n]: the cells nearest to float32[n, d], of a
    grid whose last axes are y and x, and how far the places lie beyond the outermost centres."""
    cells, beyond = [], jnp.zeros(len(places), jnp.float32)
    for axis, size in enumerate((shape[-1], shape[-2])):
        first, gap = (jnp.asarray(x, jnp.float32)[axis] for x in (origin, spacing))
        cell = (places[:, axis] - first) / gap
        inside = jnp.clip(cell, 0.0, np.float32(size - 1))
        cells.append(jnp.round(inside).astype(jnp.int32))
        beyond = beyond + jnp.square((cell - inside) * gap)
    x, y = cells
    return x, y, jnp.sqrt(beyond)


@dataclass(frozen=True)
class Cassette:
    """What tapes are to hold.

    Attributes:
      num_frames: T, of each.
      every: advances of the plume from one frame to the next.
      warmup: frames before the first.
      low, high: x and y of the corners of the region.
      cell: lengths, of the grid of the odour.
      near_cell: lengths, of that of the nearest puff.
      wind_cell: lengths, of that of the wind; None where it is the same everywhere.
      num_puffs: K.
      smallest: the concentration where the coding turns from even steps to an even ratio.
      peak: the highest concentration that is held.
    """

    num_frames: int
    every: int
    warmup: int
    low: tuple[float, float]
    high: tuple[float, float]
    cell: float = 0.05
    near_cell: float = 0.2
    wind_cell: float | None = None
    num_puffs: int = 64
    smallest: float = 1e-4
    peak: float = 1.0

    def grid(self, cell: float) -> Grid:
        """The grid over the region with cells of about that size."""
        across = np.subtract(self.high, self.low) / cell
        width, height = np.maximum(1, np.round(across)).astype(int)
        return grid_over(self.low, self.high, (int(width), int(height)))


def make_tape(
    plume: Any,
    params: Sequence[Any],
    key: jax.Array,
    cassette: Cassette,
    *,
    margin: int,
    mirrored: bool = True,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> tuple[Tape, TapeParams]:
    """`(tape, params)`: a tape of each of `params`, rolled out now, on the host and one by one.

    Args:
      plume: of puffs, that can `paint` them.
      params: P numbers of it, one for each tape; the source is the same in all.
      key: typed key, consumed; plume p is that of `roll` with `fold_in(key, p)`.
      cassette: what is kept.
      margin: steps of an episode; it starts early enough not to pass the last frame.
      mirrored: whether half of the episodes have y mirrored about the source.
      progress: told tapes done and tapes in all.
    """
    require(len(params) > 0, "params", len(params), "those of one tape or more")
    gas, near = cassette.grid(cassette.cell), cassette.grid(cassette.near_cell)
    airs = cassette.grid(cassette.wind_cell or 1e9)
    meta = MovieMeta(**log_coding(cassette.peak, cassette.smallest))
    count = cassette.num_frames
    frames = np.zeros((len(params) * count, *gas.size[::-1]), np.uint8)
    nearest = np.empty((len(frames), *near.size[::-1]), np.uint8)
    winds, puffs = [], []
    for p, numbers in enumerate(params):
        progress(p, len(params))
        own = jax.random.fold_in(key, p)
        states = _roll(plume, numbers, own, count, cassette)
        winds.append(np.asarray(_winds(plume, states, numbers, airs)))
        puffs.append(np.asarray(_along(plume, states, numbers, cassette.num_puffs)))
        particles = jax.device_get(states.particles)
        for t in range(count):
            here = particles.alive[t]
            places, age = particles.position[t][:, here], particles.age[t][here]
            painted = plume.paint(places, age, gas, numbers)
            at = p * count + t
            smells = painted > 0
            frames[at][smells] = encode(painted[smells].astype(np.float32), "uint8", meta)
            nearest[at] = _nearest(places, near)
    progress(len(params), len(params))
    source = np.asarray(plume.sources(jax.tree.map(lambda x: x[0], states), params[0]))[0, :2]
    player = RecordedPlume(
        num_frames=count,
        grid_size=gas.size,
        num_movies=len(params),
        time="held",
        mirrored=mirrored,
        coding="log",
    )
    last = starts_within(count, -(-margin // cassette.every))
    movie = player.default_params().replace(
        frames=frames,
        source=source,
        origin=np.asarray(gas.origin, np.float32),
        spacing=np.asarray(gas.spacing, np.float32),
        frames_per_step=np.float32(1 / cassette.every),
        start_frames=last,
        scale=np.float32(meta.scale),
        offset=np.float32(meta.offset),
        axis=source[1],
    )
    tape = Tape(plume, player, airs.size, near.size, cassette.num_puffs)
    return tape, TapeParams(
        gas=movie,
        wind=np.concatenate(winds),
        wind_origin=np.asarray(airs.origin, np.float32),
        wind_spacing=np.asarray(airs.spacing, np.float32),
        nearest=nearest,
        nearest_origin=np.asarray(near.origin, np.float32),
        nearest_spacing=np.asarray(near.spacing, np.float32),
        puffs=np.concatenate(puffs),
        shares=np.ones(len(params), np.float32),
        plume=params[0],
    )


def _roll(plume: Any, params: Any, key: jax.Array, count: int, cassette: Cassette) -> Any:
    warmup = cassette.warmup * cassette.every
    return roll(plume, params, key, 1, count, cassette.every, warmup)


@partial(jax.jit, static_argnames=("plume", "grid"))
def _winds(plume: Any, states: Any, params: Any, grid: Grid) -> jax.Array:
    """float32[T, 2, h, w]: the wind of T states at the centres of the cells."""
    x, y = (
        np.asarray(low + gap * np.arange(n), np.float32)
        for low, gap, n in zip(grid.origin, grid.spacing, grid.size, strict=True)
    )
    centres = jnp.asarray(np.stack(np.meshgrid(x, y)).reshape(2, -1))
    winds = jax.vmap(lambda state: plume.wind.at(state.wind, centres, params.wind))(states)
    return winds.reshape(len(winds), 2, len(y), len(x))


@partial(jax.jit, static_argnames=("plume", "num_puffs"))
def _along(plume: Any, states: Any, params: Any, num_puffs: int) -> jax.Array:
    percents = jnp.linspace(0.0, 100.0, num_puffs)
    return jax.vmap(lambda state: plume.puffs_along(state, percents, params))(states)


def _nearest(places: np.ndarray, grid: Grid) -> np.ndarray:
    """uint8[h, w]: steps from the centre of each cell to the nearest one that holds a puff."""
    (width, height), spacing = grid.size, np.asarray(grid.spacing)
    x, y = np.round((places[:2].T - grid.origin) / spacing).astype(int).T
    here = (x >= 0) & (x < width) & (y >= 0) & (y < height)
    if not here.any():
        return np.full((height, width), 255, np.uint8)
    empty = np.ones((height, width), bool)
    empty[y[here], x[here]] = False
    away = distance_transform_edt(empty, sampling=spacing[::-1])
    return np.minimum(np.round(away / NEAREST_STEP), 255).astype(np.uint8)
