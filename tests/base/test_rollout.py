"""tests/base/test_rollout: a rollout is the loop one would write by hand."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import struct

from plumejax.base.batch import Batch
from plumejax.base.rollout import Carry, Transition, ended_episodes, record, rollout

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


def by_hand(batch, policy, key, params, steps, init=None):
    """`(carry, transitions)`, as the docstrings of rollout describe them."""
    start_key, run_key = jax.random.split(key)
    if init is None:
        env_key, policy_key = jax.random.split(start_key)
        observation, state = batch.reset(env_key, params)
        memory = jnp.stack([policy.init(k) for k in jax.random.split(policy_key, LANES)])
    else:
        observation, state, memory = init
    transitions = []
    for step_keys in jax.random.split(run_key, steps):
        act_key, _, step_key = jax.random.split(step_keys, 3)
        chosen = [
            policy.act(k, memory[i], observation[i])
            for i, k in enumerate(jax.random.split(act_key, LANES))
        ]
        action, memory = (jnp.stack(column) for column in zip(*chosen, strict=True))
        before = observation
        observation, state, reward, terminated, truncated, info = batch.step(
            step_key, state, action, params
        )
        memory = jnp.where(terminated | truncated, 0, memory)
        transitions.append(Transition(before, action, reward, terminated, truncated, info))
    return Carry(observation, state, memory), transitions


@pytest.fixture(scope="module")
def manual(batch, local):
    return by_hand(batch, Wanderer(), jax.random.key(0), local[1], STEPS)


def test_rollout_is_the_manual_loop(batch, local, manual):
    carry, totals = rollout(batch, Wanderer(), jax.random.key(0), local[1], STEPS)
    expected, transitions = manual
    chex.assert_trees_all_close(carry, expected, rtol=1e-6)
    sums = ended_episodes.start()
    for transition in transitions:
        sums = ended_episodes.add(sums, transition)
    assert sums.episodes > 0  # every lane is truncated after 40 steps at the latest
    chex.assert_trees_all_close(totals, sums, rtol=1e-6)


def test_record_is_the_manual_loop(batch, local, manual):
    states, recorded = record(batch, Wanderer(), jax.random.key(0), local[1], STEPS)
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *manual[1])
    chex.assert_trees_all_close(recorded, stacked, rtol=1e-6)
    np.testing.assert_array_equal(states.observation, recorded.observation)
    chex.assert_shape(states.agent.position, (STEPS, LANES, 2))


def test_rollout_goes_on_from_where_another_stopped(batch, local, manual):
    carry, _ = rollout(batch, Wanderer(), jax.random.key(0), local[1], STEPS)
    key = jax.random.key(1)
    further, _ = rollout(batch, Wanderer(), key, local[1], STEPS, carry)
    expected, _ = by_hand(batch, Wanderer(), key, local[1], STEPS, manual[0])
    chex.assert_trees_all_close(further, expected, rtol=1e-6)


def test_memory_starts_blank_when_an_episode_ends(batch, local, manual):
    carry, transitions = manual
    done = np.stack([t.terminated | t.truncated for t in transitions])
    assert done.any()
    got, _ = rollout(batch, Wanderer(), jax.random.key(0), local[1], STEPS)
    for lane in range(LANES):
        last = np.flatnonzero(done[:, lane])[-1]
        assert got.memory[lane] == STEPS - 1 - last
        assert got.memory[lane] == got.state.step_count[lane]
    np.testing.assert_array_equal(carry.memory, got.memory)
