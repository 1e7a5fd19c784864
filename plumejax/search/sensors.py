"""search/sensors: what the agent observes."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.base.errors import require
from plumejax.base.spaces import Box, Dict
from plumejax.search.state import Agent, Params, Scene


class SaturationParams(struct.PyTreeNode):
    """Numbers of a concentration sensor.

    Attributes:
      saturation: float32[], in the plume's unit, > 0; what is above reads as this.
    """

    saturation: Any


class _Concentration:
    """What the concentration sensors share: their one number, and its check."""

    random_step = False

    def default_params(self) -> SaturationParams:
        return SaturationParams(saturation=np.float32(1.0))

    def start(self, params: Params) -> tuple[()]:
        return ()

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` if the saturation is not > 0."""
        saturation = params.sensor.saturation
        good = np.all(np.asarray(saturation) > 0)
        require(good, "sensor.saturation", saturation, "> 0")


@dataclass(frozen=True)
class LocalConcentration(_Concentration):
    """The concentration where the agent stands, float32[1]."""

    def probes(self, agent: Agent, params: Params) -> jax.Array:
        return agent.position[None]

    def observe(
        self, key: jax.Array, state: tuple[()], scene: Scene, params: Params
    ) -> tuple[jax.Array, tuple[()]]:
        return jnp.minimum(scene.air.concentration, params.sensor.saturation), state

    def space(self, params: Params) -> Box:
        return Box(0.0, params.sensor.saturation, (1,))


@dataclass(frozen=True)
class FullField(_Concentration):
    """Everything: where the agent and the first source are, and the concentration of every cell.

    `agent_position` int32[2], `concentration_field` float32[height, width] indexed [y, x],
    `source_location` int32[2].

    Attributes:
      grid_size: width and height in cells.
    """

    grid_size: tuple[int, int] = (128, 128)

    def probes(self, agent: Agent, params: Params) -> jax.Array:
        width, height = self.grid_size
        y, x = jnp.divmod(jnp.arange(width * height, dtype=jnp.int32), jnp.int32(width))
        return jnp.stack([x, y], axis=-1).astype(jnp.float32)

    def observe(
        self, key: jax.Array, state: tuple[()], scene: Scene, params: Params
    ) -> tuple[dict[str, jax.Array], tuple[()]]:
        width, height = self.grid_size
        field = jnp.minimum(scene.air.concentration, params.sensor.saturation)
        observation = {
            "agent_position": _cell(scene.agent.position),
            "concentration_field": field.reshape(height, width),
            "source_location": _cell(scene.sources[0]),
        }
        return observation, state

    def space(self, params: Params) -> Dict:
        width, height = self.grid_size
        cell = Box(0, np.asarray([width - 1, height - 1], np.int32), (2,), np.int32)
        field = Box(0.0, params.sensor.saturation, (height, width))
        return Dict({"agent_position": cell, "concentration_field": field, "source_location": cell})


def _cell(position: jax.Array) -> jax.Array:
    return jnp.round(position).astype(jnp.int32)
