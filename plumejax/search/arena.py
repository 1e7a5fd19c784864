"""search/arena: where an agent can be, and what a wall does."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.base.errors import require
from plumejax.plumes.geometry import in_box
from plumejax.search.state import Params


class OpenGridParams(struct.PyTreeNode):
    """An `OpenGrid` has no numbers."""


@dataclass(frozen=True)
class OpenGrid:
    """Every cell of a `width` x `height` grid; a move over the wall ends at the wall.

    Attributes:
      grid_size: width and height in cells; positions are 0..width-1 and 0..height-1. A line has
        only a width, a grid in space a depth (z) too.
    """

    grid_size: tuple[int, ...] = (128, 128)

    def default_params(self) -> OpenGridParams:
        return OpenGridParams()

    @property
    def dimensions(self) -> int:
        """Of a place."""
        return len(self.grid_size)

    def sides(self, params: Params) -> np.ndarray:
        """float32[d]: how long the grid is along each axis, cells."""
        return np.asarray(self.grid_size, np.float32)

    def inside(self, positions: jax.Array, params: Params) -> jax.Array:
        return in_box(positions, (np.float32(0.0),) * len(self.grid_size), self._last())

    def blocked(self, origin: jax.Array, target: jax.Array, params: Params) -> jax.Array:
        return ~self.inside(target[None], params)[0]

    def settle(self, origin: jax.Array, target: jax.Array, params: Params) -> jax.Array:
        return jnp.clip(target, jnp.zeros_like(target), self._last())

    def _last(self) -> np.ndarray:
        return np.asarray(self.grid_size, np.float32) - np.float32(1.0)

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` if the grid is empty."""
        good = 1 <= len(self.grid_size) <= 3 and _all_counts(self.grid_size)
        require(good, "grid_size", self.grid_size, "(width, height), or one or three ints > 0")


@dataclass(frozen=True)
class PeriodicGrid(OpenGrid):
    """A grid without walls: what leaves it on one side comes in on the other.

    Only moves go round: distances to the source, and the plume, do not.
    """

    def blocked(self, origin: jax.Array, target: jax.Array, params: Params) -> jax.Array:
        return jnp.asarray(False)

    def settle(self, origin: jax.Array, target: jax.Array, params: Params) -> jax.Array:
        return jnp.mod(target, np.asarray(self.grid_size, np.float32))


class MaskedGridParams(struct.PyTreeNode):
    """Numbers of a `MaskedGrid`.

    Attributes:
      free: bool[height, width], indexed [y, x]: the cells an agent may stand on.
    """

    free: Any


@dataclass(frozen=True)
class MaskedGrid:
    """The free cells of a grid; a move onto another cell, or over the edge, does not happen.

    Only the cell where a move ends is looked at, so moves should not be longer than a cell.

    Attributes:
      grid_size: width and height in cells.
    """

    grid_size: tuple[int, int]

    def default_params(self) -> MaskedGridParams:
        width, height = self.grid_size
        return MaskedGridParams(free=np.ones((height, width), bool))

    @property
    def dimensions(self) -> int:
        """Of a place."""
        return len(self.grid_size)

    def sides(self, params: Params) -> np.ndarray:
        """float32[2]: width and height, cells."""
        return np.asarray(self.grid_size, np.float32)

    def inside(self, positions: jax.Array, params: Params) -> jax.Array:
        width, height = self.grid_size
        x, y = jnp.round(positions).astype(jnp.int32).T
        on_grid = (x >= 0) & (x < width) & (y >= 0) & (y < height)
        free = jnp.asarray(params.arena.free)
        return on_grid & free[jnp.clip(y, 0, height - 1), jnp.clip(x, 0, width - 1)]

    def blocked(self, origin: jax.Array, target: jax.Array, params: Params) -> jax.Array:
        return ~self.inside(target[None], params)[0]

    def settle(self, origin: jax.Array, target: jax.Array, params: Params) -> jax.Array:
        return jnp.where(self.blocked(origin, target, params), origin, target)

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` if the mask does not fit or bars everything."""
        _require_size(self.grid_size)
        free = np.asarray(params.arena.free)
        shape = (self.grid_size[1], self.grid_size[0])
        require(free.shape[-2:] == shape, "arena.free.shape", free.shape, f"{shape}")
        require(np.all(free.any(axis=(-2, -1))), "arena.free", "no free cell", "free somewhere")


def from_map(text: str) -> tuple[MaskedGrid, MaskedGridParams]:
    """The grid of a drawn map, as `read_map` reads it, and its numbers."""
    return from_array(read_map(text))


def from_array(free: Any) -> tuple[MaskedGrid, MaskedGridParams]:
    """The grid of bool[height, width], indexed [y, x], True where an agent may stand."""
    free = np.asarray(free)
    good = free.ndim == 2 and free.dtype == bool
    require(good, "free", f"{free.dtype}{list(free.shape)}", "bool[height, width]")
    height, width = free.shape
    return MaskedGrid((width, height)), MaskedGridParams(free=free)


def read_map(text: str) -> np.ndarray:
    """bool[height, width], indexed [y, x]: the free cells of a drawn map.

    '#' is a wall and '.' free; the first row is the one with the largest y, as on paper. Blank
    lines and indents do not count.
    """
    rows = text.split()
    good = len({len(row) for row in rows}) == 1 and set("".join(rows)) <= {"#", "."}
    require(good, "map", text, "rows of one length, of '#' and '.'")
    return np.asarray([[cell == "." for cell in row] for row in reversed(rows)])


class BoxParams(struct.PyTreeNode):
    """Numbers of an `OpenBox` or a `PeriodicBox`.

    Attributes:
      low: float32[d], the least x, y (and z), lengths of the plume.
      high: float32[d], the greatest, > low.
    """

    low: Any
    high: Any


@dataclass(frozen=True)
class OpenBox:
    """Every point of a box, its walls included; a move over a wall ends at the wall.

    Attributes:
      dimensions: 1, 2 or 3.
    """

    dimensions: int = 2

    def default_params(self) -> BoxParams:
        return BoxParams(
            low=np.zeros(self.dimensions, np.float32), high=np.ones(self.dimensions, np.float32)
        )

    def sides(self, params: Params) -> np.ndarray:
        """float32[d]: how long the box is along each axis, lengths of the plume."""
        return np.asarray(params.arena.high) - np.asarray(params.arena.low)

    def inside(self, positions: jax.Array, params: Params) -> jax.Array:
        return in_box(positions, params.arena.low, params.arena.high)

    def blocked(self, origin: jax.Array, target: jax.Array, params: Params) -> jax.Array:
        return ~self.inside(target[None], params)[0]

    def settle(self, origin: jax.Array, target: jax.Array, params: Params) -> jax.Array:
        return jnp.clip(target, params.arena.low, params.arena.high)

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` if the box has no inside, or not that many dimensions."""
        require(self.dimensions in (1, 2, 3), "arena.dimensions", self.dimensions, "1, 2 or 3")
        low, high = np.asarray(params.arena.low), np.asarray(params.arena.high)
        for name, side in (("arena.low", low), ("arena.high", high)):
            good = side.shape[-1:] == (self.dimensions,) and np.all(np.isfinite(side))
            require(good, name, side, f"{self.dimensions} finite numbers")
        require(np.all(low < high), "arena.high", high, f"> arena.low, {low.tolist()}")


@dataclass(frozen=True)
class PeriodicBox(OpenBox):
    """A box without walls: what leaves it on one side comes in on the other.

    Only moves go round: distances to the source, and the plume, do not.
    """

    def blocked(self, origin: jax.Array, target: jax.Array, params: Params) -> jax.Array:
        return jnp.asarray(False)

    def settle(self, origin: jax.Array, target: jax.Array, params: Params) -> jax.Array:
        low, high = jnp.asarray(params.arena.low), jnp.asarray(params.arena.high)
        return low + jnp.mod(target - low, high - low)


class ObstacleBoxParams(struct.PyTreeNode):
    """Numbers of an `ObstacleBox`.

    Attributes:
      free: bool[height, width], indexed [y, x], or bool[depth, height, width], indexed [z, y, x]:
        the cells an agent may be in.
      origin: float32[d], the centre of the first cell, lengths of the plume.
      spacing: float32[d], lengths from one cell's centre to the next, > 0.
    """

    free: Any
    origin: Any
    spacing: Any


@dataclass(frozen=True)
class ObstacleBox:
    """A box with obstacles, drawn on a grid of cells; its edges are walls too.

    An agent is in the cell whose centre is nearest. A move ends before the first point in an
    obstacle, of `samples` points spaced evenly along its way, so the way must not be longer than
    `samples` cells, or an agent could jump through a wall. A way may still cut a corner by less
    than a cell, and pass between two obstacles that touch at a corner only.

    Attributes:
      cells: how many along x, y (and z).
      samples: points looked at along a way, the last at its end.
    """

    cells: tuple[int, ...]
    samples: int = 4

    def default_params(self) -> ObstacleBoxParams:
        d = len(self.cells)
        return ObstacleBoxParams(
            free=np.ones(self.cells[::-1], bool),
            origin=np.zeros(d, np.float32),
            spacing=np.ones(d, np.float32),
        )

    @property
    def dimensions(self) -> int:
        """Of a place."""
        return len(self.cells)

    def sides(self, params: Params) -> np.ndarray:
        """float32[d]: how long the box is along each axis, lengths of the plume."""
        return np.asarray(self.cells, np.float32) * np.asarray(params.arena.spacing)

    def inside(self, positions: jax.Array, params: Params) -> jax.Array:
        own = params.arena
        index, inside = [], jnp.ones(positions.shape[:-1], bool)
        for axis, n in enumerate(self.cells):
            # Not round: it would make of every other cell one without its own edges.
            place = jnp.floor((positions[..., axis] - own.origin[axis]) / own.spacing[axis] + 0.5)
            inside &= (place >= 0) & (place < n)
            index.append(jnp.clip(place, 0, n - 1).astype(jnp.int32))
        return inside & jnp.asarray(own.free)[tuple(reversed(index))]

    def blocked(self, origin: jax.Array, target: jax.Array, params: Params) -> jax.Array:
        return ~jnp.all(self.inside(self._way(origin, target), params))

    def settle(self, origin: jax.Array, target: jax.Array, params: Params) -> jax.Array:
        way = self._way(origin, target)
        reached = jnp.sum(jnp.cumprod(self.inside(way, params).astype(jnp.int32)), dtype=jnp.int32)
        return jnp.concatenate([origin[None], way])[reached]

    def _way(self, origin: jax.Array, target: jax.Array) -> jax.Array:
        """float32[samples, d], the points that are looked at, the last exactly the target."""
        part = np.arange(1, self.samples + 1, dtype=np.float32)[:, None] / np.float32(self.samples)
        return jnp.where(part == 1, target[None], origin[None] + part * (target - origin)[None])

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` for numbers that do not fit, or a motion too fast for them."""
        own, d = params.arena, len(self.cells)
        fits = d in (2, 3) and _all_counts(self.cells)
        require(fits, "arena.cells", self.cells, "two or three ints > 0")
        require(_all_counts((self.samples,)), "arena.samples", self.samples, "an int > 0")
        free, shape = np.asarray(own.free), self.cells[::-1]
        require(free.shape[-d:] == shape, "arena.free.shape", free.shape, f"{shape}")
        somewhere = np.all(np.any(free, axis=tuple(range(-d, 0))))
        require(somewhere, "arena.free", "no free cell", "free somewhere")
        for name in ("origin", "spacing"):
            numbers = np.asarray(getattr(own, name))
            finite = numbers.shape[-1:] == (d,) and np.all(np.isfinite(numbers))
            require(finite, f"arena.{name}", numbers, f"{d} finite numbers")
        spacing = np.asarray(own.spacing)
        require(np.all(spacing > 0), "arena.spacing", spacing, "> 0")
        self._require_slow(params)

    def _require_slow(self, params: Params) -> None:
        numbers = params.motion
        while hasattr(numbers, "of"):
            numbers = numbers.of
        speed = getattr(numbers, "max_speed", getattr(numbers, "speed", 0.0))
        cells = np.max(np.asarray(speed) * np.asarray(params.dt)) / np.min(params.arena.spacing)
        enough = self.samples >= cells - 1e-4
        allowed = f">= {cells:.4g}, the cells of the longest step, so that it jumps over no wall"
        require(enough, "arena.samples", self.samples, allowed)


def _all_counts(numbers: Any) -> bool:
    return all(isinstance(n, int) and n > 0 for n in numbers)


def _require_size(grid_size: Any) -> None:
    good = len(grid_size) == 2 and _all_counts(grid_size)
    require(good, "grid_size", grid_size, "(width, height), two ints > 0")
