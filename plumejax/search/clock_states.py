"""search/clock_states: a sensor whose only state is how long ago the last whiff was."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from plumejax.base.errors import require, require_positive
from plumejax.base.spaces import Discrete
from plumejax.search.state import Params
from plumejax.search.whiffs import TimeSinceWhiff
from plumejax.search.wrappers import Wrapper, WrapperParams, WrapperState, inner


class ClockStatesParams(WrapperParams):
    """Numbers of a `ClockStates`.

    Attributes:
      tick: float32[], s, > 0: how long each state but the void lasts.
    """

    tick: Any


@dataclass(frozen=True)
class ClockStates(Wrapper):
    """The time since the last whiff of one nose as one of few states, int32[]: `1 + k` in the k-th
    tick after it, counted from 0, and the void, 0, from tick `num_states - 1` on and before the
    first whiff.

    The void is 0 as in `WhiffStates`, so what learns on the one learns on the other. It has no
    gradient.

    Attributes:
      of: the `TimeSinceWhiff` of one nose; its `longest` is at least `num_states - 1` ticks.
      num_states: the void among them, >= 2.
    """

    of: TimeSinceWhiff
    num_states: int = 50

    def default_params(self) -> ClockStatesParams:
        """Ticks of 0.1 s."""
        return ClockStatesParams(of=self.of.default_params(), tick=np.float32(0.1))

    def respond(
        self, key: jax.Array, reading: jax.Array, state: WrapperState, params: Params
    ) -> tuple[jax.Array, WrapperState]:
        # A sum of steps may fall short of a whole number of ticks by its rounding.
        ticks = jnp.floor(reading[0] / params.sensor.tick + 1e-3).astype(jnp.int32)
        last = jnp.int32(self.num_states - 1)
        return jnp.where(ticks < last, ticks + 1, jnp.int32(0)), state

    def space(self, params: Params) -> Discrete:  # type: ignore[override]
        return Discrete(self.num_states)

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` if the clock stops before the void, or for a bad number."""
        require(isinstance(self.of, TimeSinceWhiff), "sensor.of", self.of, "a TimeSinceWhiff")
        super().validate(params)
        shape = self.of.space(inner(params)).shape
        require(shape == (1,), "sensor.of", self.of, "of a sensor with one reading")
        require(self.num_states >= 2, "sensor.num_states", self.num_states, ">= 2")
        own = params.sensor
        require_positive("sensor.tick", own.tick)
        least = (self.num_states - 1) * np.asarray(own.tick)
        good = np.all(np.asarray(own.of.longest) >= least * (1 - 1e-3))
        require(good, "sensor.of.longest", own.of.longest, f">= {least} s, when the void begins")
