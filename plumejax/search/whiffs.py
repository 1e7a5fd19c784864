"""search/whiffs: sensors of when odour came: the time since the last whiff, and a window's sums."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from plumejax.base.errors import require, require_positive
from plumejax.base.spaces import Box
from plumejax.search.state import Params
from plumejax.search.wrappers import (
    Wrapper,
    WrapperParams,
    WrapperState,
    clean,
    inner,
    require_concentration,
)


class TimeSinceWhiffParams(WrapperParams):
    """Numbers of a `TimeSinceWhiff`.

    Attributes:
      threshold: float32[], unit of the reading; what is above is odour.
      refractory: float32[], s, >= 0, how long after a whiff odour is none.
      longest: float32[], s, >= refractory, > 0; the clock stops here.
    """

    threshold: Any
    refractory: Any
    longest: Any


class Clock(WrapperState):
    """What a `TimeSinceWhiff` keeps.

    Attributes:
      since: float32[k], s, since the last whiff; `longest` at the start.
    """

    since: jax.Array


@dataclass(frozen=True)
class TimeSinceWhiff(Wrapper):
    """Seconds since the last whiff, float32[k] in [0, longest]; `longest` if there was none.

    A reading above the threshold is a whiff, unless one was within the refractory time: in steady
    odour the clock starts again each time that is over. The refractory time of 0.085 s is that of
    Jayaram et al. 2022, the threshold of 1e-4 that of Singh et al. 2023. It has no gradient.
    """

    def default_params(self) -> TimeSinceWhiffParams:
        return TimeSinceWhiffParams(
            of=self.of.default_params(),
            threshold=np.float32(1e-4),
            refractory=np.float32(0.085),
            longest=np.float32(10.0),
        )

    def start(self, params: Params) -> Clock:
        since = clean(self, params) + jnp.asarray(params.sensor.longest, jnp.float32)
        return Clock(of=self.of.start(inner(params)), since=since)

    def respond(
        self, key: jax.Array, reading: jax.Array, state: Clock, params: Params
    ) -> tuple[jax.Array, Clock]:
        own = params.sensor
        elapsed = jnp.minimum(state.since + params.dt, own.longest)
        whiff = (reading > own.threshold) & (elapsed >= own.refractory)
        since = jnp.where(whiff, jnp.zeros_like(elapsed), elapsed)
        return since, state.replace(since=since)

    def space(self, params: Params) -> Box:
        return Box(0.0, params.sensor.longest, self.of.space(inner(params)).shape)

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` for a bad number, or if the inner sensor does not fit."""
        super().validate(params)
        own = params.sensor
        require_positive("sensor.longest", own.longest)
        refractory = np.asarray(own.refractory)
        good = np.all((refractory >= 0) & (refractory <= np.asarray(own.longest)))
        require(good, "sensor.refractory", own.refractory, "in [0, sensor.longest] s")


class WhiffFeaturesParams(WrapperParams):
    """Numbers of a `WhiffFeatures`.

    Attributes:
      window: int32[], steps, at least `shortest`: the window at the start.
      shortest: int32[], steps, >= 1, below which it does not fall.
      fraction: float32[], >= 0, of the mean reading in the window that a whiff exceeds.
      floor: float32[], >= 0, unit of the reading, which a whiff exceeds too.
      longest: float32[], s, > 0, the most that the time since the last whiff counts to.
    """

    window: Any
    shortest: Any
    fraction: Any
    floor: Any
    longest: Any


class WhiffMemory(WrapperState):
    """What a `WhiffFeatures` keeps.

    Attributes:
      readings: float32[length], the last ones, the newest last; 0 before the start.
      window: int32[], T, steps.
      blank: int32[], steps without a whiff until now.
      since: float32[], s, since the last whiff; `longest` at the start.
    """

    readings: jax.Array
    window: jax.Array
    blank: jax.Array
    since: jax.Array


@dataclass(frozen=True)
class WhiffFeatures(Wrapper):
    """What the last T readings of one nose tell, T adapting to the blanks; float32[4]:

    the time since the last whiff, s, at most `longest`, and that if there was none; the frequency,
    1/s, whiffs in the window over its duration; the intermittency, the part of the window in
    whiffs; and the intensity, the mean reading in them, 0 if there are none.

    A reading is in a whiff if it exceeds max(fraction * mean of the window, floor), the window the
    last T readings with this one; before the start the air was clean. When a whiff ends a blank
    of b steps, the next T is b if b > T, else T - 1 but not below `shortest`. After Rando et al.
    2025 ("Q-learning with temporal memory to navigate turbulence"), whose numbers are the default.

    Attributes:
      length: the most that T can be, steps.
    """

    length: int = 64

    def default_params(self) -> WhiffFeaturesParams:
        return WhiffFeaturesParams(
            of=self.of.default_params(),
            window=np.int32(10),
            shortest=np.int32(5),
            fraction=np.float32(0.5),
            floor=np.float32(3e-6),
            longest=np.float32(10.0),
        )

    def start(self, params: Params) -> WhiffMemory:
        own = params.sensor
        return WhiffMemory(
            of=self.of.start(inner(params)),
            readings=jnp.zeros(self.length, jnp.float32),
            window=jnp.asarray(own.window, jnp.int32),
            blank=jnp.zeros((), jnp.int32),
            since=jnp.asarray(own.longest, jnp.float32),
        )

    def respond(
        self, key: jax.Array, reading: jax.Array, state: WhiffMemory, params: Params
    ) -> tuple[jax.Array, WhiffMemory]:
        own, dt = params.sensor, params.dt
        readings = jnp.concatenate([state.readings[1:], reading])
        age = np.arange(self.length, dtype=np.int32)[::-1]
        steps = state.window.astype(jnp.float32)
        within = jnp.asarray(age < state.window)
        mean = jnp.sum(jnp.where(within, readings, 0.0)) / steps
        above = within & (readings > jnp.maximum(own.fraction * mean, own.floor))
        whiff = above[-1]

        starts = above & ~jnp.concatenate([jnp.zeros(1, bool), above[:-1]])
        count = _count(above)
        intensity = jnp.sum(jnp.where(above, readings, 0.0)) / jnp.maximum(count, 1.0)
        since = jnp.where(whiff, jnp.float32(0.0), jnp.minimum(state.since + dt, own.longest))
        # The mean of equal readings may round to more than each.
        most = self._most(params)
        features = [
            since,
            _count(starts) / (steps * dt),
            count / steps,
            jnp.minimum(intensity, most),
        ]
        kept = state.replace(
            readings=readings,
            window=jnp.where(whiff, self._adapted(state, params), state.window),
            blank=jnp.where(whiff, jnp.int32(0), state.blank + jnp.int32(1)),
            since=since,
        )
        return jnp.stack(features), kept

    def _adapted(self, state: WhiffMemory, params: Params) -> jax.Array:
        """int32[]: T after a whiff; as it was if there was no blank before it."""
        shorter = jnp.maximum(state.window - jnp.int32(1), params.sensor.shortest)
        longer = jnp.minimum(state.blank, jnp.int32(self.length))
        adapted = jnp.where(state.blank > state.window, longer, shorter)
        return jnp.where(state.blank > 0, adapted, state.window)

    def _most(self, params: Params) -> jax.Array:
        """float32[]: the highest reading there can be."""
        space = self.of.space(inner(params))
        high = jnp.asarray(space.high, jnp.float32)
        return high[0] if high.shape == space.shape else high

    def space(self, params: Params) -> Box:
        quickest = 1.0 / jnp.asarray(params.dt, jnp.float32)
        one = jnp.ones((), jnp.float32)
        longest = jnp.asarray(params.sensor.longest, jnp.float32)
        most = jnp.broadcast_arrays(longest, quickest, one, self._most(params))
        return Box(0.0, jnp.stack(most, axis=-1), (4,))

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` for a bad number, or unless there is one reading, >= 0."""
        super().validate(params)
        require_concentration(self, params)
        own = params.sensor
        shape = self.of.space(inner(params)).shape
        require(shape == (1,), "sensor.of", self.of, "a sensor with one reading")
        shortest, window = np.asarray(own.shortest), np.asarray(own.window)
        require(np.all(shortest >= 1), "sensor.shortest", own.shortest, ">= 1 step")
        good = np.all((window >= shortest) & (window <= self.length))
        require(good, "sensor.window", own.window, f"in [sensor.shortest, {self.length}] steps")
        require_positive("sensor.longest", own.longest)
        for name in ("fraction", "floor"):
            value = getattr(own, name)
            require(np.all(np.asarray(value) >= 0), f"sensor.{name}", value, ">= 0")


def _count(these: jax.Array) -> jax.Array:
    """float32[]: how many of bool[n] are True."""
    return jnp.sum(these.astype(jnp.float32))
