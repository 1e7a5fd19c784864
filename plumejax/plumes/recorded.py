"""plumes/recorded: the player of movies: recorded gas, or a bank of plumes rolled out once."""

from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.base.errors import require
from plumejax.plumes.geometry import in_box
from plumejax.plumes.interface import Air


class RecordedParams(struct.PyTreeNode):
    """Numbers of a `RecordedPlume` of P movies, T frames each, H by W cells.

    Attributes:
      frames: uint8, float16 or float32[P * T, H, W], indexed [y, x], one movie after another;
        shared by all episodes, and decoded only where it is read.
      source: float32[2] or float32[S, 2], x and y in lengths.
      origin: float32[2], x and y of the centre of cell (0, 0).
      spacing: float32[2], lengths from cell to cell along x and y, > 0.
      frames_per_step: float32[], frames that a step goes on, >= 0; 1 where `time` is "frame".
      start_frames: int32[2], the first and the last frame that an episode may start at.
      scale, offset: float32[], of the coding.
      axis: float32[], the y about which a mirrored episode is mirrored.
      wind: float16 or float32[P * T', 2, H, W], lengths a second, or () where there is none.
      wind_rate: float32[], frames of the wind to one of the gas.
      wind_start: float32[], frame of the wind that belongs to frame 0.
    """

    frames: Any
    source: Any
    origin: Any
    spacing: Any
    frames_per_step: Any
    start_frames: Any
    scale: Any
    offset: Any
    axis: Any
    wind: Any
    wind_rate: Any
    wind_start: Any


class Playing(struct.PyTreeNode):
    """What an episode sees of a recording; what it has no choice of is ().

    Attributes:
      phase: the frame, int32[] where `time` is "frame", else float32[] and not always whole.
      movie: int32[], or () of a single one.
      mirrored: bool[], or ().
    """

    phase: Any
    movie: Any
    mirrored: Any


@dataclass(frozen=True)
class RecordedPlume:
    """Movies of concentration; an episode has one of them, from a frame drawn at its start.

    Concentration = `max(0, scale (raw - offset))` if the coding is "linear", `scale expm1(offset
    raw)` if it is "log". Outside the grid (half a cell beyond the outer centres) it is 0.

    Attributes:
      num_frames: T, of each movie.
      grid_size: width and height in cells.
      num_movies: P; an episode draws one uniformly.
      space: "cell" reads the cell a position lies in, "linear" between the centres of four,
        constant beyond the outermost.
      time: "frame" plays one frame a step; "held" goes on by `frames_per_step` and shows the last
        frame that has begun, "linear" the mean of two, by their distance.
      ends: after the last frame "loop" plays the first, "clamp" stays.
      mirrored: whether half of the episodes have y mirrored about `axis`.
      coding: what the raw numbers mean.
      wind_frames: T', frames of recorded wind of each movie; 0 if there is none and it reads 0.
      unit: of the concentration.
    """

    num_frames: int
    grid_size: tuple[int, int]
    num_movies: int = 1
    space: Literal["cell", "linear"] = "cell"
    time: Literal["frame", "held", "linear"] = "frame"
    ends: Literal["loop", "clamp"] = "loop"
    mirrored: bool = False
    coding: Literal["linear", "log"] = "linear"
    wind_frames: int = 0
    unit: str = "arbitrary units"
    random_step = False

    def __post_init__(self) -> None:
        for name, allowed in _CHOICES.items():
            value = getattr(self, name)
            require(value in allowed, name, value, f"one of {', '.join(allowed)}")
        for name, least in (("num_frames", 1), ("num_movies", 1), ("wind_frames", 0)):
            value = getattr(self, name)
            require(value >= least, name, value, f">= {least}")
        # One word draws movie, frame and mirror; none gains more than its share of 2^32.
        choices = self.num_movies * self.num_frames * 2
        require(choices < 2**26, "num_movies * num_frames", choices // 2, f"< {2**25}")

    def default_params(self) -> RecordedParams:
        """Clean air with the source in the middle; the frames of a recording replace it."""
        width, height = self.grid_size
        source = (np.asarray(self.grid_size) // 2).astype(np.float32)
        last = self.num_frames - 1 if self.ends == "loop" else 0
        wind_shape = (self.num_movies * self.wind_frames, 2, height, width)
        return RecordedParams(
            frames=np.zeros((self.num_movies * self.num_frames, height, width), np.float32),
            source=source,
            origin=np.zeros(2, np.float32),
            spacing=np.ones(2, np.float32),
            frames_per_step=np.float32(1.0),
            start_frames=np.asarray([0, last], np.int32),
            scale=np.float32(1.0),
            offset=np.float32(0.01 if self.coding == "log" else 0.0),
            axis=np.float32(source[1]),
            wind=np.zeros(wind_shape, np.float16) if self.wind_frames else (),
            wind_rate=np.float32(1.0) if self.wind_frames else (),
            wind_start=np.float32(0.0) if self.wind_frames else (),
        )

    def start(self, key: jax.Array, params: RecordedParams) -> Playing:
        # One draw of bits, where `randint` makes four.
        word = jax.random.bits(key, (), jnp.uint32)
        mirrored: Any = ()
        movie: Any = ()
        if self.mirrored:
            mirrored, word = (word & jnp.uint32(1)).astype(jnp.bool_), word >> jnp.uint32(1)
        if self.num_movies > 1:
            count = jnp.uint32(self.num_movies)
            movie, word = (word % count).astype(jnp.int32), word // count
        first, last = jnp.asarray(params.start_frames, jnp.int32)
        phase = first + (word % (last - first + 1).astype(jnp.uint32)).astype(jnp.int32)
        if self.time != "frame":
            phase = phase.astype(jnp.float32)
        return Playing(phase=phase, movie=movie, mirrored=mirrored)

    def advance(self, key: jax.Array, state: Playing, params: RecordedParams) -> Playing:
        if self.time == "frame":
            phase, end = state.phase + 1, jnp.int32(self.num_frames)
        else:
            phase = state.phase + jnp.asarray(params.frames_per_step, jnp.float32)
            end = jnp.float32(self.num_frames)
        if self.ends == "loop":
            phase = jnp.where(phase >= end, phase - end, phase)
        else:
            phase = jnp.minimum(phase, end - 1)
        return state.replace(phase=phase)

    def sample(self, state: Playing, positions: jax.Array, params: RecordedParams) -> Air:
        x, y = positions[:, 0], positions[:, 1]
        if self.mirrored:
            y = jnp.where(state.mirrored, 2 * jnp.asarray(params.axis, jnp.float32) - y, y)
        origin, spacing = (jnp.asarray(v, jnp.float32) for v in (params.origin, params.spacing))
        cell = jnp.stack([(x - origin[0]) / spacing[0], (y - origin[1]) / spacing[1]])
        frames = jnp.asarray(params.frames)

        def concentration(frame: jax.Array, row: jax.Array, column: jax.Array) -> jax.Array:
            raw = frames[frame, row, column].astype(jnp.float32)
            return self._decode(raw, params)

        reading = self._read(concentration, self._frames(state), cell)
        return Air(
            concentration=jnp.where(self._inside(cell), reading, jnp.zeros_like(reading)),
            wind=self._wind(state, cell, params) if self.wind_frames else jnp.zeros_like(positions),
        )

    def sources(self, state: Playing, params: RecordedParams) -> jax.Array:
        """float32[S, 2]; those of a mirrored episode are mirrored."""
        sources = jnp.asarray(params.source, jnp.float32).reshape(-1, 2)
        if not self.mirrored:
            return sources
        flipped = 2 * jnp.asarray(params.axis, jnp.float32) - sources[:, 1]
        return sources.at[:, 1].set(jnp.where(state.mirrored, flipped, sources[:, 1]))

    def validate(self, params: RecordedParams) -> None:
        """Raise `ValidationError` if the frames do not fit or a number is not allowed."""
        frames = np.asarray(params.frames)
        shape = (self.num_movies * self.num_frames, *self.grid_size[::-1])
        require(frames.shape[-3:] == shape, "plume.frames.shape", frames.shape, f"{shape}")
        if frames.dtype.kind != "u":
            least = frames.min()
            require(least >= 0, "plume.frames", float(least), ">= 0 everywhere")
        spacing = np.asarray(params.spacing)
        require(np.all(spacing > 0), "plume.spacing", params.spacing, "> 0 lengths a cell")
        require(np.all(np.asarray(params.scale) > 0), "plume.scale", params.scale, "> 0")
        if self.coding == "log":
            require(np.all(np.asarray(params.offset) > 0), "plume.offset", params.offset, "> 0")
        cell = (np.asarray(params.source) - np.asarray(params.origin)) / spacing
        good = np.all((cell >= -0.5) & (cell <= np.asarray(self.grid_size) - 0.5))
        require(good, "plume.source", params.source, f"inside the grid {self.grid_size}")
        first, last = np.moveaxis(np.asarray(params.start_frames), -1, 0)
        good = np.all((first >= 0) & (first <= last) & (last < self.num_frames))
        allowed = f"(first, last) with 0 <= first <= last < {self.num_frames}"
        require(good, "plume.start_frames", params.start_frames, allowed)
        rate = np.asarray(params.frames_per_step)
        if self.time == "frame":
            good, allowed = np.all(rate == 1), '1, or static time must be "held" or "linear"'
        else:
            good, allowed = np.all((rate >= 0) & (rate <= self.num_frames)), ">= 0, <= num_frames"
        require(good, "plume.frames_per_step", params.frames_per_step, allowed)
        if self.wind_frames:
            wind_shape = (self.num_movies * self.wind_frames, 2, *shape[1:])
            given = np.shape(params.wind)
            require(given[-4:] == wind_shape, "plume.wind.shape", given, f"{wind_shape}")

    def _inside(self, cell: jax.Array) -> jax.Array:
        # Half a cell beyond the outer centres, as rounding to the nearest has it: ties to even.
        if self.space == "cell":
            width, height = self.grid_size
            x, y = _nearest(cell)
            return (x >= 0) & (x < width) & (y >= 0) & (y < height)
        high = [np.float32(n - 0.5) for n in self.grid_size]
        return in_box(cell.T, (np.float32(-0.5),) * 2, high)

    def _frames(self, state: Playing) -> tuple[tuple[jax.Array, Any], ...]:
        """The frames that are read, each with its weight (None: all of it)."""
        first = 0 if isinstance(state.movie, tuple) else state.movie * self.num_frames
        if self.time == "frame":
            return ((first + state.phase, None),)
        begun = jnp.minimum(jnp.floor(state.phase).astype(jnp.int32), self.num_frames - 1)
        if self.time == "held":
            return ((first + begun, None),)
        after = begun + 1
        if self.ends == "loop":
            after = jnp.where(after == self.num_frames, jnp.zeros_like(after), after)
        else:
            after = jnp.minimum(after, self.num_frames - 1)
        share = state.phase - begun.astype(jnp.float32)
        return (first + begun, 1 - share), (first + after, share)

    def _wind_frames(
        self, state: Playing, params: RecordedParams
    ) -> tuple[tuple[jax.Array, Any], ...]:
        """The same of the wind; before its first frame and after its last it stays."""
        first = 0 if isinstance(state.movie, tuple) else state.movie * self.wind_frames
        rate, begin = (jnp.asarray(v, jnp.float32) for v in (params.wind_rate, params.wind_start))
        phase = begin + rate * state.phase.astype(jnp.float32)
        phase = jnp.clip(phase, 0, self.wind_frames - 1)
        begun = jnp.floor(phase).astype(jnp.int32)
        if self.time != "linear":
            return ((first + begun, None),)
        after = jnp.minimum(begun + 1, self.wind_frames - 1)
        share = phase - begun.astype(jnp.float32)
        return (first + begun, 1 - share), (first + after, share)

    def _read(
        self, number: Any, frames: tuple[tuple[jax.Array, Any], ...], cell: jax.Array
    ) -> jax.Array:
        """float32[n]: the mean of `number(frame, row, column)` by weights in time and in space."""
        total: Any = None
        for frame, in_time in frames:
            for (column, row), in_space in self._cells(cell):
                each = number(frame, row, column)
                each = each if in_space is None else each * in_space
                each = each if in_time is None else each * in_time
                total = each if total is None else total + each
        return total

    def _cells(self, cell: jax.Array) -> list[tuple[tuple[jax.Array, jax.Array], Any]]:
        """(column, row) of the cells that are read, each with its weight (None: all of it)."""
        width, height = self.grid_size
        if self.space == "cell":
            x, y = _nearest(cell)
            return [((jnp.clip(x, 0, width - 1), jnp.clip(y, 0, height - 1)), None)]
        (left, right), (below, above) = (_between(cell[i], n) for i, n in enumerate(self.grid_size))
        return [((x, y), a * b) for y, b in (below, above) for x, a in (left, right)]

    def _decode(self, raw: jax.Array, params: RecordedParams) -> jax.Array:
        scale, offset = (jnp.asarray(v, jnp.float32) for v in (params.scale, params.offset))
        if self.coding == "log":
            return scale * jnp.expm1(offset * raw)
        value = scale * (raw - offset)
        return jnp.where(value >= 0, value, jnp.zeros_like(value))

    def _wind(self, state: Playing, cell: jax.Array, params: RecordedParams) -> jax.Array:
        """float32[n, 2], in lengths a second; outside the grid that of its edge."""
        wind = jnp.asarray(params.wind)
        frames = self._wind_frames(state, params)
        u, v = (
            self._read(
                lambda f, row, column, i=i: wind[f, i, row, column].astype(jnp.float32),
                frames,
                cell,
            )
            for i in (0, 1)
        )
        if self.mirrored:
            v = jnp.where(state.mirrored, -v, v)
        return jnp.stack([u, v], axis=-1)


_CHOICES = {
    "space": ("cell", "linear"),
    "time": ("frame", "held", "linear"),
    "ends": ("loop", "clamp"),
    "coding": ("linear", "log"),
}


def _nearest(cell: jax.Array) -> tuple[jax.Array, jax.Array]:
    x, y = jnp.round(cell).astype(jnp.int32)
    return x, y


def _between(
    at: jax.Array, cells: int
) -> tuple[tuple[jax.Array, jax.Array], tuple[jax.Array, jax.Array]]:
    """The two cells around float32[n], each (index, weight); `at` is clipped to their centres."""
    at = jnp.clip(at, 0, cells - 1)
    low = jnp.minimum(jnp.floor(at).astype(jnp.int32), max(cells - 2, 0))
    share = at - low.astype(jnp.float32)
    return (low, 1 - share), (jnp.minimum(low + 1, cells - 1), share)
