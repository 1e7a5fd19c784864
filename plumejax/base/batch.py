"""base/batch: Batch, many episodes in one step, whose resets cost only what they reset."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from plumejax.base.environment import Environment
from plumejax.base.errors import require

RESET = 2**31
"""A lane's reset inside a step folds in its number plus this, so that it shares no bits with the
lane's step and does not depend on how many lanes there are."""


@dataclass(frozen=True)
class Batch:
    """`num_envs` episodes of one environment, side by side, reset as they end.

    Lane i of `reset(key, ...)` is exactly `env.reset(fold_in(key, i), ...)`, and lane i of
    `advance(key, ...)` exactly `env.step(fold_in(key, i), ...)` on lane i's state, floats to
    rounding. That holds for JAX's default keys; others, such as rbg, draw otherwise side by side
    than alone. If a step of the environment draws nothing (`env.random_step` False), no lane key is
    derived for it.

    Attributes:
      env: the environment.
      num_envs: number of lanes.
      params_axes: a `vmap` prefix of params; None shares them, 0 gives each lane its own.
      final_observation: whether `step` keeps an ended lane's last observation in
        `info["final_observation"]`; drop it where nobody bootstraps from it.
      mesh: the devices, of one or more processes, that share the lanes out in order, such as
        `jax.make_mesh((8,), ("lanes",))`; None is the default device. No number depends on it, and
        the devices do not wait for one another.
    """

    env: Environment
    num_envs: int
    params_axes: Any = None
    final_observation: bool = True
    mesh: Mesh | None = None

    def __post_init__(self) -> None:
        whole = isinstance(self.num_envs, int) and not isinstance(self.num_envs, bool)
        require(whole and self.num_envs > 0, "num_envs", self.num_envs, "a Python int > 0")
        if self.mesh is not None:
            require(isinstance(self.mesh, Mesh), "mesh", self.mesh, "None or a jax.sharding.Mesh")
            axes = self.mesh.axis_names
            require(len(axes) == 1, "mesh", axes, "one axis")
            require(
                self.num_envs % self.mesh.size == 0,
                "num_envs",
                self.num_envs,
                f"a multiple of the {self.mesh.size} devices of mesh",
            )
            # `jax.make_mesh` makes an Explicit mesh or an Auto one, by its version.
            auto = Mesh(self.mesh.devices, axes, axis_types=(AxisType.Auto,))
            object.__setattr__(self, "mesh", auto)

    @property
    def chunk(self) -> int:
        """Lanes reset at a time, of no effect on the outcome.

        Measured on two CPU cores with episodes of 1000 steps: a step costs the same to a tenth with
        a quarter and with twice as many.
        """
        return min(self._share, max(16, self._share // 64))

    def shard(self, lanes: Any) -> Any:
        """The same arrays, which lead with `num_envs`, each device's lanes on that device."""
        if self.mesh is None:
            return lanes
        sharding = NamedSharding(self.mesh, P(*self.mesh.axis_names))
        return jax.lax.with_sharding_constraint(lanes, sharding)

    @partial(jax.jit, static_argnames="self")
    def reset(self, key: jax.Array, params: Any) -> tuple[Any, Any]:
        """`(observation, state)`, leaves lead with `num_envs`."""
        return self._on_each_device(self._reset, key, params)

    @partial(jax.jit, static_argnames="self")
    def advance(
        self, key: jax.Array, state: Any, action: Any, params: Any
    ) -> tuple[Any, Any, jax.Array, jax.Array, jax.Array, dict[str, Any]]:
        """One step of every lane and no reset: what `env.step` gives, leading with `num_envs`.

        Raises `ValidationError` for an action of another shape or kind than `num_envs` members of
        the action space: every lane would stand still for ever.
        """
        self._require_actions(action, params)
        return self._on_each_device(self._advance, key, state, action, params)

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
        return self._on_each_device(self._reset_where, key, done, state, params)

    def _require_actions(self, action: Any, params: Any) -> None:
        space = self.env.action_space(params)
        if not hasattr(space, "shape"):
            return
        shape = (self.num_envs, *space.shape)
        kind = jnp.integer if jnp.issubdtype(space.dtype, jnp.integer) else jnp.floating
        given = getattr(action, "shape", None), getattr(action, "dtype", type(action).__name__)
        fits = given[0] == shape and jnp.issubdtype(given[1], kind)
        require(fits, "action", given, f"an array of shape {shape} and dtype {kind.__name__}")

    def _on_each_device(self, body: Callable, key: jax.Array, *lanes_and_params: Any) -> Any:
        """`body(key, *lanes, params)` on the lanes of each device; nothing is communicated."""
        if self.mesh is None:
            return body(key, *lanes_and_params)
        *lanes, params = lanes_and_params
        (axis,) = self.mesh.axis_names

        def spec(params_axis: int | None, leaf: Any) -> Any:
            if params_axis is None:
                return P()
            return jax.tree.map(lambda x: P(*[None] * (params_axis % x.ndim), axis), leaf)

        specs = jax.tree.map(spec, self.params_axes, params, is_leaf=lambda x: x is None)
        return jax.shard_map(
            body,
            mesh=self.mesh,
            in_specs=(P(), *[P(axis) for _ in lanes], specs),
            out_specs=P(axis),
            check_vma=False,  # loops of a task may well start from constants
        )(key, *lanes, params)

    # What follows runs on one device and sees its share of the lanes only.

    def _reset(self, key: jax.Array, params: Any) -> tuple[Any, Any]:
        keys = self._fold(key, jnp.arange(self._share, dtype=jnp.uint32))
        return jax.vmap(self.env.reset, in_axes=(0, self.params_axes))(keys, params)

    def _advance(self, key: jax.Array, state: Any, action: Any, params: Any) -> Any:
        takes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), (state, action))
        gives = jax.eval_shape(self.env.step, key, *takes, self._take(params, jnp.uint32(0)))
        axes, out_axes = jax.tree.map(_axis_inside, (takes, gives))
        key_axis: int | None = None
        if self.env.random_step:
            key, key_axis = self._fold(key, jnp.arange(self._share, dtype=jnp.uint32)), 0
        step = jax.vmap(self.env.step, (key_axis, *axes, self.params_axes), out_axes)
        inside = jax.tree.map(lambda x, axis: jnp.moveaxis(x, 0, axis), (state, action), axes)
        # Computed first, and moved then: fused into the computation, the move would break its
        # loops up.
        outcome = jax.lax.optimization_barrier(step(key, *inside, params))
        return jax.tree.map(_lanes_first, outcome, out_axes)

    def _reset_where(
        self, key: jax.Array, done: jax.Array, state: Any, params: Any
    ) -> tuple[Any, Any]:
        n, columns = self._share, self.chunk
        rows = -(-n // columns)
        # Lane `row * columns + column`; those past the end are never done.
        number = jnp.arange(rows * columns, dtype=jnp.uint32).reshape(rows, columns)
        done = jnp.pad(done, (0, rows * columns - n)).reshape(rows, columns)
        nobody = jnp.uint32(rows * columns)

        def next_lanes(waiting: jax.Array) -> jax.Array:
            """The first waiting lane of each column, or `nobody`."""
            return jnp.min(jnp.where(waiting, number, nobody), axis=0)

        def one_chunk(carry: tuple[jax.Array, Any]) -> tuple[jax.Array, Any]:
            lanes, state = carry
            keys = self._fold(key, lanes + jnp.uint32(RESET))
            _, fresh = jax.vmap(self.env.reset, in_axes=(0, self.params_axes))(
                keys, self._take(params, lanes)
            )
            state = jax.tree.map(lambda x, y: x.at[lanes].set(y, mode="drop"), state, fresh)
            return next_lanes(done & (number > lanes[None])), state

        _, state = jax.lax.while_loop(
            lambda carry: jnp.any(carry[0] < nobody), one_chunk, (next_lanes(done), state)
        )
        return state.observation, state

    def _take(self, params: Any, lanes: jax.Array) -> Any:
        """The params of the `lanes` (past the end: any lane's)."""

        def take(axis: int | None, leaf: Any) -> Any:
            if axis is None:
                return leaf
            return jax.tree.map(lambda x: jnp.take(x, lanes, axis=axis, mode="clip"), leaf)

        return jax.tree.map(take, self.params_axes, params, is_leaf=lambda x: x is None)

    @property
    def _share(self) -> int:
        """Lanes of a device."""
        return self.num_envs if self.mesh is None else self.num_envs // self.mesh.size

    def _fold(self, key: jax.Array, lanes: jax.Array) -> jax.Array:
        """The keys of these lanes of this device, which go by their numbers among all lanes."""
        if self.mesh is not None:
            device = jax.lax.axis_index(*self.mesh.axis_names).astype(jnp.uint32)
            lanes = lanes + device * jnp.uint32(self._share)
        return jax.vmap(partial(jax.random.fold_in, key))(lanes)


def _axis_inside(one: Any) -> int:
    """The axis of the lanes inside a step, of an array that holds `one` for each lane.

    The last one if that is a few numbers: a position [2, lanes] is two vectors, [lanes, 2] is
    neither, and wide instructions want vectors (a step takes a third of the time).
    """
    return -1 if math.prod(one.shape) <= 8 else 0


def _lanes_first(x: jax.Array, axis: int) -> jax.Array:
    if axis == 0 or x.ndim == 1 or not x.size:
        return jnp.moveaxis(x, axis, 0)
    # Row by row, which a CPU does with vectors and a transposition number by number.
    rows = x.reshape(-1, x.shape[-1])
    return jnp.stack(list(rows), axis=-1).reshape(-1, *x.shape[:-1])
