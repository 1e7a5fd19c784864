"""tests/base/test_randomised: numbers that are drawn anew at each reset, through every adapter."""

import copy
import math
import pickle

import gymnax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plumejax
from plumejax.adapters.gymnax import register_all
from plumejax.base import paths
from plumejax.base.batch import Batch
from plumejax.base.errors import ValidationError
from plumejax.base.randomised import (
    Choice,
    IntegerRange,
    LogUniform,
    Normal,
    Randomised,
    Uniform,
    corners,
    distributions,
    override,
    randomised,
)
from plumejax.search.environment import PlumeSearch
from plumejax.testing import check_task

GRID = (16, 12)
FIXED = {"ending.radius": 2.0, "max_steps": 40}
DRAWN = {
    "plume.sigma": Uniform(2.0, 4.0),
    "plume.source": IntegerRange((4, 4), (11, 7)),
    "sensor.saturation": Choice((0.5, 1.0)),
}
DRAWS = 4096


@pytest.fixture(scope="module")
def task():
    """`(env, params)` of the small local task with a width, a source and a saturation drawn."""
    return make({**FIXED, **DRAWN})


def make(overrides):
    return plumejax.make("PlumeSearchLocal-v0", grid_size=GRID, overrides=overrides)


def draws(distribution, like):
    fitted = distribution.fitted("number", like)
    keys = jax.random.split(jax.random.key(0), DRAWS)
    return np.asarray(jax.jit(jax.vmap(fitted.draw))(keys))


# ---- the distributions ----


def test_uniform_has_the_mean_and_the_ends_of_its_interval():
    drawn = draws(Uniform(2.0, 6.0), np.float32(0))
    assert drawn.dtype == np.float32
    assert drawn.min() >= 2
    assert drawn.max() <= 6
    sd = 4 / math.sqrt(12)
    np.testing.assert_allclose(drawn.mean(), 4.0, atol=5 * sd / math.sqrt(DRAWS))
    np.testing.assert_allclose(drawn.std(), sd, rtol=0.05)


def test_log_uniform_has_its_median_at_the_geometric_mean():
    drawn = draws(LogUniform(0.01, 100.0), np.float32(0))
    assert drawn.min() >= np.float32(0.01)
    assert drawn.max() <= 100
    logs = np.log(drawn)
    sd = math.log(1e4) / math.sqrt(12)
    np.testing.assert_allclose(logs.mean(), 0.0, atol=5 * sd / math.sqrt(DRAWS))
    np.testing.assert_allclose(logs.std(), sd, rtol=0.05)


def test_normal_is_clipped_at_its_ends():
    drawn = draws(Normal(1.0, 2.0, -1.0, 5.0), np.float32(0))
    assert drawn.min() == -1
    assert drawn.max() == 5
    # One standard deviation below the mean: P = 0.1587.
    share = 0.1587
    sd = math.sqrt(share * (1 - share) / DRAWS)
    np.testing.assert_allclose(np.mean(drawn == -1), share, atol=5 * sd)
    np.testing.assert_allclose(np.median(drawn), 1.0, atol=5 * 1.2533 * 2 / math.sqrt(DRAWS))


@pytest.mark.parametrize("like", [np.int32(0), np.float32(0)])
def test_an_integer_range_includes_both_ends(like):
    drawn = draws(IntegerRange(-1, 2), like)
    assert drawn.dtype == like.dtype
    values, counts = np.unique(drawn, return_counts=True)
    np.testing.assert_array_equal(values, [-1, 0, 1, 2])
    np.testing.assert_allclose(counts / DRAWS, 0.25, atol=5 * math.sqrt(0.25 * 0.75 / DRAWS))


def test_a_choice_draws_whole_values_of_any_kind():
    places = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    drawn = draws(Choice(places), np.zeros(2, np.float32))
    values, counts = np.unique(drawn, axis=0, return_counts=True)
    np.testing.assert_array_equal(values, places)
    share = 1 / 3
    np.testing.assert_allclose(
        counts / DRAWS, share, atol=5 * math.sqrt(share * (1 - share) / DRAWS)
    )
    flags = draws(Choice((True, False)), np.bool_(False))
    assert flags.dtype == bool
    assert 0 < flags.mean() < 1


def test_elements_of_an_array_are_drawn_independently_with_common_or_own_ends():
    drawn = draws(Uniform(0.0, 1.0), np.zeros((2, 2), np.float32)).reshape(DRAWS, 4)
    correlation = np.corrcoef(drawn.T) - np.eye(4)
    assert np.abs(correlation).max() < 5 / math.sqrt(DRAWS)
    own = draws(Uniform((0.0, 10.0), (1.0, 11.0)), np.zeros(2, np.float32))
    np.testing.assert_array_equal(np.floor(own), np.broadcast_to([0, 10], (DRAWS, 2)))


# ---- the task ----


@pytest.mark.slow
def test_a_randomised_task_keeps_every_promise(task):
    check_task(*task, steps=4)


def test_make_draws_what_is_overridden_with_a_distribution(task):
    env, params = task
    assert isinstance(env, Randomised)
    assert list(distributions(params)) == ["plume.sigma", "plume.source", "sensor.saturation"]
    assert isinstance(make(FIXED)[0], PlumeSearch)
    assert env.plume == env.env.plume
    assert env.num_actions == 4
    with pytest.raises(AttributeError):
        _ = env.nothing


def test_numbers_are_drawn_at_each_reset_and_the_episode_goes_by_them(task):
    env, params = task
    batch = Batch(env, 64)
    _, state = batch.reset(jax.random.key(3), params)
    drawn = jax.device_get(state.drawn)
    assert list(drawn) == ["plume.sigma", "plume.source", "sensor.saturation"]
    assert len(np.unique(drawn["plume.sigma"])) == 64
    assert len(np.unique(drawn["plume.source"], axis=0)) > 16
    np.testing.assert_array_equal(np.unique(drawn["sensor.saturation"]), [0.5, 1.0])
    np.testing.assert_array_equal(state.plume, drawn["plume.source"])  # the plume's own source
    action = jnp.zeros(64, jnp.int32)
    observation, after, *_ = batch.advance(jax.random.key(4), state, action, params)
    offset = np.asarray(after.agent.position) - drawn["plume.source"]
    field = np.exp(-np.sum(offset**2, axis=-1) / (2 * drawn["plume.sigma"] ** 2))
    expected = np.minimum(field, drawn["sensor.saturation"])
    np.testing.assert_allclose(observation[:, 0], expected, rtol=2e-5)
    np.testing.assert_array_equal(after.drawn["plume.sigma"], drawn["plume.sigma"])


def test_the_step_is_that_of_the_task_with_the_numbers_drawn(task):
    env, params = task
    _, state = env.reset(jax.random.key(5), params)
    own = env.episode_params(state, params)
    assert not distributions(own)
    assert own.plume.sigma == state.drawn["plume.sigma"]
    ours = env.step(jax.random.key(6), state, jnp.int32(1), params)
    plain = env.env.step(jax.random.key(6), state, jnp.int32(1), own)
    jax.tree.map(np.testing.assert_array_equal, ours, plain)
    assert ours[5].keys() == plain[5].keys()


def test_the_limit_of_steps_may_be_drawn():
    env, params = make({**FIXED, "max_steps": IntegerRange(2, 5)})
    step = jax.jit(env.step)
    seen = set()
    for seed in range(20):
        _, state = env.reset(jax.random.key(seed), params)
        limit = int(state.drawn["max_steps"])
        for count in range(1, limit + 1):
            # Away from the source, whatever the start: only the limit ends the episode.
            action = jnp.int32(3 if state.agent.position[0] < 8 else 1)
            _, state, _, terminated, truncated, _ = step(
                jax.random.key(count), state, action, params
            )
            assert not terminated
            assert bool(truncated) == (count == limit)
        seen.add(limit)
    assert seen == {2, 3, 4, 5}


def test_ends_are_swept_and_changed_without_compiling_anew(task):
    env, params = task
    twin, wider = make({**FIXED, **DRAWN, "plume.sigma": Uniform(5.0, 6.0)})
    assert (env, hash(env)) == (twin, hash(twin))
    traced = 0

    @jax.jit
    def reset(key, params):
        nonlocal traced
        traced += 1
        return env.reset(key, params)[1].drawn["plume.sigma"]

    assert 2 <= reset(jax.random.key(0), params) <= 4
    assert 5 <= reset(jax.random.key(0), wider) <= 6
    narrow = paths.override(params, {"plume.sigma.low": 3.9, "plume.sigma.high": 4.0})
    assert 3.9 <= reset(jax.random.key(0), narrow) <= 4
    assert traced == 1
    low = np.asarray([1.0, 2.0, 3.0], np.float32)
    swept = paths.replace(params, "plume.sigma", Uniform(low, low))
    env.validate(swept)
    shared = dict.fromkeys(type(params).__dataclass_fields__)
    plume = params.plume.replace(sigma=0, source=None, source_motion=None)
    axes = type(params)(**{**shared, "plume": plume})
    _, state = Batch(env, 3, params_axes=axes).reset(jax.random.key(0), swept)
    np.testing.assert_array_equal(state.drawn["plume.sigma"], low)


def test_spaces_hold_what_any_draw_gives(task):
    env, params = task
    space = env.observation_space(params)
    np.testing.assert_array_equal((space.low, space.high), (0.0, 1.0))
    assert env.action_space(params) == env.env.action_space(None)
    assert len(list(corners(params))) == 2
    full, numbers = plumejax.make(
        "PlumeSearch-v0",
        grid_size=GRID,
        overrides={**FIXED, "sensor.saturation": Uniform(0.25, 0.75)},
    )
    assert full.observation_space(numbers).spaces["concentration_field"].high == 0.75


def test_a_number_takes_the_place_of_a_distribution_and_the_other_way_round(task):
    env, params = task
    again, fixed = randomised(env, params, {"plume.sigma": 3.0})
    assert again == env
    assert list(distributions(fixed)) == ["plume.source", "sensor.saturation"]
    assert fixed.plume.sigma == np.float32(3.0)
    back = override(fixed, {"plume.sigma": LogUniform(1.0, 2.0)})
    assert distributions(back)["plume.sigma"] == LogUniform(np.float32(1.0), np.float32(2.0))


def test_it_survives_pickle_and_deepcopy(task):
    env, params = task
    for twin in (pickle.loads(pickle.dumps(env)), copy.deepcopy(env)):
        assert twin == env
        assert twin.arena == env.arena
    assert distributions(pickle.loads(pickle.dumps(params))).keys() == distributions(params).keys()


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"plume.sigma": Uniform(-1.0, 4.0)}, r"plume\.sigma = -1\.0 is not .* >= 1e-6 cells"),
        ({"plume.sigma": Uniform(4.0, -1.0)}, r"plume\.sigma\.low = 4\.0 .* <= plume\.sigma\.high"),
        ({"plume.sigma": Uniform(4.0, float("inf"))}, r"plume\.sigma = inf .* finite"),
        ({"plume.sigma": Uniform(float("nan"), 4.0)}, r"plume\.sigma\.low = nan"),
        ({"plume.sigma": LogUniform(0.0, 4.0)}, r"plume\.sigma\.low = 0\.0 .* > 0"),
        ({"plume.sigma": Normal(4.0, -1.0, 1.0, 8.0)}, r"plume\.sigma\.sd = -1\.0 .* >= 0"),
        ({"plume.sigma": Uniform("a", 4.0)}, r"plume\.sigma\.low = 'a'"),
        ({"plume.sigma": Choice(())}, r"plume\.sigma\.values = \(\)"),
        ({"plume.sigma": Choice((3.0, -2.0, 4.0))}, r"plume\.sigma = -2\.0"),
        ({"plume.source": IntegerRange(0, 15)}, r"plume\.source = \[15\.0, 15\.0\] .* inside"),
        ({"plume.source": Choice((3.0, 4.0))}, r"plume\.source = 3\.0 does not fit"),
        ({"plume.source": IntegerRange(0.5, 3.0)}, r"plume\.source\.low = \[0\.5, 0\.5\] .* whole"),
        ({"max_steps": Uniform(1.0, 9.0)}, r"max_steps = Uniform.* cannot draw .* int32"),
        ({"max_steps": IntegerRange(0, 9)}, r"max_steps = 0 .* > 0"),
        ({"plume.sigmas": Uniform(1.0, 9.0)}, r"Did you mean 'plume\.sigma'"),
    ],
)
def test_what_cannot_be_drawn_is_refused_by_name(overrides, message):
    with pytest.raises(ValidationError, match=message):
        make({**FIXED, **overrides})


# ---- adapters ----


def test_the_gymnasium_environment_runs_and_draws():
    overrides = {**FIXED, **DRAWN, "max_steps": IntegerRange(3, 6), "ending.radius": Uniform(1, 2)}
    env = plumejax.PlumeSearchEnv(
        config={
            "task": "PlumeSearchLocal-v0",
            "static": {"grid_size": GRID},
            "overrides": overrides,
        },
        render_mode="rgb_array",
    )
    assert env.max_steps == 6
    sources, limits = set(), set()
    for seed in range(6):
        observation, info = env.reset(seed=seed)
        assert observation in env.observation_space
        sources.add(info["source_location"])
        limits.add(env.max_steps)
    assert len(sources) > 2
    assert len(limits) > 1
    assert limits <= {3, 4, 5, 6}
    observation, *_, info = env.step(1)
    assert observation in env.observation_space
    assert info["source_location"] in sources
    assert env.render().shape[2] == 3
    _, info = env.reset(options={"source": (5, 5), "start": (0, 0)})
    assert (info["source_location"], info["agent_xy"]) == ((5, 5), (0, 0))
    env.step(1)


def test_options_cannot_bring_in_what_the_environment_was_not_made_for():
    env = plumejax.PlumeSearchEnv(grid_size=GRID, goal_radius=2.0)
    with pytest.raises(ValidationError, match="made to draw none"):
        env.reset(options={"params": {"plume.sigma": Uniform(2.0, 3.0)}})


def test_the_vector_environment_draws_in_each_lane():
    env = plumejax.PlumeSearchVectorEnv(
        3,
        config={
            "task": "PlumeSearchLocal-v0",
            "static": {"grid_size": GRID},
            "overrides": {**FIXED, **DRAWN, "max_steps": 2},
        },
        autoreset_mode="SameStep",
        render_mode="rgb_array",
    )
    _, first = env.reset(seed=1)
    assert len(np.unique(first["source_location"], axis=0)) > 1
    env.step(np.zeros(3, int))
    observation, _, _, truncated, info = env.step(np.zeros(3, int))
    assert truncated.all()
    assert observation in env.observation_space
    assert np.any(info["source_location"] != first["source_location"])
    assert len(env.render()) == 3


def test_the_gymnax_task_runs_and_draws_anew():
    register_all()
    overrides = {**FIXED, **DRAWN, "max_steps": IntegerRange(1, 1)}
    env, params = gymnax.make("PlumeSearchLocal-v0", grid_size=GRID, overrides=overrides)
    observation, state = env.reset(jax.random.key(0), params)
    assert env.observation_space(params).contains(observation)
    assert not env.is_truncated(state, params)
    _, after, _, _, truncated, _ = env.step(jax.random.key(1), state, jnp.int32(0), params)
    assert truncated
    assert after.drawn["plume.sigma"] != state.drawn["plume.sigma"]
