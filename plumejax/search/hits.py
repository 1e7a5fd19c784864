"""search/hits: sensors that detect, miss, count and err: thresholds, Poisson counts, noise."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from plumejax.base.errors import require
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


class ThresholdParams(WrapperParams):
    """Numbers of a `Threshold`, unit of the reading.

    Attributes:
      low: float32[], what is below turns it off, <= high.
      high: float32[], what is as much or more turns it on.
    """

    low: Any
    high: Any


class Switched(WrapperState):
    """What a `Threshold` keeps.

    Attributes:
      on: bool[k]; all off at the start.
    """

    on: jax.Array


@dataclass(frozen=True)
class Threshold(Wrapper):
    """1 if there is odour, else 0, float32[k]; between `low` and `high` it stays as it was.

    With low = high (the default: 1e-4, as in Singh et al. 2023, Nature Machine Intelligence 5: 58)
    it has no memory. It has no gradient.
    """

    def default_params(self) -> ThresholdParams:
        level = np.float32(1e-4)
        return ThresholdParams(of=self.of.default_params(), low=level, high=level)

    def start(self, params: Params) -> Switched:
        return Switched(of=self.of.start(inner(params)), on=clean(self, params) > 0)

    def respond(
        self, key: jax.Array, reading: jax.Array, state: Switched, params: Params
    ) -> tuple[jax.Array, Switched]:
        own = params.sensor
        on = (reading >= own.high) | (state.on & (reading >= own.low))
        return on.astype(jnp.float32), state.replace(on=on)

    def space(self, params: Params) -> Box:
        return Box(0.0, 1.0, self.of.space(inner(params)).shape)

    def hit(self, observation: jax.Array, params: Params) -> jax.Array:
        return jnp.any(observation > 0)

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` unless low <= high, or if the inner sensor does not fit."""
        super().validate(params)
        own = params.sensor
        good = np.all(np.asarray(own.low) <= np.asarray(own.high))
        require(good, "sensor.low", own.low, f"<= sensor.high, {own.high}")


class PoissonHitsParams(WrapperParams):
    """Numbers of a `PoissonHits`.

    Attributes:
      gain: float32[], >= 0, mean hits a step for a reading of 1.
    """

    gain: Any


@dataclass(frozen=True)
class PoissonHits(Wrapper):
    """A Poisson count of mean `gain * reading`, float32[k] in 0..num_hits-1.

    The last category means "or more": P(h) = pmf(h) for h < H-1, and P(H-1) the rest, as in Loisy
    and Eloy 2022 (Proceedings of the Royal Society A 478: 20220118). It has no gradient.

    Attributes:
      num_hits: H, >= 2; `plumes.encounters.num_hits` has their rule.
    """

    num_hits: int = 2

    draws = True

    def default_params(self) -> PoissonHitsParams:
        return PoissonHitsParams(of=self.of.default_params(), gain=np.float32(1.0))

    def respond(
        self, key: jax.Array, reading: jax.Array, state: WrapperState, params: Params
    ) -> tuple[jax.Array, WrapperState]:
        mean = params.sensor.gain * reading
        drawn = jax.random.uniform(key, reading.shape, jnp.float32)
        count, term = jnp.zeros_like(reading), jnp.exp(-mean)
        below = term
        for h in range(1, self.num_hits):
            count = count + (drawn >= below).astype(jnp.float32)
            term = term * (mean / h)
            below = below + term
        return count, state

    def space(self, params: Params) -> Box:
        return Box(0.0, float(self.num_hits - 1), self.of.space(inner(params)).shape)

    def hit(self, observation: jax.Array, params: Params) -> jax.Array:
        return jnp.any(observation > 0)

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` for a bad number, or if the reading may be negative."""
        super().validate(params)
        require_concentration(self, params)
        require(self.num_hits >= 2, "sensor.num_hits", self.num_hits, ">= 2")
        _require_not_negative("gain", params.sensor.gain)


class DetectionParams(WrapperParams):
    """Numbers of a `Detection`.

    Attributes:
      probability: float32[], in [0, 1], that a reading passes.
    """

    probability: Any


@dataclass(frozen=True)
class Detection(Wrapper):
    """Each reading, on its own, passes with a probability and is else 0; float32[k]."""

    draws = True

    def default_params(self) -> DetectionParams:
        return DetectionParams(of=self.of.default_params(), probability=np.float32(0.9))

    def respond(
        self, key: jax.Array, reading: jax.Array, state: WrapperState, params: Params
    ) -> tuple[jax.Array, WrapperState]:
        drawn = jax.random.uniform(key, reading.shape, jnp.float32)
        passes = drawn < params.sensor.probability
        return jnp.where(passes, reading, jnp.zeros_like(reading)), state

    def space(self, params: Params) -> Box:
        return with_zero(self.of.space(inner(params)))

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` unless the probability is in [0, 1]."""
        super().validate(params)
        value = params.sensor.probability
        good = np.all((np.asarray(value) >= 0) & (np.asarray(value) <= 1))
        require(good, "sensor.probability", value, "in [0, 1]")


@dataclass(frozen=True)
class Dead(Wrapper):
    """Some of the readings are 0 for ever, float32[k]: an antenna cut off, a broken sensor.

    Attributes:
      dead: the indices of those, in 0..k-1.
    """

    dead: tuple[int, ...]

    def respond(
        self, key: jax.Array, reading: jax.Array, state: WrapperState, params: Params
    ) -> tuple[jax.Array, WrapperState]:
        dead = np.isin(np.arange(reading.shape[0]), self.dead)
        return jnp.where(dead, jnp.zeros_like(reading), reading), state

    def space(self, params: Params) -> Box:
        return with_zero(self.of.space(inner(params)))

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` if there is no such reading."""
        super().validate(params)
        (k,) = self.of.space(inner(params)).shape
        good = all(0 <= i < k for i in self.dead)
        require(good, "sensor.dead", self.dead, f"indices in 0..{k - 1}")


class GaussianNoiseParams(WrapperParams):
    """Numbers of a `GaussianNoise`, both >= 0.

    Attributes:
      spread: float32[], standard deviation, unit of the reading.
      relative: float32[], standard deviation as a part of the reading.
    """

    spread: Any
    relative: Any


@dataclass(frozen=True)
class GaussianNoise(Wrapper):
    """reading + spread z1 + relative reading z2, z standard normal, float32[k].

    Cut to the space of the reading, so that a concentration stays >= 0 and saturated.
    """

    draws = True

    def default_params(self) -> GaussianNoiseParams:
        return GaussianNoiseParams(
            of=self.of.default_params(), spread=np.float32(0.01), relative=np.float32(0.0)
        )

    def respond(
        self, key: jax.Array, reading: jax.Array, state: WrapperState, params: Params
    ) -> tuple[jax.Array, WrapperState]:
        own, space = params.sensor, self.of.space(inner(params))
        z1, z2 = jax.random.normal(key, (2, *reading.shape), jnp.float32)
        noisy = reading + own.spread * z1 + own.relative * reading * z2
        low, high = (jnp.asarray(x, jnp.float32) for x in (space.low, space.high))
        return jnp.clip(noisy, low, high), state

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` for a spread below 0, or if the inner sensor does not fit."""
        super().validate(params)
        for name in ("spread", "relative"):
            _require_not_negative(name, getattr(params.sensor, name))


def _require_not_negative(name: str, value: Any) -> None:
    numbers = np.asarray(value)
    good = np.all((numbers >= 0) & np.isfinite(numbers))
    require(good, f"sensor.{name}", value, "finite and >= 0")
