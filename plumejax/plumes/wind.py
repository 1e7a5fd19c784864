"""plumes/wind: how the air moves as a whole: constant, switching, wandering, swinging, recorded.

A wind is a frozen dataclass with `default_params()`, `start(key, params) -> state`,
`advance(key, state, dt, params) -> state`, `at(state, positions float32[d, n], params) ->
float32[2, n]`, `mean(params) -> float32[2]` and `validate(params)`; `random_start` and
`random_step` say whether its keys are used. The winds here are the same everywhere; those of
`filaments` and `flow` depend on the place. Velocities are where the air goes to, lengths of the
plume a second; directions are degrees counter-clockwise from +x. All of them start stationary.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.base.errors import require


def everywhere(velocity: Any, positions: jax.Array) -> jax.Array:
    """float32[2, n]: float32[2] at each of float32[d, n]."""
    velocity = jnp.asarray(velocity, jnp.float32)
    return jnp.broadcast_to(velocity[:, None], (2, positions.shape[1]))


def blowing(speed: Any, direction: Any) -> jax.Array:
    """float32[2]: the velocity of `speed` towards `direction`, float32[] degrees."""
    angle = jnp.deg2rad(jnp.asarray(direction, jnp.float32))
    return jnp.asarray(speed, jnp.float32) * jnp.stack([jnp.cos(angle), jnp.sin(angle)])


class ConstantParams(struct.PyTreeNode):
    """Numbers of a `Constant` wind.

    Attributes:
      velocity: float32[2], lengths a second.
    """

    velocity: Any


@dataclass(frozen=True)
class Constant:
    """Always the same; the state is empty."""

    random_start = random_step = False

    def default_params(self) -> ConstantParams:
        return ConstantParams(velocity=np.asarray([0.5, 0.0], np.float32))

    def start(self, key: jax.Array, params: ConstantParams) -> tuple[()]:
        return ()

    def advance(self, key: jax.Array, state: tuple[()], dt: Any, params: Any) -> tuple[()]:
        return state

    def at(self, state: tuple[()], positions: jax.Array, params: ConstantParams) -> jax.Array:
        return everywhere(params.velocity, positions)

    def mean(self, params: ConstantParams) -> jax.Array:
        return jnp.asarray(params.velocity, jnp.float32)

    def validate(self, params: ConstantParams) -> None:
        """Raise `ValidationError` if the velocity is not finite."""
        require_finite("velocity", params.velocity)


class SwitchOnceParams(struct.PyTreeNode):
    """Numbers of a `SwitchOnce` wind.

    Attributes:
      velocity: float32[2], before the switch, lengths a second.
      turn: float32[], degrees by which it turns, counter-clockwise.
      time: float32[], seconds from the start to the switch, >= 0.
    """

    velocity: Any
    turn: Any
    time: Any


@dataclass(frozen=True)
class SwitchOnce:
    """Turns once (Singh et al. 2023, switch-once); the state is the time, float32[] seconds."""

    random_start = random_step = False

    def default_params(self) -> SwitchOnceParams:
        return SwitchOnceParams(
            velocity=np.asarray([0.5, 0.0], np.float32),
            turn=np.float32(45.0),
            time=np.float32(60.0),
        )

    def start(self, key: jax.Array, params: SwitchOnceParams) -> jax.Array:
        return jnp.zeros((), jnp.float32)

    def advance(self, key: jax.Array, state: jax.Array, dt: Any, params: Any) -> jax.Array:
        return state + dt

    def at(self, state: jax.Array, positions: jax.Array, params: SwitchOnceParams) -> jax.Array:
        before = jnp.asarray(params.velocity, jnp.float32)
        angle = jnp.deg2rad(jnp.asarray(params.turn, jnp.float32))
        cos, sin = jnp.cos(angle), jnp.sin(angle)
        after = jnp.stack([cos * before[0] - sin * before[1], sin * before[0] + cos * before[1]])
        return everywhere(jnp.where(state < params.time, before, after), positions)

    def mean(self, params: SwitchOnceParams) -> jax.Array:
        """float32[2]: that before the switch."""
        return jnp.asarray(params.velocity, jnp.float32)

    def validate(self, params: SwitchOnceParams) -> None:
        """Raise `ValidationError` if a number is not allowed."""
        require_finite("velocity", params.velocity)
        require_finite("turn", params.turn)
        require_least("time", params.time, 0.0)


class SwitchManyParams(struct.PyTreeNode):
    """Numbers of a `SwitchMany` wind.

    Attributes:
      speed: float32[], lengths a second, >= 0.
      direction: float32[], degrees, the mean direction.
      spread: float32[], degrees, standard deviation of a direction before it is clipped, >= 0.
      limit: float32[], degrees, at most so far from the mean direction, >= 0.
      interval: float32[], mean seconds from a switch to the next, > 0.
      jitter: float32[], an interval is uniform within this fraction of its mean, in [0, 1).
    """

    speed: Any
    direction: Any
    spread: Any
    limit: Any
    interval: Any
    jitter: Any


class SwitchManyState(struct.PyTreeNode):
    """Attributes: `offset` float32[] degrees from the mean direction, `left` float32[] seconds."""

    offset: jax.Array
    left: jax.Array


@dataclass(frozen=True)
class SwitchMany:
    """Takes a new direction now and then (Singh et al. 2023, switch-many)."""

    random_start = random_step = True

    def default_params(self) -> SwitchManyParams:
        numbers = {"speed": 0.5, "direction": 0.0, "spread": 30.0, "limit": 60.0}
        numbers |= {"interval": 3.0, "jitter": 0.1}
        return SwitchManyParams(**{name: np.float32(x) for name, x in numbers.items()})

    def start(self, key: jax.Array, params: SwitchManyParams) -> SwitchManyState:
        turn, length, elapsed = jax.random.split(key, 3)
        # A moment is more likely to fall into a long interval: its length is drawn by that.
        jitter = jnp.asarray(params.jitter, jnp.float32)
        low, high = jnp.square(1 - jitter), jnp.square(1 + jitter)
        stretch = jnp.sqrt(low + jax.random.uniform(length, (), jnp.float32) * (high - low))
        left = jax.random.uniform(elapsed, (), jnp.float32) * stretch * params.interval
        return SwitchManyState(self._offset(turn, params), left)

    def advance(
        self, key: jax.Array, state: SwitchManyState, dt: Any, params: SwitchManyParams
    ) -> SwitchManyState:
        turn, length = jax.random.split(key)
        stretch = jax.random.uniform(length, (), jnp.float32, -1.0, 1.0) * params.jitter
        left = state.left - dt
        over = left <= 0
        return SwitchManyState(
            offset=jnp.where(over, self._offset(turn, params), state.offset),
            left=jnp.where(over, left + params.interval * (1 + stretch), left),
        )

    def at(
        self, state: SwitchManyState, positions: jax.Array, params: SwitchManyParams
    ) -> jax.Array:
        return everywhere(blowing(params.speed, params.direction + state.offset), positions)

    def mean(self, params: SwitchManyParams) -> jax.Array:
        """float32[2]: the speed in the mean direction (the vector's mean is shorter)."""
        return blowing(params.speed, params.direction)

    def validate(self, params: SwitchManyParams) -> None:
        """Raise `ValidationError` if a number is not allowed."""
        require_finite("direction", params.direction)
        for name in ("speed", "spread", "limit"):
            require_least(name, getattr(params, name), 0.0)
        require_more("interval", params.interval, 0.0)
        jitter = np.asarray(params.jitter)
        good = np.all((jitter >= 0) & (jitter < 1))
        require(good, "plume.wind.jitter", params.jitter, "in [0, 1)")

    def _offset(self, key: jax.Array, params: SwitchManyParams) -> jax.Array:
        drawn = jnp.asarray(params.spread, jnp.float32) * jax.random.normal(key, (), jnp.float32)
        return jnp.clip(drawn, -jnp.asarray(params.limit), jnp.asarray(params.limit))


class OrnsteinUhlenbeckParams(struct.PyTreeNode):
    """Numbers of an `OrnsteinUhlenbeck` wind.

    Attributes:
      velocity: float32[2], the mean, lengths a second.
      spread: float32[2], standard deviation of each component about it, >= 0.
      time: float32[], seconds in which the correlation falls by e, > 0.
    """

    velocity: Any
    spread: Any
    time: Any


@dataclass(frozen=True)
class OrnsteinUhlenbeck:
    """Both components wander about their means; the state is the deviation, float32[2].

    The update is exact, so the law does not depend on dt.
    """

    random_start = random_step = True

    def default_params(self) -> OrnsteinUhlenbeckParams:
        return OrnsteinUhlenbeckParams(
            velocity=np.asarray([0.5, 0.0], np.float32),
            spread=np.asarray([0.1, 0.1], np.float32),
            time=np.float32(5.0),
        )

    def start(self, key: jax.Array, params: OrnsteinUhlenbeckParams) -> jax.Array:
        return jnp.asarray(params.spread, jnp.float32) * jax.random.normal(key, (2,), jnp.float32)

    def advance(
        self, key: jax.Array, state: jax.Array, dt: Any, params: OrnsteinUhlenbeckParams
    ) -> jax.Array:
        decay = jnp.exp(-jnp.asarray(dt, jnp.float32) / params.time)
        return ornstein_uhlenbeck(key, state, decay, params.spread)

    def at(
        self, state: jax.Array, positions: jax.Array, params: OrnsteinUhlenbeckParams
    ) -> jax.Array:
        return everywhere(self.mean(params) + state, positions)

    def mean(self, params: OrnsteinUhlenbeckParams) -> jax.Array:
        return jnp.asarray(params.velocity, jnp.float32)

    def validate(self, params: OrnsteinUhlenbeckParams) -> None:
        """Raise `ValidationError` if a number is not allowed."""
        require_finite("velocity", params.velocity)
        require_least("spread", params.spread, 0.0)
        require_more("time", params.time, 0.0)


def ornstein_uhlenbeck(key: jax.Array, state: jax.Array, decay: Any, spread: Any) -> jax.Array:
    """The exact step of Ornstein-Uhlenbeck processes, float32[...].

    Args:
      key: used once.
      state: the processes now.
      decay: `exp(-dt / time)`, in [0, 1].
      spread: their stationary standard deviation; broadcasts against `state`.
    """
    kick = jnp.asarray(spread, jnp.float32) * jnp.sqrt(1 - jnp.square(decay))
    return decay * state + kick * jax.random.normal(key, state.shape, jnp.float32)


class MeanderParams(struct.PyTreeNode):
    """Numbers of a `Meander`.

    Attributes:
      speed: float32[], lengths a second, >= 0.
      direction: float32[], degrees, in the middle of the swing.
      amplitude: float32[], degrees, >= 0.
      period: float32[], seconds, > 0.
    """

    speed: Any
    direction: Any
    amplitude: Any
    period: Any


@dataclass(frozen=True)
class Meander:
    """The direction swings as a sine; the state is the phase, float32[] in [0, 1)."""

    random_start = True
    random_step = False

    def default_params(self) -> MeanderParams:
        numbers = {"speed": 0.5, "direction": 0.0, "amplitude": 20.0, "period": 20.0}
        return MeanderParams(**{name: np.float32(x) for name, x in numbers.items()})

    def start(self, key: jax.Array, params: MeanderParams) -> jax.Array:
        return jax.random.uniform(key, (), jnp.float32)

    def advance(self, key: jax.Array, state: jax.Array, dt: Any, params: Any) -> jax.Array:
        phase = state + jnp.asarray(dt, jnp.float32) / params.period
        return phase - jnp.floor(phase)

    def at(self, state: jax.Array, positions: jax.Array, params: MeanderParams) -> jax.Array:
        swing = jnp.sin(state * np.float32(2 * np.pi))
        return everywhere(
            blowing(params.speed, params.direction + params.amplitude * swing), positions
        )

    def mean(self, params: MeanderParams) -> jax.Array:
        """float32[2]: the speed in the middle direction (the vector's mean is shorter)."""
        return blowing(params.speed, params.direction)

    def validate(self, params: MeanderParams) -> None:
        """Raise `ValidationError` if a number is not allowed."""
        require_finite("direction", params.direction)
        require_least("speed", params.speed, 0.0)
        require_least("amplitude", params.amplitude, 0.0)
        require_more("period", params.period, 0.0)


class RecordedWindParams(struct.PyTreeNode):
    """Numbers of a `RecordedWind`.

    Attributes:
      velocities: float32[T, 2], one after another, lengths a second.
      seconds: float32[], from one to the next, > 0.
    """

    velocities: Any
    seconds: Any


@dataclass(frozen=True)
class RecordedWind:
    """A recorded series in a loop, linear between its samples, from a phase drawn uniformly.

    The state is the time in samples, float32[]. What jumps from the last sample to the first is the
    recording, not the air.

    Attributes:
      num_frames: samples of the series, T.
    """

    num_frames: int
    random_start = True
    random_step = False

    def default_params(self) -> RecordedWindParams:
        velocities = np.zeros((self.num_frames, 2), np.float32)
        return RecordedWindParams(velocities=velocities, seconds=np.float32(1.0))

    def start(self, key: jax.Array, params: RecordedWindParams) -> jax.Array:
        return jax.random.uniform(key, (), jnp.float32) * self.num_frames

    def advance(self, key: jax.Array, state: jax.Array, dt: Any, params: Any) -> jax.Array:
        time = state + jnp.asarray(dt, jnp.float32) / params.seconds
        return time - self.num_frames * jnp.floor(time / self.num_frames)

    def at(self, state: jax.Array, positions: jax.Array, params: RecordedWindParams) -> jax.Array:
        velocities = jnp.asarray(params.velocities)
        last = jnp.floor(state)
        index = last.astype(jnp.int32)
        here, there = velocities[index % self.num_frames], velocities[(index + 1) % self.num_frames]
        return everywhere(here + (state - last) * (there - here), positions)

    def mean(self, params: RecordedWindParams) -> jax.Array:
        return jnp.mean(jnp.asarray(params.velocities), axis=-2)

    def validate(self, params: RecordedWindParams) -> None:
        """Raise `ValidationError` if the series does not fit or holds what is no number."""
        shape = np.shape(params.velocities)
        fits = shape[-2:] == (self.num_frames, 2)
        require(fits, "plume.wind.velocities.shape", shape, f"({self.num_frames}, 2)")
        require_finite("velocities", params.velocities)
        require_more("seconds", params.seconds, 0.0)


def require_finite(name: str, value: Any) -> None:
    """Raise `ValidationError` unless every number of `plume.wind.<name>` is finite."""
    require(np.all(np.isfinite(np.asarray(value))), f"plume.wind.{name}", value, "finite")


def require_least(name: str, value: Any, least: float) -> None:
    """Raise `ValidationError` unless every number of `plume.wind.<name>` is >= `least`."""
    array = np.asarray(value)
    good = np.all((array >= least) & np.isfinite(array))
    require(good, f"plume.wind.{name}", value, f">= {least:g} and finite")


def require_more(name: str, value: Any, least: float) -> None:
    """Raise `ValidationError` unless every number of `plume.wind.<name>` is > `least`."""
    array = np.asarray(value)
    good = np.all((array > least) & np.isfinite(array))
    require(good, f"plume.wind.{name}", value, f"> {least:g} and finite")
