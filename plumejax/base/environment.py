"""base/environment: Environment, whose step never resets and leaves an ended episode alone."""

import abc
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.base import lifecycle, paths
from plumejax.base.errors import require
from plumejax.base.lifecycle import Lifecycle


class EnvParams(struct.PyTreeNode):
    """What the params of every task hold.

    Attributes:
      max_steps: int32[], steps after which an episode is truncated.
    """

    max_steps: Any

    @property
    def max_steps_in_episode(self) -> Any:
        """gymnax's name for `max_steps`."""
        return self.max_steps


class EnvState(struct.PyTreeNode):
    """What the state of every task holds.

    Attributes:
      lifecycle: int32[], a `Lifecycle` code.
      step_count: int32[], steps of this episode so far.
      total_reward: float32[] (float32[A] with A agents), their sum.
      observation: the last observation, so that an ended episode can repeat it.
      drawn: the numbers drawn for this episode, by path (`plumejax.base.randomised`); `()` if none.
    """

    lifecycle: Any
    step_count: Any
    total_reward: Any
    observation: Any
    drawn: Any = struct.field(default=(), kw_only=True)


class Environment(abc.ABC):
    """A task: static, hashable, compared by value; every number it uses comes in `params`.

    A subclass is a frozen dataclass with `reset_env`, `step_env` and the spaces; this class keeps
    the lifecycle. The signatures are gymnax 1.0's.
    """

    @property
    def random_step(self) -> bool:
        """Whether a step draws random numbers; if not, its key is never looked at."""
        return True

    @property
    def name(self) -> str:
        return type(self).__name__

    @property
    def num_agents(self) -> int | None:
        """A, with which actions, observations and rewards lead; None if there is no such axis."""
        return None

    @abc.abstractmethod
    def default_params(self) -> Any:
        """The params that the parts of this environment propose."""

    @abc.abstractmethod
    def reset_env(self, key: jax.Array, params: Any) -> Any:
        """The state of a fresh READY episode."""

    @abc.abstractmethod
    def step_env(
        self, key: jax.Array, state: Any, action: Any, params: Any
    ) -> tuple[Any, jax.Array, jax.Array]:
        """`(state, reward, terminated)` one step on; `state.step_count` already counts the step.

        The lifecycle and the total reward are kept by `step`.
        """

    @abc.abstractmethod
    def action_space(self, params: Any) -> Any:
        """The space of actions under `params`."""

    @abc.abstractmethod
    def observation_space(self, params: Any) -> Any:
        """The space of observations under `params`."""

    def episode_params(self, state: Any, params: Any) -> Any:
        """The numbers of this episode: `params`, unless some are drawn anew at each reset."""
        return params

    def info(self, state: Any, params: Any) -> dict[str, jax.Array]:
        """A dict of arrays of fixed structure, a function of the state alone."""
        return {"step_count": state.step_count, "total_reward": state.total_reward}

    def broken(self, state: Any, params: Any) -> dict[str, jax.Array]:
        """bool[] by what is wrong: which of the task's own rules a state breaks, for
        `plumejax.testing`; pure, of fixed structure. `params` are those of the episode.
        """
        return {}

    def validate(self, params: Any) -> None:
        """Raise `ValidationError` if a number of `params` is not allowed. Host only.

        Each has to be finite, and like the one that `default_params` proposes in kind and shape.
        """
        paths.require_like(params, self.default_params())
        require(np.all(np.asarray(params.max_steps) > 0), "max_steps", params.max_steps, "> 0")

    @partial(jax.jit, static_argnames="self")
    def reset(self, key: jax.Array, params: Any) -> tuple[Any, Any]:
        """`(observation, state)` of a fresh episode; the key is consumed."""
        state = self.reset_env(key, params)
        return state.observation, state

    @partial(jax.jit, static_argnames="self")
    def step(
        self, key: jax.Array, state: Any, action: Any, params: Any
    ) -> tuple[Any, Any, jax.Array, jax.Array, jax.Array, dict[str, jax.Array]]:
        """`(observation, state, reward, terminated, truncated, info)`; the key is consumed.

        Where `check` is not 0 nothing changes: the state comes back as it was, with its last
        observation, reward 0 and the flags as they were.
        """
        own = self.episode_params(state, params)
        counted = state.replace(step_count=state.step_count + 1)
        new, reward, terminated = self.step_env(key, counted, action, own)
        new = new.replace(
            lifecycle=lifecycle.after_step(terminated, counted.step_count >= own.max_steps),
            total_reward=state.total_reward + reward,
        )
        # `check` is 0 just then; written out, it is two comparisons a lane.
        allowed = lifecycle.is_ready(state.lifecycle)
        allowed &= self.action_space(params).contains(action)
        state = jax.tree.map(partial(jnp.where, allowed), new, state)
        reward = jnp.where(allowed, reward, jnp.zeros_like(reward))
        terminated, truncated = lifecycle.flags(state.lifecycle, state.step_count, own.max_steps)
        info = self.info(state, own)
        return state.observation, state, reward, terminated, truncated, info

    def check(self, state: Any, action: Any, params: Any) -> jax.Array:
        """int32[]: 0 fine, 1 not reset, 2 ended, 3 closed, 4 bad action; a step obeys it."""
        valid = self.action_space(params).contains(action)

        def at(member: Lifecycle) -> jax.Array:
            return state.lifecycle == lifecycle.code(member)

        # The last to speak wins.
        code = jnp.where(at(Lifecycle.TERMINATED) | at(Lifecycle.TRUNCATED), jnp.int32(2), 0)
        code = jnp.where(valid, code, jnp.int32(4))
        code = jnp.where(at(Lifecycle.CLOSED), jnp.int32(3), code)
        return jnp.where(at(Lifecycle.CREATED), jnp.int32(1), code)
