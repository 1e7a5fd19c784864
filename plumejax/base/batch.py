"""base/batch: Batch, many episodes in one step, whose resets cost only what they reset."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from plumejax.base.environment import Environment
from plumejax.base.errors import require

RESET = 2**31
"""A lane's reset inside a step folds in its number plus this, so that it shares no bits with the
lane's step and does not depend on how many lanes there are."""


@dataclass(frozen=True)
class Batch:
    """`num_envs` episodes of one environment, side by side, reset as they end.

    Lane i of `reset(key, ...)` is exactly `env.reset(fold_in(key, i), ...)`, and lane i of
    `advance(key, ...)` exactly `env.step(fold_in(key, i), ...)` on lane i's state. If a step of the
    environment draws nothing (`env.random_step` False), no lane key is derived for it.

    Attributes:
      env: the environment.
      num_envs: number of lanes.
      params_axes: a `vmap` prefix of params; None shares them, 0 gives each lane its own.
      final_observation: whether `step` keeps an ended lane's last observation in
        `info["final_observation"]`; drop it where nobody bootstraps from it.
    """

    env: Environment
    num_envs: int
    params_axes: Any = None
    final_observation: bool = True

    def __post_init__(self) -> None:
        require(
            isinstance(self.num_envs, int) and self.num_envs > 0,
            "num_envs",
            self.num_envs,
            "an int > 0",
        )

    @property
    def chunk(self) -> int:
        """Lanes reset at a time. A handful ends per step when episodes are long."""
        return min(self.num_envs, max(8, self.num_envs // 128))

    @partial(jax.jit, static_argnames="self")
    def reset(self, key: jax.Array, params: Any) -> tuple[Any, Any]:
        """`(observation, state)`, leaves lead with `num_envs`."""
        keys = self._fold(key, jnp.arange(self.num_envs, dtype=jnp.uint32))
        return jax.vmap(self.env.reset, in_axes=(0, self.params_axes))(keys, params)

    @partial(jax.jit, static_argnames="self")
    def advance(
        self, key: jax.Array, state: Any, action: Any, params: Any
    ) -> tuple[Any, Any, jax.Array, jax.Array, jax.Array, dict[str, Any]]:
        """One step of every lane and no reset: what `env.step` gives, leading with `num_envs`."""
        key_axis: int | None = None
        if self.env.random_step:
            key, key_axis = self._fold(key, jnp.arange(self.num_envs, dtype=jnp.uint32)), 0
        step = jax.vmap(self.env.step, in_axes=(key_axis, 0, 0, self.params_axes))
        return step(key, state, action, params)

    @partial(jax.jit, static_argnames="self")
    def step(
        self, key: jax.Array, state: Any, action: Any, params: Any
    ) -> tuple[Any, Any, jax.Array, jax.Array, jax.Array, dict[str, Any]]:
        """One step of every lane; a lane that ended starts a fresh episode in the same step.

        Reward, flags and `info` are those of the step; `observation` and `state` of an ended lane
        are the next episode's. `info["step_count"]` and `info["total_reward"]` of an ended lane are
        its episode's length and return.
        """
        observation, state, reward, terminated, truncated, info = self.advance(
            key, state, action, params
        )
        if self.final_observation:
            info = {**info, "final_observation": observation}
        observation, state = self.reset_where(key, terminated | truncated, state, params)
        return observation, state, reward, terminated, truncated, info

    @partial(jax.jit, static_argnames="self")
    def reset_where(
        self, key: jax.Array, done: jax.Array, state: Any, params: Any
    ) -> tuple[Any, Any]:
        """`(observation, state)` with the lanes in `done` (bool[num_envs]) started anew.

        Done lanes are gathered a chunk at a time, reset, and scattered back, so the cost is that of
        the lanes reset, from none to all; each lane is reset with a key of its own.
        """
        n, chunk = self.num_envs, self.chunk
        # Done lanes in order, then n: an index that scatter drops.
        rank = jnp.cumsum(done, dtype=jnp.int32)
        count = rank[-1]
        lanes = jnp.full(n + chunk, n, jnp.uint32)
        places = jnp.where(done, rank - 1, jnp.int32(n + chunk))
        lanes = lanes.at[places].set(jnp.arange(n, dtype=jnp.uint32), mode="drop")

        def one_chunk(carry: tuple[jax.Array, Any]) -> tuple[jax.Array, Any]:
            start, state = carry
            index = jax.lax.dynamic_slice(lanes, (start,), (chunk,))
            keys = self._fold(key, index + jnp.uint32(RESET))
            _, fresh = jax.vmap(self.env.reset, in_axes=(0, self.params_axes))(
                keys, self._take(params, index)
            )
            state = jax.tree.map(lambda x, y: x.at[index].set(y, mode="drop"), state, fresh)
            return start + jnp.int32(chunk), state

        _, state = jax.lax.while_loop(lambda c: c[0] < count, one_chunk, (jnp.int32(0), state))
        return state.observation, state

    def _take(self, params: Any, index: jax.Array) -> Any:
        """The params of the lanes in `index` (past the end: any lane's)."""

        def take(axis: int | None, leaf: Any) -> Any:
            if axis is None:
                return leaf
            return jax.tree.map(lambda x: jnp.take(x, index, axis=axis, mode="clip"), leaf)

        return jax.tree.map(take, self.params_axes, params, is_leaf=lambda x: x is None)

    @staticmethod
    def _fold(key: jax.Array, data: jax.Array) -> jax.Array:
        return jax.vmap(partial(jax.random.fold_in, key))(data)
