"""policies/reader: where odour, wind and heading stand in what a task lets its agent observe."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

import jax
import jax.numpy as jnp

from plumejax.base.errors import require
from plumejax.search.antennae import Antennae
from plumejax.search.beliefs import Hits
from plumejax.search.composed import Named, Stack
from plumejax.search.environment import PlumeSearch
from plumejax.search.filters import Difference
from plumejax.search.sensors import (
    FullField,
    Heading,
    LocalConcentration,
    LocalPatch,
    LogConcentration,
)
from plumejax.search.state import Params
from plumejax.search.whiffs import TimeSinceWhiff
from plumejax.search.wind_sensors import AmbientWind
from plumejax.search.wrappers import Wrapper

ODOUR = (LocalConcentration, LogConcentration, Hits, Antennae, LocalPatch, FullField)
"""Kinds of sensors that read the odour where the agent is; what noses wrap them reads it too."""

_OTHER = (TimeSinceWhiff, Difference)
"""Wrappers whose readings are as many as those that they wrap, and of something else."""


@dataclass(frozen=True)
class Part:
    """One sensor's piece of an observation.

    Attributes:
      sensor: that which reads, within what wraps it.
      names: under which it stands in an observation of dicts; none in one that is an array.
      first, size: which of the numbers there are its own, if they are one array.
    """

    sensor: Any
    names: tuple[str, ...] = ()
    first: int = 0
    size: int | None = None

    def read(self, observation: Any) -> Any:
        """float32[size], or what the sensor observes, if that is no array."""
        for name in self.names:
            observation = observation[name]
        if self.size is None:
            return observation
        flat = jnp.ravel(jnp.asarray(observation, jnp.float32))
        return flat[self.first : self.first + self.size]


@dataclass(frozen=True)
class Reader:
    """What a policy reads of an observation; static, made by `reader`.

    Attributes:
      nose: of the odour; None if there is none.
      antennae: of two noses side by side, if there are.
      vane: of the wind, `AmbientWind` or `ApparentWind`; None if there is none.
      compass: of the heading; None if there is none.
    """

    nose: Part | None = None
    antennae: Part | None = None
    vane: Part | None = None
    compass: Part | None = None

    def odour(self, observation: Any) -> jax.Array:
        """float32[]: what the nose reads; the mean of several; 1 at a whiff and else 0 of a
        `TimeSinceWhiff`."""
        assert self.nose is not None
        seen, sensor = self.nose.read(observation), self.nose.sensor
        if isinstance(sensor, FullField):
            x, y = seen["agent_position"]
            return seen["concentration_field"][y, x]
        if isinstance(sensor, TimeSinceWhiff):
            return jnp.max((seen == 0).astype(jnp.float32))
        if isinstance(sensor, LocalPatch):
            return seen[sensor.size**2 // 2]
        return seen[0] if len(seen) == 1 else jnp.mean(seen)

    def sides(self, observation: Any) -> tuple[jax.Array, jax.Array]:
        """float32[] each: what the left and the right antenna read."""
        assert self.antennae is not None
        first, second = self.antennae.read(observation)
        left_first = self.antennae.sensor.angles[0] > self.antennae.sensor.angles[1]
        return (first, second) if left_first else (second, first)

    def wind(self, observation: Any) -> jax.Array:
        """float32[2]: what the vane reads along the ground."""
        assert self.vane is not None
        return self.vane.read(observation)[:2]

    def heading(self, observation: Any) -> jax.Array:
        """float32[]: degrees."""
        assert self.compass is not None
        cos, sin = self.compass.read(observation)
        return jnp.rad2deg(jnp.arctan2(sin, cos))


def reader(env: PlumeSearch, params: Params) -> Reader:
    """The `Reader` of a task's observations; of several sensors of a kind, the first is read."""
    parts = list(_parts(env.sensor, params, (), 0))

    def first(fits: Callable[[Part], bool]) -> Part | None:
        return next(filter(fits, parts), None)

    whiffs = first(lambda part: isinstance(part.sensor, TimeSinceWhiff))
    return Reader(
        nose=first(_is_nose) or whiffs,
        antennae=first(lambda part: type(part.sensor) is Antennae and part.size == 2),
        vane=first(
            lambda part: isinstance(part.sensor, AmbientWind) and part.sensor.dimensions > 1
        ),
        compass=first(lambda part: isinstance(part.sensor, Heading)),
    )


def smelling(env: PlumeSearch, params: Params) -> Reader:
    """The `Reader` of a task whose agent smells.

    Raises `ValidationError` if there is no sensor of odour, or the task is of another kind.
    """
    require(isinstance(env, PlumeSearch), "env", env, "a PlumeSearch")
    found = reader(env, params)
    kinds = ", ".join(kind.__name__ for kind in ODOUR)
    wanted = f"a sensor of odour ({kinds} or TimeSinceWhiff) or a Stack with one"
    require(found.nose is not None, "env.sensor", env.sensor, wanted)
    return found


def _is_nose(part: Part) -> bool:
    # Of the antennae, a `Gradient` or an `OdourMotion` reads no odour but a difference.
    return type(part.sensor) is Antennae or (
        isinstance(part.sensor, ODOUR) and not isinstance(part.sensor, Antennae)
    )


def _is_vane(part: Part) -> bool:
    return isinstance(part.sensor, AmbientWind) and part.sensor.dimensions > 1


def _parts(sensor: Any, params: Params, names: tuple[str, ...], first: int) -> Iterator[Part]:
    """Of every sensor that the observation holds; one whose numbers go into others is not told."""
    if isinstance(sensor, Named):
        for name, each in sensor.parts:
            own = params.replace(sensor=params.sensor[name])
            if isinstance(sensor, Stack):
                yield from _parts(each, own, names, first)
                first += prod(each.space(own).shape)
            else:
                yield from _parts(each, own, (*names, name), 0)
        return
    if isinstance(sensor, Wrapper) and not isinstance(sensor, _OTHER):
        of = params.replace(sensor=params.sensor.of)
        if sensor.space(params).shape == sensor.of.space(of).shape:
            yield from _parts(sensor.of, of, names, first)
            return
    shape = getattr(sensor.space(params), "shape", None)
    yield Part(sensor, names, first, None if shape is None else prod(shape))
