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
      grid_size: width and height in cells; positions are 0..width-1 and 0..height-1.
    """

    grid_size: tuple[int, int] = (128, 128)

    def default_params(self) -> OpenGridParams:
        return OpenGridParams()

    def inside(self, positions: jax.Array, params: Params) -> jax.Array:
        return in_box(positions, (np.float32(0.0),) * 2, self._last())

    def blocked(self, origin: jax.Array, target: jax.Array, params: Params) -> jax.Array:
        return ~self.inside(target[None], params)[0]

    def settle(self, origin: jax.Array, target: jax.Array, params: Params) -> jax.Array:
        return jnp.clip(target, jnp.zeros_like(target), self._last())

    def _last(self) -> np.ndarray:
        return np.asarray(self.grid_size, np.float32) - np.float32(1.0)

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` if the grid is empty."""
        _require_size(self.grid_size)


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


def _require_size(grid_size: Any) -> None:
    good = len(grid_size) == 2 and all(isinstance(n, int) and n > 0 for n in grid_size)
    require(good, "grid_size", grid_size, "(width, height), two ints > 0")
