"""tests/search/test_intermittent_tasks: searches in whiffs: few states, two heights, a source that
moves."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plumejax
from plumejax.plumes.ground import FilamentsOverGround
from plumejax.search.intermittent_tasks import SNIFF, WHIFF
from plumejax.testing import check_task

IDS = ["WhiffStates-v0", "Alternation-v0", "MovingSource-v0"]
SMALL = {"warmup": 4, "capacity": 64}


@pytest.mark.long
@pytest.mark.parametrize("name", IDS)
def test_tasks_conform(name):
    check_task(*plumejax.make(name, **SMALL), steps=4)


def test_whiff_states_begin_on_a_whiff_and_pay_the_published_reward():
    env, params = plumejax.make("WhiffStates-v0", warmup=60)
    assert env.observation_space(params).n == 16
    assert (params.reward.goal, params.reward.penalty) == (1, np.float32(0.001))
    assert float(params.dt) == pytest.approx(0.05)
    keys = jax.random.split(jax.random.key(0), 32)

    @jax.jit
    @jax.vmap
    def first_move(key):
        seen, state = env.reset(key, params)
        _, moved, reward, *_ = env.step(key, state, jnp.int32(1), params)
        return seen, state.agent.position, moved.agent.position, reward

    seen, start, moved, reward = first_move(keys)
    x, y = np.asarray(start).T
    assert np.all((x >= 250) & (x <= 550) & (np.abs(y) <= 75))
    # One whiff in a window of ten steps: the lowest bin of intermittency.
    assert np.all((np.asarray(seen) >= 1) & (np.asarray(seen) <= 5))
    np.testing.assert_allclose(moved - start, np.tile([5, 0], (32, 1)), atol=1e-4)
    np.testing.assert_allclose(reward, -0.001)


def test_the_source_is_found_where_it_is_now():
    env, params = plumejax.make("MovingSource-v0", warmup=40)
    _, state = env.reset(jax.random.key(1), params)
    before = env.plume.sources(state.plume, params.plume)
    assert not np.array_equal(before[0], params.plume.source)  # it has walked already
    step = jax.jit(env.step)
    state = state.replace(agent=state.agent.replace(position=before[0] + jnp.asarray([20.0, 0.0])))
    _, near, reward, terminated, _, info = step(jax.random.key(2), state, jnp.int32(3), params)
    now = env.plume.sources(near.plume, params.plume)[0]
    assert np.linalg.norm(now - before[0]) == pytest.approx(30 * 0.05, rel=1e-3)
    assert info["distance"] == pytest.approx(
        float(jnp.linalg.norm(near.agent.position - now)), rel=1e-5
    )
    assert terminated
    assert reward == 1
    # And not where it was.
    state = state.replace(agent=state.agent.replace(position=jnp.asarray([500.0, 0.0])))
    *_, terminated, _, _ = step(jax.random.key(2), state, jnp.int32(3), params)
    assert not terminated


def test_alternation_sniffs_in_the_air_without_moving():
    env, params = plumejax.make("Alternation-v0", **SMALL)
    assert env.action_space(params).n == 5
    seen, state = env.reset(jax.random.key(0), params)
    assert state.agent.position[2] == 0
    seen, state, *_ = env.step(jax.random.key(1), state, jnp.int32(4), params)
    np.testing.assert_array_equal(seen[1:], [0, 0, 0, 0, 1])
    place = np.asarray(state.agent.position)
    assert place[2] == 1
    _, state, *_ = env.step(jax.random.key(2), state, jnp.int32(3), params)
    np.testing.assert_allclose(state.agent.position, [place[0] - 1, place[1], 0], atol=1e-5)
    assert float(params.dt) == pytest.approx(0.5)


def test_a_sniff_pays_where_searches_start_and_the_ground_near_the_source():
    env, params = plumejax.make("Alternation-v0")
    rng = np.random.default_rng(0)
    near, far = np.asarray([[2.0, 0.0]]), rng.uniform([20, -3], [30, 3], (24, 2))
    flat = np.concatenate([near, far])
    heights = [np.full((len(flat), 1), z) for z in (params.motion.low, params.motion.high)]
    places = jnp.asarray(
        np.concatenate([np.concatenate([flat, z], axis=1) for z in heights]), jnp.float32
    )

    @jax.jit
    @jax.vmap
    def smells(key):
        state = env.plume.start(key, params.plume)

        def later(state, key):
            state = env.plume.advance(key, state, params.plume)
            return state, env.plume.sample(state, places, params.plume).concentration > SNIFF

        return jax.lax.scan(later, state, jax.random.split(key, 40))[1]

    often = np.asarray(smells(jax.random.split(jax.random.key(0), 16))).mean((0, 1)).reshape(2, -1)
    ground, air = often[:, 1:].mean(axis=1)
    # Measured in 6400 plumes and moments: 0.05 and 0.18, and 0.95 and 0.78.
    assert 0.02 < ground < 0.1
    assert 0.11 < air < 0.26
    assert air > 2 * ground
    assert often[0, 0] > often[1, 0] + 0.05


def test_ground_takes_up_the_filaments_that_come_to_it():
    plume = FilamentsOverGround(capacity=4000)
    height, diffusivity, steps = 0.5, 0.02, 250
    params = plume.default_params().replace(
        source=np.asarray([5.0, 0.0, height], np.float32),
        initial=np.int32(4000),
        rate=np.float32(0.0),
    )

    @jax.jit
    def share(key):
        state = plume.start(key, params)
        keys = jax.random.split(key, steps)
        state, _ = jax.lax.scan(lambda s, k: (plume.advance(k, s, params), None), state, keys)
        return jnp.mean(state.particles.alive)

    spread = np.sqrt(2 * diffusivity * params.dt)
    # Steps of finite length see the plane 0.5826 of their spread farther off (Siegmund 1979).
    reached = (height + 0.5826 * spread) / np.sqrt(4 * diffusivity * steps * params.dt)
    expected = float(jax.scipy.special.erf(jnp.float32(reached)))
    sigma = np.sqrt(expected * (1 - expected) / 4000)
    assert float(share(jax.random.key(0))) == pytest.approx(expected, abs=4 * sigma)


def test_parts_can_be_replaced():
    sensor = plumejax.make("MovingSource-v0")[0].sensor
    env, params = plumejax.make("WhiffStates-v0", sensor=sensor, **SMALL)
    assert env.observation_space(params).shape == (1,)
    assert env.plume.capacity == SMALL["capacity"]
    assert params.start.threshold == np.float32(WHIFF)
