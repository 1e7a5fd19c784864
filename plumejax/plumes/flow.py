"""plumes/flow: a smooth random flow of a few Fourier modes, and odour as tracers in it.

The stochastic flow of Durve, Piro, Cencini, Biferale and Celani 2020 (Physical Review E 102:
012402). No grid: the flow is known at any place, and its divergence is zero.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.plumes import noise
from plumejax.plumes.interface import Air
from plumejax.plumes.puffs import (
    PuffParams,
    PuffPlume,
    PuffState,
    midpoint,
    require_not_negative,
    squared_distance,
)
from plumejax.plumes.wind import (
    ornstein_uhlenbeck,
    require_finite,
    require_least,
    require_more,
)

WAVES = np.asarray([[1, 0], [0, 1], [1, 1], [1, -1]], np.float32)
"""Wave vectors in units of `2 pi / box`; with their opposites these are the eight modes."""

STRENGTHS = np.asarray([4, 4, 1, 1], np.float32) ** 0.5 / np.float32(6) ** 0.5
"""Standard deviation of each mode's velocity along `(-k_y, k_x) / k_s`, in units of `rms`."""


class FourierFlowParams(struct.PyTreeNode):
    """Numbers of a `FourierFlow`.

    Attributes:
      velocity: float32[2], the mean U, lengths a second.
      rms: float32[], standard deviation of each component about it, lengths a second, >= 0.
      box: float32[], L, the period in x and in y, lengths, > 0.
      time: float32[], s, in which the correlation at a place falls by e, > 0.
    """

    velocity: Any
    rms: Any
    box: Any
    time: Any


@dataclass(frozen=True)
class FourierFlow:
    """`u = U + curl psi`, psi of eight modes with Ornstein-Uhlenbeck amplitudes.

    `psi = sum_k (A_k e^(i k x) + c.c.)` over k = (k_s, 0), (0, k_s), (k_s, k_s), (k_s, -k_s), where
    `k_s = 2 pi / L`. With the opposites -k, whose amplitudes are the conjugates since psi is real,
    that makes eight. `u - U = (-d psi / dy, d psi / dx)`. Both parts of each amplitude are
    independent Ornstein-Uhlenbeck processes of the same time, updated exactly, stationary from the
    start.

    The variance of an amplitude falls as 1 / k^4. Then every component of u has variance `rms^2`
    everywhere, and the mean squares of its gradients are those of an isotropic flow, among them
    `<(du_x/dy)^2> = 3 <(du_x/dx)^2>`. Beyond that it is as symmetric as the square that it repeats.

    The state is float32[2, 4]: of the velocity of each wave a cosine and a sine, of variance 1.
    """

    random_start = random_step = True

    def default_params(self) -> FourierFlowParams:
        """Numbers of our own: eddies that turn over about as fast as they change."""
        return FourierFlowParams(
            velocity=np.asarray([1.0, 0.0], np.float32),
            rms=np.float32(0.5),
            box=np.float32(10.0),
            time=np.float32(5.0),
        )

    def start(self, key: jax.Array, params: FourierFlowParams) -> jax.Array:
        return jax.random.normal(key, (2, len(WAVES)), jnp.float32)

    def advance(
        self, key: jax.Array, state: jax.Array, dt: Any, params: FourierFlowParams
    ) -> jax.Array:
        decay = jnp.exp(-jnp.asarray(dt, jnp.float32) / params.time)
        return ornstein_uhlenbeck(key, state, decay, 1.0)

    def at(self, state: jax.Array, positions: jax.Array, params: FourierFlowParams) -> jax.Array:
        turn = np.float32(2 * np.pi) / jnp.asarray(params.box, jnp.float32)
        x, y = turn * positions[0], turn * positions[1]
        (cos_x, sin_x), (cos_y, sin_y) = ((jnp.cos(a), jnp.sin(a)) for a in (x, y))
        # The diagonal waves by the addition theorem, since a sine costs ten products.
        cosines = (cos_x, cos_y, cos_x * cos_y - sin_x * sin_y, cos_x * cos_y + sin_x * sin_y)
        sines = (sin_x, sin_y, sin_x * cos_y + cos_x * sin_y, sin_x * cos_y - cos_x * sin_y)
        even, odd = jnp.asarray(params.rms, jnp.float32) * STRENGTHS[None] * state
        along = [a * c + b * s for a, b, c, s in zip(even, odd, cosines, sines, strict=True)]
        u = -along[1] - along[2] + along[3]
        v = along[0] + along[2] + along[3]
        mean = self.mean(params)
        return jnp.stack([mean[0] + u, mean[1] + v])

    def mean(self, params: FourierFlowParams) -> jax.Array:
        return jnp.asarray(params.velocity, jnp.float32)

    def validate(self, params: FourierFlowParams) -> None:
        """Raise `ValidationError` if a number is not allowed."""
        require_finite("velocity", params.velocity)
        require_least("rms", params.rms, 0.0)
        require_more("box", params.box, 0.0)
        require_more("time", params.time, 0.0)


class TracerParams(PuffParams):
    """Numbers of a `TracerPlume`: those of `PuffParams`, with the wind's lengths, and its own.

    `radius` is the standard deviation of the Gaussian that a tracer is seen through.

    Attributes:
      diffusivity: float32[], lengths^2 a second, of the tracers' own walk, >= 0.
    """

    diffusivity: Any


@dataclass(frozen=True)
class TracerPlume(PuffPlume):
    """Points of odour, released at Poisson moments, that a flow carries.

    `C = sum 1 / (2 pi w^2) exp(-d^2 / (2 w^2))`: tracers a unit of area, seen through a Gaussian.
    Counting them within a radius instead would leave C without a gradient.

    A step is a midpoint step, for Euler's drives tracers out of eddies. In the default flow without
    its mean and with dt = 0.2 s, tracers that were spread evenly have after 20 s a variance of
    their number a cell of 1.36 times its mean, where it has to be its mean; midpoint steps: 1.00.

    Attributes: those of `PuffPlume`.
    """

    capacity: int = 512
    wind: Any = FourierFlow()
    unit = "tracers a unit of area"

    def default_params(self) -> TracerParams:
        """Numbers of our own, for the flow's: four boxes downwind, 300 tracers on average."""
        return TracerParams(
            **self._own_defaults((0.0, 0.0)),
            radius=np.float32(0.2),
            diffusivity=np.float32(0.0),
            rate=np.float32(8.0),
            low=np.asarray([-10.0, -20.0], np.float32),
            high=np.asarray([40.0, 20.0], np.float32),
            dt=np.float32(0.1),
        )

    def _step(self, key: jax.Array, state: PuffState, params: TracerParams) -> PuffState:
        walk_key, *keys = jax.random.split(key, 5)
        spread = jnp.sqrt(2 * jnp.asarray(params.diffusivity, jnp.float32) * params.dt)
        walk = spread * noise.walk(walk_key, 2, self.capacity)
        return self._carry(keys, state, midpoint, walk, params.rate, params)

    def sample(self, state: PuffState, positions: jax.Array, params: TracerParams) -> Air:
        tracers, places = state.particles, positions.T
        square = jnp.square(jnp.asarray(params.radius, jnp.float32))
        squared = squared_distance(places, tracers.position)
        parts = jnp.where(tracers.alive[None], jnp.exp(squared * (np.float32(-0.5) / square)), 0.0)
        concentration = jnp.sum(parts, axis=1) / (np.float32(2 * np.pi) * square)
        return Air(concentration, self._felt_wind(state, places, positions, params))

    def validate(self, params: TracerParams) -> None:
        """Raise `ValidationError` if a number is not allowed."""
        super().validate(params)
        require_not_negative("diffusivity", params.diffusivity)
