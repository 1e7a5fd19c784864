"""search/endings: when a search is over."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.base.errors import require
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
