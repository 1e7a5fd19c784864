"""plumes/turbulence: gas in two-dimensional turbulence, computed as it is sampled.

`TurbulentPlume` is the plume; `observe` records budgets beside the air, `report` sums up what a
plume is like.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.base.errors import require
from plumejax.plumes import particles as pool
from plumejax.plumes import rolling, statistics
from plumejax.plumes.geometry import in_box
from plumejax.plumes.interface import Air
from plumejax.plumes.sources import Still, default_source, require_sources
from plumejax.plumes.wind import (
    Constant,
    Meander,
    OrnsteinUhlenbeck,
    RecordedWind,
    SwitchMany,
    SwitchOnce,
)

UNIFORM = (Constant, SwitchOnce, SwitchMany, OrnsteinUhlenbeck, Meander, RecordedWind)
"""Winds that are the same everywhere: only they carry eddies on as they are."""

FASTEST = 8.0
"""`|u| + |v|` of the eddies stays below so many u'; in 5000 steps of the default it came to 7.0."""

RESOLVED = 1.0
"""The least `k_max l_d`: the highest wave number of the grid times the length where eddies end."""

CLEAN = 5.0
"""A fringe lets at most e^-5 of the gas come round into the box again."""


class TurbulentParams(struct.PyTreeNode):
    """Numbers of a `TurbulentPlume`. The box goes from (0, 0) to (length, length H / W).

    Attributes:
      length: float32[], of the box along x, > 0.
      wind: those of the wind, which carries eddies and gas.
      viscosity: float32[], nu, lengths^2 a second, > 0.
      diffusivity: float32[], kappa, of the gas, lengths^2 a second, >= 0.
      forcing: float32[], energy that eddies are fed, lengths^2 a second^3, >= 0.
      drag: float32[], 1/s, that slows eddies of all sizes, >= 0.
      source: float32[2], or float32[S, 2] of several, in lengths, within the fringe.
      source_motion: those of the sources' motion.
      radius: float32[], standard deviation of the Gaussian that a source is, at least one cell.
      emission: float32[], 1/s, at which the air in the middle of a source is filled, >= 0.
      fringe_width: float32[], lengths, of the band along all edges where gas is absorbed, > 0.
      fringe_strength: float32[], 1/s, of the absorption at the edge; it falls as a square to 0.
      dt: float32[], s, one step of the model, > 0.
    """

    length: Any
    wind: Any
    viscosity: Any
    diffusivity: Any
    forcing: Any
    drag: Any
    source: Any
    source_motion: Any
    radius: Any
    emission: Any
    fringe_width: Any
    fringe_strength: Any
    dt: Any


class TurbulentState(struct.PyTreeNode):
    """Eddies and gas on a periodic grid that drifts through the box with the wind.

    Attributes:
      vorticity: float32[2, H, W // 2 + 1], 1/s, real and imaginary parts of its Fourier
        coefficients; those of the mean, and beyond 2/3 of the highest wave, are 0.
      stream: float32[H, W], its stream function at the lower left corners of the cells: the
        differences are the flow through the sides of the cells.
      concentration: float32[H, W], means over the cells.
      drift: float32[2], where the grid's corner is in the box.
      wind: state of the wind.
      sources: state of the sources.
    """

    vorticity: jax.Array
    stream: jax.Array
    concentration: jax.Array
    drift: jax.Array
    wind: Any
    sources: Any


class Budget(NamedTuple):
    """What one step of dt moved, float32[] each.

    Attributes:
      energy: `<u^2 + v^2> / 2` of the eddies after it, lengths^2 a second^2.
      injected, dissipated, dragged: by forcing, viscosity and drag, in the unit of energy.
      mass: integral of the concentration after it, lengths^2.
      emitted, absorbed: by sources and fringe, in the unit of mass.
    """

    energy: jax.Array
    injected: jax.Array
    dissipated: jax.Array
    dragged: jax.Array
    mass: jax.Array
    emitted: jax.Array
    absorbed: jax.Array


@dataclass(frozen=True)
class TurbulentPlume:
    """Gas from a source in a flow that obeys `dw/dt + u . grad w = nu lap w - drag w + forcing`.

    Two-dimensional turbulence is not a boundary layer: it has no ground, no shear and no
    logarithmic profile, and its energy goes to larger eddies instead of smaller ones. What it
    shares with an outdoor plume are meanders, filaments and the clean air between them.

    The flow: Fourier series in a periodic box, Heun's third-order steps with viscosity and drag
    exact, products free of aliases (2/3 rule). The forcing is white in time, on the waves within
    1/2 of k_f. The wind is the same everywhere and carries the whole grid, so that neither the
    accuracy nor the largest dt depends on it.

    The gas: `dC/dt + (U + u) . grad C = kappa lap C + emission G (1 - C) - absorption C`, by
    `transport`, which conserves it and makes no new extremes: 0 <= C <= 1. G is the sum of the
    sources' Gaussians, 1 in the middle of one. Absorption acts in the fringe, before gas that has
    left the box on one side enters it on the other.

    Measured on the default in 12 crossings of the box (`report`): u' / U = 0.26, Re_f = 670, Sc =
    1; on the axis gas is above 2 % of the highest for 0.6 to 0.87 of the time, with a coefficient
    of variation of 1.1 to 1.3 but for 0.8 beside the source; at the edge of the plume 0.04 to 0.12
    and 3.1 to 6.3. The limited slopes mix too: variance of the gas is lost as if kappa were twice
    what it is, 1.3 times on 256 x 512 cells. So the thinnest filaments are those of the grid.

    Attributes:
      shape: H and W, cells along y and x, even.
      forcing_wavenumber: k_f, in waves along y; an eddy of the forcing, l_f, is H / k_f cells.
      wind: any that is the same everywhere.
      num_sources: how many sources.
      source_motion: how they move.
      substeps: steps of dt in one `advance`.
      warmup: how often `start` advances random eddies without gas.
    """

    shape: tuple[int, int] = (128, 256)
    forcing_wavenumber: int = 4
    wind: Any = Constant()
    num_sources: int = 1
    source_motion: Any = Still()
    substeps: int = 1
    warmup: int = 1600
    random_start = random_step = True
    unit = "1 undiluted"

    def default_params(self) -> TurbulentParams:
        """A box of height 2 pi, which a wind of 1 crosses in 12.6 s at H = 128, W = 256.

        With fewer cells viscosity, diffusivity and radius are as much larger as these need.
        """
        height, width = self.shape
        wider = max(128 / height, 1.0)
        wind = self.wind.default_params()
        if isinstance(self.wind, Constant):
            wind = wind.replace(velocity=np.asarray([1.0, 0.0], np.float32))
        return TurbulentParams(
            length=np.float32(2 * np.pi * width / height),
            wind=wind,
            viscosity=np.float32(6e-4 * wider**2),
            diffusivity=np.float32(6e-4 * wider**2),
            forcing=np.float32(0.0142),
            drag=np.float32(0.1),
            source=default_source(self.num_sources, (1.6, np.pi)),
            source_motion=self.source_motion.default_params(self.num_sources, 2),
            radius=np.float32(0.1 * wider),
            emission=np.float32(10.0),
            fringe_width=np.float32(0.8),
            fringe_strength=np.float32(20.0),
            dt=np.float32(1.28 / height),
        )

    def start(self, key: jax.Array, params: TurbulentParams) -> TurbulentState:
        eddies_key, wind_key, source_key, warmup_key = jax.random.split(key, 4)
        vorticity = self._random_eddies(eddies_key, params)
        state = TurbulentState(
            vorticity=vorticity,
            stream=self._stream(vorticity, params),
            concentration=jnp.zeros(self.shape, jnp.float32),
            drift=jnp.zeros(2, jnp.float32),
            wind=self.wind.start(wind_key, params.wind),
            sources=self.source_motion.start(source_key, params.source, params.source_motion),
        )
        if not self.warmup:
            return state
        return pool.repeat(partial(self._advance, params), warmup_key, state, self.warmup)

    def advance(
        self, key: jax.Array, state: TurbulentState, params: TurbulentParams
    ) -> TurbulentState:
        return self._advance(params, key, state)

    def _advance(
        self, params: TurbulentParams, key: jax.Array, state: TurbulentState
    ) -> TurbulentState:
        return pool.repeat(lambda k, s: self.step(k, s, params)[0], key, state, self.substeps)

    def step(
        self, key: jax.Array, state: TurbulentState, params: TurbulentParams
    ) -> tuple[TurbulentState, Budget]:
        """`(state, budget)`: one step of dt, and what it moved."""
        kick_key, wind_key, source_key = jax.random.split(key, 3)
        dt, cell = _float(params.dt), self._cell(params)
        flowed = self._flowed(state.vorticity, params)
        vorticity = flowed + self._kick(kick_key, params)
        stream = self._stream(vorticity, params)

        wind = self.wind.advance(wind_key, state.wind, dt, params.wind)
        way = dt * self.wind.at(wind, jnp.zeros((2, 1), jnp.float32), params.wind)[:, 0]
        drift = jnp.mod(state.drift + way, self._sides(params))
        sources = self.source_motion.advance(source_key, state.sources, dt, params.source_motion)
        filled = self._filled(state.concentration, sources, state.drift + way / 2, params)
        midway = (state.stream + stream) / 2
        carried = transport(filled, midway, cell, params.diffusivity, dt)
        left = carried * self._passing(drift, params)

        before, between = self._energy(state.vorticity, params), self._energy(flowed, params)
        after = self._energy(vorticity, params)
        area = jnp.square(cell)
        budget = Budget(
            energy=after.energy,
            injected=after.energy - between.energy,
            dissipated=dt / 2 * (before.dissipation + between.dissipation),
            dragged=dt / 2 * (before.dragging + between.dragging),
            mass=area * jnp.sum(left),
            emitted=area * jnp.sum(filled - state.concentration),
            absorbed=area * jnp.sum(carried - left),
        )
        return TurbulentState(vorticity, stream, left, drift, wind, sources), budget

    def sample(self, state: TurbulentState, positions: jax.Array, params: TurbulentParams) -> Air:
        """Bilinear: the gas between the centres of cells, u and v between those of the sides that
        they cross. Outside the box there is no gas, and the wind without eddies."""
        cell, sides = self._cell(params), self._sides(params)
        x, y = ((positions[:, i] - state.drift[i]) / cell for i in (0, 1))

        def at(field: jax.Array, row: jax.Array, column: jax.Array) -> jax.Array:
            return field[row % self.shape[0], column % self.shape[1]]

        stream = partial(at, state.stream)
        gas = _bilinear(partial(at, state.concentration), y - 0.5, x - 0.5)
        u = _bilinear(lambda i, j: stream(i + 1, j) - stream(i, j), y - 0.5, x) / cell
        v = _bilinear(lambda i, j: stream(i, j) - stream(i, j + 1), y, x - 0.5) / cell
        inside = in_box(positions, (0.0, 0.0), (sides[0], sides[1]))
        eddies = jnp.where(inside[None], jnp.stack([u, v]), jnp.float32(0))
        # What rounding leaves beyond the bounds; a clip would halve the gradient on them.
        gas = jnp.where(gas > 1, jnp.float32(1), jnp.where(gas < 0, jnp.float32(0), gas))
        return Air(
            concentration=jnp.where(inside, gas, jnp.float32(0)),
            wind=(self.wind.at(state.wind, positions.T, params.wind) + eddies).T,
        )

    def sources(self, state: TurbulentState, params: TurbulentParams) -> jax.Array:
        return self.source_motion.positions(state.sources)

    def validate(self, params: TurbulentParams) -> None:
        """Raise `ValidationError` for what is not allowed, or would not be computed rightly."""
        self._validate_structure()
        for name in ("length", "viscosity", "radius", "fringe_width", "dt"):
            value = np.asarray(getattr(params, name))
            require(np.all((value > 0) & np.isfinite(value)), f"plume.{name}", value, "> 0, finite")
        for name in ("diffusivity", "forcing", "drag", "emission", "fringe_strength"):
            value = np.asarray(getattr(params, name))
            good = np.all((value >= 0) & np.isfinite(value))
            require(good, f"plume.{name}", value, ">= 0, finite")
        self.wind.validate(params.wind)
        require_sources(self, params, 2)
        self._validate_places(params)
        self._validate_steps(params)

    def _validate_structure(self) -> None:
        height, width = self.shape
        even = height % 2 == width % 2 == 0 and min(height, width) >= 8
        require(even, "shape", self.shape, "even numbers, 8 at least")
        k_f = self.forcing_wavenumber
        good = k_f >= 1 and 3 * (k_f + 0.5) < height
        require(good, "forcing_wavenumber", k_f, f"1 <= k_f < {height / 3 - 0.5:.3g}: H / 3 - 1/2")
        require(self.num_sources >= 1, "num_sources", self.num_sources, ">= 1")
        require(self.substeps >= 1, "substeps", self.substeps, ">= 1")
        require(self.warmup >= 0, "warmup", self.warmup, ">= 0")
        kind, allowed = type(self.wind).__name__, ", ".join(kind.__name__ for kind in UNIFORM)
        require(isinstance(self.wind, UNIFORM), "wind", kind, f"one of {allowed}")

    def _validate_places(self, params: TurbulentParams) -> None:
        """Refuse a source smaller than a cell or in the fringe, and a fringe that is everywhere."""
        cell = np.asarray(params.length, np.float64) / self.shape[1]
        sides = cell[..., None] * np.asarray(self.shape[::-1])
        radius, width = np.asarray(params.radius), np.asarray(params.fringe_width)
        # Float32 of a radius of one cell may be a little less.
        good = np.all(radius >= cell * (1 - 1e-6))
        require(good, "plume.radius", params.radius, f"at least a cell, {cell}")
        good = np.all(width < sides.min(axis=-1) / 2)
        require(good, "plume.fringe_width", params.fringe_width, f"below half of {sides}")
        source, width = np.asarray(params.source), width[..., None]
        if self.num_sources > 1:
            sides, width = sides[..., None, :], width[..., None]
        good = np.all((source >= width) & (source <= sides - width))
        require(good, "plume.source", params.source, f"in the box, {sides}, and not in its fringe")

    def _validate_steps(self, params: TurbulentParams) -> None:
        """Refuse a viscosity too small, a dt too long, and a fringe too weak."""
        scales = _scales(self, params)
        fine = scales.k_max * scales.smallest
        rule = f"such that k_max sqrt(nu) / (k_f^2 forcing)^(1/6), now {fine}, is >= {RESOLVED}"
        require(np.all(fine >= RESOLVED), "plume.viscosity", params.viscosity, rule)
        dt, kappa, radius, width, strength = (
            np.asarray(getattr(params, name), np.float64)
            for name in ("dt", "diffusivity", "radius", "fringe_width", "fringe_strength")
        )
        cells = dt * (FASTEST * scales.rms / scales.cell + 2 * kappa / scales.cell**2)
        rule = f"<= {dt / np.maximum(2 * cells, 1e-30)}: half a cell, at {FASTEST} u'"
        require(np.all(cells <= 0.5), "plume.dt", params.dt, rule)
        rule = f"such that the wind, {scales.wind}, blows at most one radius of a source in it"
        require(np.all(scales.wind * dt <= radius), "plume.dt", params.dt, rule)
        absorbed = strength * width * 2 / 3
        least = CLEAN * (scales.wind + 2 * scales.rms)
        rule = f">= {1.5 * least / width}: no more than e^-{CLEAN} of the gas may come round"
        require(np.all(absorbed >= least), "plume.fringe_strength", params.fringe_strength, rule)

    # Places

    def _cell(self, params: TurbulentParams) -> jax.Array:
        """float32[]: the side of a cell."""
        return _float(params.length) / self.shape[1]

    def _sides(self, params: TurbulentParams) -> jax.Array:
        """float32[2]: of the box, along x and y."""
        return self._cell(params) * np.asarray(self.shape[::-1], np.float32)

    def _centres(self, drift: jax.Array, params: TurbulentParams) -> list[jax.Array]:
        """x float32[W] and y float32[H], where the cells are in the box."""
        cell, sides = self._cell(params), self._sides(params)
        middles = (np.arange(n, dtype=np.float32) + np.float32(0.5) for n in self.shape[::-1])
        return [jnp.mod(drift[i] + cell * m, sides[i]) for i, m in enumerate(middles)]

    # Gas

    def _filled(
        self, gas: jax.Array, sources: Any, drift: jax.Array, params: TurbulentParams
    ) -> jax.Array:
        """float32[H, W]: the gas after dt of `dC/dt = emission G (1 - C)`, exactly."""
        radius, emission, dt = map(_float, (params.radius, params.emission, params.dt))
        sides, places = self._sides(params), self.source_motion.positions(sources)
        bells = []
        for i, middles in enumerate(self._centres(drift, params)):
            away = middles[None] - places[:, i, None]
            nearest = away - sides[i] * jnp.round(away / sides[i])
            bells.append(jnp.exp(jnp.square(nearest / radius) / -2))
        x, y = bells
        return gas - (1 - gas) * jnp.expm1(-emission * dt * jnp.matmul(y.T, x, precision="highest"))

    def _passing(self, drift: jax.Array, params: TurbulentParams) -> jax.Array:
        """float32[H, W]: the fraction of a cell's gas that the fringe leaves in dt."""
        width, strength, dt = map(_float, (params.fringe_width, params.fringe_strength, params.dt))
        x, y = (
            jnp.square(jnp.maximum(1 - jnp.minimum(at, side - at) / width, 0))
            for at, side in zip(self._centres(drift, params), self._sides(params), strict=True)
        )
        return jnp.exp(-dt * strength * jnp.maximum(x[None], y[:, None]))

    # Eddies

    def _turn(self, params: TurbulentParams) -> jax.Array:
        """float32[]: wave number of one wave along the box."""
        return np.float32(2 * np.pi) / _float(params.length)

    def _stream(self, vorticity: jax.Array, params: TurbulentParams) -> jax.Array:
        """float32[H, W]: psi with `lap psi = -w`, so that `(u, v) = (d psi/dy, -d psi/dx)`."""
        inverse = _waves(self.shape).inverse / jnp.square(self._turn(params))
        return _on_grid(vorticity * inverse[None], self.shape)

    def _tendency(self, vorticity: jax.Array, params: TurbulentParams) -> jax.Array:
        """`-(u . grad) w`, as `(d_yy - d_xx)(u v) + d_xy(u^2 - v^2)` (Basdevant 1983).

        So two products are transformed, where vorticity, its gradient and the velocity make more.
        """
        waves, turn = _waves(self.shape), self._turn(params)
        psi = vorticity * (waves.inverse[None] / turn)
        times_i = jnp.stack([-psi[1], psi[0]])
        speeds = jnp.stack([times_i * waves.y[None], times_i * -waves.x[None]], axis=1)
        u, v = _on_grid(speeds, self.shape)
        products = _in_waves(jnp.stack([u * v, (v - u) * (v + u)]))
        straight, oblique = waves.kept * (waves.x**2 - waves.y**2), waves.kept * waves.x * waves.y
        curl = straight[None] * products[:, 0] + oblique[None] * products[:, 1]
        return curl * jnp.square(turn)

    def _flowed(self, vorticity: jax.Array, params: TurbulentParams) -> jax.Array:
        """float32[2, H, W // 2 + 1]: the vorticity after dt without forcing.

        The stages of Heun's third-order method are dt / 3 apart: one exponential serves them all.
        """
        dt = _float(params.dt)
        decay = jnp.exp(-dt / 3 * self._damping(params))[None]
        first = self._tendency(vorticity, params)
        second = self._tendency(decay * (vorticity + dt / 3 * first), params)
        third = self._tendency(decay * (decay * vorticity + 2 * dt / 3 * second), params)
        return decay * (decay * decay * (vorticity + dt / 4 * first) + 3 * dt / 4 * third)

    def _damping(self, params: TurbulentParams) -> jax.Array:
        """float32[H, W // 2 + 1]: `nu k^2 + drag`, 1/s."""
        viscosity = _float(params.viscosity) * jnp.square(self._turn(params))
        return viscosity * _waves(self.shape).squared + _float(params.drag)

    def _kick(self, key: jax.Array, params: TurbulentParams) -> jax.Array:
        """float32[2, H, W // 2 + 1]: what forcing adds in dt: independent normal numbers, of the
        same energy for each wave of the ring, `forcing dt` on average in all."""
        waves, (rows, columns) = _waves(self.shape), _ring(self.shape, self.forcing_wavenumber)
        size = np.sqrt(waves.squared[rows, columns] / np.float32(2 * len(rows)))
        scale = self._turn(params) * jnp.sqrt(_float(params.forcing)) * jnp.sqrt(_float(params.dt))
        parts = scale * size[None] * jax.random.normal(key, (2, len(rows)), jnp.float32)
        return _spread(parts, rows, columns, self.shape)

    def _random_eddies(self, key: jax.Array, params: TurbulentParams) -> jax.Array:
        """float32[2, H, W // 2 + 1]: random phases, about the energy and the spectrum that forcing
        sustains: energy the same for every wave below k_f, and falling as k^-6 beyond."""
        waves = _waves(self.shape)
        k = np.sqrt(waves.squared) * np.float32(self.shape[0] / self.shape[1])
        spectrum = waves.squared / (1 + (k / self.forcing_wavenumber) ** 6)
        noise = _in_waves(jax.random.normal(key, self.shape, jnp.float32))
        vorticity = noise * (waves.kept * np.sqrt(spectrum))[None]
        k_f = self._turn(params) * (self.forcing_wavenumber * self.shape[1] / self.shape[0])
        damping = _float(params.drag) + _float(params.viscosity) * jnp.square(k_f)
        # The root of the forcing by itself: without forcing, slopes in what else is here are 0.
        energy = self._energy(vorticity, params).energy
        scale = jnp.sqrt(_float(params.forcing)) / jnp.sqrt(2 * damping * energy)
        return vorticity * scale

    def _energy(self, vorticity: jax.Array, params: TurbulentParams) -> "_Energy":
        waves = _waves(self.shape)
        squares = waves.weight * (jnp.square(vorticity[0]) + jnp.square(vorticity[1]))
        energy = jnp.sum(squares * waves.inverse) / (2 * jnp.square(self._turn(params)))
        return _Energy(
            energy=energy,
            dissipation=_float(params.viscosity) * jnp.sum(squares),
            dragging=2 * _float(params.drag) * energy,
        )


class _Energy(NamedTuple):
    """Of eddies, float32[] each: their energy, and what viscosity and drag take a second."""

    energy: jax.Array
    dissipation: jax.Array
    dragging: jax.Array


def transport(
    concentration: jax.Array, stream: jax.Array, cell: Any, diffusivity: Any, dt: Any
) -> jax.Array:
    """float32[H, W]: the gas after dt of flow and diffusion in a periodic box.

    Finite volumes: upwind values of the limited slopes of van Leer (1974), and two stages in time
    (Shu and Osher 1988). What leaves a cell enters its neighbour, so the sum stays. The flow
    through the sides of a cell, differences of the stream function, sums to 0, so an even field
    stays even.
    Where `dt (|u| + |v|) / cell + 2 dt diffusivity / cell^2 <= 1/2` each stage is a mean of
    neighbouring values with positive weights: no new maximum or minimum arises.

    Args:
      concentration: float32[H, W].
      stream: float32[H, W], stream function at the lower left corners of the cells.
      cell: float32[], side of a cell.
      diffusivity: float32[], lengths^2 a second.
      dt: float32[], s.
    """
    share = _float(dt) / jnp.square(_float(cell))
    along = share * (jnp.roll(stream, -1, 0) - stream)
    across = share * (stream - jnp.roll(stream, -1, 1))
    mixing = share * _float(diffusivity)

    def stage(_: int, gas: jax.Array) -> jax.Array:
        x, y = _passed(gas, along, mixing, 1), _passed(gas, across, mixing, 0)
        return gas + ((x - jnp.roll(x, -1, 1)) + (y - jnp.roll(y, -1, 0)))

    # A loop, which compiles in half of the time that two copies take.
    return (concentration + jax.lax.fori_loop(0, 2, stage, concentration)) / 2


def _passed(gas: jax.Array, courant: jax.Array, mixing: jax.Array, axis: int) -> jax.Array:
    """float32[H, W]: what enters each cell through its lower side along `axis`."""
    rise = gas - jnp.roll(gas, 1, axis)
    half = _limited(rise, jnp.roll(rise, -1, axis)) / 2
    upwind = jnp.where(courant > 0, jnp.roll(gas + half, 1, axis), gas - half)
    return courant * upwind - mixing * rise


def _limited(before: jax.Array, after: jax.Array) -> jax.Array:
    """Van Leer's slope: the harmonic mean of two differences, 0 where their signs differ."""
    product, total = before * after, before + after
    agree = product > 0
    return jnp.where(agree, 2 * product / jnp.where(agree, total, 1), 0)


class _Waves(NamedTuple):
    """Of each Fourier coefficient of a grid, float32; wave numbers are in waves along the box.

    Attributes:
      x, y: [1, W // 2 + 1] and [H, 1].
      squared, inverse: [H, W // 2 + 1], the square of the wave number and 1 over it, 0 for 0.
      kept: [H, W // 2 + 1], 1 below 2/3 of the highest wave in x and in y, else 0; 0 for the mean.
      weight: [H, W // 2 + 1], 2 where the opposite wave is not among them, else 1; 0 if not kept.
    """

    x: np.ndarray
    y: np.ndarray
    squared: np.ndarray
    inverse: np.ndarray
    kept: np.ndarray
    weight: np.ndarray


@lru_cache(maxsize=8)
def _waves(shape: tuple[int, int]) -> _Waves:
    height, width = shape
    m, n = np.arange(width // 2 + 1)[None], np.fft.fftfreq(height, 1 / height)[:, None]
    x, y = m.astype(float), n * width / height
    squared = x**2 + y**2
    kept = (3 * m < width) & (3 * np.abs(n) < height) & (squared > 0)
    inverse = np.divide(1, squared, out=np.zeros_like(squared), where=squared > 0)
    weight = kept * np.where(m > 0, 2, 1)
    return _Waves(*(each.astype(np.float32) for each in (x, y, squared, inverse, kept, weight)))


def _ring(shape: tuple[int, int], wavenumber: int) -> tuple[np.ndarray, np.ndarray]:
    """int[n] each: rows and columns of the waves within 1/2 of `wavenumber` along y, of which the
    opposites are left out."""
    waves = _waves(shape)
    k = np.sqrt(waves.squared) * shape[0] / shape[1]
    half = (waves.x > 0) | (waves.y > 0)
    rows, columns = np.nonzero(half & (waves.kept > 0) & (np.abs(k - wavenumber) <= 0.5))
    return rows, columns


def _spread(
    parts: jax.Array, rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]
) -> jax.Array:
    """float32[2, H, W // 2 + 1]: `parts` float32[2, n] at these waves, 0 at others; of a real
    field, so in column 0 the opposites are their conjugates."""
    own = np.flatnonzero(columns == 0)
    opposite = parts[:, own] * np.asarray([[1], [-1]], np.float32)
    empty = jnp.zeros((2, shape[0], shape[1] // 2 + 1), jnp.float32)
    return empty.at[:, rows, columns].set(parts).at[:, -rows[own], 0].set(opposite)


def _on_grid(coefficients: jax.Array, shape: tuple[int, int]) -> jax.Array:
    """float32[..., H, W] of its Fourier coefficients float32[2, ..., H, W // 2 + 1]."""
    spectrum = jax.lax.complex(coefficients[0], coefficients[1])
    return jnp.fft.irfft2(spectrum, shape, norm="forward")


def _in_waves(field: jax.Array) -> jax.Array:
    """float32[2, ..., H, W // 2 + 1], the Fourier coefficients of float32[..., H, W]."""
    spectrum = jnp.fft.rfft2(field, norm="forward")
    return jnp.stack([spectrum.real, spectrum.imag])


def _bilinear(
    read: Callable[[jax.Array, jax.Array], jax.Array], row: jax.Array, column: jax.Array
) -> jax.Array:
    """float32[n]: at float32[n] rows and columns, of `read`, which gives values at whole ones."""
    i, j = (jnp.floor(x).astype(jnp.int32) for x in (row, column))
    up, right = row - i.astype(jnp.float32), column - j.astype(jnp.float32)
    low = (1 - right) * read(i, j) + right * read(i, j + 1)
    high = (1 - right) * read(i + 1, j) + right * read(i + 1, j + 1)
    return (1 - up) * low + up * high


def _float(number: Any) -> jax.Array:
    return jnp.asarray(number, jnp.float32)


@partial(jax.jit, static_argnames=("plume", "steps"))
def observe(
    plume: TurbulentPlume,
    params: TurbulentParams,
    key: jax.Array,
    state: TurbulentState,
    positions: jax.Array,
    steps: int,
) -> tuple[TurbulentState, Budget, Air]:
    """`(state, budget, air)` of `steps` steps of dt, static: what each moved, the air after it.

    The leaves of `budget` are float32[steps]; the air at `positions` float32[n, 2] has
    concentration float32[steps, n] and wind float32[steps, n, 2].
    """

    def one(state: TurbulentState, key: jax.Array) -> tuple[TurbulentState, tuple[Budget, Air]]:
        state, budget = plume.step(key, state, params)
        return state, (budget, plume.sample(state, positions, params))

    state, (budget, air) = jax.lax.scan(one, state, jax.random.split(key, steps))
    return state, budget, air


class _Scales(NamedTuple):
    """What the numbers of a plume imply, float64[] each.

    Attributes:
      cell: side of a cell.
      eddy: l_f, wave length of the forcing.
      k_max: the highest wave number that is kept.
      smallest: l_d, `sqrt(nu) / (k_f^2 forcing)^(1/6)`, where viscosity ends the enstrophy cascade.
      rms: u' if forcing fed the largest eddies alone, which is the most that it sustains.
      wind: speed of the mean wind.
    """

    cell: np.ndarray
    eddy: np.ndarray
    k_max: np.ndarray
    smallest: np.ndarray
    rms: np.ndarray
    wind: np.ndarray


def _scales(plume: TurbulentPlume, params: TurbulentParams) -> _Scales:
    length, viscosity, forcing, drag = (
        np.asarray(getattr(params, name), np.float64)
        for name in ("length", "viscosity", "forcing", "drag")
    )
    height, width = plume.shape
    cell = length / width
    largest = 2 * np.pi / (cell * max(height, width))
    k_f = 2 * np.pi * plume.forcing_wavenumber / (cell * height)
    mean = np.asarray(plume.wind.mean(params.wind), np.float64)
    return _Scales(
        cell=cell,
        eddy=2 * np.pi / k_f,
        k_max=2 * np.pi / (3 * cell),
        # Without forcing there is nothing to resolve.
        smallest=np.sqrt(viscosity) / np.maximum(k_f**2 * forcing, 1e-30) ** (1 / 6),
        rms=np.sqrt(forcing / (2 * (drag + viscosity * largest**2))),
        wind=np.hypot(mean[..., 0], mean[..., 1]),
    )


def report(
    plume: TurbulentPlume,
    params: TurbulentParams,
    key: jax.Array,
    crossings: float = 3.0,
    shares: tuple[float, ...] = (0.1, 0.25, 0.5, 0.75, 0.95),
) -> dict[str, Any]:
    """What a plume is like: ratios, and whiffs and blanks on the axis and at the edge.

    The axis runs downwind from the first source. A transect crosses it at each station; its peak is
    the highest concentration seen on it, and whiffs are above 2 % of that. The edge is where the
    mean falls to 1/10 of the largest mean of the transect, on the side where that is nearer.

    Args:
      plume: whose sources stay.
      params: of it, one set.
      key: typed key, consumed.
      crossings: how long to look, in times that the wind takes to cross the box along x.
      shares: where the stations are, of the way from the source to the fringe.

    Returns:
      "u'", from the eddies' energy, "u' / U", "Re_f" = u' l_f / nu, "Sc" = nu / kappa, "Pe" =
      u' l_f / kappa, "radius / l_f", "k_max l_d", "steps", and "stations", each with "distance",
      "peak", "axis" and "edge": `statistics.Summary` as a dict, at the edge with its "offset".
    """
    scales, dt = _scales(plume, params), float(params.dt)
    speed = float(scales.wind) or float(scales.rms) or 1.0
    steps = max(int(crossings * float(params.length) / speed / dt), 2)
    away, offsets, places = _transects(plume, params, shares)
    start_key, key = jax.random.split(key)
    state = rolling.begin(plume, start_key, params)
    energy, series = [], []
    for chunk in jax.random.split(key, -(-steps // _CHUNK)):
        state, budget, air = observe(plume, params, chunk, state, places, _CHUNK)
        energy.append(np.asarray(budget.energy, np.float64))
        series.append(np.asarray(air.concentration))
    rms = float(np.sqrt(np.mean(np.concatenate(energy)[:steps])))
    gas = np.concatenate(series)[:steps].reshape(steps, len(away), len(offsets))
    stations = [
        {"distance": float(d), **_station(gas[:, i], offsets, dt)} for i, d in enumerate(away)
    ]
    viscosity, kappa = float(params.viscosity), float(params.diffusivity)
    eddy = float(scales.eddy)
    return {
        "u'": rms,
        "u' / U": rms / float(scales.wind) if scales.wind else np.inf,
        "Re_f": rms * eddy / viscosity,
        "Sc": viscosity / kappa if kappa else np.inf,
        "Pe": rms * eddy / kappa if kappa else np.inf,
        "radius / l_f": float(params.radius) / eddy,
        "k_max l_d": float(scales.k_max * scales.smallest),
        "steps": steps,
        "stations": stations,
    }


_CHUNK = 500


def _transects(
    plume: TurbulentPlume, params: TurbulentParams, shares: tuple[float, ...]
) -> tuple[np.ndarray, np.ndarray, jax.Array]:
    """Distances [d], offsets [o] across the axis, and float32[d * o, 2] places."""
    mean = np.asarray(plume.wind.mean(params.wind), np.float64)
    axis = mean / np.hypot(*mean) if mean.any() else np.asarray([1.0, 0.0])
    source = np.asarray(params.source, np.float64).reshape(-1, 2)[0]
    cell, width = float(params.length) / plume.shape[1], float(params.fringe_width)
    high = cell * np.asarray(plume.shape[::-1]) - width
    walls = np.where(axis > 0, high, width)
    moving = np.abs(axis) > 1e-6
    reach = np.min((walls - source)[moving] / axis[moving])
    away = reach * np.asarray(shares)
    half = high.min() / 2
    offsets = np.linspace(-half, half, 41)
    normal = np.asarray([-axis[1], axis[0]])
    places = source + away[:, None, None] * axis + offsets[:, None] * normal
    return away, offsets, jnp.asarray(places.reshape(-1, 2), jnp.float32)


def _station(gas: np.ndarray, offsets: np.ndarray, dt: float) -> dict[str, Any]:
    """Axis and edge of the transect `gas` float32[T, o]."""
    peak = float(gas.max())
    mean, middle = gas.mean(axis=0, dtype=np.float64), len(offsets) // 2
    beyond = np.flatnonzero(mean <= 0.1 * mean.max())
    edge = beyond[np.argmin(np.abs(beyond - middle))] if len(beyond) else 0
    axis, rim = (asdict(statistics.summarise(gas[:, i], 0.02 * peak, dt)) for i in (middle, edge))
    return {"peak": peak, "axis": axis, "edge": {"offset": float(offsets[edge]), **rim}}
