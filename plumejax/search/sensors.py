"""search/sensors: what the agent observes of the odour, of itself, and of everything."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.base.errors import require
from plumejax.base.spaces import Box, Dict
from plumejax.plumes.geometry import squared_distance
from plumejax.search.headings import ahead_and_left, direction
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


class LogParams(struct.PyTreeNode):
    """Numbers of a `LogConcentration`.

    Attributes:
      saturation: float32[], in the plume's unit, > 0; what is above reads 1.
      floor: float32[], in the plume's unit, > 0; well below it the reading is linear.
    """

    saturation: Any
    floor: Any


@dataclass(frozen=True)
class LogConcentration:
    """`log(1 + c / floor) / log(1 + saturation / floor)` where the agent stands, float32[1]."""

    random_step = False

    def default_params(self) -> LogParams:
        return LogParams(saturation=np.float32(1.0), floor=np.float32(1e-4))

    def start(self, params: Params) -> tuple[()]:
        return ()

    def probes(self, agent: Agent, params: Params) -> jax.Array:
        return agent.position[None]

    def observe(
        self, key: jax.Array, state: tuple[()], scene: Scene, params: Params
    ) -> tuple[jax.Array, tuple[()]]:
        own = params.sensor
        whole = jnp.log1p(jnp.asarray(own.saturation / own.floor, jnp.float32))
        part = jnp.log1p(jnp.asarray(scene.air.concentration / own.floor, jnp.float32))
        return jnp.minimum(part / whole, 1.0), state

    def space(self, params: Params) -> Box:
        return Box(0.0, 1.0, (1,))

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` if a number is not > 0."""
        for name in ("saturation", "floor"):
            value = getattr(params.sensor, name)
            require(np.all(np.asarray(value) > 0), f"sensor.{name}", value, "> 0")


class PatchParams(struct.PyTreeNode):
    """Numbers of a `LocalPatch`.

    Attributes:
      saturation: float32[], in the plume's unit, > 0; what is above reads as this.
      spacing: float32[], lengths from one place to the next, > 0.
    """

    saturation: Any
    spacing: Any


@dataclass(frozen=True)
class LocalPatch(_Concentration):
    """The concentrations about the agent, float32[size, size], indexed [y, x], y up.

    Attributes:
      size: places along a side, odd: the agent is in the middle.
    """

    size: int = 5

    def __post_init__(self) -> None:
        require(self.size % 2 == 1 and self.size > 0, "size", self.size, "odd and > 0")

    def default_params(self) -> Any:
        return PatchParams(saturation=np.float32(1.0), spacing=np.float32(1.0))

    def probes(self, agent: Agent, params: Params) -> jax.Array:
        steps = np.arange(self.size, dtype=np.float32) - np.float32(self.size // 2)
        flat = np.zeros((self.size**2, len(agent.position)), np.float32)
        y, x = np.meshgrid(steps, steps, indexing="ij")
        flat[:, 0], flat[:, 1] = x.ravel(), y.ravel()
        return agent.position[None] + params.sensor.spacing * flat

    def observe(
        self, key: jax.Array, state: tuple[()], scene: Scene, params: Params
    ) -> tuple[jax.Array, tuple[()]]:
        seen = jnp.minimum(scene.air.concentration, params.sensor.saturation)
        return seen.reshape(self.size, self.size), state

    def space(self, params: Params) -> Box:
        return Box(0.0, params.sensor.saturation, (self.size, self.size))

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` if a number is not > 0."""
        super().validate(params)
        spacing = params.sensor.spacing
        require(np.all(np.asarray(spacing) > 0), "sensor.spacing", spacing, "> 0")


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


class NoParams(struct.PyTreeNode):
    """A sensor without numbers."""


class Airless:
    """What the sensors share that smell nothing and keep nothing."""

    random_step = False

    def default_params(self) -> Any:
        return NoParams()

    def start(self, params: Params) -> tuple[()]:
        return ()

    def probes(self, agent: Agent, params: Params) -> jax.Array:
        return agent.position[:0].reshape(0, len(agent.position))


class RegionParams(struct.PyTreeNode):
    """Numbers of a `Position`.

    Attributes:
      low, high: float32[d], lengths; what lies beyond reads as these.
    """

    low: Any
    high: Any


@dataclass(frozen=True)
class Position(Airless):
    """Where the agent is, float32[d], lengths.

    Attributes:
      dimensions: d; of a place with more, the first d.
    """

    dimensions: int = 2

    def default_params(self) -> RegionParams:
        low = np.zeros(self.dimensions, np.float32)
        return RegionParams(low=low, high=low + np.float32(127.0))

    def observe(
        self, key: jax.Array, state: tuple[()], scene: Scene, params: Params
    ) -> tuple[jax.Array, tuple[()]]:
        place = scene.agent.position[: self.dimensions]
        return jnp.clip(place, params.sensor.low, params.sensor.high), state

    def space(self, params: Params) -> Box:
        return Box(params.sensor.low, params.sensor.high, (self.dimensions,))

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` unless low < high."""
        low, high = params.sensor.low, np.asarray(params.sensor.high)
        allowed = f"below sensor.high, {high.tolist()}"
        require(np.all(np.asarray(low) < high), "sensor.low", low, allowed)


@dataclass(frozen=True)
class Heading(Airless):
    """Cosine and sine of the heading, float32[2]: no jump between 360 and 0 degrees."""

    def observe(
        self, key: jax.Array, state: tuple[()], scene: Scene, params: Params
    ) -> tuple[jax.Array, tuple[()]]:
        return direction(scene.agent.heading), state

    def space(self, params: Params) -> Box:
        return Box(-1.0, 1.0, (2,))


@dataclass(frozen=True)
class LastAction(Airless):
    """The last action of a discrete motion, one-hot, float32[num_actions]; at reset zeros.

    Attributes:
      num_actions: how many the motion has.
    """

    num_actions: int

    def observe(
        self, key: jax.Array, state: tuple[()], scene: Scene, params: Params
    ) -> tuple[jax.Array, tuple[()]]:
        if scene.action is None:
            return jnp.zeros(self.num_actions, jnp.float32), state
        chosen = jnp.arange(self.num_actions, dtype=jnp.int32) == scene.action
        return chosen.astype(jnp.float32), state

    def space(self, params: Params) -> Box:
        return Box(0.0, 1.0, (self.num_actions,))


class LimitParams(struct.PyTreeNode):
    """Numbers of a `LastControl`.

    Attributes:
      limit: float32[], > 0; a component beyond it reads as this.
    """

    limit: Any


@dataclass(frozen=True)
class LastControl(Airless):
    """The last action of a continuous motion, float32[size], as it was chosen; at reset zeros.

    Attributes:
      size: how many numbers an action has.
    """

    size: int

    def default_params(self) -> LimitParams:
        return LimitParams(limit=np.float32(1.0))

    def observe(
        self, key: jax.Array, state: tuple[()], scene: Scene, params: Params
    ) -> tuple[jax.Array, tuple[()]]:
        if scene.action is None:
            return jnp.zeros(self.size, jnp.float32), state
        chosen = jnp.asarray(scene.action, jnp.float32)
        return jnp.clip(chosen, -params.sensor.limit, params.sensor.limit), state

    def space(self, params: Params) -> Box:
        return Box(-params.sensor.limit, params.sensor.limit, (self.size,))

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` if the limit is not > 0."""
        limit = params.sensor.limit
        require(np.all(np.asarray(limit) > 0), "sensor.limit", limit, "> 0")


@dataclass(frozen=True)
class StepsLeft(Airless):
    """The part of the episode's `max_steps` that is left, float32[1]: 1 at reset."""

    def observe(
        self, key: jax.Array, state: tuple[()], scene: Scene, params: Params
    ) -> tuple[jax.Array, tuple[()]]:
        steps = jnp.stack([scene.step_count]).astype(jnp.float32)
        return 1.0 - steps / jnp.asarray(params.max_steps, jnp.float32), state

    def space(self, params: Params) -> Box:
        return Box(0.0, 1.0, (1,))


class ReachParams(struct.PyTreeNode):
    """Numbers of a `SourceVector`.

    Attributes:
      reach: float32[], lengths, > 0; a coordinate beyond it reads as this.
    """

    reach: Any


@dataclass(frozen=True)
class SourceVector(Airless):
    """The way to the nearest source, float32[d], lengths: the fully observed twin of any search.

    Attributes:
      dimensions: d; of places with more, the first d: 2 is along the ground.
      egocentric: whether x runs along the heading and y to the left of it.
    """

    dimensions: int = 2
    egocentric: bool = False

    def __post_init__(self) -> None:
        good = self.dimensions > 1 or not self.egocentric
        require(good, "egocentric", self.egocentric, "False on a line")

    def default_params(self) -> ReachParams:
        return ReachParams(reach=np.float32(1000.0))

    def observe(
        self, key: jax.Array, state: tuple[()], scene: Scene, params: Params
    ) -> tuple[jax.Array, tuple[()]]:
        sources = scene.sources[:, : self.dimensions]
        place = scene.agent.position[: self.dimensions]
        nearest = jnp.argmin(squared_distance(sources, place)) if len(sources) > 1 else 0
        way = sources[nearest] - place
        if self.egocentric:
            way = ahead_and_left(way, scene.agent.heading)
        return jnp.clip(way, -params.sensor.reach, params.sensor.reach), state

    def space(self, params: Params) -> Box:
        return Box(-params.sensor.reach, params.sensor.reach, (self.dimensions,))

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` if the reach is not > 0."""
        reach = params.sensor.reach
        require(np.all(np.asarray(reach) > 0), "sensor.reach", reach, "> 0")
