"""plumes/gaussian: closed forms: Gaussians around their sources, and a steady plume in wind."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.base.errors import require
from plumejax.plumes.bessel import scaled_k0
from plumejax.plumes.geometry import in_box, squared_distance
from plumejax.plumes.interface import Air
from plumejax.plumes.sources import Still, default_source, require_sources


class _Steady:
    """What the plumes of this module share: a state that is their sources', and nothing else.

    They know no seconds: for moving sources one step is one second.
    """

    num_sources: int
    source_motion: Any

    @property
    def random_start(self) -> bool:
        return self.source_motion.random_start

    @property
    def random_step(self) -> bool:
        return self.source_motion.random_step

    def start(self, key: jax.Array, params: Any) -> Any:
        return self.source_motion.start(key, params.source, params.source_motion)

    def advance(self, key: jax.Array, state: Any, params: Any) -> Any:
        return self.source_motion.advance(key, state, np.float32(1.0), params.source_motion)

    def sources(self, state: Any, params: Any) -> jax.Array:
        return self.source_motion.positions(state)


class GaussianParams(struct.PyTreeNode):
    """Numbers of a `GaussianPlume`.

    Attributes:
      sigma: float32[], width in cells, >= 1e-6.
      source: float32[2], or float32[S, 2] of several, x and y in cells.
      source_motion: those of the sources' motion.
    """

    sigma: Any
    source: Any
    source_motion: Any = ()


@dataclass(frozen=True)
class GaussianPlume(_Steady):
    """`C = exp(-(dx^2 + dy^2) / (2 sigma^2))`, 1 at the source, 0 outside the grid, no wind.

    With sources that stay the state is where they are, so that a start may draw another place.

    Attributes:
      grid_size: width and height in cells.
      num_sources: how many sources; what they give adds up.
      source_motion: how they move.
    """

    grid_size: tuple[int, int] = (128, 128)
    num_sources: int = 1
    source_motion: Any = Still()
    unit = "1 at the source"

    def default_params(self) -> GaussianParams:
        return GaussianParams(
            sigma=np.float32(12.0),
            source=_middle(self.grid_size, self.num_sources),
            source_motion=self.source_motion.default_params(self.num_sources, 2),
        )

    def sample(self, state: Any, positions: jax.Array, params: GaussianParams) -> Air:
        scale = jnp.float32(-0.5) / jnp.square(jnp.asarray(params.sigma, jnp.float32))
        parts = [
            jnp.exp(squared_distance(positions, source) * scale)
            for source in self.source_motion.positions(state)
        ]
        return _on_grid(self.grid_size, positions, parts)

    def validate(self, params: GaussianParams) -> None:
        """Raise `ValidationError` if a number is not allowed."""
        wide = np.all(np.asarray(params.sigma) >= 1e-6)
        require(wide, "plume.sigma", params.sigma, ">= 1e-6 cells")
        _require_on_grid(self, params)


class AnisotropicGaussianParams(struct.PyTreeNode):
    """Numbers of an `AnisotropicGaussianPlume`.

    Attributes:
      sigma: float32[2], widths along and across the long axis, cells, >= 1e-6.
      angle: float32[], degrees counter-clockwise from +x to the axis of the first width.
      source: float32[2], or float32[S, 2] of several, x and y in cells.
      source_motion: those of the sources' motion.
    """

    sigma: Any
    angle: Any
    source: Any
    source_motion: Any = ()


@dataclass(frozen=True)
class AnisotropicGaussianPlume(_Steady):
    """A Gaussian of two widths, turned by an angle; 1 at the source, 0 outside the grid, no wind.

    Attributes:
      grid_size: width and height in cells.
      num_sources: how many sources; what they give adds up.
      source_motion: how they move.
    """

    grid_size: tuple[int, int] = (128, 128)
    num_sources: int = 1
    source_motion: Any = Still()
    unit = "1 at the source"

    def default_params(self) -> AnisotropicGaussianParams:
        return AnisotropicGaussianParams(
            sigma=np.asarray([24.0, 6.0], np.float32),
            angle=np.float32(0.0),
            source=_middle(self.grid_size, self.num_sources),
            source_motion=self.source_motion.default_params(self.num_sources, 2),
        )

    def sample(self, state: Any, positions: jax.Array, params: AnisotropicGaussianParams) -> Air:
        angle = jnp.deg2rad(jnp.asarray(params.angle, jnp.float32))
        cos, sin = jnp.cos(angle), jnp.sin(angle)
        long, short = jnp.asarray(params.sigma, jnp.float32)
        parts = []
        for source in self.source_motion.positions(state):
            dx, dy = positions[..., 0] - source[0], positions[..., 1] - source[1]
            along, across = (cos * dx + sin * dy) / long, (cos * dy - sin * dx) / short
            parts.append(jnp.exp(-(jnp.square(along) + jnp.square(across)) / 2))
        return _on_grid(self.grid_size, positions, parts)

    def validate(self, params: AnisotropicGaussianParams) -> None:
        """Raise `ValidationError` if a number is not allowed."""
        wide = np.all(np.asarray(params.sigma) >= 1e-6)
        require(wide, "plume.sigma", params.sigma, ">= 1e-6 cells")
        _require_on_grid(self, params)


class WindGaussianParams(struct.PyTreeNode):
    """Numbers of a `WindGaussianPlume`; lengths in m.

    Attributes:
      velocity: float32[2], m/s, of the wind.
      diffusivity: float32[], m^2/s, along x and y, > 0.
      vertical: float32[], m^2/s, the diffusivity along z, > 0; of no use in two dimensions.
      decay: float32[], 1/s, at which odour is lost, >= 0; in two dimensions either this or the wind
        has to be > 0, or there is no steady plume.
      rate: float32[], amount a second and source, >= 0.
      radius: float32[], m, > 0: nearer to a source it smells as at this distance.
      reflection: float32[], of the ground at z = 0: 1 gives all odour back, 0 none.
      source: float32[d], or float32[S, d] of several; z is the height above the ground.
      source_motion: those of the sources' motion.
      height: float32[], m, z of positions that are given as x and y alone.
    """

    velocity: Any
    diffusivity: Any
    vertical: Any
    decay: Any
    rate: Any
    radius: Any
    reflection: Any
    source: Any
    source_motion: Any
    height: Any


@dataclass(frozen=True)
class WindGaussianPlume(_Steady):
    """The time-averaged plume of point sources in a steady wind: advection, diffusion, decay.

    The solution of `u grad C = D (C_xx + C_yy) + D_z C_zz - decay C + rate delta(x - source)`
    itself, not the slender plume that is often made of it, so upwind and without wind it is right
    too. With `k = sqrt(u^2 / (4 D^2) + decay / D)`, and r measured with z times `sqrt(D / D_z)`:

    in three dimensions `C = rate / (4 pi sqrt(D D_z) r) exp(u x / (2 D) - k r)`, and the same from
    the source's image under the ground; in two `C = rate / (2 pi D) exp(u x / (2 D)) K_0(k r)`.

    (Roberts 1923; Carslaw and Jaeger 1959, section 10.7.)

    Attributes:
      dimensions: 3 or 2.
      num_sources: how many sources; what they give adds up.
      source_motion: how they move.
    """

    dimensions: int = 3
    num_sources: int = 1
    source_motion: Any = Still()

    @property
    def unit(self) -> str:
        return f"amount a m^{self.dimensions}"

    def default_params(self) -> WindGaussianParams:
        place = (0.0, 0.0, 1.0)[: self.dimensions]
        return WindGaussianParams(
            velocity=np.asarray([0.5, 0.0], np.float32),
            diffusivity=np.float32(0.05),
            vertical=np.float32(0.05),
            decay=np.float32(0.0),
            rate=np.float32(1.0),
            radius=np.float32(0.05),
            reflection=np.float32(1.0),
            source=default_source(self.num_sources, place),
            source_motion=self.source_motion.default_params(self.num_sources, self.dimensions),
            height=np.float32(1.0),
        )

    def sample(self, state: Any, positions: jax.Array, params: WindGaussianParams) -> Air:
        one = self._flat if self.dimensions == 2 else self._deep
        parts = [one(positions, source, params) for source in self.source_motion.positions(state)]
        velocity = jnp.asarray(params.velocity, jnp.float32)
        wind = jnp.zeros_like(positions).at[:, :2].set(velocity[None])
        return Air(concentration=sum(parts[1:], parts[0]), wind=wind)

    def validate(self, params: WindGaussianParams) -> None:
        """Raise `ValidationError` if a number is not allowed."""
        require(self.dimensions in (2, 3), "dimensions", self.dimensions, "2 or 3")
        for name in ("diffusivity", "vertical", "radius"):
            value = np.asarray(getattr(params, name))
            require(np.all(value > 0), f"plume.{name}", value, "> 0")
        for name in ("decay", "rate"):
            value = np.asarray(getattr(params, name))
            require(np.all(value >= 0), f"plume.{name}", value, ">= 0")
        reflection = np.asarray(params.reflection)
        good = np.all((reflection >= 0) & (reflection <= 1))
        require(good, "plume.reflection", params.reflection, "in [0, 1]")
        require_sources(self, params, self.dimensions)
        if self.dimensions == 3:
            high = np.all(np.asarray(params.source)[..., 2] >= 0)
            require(high, "plume.source", params.source, "not below the ground, z >= 0")
        else:
            moves = np.any(np.asarray(params.velocity) != 0, axis=-1)
            steady = np.all(moves | (np.asarray(params.decay) > 0))
            require(steady, "plume.decay", params.decay, "> 0 in two dimensions without wind")

    def _flat(self, positions: jax.Array, source: jax.Array, params: WindGaussianParams) -> Any:
        r, power, k = _upstream(positions, source, jnp.zeros((), jnp.float32), params)
        scale = params.rate / (2 * np.pi * jnp.asarray(params.diffusivity, jnp.float32))
        return scale * jnp.exp(power) * scaled_k0(k * r)

    def _deep(self, positions: jax.Array, source: jax.Array, params: WindGaussianParams) -> Any:
        level = jnp.asarray(params.diffusivity, jnp.float32)
        stretch = jnp.sqrt(level / params.vertical)
        scale = params.rate / (4 * np.pi * jnp.sqrt(level * params.vertical))
        # A position of two coordinates lies at the height.
        z = positions[:, 2] if positions.shape[1] == 3 else jnp.asarray(params.height, jnp.float32)
        total = jnp.zeros((), jnp.float32)
        for below, weight in ((1.0, jnp.float32(1.0)), (-1.0, params.reflection)):
            r, power, _ = _upstream(positions, source, stretch * (z - below * source[2]), params)
            total = total + weight * scale / r * jnp.exp(power)
        return total


def _upstream(
    positions: jax.Array, source: jax.Array, z: jax.Array, params: WindGaussianParams
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """`(r, power, k)`, float32[n], float32[n], float32[]: `power = u x / (2 D) - k r`, <= 0.

    Downwind that is the difference of two large numbers, so it is not taken as one.
    """
    u, v = jnp.asarray(params.velocity, jnp.float32)
    diffusivity = jnp.asarray(params.diffusivity, jnp.float32)
    x, y = positions[:, 0] - source[0], positions[:, 1] - source[1]
    flat_square = jnp.square(x) + jnp.square(y)
    radius_square = jnp.square(jnp.asarray(params.radius, jnp.float32))
    # The floor of r is taken here, so that a small z is not lost in the rounding of a large r.
    z_square = jnp.maximum(jnp.square(z), radius_square - flat_square)
    r = jnp.sqrt(flat_square + z_square)
    # The floor keeps the root's infinite slope out of the gradient in still air.
    speed = jnp.sqrt(jnp.maximum(jnp.square(u) + jnp.square(v), 1e-30))
    downwind = u / speed * x + v / speed * y
    aside_square = jnp.square(u / speed * y - v / speed * x) + z_square
    behind = jnp.where(downwind > 0, aside_square / (r + jnp.abs(downwind)), r - downwind)
    half = speed / (2 * diffusivity)
    k = jnp.sqrt(jnp.square(half) + params.decay / diffusivity)
    lost = params.decay / diffusivity / (k + half)
    return r, -half * behind - lost * r, k


def _middle(grid_size: tuple[int, int], num_sources: int) -> np.ndarray:
    width, height = grid_size
    return default_source(num_sources, (width // 2, height // 2))


def _on_grid(grid_size: tuple[int, int], positions: jax.Array, parts: list[jax.Array]) -> Air:
    """What several sources give together, 0 outside the grid, in still air."""
    # The region of the cells: half a cell beyond the outer centres, below what is the next.
    width, height = (np.nextafter(np.float32(n - 0.5), np.float32(0)) for n in grid_size)
    inside = in_box(positions, (np.float32(-0.5),) * 2, (width, height))
    concentration = jnp.where(inside, sum(parts[1:], parts[0]), jnp.float32(0.0))
    return Air(concentration=concentration, wind=jnp.zeros_like(positions))


def _require_on_grid(plume: Any, params: Any) -> None:
    require_sources(plume, params, 2)
    source, size = np.asarray(params.source), np.asarray(plume.grid_size)
    inside = np.all((source >= 0) & (source <= size - 1))
    require(inside, "plume.source", params.source, f"inside the grid {plume.grid_size}")
