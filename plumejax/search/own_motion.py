"""search/own_motion: a sensor of how the agent itself moves."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from plumejax.base.errors import require_positive
from plumejax.base.spaces import Box
from plumejax.search.sensors import Airless, LimitParams
from plumejax.search.state import Params, Scene


@dataclass(frozen=True)
class OwnVelocity(Airless):
    """The agent's own velocity, float32[d], lengths a second, of a motion that keeps it
    (`agent.motion.velocity`); a component beyond `limit` reads as this.

    Attributes:
      dimensions: d; of a velocity with more, the first d.
    """

    dimensions: int = 2

    def default_params(self) -> LimitParams:
        return LimitParams(limit=np.float32(1.0))

    def observe(
        self, key: jax.Array, state: tuple[()], scene: Scene, params: Params
    ) -> tuple[jax.Array, tuple[()]]:
        velocity = scene.agent.motion.velocity[: self.dimensions]
        return jnp.clip(velocity, -params.sensor.limit, params.sensor.limit), state

    def space(self, params: Params) -> Box:
        return Box(-params.sensor.limit, params.sensor.limit, (self.dimensions,))

    def validate(self, params: Any) -> None:
        """Raise `ValidationError` if the limit is not > 0."""
        require_positive("sensor.limit", params.sensor.limit)
