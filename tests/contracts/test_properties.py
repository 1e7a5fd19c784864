"""tests/contracts/test_properties: what holds for every seed, action and number."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import plumejax
from plumejax.base.batch import Batch
from plumejax.base.lifecycle import Lifecycle
from plumejax.search.motion import NINE, Moves, RunAndTumble

GRID = (16, 12)
STEPS = 24
few = settings(max_examples=20, deadline=None)
seeds = st.integers(0, 2**31 - 1)
actions = st.lists(st.integers(0, 3), min_size=STEPS, max_size=STEPS)


@pytest.fixture(scope="module")
def tumbling():
    """`(env, params)` whose steps draw random numbers."""
    overrides = {"plume.sigma": 3.0, "ending.radius": 2.0, "max_steps": 16}
    return plumejax.make(
        "PlumeSearchLocal-v0", grid_size=GRID, motion=RunAndTumble(), overrides=overrides
    )


@pytest.fixture(scope="module")
def play():
    """`play(task, seed, actions)`: every outcome of an episode, stacked; one compilation a task."""

    def run(env, params, key, actions):
        def step(state, given):
            outcome = env.step(*given[:1], state, *given[1:], params)
            return outcome[1], outcome

        reset_key, step_key = jax.random.split(key)
        first = env.reset(reset_key, params)
        given = (jax.random.split(step_key, STEPS), actions)
        return first, jax.lax.scan(step, first[1], given)[1]

    jitted = jax.jit(run, static_argnums=0)
    return lambda task, seed, chosen: jitted(
        task[0], task[1], jax.random.key(seed), jnp.asarray(chosen, jnp.int32)
    )


@few
@given(seed=seeds, chosen=actions)
def test_same_key_same_episode(tumbling, play, seed, chosen):
    chosen = np.asarray(chosen) % 2
    chex.assert_trees_all_equal(play(tumbling, seed, chosen), play(tumbling, seed, chosen))


@few
@given(seed=seeds, chosen=actions, step=st.sampled_from([1.0, 3.0, 40.0]))
def test_a_step_never_leaves_the_grid(local, play, seed, chosen, step):
    env, params = local
    params = params.replace(motion=params.motion.replace(step=np.float32(step)))
    first, outcomes = play((env, params), seed, chosen)
    for position in (first[1].agent.position, outcomes[1].agent.position):
        x, y = np.asarray(position).T
        assert ((x >= 0) & (x <= GRID[0] - 1) & (y >= 0) & (y <= GRID[1] - 1)).all()
        assert (position == np.round(position)).all()


@few
@given(seed=seeds, chosen=actions)
def test_an_ended_episode_is_frozen(tumbling, play, seed, chosen):
    _, (observation, state, reward, terminated, truncated, info) = play(
        tumbling, seed, np.asarray(chosen) % 2
    )
    done = np.asarray(terminated | truncated)
    end = int(np.argmax(done))
    assert done[end]
    assert end < 16
    assert not done[:end].any()
    after = jax.tree.map(lambda x: x[end:], (observation, state, terminated, truncated, info))
    last = jax.tree.map(lambda x: jnp.broadcast_to(x[:1], x.shape), after)
    chex.assert_trees_all_equal(after, last)
    assert not reward[end + 1 :].any()
    np.testing.assert_allclose(state.total_reward[-1], reward.sum(), rtol=1e-6)


@few
@given(seed=seeds, chosen=actions)
def test_counts_flags_and_codes_agree(tumbling, play, seed, chosen):
    _, (_, state, reward, terminated, truncated, info) = play(
        tumbling, seed, np.asarray(chosen) % 2
    )
    count = np.asarray(state.step_count)
    np.testing.assert_array_equal(count, np.minimum(np.arange(1, STEPS + 1), count[-1]))
    np.testing.assert_array_equal(truncated, count >= 16)
    np.testing.assert_array_equal(terminated, info["distance"] <= 2.0)
    np.testing.assert_array_equal(terminated, info["found"])
    codes = np.where(terminated, Lifecycle.TERMINATED, Lifecycle.READY)
    codes = np.where(truncated & ~terminated, Lifecycle.TRUNCATED, codes)
    np.testing.assert_array_equal(state.lifecycle, codes)
    assert reward.sum() == float(terminated[-1])


@few
@given(seed=seeds, action=st.integers(0, 8))
def test_jit_equals_eager(nine, seed, action):
    env, params = nine
    keys = jax.random.split(jax.random.key(seed))
    jitted = env.reset(keys[0], params)
    stepped = env.step(keys[1], jitted[1], jnp.int32(action), params)
    with jax.disable_jit():
        eager = env.reset(keys[0], params)
        eager_step = env.step(keys[1], eager[1], jnp.int32(action), params)
    chex.assert_trees_all_equal(jitted[1].agent, eager[1].agent)
    chex.assert_trees_all_equal(stepped[1].agent, eager_step[1].agent)
    chex.assert_trees_all_equal(stepped[2:5], eager_step[2:5])
    chex.assert_trees_all_close((jitted, stepped), (eager, eager_step), rtol=1e-5)


@pytest.fixture(scope="module")
def nine():
    """`(env, params)` with the nine-way motion."""
    return plumejax.make(
        "PlumeSearchLocal-v0",
        grid_size=GRID,
        motion=Moves(NINE),
        overrides={"plume.sigma": 3.0, "ending.radius": 2.0},
    )


@few
@given(seed=seeds, chosen=st.lists(st.integers(0, 1), min_size=5, max_size=5))
def test_independence_of_batch_size(batches, tumbling, seed, chosen):
    _, params = tumbling
    chosen = jnp.asarray(chosen, jnp.int32)
    ran = {}
    for n, batch in batches.items():
        keys = jax.random.split(jax.random.key(seed), 3)
        _, state = batch.reset(keys[0], params)
        # Odd lanes end with this step, and reset within it.
        odd = jnp.arange(n, dtype=jnp.int32) % 2
        state = state.replace(step_count=odd * (params.max_steps - jnp.int32(1)))
        ran[n] = batch.step(keys[1], state, chosen[:n], params)
    chex.assert_trees_all_equal(jax.tree.map(lambda x: x[:2], ran[5]), ran[2])
    assert ran[5][4][1::2].all()
    assert (ran[5][1].step_count[1::2] == 0).all()


@pytest.fixture(scope="module")
def batches(tumbling):
    return {n: Batch(tumbling[0], n) for n in (2, 5)}


def test_no_recompilation_after_the_first_call(local):
    # The cache of a jitted method is shared by all environments, so it is its growth that counts.
    env, params = local
    batch = Batch(env, 3)

    def ten_steps(seed, params):
        key = jax.random.key(seed)
        _, state = env.reset(key, params)
        _, states = batch.reset(key, params)
        for action in range(4):
            _, state, *_ = env.step(key, state, jnp.int32(action), params)
            _, states, *_ = batch.step(key, states, jnp.full(3, action, jnp.int32), params)

    ten_steps(0, params)
    before = [f._cache_size() for f in (type(env).reset, type(env).step, Batch.reset, Batch.step)]
    for seed in (1, 2):
        other = params.replace(
            plume=params.plume.replace(sigma=np.float32(seed + 1)), max_steps=np.int32(2)
        )
        ten_steps(seed, other)
    after = [f._cache_size() for f in (type(env).reset, type(env).step, Batch.reset, Batch.step)]
    assert before == after
