"""policies/reactive: agents that answer the last reading: random, and gradient following."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from plumejax.search.environment import PlumeSearch
from plumejax.search.motion import Moves, Oriented, RunAndTumble


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


def reading(observation: Any) -> jax.Array:
    """float32[]: the concentration where the agent stands, from either observation of v0."""
    if isinstance(observation, Mapping):
        x, y = observation["agent_position"]
        return observation["concentration_field"][y, x]
    return jnp.ravel(observation)[0]


class KeepOrTurn(struct.PyTreeNode):
    """On fixed directions: goes on while the reading rises, else draws another direction.

    Attributes:
      actions: those that move, static.
    """

    actions: tuple[int, ...] = struct.field(pytree_node=False)

    def init(self, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """`(last reading, index of the direction)`, the direction drawn; the key is consumed."""
        index = jax.random.randint(key, (), 0, len(self.actions), jnp.int32)
        return jnp.float32(-1.0), index

    def act(
        self, key: jax.Array, carry: tuple[jax.Array, jax.Array], observation: Any
    ) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        """`(action, carry)`; the key is consumed."""
        last, index = carry
        now = reading(observation)
        n = len(self.actions)
        other = (index + jax.random.randint(key, (), 1, max(n, 2), jnp.int32)) % n
        index = jnp.where(now > last, index, other)
        return jnp.asarray(self.actions, jnp.int32)[index], (now, index)


class SurgeOrTurn(struct.PyTreeNode):
    """On an oriented motion: forward while the reading rises, else a turn to a side drawn."""

    def init(self, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """`(last reading, whether it has just turned)`."""
        return jnp.float32(-1.0), jnp.asarray(False)

    def act(
        self, key: jax.Array, carry: tuple[jax.Array, jax.Array], observation: Any
    ) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        """`(action, carry)`; the key is consumed."""
        last, turned = carry
        now = reading(observation)
        forward = (now > last) | turned
        turn = jax.random.randint(key, (), 1, 3, jnp.int32)
        return jnp.where(forward, jnp.int32(0), turn), (now, ~forward)


class RunOrTumble(struct.PyTreeNode):
    """On run-and-tumble: runs while the reading rises, else tumbles."""

    def init(self, key: jax.Array) -> jax.Array:
        """The last reading."""
        return jnp.float32(-1.0)

    def act(
        self, key: jax.Array, carry: jax.Array, observation: Any
    ) -> tuple[jax.Array, jax.Array]:
        """`(action, carry)`; nothing is drawn."""
        now = reading(observation)
        return jnp.where(now > carry, jnp.int32(0), jnp.int32(1)), now


def gradient_follower(env: PlumeSearch) -> Any:
    """The policy that climbs the concentration under the motion of `env`; None if there is none."""
    if isinstance(env.motion, Moves):
        directions = env.motion.directions
        return KeepOrTurn(tuple(i for i, d in enumerate(directions) if any(d)))
    if isinstance(env.motion, Oriented):
        return SurgeOrTurn()
    if isinstance(env.motion, RunAndTumble):
        return RunOrTumble()
    return None
