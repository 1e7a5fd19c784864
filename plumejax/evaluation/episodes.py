"""evaluation/episodes: a policy on fresh episodes, each played once to its own end."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from plumejax.base import lifecycle
from plumejax.base.environment import Environment
from plumejax.base.rollout import Policy


class Outcomes(NamedTuple):
    """How episodes ended, arrays leading with the number of episodes.

    Attributes:
      found: bool[n], the source was found.
      steps: int32[n], length of the episode.
      reward: float32[n], its return.
    """

    found: jax.Array
    steps: jax.Array
    reward: jax.Array


class _Lane(NamedTuple):
    state: Any
    memory: Any


def _start(
    env: Environment, policy: Policy, key: jax.Array, params: Any, episodes: int
) -> tuple[_Lane, jax.Array]:
    """Lanes at the start, and a key for each lane's steps."""
    keys = jax.vmap(partial(jax.random.fold_in, key))(jnp.arange(episodes, dtype=jnp.uint32))
    reset_keys, init_keys, run_keys = jax.vmap(lambda k: jax.random.split(k, 3), out_axes=1)(keys)
    _, state = jax.vmap(env.reset, in_axes=(0, None))(reset_keys, params)
    return _Lane(state, jax.vmap(policy.init)(init_keys)), run_keys


def _step(
    env: Environment, policy: Policy, params: Any, lane: _Lane, key: jax.Array, t: jax.Array
) -> _Lane:
    act_key, step_key = jax.random.split(jax.random.fold_in(key, t))
    action, memory = policy.act(act_key, lane.memory, lane.state.observation)
    _, state, _, _, _, _ = env.step(step_key, lane.state, action, params)
    return _Lane(state, memory)


def _outcomes(state: Any) -> Outcomes:
    found = getattr(state, "found", state.lifecycle == lifecycle.Lifecycle.TERMINATED)
    return Outcomes(found, state.step_count, state.total_reward)


@partial(jax.jit, static_argnames=("env", "episodes"))
def play(env: Environment, policy: Policy, key: jax.Array, params: Any, episodes: int) -> Outcomes:
    """`Outcomes` of `episodes` (static) fresh episodes, side by side, until the last has ended.

    Each episode counts once, however long it is: lanes that start anew as they end would favour the
    short ones. Episode i depends on `fold_in(key, i)` only, not on how many are played.
    """
    lane, keys = _start(env, policy, key, params, episodes)
    step = jax.vmap(partial(_step, env, policy, params), in_axes=(0, 0, None))

    def going_on(loop: tuple[_Lane, jax.Array]) -> jax.Array:
        return jnp.any(lifecycle.is_ready(loop[0].state.lifecycle))

    def one(loop: tuple[_Lane, jax.Array]) -> tuple[_Lane, jax.Array]:
        lane, t = loop
        return step(lane, keys, t), t + jnp.uint32(1)

    (lane, _) = jax.lax.while_loop(going_on, one, (lane, jnp.uint32(0)))[0:2]
    return _outcomes(lane.state)


@partial(jax.jit, static_argnames=("env", "episodes", "steps"))
def trace(
    env: Environment, policy: Policy, key: jax.Array, params: Any, episodes: int, steps: int
) -> tuple[Outcomes, Any]:
    """`(outcomes, states)` of the same episodes as `play`, the states of every step kept.

    Leaves of `states` lead with `[steps + 1, episodes]`, the first at the start; an episode that
    ended stays where it was. The observation is left out (None).
    """
    lane, keys = _start(env, policy, key, params, episodes)
    step = jax.vmap(partial(_step, env, policy, params), in_axes=(0, 0, None))

    def one(lane: _Lane, t: jax.Array) -> tuple[_Lane, Any]:
        after = step(lane, keys, t)
        return after, after.state.replace(observation=None)

    first = lane.state.replace(observation=None)
    lane, rest = jax.lax.scan(one, lane, jnp.arange(steps, dtype=jnp.uint32))
    states = jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), first, rest)
    return _outcomes(lane.state), states
