"""search/wind_sensors: the wind, as it blows and as an agent feels it that moves itself."""

from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.base.errors import require
from plumejax.base.spaces import Box
from plumejax.search.headings import ahead_and_left
from plumejax.search.state import Agent, Params, Scene


class WindSensorParams(struct.PyTreeNode):
    """Numbers of a wind sensor.

    Attributes:
      limit: float32[], lengths a second, > 0; a component beyond it reads as this.
      tau: float32[], s, of an exponential filter on the reading, >= 0; 0 is none.
      spread: float32[], lengths a second, standard deviation of the noise of a `noisy` one, >= 0.
    """

    limit: Any
    tau: Any
    spread: Any


@dataclass(frozen=True)
class AmbientWind:
    """The wind where the agent is, float32[d], lengths a second: where the air goes to.

    The filter forgets `1 - exp(-dt / tau)` of what it held in a step; at reset it holds the wind
    there. The noise, normal in each component, comes after it.

    Attributes:
      dimensions: d; of a wind with more, the first d: 2 is along the ground.
      egocentric: whether x runs along the heading and y to the left of it.
      noisy: whether there is noise.
    """

    dimensions: int = 2
    egocentric: bool = True
    noisy: bool = False

    def __post_init__(self) -> None:
        good = self.dimensions > 1 or not self.egocentric
        require(good, "egocentric", self.egocentric, "False on a line")

    @property
    def random_step(self) -> bool:
        return self.noisy

    def default_params(self) -> WindSensorParams:
        return WindSensorParams(limit=np.float32(10.0), tau=np.float32(0), spread=np.float32(0))

    def start(self, params: Params) -> jax.Array:
        """float32[d]: what the filter holds."""
        return jnp.zeros(self.dimensions, jnp.float32)

    def probes(self, agent: Agent, params: Params) -> jax.Array:
        return agent.position[None]

    def observe(
        self, key: jax.Array, state: jax.Array, scene: Scene, params: Params
    ) -> tuple[jax.Array, jax.Array]:
        own = params.sensor
        now = self._felt(scene, params)
        tau = jnp.asarray(own.tau, jnp.float32)
        # A filter without a time forgets all; the inner `where` keeps its gradient finite.
        forgets = -jnp.expm1(-params.dt / jnp.where(tau > 0, tau, 1.0))
        share = jnp.where(tau > 0, forgets, 1.0)
        held = now if scene.action is None else state + share * (now - state)
        seen = held
        if self.egocentric:
            seen = ahead_and_left(seen, scene.agent.heading)
        if self.noisy:
            seen = seen + own.spread * jax.random.normal(key, seen.shape, jnp.float32)
        return jnp.clip(seen, -own.limit, own.limit), held

    def space(self, params: Params) -> Box:
        return Box(-params.sensor.limit, params.sensor.limit, (self.dimensions,))

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` if a number is not allowed."""
        own = params.sensor
        require(np.all(np.asarray(own.limit) > 0), "sensor.limit", own.limit, "> 0")
        for name in ("tau", "spread"):
            value = getattr(own, name)
            require(np.all(np.asarray(value) >= 0), f"sensor.{name}", value, ">= 0")

    def _felt(self, scene: Scene, params: Params) -> jax.Array:
        return scene.air.wind[0, : self.dimensions]


@dataclass(frozen=True)
class ApparentWind(AmbientWind):
    """The wind that an agent feels that moves: the wind minus its own velocity, float32[d].

    Attributes:
      own: "ground" takes off what the agent moved in the last step, so one that drifts with the
        wind feels none (a move round a periodic arena counts as one across it); "air" what its
        motion says of its velocity through the air (`agent.motion.velocity`), as plume tracking
        does (Singh et al. 2023, Nature Machine Intelligence 5: 58).
    """

    own: Literal["ground", "air"] = "ground"

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.own in ("ground", "air"), "own", self.own, "'ground' or 'air'")

    def _felt(self, scene: Scene, params: Params) -> jax.Array:
        if self.own == "air":
            return super()._felt(scene, params) - scene.agent.motion.velocity[: self.dimensions]
        moved = scene.agent.position - scene.previous.position
        return super()._felt(scene, params) - moved[: self.dimensions] / params.dt
