"""tests/base/test_rollout: a rollout is the loop one would write by hand."""

import itertools
import warnings
from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import struct

from plumejax.base.batch import Batch
from plumejax.base.errors import ValidationError
from plumejax.base.rollout import (
    Carry,
    Reduction,
    Transition,
    ended_episodes,
    record,
    rollout,
    rollouts,
)

LANES, STEPS = 3, 50


@struct.dataclass
class Wanderer:
    """Draws its action, and remembers how many it has drawn since it last started."""

    num_actions: int = struct.field(pytree_node=False, default=4)

    def init(self, key):
        return jnp.int32(0)

    def act(self, key, carry, observation):
        return jax.random.randint(key, (), 0, self.num_actions, jnp.int32), carry + jnp.int32(1)


@pytest.fixture(scope="module")
def batch(local):
    return Batch(local[0], LANES)


def by_hand(batch, policy, key, params, steps):
    """`(state, memory, transitions)`, as the docstrings of rollout describe them."""
    start_key, run_key = jax.random.split(key)
    env_key, policy_key = jax.random.split(start_key)
    _, state = batch.reset(env_key, params)
    memory = jnp.stack([policy.init(k) for k in jax.random.split(policy_key, LANES)])
    transitions = []
    for t in range(steps):
        act_key, _, step_key = jax.random.split(jax.random.fold_in(run_key, t), 3)
        before = state.observation
        chosen = [
            policy.act(k, memory[i], before[i])
            for i, k in enumerate(jax.random.split(act_key, LANES))
        ]
        action, memory = (jnp.stack(column) for column in zip(*chosen, strict=True))
        _, state, reward, terminated, truncated, info = batch.step(step_key, state, action, params)
        memory = jnp.where(terminated | truncated, 0, memory)
        transitions.append(Transition(before, action, reward, terminated, truncated, info))
    return state, memory, transitions


@pytest.fixture(scope="module")
def manual(batch, local):
    return by_hand(batch, Wanderer(), jax.random.key(0), local[1], STEPS)


def test_rollout_is_the_manual_loop(batch, local, manual):
    carry, total = rollout(batch, Wanderer(), jax.random.key(0), local[1], STEPS)
    state, memory, transitions = manual
    sums = ended_episodes.start()
    for transition in transitions:
        sums = ended_episodes.add(sums, transition)
    assert sums.episodes > 0  # every lane is truncated after 40 steps at the latest
    expected = Carry(jnp.int32(STEPS), state, memory, sums)
    chex.assert_trees_all_close(carry, expected, rtol=1e-6)
    chex.assert_trees_all_equal(carry.total, total)


def test_record_is_the_manual_loop(batch, local, manual):
    states, recorded = record(batch, Wanderer(), jax.random.key(0), local[1], STEPS)
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *manual[-1])
    chex.assert_trees_all_close(recorded, stacked, rtol=1e-6)
    np.testing.assert_array_equal(states.observation, recorded.observation)
    chex.assert_shape(states.agent.position, (STEPS, LANES, 2))


@pytest.mark.parametrize("first", [STEPS // 2, 0])
def test_a_rollout_in_two_parts_is_the_rollout_at_once(batch, local, first):
    go = partial(rollout, batch, Wanderer(), jax.random.key(0), local[1])
    at_once = go(steps=STEPS)
    carry, _ = go(steps=first)
    chex.assert_trees_all_equal(go(steps=STEPS - first, init=carry), at_once)


def test_going_on_uses_the_carry_up_and_leaves_the_total(batch, local):
    go = partial(rollout, batch, Wanderer(), jax.random.key(0), local[1], STEPS)
    carry, total = go()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # JAX warns of donated memory that it cannot use
        go(init=carry)
    assert all(leaf.is_deleted() for leaf in jax.tree.leaves(carry))
    assert total.episodes > 0


def test_rollouts_are_one_rollout_that_compiles_once(batch, local):
    traces = []

    def add(total, step):
        traces.append(total)
        return ended_episodes.add(total, step)

    reduction = Reduction(ended_episodes.start, add)
    key, (_, params) = jax.random.key(0), local
    part = STEPS // 5
    totals = rollouts(batch, Wanderer(), key, params, part, reduction)
    first = next(totals)
    before = len(traces)
    *_, last = itertools.islice(totals, 4)
    assert len(traces) == before
    chex.assert_trees_all_equal(last, rollout(batch, Wanderer(), key, params, STEPS)[1])
    assert last.episodes > first.episodes  # which is still there


def lengths():
    """A reduction to the number of episodes of every length, int32[41]."""

    def add(total, step):
        done = step.terminated | step.truncated
        return total.at[step.info["step_count"]].add(done.astype(jnp.int32))

    return Reduction(lambda: jnp.zeros(41, jnp.int32), add)


def test_a_reduction_is_what_the_record_would_give(batch, local):
    _, total = rollout(
        batch, Wanderer(), jax.random.key(0), local[1], 2 * STEPS, reduction=lengths()
    )
    _, recorded = record(batch, Wanderer(), jax.random.key(0), local[1], 2 * STEPS)
    done = np.asarray(recorded.terminated | recorded.truncated)
    expected = np.bincount(np.asarray(recorded.info["step_count"])[done], minlength=41)
    assert expected.sum() > LANES
    np.testing.assert_array_equal(total, expected)


def test_memory_does_not_grow_with_the_steps(batch, local):
    def bytes_of(steps):
        run = jax.jit(partial(rollout, batch, Wanderer(), steps=steps))
        memory = run.lower(jax.random.key(0), local[1]).compile().memory_analysis()
        return memory.temp_size_in_bytes + memory.output_size_in_bytes

    assert bytes_of(1_000_000) == bytes_of(10)


def test_memory_starts_blank_when_an_episode_ends(batch, local, manual):
    _, memory, transitions = manual
    done = np.stack([t.terminated | t.truncated for t in transitions])
    assert done.any()
    got, _ = rollout(batch, Wanderer(), jax.random.key(0), local[1], STEPS)
    for lane in range(LANES):
        last = np.flatnonzero(done[:, lane])[-1]
        assert got.memory[lane] == STEPS - 1 - last
        assert got.memory[lane] == got.state.step_count[lane]
    np.testing.assert_array_equal(memory, got.memory)


def test_a_carry_that_was_used_up_is_named(batch, local):
    carry, _ = rollout(batch, Wanderer(), jax.random.key(0), local[1], STEPS)
    rollout(batch, Wanderer(), jax.random.key(0), local[1], STEPS, carry)
    with pytest.raises(ValidationError, match="init"):
        rollout(batch, Wanderer(), jax.random.key(0), local[1], STEPS, carry)


@pytest.mark.parametrize("steps", [-1, 2.0, True, None])
def test_the_number_of_steps_is_checked(batch, local, steps):
    with pytest.raises(ValidationError, match="steps"):
        rollout(batch, Wanderer(), jax.random.key(0), local[1], steps)
