"""base/rollout: a policy on a Batch, as one scan; reduced on the fly, or recorded."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp

from plumejax.base.batch import Batch
from plumejax.base.compiling import jit_by_class
from plumejax.base.errors import require
from plumejax.base.pool import Pool


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
    """Where a rollout stands: hand it back as `init` to go on.

    Attributes:
      step: int32[], steps of every lane so far; it numbers the keys.
      state: of every lane, with its last observation.
      memory: the policy's, of every lane.
      total: what the reduction has summed up so far.
    """

    step: jax.Array
    state: Any
    memory: Any
    total: Any


def rollout(
    batch: Batch | Pool,
    policy: Policy,
    key: jax.Array,
    params: Any,
    steps: int,
    init: Carry | None = None,
    reduction: Reduction = ended_episodes,
) -> tuple[Carry, Any]:
    """`(carry, total)` after `steps` steps of every lane; nothing is stored along the way.

    With the same key, `steps` steps and then `further` ones are exactly `steps + further` at once.

    Args:
      batch: the lanes: a `Batch`, or a `Pool`.
      policy: a pytree with the methods of `Policy`.
      key: typed key, consumed.
      params: of the environment, as `batch.params_axes` says.
      steps: steps of each lane, static.
      init: the carry of an earlier rollout to go on from, total and all. It is used up: its memory
        is donated. By default every lane is reset.
      reduction: what to sum up, static. Over a mesh, a sum over the lanes is where its devices wait
        for one another.

    Raises `ValidationError` for another `steps`, and for an `init` that was used up.
    """
    whole = isinstance(steps, int) and not isinstance(steps, bool)
    require(whole and steps >= 0, "steps", steps, "an int >= 0")
    require(not _used_up(init), "init", "a carry that was used up", "a carry to go on from once")
    start_key, run_key = jax.random.split(key)
    carry = _start(batch, policy, start_key, params, reduction) if init is None else init
    return _run(batch, policy, run_key, params, steps, carry, reduction)


def _used_up(carry: Carry | None) -> bool:
    arrays = (leaf for leaf in jax.tree.leaves(carry) if not isinstance(leaf, jax.core.Tracer))
    return any(isinstance(leaf, jax.Array) and leaf.is_deleted() for leaf in arrays)


def rollouts(
    batch: Batch | Pool,
    policy: Policy,
    key: jax.Array,
    params: Any,
    steps: int,
    reduction: Reduction = ended_episodes,
) -> Iterator[Any]:
    """The total after every `steps` steps of one rollout without end: stop when it is enough.

    However long it runs, it compiles once and its memory is that of the lanes. The arguments are
    those of `rollout`.
    """
    carry = None
    while True:
        carry, total = rollout(batch, policy, key, params, steps, carry, reduction)
        yield total


@jit_by_class(static=("batch", "steps"))
def record(
    batch: Batch | Pool, policy: Policy, key: jax.Array, params: Any, steps: int
) -> tuple[Any, Transition]:
    """`(states, transitions)` of a rollout, leaves lead with `[steps, num_envs]`.

    `states[t]` is the state on which step t acted. It stores everything: for pictures and
    analysis, not for millions of episodes.
    """
    start_key, run_key = jax.random.split(key)

    def one(carry: Carry, _: None) -> tuple[Carry, tuple[Any, Transition]]:
        after, step = _advance(batch, policy, run_key, params, carry)
        return after, (carry.state, step)

    carry = _start(batch, policy, start_key, params, ended_episodes)
    return jax.lax.scan(one, carry, None, steps)[1]


@jit_by_class(static=("batch", "reduction"))
def _start(
    batch: Batch | Pool, policy: Policy, key: jax.Array, params: Any, reduction: Reduction
) -> Carry:
    env_key, policy_key = jax.random.split(key)
    _, state = batch.reset(env_key, params)
    memory = jax.vmap(policy.init)(jax.random.split(policy_key, batch.num_envs))
    return Carry(jnp.int32(0), state, batch.shard(memory), reduction.start())


@jit_by_class(static=("batch", "steps", "reduction"), donate=("carry",))
def _run(
    batch: Batch | Pool,
    policy: Policy,
    key: jax.Array,
    params: Any,
    steps: int,
    carry: Carry,
    reduction: Reduction,
) -> tuple[Carry, Any]:
    def one(carry: Carry, _: None) -> tuple[Carry, None]:
        after, step = _advance(batch, policy, key, params, carry)
        return after._replace(total=reduction.add(carry.total, step)), None

    carry, _ = jax.lax.scan(one, carry, None, steps)
    return carry, carry.total


def _advance(
    batch: Batch | Pool, policy: Policy, run_key: jax.Array, params: Any, carry: Carry
) -> tuple[Carry, Transition]:
    """One step of every lane; the total stays as it was."""
    act_key, init_key, step_key = jax.random.split(jax.random.fold_in(run_key, carry.step), 3)
    n = batch.num_envs
    observation = carry.state.observation
    action, memory = jax.vmap(policy.act)(jax.random.split(act_key, n), carry.memory, observation)
    _, state, reward, terminated, truncated, info = batch.step(
        step_key, carry.state, action, params
    )
    # A new episode starts with a blank memory.
    done = terminated | truncated
    blank = jax.vmap(policy.init)(jax.random.split(init_key, n))
    memory = jax.tree.map(
        lambda new, old: jnp.where(done.reshape(n, *(1,) * (old.ndim - 1)), new, old), blank, memory
    )
    step = Transition(observation, action, reward, terminated, truncated, info)
    carry = carry._replace(step=carry.step + jnp.int32(1), state=state, memory=batch.shard(memory))
    return carry, step
