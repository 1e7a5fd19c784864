"""search/filters: sensors with a memory: low-pass, adaptation, ON and OFF, delay, history."""

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
    with_zero,
)


class LowPassParams(WrapperParams):
    """Numbers of a `LowPass`.

    Attributes:
      tau: float32[], s, > 0, the time constant.
    """

    tau: Any


class Filtered(WrapperState):
    """What a first-order filter keeps.

    Attributes:
      value: float32[k], its output; 0 at the start.
    """

    value: jax.Array


@dataclass(frozen=True)
class LowPass(Wrapper):
    """A first-order low-pass, tau dv/dt = reading - v, v = 0 at the start; float32[k].

    Solved exactly: a step of the reading answers with 1 - exp(-t / tau), however fine the steps.
    The default is the time constant of the ON filter of Alvarez-Salvado et al. 2018, 0.72 s.
    """

    def default_params(self) -> LowPassParams:
        return LowPassParams(of=self.of.default_params(), tau=np.float32(0.72))

    def start(self, params: Params) -> Filtered:
        return Filtered(of=self.of.start(inner(params)), value=clean(self, params))

    def respond(
        self, key: jax.Array, reading: jax.Array, state: Filtered, params: Params
    ) -> tuple[jax.Array, Filtered]:
        value = relaxed(state.value, reading, params.sensor.tau, params.dt)
        return value, state.replace(value=value)

    def space(self, params: Params) -> Box:
        return with_zero(self.of.space(inner(params)))

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` if tau is not > 0, or the inner sensor does not fit."""
        super().validate(params)
        require_positive("sensor.tau", params.sensor.tau)


class AdaptationParams(WrapperParams):
    """Numbers of an `Adaptation`.

    Attributes:
      tau: float32[], s, > 0, how fast it adapts.
      scale: float32[], > 0, unit of the reading: the reading that an unadapted nose sees as 1/2.
    """

    tau: Any
    scale: Any


@dataclass(frozen=True)
class Adaptation(Wrapper):
    """The reading compressed against its own recent past; float32[k] in [0, 1].

    tau dA/dt = c - A, A = 0 at the start, and then C = c / (c + scale + A).

    The formula and the numbers (9.8 s, that is 490 samples at 50 Hz, and 0.01) are those of
    Alvarez-Salvado et al. 2018 (eLife 7: e37815), the adaptation of walking flies to odour.
    """

    def default_params(self) -> AdaptationParams:
        return AdaptationParams(
            of=self.of.default_params(), tau=np.float32(9.8), scale=np.float32(0.01)
        )

    def start(self, params: Params) -> Filtered:
        return Filtered(of=self.of.start(inner(params)), value=clean(self, params))

    def respond(
        self, key: jax.Array, reading: jax.Array, state: Filtered, params: Params
    ) -> tuple[jax.Array, Filtered]:
        own = params.sensor
        value = relaxed(state.value, reading, own.tau, params.dt)
        return compressed(reading, value, own.scale), state.replace(value=value)

    def space(self, params: Params) -> Box:
        return Box(0.0, 1.0, self.of.space(inner(params)).shape)

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` for a number not > 0, or if the reading may be negative."""
        super().validate(params)
        require_concentration(self, params)
        for name in ("tau", "scale"):
            require_positive(f"sensor.{name}", getattr(params.sensor, name))


class OnOffParams(WrapperParams):
    """Numbers of an `OnOff`; the time constants are float32[], s, > 0.

    Attributes:
      scale: float32[], > 0, unit of the reading: the reading that an unadapted nose sees as 1/2.
      adapt_on, adapt_off: how fast each way adapts.
      on: of the low-pass that ON is.
      fast, slow: of the two low-passes whose difference OFF is.
    """

    scale: Any
    adapt_on: Any
    on: Any
    adapt_off: Any
    fast: Any
    slow: Any


class OnOffState(WrapperState):
    """What an `OnOff` keeps, float32[k] each, 0 at the start; see its formulas."""

    adapted_on: jax.Array
    on: jax.Array
    adapted_off: jax.Array
    fast: jax.Array
    slow: jax.Array


@dataclass(frozen=True)
class OnOff(Wrapper):
    """What of the odour a walking fly steers by: float32[2k], first ON, then OFF, in [0, 1].

    With T x' = y - x for a low-pass of y to x of time constant T, all of them 0 at the start,
    adapt_on A' = c - A, on ON' = c / (c + scale + A) - ON;
    adapt_off B' = c - B, C = c / (c + scale + B), fast R' = C - R, slow S' = C - S,
    OFF = max(0, S - R).

    From Alvarez-Salvado et al. 2018 (eLife 7: e37815), whose numbers, in samples at 50 Hz, are 490,
    36, 504, 31 and 242. Each filter is solved exactly for what came into it before the step
    (exponential Euler); so stepped, the fly walks as fast as published.
    """

    def default_params(self) -> OnOffParams:
        return OnOffParams(
            of=self.of.default_params(),
            scale=np.float32(0.01),
            adapt_on=np.float32(490 / 50),
            on=np.float32(36 / 50),
            adapt_off=np.float32(504 / 50),
            fast=np.float32(31 / 50),
            slow=np.float32(242 / 50),
        )

    def start(self, params: Params) -> OnOffState:
        return OnOffState(self.of.start(inner(params)), *[clean(self, params)] * 5)

    def respond(
        self, key: jax.Array, reading: jax.Array, state: OnOffState, params: Params
    ) -> tuple[jax.Array, OnOffState]:
        state = smelled(reading, state, params.sensor, params.dt)
        return jnp.concatenate(on_and_off(state)), state

    def space(self, params: Params) -> Box:
        (k,) = self.of.space(inner(params)).shape
        return Box(0.0, 1.0, (2 * k,))

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` for a number not > 0, or if the reading may be negative."""
        super().validate(params)
        require_concentration(self, params)
        for name in ("scale", "adapt_on", "on", "adapt_off", "fast", "slow"):
            require_positive(f"sensor.{name}", getattr(params.sensor, name))


class Recent(WrapperState):
    """What a sensor keeps that remembers readings.

    Attributes:
      readings: float32[n, k], the last n, the newest last.
      begun: bool[], whether there was a reading.
    """

    readings: jax.Array
    begun: jax.Array


@dataclass(frozen=True)
class Delay(Wrapper):
    """The reading of `steps` steps ago; the first reading, while that was before it; float32[k].

    Attributes:
      steps: >= 1; the delay is `steps * dt` seconds.
    """

    steps: int

    def start(self, params: Params) -> Recent:
        return _none_yet(self, self.steps, params)

    def respond(
        self, key: jax.Array, reading: jax.Array, state: Recent, params: Params
    ) -> tuple[jax.Array, Recent]:
        readings = jnp.where(state.begun, state.readings, reading[None])
        return readings[0], _remember(state.replace(readings=readings), reading)

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` if steps is not >= 1, or the inner sensor does not fit."""
        super().validate(params)
        require(self.steps >= 1, "sensor.steps", self.steps, ">= 1")


@dataclass(frozen=True)
class History(Wrapper):
    """The last `length` readings in one row, the newest last, float32[length * k].

    Before there was a reading, 0.

    Attributes:
      length: >= 1.
    """

    length: int

    def start(self, params: Params) -> Recent:
        return _none_yet(self, self.length, params)

    def respond(
        self, key: jax.Array, reading: jax.Array, state: Recent, params: Params
    ) -> tuple[jax.Array, Recent]:
        state = _remember(state, reading)
        return state.readings.reshape(-1), state

    def space(self, params: Params) -> Box:
        one = with_zero(self.of.space(inner(params)))
        low, high = (
            jnp.tile(x, self.length) if x.shape == one.shape else x for x in (one.low, one.high)
        )
        return Box(low, high, (self.length * one.shape[0],))

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` if length is not >= 1, or the inner sensor does not fit."""
        super().validate(params)
        require(self.length >= 1, "sensor.length", self.length, ">= 1")


@dataclass(frozen=True)
class Difference(Wrapper):
    """The reading minus the one before it, float32[k]; 0 at first."""

    def start(self, params: Params) -> Recent:
        return _none_yet(self, 1, params)

    def respond(
        self, key: jax.Array, reading: jax.Array, state: Recent, params: Params
    ) -> tuple[jax.Array, Recent]:
        change = jnp.where(state.begun, reading - state.readings[0], jnp.zeros_like(reading))
        return change, _remember(state, reading)

    def space(self, params: Params) -> Box:
        one = self.of.space(inner(params))
        most = jnp.asarray(one.high, jnp.float32) - jnp.asarray(one.low, jnp.float32)
        return Box(-most, most, one.shape)


def relaxed(value: jax.Array, target: jax.Array, tau: Any, dt: Any) -> jax.Array:
    """float32[k]: where `value` is after `dt` seconds of tau dv/dt = target - v, exactly."""
    gain = jnp.asarray(-jnp.expm1(-dt / tau), jnp.float32)
    # At once there: by a sum, rounding could carry it past the target and out of its space.
    return jnp.where(gain < 1, value + (target - value) * gain, target)


def smelled(reading: jax.Array, state: Any, numbers: Any, dt: Any) -> Any:
    """The filters of `OnOff` after `dt` seconds of a reading.

    Args:
      reading: float32[k], >= 0.
      state: with the filters of `OnOffState`.
      numbers: those of `OnOffParams`.
      dt: float32[], s.
    """
    for_on = compressed(reading, state.adapted_on, numbers.scale)
    for_off = compressed(reading, state.adapted_off, numbers.scale)
    return state.replace(
        adapted_on=relaxed(state.adapted_on, reading, numbers.adapt_on, dt),
        on=relaxed(state.on, for_on, numbers.on, dt),
        adapted_off=relaxed(state.adapted_off, reading, numbers.adapt_off, dt),
        fast=relaxed(state.fast, for_off, numbers.fast, dt),
        slow=relaxed(state.slow, for_off, numbers.slow, dt),
    )


def on_and_off(state: Any) -> tuple[jax.Array, jax.Array]:
    """ON and OFF, float32[k] each, by the filters of `OnOff`."""
    return state.on, jnp.maximum(state.slow - state.fast, 0.0)


def compressed(reading: jax.Array, adapted: jax.Array, scale: Any) -> jax.Array:
    """float32[k]: c / (c + scale + A), in [0, 1]; the reading c and the adapted A are >= 0."""
    return reading / (reading + (scale + adapted))


def _none_yet(sensor: Wrapper, n: int, params: Params) -> Recent:
    readings = jnp.tile(clean(sensor, params)[None], (n, 1))
    of = sensor.of.start(inner(params))
    return Recent(of=of, readings=readings, begun=jnp.asarray(False))


def _remember(state: Recent, reading: jax.Array) -> Recent:
    # Moved along rather than written at an index: under vmap an index would be a scatter.
    readings = jnp.concatenate([state.readings[1:], reading[None]])
    return state.replace(readings=readings, begun=jnp.asarray(True))
