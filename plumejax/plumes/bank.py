"""plumes/bank: any plume rolled out once, P times T frames, and read by all episodes.

A plume of its own for every episode costs particles times episodes at each step; a bank costs them
once. An episode has one of the P plumes, from a frame drawn at its start, perhaps mirrored, perhaps
thinned. It takes two forms.

`make_bank` keeps the states: `Bank` reads them exactly, and a read costs what `sample` of the plume
costs. `write_bank` keeps pictures on a grid, a movie that `movies.movie_plume` plays: a read is a
gather of a number or four, whatever the plume, to the rounding of the grid and of the coding.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.base.errors import require, within
from plumejax.plumes import rolling
from plumejax.plumes.grids import Grid
from plumejax.plumes.interface import Air
from plumejax.plumes.movies import MovieMeta, MovieWriter, encode, log_coding
from plumejax.plumes.recorded import Playing, RecordedPlume


class BankParams(struct.PyTreeNode):
    """Numbers of a `Bank`.

    Attributes:
      frames: states of the plume, leaves lead with P * T, one plume after another; shared by all
        episodes.
      plume: numbers of the plume, as far as `sample` and `sources` use them. What has acted while
        it was rolled out, such as its wind, stays as it was.
      start_frames: int32[2], the first and the last frame that an episode may start at.
      axis: float32[], the y about which a mirrored episode is mirrored.
      keep: float32[], the fraction of the particles that a thinned episode keeps, in [0, 1].
    """

    frames: Any
    plume: Any
    start_frames: Any
    axis: Any
    keep: Any


class Reading(struct.PyTreeNode):
    """What an episode sees of a bank.

    Attributes:
      playing: its plume, frame and mirror; with the same key those of a `RecordedPlume`, if
        nothing is thinned.
      salt: uint32[], which particles it keeps, or () if all.
    """

    playing: Playing
    salt: Any


@dataclass(frozen=True)
class Bank:
    """States of a plume rolled out once; an advance is one frame.

    Attributes:
      plume: whose states they are.
      num_plumes: P; an episode draws one uniformly.
      num_frames: T, of each.
      mirrored: whether half of the episodes have y mirrored about `axis`.
      thinned: whether an episode keeps a random fraction of the particles, for which the plume has
        a method `thin(state, keep, salt)`.
      ends: after the last frame "loop" goes on with the first, a jump that no plume makes; "clamp"
        stands still.
    """

    plume: Any
    num_plumes: int
    num_frames: int
    mirrored: bool = False
    thinned: bool = False
    ends: Literal["loop", "clamp"] = "loop"
    random_step = False

    def __post_init__(self) -> None:
        require(self.num_plumes >= 1, "num_plumes", self.num_plumes, ">= 1")
        self._player()  # which refuses the rest
        can = not self.thinned or hasattr(self.plume, "thin")
        require(can, "thinned", self.thinned, "False: the plume has no method thin")

    @property
    def unit(self) -> str:
        """Of the concentration."""
        return getattr(self.plume, "unit", "arbitrary units")

    def default_params(self) -> BankParams:
        """Frames of zeros, which those of `roll` replace."""
        inner = self.plume.default_params()
        one = jax.eval_shape(lambda: self.plume.start(jax.random.key(0), inner))
        count = self.num_plumes * self.num_frames
        return BankParams(
            frames=jax.tree.map(lambda x: np.zeros((count, *x.shape), x.dtype), one),
            plume=inner,
            start_frames=starts_within(self.num_frames, 0),
            axis=np.float32(0.0),
            keep=np.float32(1.0),
        )

    def start(self, key: jax.Array, params: BankParams) -> Reading:
        salt: Any = ()
        if self.thinned:
            key, salt_key = jax.random.split(key)
            salt = jax.random.bits(salt_key, (), jnp.uint32)
        return Reading(self._player().start(key, params), salt)

    def advance(self, key: jax.Array, state: Reading, params: BankParams) -> Reading:
        return state.replace(playing=self._player().advance(key, state.playing, params))

    def sample(self, state: Reading, positions: jax.Array, params: BankParams) -> Air:
        frame = self.frame(state, params)
        if not self.mirrored:
            return self.plume.sample(frame, positions, params.plume)
        air = self.plume.sample(frame, self._mirror(state, positions, params), params.plume)
        wind = air.wind.at[:, 1].set(_negate(state, air.wind[:, 1]))
        return air.replace(wind=wind)

    def sources(self, state: Reading, params: BankParams) -> jax.Array:
        """float32[S, d]; those of a mirrored episode are mirrored."""
        sources = self.plume.sources(self.frame(state, params), params.plume)
        return self._mirror(state, sources, params) if self.mirrored else sources

    def nearest(self, state: Reading, place: jax.Array, params: BankParams) -> jax.Array:
        """That of the plume, for those of puffs."""
        seen = self._mirror(state, place[None], params)[0] if self.mirrored else place
        return self.plume.nearest(self.frame(state, params), seen, params.plume)

    def puffs_along(self, state: Reading, percents: jax.Array, params: BankParams) -> jax.Array:
        """That of the plume, for those of puffs."""
        puffs = self.plume.puffs_along(self.frame(state, params), percents, params.plume)
        return self._mirror(state, puffs, params) if self.mirrored else puffs

    def frame(self, state: Reading, params: BankParams) -> Any:
        """The state of the plume, thinned, not mirrored."""
        playing = state.playing
        plume = 0 if isinstance(playing.movie, tuple) else playing.movie * self.num_frames
        frame = jax.tree.map(lambda x: jnp.asarray(x)[plume + playing.phase], params.frames)
        return self.plume.thin(frame, params.keep, state.salt) if self.thinned else frame

    def validate(self, params: BankParams) -> None:
        """Raise `ValidationError` if the frames do not fit or a number is not allowed."""
        if hasattr(self.plume, "validate"):
            with within("plume", "plume"):
                self.plume.validate(params.plume)
        count = self.num_plumes * self.num_frames
        expected = jax.tree.map(np.shape, self.default_params().frames)
        given = jax.tree.map(np.shape, params.frames)
        require(given == expected, "plume.frames: shapes", given, f"{count} states of the plume")
        first, last = np.moveaxis(np.asarray(params.start_frames), -1, 0)
        good = np.all((first >= 0) & (first <= last) & (last < self.num_frames))
        allowed = f"(first, last) with 0 <= first <= last < {self.num_frames}"
        require(good, "plume.start_frames", params.start_frames, allowed)
        keep = np.asarray(params.keep)
        require(np.all((keep >= 0) & (keep <= 1)), "plume.keep", params.keep, "in [0, 1]")

    def _player(self) -> Any:
        """Which plume, frame and mirror an episode has is as of a movie."""
        return RecordedPlume(
            num_frames=self.num_frames,
            grid_size=(1, 1),
            num_movies=self.num_plumes,
            ends=self.ends,
            mirrored=self.mirrored,
        )

    def _mirror(self, state: Reading, positions: jax.Array, params: BankParams) -> jax.Array:
        y = positions[:, 1]
        flipped = 2 * jnp.asarray(params.axis, jnp.float32) - y
        return positions.at[:, 1].set(jnp.where(state.playing.mirrored, flipped, y))


def _negate(state: Reading, v: jax.Array) -> jax.Array:
    return jnp.where(state.playing.mirrored, -v, v)


def starts_within(num_frames: int, steps: int) -> np.ndarray:
    """int32[2], `start_frames` from which `steps` steps never pass the last frame."""
    require(0 <= steps < num_frames, "steps", steps, f">= 0 and < {num_frames}, the frames")
    return np.asarray([0, num_frames - 1 - steps], np.int32)


def make_bank(
    plume: Any,
    params: Any,
    key: jax.Array,
    num_plumes: int,
    num_frames: int,
    every: int = 1,
    warmup: int = 0,
    margin: int = 0,
    **static: Any,
) -> tuple[Bank, BankParams]:
    """`(bank, params)` of a plume rolled out now; with `margin`, episodes of up to so many steps
    start early enough not to pass the last frame.

    Args:
      plume, params: any plume.
      key, num_plumes, num_frames, every, warmup: as of `roll`.
      margin: steps.
      **static: choices of `Bank`.
    """
    bank = Bank(plume, num_plumes, num_frames, **static)
    frames = roll(plume, params, key, num_plumes, num_frames, every, warmup)
    first = jax.tree.map(lambda x: x[0], frames)
    return bank, BankParams(
        frames=frames,
        plume=params,
        start_frames=starts_within(num_frames, margin),
        axis=np.asarray(plume.sources(first, params), np.float32)[0, 1],
        keep=np.float32(1.0),
    )


@partial(jax.jit, static_argnames=("plume", "num_plumes", "num_frames"))
def roll(
    plume: Any,
    params: Any,
    key: jax.Array,
    num_plumes: int,
    num_frames: int,
    every: int = 1,
    warmup: int = 0,
) -> Any:
    """The states of P plumes, T of each, leaves lead with P * T.

    Plume p is that of the key `fold_in(key, p)`, as `rolling` says, and its frame t its state after
    `warmup + t * every` advances.

    Args:
      plume, params: any plume.
      key: typed key, consumed.
      num_plumes: P.
      num_frames: T.
      every: advances from one frame to the next.
      warmup: advances before the first.
    """

    def one(p: jax.Array) -> Any:
        own = jax.random.fold_in(key, p)
        state = rolling.begin(plume, own, params)
        state = rolling.skip(plume, own, 0, warmup, state, params)

        def frame(state: Any, t: jax.Array) -> tuple[Any, Any]:
            done = warmup + t * every
            return rolling.skip(plume, own, done, every, state, params), state

        return jax.lax.scan(frame, state, jnp.arange(num_frames, dtype=jnp.int32))[1]

    # One after another: side by side they would round otherwise than the plume alone does.
    frames = jax.lax.map(one, jnp.arange(num_plumes, dtype=jnp.uint32))
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), frames)


def rasterise(plume: Any, state: Any, params: Any, grid: Grid) -> Air:
    """The air at the centres of the cells, concentration float32[H, W], wind float32[2, H, W].

    Row by row, so that a plume of many particles needs memory for one row only.
    """
    width, height = grid.size
    x, y = (
        np.asarray(low + gap * np.arange(n), np.float32)
        for low, gap, n in zip(grid.origin, grid.spacing, (width, height), strict=True)
    )

    def row(y: jax.Array) -> Air:
        positions = jnp.stack([jnp.asarray(x), jnp.full(width, y, jnp.float32)], axis=-1)
        return plume.sample(state, positions, params)

    air = jax.lax.map(row, jnp.asarray(y))
    return Air(air.concentration, jnp.moveaxis(air.wind, -1, 0)[:2])


@partial(jax.jit, static_argnames=("plume", "grid", "frames"))
def pictures(
    plume: Any,
    key: jax.Array,
    done: Any,
    every: Any,
    frames: int,
    state: Any,
    params: Any,
    grid: Grid,
) -> tuple[Any, Air, jax.Array]:
    """`(state, air, sources)`: pictures of `state` and of what follows, `every` advances apart.

    Args:
      plume, params: any plume.
      key: of the plume as a whole (`rolling`).
      done: int32[], advances that `state` has behind it.
      every: int32[].
      frames: how many, static.
      state: that of the first picture.
      grid: where, static.

    Returns:
      The state `frames * every` advances on; concentration float32[frames, H, W] and wind
      float32[frames, 2, H, W]; sources float32[frames, S, d].
    """
    done, every = jnp.asarray(done, jnp.int32), jnp.asarray(every, jnp.int32)

    def one(state: Any, t: jax.Array) -> tuple[Any, tuple[Air, jax.Array]]:
        seen = rasterise(plume, state, params, grid), plume.sources(state, params)
        return rolling.skip(plume, key, done + t * every, every, state, params), seen

    state, (air, sources) = jax.lax.scan(one, state, jnp.arange(frames, dtype=jnp.int32))
    return state, air, sources


@dataclass(frozen=True)
class Plan:
    """What a raster bank is to hold.

    Attributes:
      grid: its cells. A cell holds the concentration at its centre; puffs smaller than a cell are
        missed or met by chance.
      num_plumes, num_frames, every, warmup: as of `roll`.
      dtype: "uint8" in 255 steps of an even ratio from `smallest` to `peak` (even below it),
        "float16" to 2^-11 of a value down to 2e-9 of `peak`, "float32" exactly.
      peak: the highest concentration that is held; what is above reads as it.
      smallest: where the steps of uint8 turn from even to an even ratio.
      wind: whether the wind is held too, float16.
    """

    grid: Grid
    num_plumes: int
    num_frames: int
    every: int = 1
    warmup: int = 0
    dtype: Literal["uint8", "float16", "float32"] = "uint8"
    peak: float = 1.0
    smallest: float = 1e-5
    wind: bool = False

    def __post_init__(self) -> None:
        for name, least in (("num_plumes", 1), ("num_frames", 1), ("every", 1), ("warmup", 0)):
            require(getattr(self, name) >= least, name, getattr(self, name), f">= {least}")
        require(0 < self.peak < np.inf, "peak", self.peak, "> 0 and finite")


def coding(plan: Plan) -> dict[str, Any]:
    """`coding`, `scale` and `offset` of `MovieMeta` for the pictures of a plan."""
    if plan.dtype == "uint8":
        return log_coding(plan.peak, plan.smallest)
    # Half of what float16 reaches up to, so that its small numbers reach down as far as they can.
    return {"scale": plan.peak / 2**15 if plan.dtype == "float16" else 1.0}


def highest(plume: Any, params: Any, key: jax.Array, grid: Grid, warmup: int, frames: int) -> float:
    """The highest concentration in the first pictures of plume 0 of a bank of `key`."""
    own = jax.random.fold_in(key, 0)
    state = rolling.begin(plume, own, params)
    state = rolling.skip(plume, own, 0, warmup, state, params)
    _, air, _ = pictures(plume, own, warmup, 1, frames, state, params, grid)
    return float(air.concentration.max())


def write_bank(
    path: str | Path,
    plume: Any,
    params: Any,
    key: jax.Array,
    plan: Plan,
    about: dict[str, Any] | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> None:
    """Roll plumes out into the movie `path`; the same call goes on after an interruption.

    It goes on by rolling the plume that was interrupted out anew up to there, without pictures. Its
    memory is that of some frames. The numbers are those of `roll` with the same key.

    Args:
      path: directory of the movie, not there yet.
      plume, params: any plume whose sources stay where they are, the same in all plumes.
      key: typed key, consumed.
      plan: what it is to hold.
      about: other fields of `MovieMeta`, such as `title`, `frames_per_second` and `made_from`.
      progress: told frames done and frames in all, after each block.

    Raises:
      ValidationError: an unfinished bank of another plan at `path`, or a movie; sources that move.
    """
    width, height = plan.grid.size
    first = rolling.begin(plume, jax.random.fold_in(key, 0), params)
    sources = np.asarray(plume.sources(first, params), np.float32)[:, :2]
    meta = MovieMeta(
        **{
            "unit": getattr(plume, "unit", "arbitrary units"),
            "spacing": plan.grid.spacing,
            "origin": plan.grid.origin,
            "sources": tuple((float(x), float(y)) for x, y in sources),
            "wind_per_second": (about or {}).get("frames_per_second", 1.0) if plan.wind else 0.0,
            **coding(plan),
            **(about or {}),
        }
    )
    shape = (plan.num_plumes, plan.num_frames, height, width)
    wind_shape = (*shape[:2], 2, height, width) if plan.wind else None
    params = jax.device_put(params)
    with MovieWriter(path, shape, plan.dtype, meta, wind_shape) as writer:
        progress(sum(writer.done), plan.num_plumes * plan.num_frames)
        for p in range(plan.num_plumes):
            own = jax.random.fold_in(key, p)
            for t, air, places in _frames(plume, params, own, plan, writer.done[p]):
                still = np.array_equal(places, np.broadcast_to(sources, places.shape))
                require(still, "sources", "moving", "where they are at the start, in every plume")
                frames = encode(np.asarray(air.concentration), plan.dtype, meta)
                wind = np.asarray(air.wind).astype(np.float16) if plan.wind else None
                writer.write(p, t, frames, wind)
                progress(sum(writer.done), plan.num_plumes * plan.num_frames)


_BLOCK_NUMBERS = 2**21


def _frames(plume: Any, params: Any, key: jax.Array, plan: Plan, begin: int) -> Any:
    """(t, air from frame t, sources from it) in blocks, from frame `begin` of one plume on."""
    if begin == plan.num_frames:
        return
    at_a_time = min(plan.num_frames, max(1, _BLOCK_NUMBERS // int(np.prod(plan.grid.size))))
    state = rolling.begin(plume, key, params)
    state = rolling.skip(plume, key, 0, plan.warmup + begin * plan.every, state, params)
    for t in range(begin, plan.num_frames, at_a_time):
        done = plan.warmup + t * plan.every
        state, air, sources = pictures(
            plume, key, done, plan.every, at_a_time, state, params, plan.grid
        )
        # The last block has frames too many, rather than a program of its own.
        kept = slice(plan.num_frames - t)
        yield t, jax.tree.map(lambda x, kept=kept: x[kept], air), np.asarray(sources)[kept, :, :2]
