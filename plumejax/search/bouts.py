"""search/bouts: motions of saccades and stops, of sniffs between moves, and of a last word."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.base.errors import require, require_positive
from plumejax.base.spaces import Discrete
from plumejax.search.components import validate_part
from plumejax.search.headings import direction, in_circle
from plumejax.search.state import Agent, Params
from plumejax.search.walking import Walking


class SaccadesParams(struct.PyTreeNode):
    """Numbers of `Saccades`.

    Attributes:
      speed: float32[], lengths a second, > 0, while walking.
      turn: float32[], degrees, >= 0, the mean size of a saccade.
      turn_spread: float32[], degrees, >= 0, its standard deviation.
      heading_noise: float32[], degrees per square root of a second, >= 0: the heading of a walking
        agent diffuses, by a standard deviation of heading_noise sqrt(t) in t seconds.
    """

    speed: Any
    turn: Any
    turn_spread: Any
    heading_noise: Any


@dataclass(frozen=True)
class Saccades(Walking):
    """A walking fly: 0 walk on, 1 turn left and walk on, 2 turn right and walk on, 3 stand still.

    A turn takes no time and its size is drawn, |N(turn, turn_spread)|. Default numbers in mm, of
    Demir et al. 2020: 10.1 mm/s, saccades of 30 +- 8 degrees, a heading noise of 20/89.94 degrees
    a frame at 89.94 frames a second.

    A wall does what `at_wall` says (`search/walls`), by default what the arena does.
    """

    egocentric = True
    random_step = True

    def default_params(self) -> SaccadesParams:
        return SaccadesParams(
            speed=np.float32(10.1),
            turn=np.float32(30.0),
            turn_spread=np.float32(8.0),
            heading_noise=np.float32(20.0 / np.sqrt(89.94)),
        )

    def space(self, params: Params) -> Discrete:
        return Discrete(4)

    def move(
        self, key: jax.Array, agent: Agent, action: Any, air: Any, arena: Any, params: Params
    ) -> Agent:
        own = params.motion
        drawn, wobble = jax.random.normal(key, (2,), jnp.float32)
        left = (action == 1).astype(jnp.float32) - (action == 2).astype(jnp.float32)
        walks = (action != 3).astype(jnp.float32)
        turned = left * jnp.abs(own.turn + own.turn_spread * drawn)
        turned += walks * own.heading_noise * jnp.sqrt(jnp.asarray(params.dt)) * wobble
        heading = in_circle(agent.heading + turned)
        velocity = walks * own.speed * direction(heading)
        moved = self.travel(agent, velocity, velocity * params.dt, arena, params)
        return moved.replace(heading=heading)

    def mask(self, agent: Agent, arena: Any, params: Params) -> jax.Array:
        """bool[4]: walking on unless the way straight on is barred, all else."""
        return self.forward_mask(4, agent, arena, params)

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` for a number that is not allowed."""
        super().validate(params)
        require_positive("motion.speed", params.motion.speed)
        for name in ("turn", "turn_spread", "heading_noise"):
            value = getattr(params.motion, name)
            require(np.all(np.asarray(value) >= 0), f"motion.{name}", value, ">= 0")


class _OneMore:
    """What the motions share that add one action, the last, to those of the motion `of`."""

    of: Any

    @property
    def random_step(self) -> bool:
        return getattr(self.of, "random_step", True)

    @property
    def feels_air(self) -> bool:
        return getattr(self.of, "feels_air", False)

    @property
    def egocentric(self) -> bool:
        return getattr(self.of, "egocentric", False)

    def space(self, params: Any) -> Discrete:
        return Discrete(self._count(params) + 1)

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` for numbers that the inner motion refuses, or if it has none."""
        space = self.of.space(_inner(params))
        require(isinstance(space, Discrete), "motion.of", self.of, "a motion of discrete actions")
        validate_part("motion", "of", self.of, _inner(params))

    def _count(self, params: Any) -> int:
        return self.of.space(_inner(params)).n

    def _begin(self, agent: Agent, params: Params) -> Agent:
        return self.of.begin(agent, _inner(params)) if hasattr(self.of, "begin") else agent

    def _move(
        self, key: jax.Array, agent: Agent, action: Any, air: Any, arena: Any, params: Params
    ) -> tuple[Agent, jax.Array]:
        """`(agent, chosen)`: as the inner motion moves it, or as it was if the last was chosen."""
        count = self._count(params)
        moved = self.of.move(key, agent, jnp.minimum(action, count - 1), air, arena, _inner(params))
        chosen = jnp.asarray(action == count)
        return jax.tree.map(lambda a, b: jnp.where(chosen, a, b), agent, moved), chosen

    def _mask(self, agent: Agent, arena: Any, params: Params) -> jax.Array:
        return jnp.append(self.of.mask(agent, arena, _inner(params)), True)


class SniffOrMoveParams(struct.PyTreeNode):
    """Numbers of a `SniffOrMove`.

    Attributes:
      of: the numbers of the motion.
      low: float32[], z of the nose at the ground, lengths of the plume.
      high: float32[], z of the nose in the air, > low.
    """

    of: Any
    low: Any
    high: Any


class Sniffing(struct.PyTreeNode):
    """What a `SniffOrMove` keeps.

    Attributes:
      of: what the motion keeps.
      sniffing: bool[], whether the nose is in the air.
    """

    of: Any
    sniffing: jax.Array

    @property
    def touched(self) -> jax.Array:
        """bool[], what the motion keeps of walls."""
        return self.of.touched

    @property
    def declared(self) -> jax.Array:
        """bool[], what the motion keeps of declarations."""
        return self.of.declared


@dataclass(frozen=True)
class SniffOrMove(_OneMore):
    """Moves with the nose at the ground, or as one more action stands and sniffs in the air.

    The alternation of Rigolli et al. 2022 (eLife 11, e76989): a sniff in the air costs a step. The
    default heights, 0 and 1, are ours.
    The agent's position is float32[3], its z the height of the nose, for a plume of three
    dimensions; arena and start have the two of the ground. A wall does what it does to the motion.

    Attributes:
      of: a motion of discrete actions on the plane.
    """

    of: Any

    def default_params(self) -> SniffOrMoveParams:
        return SniffOrMoveParams(
            of=self.of.default_params(), low=np.float32(0.0), high=np.float32(1.0)
        )

    def begin(self, agent: Agent, params: Params) -> Agent:
        """The agent as it starts, the nose at the ground."""
        ground = self._begin(agent.replace(position=agent.position[:2]), params)
        return _with_nose(ground, jnp.asarray(False), params)

    def move(
        self, key: jax.Array, agent: Agent, action: Any, air: Any, arena: Any, params: Params
    ) -> Agent:
        moved, sniffing = self._move(key, _on_ground(agent), action, air, arena, params)
        return _with_nose(moved, sniffing, params)

    def mask(self, agent: Agent, arena: Any, params: Params) -> jax.Array:
        return self._mask(_on_ground(agent), arena, params)

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` if a number is not allowed."""
        super().validate(params)
        low, high = np.asarray(params.motion.low), np.asarray(params.motion.high)
        require(np.all(high > low), "motion.high", params.motion.high, f"> motion.low, {low}")


class DeclareParams(struct.PyTreeNode):
    """Numbers of a `Declare`.

    Attributes:
      of: the numbers of the motion.
    """

    of: Any


class Declaring(struct.PyTreeNode):
    """What a `Declare` keeps.

    Attributes:
      of: what the motion keeps.
      declared: bool[], whether the agent has declared the source.
    """

    of: Any
    declared: jax.Array

    @property
    def touched(self) -> jax.Array:
        """bool[], what the motion keeps of walls."""
        return self.of.touched

    @property
    def sniffing(self) -> jax.Array:
        """bool[], what the motion keeps of sniffs."""
        return self.of.sniffing


@dataclass(frozen=True)
class Declare(_OneMore):
    """As one more action the agent declares that the source is here, and does not move.

    The ending `Declared` reads `agent.motion.declared`. A wall does what it does to the motion.

    Attributes:
      of: a motion of discrete actions.
    """

    of: Any

    def default_params(self) -> DeclareParams:
        return DeclareParams(of=self.of.default_params())

    def begin(self, agent: Agent, params: Params) -> Agent:
        """The agent as it starts, with nothing declared."""
        begun = self._begin(agent, params)
        return begun.replace(motion=Declaring(begun.motion, jnp.asarray(False)))

    def move(
        self, key: jax.Array, agent: Agent, action: Any, air: Any, arena: Any, params: Params
    ) -> Agent:
        before = agent.replace(motion=agent.motion.of)
        moved, declares = self._move(key, before, action, air, arena, params)
        return moved.replace(motion=Declaring(moved.motion, agent.motion.declared | declares))

    def mask(self, agent: Agent, arena: Any, params: Params) -> jax.Array:
        return self._mask(agent.replace(motion=agent.motion.of), arena, params)


def _inner(params: Any) -> Any:
    """The task's numbers as the inner motion expects them; None if the space was asked without."""
    return None if params is None else params.replace(motion=params.motion.of)


def _on_ground(agent: Agent) -> Agent:
    return agent.replace(position=agent.position[:2], motion=agent.motion.of)


def _with_nose(agent: Agent, sniffing: jax.Array, params: Params) -> Agent:
    height = jnp.asarray(jnp.where(sniffing, params.motion.high, params.motion.low), jnp.float32)
    position = jnp.append(agent.position, height)
    return agent.replace(position=position, motion=Sniffing(agent.motion, sniffing))
