"""plumes/packets: packets of odour that the wind carries and that wander across it, each by itself.

The packet model of Kadakia et al. 2022 (Nature 611: 754) and of Rana and Jayaram et al. The wind
blows along x; across it, along y, every packet has a velocity of its own, which follows one of four
processes: Ornstein-Uhlenbeck, telegraph, renewal, white. The first three have the same variance v^2
and correlation e^(-t / T), hence the same `<y^2> = 2 T v^2 (t - T (1 - e^(-t / T)))`, and differ in
the shape of the plume.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.base.errors import require
from plumejax.plumes import noise
from plumejax.plumes.interface import Air
from plumejax.plumes.puffs import (
    PuffParams,
    PuffPlume,
    PuffState,
    euler,
    require_not_negative,
    squared_distance,
)
from plumejax.plumes.wind import Constant, ConstantParams

MOST_SWITCHES = 4
"""Switches of a velocity in one step are followed up to here."""

LONGEST_STEP = 0.1
"""A step, in correlation times, in which more than `MOST_SWITCHES` have a chance below 1e-7."""


class CrosswindParams(struct.PyTreeNode):
    """Numbers of a crosswind velocity that lasts for a while.

    Attributes:
      speed: float32[], mm/s, v, its standard deviation, >= 0.
      time: float32[], s, T, in which its correlation falls by e, > 0.
    """

    speed: Any = np.float32(45.0)
    time: Any = np.float32(2.0)


class WhiteParams(struct.PyTreeNode):
    """Numbers of a `WhiteCrosswind`.

    Attributes:
      diffusivity: float32[], mm^2/s, D of the walk in y, >= 0.
    """

    diffusivity: Any = np.float32(1000.0)


@dataclass(frozen=True)
class OrnsteinUhlenbeckCrosswind:
    """A velocity that wanders; the state is velocity / v, float32[N].

    Velocity and displacement are drawn from their joint law, which is exact for every dt.
    """

    num_words = 2

    def default_params(self) -> CrosswindParams:
        return CrosswindParams()

    def stationary(self, words: jax.Array) -> jax.Array:
        """float32[N]: states of the stationary law, from uint32[N]."""
        return noise.normal(words)

    def advance(
        self, words: jax.Array, state: jax.Array, dt: Any, params: CrosswindParams
    ) -> tuple[jax.Array, jax.Array]:
        """The states after dt s, and by how much float32[N] mm their packets moved.

        `words` is uint32[num_words, N].
        """
        time = jnp.asarray(params.time, jnp.float32)
        steps = dt / time
        kick, stray = noise.normal(words)
        after = jnp.exp(-steps) * state + jnp.sqrt(-jnp.expm1(-2 * steps)) * kick
        # Between its two ends the velocity is a bridge: what it covers on average, and its scatter.
        moved = jnp.tanh(steps / 2) * (state + after) + jnp.sqrt(_bridge_variance(steps)) * stray
        return after, jnp.asarray(params.speed, jnp.float32) * time * moved

    def validate(self, params: CrosswindParams, dt: Any) -> None:
        """Raise `ValidationError` if a number is not allowed."""
        _require_crosswind(params)


def _bridge_variance(steps: jax.Array) -> jax.Array:
    """float32[]: `2 h - 4 tanh(h / 2)` of h = dt / T, also where its terms nearly cancel."""
    x = steps / 2
    square = jnp.square(x)
    series = x * square * (1 / 3 - square * (2 / 15 - square * (17 / 315 - square * 62 / 2835)))
    return 4 * jnp.where(x < 0.25, series, x - jnp.tanh(x))


@dataclass(frozen=True)
class RenewalCrosswind:
    """A velocity that is drawn anew from N(0, v^2) at Poisson moments, 1 / T a second.

    The state is velocity / v, float32[N]. Exact for dt up to a tenth of T.
    """

    num_words = 2 * MOST_SWITCHES

    def default_params(self) -> CrosswindParams:
        return CrosswindParams()

    def stationary(self, words: jax.Array) -> jax.Array:
        """float32[N]: states of the stationary law, from uint32[N]."""
        return noise.normal(words)

    def advance(
        self, words: jax.Array, state: jax.Array, dt: Any, params: CrosswindParams
    ) -> tuple[jax.Array, jax.Array]:
        """The states after dt s, and by how much float32[N] mm their packets moved."""
        return _renew(self.stationary, words, state, dt, params)

    def validate(self, params: CrosswindParams, dt: Any) -> None:
        """Raise `ValidationError` if a number is not allowed."""
        _require_crosswind(params)
        _require_short(params, dt)


@dataclass(frozen=True)
class TelegraphCrosswind(RenewalCrosswind):
    """A velocity of +v or -v that flips at Poisson moments, 1 / (2 T) a second.

    The state is velocity / v, float32[N]. Exact for dt up to a tenth of T. A sign that is drawn
    anew 1 / T times a second flips half as often.
    """

    def stationary(self, words: jax.Array) -> jax.Array:
        """float32[N]: states of the stationary law, from uint32[N]."""
        return noise.sign(words)


def _renew(
    stationary: Any, words: jax.Array, state: jax.Array, dt: Any, params: CrosswindParams
) -> tuple[jax.Array, jax.Array]:
    """Velocities that are drawn anew at the moments of a Poisson law, 1 / T a second.

    It has no memory: a moment that lies beyond the step is drawn again in the next.
    """
    time = jnp.asarray(params.time, jnp.float32)
    steps = dt / time
    gaps, fresh = noise.exponential(words[:MOST_SWITCHES]), stationary(words[MOST_SWITCHES:])
    elapsed = moved = jnp.zeros_like(state)
    for gap, new in zip(gaps, fresh, strict=True):
        until = jnp.minimum(elapsed + gap, steps)
        moved = moved + state * (until - elapsed)
        state = jnp.where(until < steps, new, state)
        elapsed = until
    moved = moved + state * (steps - elapsed)
    return state, jnp.asarray(params.speed, jnp.float32) * time * moved


@dataclass(frozen=True)
class WhiteCrosswind:
    """A velocity without memory, the walk of a diffusivity; the state means nothing.

    Kadakia et al. let this walk act along the wind as well, which hardly shows: the wind does more.
    """

    num_words = 1

    def default_params(self) -> WhiteParams:
        return WhiteParams()

    def stationary(self, words: jax.Array) -> jax.Array:
        """float32[N]: zeros."""
        return jnp.zeros(words.shape, jnp.float32)

    def advance(
        self, words: jax.Array, state: jax.Array, dt: Any, params: WhiteParams
    ) -> tuple[jax.Array, jax.Array]:
        """The states after dt s, and by how much float32[N] mm their packets moved."""
        spread = jnp.sqrt(2 * jnp.asarray(params.diffusivity, jnp.float32) * dt)
        return state, spread * noise.normal(words[0])

    def validate(self, params: WhiteParams, dt: Any) -> None:
        """Raise `ValidationError` if the diffusivity is not allowed."""
        require_not_negative("crosswind.diffusivity", params.diffusivity)


def _require_crosswind(params: CrosswindParams) -> None:
    require_not_negative("crosswind.speed", params.speed)
    time = np.asarray(params.time)
    good = np.all((time > 0) & np.isfinite(time))
    require(good, "plume.crosswind.time", params.time, "> 0 and finite")


def _require_short(params: CrosswindParams, dt: Any) -> None:
    longest = LONGEST_STEP * np.min(np.asarray(params.time))
    require(np.all(np.asarray(dt) <= longest), "plume.dt", dt, f"<= {longest:g} s, a tenth of T")


class PacketParams(PuffParams):
    """Numbers of a `PacketPlume`: those of `PuffParams`, with lengths in mm, and its own.

    Attributes:
      crosswind: those of the packets' own velocity.
      diffusivity: float32[], mm^2/s, D, by which `r^2` grows, >= 0.
      amount: float32[], of odour in a packet, >= 0.
    """

    crosswind: Any
    diffusivity: Any
    amount: Any


class PacketState(PuffState):
    """The state of a `PacketPlume`: that of any plume of puffs, and what each does across the wind.

    Attributes:
      crosswind: float32[N], the states of the packets' own velocities.
    """

    crosswind: jax.Array


@dataclass(frozen=True)
class PacketPlume(PuffPlume):
    """Round packets, `C = sum A / (pi r^2) exp(-d^2 / r^2)`, `r^2 = radius^2 + 4 D age`.

    They are born at Poisson moments and move with the wind where they are, and across it with their
    own velocities. The integral of C over the plane is A times their number.

    Attributes: those of `PuffPlume`, and
      crosswind: what the packets' own velocities do.
    """

    capacity: int = 96
    crosswind: Any = OrnsteinUhlenbeckCrosswind()
    unit = "amount a mm^2"

    def default_params(self) -> PacketParams:
        """Those of Kadakia et al. 2022; the box holds 40 packets on average.

        With their amount a newborn packet has concentration 1 at 1.75 of its radius. Of another
        wind than `Constant` the numbers are its own, and may want to be scaled to mm.
        """
        parts = self._own_defaults((0.0, 0.0))
        if self.wind == Constant():
            parts["wind"] = ConstantParams(velocity=np.asarray([150.0, 0.0], np.float32))
        return PacketParams(
            **parts,
            crosswind=self.crosswind.default_params(),
            radius=np.float32(4.0),
            diffusivity=np.float32(10.0),
            rate=np.float32(10.0),
            amount=np.float32(1074.7),
            low=np.asarray([-50.0, -600.0], np.float32),
            high=np.asarray([600.0, 600.0], np.float32),
            dt=np.float32(1 / 60),
        )

    def _begin(self, key: jax.Array, params: PacketParams) -> PacketState:
        return _with_crosswind(super()._begin(key, params), jnp.zeros(self.capacity, jnp.float32))

    def _step(self, key: jax.Array, state: PacketState, params: PacketParams) -> PacketState:
        walk_key, *keys = jax.random.split(key, 5)
        *words, birth_word = noise.words(walk_key, self.crosswind.num_words + 1, self.capacity)
        dt = jnp.asarray(params.dt, jnp.float32)
        crosswind, across = self.crosswind.advance(
            jnp.stack(words), state.crosswind, dt, params.crosswind
        )
        walk = jnp.stack([jnp.zeros_like(across), across])
        moved = self._carry(keys, state, euler, walk, params.rate, params)
        newborn = moved.particles.age == 0
        return _with_crosswind(
            moved, jnp.where(newborn, self.crosswind.stationary(birth_word), crosswind)
        )

    def sample(self, state: PacketState, positions: jax.Array, params: PacketParams) -> Air:
        packets, places = state.particles, positions.T
        square = jnp.square(jnp.asarray(params.radius, jnp.float32)) + 4 * (
            jnp.asarray(params.diffusivity, jnp.float32) * packets.age
        )
        amount = jnp.asarray(params.amount, jnp.float32)
        peak = jnp.where(packets.alive, amount / (np.float32(np.pi) * square), 0.0)
        squared = squared_distance(places, packets.position)
        concentration = jnp.sum(peak[None] * jnp.exp(-squared / square[None]), axis=1)
        return Air(concentration, self._felt_wind(state, places, positions, params))

    def validate(self, params: PacketParams) -> None:
        """Raise `ValidationError` if a number is not allowed."""
        super().validate(params)
        for name in ("diffusivity", "amount"):
            require_not_negative(name, getattr(params, name))
        self.crosswind.validate(params.crosswind, params.dt)


def _with_crosswind(state: PuffState, crosswind: jax.Array) -> PacketState:
    return PacketState(state.particles, state.wind, state.sources, crosswind)
