"""search/rewards: what a step is worth."""

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.base.errors import require
from plumejax.search.environment import PlumeSearch, distance_to_source
from plumejax.search.state import Params, Scene


class SparseParams(struct.PyTreeNode):
    """A `Sparse` reward has no numbers."""


@dataclass(frozen=True)
class Sparse:
    """1 on the step that finds the source, else 0."""

    def default_params(self) -> SparseParams:
        return SparseParams()

    def reward(self, scene: Scene, params: Params) -> jax.Array:
        return scene.found.astype(jnp.float32)


class StepPenaltyParams(struct.PyTreeNode):
    """Numbers of a `StepPenalty` reward.

    Attributes:
      goal: float32[], paid on the step that finds the source.
      penalty: float32[], >= 0, taken on every other step.
    """

    goal: Any
    penalty: Any


@dataclass(frozen=True)
class StepPenalty:
    """`goal` on the step that finds the source, `-penalty` on every other one."""

    def default_params(self) -> StepPenaltyParams:
        return StepPenaltyParams(goal=np.float32(1.0), penalty=np.float32(0.01))

    def reward(self, scene: Scene, params: Params) -> jax.Array:
        own = params.reward
        return jnp.where(scene.found, own.goal, -own.penalty)

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` if the penalty is negative."""
        penalty = params.reward.penalty
        require(np.all(np.asarray(penalty) >= 0), "reward.penalty", penalty, ">= 0")


class ProgressParams(struct.PyTreeNode):
    """Numbers of a `Progress` reward.

    Attributes:
      goal: float32[], paid on the step that finds the source.
      penalty: float32[], taken on every step.
      per_cell: float32[], paid for each cell that the source came nearer.
    """

    goal: Any
    penalty: Any
    per_cell: Any


@dataclass(frozen=True)
class Progress:
    """Pays for each cell that the source came nearer: a reward to train on, not a task's own.

    The sum over an episode telescopes to the distance covered, so no detour pays.
    """

    def default_params(self) -> ProgressParams:
        return ProgressParams(
            goal=np.float32(1.0), penalty=np.float32(0.01), per_cell=np.float32(0.1)
        )

    def reward(self, scene: Scene, params: Params) -> jax.Array:
        own = params.reward
        before = distance_to_source(scene.previous.position, scene.sources)
        after = distance_to_source(scene.agent.position, scene.sources)
        goal = jnp.where(scene.found, own.goal, jnp.zeros_like(own.goal))
        return goal + own.per_cell * (before - after) - own.penalty


def with_progress_reward(env: PlumeSearch, params: Params) -> tuple[PlumeSearch, Params]:
    """The same search paid by `Progress`: what `plumejax train` learns on."""
    reward = Progress()
    return replace(env, reward=reward), params.replace(reward=reward.default_params())
