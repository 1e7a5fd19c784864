"""search/wrappers: what the sensors share that work on the reading of another sensor."""

from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.base.errors import require
from plumejax.base.spaces import Box
from plumejax.search.components import validate_part
from plumejax.search.state import Agent, Params, Scene


class WrapperParams(struct.PyTreeNode):
    """Numbers of a wrapper.

    Attributes:
      of: the numbers of the inner sensor.
    """

    of: Any


class WrapperState(struct.PyTreeNode):
    """What a wrapper keeps.

    Attributes:
      of: what the inner sensor keeps.
    """

    of: Any


@dataclass(frozen=True)
class Wrapper:
    """A sensor that turns the reading of another, float32[k], into its own observation.

    A subclass says how in `respond`, and what it keeps in `start`. One observation is of air that
    was there for `dt` seconds, the first, at reset, too.

    Attributes:
      of: the inner sensor; its observations are a float32 `Box` of one axis.
    """

    of: Any

    draws: ClassVar[bool] = False
    """Whether `respond` uses its key."""

    @property
    def random_step(self) -> bool:
        return self.draws or _is_random(self.of)

    def default_params(self) -> Any:
        return WrapperParams(of=self.of.default_params())

    def start(self, params: Params) -> Any:
        return WrapperState(of=self.of.start(inner(params)))

    def probes(self, agent: Agent, params: Params) -> jax.Array:
        return self.of.probes(agent, inner(params))

    def observe(self, key: jax.Array, state: Any, scene: Scene, params: Params) -> tuple[Any, Any]:
        both = self.draws and _is_random(self.of)
        inner_key, own_key = jax.random.split(key) if both else (key, key)
        reading, of = self.of.observe(inner_key, state.of, scene, inner(params))
        reading = jnp.asarray(reading, jnp.float32)
        observation, state = self.respond(own_key, reading, state, params)
        return observation, state.replace(of=of)

    def respond(
        self, key: jax.Array, reading: jax.Array, state: Any, params: Params
    ) -> tuple[jax.Array, Any]:
        """`(observation, state)` for a reading, float32[k]."""
        raise NotImplementedError

    def space(self, params: Params) -> Box:
        return self.of.space(inner(params))

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` if the inner sensor has no such readings, or bad numbers."""
        space = self.of.space(inner(params))
        fits = isinstance(space, Box) and len(space.shape) == 1
        fits = fits and np.issubdtype(space.dtype, np.floating)
        require(fits, "sensor.of", self.of, "a sensor whose observations are a float32 Box [k]")
        validate_part("sensor", "of", self.of, inner(params))


def inner(params: Params) -> Params:
    """The params as the inner sensor reads them."""
    return params.replace(sensor=params.sensor.of)


def clean(sensor: Wrapper, params: Params) -> jax.Array:
    """float32[k]: zeros, as many as the inner sensor of `sensor` has readings."""
    return jnp.zeros(sensor.of.space(inner(params)).shape, jnp.float32)


def with_zero(space: Box) -> Box:
    """The space, made large enough to hold 0."""
    low, high = (jnp.asarray(x, jnp.float32) for x in (space.low, space.high))
    return Box(jnp.minimum(low, 0.0), jnp.maximum(high, 0.0), space.shape)


def require_concentration(sensor: Wrapper, params: Params) -> None:
    """Raise `ValidationError` unless no reading of the inner sensor is below 0."""
    low = sensor.of.space(inner(params)).low
    require(np.all(np.asarray(low) >= 0), "sensor.of", sensor.of, "a sensor that reads >= 0")


def _is_random(sensor: Any) -> bool:
    return getattr(sensor, "random_step", True)
