"""search/rewards: what a step is worth."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.base.errors import ComponentError, require
from plumejax.search.components import asked_by, validate_part
from plumejax.search.endings import require_parts
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


class PotentialShapingParams(struct.PyTreeNode):
    """Numbers of `PotentialShaping`.

    Attributes:
      of: those of the reward that is shaped.
      gamma: float32[], the learner's own discount a step, in [0, 1].
      scale: float32[], reward a length of the plume, >= 0.
    """

    of: Any
    gamma: Any
    scale: Any


@dataclass(frozen=True)
class PotentialShaping:
    """`of + gamma Phi(next) - Phi(now)`, with `Phi = -scale distance to the source`, and 0 where
    the episode has terminated.

    It leaves the optimal policies of `of` alone, for a learner that discounts by `gamma` (Ng,
    Harada, Russell 1999, ICML: 278). That `Phi` is 0 at the end is part of it. A source that moves
    counts where it is after the step, to which the theorem does not apply.

    Attributes:
      of: the reward that is shaped.
    """

    of: Any = Sparse()

    def default_params(self) -> PotentialShapingParams:
        return PotentialShapingParams(
            of=self.of.default_params(), gamma=np.float32(0.99), scale=np.float32(0.1)
        )

    def reward(self, scene: Scene, params: Params) -> jax.Array:
        own = params.reward
        now = distance_to_source(scene.previous.position, scene.sources)
        then = distance_to_source(scene.agent.position, scene.sources)
        then = jnp.where(scene.found | scene.failed, jnp.zeros_like(then), then)
        paid = self.of.reward(scene, params.replace(reward=own.of))
        return paid + own.scale * (now - own.gamma * then)

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` if a number is not allowed."""
        own = params.reward
        gamma = np.asarray(own.gamma)
        require(np.all((gamma >= 0) & (gamma <= 1)), "reward.gamma", own.gamma, "in [0, 1]")
        require(np.all(np.asarray(own.scale) >= 0), "reward.scale", own.scale, ">= 0 a length")
        validate_part("reward", "of", self.of, params.replace(reward=own.of))


class InformationGainParams(struct.PyTreeNode):
    """Numbers of `InformationGain`.

    Attributes:
      per_bit: float32[], paid for each bit.
    """

    per_bit: Any


@dataclass(frozen=True)
class InformationGain:
    """Pays for each bit by which the step lowered the entropy of the belief that a
    `beliefs.Belief` sensor keeps; what finding the source says counts too.

    Attributes:
      belief: where that sensor's state is in the state of the task's sensor, a dotted path: "" if
        it is the sensor, "map" if it is the part "map" of a stack.
    """

    belief: str = ""

    def default_params(self) -> InformationGainParams:
        return InformationGainParams(per_bit=np.float32(1.0))

    def reward(self, scene: Scene, params: Params) -> jax.Array:
        before, after = (self._entropy(s) for s in (scene.previous_sensor, scene.sensor))
        return params.reward.per_bit * (before - after)

    def _entropy(self, sensor_state: Any) -> jax.Array:
        place = sensor_state
        for name in filter(None, self.belief.split(".")):
            inside = isinstance(place, Mapping)
            place = place.get(name) if inside else getattr(place, name, None)
        if not hasattr(place, "entropy"):
            raise ComponentError(f"InformationGain: no belief at {self.belief!r} of the sensor")
        return place.entropy


class DeclaredErrorParams(struct.PyTreeNode):
    """Numbers of `DeclaredError`.

    Attributes:
      per_length: float32[], taken for each length of the plume, >= 0.
    """

    per_length: Any


@dataclass(frozen=True)
class DeclaredError:
    """On the step that declares the source, minus the distance from there to the nearest one, times
    `per_length`; else 0. For motions that keep `declared`, as the ending `Declared`."""

    def default_params(self) -> DeclaredErrorParams:
        return DeclaredErrorParams(per_length=np.float32(1.0))

    def reward(self, scene: Scene, params: Params) -> jax.Array:
        now = scene.agent.motion.declared & ~scene.previous.motion.declared
        error = distance_to_source(scene.agent.position, scene.sources)
        return -params.reward.per_length * jnp.where(now, error, jnp.zeros_like(error))

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` if the price is negative."""
        price = params.reward.per_length
        require(np.all(np.asarray(price) >= 0), "reward.per_length", price, ">= 0 a length")


@dataclass(frozen=True)
class Sum:
    """The sum of several rewards. Numbers are a dict by name: `reward.goal`, `reward.gain.per_bit`.

    Attributes:
      parts: (name, reward) of each.
    """

    parts: tuple[tuple[str, Any], ...]

    @property
    def asks(self) -> tuple[str, ...]:
        return asked_by(self.parts)

    def default_params(self) -> dict[str, Any]:
        return {name: part.default_params() for name, part in self.parts}

    def reward(self, scene: Scene, params: Params) -> jax.Array:
        return reduce(
            add,
            (
                part.reward(scene, params.replace(reward=params.reward[name]))
                for name, part in self.parts
            ),
        )

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` if there is no part, or one refuses its numbers."""
        require_parts("reward", self.parts)
        for name, part in self.parts:
            validate_part("reward", name, part, params.replace(reward=params.reward[name]))
