"""search/endings: when a search is over."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.base.errors import require
from plumejax.search.components import asked_by, validate_part
from plumejax.search.environment import distance_to_source
from plumejax.search.state import Params, Scene


class GoalDiscParams(struct.PyTreeNode):
    """Numbers of a `GoalDisc`.

    Attributes:
      radius: float32[], cells, > 0; the boundary counts as found.
    """

    radius: Any


@dataclass(frozen=True)
class GoalDisc:
    """Found when the agent is within `radius` of a source, the boundary included."""

    def default_params(self) -> GoalDiscParams:
        return GoalDiscParams(radius=np.float32(5.0))

    def ended(self, scene: Scene, params: Params) -> tuple[jax.Array, jax.Array]:
        distance = distance_to_source(scene.agent.position, scene.sources)
        return distance <= params.ending.radius, jnp.asarray(False)

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` if the radius is not > 0."""
        radius = params.ending.radius
        require(np.all(np.asarray(radius) > 0), "ending.radius", radius, "> 0 cells")


class NeverParams(struct.PyTreeNode):
    """`Never` has no numbers."""


@dataclass(frozen=True)
class Never:
    """Only the step limit ends the search."""

    def default_params(self) -> NeverParams:
        return NeverParams()

    def ended(self, scene: Scene, params: Params) -> tuple[jax.Array, jax.Array]:
        return jnp.asarray(False), jnp.asarray(False)


class AtWallParams(struct.PyTreeNode):
    """`AtWall` has no numbers."""


@dataclass(frozen=True)
class AtWall:
    """Failed when the agent touched a wall: `agent.motion.touched`, bool[], which a motion keeps
    that says what happens at walls."""

    def default_params(self) -> AtWallParams:
        return AtWallParams()

    def ended(self, scene: Scene, params: Params) -> tuple[jax.Array, jax.Array]:
        return jnp.asarray(False), scene.agent.motion.touched


class DeclaredParams(struct.PyTreeNode):
    """Numbers of `Declared`.

    Attributes:
      radius: float32[], lengths of the plume, > 0; the boundary counts as right.
    """

    radius: Any


@dataclass(frozen=True)
class Declared:
    """The agent declares that it stands at the source (`agent.motion.declared`, bool[], which a
    motion keeps that has this action): found within `radius` of a source, failed elsewhere."""

    def default_params(self) -> DeclaredParams:
        return DeclaredParams(radius=np.float32(5.0))

    def ended(self, scene: Scene, params: Params) -> tuple[jax.Array, jax.Array]:
        near = distance_to_source(scene.agent.position, scene.sources) <= params.ending.radius
        declared = scene.agent.motion.declared
        return declared & near, declared & ~near

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` if the radius is not > 0."""
        radius = params.ending.radius
        require(np.all(np.asarray(radius) > 0), "ending.radius", radius, "> 0 lengths")


class LeftPlumeParams(struct.PyTreeNode):
    """Numbers of `LeftPlume`.

    Attributes:
      radius: float32[], m, > 0; found within it of a source, the boundary included.
      limit: float32[], m, > 0; failed farther than it from every puff.
    """

    radius: Any
    limit: Any


@dataclass(frozen=True)
class LeftPlume:
    """Found within `radius` of a source, failed more than `limit` from the nearest puff: the end
    of plume tracking (Singh, van Breugel, Rao, Brunton 2023, Nature Machine Intelligence 5: 58).

    For plumes that know their puffs (`nearest`). While there is no puff at all nobody fails.
    """

    asks = ("nearest",)

    def default_params(self) -> LeftPlumeParams:
        return LeftPlumeParams(radius=np.float32(0.2), limit=np.float32(2.0))

    def ended(self, scene: Scene, params: Params) -> tuple[jax.Array, jax.Array]:
        own = params.ending
        found = distance_to_source(scene.agent.position, scene.sources) <= own.radius
        stray = scene.plume.nearest(scene.plume_state, scene.agent.position, params.plume)
        return found, (stray > own.limit) & jnp.isfinite(stray) & ~found

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` if a number is not > 0."""
        for name in ("radius", "limit"):
            value = getattr(params.ending, name)
            require(np.all(np.asarray(value) > 0), f"ending.{name}", value, "> 0 m")


@dataclass(frozen=True)
class AnyOf:
    """Several endings at once: found or failed as soon as one of them says so; who is found has not
    failed. Numbers are a dict by name: `ending.wall`, `ending.goal.radius`.

    Attributes:
      parts: (name, ending) of each.
    """

    parts: tuple[tuple[str, Any], ...]

    @property
    def asks(self) -> tuple[str, ...]:
        return asked_by(self.parts)

    def default_params(self) -> dict[str, Any]:
        return {name: part.default_params() for name, part in self.parts}

    def ended(self, scene: Scene, params: Params) -> tuple[jax.Array, jax.Array]:
        ends = [
            part.ended(scene, params.replace(ending=params.ending[name]))
            for name, part in self.parts
        ]
        found, failed = (reduce(or_, flags) for flags in zip(*ends, strict=True))
        return found, failed & ~found

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` if there is no part, or one refuses its numbers."""
        require_parts("ending", self.parts)
        for name, part in self.parts:
            validate_part("ending", name, part, params.replace(ending=params.ending[name]))


def require_parts(role: str, parts: Any) -> None:
    """Raise `ValidationError` unless `parts` has at least one part, each with a name of its own."""
    names = [name for name, _ in parts]
    good = names and len(set(names)) == len(names)
    require(good, f"{role}: names of the parts", names, "one or more, no two the same")


def goal_radius(ending: Any) -> Any:
    """float32[]: the `radius` within which a source counts as found, from the numbers of an ending;
    the largest of `AnyOf`, None if there is none."""
    if not isinstance(ending, Mapping):
        return getattr(ending, "radius", None)
    radii = [r for r in map(goal_radius, ending.values()) if r is not None]
    return reduce(jnp.maximum, radii) if radii else None
