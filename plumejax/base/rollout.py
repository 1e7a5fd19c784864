"""base/rollout: a policy on a Batch, as one scan; reduced on the fly, or recorded."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp

from plumejax.base.batch import Batch


class Policy(Protocol):
    """An agent: a pytree of its own numbers that sees observations only, one lane at a time."""

    def init(self, key: jax.Array) -> Any:
        """The memory it starts an episode with."""

    def act(self, key: jax.Array, carry: Any, observation: Any) -> tuple[Any, Any]:
        """`(action, carry)`; the key is consumed."""


class Transition(NamedTuple):
    """One step of every lane, leaves lead with `num_envs`.

    `observation` is what the action was chosen on; `info` is that of `Batch.step`.
    """

    observation: Any
    action: Any
    reward: jax.Array
    terminated: jax.Array
    truncated: jax.Array
    info: dict[str, Any]


class Totals(NamedTuple):
    """What `rollout` reduces to by default: sums over the episodes that ended, float32[] each."""

    episodes: Any
    found: Any
    reward: Any
    steps: Any


class Reduction(NamedTuple):
    """How `rollout` sums up: `start() -> total`, `add(total, transition) -> total`, both pure."""

    start: Callable[[], Any]
    add: Callable[[Any, Transition], Any]


def _no_episodes() -> Totals:
    zero = jnp.zeros((), jnp.float32)
    return Totals(zero, zero, zero, zero)


def _add_ended(total: Totals, step: Transition) -> Totals:
    done = (step.terminated | step.truncated).astype(jnp.float32)
    found = step.info.get("found", step.terminated).astype(jnp.float32)
    return Totals(
        total.episodes + done.sum(),
        total.found + (done * found).sum(),
        total.reward + (done * step.info["total_reward"]).sum(),
        total.steps + (done * step.info["step_count"].astype(jnp.float32)).sum(),
    )


ended_episodes = Reduction(_no_episodes, _add_ended)
"""Counts the episodes that ended and sums their successes, returns and lengths."""


class Carry(NamedTuple):
    """Where a rollout stands: hand it back as `init` to go on."""

    observation: Any
    state: Any
    memory: Any


def _start(batch: Batch, policy: Policy, key: jax.Array, params: Any) -> Carry:
    env_key, policy_key = jax.random.split(key)
    observation, state = batch.reset(env_key, params)
    memory = jax.vmap(policy.init)(jax.random.split(policy_key, batch.num_envs))
    return Carry(observation, state, memory)


def _advance(
    batch: Batch, policy: Policy, params: Any, carry: Carry, key: jax.Array
) -> tuple[Carry, Transition]:
    act_key, init_key, step_key = jax.random.split(key, 3)
    n = batch.num_envs
    action, memory = jax.vmap(policy.act)(
        jax.random.split(act_key, n), carry.memory, carry.observation
    )
    observation, state, reward, terminated, truncated, info = batch.step(
        step_key, carry.state, action, params
    )
    # A new episode starts with a blank memory.
    done = terminated | truncated
    blank = jax.vmap(policy.init)(jax.random.split(init_key, n))
    memory = jax.tree.map(
        lambda new, old: jnp.where(done.reshape(n, *(1,) * (old.ndim - 1)), new, old), blank, memory
    )
    step = Transition(carry.observation, action, reward, terminated, truncated, info)
    return Carry(observation, state, memory), step


@partial(jax.jit, static_argnames=("batch", "steps", "reduction"))
def rollout(
    batch: Batch,
    policy: Policy,
    key: jax.Array,
    params: Any,
    steps: int,
    init: Carry | None = None,
    reduction: Reduction = ended_episodes,
) -> tuple[Carry, Any]:
    """`(carry, reduced)` after `steps` steps of every lane; nothing is stored along the way.

    Args:
      batch: the lanes.
      policy: a pytree with the methods of `Policy`.
      key: typed key, consumed.
      params: of the environment, as `batch.params_axes` says.
      steps: steps of each lane, static.
      init: the carry of an earlier rollout to go on from; by default every lane is reset.
      reduction: what to sum up, static.
    """
    start_key, run_key = jax.random.split(key)
    carry = _start(batch, policy, start_key, params) if init is None else init

    def one(loop: tuple[Carry, Any], key: jax.Array) -> tuple[tuple[Carry, Any], None]:
        carry, total = loop
        carry, step = _advance(batch, policy, params, carry, key)
        return (carry, reduction.add(total, step)), None

    keys = jax.random.split(run_key, steps)
    (carry, total), _ = jax.lax.scan(one, (carry, reduction.start()), keys)
    return carry, total


@partial(jax.jit, static_argnames=("batch", "steps"))
def record(
    batch: Batch, policy: Policy, key: jax.Array, params: Any, steps: int
) -> tuple[Any, Transition]:
    """`(states, transitions)` of a rollout, leaves lead with `[steps, num_envs]`.

    `states[t]` is the state on which step t acted. It stores everything: for pictures and
    analysis, not for millions of episodes.
    """
    start_key, run_key = jax.random.split(key)

    def one(carry: Carry, key: jax.Array) -> tuple[Carry, tuple[Any, Transition]]:
        after, step = _advance(batch, policy, params, carry, key)
        return after, (carry.state, step)

    carry = _start(batch, policy, start_key, params)
    return jax.lax.scan(one, carry, jax.random.split(run_key, steps))[1]
