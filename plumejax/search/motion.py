"""search/motion: how an action moves the agent on a grid."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.base.errors import require
from plumejax.base.spaces import Discrete
from plumejax.search.state import Agent, Params

FOUR = ((0, 1), (1, 0), (0, -1), (-1, 0))
"""Up, right, down, left: y is up."""

NINE = ((0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1), (-1, 0), (-1, 1), (0, 0))
"""The eight directions clockwise from up, then stay."""


class StepParams(struct.PyTreeNode):
    """Numbers of a grid motion.

    Attributes:
      step: float32[], cells a move, a whole number > 0.
    """

    step: Any


class _GridMotion:
    """What the grid motions share: their one number, and its check."""

    random_step = False

    def default_params(self) -> StepParams:
        return StepParams(step=np.float32(1.0))

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` if the step is not a whole number > 0."""
        step = np.asarray(params.motion.step)
        whole = np.all((step > 0) & (step == np.round(step)))
        require(whole, "motion.step", params.motion.step, "a whole number of cells > 0")


@dataclass(frozen=True)
class Moves(_GridMotion):
    """Moves along fixed directions of the grid; the heading stays what it was.

    Attributes:
      directions: (dx, dy) of each action.
    """

    directions: tuple[tuple[int, int], ...] = FOUR

    def space(self, params: Params) -> Discrete:
        return Discrete(len(self.directions))

    def move(
        self, key: jax.Array, agent: Agent, action: Any, air: Any, arena: Any, params: Params
    ) -> Agent:
        target = agent.position + self._direction(action) * params.motion.step
        return agent.replace(position=arena.settle(agent.position, target, params))

    def _direction(self, action: jax.Array) -> jax.Array:
        """float32[2]. Sums of comparisons: a table is looked up one lane at a time."""
        chosen = [(action == number).astype(jnp.float32) for number in range(len(self.directions))]
        x, y = (
            sum(np.float32(way[axis]) * c for way, c in zip(self.directions, chosen, strict=True))
            for axis in range(2)
        )
        return jnp.where(jnp.arange(2) == 0, x, y)

    def mask(self, agent: Agent, arena: Any, params: Params) -> jax.Array:
        targets = agent.position[None] + (
            jnp.asarray(self.directions, jnp.float32) * params.motion.step
        )
        return ~jax.vmap(lambda target: arena.blocked(agent.position, target, params))(targets)


@dataclass(frozen=True)
class Oriented(_GridMotion):
    """0 one step along the heading, 1 turn left by 90 degrees, 2 turn right by 90 degrees."""

    def space(self, params: Params) -> Discrete:
        return Discrete(3)

    def move(
        self, key: jax.Array, agent: Agent, action: Any, air: Any, arena: Any, params: Params
    ) -> Agent:
        turn = jnp.asarray([0.0, 90.0, 270.0], jnp.float32)[action]
        there = ahead(agent.position, agent.heading, params.motion.step)
        there = arena.settle(agent.position, there, params)
        return agent.replace(
            position=jnp.where(action == 0, there, agent.position),
            heading=jnp.mod(agent.heading + turn, jnp.float32(360.0)),
        )

    def mask(self, agent: Agent, arena: Any, params: Params) -> jax.Array:
        return _forward_mask(3, agent, arena, params)


@dataclass(frozen=True)
class RunAndTumble(_GridMotion):
    """0 run: one step along the heading; 1 tumble: a heading drawn uniformly, then one step."""

    random_step = True

    def space(self, params: Params) -> Discrete:
        return Discrete(2)

    def move(
        self, key: jax.Array, agent: Agent, action: Any, air: Any, arena: Any, params: Params
    ) -> Agent:
        drawn = jax.random.uniform(key, (), jnp.float32, 0.0, 360.0)
        return self.run(agent, jnp.where(action == 1, drawn, agent.heading), arena, params)

    def run(self, agent: Agent, heading: jax.Array, arena: Any, params: Params) -> Agent:
        """One step along `heading`, float32[] degrees, which the agent keeps."""
        there = ahead(agent.position, heading, params.motion.step)
        return agent.replace(position=arena.settle(agent.position, there, params), heading=heading)

    def mask(self, agent: Agent, arena: Any, params: Params) -> jax.Array:
        return _forward_mask(2, agent, arena, params)


def ahead(position: jax.Array, heading: jax.Array, step: Any) -> jax.Array:
    """float32[2]: `step` cells along `heading` (degrees), to the nearest whole cell."""
    angle = jnp.deg2rad(heading)
    # Only the way is rounded: far from the origin a sum would have lost its last digits.
    return position + jnp.round(step * jnp.stack([jnp.cos(angle), jnp.sin(angle)]))


def _forward_mask(n: int, agent: Agent, arena: Any, params: Params) -> jax.Array:
    there = ahead(agent.position, agent.heading, params.motion.step)
    forward = ~arena.blocked(agent.position, there, params)
    return jnp.ones(n, bool).at[0].set(forward)
