"""tests/search/test_search: sensors, rewards and the ending, and the messages of validation."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plumejax
from plumejax.base.errors import ComponentError, ValidationError
from plumejax.plumes.gaussian import GaussianPlume
from plumejax.search.rewards import Progress, StepPenalty, with_progress_reward
from plumejax.search.sensors import FullField, LocalConcentration

GRID = (16, 12)


def field(source, sigma):
    """The Gaussian of the contract in float64, [H, W]."""
    y, x = np.mgrid[: GRID[1], : GRID[0]].astype(np.float64)
    return np.exp(-((x - source[0]) ** 2 + (y - source[1]) ** 2) / (2.0 * sigma**2))


def at(state, x, y):
    return state.replace(agent=state.agent.replace(position=jnp.asarray([x, y], jnp.float32)))


def step(env, params, place, action):
    _, state = env.reset(jax.random.key(0), params)
    return env.step(jax.random.key(0), at(state, *place), action, params)


@pytest.mark.parametrize(("source", "sigma"), [((8, 6), 3.0), ((0, 11), 12.0), ((15, 0), 0.5)])
def test_the_full_field_is_the_gaussian_wherever_params_put_it(full, source, sigma):
    env, params = full
    source = np.asarray(source, np.float32)
    params = params.replace(plume=params.plume.replace(source=source, sigma=np.float32(sigma)))
    observation, state = env.reset(jax.random.key(1), params)
    seen = observation["concentration_field"]
    chex.assert_shape(seen, GRID[::-1])
    np.testing.assert_allclose(seen, field(source, sigma), rtol=2e-5, atol=1e-30)
    assert seen[int(source[1]), int(source[0])] == 1.0
    np.testing.assert_array_equal(observation["source_location"], source)
    np.testing.assert_array_equal(observation["agent_position"], state.agent.position)
    assert observation["agent_position"].dtype == jnp.int32


def test_the_local_sensor_reads_the_field_where_the_agent_stands(local, full):
    env, params = local
    seen = full[0].reset(jax.random.key(0), full[1])[0]["concentration_field"]
    for x, y in ((0, 0), (15, 11), (7, 6), (3, 9)):
        observation, *_ = step(env, params, (x, y), 1)
        np.testing.assert_allclose(observation[0], seen[y, min(x + 1, 15)], rtol=1e-6)
    np.testing.assert_allclose(seen, field((8, 6), 3.0), rtol=2e-5)


def test_sensors_saturate():
    overrides = {"sensor.saturation": 0.25, "plume.sigma": 3.0, "ending.radius": 2.0}
    env, params = plumejax.make("PlumeSearchLocal-v0", grid_size=GRID, overrides=overrides)
    observation, *_ = step(env, params, (7, 6), 1)
    assert observation == 0.25
    assert env.observation_space(params).contains(observation)
    unsaturated, *_ = step(env, params, (0, 6), 3)
    assert 0 < unsaturated < 0.25


def test_air_outside_the_grid_is_clean():
    plume = GaussianPlume(GRID)
    params = plume.default_params()
    state = plume.start(jax.random.key(0), params)
    places = jnp.asarray([[8, 6], [-1, 6], [16, 6], [8, 12], [8, -1]], jnp.float32)
    air = plume.sample(state, places, params)
    np.testing.assert_array_equal(air.concentration, [1, 0, 0, 0, 0])
    np.testing.assert_array_equal(air.wind, np.zeros((5, 2)))


@pytest.mark.parametrize(
    ("radius", "place", "found"),
    [
        (2.0, (5, 6), True),  # lands 2 away, on the boundary
        (2.0, (4, 6), False),
        (np.sqrt(2), (6, 7), True),  # lands on the diagonal neighbour
        (np.nextafter(np.float32(np.sqrt(2)), np.float32(0)), (6, 7), False),
        (1.1920929e-07, (7, 6), True),
        (1.1920929e-07, (6, 6), False),
    ],
)
def test_the_goal_disc_includes_its_boundary(local, radius, place, found):
    env, params = local
    params = params.replace(ending=params.ending.replace(radius=np.float32(radius)))
    _, state, reward, terminated, truncated, info = step(env, params, place, 1)
    assert bool(terminated) == bool(info["found"]) == bool(state.found) == found
    assert not truncated
    assert not info["failed"]
    assert reward == float(found)
    expected = np.hypot(place[0] + 1 - 8, place[1] - 6)
    np.testing.assert_allclose(info["distance"], expected, rtol=1e-6)


def with_reward(reward, local):
    env, params = plumejax.make(
        "PlumeSearchLocal-v0", grid_size=GRID, reward=reward, overrides={"ending.radius": 2.0}
    )
    return env, params


def test_a_step_penalty_is_taken_on_every_step_but_the_last(local):
    env, params = with_reward(StepPenalty(), local)
    assert step(env, params, (5, 6), 1)[2] == 1.0
    assert step(env, params, (4, 6), 1)[2] == -np.float32(0.01)
    assert step(env, params, (0, 6), 3)[2] == -np.float32(0.01)  # a blocked move costs as well


def test_progress_pays_for_what_came_nearer_and_for_no_detour(local):
    env, params = with_reward(Progress(), local)
    np.testing.assert_allclose(step(env, params, (3, 6), 1)[2], 0.1 - 0.01, rtol=1e-5)
    np.testing.assert_allclose(step(env, params, (3, 6), 3)[2], -0.1 - 0.01, rtol=1e-5)
    np.testing.assert_allclose(step(env, params, (5, 6), 1)[2], 1 + 0.1 - 0.01, rtol=1e-5)
    there = step(env, params, (3, 6), 0)
    back = env.step(jax.random.key(0), there[1], 2, params)
    np.testing.assert_allclose(there[2] + back[2], -0.02, rtol=1e-4)


def test_training_on_progress_changes_the_reward_alone(local):
    env, params = local
    shaped, shaped_params = with_progress_reward(env, params)
    plain, other = step(env, params, (3, 6), 1), step(shaped, shaped_params, (3, 6), 1)
    chex.assert_trees_all_close(plain[0], other[0])
    assert plain[2] != other[2]


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"plume.sigma": -1.0}, "plume.sigma = -1.0 is not allowed: it must be >= 1e-6 cells"),
        ({"plume.source": (16, 0)}, r"plume.source .* inside the grid \(16, 12\)"),
        ({"plume.source": (0, -1)}, "plume.source"),
        ({"sensor.saturation": 0.0}, "sensor.saturation"),
        ({"ending.radius": 0.0}, "ending.radius"),
        ({"ending.radius": float("inf")}, "ending.radius.*finite"),
        ({"start.min_distance": -1.0}, "start.min_distance"),
        ({"start.heading": 360.0}, r"start.heading .* \[0, 360\)"),
        ({"max_steps": -5}, "max_steps"),
    ],
)
def test_numbers_out_of_range_are_named(overrides, message):
    with pytest.raises(ValidationError, match=message):
        plumejax.make("PlumeSearchLocal-v0", grid_size=GRID, overrides=overrides)


def test_a_negative_penalty_is_refused():
    with pytest.raises(ValidationError, match=r"reward\.penalty"):
        plumejax.make(
            "PlumeSearchLocal-v0",
            grid_size=GRID,
            reward=StepPenalty(),
            overrides={"reward.penalty": -1.0},
        )


class Unhashable(LocalConcentration):
    """A sensor that cannot be static."""

    __hash__ = None


@pytest.mark.parametrize(
    ("role", "component", "message"),
    [
        ("plume", object(), r"lacks the method default_params\(\); a plume has"),
        ("sensor", Progress(), r"sensor = Progress\(\) lacks the method start"),
        ("sensor", Unhashable(), "cannot be hashed"),
    ],
)
def test_what_is_no_component_is_refused(role, component, message):
    with pytest.raises(ComponentError, match=message):
        plumejax.make("PlumeSearchLocal-v0", grid_size=GRID, **{role: component})


def test_the_spaces_are_those_of_the_contract(full):
    env, params = full
    space = env.observation_space(params)
    assert list(space.spaces) == ["agent_position", "concentration_field", "source_location"]
    assert space.spaces["concentration_field"].shape == (12, 16)
    np.testing.assert_array_equal(space.spaces["agent_position"].high, [15, 11])
    assert isinstance(env.sensor, FullField)


def test_the_default_task_is_the_one_of_the_contract():
    env, params = plumejax.make("PlumeSearch-v0")
    assert env.arena.grid_size == env.plume.grid_size == env.sensor.grid_size == (128, 128)
    assert params.plume.sigma == 12.0
    np.testing.assert_array_equal(params.plume.source, [64, 64])
    assert (params.ending.radius, params.max_steps, params.motion.step) == (5.0, 1000, 1.0)
    assert env.action_space(params).n == 4
