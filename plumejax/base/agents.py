"""base/agents: an environment of several agents, seen as one by each: lanes, spaces, policies."""

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.base.batch import Batch
from plumejax.base.errors import ValidationError
from plumejax.base.spaces import Box, Dict, Discrete, MultiDiscrete


def stacked(space: Any, n: int) -> Any:
    """The space of n members of `space`, whose leaves lead with n.

    Raises `ValidationError` for a space that is no `Box`, `Discrete`, or `Dict` of them.
    """
    if isinstance(space, Discrete):
        return MultiDiscrete((space.n,) * n)
    if isinstance(space, Box):
        return replace(space, shape=(n, *space.shape))
    if isinstance(space, Dict):
        return Dict({name: stacked(each, n) for name, each in space.spaces.items()})
    raise ValidationError(f"{space!r} cannot be stacked: it must be a Box, a Discrete or a Dict")


def of_one(space: Any) -> Any:
    """The space of one member of a `stacked` one."""
    if isinstance(space, MultiDiscrete):
        return Discrete(space.nvec[0])
    if isinstance(space, Box):
        low, high = (
            bound[0] if np.ndim(bound) == len(space.shape) else bound
            for bound in (space.low, space.high)
        )
        return replace(space, low=low, high=high, shape=tuple(space.shape[1:]))
    return Dict({name: of_one(each) for name, each in space.spaces.items()})


class Shared(struct.PyTreeNode):
    """One policy for every agent: each has its own memory and sees its own observation.

    Attributes:
      policy: of one agent.
      num_agents: static.
    """

    policy: Any
    num_agents: int = struct.field(pytree_node=False)

    def init(self, key: jax.Array) -> Any:
        """The memories, leaves lead with the agents; the key is consumed."""
        return jax.vmap(self.policy.init)(jax.random.split(key, self.num_agents))

    def act(self, key: jax.Array, carry: Any, observation: Any) -> tuple[Any, Any]:
        """`(actions, carry)`, leaves lead with the agents; the key is consumed."""
        keys = jax.random.split(key, self.num_agents)
        return jax.vmap(self.policy.act)(keys, carry, observation)


class AgentLanes(struct.PyTreeNode):
    """The state of a `PerAgent`: that of the episodes, with an observation for each agent."""

    episodes: Any

    @property
    def observation(self) -> Any:
        return _flat(self.episodes.observation)


@dataclass(frozen=True)
class PerAgent:
    """A `Batch` of episodes of several agents as lanes of one agent each, for learners.

    Lane `num_agents * i + a` is agent a of episode i. What is one per episode, flags and `info`, is
    repeated; `total_reward` in `info` is the episode's.

    Attributes:
      batch: of the episodes.
      num_agents: of each.
    """

    batch: Batch
    num_agents: int

    @property
    def num_envs(self) -> int:
        """Lanes."""
        return self.batch.num_envs * self.num_agents

    def shard(self, lanes: Any) -> Any:
        """As `Batch.shard`: an episode's agents are on one device."""
        return self.batch.shard(lanes)

    def reset(self, key: jax.Array, params: Any) -> tuple[Any, AgentLanes]:
        """As `Batch.reset`."""
        _, state = self.batch.reset(key, params)
        lanes = AgentLanes(state)
        return lanes.observation, lanes

    def step(
        self, key: jax.Array, state: AgentLanes, action: Any, params: Any
    ) -> tuple[Any, AgentLanes, jax.Array, jax.Array, jax.Array, dict[str, Any]]:
        """As `Batch.step`."""
        shape = (self.batch.num_envs, self.num_agents)
        together = jax.tree.map(lambda x: x.reshape(*shape, *x.shape[1:]), action)
        _, episodes, reward, terminated, truncated, info = self.batch.step(
            key, state.episodes, together, params
        )
        lanes = AgentLanes(episodes)
        final = info.pop("final_observation", None)
        info, terminated, truncated = jax.tree.map(self._each, (info, terminated, truncated))
        if final is not None:
            info["final_observation"] = _flat(final)
        return lanes.observation, lanes, _flat(reward), terminated, truncated, info

    def _each(self, x: jax.Array) -> jax.Array:
        return jnp.repeat(x, self.num_agents, axis=0)


def _flat(tree: Any) -> Any:
    """Leaves that lead with episodes and agents, as leaves that lead with lanes."""
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), tree)
