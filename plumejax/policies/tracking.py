"""policies/tracking: what the policies share that track a plume upwind, and their zigzags."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.base.errors import require
from plumejax.policies.body import Body, Posture, turn_upwind
from plumejax.policies.fitting import STEERED, body_and_speed
from plumejax.search.environment import PlumeSearch
from plumejax.search.state import Params

LONGEST = np.int32(2**30)
"""Steps that a count of steps stops at."""


class Track(struct.PyTreeNode):
    """What a tracker remembers.

    Attributes:
      posture: of its body.
      steps: int32[], of the episode.
      lost: int32[], steps since the last odour, and at the start.
      side: float32[], 1 or -1, left or right of upwind.
      angle: float32[], degrees, a direction drawn.
    """

    posture: Posture
    steps: jax.Array
    lost: jax.Array
    side: jax.Array
    angle: jax.Array


class Tracker(struct.PyTreeNode):
    """Smells, says how to turn, and goes on: a subclass says how in `steer`.

    A search starts as if the odour had just been lost.

    Attributes:
      body: of the task.
      speed: float32[], lengths a second, through the air.
      threshold: float32[], in the unit of the sensor; what is above is odour.
    """

    body: Body
    speed: Any
    threshold: Any

    def init(self, key: jax.Array) -> Track:
        """The side drawn; the key is consumed."""
        body_key, side_key, angle_key = jax.random.split(key, 3)
        none = jnp.zeros((), jnp.int32)
        side = jax.random.rademacher(side_key, (), jnp.float32)
        angle = jax.random.uniform(angle_key, (), jnp.float32, -180.0, 180.0)
        return Track(self.body.begin(body_key), none, none, side, angle)

    def act(self, key: jax.Array, carry: Track, observation: Any) -> tuple[jax.Array, Track]:
        """`(action, carry)`; the key is consumed."""
        smells = self.body.odour(observation) > self.threshold
        wind = self.body.wind(carry.posture, observation)
        lost = jnp.where(smells, jnp.int32(0), jnp.minimum(carry.lost + jnp.int32(1), LONGEST))
        turn, now = self.steer(key, carry.replace(lost=lost), carry, wind)
        action, posture = self.body.go(carry.posture, turn, self.speed)
        return action, now.replace(posture=posture, steps=carry.steps + jnp.int32(1))

    def steer(
        self, key: jax.Array, now: Track, before: Track, wind: jax.Array
    ) -> tuple[jax.Array, Track]:
        """`(turn, now)`: degrees to the left, and what is kept; the key is consumed."""
        raise NotImplementedError

    def course(self, wind: jax.Array, angle: Any) -> jax.Array:
        """float32[]: the turn onto the way that leads `angle` degrees left of upwind."""
        return turn_upwind(wind, angle, self.body.drift, self.speed)

    def seconds(self, steps: jax.Array) -> jax.Array:
        """float32[], s, of int32[] steps; half a step more, against rounding, if there are any."""
        return jnp.where(steps > 0, (steps.astype(jnp.float32) + 0.5) * self.body.dt, 0.0)


def leg(seconds: jax.Array, first: Any) -> jax.Array:
    """float32[]: on which leg a zigzag is, 0 at the start, whose legs last 1, 2, 3, ... `first`."""
    return jnp.floor((jnp.sqrt(1.0 + 8.0 * jnp.maximum(seconds, 0.0) / first) - 1.0) / 2.0)


def alternate(number: jax.Array) -> jax.Array:
    """float32[]: 1 if the number, float32[] and whole, is even, else -1."""
    return 1.0 - 2.0 * jnp.mod(number, 2.0)


def tracker(
    env: PlumeSearch,
    params: Params,
    *,
    threshold: float,
    speed: float,
    downwind: float,
    motions: tuple[type, ...] = STEERED,
) -> dict[str, Any]:
    """The attributes of a `Tracker` on a task.

    Raises:
      ValidationError: another motion, no sensor of odour or of the wind, or a speed not in (0, 1].
    """
    wanted = {"motions": motions, "wind": True, "downwind": downwind}
    of, pace = body_and_speed(env, params, speed, **wanted)
    return {"body": of, "speed": pace, "threshold": np.float32(threshold)}


def seconds_of(name: str, value: float, params: Params) -> np.float32:
    """float32[], s: the value, or what a step takes, if that is longer.

    Raises `ValidationError` if it is not > 0.
    """
    require(value > 0, name, value, "> 0 s")
    return np.maximum(np.float32(value), np.float32(params.dt))
