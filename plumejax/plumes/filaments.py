"""plumes/filaments: the puffs of Farrell et al. 2002, and those of plume tracking (Singh 2023).

Both are a Poisson stream of puffs that the wind carries and that grow with age. `FilamentPlume`
has Gaussian puffs in three dimensions, `TrackingPlume` squares in two. Either takes any wind.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.base.errors import require
from plumejax.plumes import noise
from plumejax.plumes import particles as pool
from plumejax.plumes.grids import Grid
from plumejax.plumes.interface import Air
from plumejax.plumes.puffs import (
    PuffParams,
    PuffPlume,
    PuffState,
    euler,
    require_not_negative,
    squared_distance,
)
from plumejax.plumes.wind import require_finite, require_least, require_more


class FilamentParams(PuffParams):
    """Numbers of a `FilamentPlume`: those of `PuffParams`, with lengths in m, and its own.

    Attributes:
      growth: float32[], m^2/s, `radius^2` grows by it, >= 0.
      diffusivity: float32[], m^2/s, of the puffs' own walk in each of three directions, >= 0.
      initial: int32[], puffs at the source at the start, >= 0.
      amount: float32[], of odour in a puff, >= 0.
      height: float32[], m, z of positions that are given as x and y alone.
    """

    growth: Any
    diffusivity: Any
    initial: Any
    amount: Any
    height: Any


@dataclass(frozen=True)
class FilamentPlume(PuffPlume):
    """Gaussian puffs in a wind field (Farrell et al. 2002, Environmental Fluid Mechanics 2: 143).

    `C = sum A / ((8 pi^3)^(1/2) r^3) exp(-d^2 / (2 r^2))`, `r^2 = radius^2 + growth age`. A puff
    moves with the wind where it is and by a walk of variance `2 D dt` in each direction, whatever
    dt: the widely used program multiplies its noise by dt instead, and so has another diffusivity
    with every dt.

    `start` begins with `initial` puffs at the source. Attributes: those of `PuffPlume`.
    """

    dimensions = 3
    unit = "amount a m^3"

    def default_params(self) -> FilamentParams:
        """Those of Farrell et al. 2002 as far as they do not concern the wind."""
        return FilamentParams(
            **self._own_defaults((5.0, 0.0, 0.0)),
            radius=np.sqrt(np.float32(0.001)),
            growth=np.float32(0.001),
            diffusivity=np.float32(0.02),
            rate=np.float32(10.0),
            initial=np.int32(10),
            amount=np.float32(8.3e8),
            low=np.asarray([0.0, -12.5], np.float32),
            high=np.asarray([50.0, 12.5], np.float32),
            height=np.float32(0.0),
            dt=np.float32(0.01),
        )

    def _begin(self, key: jax.Array, params: FilamentParams) -> PuffState:
        begin_key, first_key = jax.random.split(key)
        state = super()._begin(begin_key, params)
        places = self.source_motion.positions(state.sources)
        first = jnp.asarray(params.initial, jnp.int32)
        puffs, _ = pool.release(first_key, state.particles, first, places)
        return state.replace(particles=puffs)

    def _step(self, key: jax.Array, state: PuffState, params: FilamentParams) -> PuffState:
        walk_key, *keys = jax.random.split(key, 5)
        spread = jnp.sqrt(2 * jnp.asarray(params.diffusivity, jnp.float32) * params.dt)
        walk = spread * noise.walk(walk_key, 3, self.capacity)
        return self._carry(keys, state, euler, walk, params.rate, params)

    def sample(self, state: PuffState, positions: jax.Array, params: FilamentParams) -> Air:
        puffs = state.particles
        places = _in_three(positions, params.height)
        width = jnp.square(jnp.asarray(params.radius, jnp.float32)) + params.growth * puffs.age
        scale = np.float32(1 / np.sqrt(8 * np.pi**3)) * params.amount
        # float32 holds no number as large as the cube of a large one's root; in this order it does.
        peak = jnp.where(puffs.alive, scale / (width * jnp.sqrt(width)), 0.0)
        squared = squared_distance(places, puffs.position)
        parts = peak[None] * jnp.exp(squared * (np.float32(-0.5) / width)[None])
        return Air(jnp.sum(parts, axis=1), self._felt_wind(state, places, positions, params))

    def paint(
        self, places: np.ndarray, age: np.ndarray, grid: Grid, params: FilamentParams
    ) -> np.ndarray:
        """float32[H, W], on the host: what `sample` gives at the centres of the cells, of puffs at
        float[3, n]. A Gaussian is a product of one along each axis, so the sum over puffs is one
        of matrices; puffs are left out that are farther from the grid than 6 of their radii."""
        variance = float(params.radius) ** 2 + float(params.growth) * age.astype(float)
        reach, near = 6 * np.sqrt(variance), np.ones(len(age), bool)
        for place, low, gap, n in zip(places, grid.origin, grid.spacing, grid.size, strict=False):
            near &= (place > low - reach) & (place < low + gap * (n - 1) + reach)
        places, variance = places[:, near], variance[near]
        aloft = np.exp(-((places[2] - params.height) ** 2) / (2 * variance))
        peak = float(params.amount) / np.sqrt(8 * np.pi**3) / variance**1.5 * aloft
        along, across = (
            np.exp(
                -np.square((low + gap * np.arange(n) - place[:, None]).astype(np.float32))
                / np.float32(2 * variance[:, None])
            )
            for place, low, gap, n in zip(
                places, grid.origin, grid.spacing, grid.size, strict=False
            )
        )
        return (across * np.float32(peak[:, None])).T @ along

    def validate(self, params: FilamentParams) -> None:
        """Raise `ValidationError` if a number is not allowed."""
        super().validate(params)
        for name in ("growth", "diffusivity", "amount"):
            require_not_negative(name, getattr(params, name))
        initial = np.asarray(params.initial)
        good = np.all((initial >= 0) & (initial <= self.capacity))
        require(good, "plume.initial", params.initial, f"in 0..{self.capacity}, the capacity")


class TrackingParams(PuffParams):
    """Numbers of a `TrackingPlume`: those of `PuffParams`, with lengths in m, and its own.

    Attributes:
      growth: float32[], m/s, the radius grows by it, >= 0.
      diffusivity: float32[], m^2/s, of the puffs' own walk in y, >= 0.
      keep: float32[], fraction of the puffs that is born at all, in [0, 1].
    """

    growth: Any
    diffusivity: Any
    keep: Any


@dataclass(frozen=True)
class TrackingPlume(PuffPlume):
    """Square puffs in a wind that is the same everywhere (Singh, van Breugel, Rao, Brunton 2023,
    Nature Machine Intelligence 5: 58).

    `c = (radius / r)^3` of every puff with `|dx| < r` and `|dy| < r`, summed; `r = radius + growth
    age`; births are placed after the move.

    Attributes: those of `PuffPlume`; the published task keeps every fourth step.
    """

    capacity: int = 2500
    substeps: int = 4
    unit = "1 in a newborn puff"

    def default_params(self) -> TrackingParams:
        return TrackingParams(
            **self._own_defaults((0.0, 0.0)),
            radius=np.float32(0.01),
            growth=np.float32(0.01),
            diffusivity=np.float32(0.00125),
            rate=np.float32(100.0),
            keep=np.float32(1.0),
            low=np.asarray([-2.0, -10.0], np.float32),
            high=np.asarray([10.0, 10.0], np.float32),
            dt=np.float32(0.01),
        )

    def _step(self, key: jax.Array, state: PuffState, params: TrackingParams) -> PuffState:
        walk_key, *keys = jax.random.split(key, 5)
        spread = jnp.sqrt(2 * jnp.asarray(params.diffusivity, jnp.float32) * params.dt)
        across = spread * noise.walk(walk_key, 1, self.capacity)
        walk = jnp.concatenate([jnp.zeros_like(across), across])
        rate = jnp.asarray(params.rate, jnp.float32) * params.keep
        return self._carry(keys, state, euler, walk, rate, params)

    def sample(self, state: PuffState, positions: jax.Array, params: TrackingParams) -> Air:
        puffs = state.particles
        places = positions.T
        radius = jnp.asarray(params.radius, jnp.float32) + params.growth * puffs.age
        strength = jnp.where(puffs.alive, (params.radius / radius) ** 3, 0.0)
        inside = jnp.ones((), bool)
        for place, centre in zip(places, puffs.position, strict=True):
            inside = inside & (jnp.abs(place[:, None] - centre[None]) < radius[None])
        concentration = jnp.sum(jnp.where(inside, strength[None], 0.0), axis=1)
        return Air(concentration, self._felt_wind(state, places, positions, params))

    def paint(
        self, places: np.ndarray, age: np.ndarray, grid: Grid, params: TrackingParams
    ) -> np.ndarray:
        """float64[H, W], on the host: what `sample` gives at the centres of the cells, of puffs at
        float[2, n], but for what is rounded off. Four numbers a square, and two running sums."""
        radius = params.radius + params.growth * age.astype(float)
        strength = (params.radius / radius) ** 3
        field = np.zeros(grid.size[::-1])
        if not len(age):
            return field
        ends, first_cell = [], []
        for place, low, gap, n in zip(places, grid.origin, grid.spacing, grid.size, strict=True):
            first = np.floor((place - radius - low) / gap) + 1  # the centres strictly inside
            end = np.ceil((place + radius - low) / gap)
            cells = np.clip([first, end], 0, n).astype(int)
            first_cell.append(int(cells.min()))
            ends.append(cells - cells.min())
        (left, right), (below, above) = ends
        columns, rows = int(right.max()) + 1, int(above.max()) + 1
        corners = ((below, left, 1), (below, right, -1), (above, left, -1), (above, right, 1))
        at = np.concatenate([y * columns + x for y, x, _ in corners])
        steps = np.concatenate([sign * strength for _, _, sign in corners])
        jumps = np.bincount(at, steps, rows * columns).reshape(rows, columns)
        sums = jumps.cumsum(0).cumsum(1)[:-1, :-1]
        x, y = first_cell
        field[y : y + rows - 1, x : x + columns - 1] = np.where(sums > 1e-9, sums, 0.0)
        return field

    def validate(self, params: TrackingParams) -> None:
        """Raise `ValidationError` if a number is not allowed."""
        super().validate(params)
        for name in ("growth", "diffusivity"):
            require_not_negative(name, getattr(params, name))
        keep = np.asarray(params.keep)
        require(np.all((keep >= 0) & (keep <= 1)), "plume.keep", params.keep, "in [0, 1]")


def _in_three(positions: jax.Array, height: Any) -> jax.Array:
    """float32[3, n] of float32[n, 2], which lie at `height`, or float32[n, 3]."""
    if positions.shape[1] == 3:
        return positions.T
    z = jnp.full((1, len(positions)), height, positions.dtype)
    return jnp.concatenate([positions.T, z])


class FarrellWindParams(struct.PyTreeNode):
    """Numbers of a `FarrellWind`.

    Attributes:
      velocity: float32[2], m/s, the mean.
      diffusivity: float32[2], m^2/s, k_x and k_y, > 0.
      gain: float32[], m/s, G of the noise at the corners, >= 0; its stationary variance is
        `G^2 w / (4 z)`.
      damping: float32[], z of the noise, in (0, 1).
      bandwidth: float32[], 1/s, w of the noise, > 0.
      low, high: float32[2], m, the region.
    """

    velocity: Any
    diffusivity: Any
    gain: Any
    damping: Any
    bandwidth: Any
    low: Any
    high: Any


class FarrellWindState(struct.PyTreeNode):
    """The state of a `FarrellWind`.

    Attributes:
      field: float32[2, ny, nx], m/s, both components on the grid, indexed [y, x].
      noise: float32[2, 4], m/s, of both components at the corners (x low y low, x high y low, x
        low y high, x high y high).
      slope: float32[2, 4], m/s^2, how fast the noise changes.
    """

    field: jax.Array
    noise: jax.Array
    slope: jax.Array


@dataclass(frozen=True)
class FarrellWind:
    """A wind field carried by itself and diffused, driven by noise at its corners (Farrell 2002).

    `du/dt = -(u du/dx + v du/dy) + kx/2 d2u/dx2 + ky/2 d2u/dy2`, the same for v, by explicit Euler
    steps and centred differences; there is no pressure, so it is not free of divergence. A ring of
    ghost cells holds what is at the boundary: the mean plus the noise at each corner, linear along
    each edge. The noise is a damped oscillator under white noise; its step splits the oscillation
    from the damping (BAOAB, Leimkuhler and Matthews 2013), which keeps its stationary variance
    exact for every dt. Outside the region the wind is that at the nearest place inside.

    Attributes:
      shape: nodes of the grid in x and y.
      spin_up: coarse steps that `start` makes, so that the field has forgotten how it began.
    """

    shape: tuple[int, int] = (21, 21)
    spin_up: int = 800
    random_start = random_step = True

    def default_params(self) -> FarrellWindParams:
        return FarrellWindParams(
            velocity=np.asarray([1.0, 0.0], np.float32),
            diffusivity=np.asarray([10.0, 10.0], np.float32),
            gain=np.float32(2.0),
            damping=np.float32(0.1),
            bandwidth=np.float32(0.2),
            low=np.asarray([0.0, -50.0], np.float32),
            high=np.asarray([100.0, 50.0], np.float32),
        )

    def start(self, key: jax.Array, params: FarrellWindParams) -> FarrellWindState:
        """Noise from its stationary law, and a field that it has driven for `spin_up` steps.

        A spin-up step is the largest that is stable, 0.13 s with the default numbers: 105 s in all,
        in which the mean wind crosses the region once.
        """
        first, second, rest = jax.random.split(key, 3)
        spread, slope_spread = self._stationary(params)
        noise = spread * jax.random.normal(first, (2, 4), jnp.float32)
        slope = slope_spread * jax.random.normal(second, (2, 4), jnp.float32)
        field = self._ring(noise, params)[:, 1:-1, 1:-1]
        state = FarrellWindState(field, noise, slope)
        if not self.spin_up:
            return state
        dt = self._largest_step(params)
        return pool.repeat(
            lambda key, state: self.advance(key, state, dt, params), rest, state, self.spin_up
        )

    def advance(
        self, key: jax.Array, state: FarrellWindState, dt: Any, params: FarrellWindParams
    ) -> FarrellWindState:
        dt = jnp.asarray(dt, jnp.float32)
        padded = self._ring(state.noise, params).at[:, 1:-1, 1:-1].set(state.field)
        u, v = state.field
        dx, dy = self._spacing(params)
        kx, ky = jnp.asarray(params.diffusivity, jnp.float32)
        left, right = padded[:, 1:-1, :-2], padded[:, 1:-1, 2:]
        below, above = padded[:, :-2, 1:-1], padded[:, 2:, 1:-1]
        carried = u[None] * (right - left) / (2 * dx) + v[None] * (above - below) / (2 * dy)
        spread = kx * (right + left - 2 * state.field) / (2 * jnp.square(dx))
        spread += ky * (above + below - 2 * state.field) / (2 * jnp.square(dy))
        # Without pressure the air cannot blow harder than it does at some time at the boundary. The
        # centred differences forget that in a strong gust: on 11 x 11 nodes one wind of 512 ran
        # away within three minutes.
        most = 6 * self._stationary(params)[0]
        rest = self.mean(params)[:, None, None]
        field = state.field + dt * (spread - carried)
        field = rest + jnp.clip(field - rest, -most, most)
        return FarrellWindState(field, *self._advance_noise(key, state, dt, params))

    def at(
        self, state: FarrellWindState, positions: jax.Array, params: FarrellWindParams
    ) -> jax.Array:
        nx, ny = self.shape
        low = jnp.asarray(params.low, jnp.float32)
        x, y = (
            jnp.clip((positions[i] - low[i]) / spacing, 0.0, nodes - 1.0)
            for i, (spacing, nodes) in enumerate(
                zip(self._spacing(params), self.shape, strict=True)
            )
        )
        column = jnp.minimum(jnp.floor(x), nx - 2.0)
        row = jnp.minimum(jnp.floor(y), ny - 2.0)
        across, up = (x - column)[None], (y - row)[None]
        corner = (row * nx + column).astype(jnp.int32)

        # Bilinear in a cell is four numbers of it. The cells' numbers lie side by side, so that one
        # place is one read: to gather the corners' winds one by one takes twice as long.
        grid = state.field.reshape(2, -1)
        a, b, c, d = (jnp.roll(grid, -step, axis=1) for step in (0, 1, nx, nx + 1))
        cells = jnp.concatenate([a, b - a, c - a, d - c - b + a]).T
        # The clips above promise the bounds; a gather that checks them takes twice as long again.
        numbers = cells.at[corner].get(mode="promise_in_bounds").T
        level, by_x, by_y, by_both = numbers.reshape(4, 2, -1)
        return level + across * by_x + up * (by_y + across * by_both)

    def mean(self, params: FarrellWindParams) -> jax.Array:
        return jnp.asarray(params.velocity, jnp.float32)

    def largest_step(self, params: FarrellWindParams) -> float:
        """Seconds: above this the explicit step may blow up, at the strongest wind to be expected.

        Diffusion wants `dt (kx / dx^2 + ky / dy^2) <= 1`, centred differences `dt |u|^2 <= k`; the
        strongest wind is taken as the mean and four standard deviations of the noise.
        """
        return float(np.min(np.asarray(self._largest_step(params))))

    def validate(self, params: FarrellWindParams) -> None:
        """Raise `ValidationError` if a number is not allowed."""
        require(min(self.shape) >= 2, "wind.shape", self.shape, "at least 2 x 2")
        require(self.spin_up >= 0, "wind.spin_up", self.spin_up, ">= 0")
        require_finite("velocity", params.velocity)
        require_more("diffusivity", params.diffusivity, 0.0)
        require_least("gain", params.gain, 0.0)
        require_more("bandwidth", params.bandwidth, 0.0)
        damping = np.asarray(params.damping)
        good = np.all((damping > 0) & (damping < 1))
        require(good, "plume.wind.damping", params.damping, "in (0, 1)")
        low, high = np.asarray(params.low), np.asarray(params.high)
        allowed = f"below plume.wind.high, {high.tolist()}"
        require(np.all(low < high), "plume.wind.low", params.low, allowed)

    def _largest_step(self, params: FarrellWindParams) -> jax.Array:
        dx, dy = self._spacing(params)
        kx, ky = jnp.asarray(params.diffusivity, jnp.float32)
        strongest = jnp.abs(self.mean(params)) + 4 * self._stationary(params)[0]
        diffusive = 1 / (kx / jnp.square(dx) + ky / jnp.square(dy))
        advective = jnp.minimum(kx, ky) / jnp.sum(jnp.square(strongest))
        return jnp.minimum(diffusive, advective)

    def _spacing(self, params: FarrellWindParams) -> jax.Array:
        extent = jnp.asarray(params.high, jnp.float32) - jnp.asarray(params.low, jnp.float32)
        return extent / (np.asarray(self.shape, np.float32) - 1)

    def _stationary(self, params: FarrellWindParams) -> tuple[jax.Array, jax.Array]:
        """Stationary standard deviations of the noise and of its slope."""
        bandwidth = jnp.asarray(params.bandwidth, jnp.float32)
        spread = params.gain * jnp.sqrt(bandwidth / (4 * jnp.asarray(params.damping, jnp.float32)))
        return spread, spread * bandwidth

    def _advance_noise(
        self, key: jax.Array, state: FarrellWindState, dt: jax.Array, params: FarrellWindParams
    ) -> tuple[jax.Array, jax.Array]:
        bandwidth = jnp.asarray(params.bandwidth, jnp.float32)
        _, spread = self._stationary(params)
        kick = -jnp.square(bandwidth) * dt / 2
        keep = jnp.exp(-2 * params.damping * bandwidth * dt)
        slope = state.slope + kick * state.noise
        noise = state.noise + slope * dt / 2
        fresh = jax.random.normal(key, slope.shape, jnp.float32)
        slope = keep * slope + spread * jnp.sqrt(1 - jnp.square(keep)) * fresh
        noise = noise + slope * dt / 2
        return noise, slope + kick * noise

    def _ring(self, noise: jax.Array, params: FarrellWindParams) -> jax.Array:
        """float32[2, ny + 2, nx + 2]: bilinear between the corners; its rim are the ghost cells."""
        nx, ny = self.shape
        corners = (self.mean(params)[:, None] + noise).reshape(2, 2, 2)  # component, y, x
        rise = (np.linspace(0, 1, n + 2, dtype=np.float32) for n in (nx, ny))
        x, y = (np.stack([1 - up, up]) for up in rise)
        return jnp.einsum("cab,ay,bx->cyx", corners, y, x)
