"""adapters/gymnax: every task as a gymnax 1.0 environment, and with five values for older trainers.

`register_all()` makes `gymnax.make("PlumeSearchLocal-v0", grid_size=(64, 64))` work, whose `step`
returns gymnax 1.0's six values, and `gymnax.make("PlumeSearchLocal-v0-FiveValues")`, whose `step`
returns `(obs, state, reward, done, info)` as purejaxrl and rejax 0.1.3 expect:

    register_all()
    rejax.PPO.create(
        env="PlumeSearchLocal-v0-FiveValues", env_params={"grid_size": (64, 64)}, ...
    )
"""

import math
from functools import partial
from typing import Any

import gymnax
import jax
import jax.numpy as jnp
from gymnax.environments import environment
from gymnax.environments import spaces as gymnax_spaces

from plumejax.base import lifecycle, registry, spaces
from plumejax.base.batch import RESET

FIVE_VALUES = "-FiveValues"
"""What the id of a task gets at its end for the five-valued one. (rejax reads a slash as a prefix
of another library, so there is none.)"""


class GymnaxTask(environment.Environment):
    """A task with gymnax 1.0's signatures; an episode that ends is followed by the next.

    A step with `key` is exactly the core's step with `key`. Only a step that ends an episode
    resets, with a key folded from the same one; under `vmap` a step resets if any lane ends.
    `params` are the task's own, and optional everywhere.

    Args:
      env: the environment.
      params: its numbers; by default what it proposes.
      name: what `name` says; by default the environment's.
      final_observation: whether `info["final_observation"]` holds the observation that the step
        led to, before any reset. Leave it out for a trainer that stacks `info` over a run.
    """

    def __init__(
        self,
        env: Any,
        params: Any = None,
        *,
        name: str | None = None,
        final_observation: bool = True,
    ) -> None:
        self.env = env
        self._params = env.default_params() if params is None else params
        self._name = name or env.name
        self._final_observation = final_observation

    @property
    def default_params(self) -> Any:
        return self._params

    @property
    def name(self) -> str:
        return self._name

    @property
    def num_actions(self) -> int:
        """Of a discrete task its number of actions, of a continuous one the size of an action."""
        space = self.env.action_space(self._params)
        return space.n if isinstance(space, spaces.Discrete) else math.prod(space.shape)

    def reset(self, key: jax.Array, params: Any = None) -> tuple[Any, Any]:
        """`(observation, state)` of a fresh episode; the key is consumed."""
        return self.env.reset(key, self._or_default(params))

    def step(
        self, key: jax.Array, state: Any, action: Any, params: Any = None
    ) -> tuple[Any, Any, jax.Array, jax.Array, jax.Array, dict[str, Any]]:
        """`(observation, state, reward, terminated, truncated, info)`; the key is consumed.

        After the last step of an episode `observation` and `state` are the next one's; reward,
        flags and `info` belong to the step.
        """
        return _step(
            self.env, self._final_observation, key, state, action, self._or_default(params)
        )

    def step_env(
        self, key: jax.Array, state: Any, action: Any, params: Any
    ) -> tuple[Any, Any, jax.Array, jax.Array, dict[str, Any]]:
        """`(observation, state, reward, terminated, info)` without a reset."""
        observation, state, reward, terminated, _, info = self.env.step(key, state, action, params)
        return observation, state, reward, terminated, info

    def reset_env(self, key: jax.Array, params: Any) -> tuple[Any, Any]:
        return self.env.reset(key, params)

    def observe(self, key: jax.Array, state: Any, action: Any, params: Any) -> Any:
        return state.observation

    def get_obs(self, state: Any, params: Any = None, key: Any = None) -> Any:
        return state.observation

    def is_terminated(self, state: Any, params: Any) -> jax.Array:
        return self._flags(state, params)[0]

    def is_truncated(self, state: Any, params: Any) -> jax.Array:
        return self._flags(state, params)[1]

    def action_space(self, params: Any = None) -> Any:
        return to_gymnax(self.env.action_space(self._or_default(params)))

    def observation_space(self, params: Any = None) -> Any:
        return to_gymnax(self.env.observation_space(self._or_default(params)))

    def _or_default(self, params: Any) -> Any:
        return self._params if params is None else params

    def _flags(self, state: Any, params: Any) -> tuple[jax.Array, jax.Array]:
        limit = self.env.episode_params(state, params).max_steps
        return lifecycle.flags(state.lifecycle, state.step_count, limit)


class FiveValueTask(GymnaxTask):
    """The same with `step` returning `(observation, state, reward, done, info)`.

    `info["terminated"]` and `info["truncated"]` say why an episode is done. By default there is no
    `info["final_observation"]`, since purejaxrl stacks `info` over the whole run.
    """

    def __init__(
        self,
        env: Any,
        params: Any = None,
        *,
        name: str | None = None,
        final_observation: bool = False,
    ) -> None:
        super().__init__(env, params, name=name, final_observation=final_observation)

    def step(  # type: ignore[override]
        self, key: jax.Array, state: Any, action: Any, params: Any = None
    ) -> tuple[Any, Any, jax.Array, jax.Array, dict[str, Any]]:
        observation, state, reward, terminated, truncated, info = super().step(
            key, state, action, params
        )
        return observation, state, reward, terminated | truncated, info


@partial(jax.jit, static_argnums=(0, 1))
def _step(
    env: Any, final_observation: bool, key: jax.Array, state: Any, action: Any, params: Any
) -> tuple[Any, Any, jax.Array, jax.Array, jax.Array, dict[str, Any]]:
    last, state, reward, terminated, truncated, info = env.step(key, state, action, params)
    info = {**info, "terminated": terminated, "truncated": truncated}
    if final_observation:
        info["final_observation"] = last

    def reset(loop: tuple[jax.Array, Any]) -> tuple[jax.Array, Any]:
        return jnp.asarray(False), env.reset(jax.random.fold_in(key, RESET), params)[1]

    # A loop of at most one round: under vmap a cond would reset on every step.
    _, state = jax.lax.while_loop(lambda loop: loop[0], reset, (terminated | truncated, state))
    return state.observation, state, reward, terminated, truncated, info


def register_all() -> None:
    """Register every plumejax task with gymnax, six-valued under its id, five-valued under
    `id + FIVE_VALUES`. Ids that gymnax knows already are left as they are, so calling it again,
    say after registering a task of your own, is fine.

    `gymnax.make` then takes what `plumejax.make` takes (`overrides=`, `grid_size=`, ...) and
    `final_observation=`, and raises the same errors.
    """
    for task_id in registry.registered_tasks():
        for gymnax_id, kind in ((task_id, GymnaxTask), (task_id + FIVE_VALUES, FiveValueTask)):
            if gymnax_id not in gymnax.registered_envs:
                gymnax.register(gymnax_id, partial(_make, kind, task_id))


def _make(kind: type[GymnaxTask], task_id: str, **choices: Any) -> GymnaxTask:
    ours = {name: choices.pop(name) for name in ("final_observation",) if name in choices}
    return kind(*registry.make(task_id, **choices), name=task_id, **ours)


def to_gymnax(space: Any) -> gymnax_spaces.Space:
    """A plumejax space as the gymnax space of the same name (a `MultiDiscrete` as a `Box`).

    `sample` and `contains` stay ours: gymnax's own never draw the upper bound of an integer box,
    and reject every member of a `Dict`.

    Raises:
      TypeError: a space that gymnax has no name for.
    """
    if isinstance(space, spaces.Discrete):
        return _Discrete(space)
    if isinstance(space, spaces.MultiDiscrete):
        return _MultiDiscrete(space)
    if isinstance(space, spaces.Box):
        return _Box(space)
    if isinstance(space, spaces.Dict):
        return _Dict(space)
    raise TypeError(f"gymnax has no space for {space!r}")


class _Ours:
    """What the converted spaces share: they sample and test as the space they come from."""

    _space: Any

    def sample(self, key: jax.Array) -> Any:
        return self._space.sample(key)

    def contains(self, x: Any) -> jax.Array:
        return self._space.contains(x)


class _Discrete(_Ours, gymnax_spaces.Discrete):
    def __init__(self, space: spaces.Discrete) -> None:
        gymnax_spaces.Discrete.__init__(self, space.n)
        self._space = space


class _MultiDiscrete(_Ours, gymnax_spaces.Box):
    """gymnax has none: an integer box with the same members."""

    def __init__(self, space: spaces.MultiDiscrete) -> None:
        high = jnp.asarray(space.nvec, jnp.int32) - 1
        gymnax_spaces.Box.__init__(self, jnp.zeros_like(high), high, space.shape, jnp.int32)
        self._space = space


class _Box(_Ours, gymnax_spaces.Box):
    def __init__(self, space: spaces.Box) -> None:
        # gymnax converts a Box to Gymnasium only if both bounds are arrays of one kind.
        low, high = jnp.asarray(space.low, space.dtype), jnp.asarray(space.high, space.dtype)
        if low.ndim or high.ndim:
            low, high = jnp.broadcast_to(low, space.shape), jnp.broadcast_to(high, space.shape)
        gymnax_spaces.Box.__init__(self, low, high, space.shape, space.dtype)
        self._space = space


class _Dict(_Ours, gymnax_spaces.Dict):
    def __init__(self, space: spaces.Dict) -> None:
        gymnax_spaces.Dict.__init__(self, {k: to_gymnax(v) for k, v in space.spaces.items()})
        self._space = space
