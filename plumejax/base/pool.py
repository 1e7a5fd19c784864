"""base/pool: Pool, a Batch whose episodes begin from a store of ready starts."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from plumejax.base.batch import Batch
from plumejax.base.errors import require


class PoolState(struct.PyTreeNode):
    """The lanes, and the starts that wait for them.

    Attributes:
      lanes: the state of `Batch`, leading with the number of lanes.
      ready: states of fresh episodes, leading with `size`.
      oldest: int32[], the ready start that is made anew next.
    """

    lanes: Any
    ready: Any
    oldest: jax.Array

    @property
    def observation(self) -> Any:
        """The lanes' last observation."""
        return self.lanes.observation


@dataclass(frozen=True)
class Pool:
    """`batch`, but a lane that ends takes one of `size` ready starts and makes none of its own.

    For a task whose start is costly, such as a plume that has to be warmed up: a step costs
    `refresh` resets, however many lanes end. It steps wherever a `Batch` does, in `rollout` too.

    It is a choice because episodes are not independent any more. A ready start serves again until
    it is made anew, which takes `size / refresh` steps: if `k` lanes end a step, a start serves
    `k / refresh` episodes on average. Episodes that begin alike still part as soon as their actions
    or their steps' random numbers do. Lanes that end in the same step take different starts if
    `size` is at least the number of lanes. A pool belongs to one value of the params.

    Attributes:
      batch: the lanes, with shared params and without a mesh.
      size: number of ready starts.
      refresh: how many of them each step makes anew, the oldest first; a divisor of `size`.
    """

    batch: Batch
    size: int
    refresh: int = 1

    def __post_init__(self) -> None:
        require(isinstance(self.batch, Batch), "batch", self.batch, "a Batch")
        whole = isinstance(self.size, int) and self.size > 0
        require(whole, "size", self.size, "an int > 0")
        fits = isinstance(self.refresh, int) and self.refresh > 0 and self.size % self.refresh == 0
        require(fits, "refresh", self.refresh, f"a divisor of size = {self.size}")
        axes = self.batch.params_axes
        require(axes is None, "batch.params_axes", axes, "None: a pool is one for each params")
        require(self.batch.mesh is None, "batch.mesh", self.batch.mesh, "None")

    @property
    def num_envs(self) -> int:
        """Number of lanes."""
        return self.batch.num_envs

    def shard(self, lanes: Any) -> Any:
        """As of `Batch`."""
        return self.batch.shard(lanes)

    @partial(jax.jit, static_argnames="self")
    def reset(self, key: jax.Array, params: Any) -> tuple[Any, PoolState]:
        """`(observation, state)`: every lane reset with a key of its own, and the pool filled."""
        lanes_key, pool_key = jax.random.split(key)
        observation, lanes = self.batch.reset(lanes_key, params)
        ready = self._starts(pool_key, self.size, params)
        return observation, PoolState(lanes, ready, jnp.int32(0))

    @partial(jax.jit, static_argnames="self")
    def step(
        self, key: jax.Array, state: PoolState, action: Any, params: Any
    ) -> tuple[Any, PoolState, jax.Array, jax.Array, jax.Array, dict[str, Any]]:
        """As `Batch.step`, but for where the fresh episodes come from."""
        step_key, shift_key, fresh_key = jax.random.split(key, 3)
        last, lanes, reward, terminated, truncated, info = self.batch.advance(
            step_key, state.lanes, action, params
        )
        if self.batch.final_observation:
            info = {**info, "final_observation": last}
        # One draw for all lanes: each takes the start at its own distance from it.
        shift = jax.random.randint(shift_key, (), 0, self.size, jnp.int32)
        place = (jnp.arange(self.num_envs, dtype=jnp.int32) + shift) % jnp.int32(self.size)
        done = terminated | truncated

        def begin(lane: jax.Array, ready: jax.Array) -> jax.Array:
            return jnp.where(done.reshape(-1, *(1,) * (lane.ndim - 1)), ready[place], lane)

        lanes = jax.tree.map(begin, lanes, state.ready)
        fresh = self._starts(fresh_key, self.refresh, params)
        ready = jax.tree.map(
            lambda all_, new: jax.lax.dynamic_update_slice_in_dim(all_, new, state.oldest, 0),
            state.ready,
            fresh,
        )
        oldest = (state.oldest + jnp.int32(self.refresh)) % jnp.int32(self.size)
        state = PoolState(lanes, ready, oldest)
        return state.observation, state, reward, terminated, truncated, info

    def _starts(self, key: jax.Array, count: int, params: Any) -> Any:
        keys = jax.random.split(key, count)
        return jax.vmap(self.batch.env.reset, in_axes=(0, None))(keys, params)[1]
