"""search/antennae: several noses on one agent, and what their difference tells."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.base.errors import require
from plumejax.base.spaces import Box
from plumejax.search.headings import direction
from plumejax.search.state import Agent, Params, Scene


class AntennaeParams(struct.PyTreeNode):
    """Numbers of `Antennae`.

    Attributes:
      saturation: float32[], in the plume's unit, > 0; what is above reads as this.
      reach: float32[], lengths from the agent's place to an antenna's tip, > 0.
    """

    saturation: Any
    reach: Any


@dataclass(frozen=True)
class Antennae:
    """Concentrations at the tips of n antennae that turn with the heading, float32[n].

    Attributes:
      angles: degrees from the heading to each, counter-clockwise: > 0 is to the left.
    """

    angles: tuple[float, ...] = (45.0, -45.0)
    random_step = False

    def __post_init__(self) -> None:
        require(len(self.angles) > 0, "angles", self.angles, "one angle or more")

    def default_params(self) -> AntennaeParams:
        return AntennaeParams(saturation=np.float32(1.0), reach=np.float32(1.0))

    def start(self, params: Params) -> Any:
        return ()

    def probes(self, agent: Agent, params: Params) -> jax.Array:
        ways = [direction(agent.heading + np.float32(angle)) for angle in self.angles]
        level = jnp.zeros((len(ways), len(agent.position) - 2), jnp.float32)
        tips = jnp.concatenate([jnp.stack(ways), level], axis=1)
        return agent.position[None] + params.sensor.reach * tips

    def observe(
        self, key: jax.Array, state: Any, scene: Scene, params: Params
    ) -> tuple[jax.Array, Any]:
        return self._read(scene, params), state

    def space(self, params: Params) -> Box:
        return Box(0.0, params.sensor.saturation, (len(self.angles),))

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` if a number is not > 0."""
        for name in ("saturation", "reach"):
            value = getattr(params.sensor, name)
            require(np.all(np.asarray(value) > 0), f"sensor.{name}", value, "> 0")

    def _read(self, scene: Scene, params: Params) -> jax.Array:
        return jnp.minimum(scene.air.concentration, params.sensor.saturation)


@dataclass(frozen=True)
class Gradient(Antennae):
    """What the first of two antennae reads more than the second, float32[1]: left minus right."""

    def __post_init__(self) -> None:
        require(len(self.angles) == 2, "angles", self.angles, "two: left and right")

    def observe(
        self, key: jax.Array, state: Any, scene: Scene, params: Params
    ) -> tuple[jax.Array, Any]:
        left, right = self._read(scene, params)
        return (left - right)[None], state

    def space(self, params: Params) -> Box:
        return Box(-params.sensor.saturation, params.sensor.saturation, (1,))


@dataclass(frozen=True)
class OdourMotion(Gradient):
    """Whether odour goes from left to right or back, float32[1]: a Hassenstein-Reichardt detector.

    `L(t - dt) R(t) - R(t - dt) L(t)`: > 0 if it comes from the left. Flies turn by it (Kadakia et
    al. 2022, Nature 611: 754). At the start of an episode it is 0.
    """

    def start(self, params: Params) -> jax.Array:
        """float32[2]: the last readings."""
        return jnp.zeros(2, jnp.float32)

    def observe(
        self, key: jax.Array, state: jax.Array, scene: Scene, params: Params
    ) -> tuple[jax.Array, jax.Array]:
        now = self._read(scene, params)
        last = now if scene.action is None else state
        return (last[0] * now[1] - last[1] * now[0])[None], now

    def space(self, params: Params) -> Box:
        most = jnp.square(jnp.asarray(params.sensor.saturation, jnp.float32))
        return Box(-most, most, (1,))


def bilateral(angle: float = 45.0) -> Antennae:
    """Two antennae, `angle` degrees to the left and to the right of the heading."""
    return Antennae((angle, -angle))
