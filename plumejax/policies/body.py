"""policies/body: the turn and the speed that a policy wants, as an action of the task's motion.

A policy is written once, in the frame of its heading; its `Body` tells it the odour and the wind
in that frame and knows which action comes nearest to what it wants. On a grid of fixed directions
the heading is one that the body keeps in mind.
"""

from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from plumejax.policies.reader import Reader
from plumejax.search.headings import ahead_and_left, direction, in_circle
from plumejax.search.wind_sensors import ApparentWind


class Posture(struct.PyTreeNode):
    """What a body keeps in mind, float32[] each.

    Attributes:
      heading: degrees; on fixed directions that which is kept to; otherwise not known, 0.
      owed: degrees to the left that were wanted and not yet turned.
      speed: lengths a second through the air, in the last step.
      astray: steps to the left of the line that was wanted, on fixed directions.
    """

    heading: jax.Array
    owed: jax.Array
    speed: jax.Array
    astray: jax.Array


class Body(struct.PyTreeNode):
    """What the bodies share: the senses.

    Attributes:
      reader: of the observation, static.
      dt: float32[], s, what a step takes.
      fastest: float32[], lengths a second.
      downwind: float32[], degrees from +x, where the air goes to: read if no sensor feels wind.
      drift: float32[], the part of the wind's velocity that carries the agent.
    """

    reader: Reader = struct.field(pytree_node=False)
    dt: Any
    fastest: Any
    downwind: Any
    drift: Any

    def begin(self, key: jax.Array) -> Posture:
        """The posture at the start of an episode; the key is consumed."""
        zero = jnp.zeros((), jnp.float32)
        return Posture(zero, zero, zero, zero)

    def odour(self, observation: Any) -> jax.Array:
        """float32[], in the unit of the sensor."""
        return self.reader.odour(observation)

    def wind(self, posture: Posture, observation: Any) -> jax.Array:
        """float32[2], where the air goes to, ahead and to the left, lengths a second; of a wind
        that is only told, 1."""
        vane = self.reader.vane
        if vane is None:
            return ahead_and_left(direction(self.downwind), self._facing(posture, observation))
        felt = self.reader.wind(observation)
        if not vane.sensor.egocentric:
            felt = ahead_and_left(felt, self._facing(posture, observation))
        if not isinstance(vane.sensor, ApparentWind):
            return felt
        # Its own velocity is along its heading.
        felt = felt + jnp.where(jnp.arange(2) == 0, posture.speed, 0.0)
        return felt if vane.sensor.own == "air" else felt / (1.0 - self.drift)

    def go(self, posture: Posture, turn: Any, speed: Any) -> tuple[jax.Array, Posture]:
        """`(action, posture)`: `turn` degrees to the left, then on at `speed` lengths a second."""
        raise NotImplementedError

    def _facing(self, posture: Posture, observation: Any) -> jax.Array:
        return self.reader.heading(observation)


class Walker(Body):
    """Of `TurnAndSpeed`: any turn up to half its range a step, any speed up to its fastest.

    Attributes:
      turn_range: float32[], degrees a second, from the fastest turn right to the fastest left.
    """

    turn_range: Any

    def go(self, posture: Posture, turn: Any, speed: Any) -> tuple[jax.Array, Posture]:
        turn = wrapped(turn)
        reach = self.turn_range * self.dt
        turned = jnp.clip(turn, -reach / 2, reach / 2)
        part = jnp.clip(jnp.asarray(speed / self.fastest, jnp.float32), 0.0, 1.0)
        # What rounds to less than 0 would be refused.
        share = jnp.clip(0.5 + turned / reach, 0.0, 1.0)
        action = jnp.where(jnp.arange(2) == 0, share, part)
        return action, posture.replace(owed=turn - turned, speed=part * self.fastest)


class Turner(Body):
    """Of motions that go on or turn by a fixed angle to either side.

    Attributes:
      actions: on, left, right, and to stand still (on, if it cannot), static.
      walks_on: whether it goes on in the step in which it turns, static.
      step: float32[], degrees of a turn; what is owed is turned when it comes to half as much.
    """

    actions: tuple[int, int, int, int] = struct.field(pytree_node=False)
    walks_on: bool = struct.field(pytree_node=False)
    step: Any

    def go(self, posture: Posture, turn: Any, speed: Any) -> tuple[jax.Array, Posture]:
        turn = wrapped(turn)
        on, left, right, stand = (jnp.int32(action) for action in self.actions)
        turns = jnp.abs(turn) >= self.step / 2
        stands = jnp.asarray(speed) <= 0
        stays = stands & (self.actions[3] != self.actions[0])
        action = jnp.where(turns & ~stays, jnp.where(turn > 0, left, right), on)
        turned = jnp.where(turns & ~stays, jnp.sign(turn) * self.step, 0.0)
        walks = ~stays if self.walks_on else ~stays & ~turns
        owed = jnp.zeros_like(turn) if self.actions[1] == self.actions[2] else turn - turned
        posture = posture.replace(owed=owed, speed=jnp.where(walks, self.fastest, 0.0))
        return jnp.where(stays, stand, action), posture


class Stepper(Body):
    """Of motions along fixed directions: it keeps to a line in any direction as well as they can.

    Attributes:
      directions: (dx, dy) of each action, static; (0, 0) stands still.
    """

    directions: tuple[tuple[int, int], ...] = struct.field(pytree_node=False)

    def begin(self, key: jax.Array) -> Posture:
        heading = jax.random.uniform(key, (), jnp.float32, 0.0, 360.0)
        return super().begin(key).replace(heading=heading)

    def go(self, posture: Posture, turn: Any, speed: Any) -> tuple[jax.Array, Posture]:
        turn = jnp.asarray(turn, jnp.float32)
        heading = in_circle(posture.heading + turn)
        astray = jnp.where(jnp.abs(turn) > 1.0, 0.0, posture.astray)
        steps = [ahead_and_left(jnp.asarray(way, jnp.float32), heading) for way in self.directions]
        ahead, left = jnp.stack(steps, axis=-1)
        # Of those that lead on, the one that ends nearest to the line.
        away = jnp.where(ahead > 1e-3, jnp.abs(astray + left) - 1e-3 * ahead, jnp.inf)
        action = jnp.argmin(away).astype(jnp.int32)
        chosen = jnp.arange(len(steps), dtype=jnp.int32) == action
        astray = astray + jnp.sum(jnp.where(chosen, left, 0.0))
        moved = posture.replace(heading=heading, astray=astray, owed=jnp.zeros_like(turn))
        if (0, 0) not in self.directions:
            return action, moved
        stands = jnp.asarray(speed) <= 0
        still = posture.replace(heading=heading)
        moved = jax.tree.map(lambda a, b: jnp.where(stands, a, b), still, moved)
        return jnp.where(stands, jnp.int32(self.directions.index((0, 0))), action), moved

    def _facing(self, posture: Posture, observation: Any) -> jax.Array:
        return posture.heading

    def wind(self, posture: Posture, observation: Any) -> jax.Array:
        vane = self.reader.vane
        if vane is None or not vane.sensor.egocentric:
            return super().wind(posture, observation)
        # In the frame of a heading that stays what it was, which only a compass tells.
        over_ground = ahead_and_left(
            self.reader.wind(observation), -self.reader.heading(observation)
        )
        return ahead_and_left(over_ground, posture.heading)


def wrapped(degrees: Any) -> jax.Array:
    """float32[]: the same angle in (-180, 180]."""
    angle = jnp.asarray(degrees, jnp.float32)
    return angle - 360.0 * jnp.ceil((angle - 180.0) / 360.0)


def turn_upwind(wind: jax.Array, angle: Any = 0.0, drift: Any = 0.0, speed: Any = 1.0) -> jax.Array:
    """float32[]: degrees to turn left so that the way leads `angle` degrees left of upwind.

    The way over ground: what the wind carries to the side, `drift` of it, is made up for, as far as
    `speed`, through the air, allows. In still air 0.

    Args:
      wind: float32[2], ahead and to the left, lengths a second.
      angle: float32[], degrees.
      drift: float32[], the part of the wind that carries the agent.
      speed: float32[], lengths a second.
    """
    ahead, left = wind[0], wind[1]
    still = (ahead == 0) & (left == 0)
    upwind = jnp.rad2deg(jnp.arctan2(-left, jnp.where(still, jnp.float32(-1.0), -ahead)))
    strength = jnp.sqrt(jnp.where(still, 1.0, jnp.square(ahead) + jnp.square(left)))
    angle = jnp.asarray(angle, jnp.float32)
    aside = drift * strength * jnp.sin(jnp.deg2rad(angle)) / speed
    made_up = jnp.rad2deg(jnp.arcsin(jnp.clip(jnp.asarray(aside, jnp.float32), -1.0, 1.0)))
    return jnp.where(still, 0.0, wrapped(upwind + angle - made_up))
