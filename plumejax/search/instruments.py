"""search/instruments: gas sensors as robots carry them, metal oxide and photo-ionisation."""

from dataclasses import dataclass
from math import log, pi
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from plumejax.base.errors import require, require_positive
from plumejax.base.spaces import Box
from plumejax.search.filters import Filtered, relaxed
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

TGS2620 = (2.96, 15.71)
"""Rise and decay, s, of Figaro's TGS 2620, as in GADEN's simulated sensor."""

TGS2600 = (4.8, 18.75)
"""The same of the TGS 2600."""

TGS2611 = (3.44, 6.35)
"""The same of the TGS 2611."""


class MOXParams(WrapperParams):
    """Numbers of a `MOX`.

    Attributes:
      rise: float32[], s, > 0, the time constant while there is more gas than it shows.
      decay: float32[], s, > 0, while there is less.
    """

    rise: Any
    decay: Any


@dataclass(frozen=True)
class MOX(Wrapper):
    """A metal-oxide gas sensor: quick to see gas and slow to forget it; float32[k].

    A double first-order model (Monroy, Gonzalez-Jimenez, Blanco 2012, Sensors 12: 13664):
    tau dv/dt = reading - v, v = 0 at the start, tau = rise where the reading is above v, else
    decay; solved exactly. It shows the concentration; for the resistance put `Resistance` around
    it. The default numbers are `TGS2620`; these and others were measured for GADEN (Monroy et al.
    2017, Sensors 17: 1479; the constants are in its program).
    """

    def default_params(self) -> MOXParams:
        rise, decay = TGS2620
        return MOXParams(
            of=self.of.default_params(), rise=np.float32(rise), decay=np.float32(decay)
        )

    def start(self, params: Params) -> Filtered:
        return Filtered(of=self.of.start(inner(params)), value=clean(self, params))

    def respond(
        self, key: jax.Array, reading: jax.Array, state: Filtered, params: Params
    ) -> tuple[jax.Array, Filtered]:
        own = params.sensor
        tau = jnp.where(reading > state.value, own.rise, own.decay)
        value = relaxed(state.value, reading, tau, params.dt)
        return value, state.replace(value=value)

    def space(self, params: Params) -> Box:
        return with_zero(self.of.space(inner(params)))

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` if a time constant is not > 0."""
        super().validate(params)
        for name in ("rise", "decay"):
            require_positive(f"sensor.{name}", getattr(params.sensor, name))


class ResistanceParams(WrapperParams):
    """Numbers of a `Resistance`.

    Attributes:
      sensitivity: float32[], > 0, a, one over the unit of the reading.
      exponent: float32[], > 0, b.
    """

    sensitivity: Any
    exponent: Any


@dataclass(frozen=True)
class Resistance(Wrapper):
    """R / R_air = (1 + a c)^-b, float32[k] in (0, 1]: 1 in clean air, a power law in much gas.

    The default numbers are those of a TGS 2620 in ethanol in ppm: GADEN fits the data sheet by
    R / R0 = 62.32 c^-0.7155, and R_air / R0 = 21; the two lines meet at 1 / a = 4.57 ppm.
    """

    def default_params(self) -> ResistanceParams:
        exponent = 0.7155
        sensitivity = (21.0 / 62.32) ** (1.0 / exponent)
        return ResistanceParams(
            of=self.of.default_params(),
            sensitivity=np.float32(sensitivity),
            exponent=np.float32(exponent),
        )

    def respond(
        self, key: jax.Array, reading: jax.Array, state: WrapperState, params: Params
    ) -> tuple[jax.Array, WrapperState]:
        own = params.sensor
        return jnp.exp(-own.exponent * jnp.log1p(own.sensitivity * reading)), state

    def space(self, params: Params) -> Box:
        return Box(0.0, 1.0, self.of.space(inner(params)).shape)

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` for a number not > 0, or if the reading may be negative."""
        super().validate(params)
        require_concentration(self, params)
        for name in ("sensitivity", "exponent"):
            require_positive(f"sensor.{name}", getattr(params.sensor, name))


FAST_PID = (1 / (2 * pi * 330), 0.0)
"""Time constant, s, and limit of a fast PID with a pump. The bandwidth of 330 Hz is said to be that
of Aurora Scientific's miniPID 200B; we have not seen it in a data sheet."""

DIFFUSION_PID = (3.0 / log(10.0), 0.1)
"""Time constant, s, and limit, ppm, of a PID without a pump: 90 % in 3 s, which ION Science states
of its MiniPID 2 for 0 to 4000 ppm of isobutylene."""


class PIDParams(WrapperParams):
    """Numbers of a `PID`.

    Attributes:
      tau: float32[], s, > 0, the time constant.
      limit: float32[], >= 0, unit of the reading, the least that is detected.
    """

    tau: Any
    limit: Any


@dataclass(frozen=True)
class PID(Wrapper):
    """A photo-ionisation detector: a first-order low-pass that shows 0 below its limit; float32[k].

    The default numbers are `FAST_PID`; the limit, which is one of a gas in a unit, is for the user.
    """

    def default_params(self) -> PIDParams:
        tau, limit = FAST_PID
        return PIDParams(of=self.of.default_params(), tau=np.float32(tau), limit=np.float32(limit))

    def start(self, params: Params) -> Filtered:
        return Filtered(of=self.of.start(inner(params)), value=clean(self, params))

    def respond(
        self, key: jax.Array, reading: jax.Array, state: Filtered, params: Params
    ) -> tuple[jax.Array, Filtered]:
        own = params.sensor
        value = relaxed(state.value, reading, own.tau, params.dt)
        shown = jnp.where(value >= own.limit, value, jnp.zeros_like(value))
        return shown, state.replace(value=value)

    def space(self, params: Params) -> Box:
        return with_zero(self.of.space(inner(params)))

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` for a bad number, or if the reading may be negative."""
        super().validate(params)
        require_concentration(self, params)
        require_positive("sensor.tau", params.sensor.tau)
        limit = np.asarray(params.sensor.limit)
        good = np.all((limit >= 0) & np.isfinite(limit))
        require(good, "sensor.limit", params.sensor.limit, "finite and >= 0")
