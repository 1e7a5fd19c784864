"""tests/search/test_tasks: the catalogue of named tasks: each runs, with the published numbers."""

import warnings

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import plumejax
from plumejax.plumes.bank import make_bank
from plumejax.plumes.catalogue import make as make_plume
from plumejax.plumes.encounters import hit_probabilities, isotropic_rate
from plumejax.testing import check_task

IDS = [
    name
    for name, task in plumejax.registered_tasks().items()
    if task.family == "search" and not task.needs
]
LANES, STEPS = 3, 12


def small(name):
    """What makes a task quick to reset, and changes nothing else."""
    return {"warmup": 4, "capacity": 256} if name.startswith("PlumeTracking") else {}


@pytest.mark.parametrize("name", IDS)
def test_every_task_runs_and_observes_what_its_space_says(name):
    env, params = plumejax.make(name, **small(name))
    space = env.observation_space(params)

    def play(key):
        first, rest = jax.random.split(key)
        observation, state = env.reset(first, params)

        def step(state, key):
            action = env.action_space(params).sample(key)
            observation, state, reward, *_ = env.step(key, state, action, params)
            return state, (space.contains(observation), reward)

        state, (inside, reward) = jax.lax.scan(step, state, jax.random.split(rest, STEPS))
        return space.contains(observation), inside, reward, state

    keys = jax.random.split(jax.random.key(0), LANES)
    first, inside, reward, state = jax.jit(jax.vmap(play))(keys)
    assert first.all()
    assert inside.all()
    assert np.all(np.isfinite(reward))
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(state.agent))
    assert (np.asarray(state.step_count) > 0).all()


@pytest.mark.parametrize("name", IDS)
def test_every_task_says_where_it_is_from_and_how_hard_it_is(name):
    task = plumejax.registered_tasks()[name]
    assert task.summary
    assert task.source
    assert task.difficulty in ("easy", "medium", "hard")


# Loisy and Eloy 2022 and Loisy and Heinonen 2023 by the design notes: L, I, d, N, H, mu at one
# cell, the law of the first count.
CASES = {
    "Olfactory-Isotropic-1D-v0": (2, 2, 1, 33, 4, 1.617415, (0.650452, 0.227798, 0.121750)),
    "Olfactory-Isotropic-19x19-v0": (1, 1, 2, 19, 3, 0.607410, (0.849187, 0.150813)),
    "Olfactory-Isotropic-53x53-v0": (3, 2, 2, 53, 4, 1.424951, (0.830998, 0.128918, 0.040084)),
    "Olfactory-Isotropic-3D-v0": (2, 2, 3, 39, 3, 0.606531, (0.937277, 0.062723)),
}


@pytest.mark.parametrize("name", CASES)
def test_isotropic_cases_are_the_published_ones(name):
    wavelength, rate, dimensions, size, categories, highest, counts = CASES[name]
    env, params = plumejax.make(name)
    assert env.plume.grid_size == (size,) * dimensions
    assert (params.plume.law.wavelength, params.plume.law.rate) == (wavelength, rate)
    mu = isotropic_rate(jnp.float32(1), jnp.float32(wavelength), jnp.float32(rate), dimensions)
    assert float(mu) == pytest.approx(highest, abs=2e-6)
    assert len(hit_probabilities(mu, categories)) == categories
    np.testing.assert_allclose(params.start.counts, counts, atol=2e-6)
    np.testing.assert_array_equal(params.start.position, [size // 2] * dimensions)
    observation, state = env.reset(jax.random.key(0), params)
    assert 1 <= observation[0] < categories
    np.testing.assert_array_equal(observation[1:], state.agent.position)
    # A step along every axis and back, and none off the grid.
    for action in range(2 * dimensions):
        _, moved, *_ = env.step(jax.random.key(1), state, jnp.int32(action), params)
        way = np.zeros(dimensions)
        way[action // 2] = 2 * (action % 2) - 1
        np.testing.assert_array_equal(moved.agent.position - state.agent.position, way)


@pytest.mark.parametrize(
    ("name", "rate"), [("Olfactory-Windy-Medium-v0", 2.5), ("Olfactory-Windy-Low-v0", 0.25)]
)
def test_windy_cases_are_the_published_ones(name, rate):
    env, params = plumejax.make(name)
    law = params.plume.law
    assert (law.rate, law.speed, law.lifetime) == (np.float32(rate), 2, 150)
    assert env.plume.grid_size == (81, 41)
    np.testing.assert_array_equal(params.start.position, [65, 20])
    assert int(params.max_steps) == 10_000
    observation, _ = env.reset(jax.random.key(0), params)
    np.testing.assert_array_equal(observation, [1, 65, 20])


def test_an_encounter_search_ends_in_the_cell_of_the_source():
    env, params = plumejax.make("Olfactory-Isotropic-19x19-v0")
    _, state = env.reset(jax.random.key(0), params)
    source = np.asarray(env.plume.sources(state.plume, params.plume))[0]
    way = source - np.asarray(state.agent.position)
    actions = [0 if way[0] < 0 else 1] * int(abs(way[0])) + [2 if way[1] < 0 else 3] * int(
        abs(way[1])
    )
    for count, action in enumerate(actions, start=1):
        _, state, reward, terminated, *_ = env.step(
            jax.random.key(1), state, jnp.int32(action), params
        )
        assert bool(terminated) == (count == len(actions))
        assert float(reward) == (count == len(actions))


# Singh et al. 2023 by the design notes: rad/s of a full turn, m/s, paid at the source.
EDITIONS = {"Code": (6.25 * np.pi, 2.0, 101.0), "Paper": (12.5 * np.pi, 2.5, 100.0)}


@pytest.mark.parametrize("edition", EDITIONS)
def test_plume_tracking_has_the_numbers_of_each_edition(edition):
    turn, speed, found = EDITIONS[edition]
    env, params = plumejax.make(f"PlumeTracking-{edition}-Sparse-v0", **small("PlumeTracking"))
    assert np.deg2rad(params.motion.turn_range) == pytest.approx(turn)
    assert params.motion.max_speed == speed
    assert params.motion.drift == 1
    assert params.reward.found == found
    assert (params.ending.radius, params.ending.limit) == (np.float32(0.2), 2)
    assert int(params.max_steps) == 300
    assert params.dt == pytest.approx(0.04)
    assert params.plume.high[1] == (10 if edition == "Code" else 5)
    assert (params.plume.keep, params.plume.growth) == (np.float32(0.4), np.float32(0.005))
    assert env.plume.substeps == 4


def test_a_tracker_starts_where_the_code_says_and_feels_the_wind_it_moves_in():
    env, params = plumejax.make("PlumeTracking-Code-Constant-v0", **small("PlumeTracking"))
    keys = jax.random.split(jax.random.key(0), 64)
    _, state = jax.jit(jax.vmap(env.reset, in_axes=(0, None)))(keys, params)
    x, y = np.asarray(state.agent.position).T
    np.testing.assert_allclose([x.min(), x.max()], [1, 3], atol=0.3)
    np.testing.assert_allclose([y.min(), y.max()], [-0.5, 0.5], atol=0.2)
    assert np.all((x >= 1) & (x <= 3) & (abs(y) <= 0.5))
    assert np.asarray(state.agent.heading).std() > 60
    # Straight on at full speed: its own 2 m/s and the wind's 0.5 m/s carry it.
    one = jax.tree.map(lambda leaf: leaf[0], state)
    action = jnp.asarray([0.5, 1.0], jnp.float32)
    seen, moved, *_ = env.step(jax.random.key(1), one, action, params)
    angle = np.deg2rad(float(one.agent.heading))
    own = 2 * np.asarray([np.cos(angle), np.sin(angle)])
    way = np.asarray(moved.agent.position - one.agent.position)
    np.testing.assert_allclose(way, 0.04 * (own + np.asarray([0.5, 0])), atol=1e-5)
    ahead = 0.5 * np.cos(angle) - 2
    np.testing.assert_allclose(seen[:2], [ahead, -0.5 * np.sin(angle)], atol=1e-5)


@pytest.mark.parametrize("edition", EDITIONS)
def test_the_wind_that_turns_once_turns_within_the_episode(edition):
    env, params = plumejax.make(f"PlumeTracking-{edition}-SwitchOnce-v0")
    starts = env.plume.warmup * float(params.dt)
    turns = float(params.plume.wind.time)
    assert turns - starts == pytest.approx(2, abs=0.01)
    assert turns < starts + float(params.dt) * int(params.max_steps)
    # The other plumes have blown for a minute.
    env, params = plumejax.make(f"PlumeTracking-{edition}-Constant-v0")
    assert env.plume.warmup * float(params.dt) == pytest.approx(60)


def test_plume_tracking_plays_in_a_bank_and_in_filaments():
    plume, numbers = make_plume("tracking-code", capacity=256)
    bank, banked = make_bank(plume, numbers, jax.random.key(0), 2, 8, warmup=20, margin=4)
    env, params = plumejax.make("PlumeTracking-Code-Constant-v0", plume=bank)
    params = params.replace(plume=banked)
    env.validate(params)
    _, state = env.reset(jax.random.key(1), params)
    action = jnp.asarray([0.5, 0.0], jnp.float32)
    _, state, reward, *_ = env.step(jax.random.key(2), state, action, params)
    assert np.isfinite(reward)
    # A newborn filament reads 1 in its middle.
    env, params = plumejax.make("PlumeTracking-FarrellStraight-v0", warmup=0, capacity=16)
    state = env.plume.start(jax.random.key(0), params.plume.replace(initial=np.int32(1)))
    middle = env.plume.sample(state, jnp.asarray([[5.0, 0.0]]), params.plume).concentration
    assert params.sensor["odour"].saturation == pytest.approx(float(middle[0]), rel=1e-5)
    assert params.reward.threshold == pytest.approx(1e-4 * float(middle[0]), rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["Olfactory-Isotropic-19x19-v0", "PlumeTracking-Paper-SwitchMany-v0"]
)
def test_tasks_conform(name):
    check_task(*plumejax.make(name, **small(name)), steps=4)


@pytest.mark.parametrize(
    "name",
    ["Olfactory-Isotropic-1D-v0", "Olfactory-Isotropic-3D-v0", "PlumeTracking-Code-Sparse-v0"],
)
def test_tasks_of_any_dimension_pass_gymnasiums_checks(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make(f"plumejax/{name}", config={"static": small(name)})
        check_env(env.unwrapped)
