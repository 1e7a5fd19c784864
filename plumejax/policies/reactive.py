"""policies/reactive: agents that answer the last reading: random, and gradient following."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from plumejax.base.errors import require
from plumejax.policies.body import Body, Posture
from plumejax.policies.fitting import body
from plumejax.policies.reader import Part, Reader, reader, smelling
from plumejax.search.bouts import Saccades
from plumejax.search.environment import PlumeSearch
from plumejax.search.motion import AxisMoves, Moves, Oriented, RunAndTumble
from plumejax.search.sensors import LocalConcentration
from plumejax.search.state import Params
from plumejax.search.walking import TurnAndSpeed, Unicycle

FIRST_NUMBER = Reader(nose=Part(LocalConcentration(), size=1))
"""Reads the first number of an observation that is one array."""


class Random(struct.PyTreeNode):
    """Draws every action uniformly from the space.

    Attributes:
      space: of the actions, static.
    """

    space: Any = struct.field(pytree_node=False)

    def init(self, key: jax.Array) -> tuple[()]:
        """It remembers nothing."""
        return ()

    def act(self, key: jax.Array, carry: tuple[()], observation: Any) -> tuple[Any, tuple[()]]:
        """`(action, carry)`; the key is consumed."""
        return self.space.sample(key), carry


class KeepOrTurn(struct.PyTreeNode):
    """On fixed directions: goes on while the reading rises, else draws another direction.

    Attributes:
      actions: those that move, static.
      reader: of the observation, static.
    """

    actions: tuple[int, ...] = struct.field(pytree_node=False)
    reader: Reader = struct.field(pytree_node=False, default=FIRST_NUMBER)

    def init(self, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """`(last reading, index of the direction)`, the direction drawn; the key is consumed."""
        index = jax.random.randint(key, (), 0, len(self.actions), jnp.int32)
        return jnp.float32(-1.0), index

    def act(
        self, key: jax.Array, carry: tuple[jax.Array, jax.Array], observation: Any
    ) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        """`(action, carry)`; the key is consumed."""
        last, index = carry
        now = self.reader.odour(observation)
        n = len(self.actions)
        other = (index + jax.random.randint(key, (), 1, max(n, 2), jnp.int32)) % n
        index = jnp.where(now > last, index, other)
        return jnp.asarray(self.actions, jnp.int32)[index], (now, index)


class SurgeOrTurn(struct.PyTreeNode):
    """On an oriented motion: forward while the reading rises, else a turn to a side drawn.

    Attributes:
      reader: of the observation, static.
    """

    reader: Reader = struct.field(pytree_node=False, default=FIRST_NUMBER)

    def init(self, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """`(last reading, whether it has just turned)`."""
        return jnp.float32(-1.0), jnp.asarray(False)

    def act(
        self, key: jax.Array, carry: tuple[jax.Array, jax.Array], observation: Any
    ) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        """`(action, carry)`; the key is consumed."""
        last, turned = carry
        now = self.reader.odour(observation)
        forward = (now > last) | turned
        turn = jax.random.randint(key, (), 1, 3, jnp.int32)
        return jnp.where(forward, jnp.int32(0), turn), (now, ~forward)


class RunOrTumble(struct.PyTreeNode):
    """On run-and-tumble: runs while the reading rises, else tumbles.

    Attributes:
      reader: of the observation, static.
    """

    reader: Reader = struct.field(pytree_node=False, default=FIRST_NUMBER)

    def init(self, key: jax.Array) -> jax.Array:
        """The last reading."""
        return jnp.float32(-1.0)

    def act(
        self, key: jax.Array, carry: jax.Array, observation: Any
    ) -> tuple[jax.Array, jax.Array]:
        """`(action, carry)`; nothing is drawn."""
        now = self.reader.odour(observation)
        return jnp.where(now > carry, jnp.int32(0), jnp.int32(1)), now


class KeepOrVeer(struct.PyTreeNode):
    """In the plane: straight on while the reading rises, else round by an angle drawn uniformly.

    Attributes:
      body: of the task.
    """

    body: Body

    def init(self, key: jax.Array) -> tuple[jax.Array, Posture]:
        """`(last reading, posture)`; the key is consumed."""
        return jnp.float32(-1.0), self.body.begin(key)

    def act(
        self, key: jax.Array, carry: tuple[jax.Array, Posture], observation: Any
    ) -> tuple[jax.Array, tuple[jax.Array, Posture]]:
        """`(action, carry)`; the key is consumed."""
        last, posture = carry
        now = self.body.odour(observation)
        drawn = jax.random.uniform(key, (), jnp.float32, -180.0, 180.0)
        turn = jnp.where(now > last, posture.owed, drawn)
        action, posture = self.body.go(posture, turn, self.body.fastest)
        return action, (now, posture)


def gradient_follower(env: PlumeSearch, params: Params | None = None) -> Any:
    """The policy that climbs the concentration under the motion of `env`; None if there is none.

    Without `params` there is none for a motion through the plane, whose speeds stand there.
    """
    if not hasattr(env, "sensor"):
        return None
    read = reader(env, env.default_params() if params is None else params)
    if read.nose is None:
        return None
    if params is not None and isinstance(env.motion, TurnAndSpeed | Saccades | Unicycle):
        return KeepOrVeer(body(env, params))
    return _climber(env.motion, read)


def _climber(motion: Any, read: Reader) -> Any:
    """The policy that climbs on a grid; None if there is none."""
    if isinstance(motion, Moves):
        return KeepOrTurn(tuple(i for i, d in enumerate(motion.directions) if any(d)), read)
    if isinstance(motion, AxisMoves):
        return KeepOrTurn(tuple(range(2 * motion.dimensions)), read)
    if isinstance(motion, Oriented):
        return SurgeOrTurn(read)
    return RunOrTumble(read) if isinstance(motion, RunAndTumble) else None


def random(env: PlumeSearch, params: Params) -> Random:
    """Every action drawn uniformly, on any task."""
    return Random(env.action_space(params))


def gradient(env: PlumeSearch, params: Params) -> Any:
    """Gradient following: on while the odour rises, else another way drawn.

    Motions: `Moves`, `AxisMoves`, `Oriented`, `RunAndTumble`, `TurnAndSpeed`, `Saccades`,
    `Unicycle`.

    Raises:
      ValidationError: another motion, or no sensor of odour.
    """
    smelling(env, params)
    policy = gradient_follower(env, params)
    require(policy is not None, "env.motion", env.motion, "one that a gradient can be followed by")
    return policy


POLICIES: dict[str, Callable[..., Any]] = {"random": random, "gradient": gradient}
