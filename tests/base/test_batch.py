"""tests/base/test_batch: Batch is the lanes alone, and its resets are the slow way's, exactly."""

from dataclasses import replace
from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plumejax
from plumejax.base.batch import RESET, Batch
from plumejax.base.errors import ValidationError
from plumejax.search.motion import RunAndTumble

LANES = 40  # chunks of sixteen, the last not full


@pytest.fixture(scope="module")
def tumbling():
    """`(env, params)` whose steps draw random numbers."""
    overrides = {"plume.sigma": 3.0, "ending.radius": 2.0, "max_steps": 40}
    return plumejax.make(
        "PlumeSearchLocal-v0", grid_size=(16, 12), motion=RunAndTumble(), overrides=overrides
    )


@pytest.fixture(scope="module")
def batch(tumbling):
    return Batch(tumbling[0], LANES)


def fold(key, numbers):
    return jax.vmap(partial(jax.random.fold_in, key))(numbers)


@partial(jax.jit, static_argnames="env")
def slow_reset_where(env, key, done, state, params):
    """Reset all lanes, and take what was done."""
    keys = fold(key, jnp.arange(len(done), dtype=jnp.uint32) + jnp.uint32(RESET))
    _, fresh = jax.vmap(env.reset, in_axes=(0, None))(keys, params)
    choose = lambda x, y: jnp.where(done.reshape(-1, *(1,) * (x.ndim - 1)), x, y)  # noqa: E731
    return jax.tree.map(choose, fresh, state)


@pytest.mark.parametrize("order", ["first", "last", "shuffled"])
def test_resets_of_none_to_all_lanes_equal_the_slow_way(batch, tumbling, order):
    env, params = tumbling
    _, state = batch.reset(jax.random.key(0), params)
    rng = np.random.default_rng(0)
    for ended in range(LANES + 1):
        lanes = {"first": np.arange(LANES), "last": np.arange(LANES)[::-1]}.get(
            order, rng.permutation(LANES)
        )
        done = jnp.zeros(LANES, bool).at[lanes[:ended]].set(True)
        key = jax.random.key(ended)
        observation, got = batch.reset_where(key, done, state, params)
        expected = slow_reset_where(env, key, done, state, params)
        chex.assert_trees_all_equal(got, expected)
        chex.assert_trees_all_equal(observation, expected.observation)


def test_lanes_never_share_a_reset(batch, tumbling):
    _, params = tumbling
    _, state = batch.reset(jax.random.key(0), params)
    # Every lane reset 50 times: two lanes agree again and again only if they share a key.
    done = jnp.ones(LANES, bool)
    resets = [batch.reset_where(jax.random.key(k), done, state, params)[1] for k in range(50)]
    places = np.stack([reset.agent.position for reset in resets])
    same = (places[:, :, None] == places[:, None, :]).all(-1).mean(0)
    off_diagonal = same[~np.eye(LANES, dtype=bool)]
    # Independent starts agree with probability 1/179; 50 draws of it are below 0.3.
    assert off_diagonal.max() < 0.3


def test_reset_lane_is_the_environment_with_its_own_key(batch, tumbling):
    env, params = tumbling
    key = jax.random.key(3)
    observation, state = batch.reset(key, params)
    for i in (0, 7, LANES - 1):
        alone = env.reset(jax.random.fold_in(key, i), params)
        chex.assert_trees_all_equal(jax.tree.map(lambda x, i=i: x[i], (observation, state)), alone)


def test_advance_lane_is_the_environment_with_its_own_key(batch, tumbling):
    env, params = tumbling
    key = jax.random.key(4)
    _, state = batch.reset(jax.random.key(3), params)
    action = jnp.ones(LANES, jnp.int32)
    stepped = batch.advance(key, state, action, params)
    for i in (0, 7, LANES - 1):
        lane = jax.tree.map(lambda x, i=i: x[i], state)
        alone = env.step(jax.random.fold_in(key, i), lane, action[i], params)
        chex.assert_trees_all_close(jax.tree.map(lambda x, i=i: x[i], stepped), alone, rtol=1e-6)


def test_a_step_that_draws_nothing_does_not_look_at_its_key(local):
    env, params = local
    batch = Batch(env, 2)
    _, state = batch.reset(jax.random.key(0), params)
    actions = jnp.asarray([0, 1], jnp.int32)
    one = batch.advance(jax.random.key(1), state, actions, params)
    chex.assert_trees_all_equal(one, batch.advance(jax.random.key(2), state, actions, params))


def test_a_step_keeps_the_last_observation_and_the_episode_totals(batch, tumbling):
    _, params = tumbling
    _, state = batch.reset(jax.random.key(0), params)
    ending = jnp.arange(LANES) % 3 == 0
    count = jnp.where(ending, params.max_steps - jnp.int32(1), jnp.int32(2))
    state = state.replace(step_count=count, total_reward=jnp.full(LANES, 0.25))
    key, action = jax.random.key(1), jnp.zeros(LANES, jnp.int32)
    last, before, *_ = batch.advance(key, state, action, params)
    observation, after, _, terminated, truncated, info = batch.step(key, state, action, params)
    chex.assert_trees_all_equal(info["final_observation"], last)
    np.testing.assert_array_equal(info["step_count"], before.step_count)
    np.testing.assert_array_equal(info["total_reward"], before.total_reward)
    np.testing.assert_array_equal(truncated, ending)
    done = terminated | truncated
    np.testing.assert_array_equal(after.step_count, jnp.where(done, 0, before.step_count))
    np.testing.assert_array_equal(after.total_reward[done], 0.0)
    assert (after.lifecycle == 1).all()
    chex.assert_trees_all_equal(observation, after.observation)
    assert (observation[done] != last[done]).any()
    np.testing.assert_array_equal(observation[~done], last[~done])


def test_the_last_observation_can_be_left_out(local):
    env, params = local
    batch = Batch(env, 2, final_observation=False)
    _, state = jax.eval_shape(batch.reset, jax.random.key(0), params)
    action = jax.ShapeDtypeStruct((2,), jnp.int32)
    info = jax.eval_shape(batch.step, jax.random.key(0), state, action, params)[-1]
    assert "final_observation" not in info


def test_lanes_with_params_of_their_own_reset_with_them(local):
    env, params = local
    lanes = 36  # chunks of sixteen
    shared = jax.tree.map(lambda _: None, params)
    axes = shared.replace(plume=shared.plume.replace(source=0), max_steps=0)
    source = np.stack([np.arange(lanes) % 12, np.full(lanes, 6)], -1).astype(np.float32)
    limits = np.arange(1, lanes + 1, dtype=np.int32)
    params = params.replace(plume=params.plume.replace(source=source), max_steps=limits)
    batch = Batch(env, lanes, params_axes=axes)
    _, state = batch.reset(jax.random.key(0), params)
    np.testing.assert_array_equal(state.plume, source)
    action = jnp.zeros(lanes, jnp.int32)
    for t in range(1, lanes + 1):
        key = jax.random.fold_in(jax.random.key(1), t)
        state = state.replace(step_count=jnp.full(lanes, t - 1, jnp.int32))
        _, state, _, terminated, truncated, _ = batch.step(key, state, action, params)
        np.testing.assert_array_equal(truncated, t >= limits)
        np.testing.assert_array_equal(state.plume, source)
        done = terminated | truncated
        distance = np.linalg.norm(state.agent.position - source, axis=-1)
        assert (distance[done] > params.ending.radius).all()
        assert (state.step_count[done] == 0).all()


def test_params_of_one_lane_are_that_lane_alone(local):
    env, params = local
    axes = jax.tree.map(lambda _: None, params).replace(
        plume=jax.tree.map(lambda _: None, params.plume).replace(sigma=0)
    )
    sigma = np.asarray([1.0, 2.0, 6.0], np.float32)
    swept = params.replace(plume=params.plume.replace(sigma=sigma))
    observation, _ = Batch(env, 3, params_axes=axes).reset(jax.random.key(5), swept)
    for i, each in enumerate(sigma):
        own = params.replace(plume=params.plume.replace(sigma=each))
        alone, _ = env.reset(jax.random.fold_in(jax.random.key(5), i), own)
        np.testing.assert_allclose(observation[i], alone, rtol=1e-6)


@pytest.mark.parametrize("num_envs", [0, -1, 2.0, True])
def test_the_number_of_lanes_is_checked(local, num_envs):
    with pytest.raises(ValidationError, match="num_envs"):
        Batch(local[0], num_envs)


def test_equal_batches_are_equal(local):
    batch = Batch(local[0], 3)
    assert batch == replace(batch)
    assert hash(batch) == hash(replace(batch))
    assert batch != replace(batch, final_observation=False)


@pytest.mark.parametrize(
    "action",
    [
        jnp.zeros(3),
        np.zeros(3, bool),
        jnp.zeros((3, 1), jnp.int32),
        jnp.zeros(4, jnp.int32),
        jnp.int32(0),
        [0, 0, 0],
        None,
    ],
    ids=["float", "bool", "(n, 1)", "(n + 1,)", "scalar", "list", "None"],
)
def test_actions_that_would_freeze_every_lane_are_named(local, action):
    env, params = local
    batch = Batch(env, 3)
    _, state = jax.eval_shape(batch.reset, jax.random.key(0), params)
    with pytest.raises(ValidationError, match="action"):
        jax.eval_shape(batch.step, jax.random.key(0), state, action, params)


@pytest.mark.parametrize("mesh", [4, "x"])
def test_a_mesh_is_a_mesh(local, mesh):
    with pytest.raises(ValidationError, match="mesh"):
        Batch(local[0], 4, mesh=mesh)
