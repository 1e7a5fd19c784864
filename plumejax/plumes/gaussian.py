"""plumes/gaussian: a static isotropic Gaussian around one source."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.base.errors import require
from plumejax.plumes.geometry import in_box, squared_distance
from plumejax.plumes.interface import Air


class GaussianParams(struct.PyTreeNode):
    """Numbers of a `GaussianPlume`.

    Attributes:
      sigma: float32[], width in cells, >= 1e-6.
      source: float32[2], x and y in cells.
    """

    sigma: Any
    source: Any


@dataclass(frozen=True)
class GaussianPlume:
    """`C = exp(-(dx^2 + dy^2) / (2 sigma^2))`, 1 at the source, 0 outside the grid, no wind.

    The state is the source, float32[2], so that a start may draw another one.

    Attributes:
      grid_size: width and height in cells.
    """

    grid_size: tuple[int, int] = (128, 128)
    random_start = random_step = False
    unit = "1 at the source"

    def default_params(self) -> GaussianParams:
        centre = np.asarray(self.grid_size) // 2
        return GaussianParams(sigma=np.float32(12.0), source=centre.astype(np.float32))

    def start(self, key: jax.Array, params: GaussianParams) -> jax.Array:
        return jnp.asarray(params.source, jnp.float32)

    def advance(self, key: jax.Array, state: jax.Array, params: GaussianParams) -> jax.Array:
        return state

    def sample(self, state: jax.Array, positions: jax.Array, params: GaussianParams) -> Air:
        squared = squared_distance(positions, state)
        scale = jnp.float32(-0.5) / jnp.square(jnp.asarray(params.sigma, jnp.float32))
        # The region of the cells: half a cell beyond the outer centres, below what is the next.
        width, height = (np.nextafter(np.float32(n - 0.5), np.float32(0)) for n in self.grid_size)
        inside = in_box(positions, (np.float32(-0.5),) * 2, (width, height))
        concentration = jnp.where(inside, jnp.exp(squared * scale), jnp.float32(0.0))
        return Air(concentration=concentration, wind=jnp.zeros_like(positions))

    def sources(self, state: jax.Array, params: GaussianParams) -> jax.Array:
        return state[None]

    def validate(self, params: GaussianParams) -> None:
        """Raise `ValidationError` if a number is not allowed."""
        wide = np.all(np.asarray(params.sigma) >= 1e-6)
        require(wide, "plume.sigma", params.sigma, ">= 1e-6 cells")
        source, size = np.asarray(params.source), np.asarray(self.grid_size)
        inside = np.all((source >= 0) & (source <= size - 1))
        require(inside, "plume.source", params.source, f"inside the grid {self.grid_size}")
