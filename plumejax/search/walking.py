"""search/walking: motions through continuous space, at speeds in lengths of the plume a second."""

from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.base.errors import require, require_positive
from plumejax.base.spaces import Box, Discrete
from plumejax.search.headings import direction, in_circle
from plumejax.search.state import Agent, Params
from plumejax.search.walls import RULES, AtWall, require_rule


class Travel(struct.PyTreeNode):
    """What the motions through continuous space keep.

    Attributes:
      velocity: float32[d], lengths a second: the agent's own, through the air, without the wind's
        drift; a component that a wall stopped is 0.
      touched: bool[], whether the way of the last move was barred.
    """

    velocity: jax.Array
    touched: jax.Array


@dataclass(frozen=True)
class Walking:
    """What the motions through continuous space share.

    Attributes:
      at_wall: "settle" (the move ends where the arena says, at the wall), "stay" (a barred move
        does not happen), "slide" (its free components do) or "end" (stay, for the ending
        `AtWall`). `agent.motion.touched` is kept whatever the choice.
    """

    random_step = False

    at_wall: AtWall = field(default="settle", kw_only=True)

    def begin(self, agent: Agent, params: Params) -> Agent:
        """The agent as it starts, at rest."""
        rest = Travel(velocity=jnp.zeros_like(agent.position), touched=jnp.asarray(False))
        return agent.replace(motion=rest)

    def forward_mask(self, actions: int, agent: Agent, arena: Any, params: Params) -> jax.Array:
        """bool[actions]: the first, a step straight on, unless its way is barred; the others."""
        there = agent.position + params.motion.speed * params.dt * direction(agent.heading)
        forward = ~arena.blocked(agent.position, there, params)
        return jnp.where(jnp.arange(actions) == 0, forward, True)

    def travel(
        self, agent: Agent, velocity: jax.Array, way: jax.Array, arena: Any, params: Params
    ) -> Agent:
        """The agent that goes `way`, float32[d], and has `velocity` after it if no wall forbids."""
        target = agent.position + way
        position = RULES[self.at_wall](agent.position, target, arena, params)
        touched = arena.blocked(agent.position, target, params)
        stopped = touched & (position != target)
        velocity = jnp.where(stopped, jnp.zeros_like(velocity), velocity)
        return agent.replace(position=position, motion=Travel(velocity, touched))

    def mask(self, agent: Agent, arena: Any, params: Params) -> jax.Array:
        """bool[1], True: of a continuum of actions none is barred."""
        return jnp.ones(1, bool)

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` if at_wall is no rule."""
        require_rule(self.at_wall)


class TurnAndSpeedParams(struct.PyTreeNode):
    """Numbers of a `TurnAndSpeed`.

    Attributes:
      turn_range: float32[], degrees a second, > 0, from the fastest turn right to the fastest left.
      max_speed: float32[], lengths a second, > 0.
      drift: float32[], in [0, 1], the part of the wind's velocity that is added to the agent's.
    """

    turn_range: Any
    max_speed: Any
    drift: Any


def tracking_code() -> TurnAndSpeedParams:
    """A flying agent as in the published code of Singh et al. 2023, in m: 6.25 pi rad/s, 2 m/s."""
    return _turn_and_speed(6.25 * 180.0, 2.0, 1.0)


def tracking_paper() -> TurnAndSpeedParams:
    """A flying agent as in the paper of Singh et al. 2023, in m: 12.5 pi rad/s, 2.5 m/s."""
    return _turn_and_speed(12.5 * 180.0, 2.5, 1.0)


def tracking_walking() -> TurnAndSpeedParams:
    """A walking agent as in the code of Singh et al. 2023, in m: pi rad/s, 0.05 m/s, no drift."""
    return _turn_and_speed(180.0, 0.05, 0.0)


def _turn_and_speed(turn_range: float, max_speed: float, drift: float) -> TurnAndSpeedParams:
    return TurnAndSpeedParams(np.float32(turn_range), np.float32(max_speed), np.float32(drift))


@dataclass(frozen=True)
class TurnAndSpeed(Walking):
    """Turns, then goes where it heads: an action is (turn, speed), float32[2] in [0, 1].

    heading += (turn - 1/2) turn_range dt, then velocity = speed max_speed (cos, sin)(heading), and
    position += (velocity + drift wind) dt, with the wind that the agent felt where it was. So 1/2
    is straight on, more turns left. Default numbers: `tracking_code()`, or `tracking_walking()`
    if the agent feels no air.

    A wall does what `at_wall` says (`search/walls`), by default what the arena does.

    Attributes:
      feels_air: False: no wind is asked for, and drift must be 0.
    """

    egocentric = True

    feels_air: bool = True

    def default_params(self) -> TurnAndSpeedParams:
        return tracking_code() if self.feels_air else tracking_walking()

    def space(self, params: Params) -> Box:
        return Box(0.0, 1.0, (2,))

    def move(
        self, key: jax.Array, agent: Agent, action: Any, air: Any, arena: Any, params: Params
    ) -> Agent:
        own, dt = params.motion, params.dt
        turn, speed = jnp.clip(jnp.asarray(action, jnp.float32), 0.0, 1.0)
        heading = in_circle(agent.heading + (turn - 0.5) * own.turn_range * dt)
        velocity = speed * own.max_speed * direction(heading)
        over_ground = velocity + own.drift * air.wind[0, :2] if self.feels_air else velocity
        moved = self.travel(agent, velocity, over_ground * dt, arena, params)
        return moved.replace(heading=heading)

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` for a number that is not allowed."""
        super().validate(params)
        own = params.motion
        for name in ("turn_range", "max_speed"):
            require_positive(f"motion.{name}", getattr(own, name))
        drift = np.asarray(own.drift)
        require(np.all((drift >= 0) & (drift <= 1)), "motion.drift", own.drift, "in [0, 1]")
        felt = self.feels_air or np.all(drift == 0)
        require(felt, "motion.drift", own.drift, "0 of a motion with feels_air=False")


class VelocityParams(struct.PyTreeNode):
    """Numbers of a `Velocity`.

    Attributes:
      acceleration: float32[], lengths a second squared, > 0, of an action of 1.
      drag: float32[], 1/s, >= 0: alone it stops the agent with the time constant 1/drag.
      max_speed: float32[], lengths a second, > 0.
    """

    acceleration: Any
    drag: Any
    max_speed: Any


@dataclass(frozen=True)
class Velocity(Walking):
    """Inertia: an action, float32[d] in [-1, 1], pushes, the drag holds back.

    dv/dt = acceleration action - drag v, solved exactly over a step, so a path does not depend on
    how finely its time is cut, as long as max_speed does not cut the speed. The terminal speed of
    a push along one axis is acceleration / drag. The heading is that of the velocity's x and y.

    A wall does what `at_wall` says (`search/walls`), by default what the arena does.

    Attributes:
      dimensions: d, 2 or 3.
    """

    dimensions: int = 2

    def default_params(self) -> VelocityParams:
        """Of order one, no animal's."""
        return VelocityParams(
            acceleration=np.float32(1.0), drag=np.float32(1.0), max_speed=np.float32(1.0)
        )

    def space(self, params: Params) -> Box:
        return Box(-1.0, 1.0, (self.dimensions,))

    def move(
        self, key: jax.Array, agent: Agent, action: Any, air: Any, arena: Any, params: Params
    ) -> Agent:
        own, dt = params.motion, params.dt
        push = own.acceleration * jnp.clip(jnp.asarray(action, jnp.float32), -1.0, 1.0)
        before = agent.motion.velocity
        decay = jnp.asarray(own.drag * dt, jnp.float32)
        once, twice = _decay_integrals(decay)
        after = limited(before * jnp.exp(-decay) + push * (dt * once), own.max_speed)
        way = limited(before * (dt * once) + push * (dt * dt * twice), own.max_speed * dt)
        moved = self.travel(agent, after, way, arena, params)
        return moved.replace(heading=_heading_of(moved.motion.velocity, agent.heading))

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` for a number that is not allowed."""
        super().validate(params)
        own = params.motion
        require(self.dimensions in (2, 3), "motion.dimensions", self.dimensions, "2 or 3")
        for name in ("acceleration", "max_speed"):
            require_positive(f"motion.{name}", getattr(own, name))
        require(np.all(np.asarray(own.drag) >= 0), "motion.drag", own.drag, ">= 0 a second")


class UnicycleParams(struct.PyTreeNode):
    """Numbers of a `Unicycle`.

    Attributes:
      speed: float32[], lengths a second, > 0.
      turn: float32[], degrees a turn, in (0, 180].
    """

    speed: Any
    turn: Any


@dataclass(frozen=True)
class Unicycle(Walking):
    """0 forward for a step's time; on the spot 1 turns left by `turn` degrees and 2 turns right.

    A wall does what `at_wall` says (`search/walls`), by default what the arena does.
    """

    egocentric = True

    def default_params(self) -> UnicycleParams:
        return UnicycleParams(speed=np.float32(1.0), turn=np.float32(30.0))

    def space(self, params: Params) -> Discrete:
        return Discrete(3)

    def move(
        self, key: jax.Array, agent: Agent, action: Any, air: Any, arena: Any, params: Params
    ) -> Agent:
        own = params.motion
        left = (action == 1).astype(jnp.float32) - (action == 2).astype(jnp.float32)
        heading = in_circle(agent.heading + left * own.turn)
        velocity = jnp.where(action == 0, own.speed, jnp.zeros_like(own.speed)) * direction(heading)
        moved = self.travel(agent, velocity, velocity * params.dt, arena, params)
        return moved.replace(heading=heading)

    def mask(self, agent: Agent, arena: Any, params: Params) -> jax.Array:
        """bool[3]: forward unless the way is barred, and both turns."""
        return self.forward_mask(3, agent, arena, params)

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` for a number that is not allowed."""
        super().validate(params)
        require_positive("motion.speed", params.motion.speed)
        turn = np.asarray(params.motion.turn)
        good = np.all((turn > 0) & (turn <= 180))
        require(good, "motion.turn", params.motion.turn, "degrees in (0, 180]")


def limited(vector: jax.Array, longest: Any) -> jax.Array:
    """float32[d]: the vector, made no longer than `longest`, > 0."""
    squared = reduce(add, (jnp.square(vector[i]) for i in range(vector.shape[-1])))
    over = squared > longest * longest
    # The root is taken only of what is too long: at rest it has no gradient.
    scale = longest / jnp.sqrt(jnp.where(over, squared, jnp.ones_like(squared)))
    return jnp.where(over, vector * scale, vector)


def _decay_integrals(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(1 - e^-x) / x and (x - 1 + e^-x) / x^2, float32[] each, also at and near 0."""
    small = x < 0.05
    # Each branch gets a number that it can bear: a gradient goes through both.
    s = jnp.where(small, x, jnp.zeros_like(x))
    x = jnp.where(small, jnp.ones_like(x), x)
    once = jnp.where(small, 1 - s / 2 + s**2 / 6 - s**3 / 24, -jnp.expm1(-x) / x)
    twice = jnp.where(small, 0.5 - s / 6 + s**2 / 24 - s**3 / 120, (x + jnp.expm1(-x)) / x**2)
    return once, twice


def _heading_of(velocity: jax.Array, otherwise: jax.Array) -> jax.Array:
    """float32[]: degrees of the velocity's x and y; `otherwise` at rest."""
    x, y = velocity[0], velocity[1]
    rest = (x == 0) & (y == 0)
    angle = jnp.rad2deg(jnp.arctan2(y, jnp.where(rest, jnp.ones_like(x), x)))
    return jnp.where(rest, otherwise, in_circle(angle))
