"""search/motion: how an action moves the agent on a grid."""

from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.base.errors import require
from plumejax.base.spaces import Discrete
from plumejax.search.state import Agent, Params
from plumejax.search.walls import RULES, AtWall, Touch, require_rule

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


@dataclass(frozen=True)
class _GridMotion:
    """What the grid motions share: their one number, and what a wall does.

    Attributes:
      at_wall: "settle" (what the arena does: an open grid stops the move at its wall, a masked one
        does not let it happen), "stay" (a barred move does not happen), "slide" (its free
        component does) or "end" (stay, and keep `agent.motion.touched` for the ending `AtWall`).
    """

    random_step = False

    at_wall: AtWall = field(default="settle", kw_only=True)

    def begin(self, agent: Agent, params: Params) -> Agent:
        """The agent as it starts; only with at_wall="end" is anything kept."""
        return agent.replace(motion=Touch(jnp.asarray(False))) if self.at_wall == "end" else agent

    def _go(self, agent: Agent, target: jax.Array, arena: Any, params: Params) -> Agent:
        """The agent where it ends that wants to go to float32[d] `target`."""
        position = RULES[self.at_wall](agent.position, target, arena, params)
        if self.at_wall == "end":
            touched = arena.blocked(agent.position, target, params)
            return agent.replace(position=position, motion=Touch(touched))
        return agent.replace(position=position)

    def default_params(self) -> StepParams:
        return StepParams(step=np.float32(1.0))

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` if the step is not a whole number > 0, or at_wall no rule."""
        require_rule(self.at_wall)
        step = np.asarray(params.motion.step)
        whole = np.all((step > 0) & (step == np.round(step)))
        require(whole, "motion.step", params.motion.step, "a whole number of cells > 0")


@dataclass(frozen=True)
class Moves(_GridMotion):
    """Moves along fixed directions of the grid; the heading stays what it was.

    A wall does what `at_wall` says (`search/walls`), by default what the arena does.

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
        return self._go(agent, target, arena, params)

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
    """0 one step along the heading, 1 turn left by 90 degrees, 2 turn right by 90 degrees.

    A wall does what `at_wall` says (`search/walls`), by default what the arena does.
    """

    egocentric = True

    def space(self, params: Params) -> Discrete:
        return Discrete(3)

    def move(
        self, key: jax.Array, agent: Agent, action: Any, air: Any, arena: Any, params: Params
    ) -> Agent:
        turn = jnp.asarray([0.0, 90.0, 270.0], jnp.float32)[action]
        there = ahead(agent.position, agent.heading, params.motion.step)
        moved = self._go(agent, there, arena, params)
        if self.at_wall == "end":  # who only turns touches nothing
            moved = moved.replace(motion=Touch(moved.motion.touched & (action == 0)))
        return moved.replace(
            position=jnp.where(action == 0, moved.position, agent.position),
            heading=jnp.mod(agent.heading + turn, jnp.float32(360.0)),
        )

    def mask(self, agent: Agent, arena: Any, params: Params) -> jax.Array:
        return _forward_mask(3, agent, arena, params)


@dataclass(frozen=True)
class RunAndTumble(_GridMotion):
    """0 run: one step along the heading; 1 tumble: a heading drawn uniformly, then one step.

    A wall does what `at_wall` says (`search/walls`), by default what the arena does.
    """

    egocentric = True
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
        return self._go(agent, there, arena, params).replace(heading=heading)

    def mask(self, agent: Agent, arena: Any, params: Params) -> jax.Array:
        return _forward_mask(2, agent, arena, params)


@dataclass(frozen=True)
class AxisMoves(_GridMotion):
    """2n actions on a grid of n dimensions: action a goes along axis a//2, backwards if a is even.

    So on the plane 0 left, 1 right, 2 down, 3 up (Loisy & Eloy 2022). A move off the grid leaves
    the agent where it was (`at_wall`, by default "stay"); the heading stays what it was.

    Attributes:
      dimensions: n, 1 to 3.
    """

    dimensions: int = 2
    at_wall: AtWall = field(default="stay", kw_only=True)

    def space(self, params: Params) -> Discrete:
        return Discrete(2 * self.dimensions)

    def move(
        self, key: jax.Array, agent: Agent, action: Any, air: Any, arena: Any, params: Params
    ) -> Agent:
        return self._go(agent, self._target(agent, action, params), arena, params)

    def _target(self, agent: Agent, action: Any, params: Params) -> jax.Array:
        along = jnp.arange(self.dimensions, dtype=jnp.int32) == action // 2
        step = jnp.where(action % 2 == 1, params.motion.step, -params.motion.step)
        return agent.position + jnp.where(along, step, jnp.zeros_like(step))

    def mask(self, agent: Agent, arena: Any, params: Params) -> jax.Array:
        targets = jax.vmap(lambda action: self._target(agent, action, params))(
            jnp.arange(2 * self.dimensions, dtype=jnp.int32)
        )
        return ~jax.vmap(lambda target: arena.blocked(agent.position, target, params))(targets)

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` for a step or a number of dimensions that cannot be."""
        super().validate(params)
        require(self.dimensions in (1, 2, 3), "motion.dimensions", self.dimensions, "1, 2 or 3")


@dataclass(frozen=True)
class WindRelative(_GridMotion):
    """0 upwind, 1 downwind, 2 crosswind to the left of upwind, 3 crosswind to the right.

    The wind is that which the agent felt where it stands, rounded to the nearest of the grid's
    four directions; air that does not move counts as a wind along +x. The heading stays what it
    was.

    A wall does what `at_wall` says (`search/walls`), by default what the arena does.
    """

    feels_air = True

    def space(self, params: Params) -> Discrete:
        return Discrete(4)

    def move(
        self, key: jax.Array, agent: Agent, action: Any, air: Any, arena: Any, params: Params
    ) -> Agent:
        x, y = upwind(air.wind[0])
        up = (action == 0).astype(jnp.float32) - (action == 1).astype(jnp.float32)
        left = (action == 2).astype(jnp.float32) - (action == 3).astype(jnp.float32)
        way = jnp.where(jnp.arange(2) == 0, up * x - left * y, up * y + left * x)
        return self._go(agent, agent.position + way * params.motion.step, arena, params)

    def mask(self, agent: Agent, arena: Any, params: Params) -> jax.Array:
        """bool[4], all True: where an action leads is up to a wind that the mask does not see."""
        return jnp.ones(4, bool)


def upwind(wind: jax.Array) -> tuple[jax.Array, jax.Array]:
    """x and y, float32[] each, of the grid's direction nearest to against the wind float32[d]."""
    x, y = wind[0], wind[1]
    mainly_x = jnp.abs(x) >= jnp.abs(y)
    zero, one = jnp.zeros_like(x), jnp.ones_like(x)
    against_x, against_y = (jnp.where(along >= 0, -one, one) for along in (x, y))
    return jnp.where(mainly_x, against_x, zero), jnp.where(mainly_x, zero, against_y)


def ahead(position: jax.Array, heading: jax.Array, step: Any) -> jax.Array:
    """float32[2]: `step` cells along `heading` (degrees), to the nearest whole cell."""
    angle = jnp.deg2rad(heading)
    # Only the way is rounded: far from the origin a sum would have lost its last digits.
    return position + jnp.round(step * jnp.stack([jnp.cos(angle), jnp.sin(angle)]))


def _forward_mask(n: int, agent: Agent, arena: Any, params: Params) -> jax.Array:
    there = ahead(agent.position, agent.heading, params.motion.step)
    forward = ~arena.blocked(agent.position, there, params)
    return jnp.ones(n, bool).at[0].set(forward)
