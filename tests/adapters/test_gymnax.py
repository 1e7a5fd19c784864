"""tests/adapters/test_gymnax: our tasks behind gymnax's own wrappers, and under its names."""

import copy
import pickle

import chex
import gymnax
import gymnax.wrappers as gw
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnax.environments import spaces as gymnax_spaces

import plumejax
from plumejax.adapters.gymnax import (
    FIVE_VALUES,
    FiveValueTask,
    GymnaxTask,
    register_all,
    to_gymnax,
)
from plumejax.base.batch import RESET
from plumejax.base.errors import ValidationError
from plumejax.base.spaces import Box, Dict, Discrete
from plumejax.search.starts import Fixed

LIMIT = 4
CHOICES = {
    "grid_size": (16, 12),
    "start": Fixed(),
    "overrides": {"plume.sigma": 3.0, "ending.radius": 2.0, "max_steps": LIMIT},
}
# From (0, 0): four moves that end by the limit; from (5, 6) the first one finds the source.
ACTIONS = [0, 1, 1, 0, 2]
FINDING = {"start.position": (5, 6)}


@pytest.fixture(scope="module")
def task():
    register_all()
    env, _ = gymnax.make("PlumeSearchLocal-v0", **CHOICES)
    return env


@pytest.fixture
def lax():
    """gymnax's wrappers add bools to ints and the like."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


def finding(task):
    """The params under which a step to the right, from the start, finds the source."""
    params = task.default_params
    return params.replace(
        start=params.start.replace(position=np.asarray(FINDING["start.position"], np.float32))
    )


def core_episode(task, keys, params=None):
    """The same episode in the functional core: a list of what `step` returns."""
    env, params = task.env, params or task.default_params
    _, state = env.reset(keys[0], params)
    outcomes = []
    for key, action in zip(keys[1:], ACTIONS, strict=False):
        outcomes.append(env.step(key, state, action, params))
        state = outcomes[-1][1]
    return outcomes


KEYS = jax.random.split(jax.random.key(0), LIMIT + 2)


def test_six_values_are_those_of_the_core(task):
    observation, state = task.reset(KEYS[0])
    chex.assert_trees_all_equal(observation, task.env.reset(KEYS[0], task.default_params)[0])
    for t, outcome in enumerate(core_episode(task, KEYS)[:LIMIT]):
        observation, state, reward, terminated, truncated, info = task.step(
            KEYS[t + 1], state, ACTIONS[t]
        )
        chex.assert_trees_all_close(info["final_observation"], outcome[0], rtol=1e-6)
        assert (reward, terminated, truncated) == tuple(outcome[2:5])
        assert (info["terminated"], info["truncated"]) == (terminated, truncated)
        assert info["step_count"] == t + 1
        assert bool(truncated) == (t + 1 == LIMIT)
    # The episode after it has begun, with a key folded from the step's.
    fresh, _ = task.env.reset(jax.random.fold_in(KEYS[LIMIT], RESET), task.default_params)
    chex.assert_trees_all_equal(observation, fresh)
    assert state.step_count == 0
    assert not np.allclose(info["final_observation"], observation)


def test_finding_the_source_terminates_and_does_not_truncate(task):
    params = finding(task)
    _, state = task.reset(KEYS[0], params)
    _, state, reward, terminated, truncated, info = task.step(KEYS[1], state, 1, params)
    assert (reward, terminated, truncated) == (1.0, True, False)
    assert info["found"]
    np.testing.assert_array_equal(state.agent.position, [5, 6])


def test_both_flags_stand_where_both_are_true(task):
    params = finding(task).replace(max_steps=np.int32(1))
    _, state = task.reset(KEYS[0], params)
    outcome = task.step(KEYS[1], state, 1, params)
    assert outcome[3]
    assert outcome[4]


def test_lanes_under_vmap_are_lanes_alone(task):
    keys = jax.random.split(jax.random.key(1), 3)
    _, state = jax.vmap(task.reset)(keys)
    # The second lane ends with this step, the others do not.
    state = state.replace(step_count=jnp.asarray([0, LIMIT - 1, 1], jnp.int32))
    actions = jnp.asarray([0, 1, 2], jnp.int32)
    stepped = jax.vmap(task.step)(keys, state, actions)
    for i in range(3):
        lane = jax.tree.map(lambda x, i=i: x[i], state)
        alone = task.step(keys[i], lane, actions[i])
        chex.assert_trees_all_close(jax.tree.map(lambda x, i=i: x[i], stepped), alone, rtol=1e-6)
    np.testing.assert_array_equal(stepped[1].step_count, [1, 0, 2])


def test_the_small_methods_of_gymnax_answer(task):
    params = task.default_params
    assert task.name == "PlumeSearchLocal-v0"
    assert task.num_actions == 4
    assert params.max_steps_in_episode == LIMIT
    observation, state = task.reset_env(KEYS[0], params)
    chex.assert_trees_all_equal(task.observe(KEYS[0], state, None, params), observation)
    chex.assert_trees_all_equal(task.get_obs(state), observation)
    late = state.replace(step_count=jnp.int32(LIMIT - 1))
    stepped, after, reward, terminated, info = task.step_env(KEYS[1], late, 0, params)
    assert not terminated
    assert not reward
    assert info["step_count"] == LIMIT
    assert after.step_count == LIMIT  # no reset
    chex.assert_trees_all_equal(stepped, after.observation)
    assert task.is_truncated(after, params)
    assert not task.is_terminated(after, params)
    assert task.discount(after, params) == 1.0


def test_registration_is_idempotent_and_forwards_what_make_takes():
    register_all()
    before = list(gymnax.registered_envs)
    register_all()
    assert gymnax.registered_envs == before
    for task_id in plumejax.registered_tasks():
        assert {task_id, task_id + FIVE_VALUES} <= set(before)
        assert "/" not in task_id + FIVE_VALUES
    env, params = gymnax.make("PlumeSearch-v0", grid_size=(8, 9), overrides={"ending.radius": 2})
    assert isinstance(env, GymnaxTask)
    assert env.observation_space(params).spaces["concentration_field"].shape == (9, 8)
    assert params.ending.radius == 2.0
    with pytest.raises(ValidationError, match=r"plume\.sigma"):
        gymnax.make("PlumeSearch-v0", overrides={"plume.sgma": 1.0})


def test_factories_and_tasks_survive_pickle_and_deepcopy(task):
    for kind in ("", FIVE_VALUES):
        factory = gymnax.registration._registry["PlumeSearchLocal-v0" + kind]
        for twin in (copy.deepcopy(factory), pickle.loads(pickle.dumps(factory))):
            made = twin(**CHOICES)
            assert made.env == task.env
            for other in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
                assert type(other) is type(made)
                assert other.env == task.env
                chex.assert_trees_all_equal(other.default_params, task.default_params)


def test_five_values_are_the_six(task):
    five, params = gymnax.make("PlumeSearchLocal-v0" + FIVE_VALUES, **CHOICES)
    assert isinstance(five, FiveValueTask)
    _, state = five.reset(KEYS[0], params)
    six_state = state
    for t in range(LIMIT):
        six = task.step(KEYS[t + 1], six_state, ACTIONS[t])
        six_state = six[1]
        observation, state, reward, done, info = five.step(KEYS[t + 1], state, ACTIONS[t], params)
        assert "final_observation" not in info
        chex.assert_trees_all_equal((observation, state, reward), six[:3])
        assert done == six[3] | six[4]
        assert (info["terminated"], info["truncated"]) == six[3:5]
    assert done


@pytest.mark.parametrize(("kind", "keeps"), [("", False), (FIVE_VALUES, True)])
def test_the_last_observation_is_there_or_not_as_asked(kind, keeps):
    register_all()
    env, params = gymnax.make("PlumeSearchLocal-v0" + kind, final_observation=keeps, **CHOICES)
    _, state = env.reset(KEYS[0], params)
    assert ("final_observation" in env.step(KEYS[1], state, 0, params)[-1]) == keeps


BOX = Box(0, np.asarray([3, 1], np.int32), (2,), np.int32)


@pytest.mark.parametrize(
    ("space", "kind"),
    [
        (Discrete(3), gymnax_spaces.Discrete),
        (BOX, gymnax_spaces.Box),
        (Box(0.0, np.float32(2.0), (1,)), gymnax_spaces.Box),
        (Dict({"cell": BOX, "field": Box(0.0, 1.0, (2, 3))}), gymnax_spaces.Dict),
    ],
    ids=repr,
)
def test_spaces_become_gymnax_spaces_that_hold_their_samples(space, kind):
    converted = to_gymnax(space)
    assert isinstance(converted, kind)
    sample = converted.sample(jax.random.key(0))
    assert converted.contains(sample)
    as_gymnasium = gymnax_spaces.gymnax_space_to_gym_space(converted)
    assert as_gymnasium.contains(
        jax.tree.map(np.asarray, sample) if kind is not gymnax_spaces.Discrete else int(sample)
    )


def test_a_space_without_a_gymnax_name_is_refused():
    with pytest.raises(TypeError, match="no space"):
        to_gymnax(object())


def test_log_wrapper_reports_length_and_return(task, lax):
    env, params = gw.LogWrapper(task), finding(task)
    _, state = env.reset(KEYS[0], params)
    for t, action in enumerate([3, 1, 1]):
        _, state, _, terminated, _, info = env.step(KEYS[t + 1], state, action, params)
    assert terminated
    assert info["returned_episode"]
    assert info["returned_episode_lengths"] == 3
    assert info["returned_episode_returns"] == 1.0
    assert state.episode_lengths == 0
    _, state, *_, info = env.step(KEYS[4], state, 3, params)
    assert not info["returned_episode"]
    assert state.episode_lengths == 1


def test_flatten_wrapper_flattens_the_last_observation_too(task, lax):
    env = gw.FlattenObservationWrapper(task)
    assert env.observation_space(task.default_params).shape == (1,)
    observation, state = env.reset(KEYS[0])
    for t, outcome in enumerate(core_episode(task, KEYS)[:LIMIT]):
        observation, state, *_, info = env.step(KEYS[t + 1], state, ACTIONS[t])
        np.testing.assert_allclose(info["final_observation"], outcome[0], rtol=1e-6)
    assert observation.shape == (1,)


def test_sticky_wrapper_repeats_the_last_action(task, lax):
    env = gw.StickyActionWrapper(task, sticky_action_prob=1.0)
    _, state = env.reset(KEYS[0])
    _, state, *_ = env.step(KEYS[1], state, 1)  # replayed: 0, up
    np.testing.assert_array_equal(state.env_state.agent.position, [0, 1])


def test_gym_wrapper_plays_the_episode(task, lax):
    env = gw.GymnaxToGymWrapper(task, seed=3)
    observation, _ = env.reset()
    assert env.observation_space.contains(np.asarray(observation))
    assert env.action_space.n == 4
    for t, outcome in enumerate(core_episode(task, KEYS)[:LIMIT]):
        _, reward, terminated, truncated, info = env.step(ACTIONS[t])
        np.testing.assert_allclose(info["final_observation"], outcome[0], rtol=1e-6)
        assert (reward, terminated, truncated) == tuple(outcome[2:5])
    assert truncated


def test_vector_gym_wrapper_plays_two(task, lax):
    env = gw.GymnaxToVectorGymWrapper(task, num_envs=2, seed=3)
    observation, _ = env.reset()
    assert env.observation_space.contains(np.asarray(observation))
    expected = core_episode(task, KEYS)
    for t in range(LIMIT):
        _, reward, _, truncated, info = env.step(np.full(2, ACTIONS[t], np.int32))
        np.testing.assert_allclose(info["final_observation"], [expected[t][0]] * 2, rtol=1e-6)
        np.testing.assert_array_equal(reward, [0.0, 0.0])
    assert truncated.all()


def test_dm_env_wrapper_keeps_the_discount_at_a_truncation(task, lax):
    env = gw.GymnaxToDmEnvWrapper(task)
    step = env.reset(KEYS[0])
    for t, outcome in enumerate(core_episode(task, KEYS)[:LIMIT]):
        step = env.step(KEYS[t + 1], step, ACTIONS[t])
        np.testing.assert_allclose(step.final_observation, outcome[0], rtol=1e-6)
        assert step.discount == 1.0
    step = env.reset(KEYS[0], finding(task))
    step = env.step(KEYS[1], step, 1, finding(task))
    assert step.discount == 0.0
    assert step.reward == 1.0


def test_legacy_wrapper_returns_five(task, lax):
    env = gw.LegacyStepAPIWrapper(task)
    _, state = env.reset(KEYS[0])
    for t in range(LIMIT):
        _, state, reward, done, info = env.step(KEYS[t + 1], state, ACTIONS[t])
        assert bool(done) == (t + 1 == LIMIT)
    assert not reward
    assert info["truncated"]
