"""adapters: PlumeSearchVectorEnv beside Gymnasium's SyncVectorEnv and beside Batch."""

import copy
import pickle

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import RecordEpisodeStatistics

from plumejax.adapters.gymnasium import PlumeSearchEnv
from plumejax.adapters.gymnasium_vector import PlumeSearchVectorEnv
from plumejax.base.batch import Batch
from plumejax.base.errors import RenderingError, StateError, ValidationError
from plumejax.search.motion import RunAndTumble
from plumejax.search.starts import Fixed

UP, RIGHT, DOWN, LEFT = range(4)
MODES = [AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP]
TASK = {
    "grid_size": (16, 12),
    "goal_radius": 2.0,
    "max_steps": 6,
    "config": {
        "task": "PlumeSearchLocal-v0",
        "static": {"start": Fixed()},
        "overrides": {"start": {"position": (8, 10)}},
    },
}
"""Starts are fixed two moves above the goal, so that random numbers decide nothing."""
FREE = {"grid_size": (16, 12), "goal_radius": 2.0, "max_steps": 6, "task": "PlumeSearchLocal-v0"}


@pytest.fixture(scope="module", params=MODES, ids=lambda mode: mode.value)
def mode(request):
    return request.param


@pytest.fixture(scope="module")
def fixed(mode):
    return PlumeSearchVectorEnv(3, **TASK, autoreset_mode=mode)


@pytest.fixture(scope="module")
def free(mode):
    return PlumeSearchVectorEnv(4, **FREE, render_mode="rgb_array", autoreset_mode=mode)


# ---- beside SyncVectorEnv ----

OURS_ALONE = {"seed", "episode"}  # said in the docstring of the class


def assert_same_infos(ours, theirs):
    for key in set(theirs) - {k for name in OURS_ALONE for k in (name, f"_{name}")}:
        if key.startswith("_"):
            np.testing.assert_array_equal(ours[key], theirs[key], err_msg=key)
        elif isinstance(theirs[key], dict):
            assert_same_infos(ours[key], theirs[key])
        else:
            mask = theirs[f"_{key}"]
            for mine, other in zip(ours[key][mask], theirs[key][mask], strict=True):
                np.testing.assert_array_equal(mine, other, err_msg=key)
            if theirs[key].dtype != object:
                assert ours[key].dtype == theirs[key].dtype, key
    extra = set(ours) - set(theirs)
    assert not extra, extra


def test_it_does_what_sync_vector_env_does(fixed, mode):
    sync = SyncVectorEnv([lambda: PlumeSearchEnv(**TASK)] * 3, autoreset_mode=mode)
    assert fixed.action_space == sync.action_space
    assert fixed.observation_space == sync.observation_space
    fixed.reset(seed=0)  # episode counts differ from here on, so begin both anew
    ours, theirs = copy.deepcopy(fixed), sync
    ours._lanes = None
    mine, other = ours.reset(seed=1), theirs.reset(seed=1)
    np.testing.assert_array_equal(mine[0], other[0])
    assert_same_infos(mine[1], other[1])
    rng = np.random.default_rng(0)
    ends = 0
    for _ in range(40):
        actions = rng.choice([UP, RIGHT, DOWN, DOWN, DOWN], 3)
        *mine, my_infos = ours.step(actions)
        *other, other_infos = theirs.step(actions)
        for a, b in zip(mine, other, strict=True):
            np.testing.assert_array_equal(a, b)
            assert a.dtype == b.dtype
        assert_same_infos(my_infos, other_infos)
        ends += int((mine[2] | mine[3]).sum())
    assert ends > 10


def test_same_step_keeps_the_last_observation():
    env = PlumeSearchVectorEnv(3, **TASK, autoreset_mode="SameStep")
    first, _ = env.reset(seed=0)
    env.step([DOWN, UP, DOWN])
    obs, reward, terminated, truncated, infos = env.step([DOWN, UP, UP])
    np.testing.assert_array_equal(terminated, [True, False, False])
    assert not truncated.any()
    np.testing.assert_array_equal(reward, [1.0, 0.0, 0.0])
    np.testing.assert_array_equal(infos["_final_obs"], [True, False, False])
    assert infos["final_obs"][1] is None
    assert infos["final_obs"][0] in env.single_observation_space
    assert infos["final_obs"][0] == infos["final_info"]["concentration_at_agent"][0]
    np.testing.assert_array_equal(infos["final_info"]["agent_xy"], [[8, 8], [0, 0], [0, 0]])
    np.testing.assert_array_equal(obs[0], first[0])  # the next episode's
    np.testing.assert_array_equal(infos["agent_xy"][0], [8, 10])
    np.testing.assert_array_equal(infos["episode_count"], [2, 0, 0])


def test_next_step_resets_a_step_later_whatever_the_action():
    env = PlumeSearchVectorEnv(3, **TASK)
    assert env.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    first, _ = env.reset(seed=0)
    env.step([DOWN, UP, UP])
    obs, _, terminated, _, infos = env.step([DOWN, UP, UP])
    assert terminated.tolist() == [True, False, False]
    assert "final_obs" not in infos
    np.testing.assert_array_equal(infos["agent_xy"][0], [8, 8])
    obs, reward, terminated, truncated, infos = env.step([99, UP, UP])
    np.testing.assert_array_equal(obs[0], first[0])
    assert (reward.sum(), terminated.any(), truncated.any()) == (0.0, False, False)
    np.testing.assert_array_equal(infos["step_count"], [0, 3, 3])
    np.testing.assert_array_equal(infos["_episode_count"], [True, False, False])
    with pytest.raises(ValidationError, match="lane 0"):
        env.step([99, UP, UP])


# ---- beside Batch ----


def test_batch_reproduces_it(mode):
    random = RunAndTumble()
    env = PlumeSearchVectorEnv(4, **FREE, action_processor=random, autoreset_mode=mode)
    observation, infos = env.reset(seed=11)
    np.testing.assert_array_equal(infos["seed"], [11] * 4)
    batch, key = Batch(env.core, 4), jax.random.key(11)
    expected, state = batch.reset(jax.random.fold_in(key, 0), env.params)
    np.testing.assert_array_equal(observation, expected)
    ended = jnp.zeros(4, bool)
    rng = np.random.default_rng(1)
    for t in range(1, 16):
        actions, step_key = rng.integers(0, 2, 4), jax.random.fold_in(key, t)
        last, state, reward, terminated, truncated, _ = batch.advance(
            step_key, state, jnp.asarray(actions, jnp.int32), env.params
        )
        done = terminated | truncated
        if mode is AutoresetMode.SAME_STEP:
            ended = done
        else:
            terminated, truncated = terminated & ~ended, truncated & ~ended
        expected, state = batch.reset_where(step_key, ended, state, env.params)
        ours = env.step(actions)
        for a, b in zip(ours, (expected, reward, terminated, truncated), strict=False):
            np.testing.assert_array_equal(a, b)
        if mode is AutoresetMode.SAME_STEP:
            for lane in np.flatnonzero(done):
                np.testing.assert_array_equal(ours[4]["final_obs"][lane], np.asarray(last)[lane])
        else:
            ended = done & ~ended


# ---- rules ----


def test_seed_repeats_and_none_draws(free):
    a, _ = free.reset(seed=3)
    drawn, infos = free.reset()
    again, _ = free.reset(seed=int(infos["seed"][0]))
    np.testing.assert_array_equal(drawn, again)
    np.testing.assert_array_equal(a, free.reset(seed=3)[0])
    np.testing.assert_array_equal(infos["seed"], free.reset()[1]["seed"])
    assert len(np.unique(a)) > 1  # lanes start apart


@pytest.mark.parametrize("seed", [[1, 2, 3, 4], -1, 2**31, True, 0.5])
def test_seeds_that_are_refused(free, seed):
    free.reset(seed=0)
    before = free.np_random.bit_generator.state
    with pytest.raises(ValidationError, match=r"seed = .*0 <= seed < 2\*\*31"):
        free.reset(seed=seed)
    assert free.np_random.bit_generator.state == before


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        ([0, 1, 7, -1], r"action of lane 2 = np.int64\(7\)"),
        ([0.0, 1.0, 0.0, 0.0], "action of lane 0"),
        ([True, False, True, True], "action of lane 0"),
        ([0, 1, 2], "actions = .*4 actions"),
        (0, "actions = 0 "),
        ([[0], [1], [2], [3]], "actions = "),
        (["up"] * 4, "action of lane 0"),
        ([[0], [1, 2], [3], 0], "actions = "),
    ],
)
def test_bad_actions_change_nothing(free, actions, message):
    free.reset(seed=0)
    with pytest.raises(ValidationError, match=message):
        free.step(actions)
    *_, infos = free.step(np.zeros(4, np.int8))
    np.testing.assert_array_equal(infos["step_count"], [1] * 4)


def test_options_hold_for_all_lanes(free):
    options = {"start": (2, 3), "source": (4, 4), "params": {"max_steps": 2}}
    _, infos = free.reset(seed=0, options=options)
    np.testing.assert_array_equal(infos["agent_xy"], [[2, 3]] * 4)
    np.testing.assert_array_equal(infos["source_location"], [[4, 4]] * 4)
    free.step([LEFT] * 4)
    assert free.step([LEFT] * 4)[3].all()
    _, infos = free.reset()
    np.testing.assert_array_equal(infos["source_location"], [[8, 6]] * 4)
    with pytest.raises(ValidationError, match="begin"):
        free.reset(options={"begin": (1, 1)})


def test_lifecycle(mode):
    env = PlumeSearchVectorEnv(4, **FREE, render_mode="rgb_array", autoreset_mode=mode)
    for operation in (lambda: env.step([0] * 4), env.render):
        with pytest.raises(StateError, match="before the first reset"):
            operation()
    env.reset(seed=0)
    env.close()
    env.close()
    for operation in (lambda: env.step([0] * 4), env.render, env.reset):
        with pytest.raises(StateError, match="after close"):
            operation()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_envs": 0}, "num_envs"),
        ({"autoreset_mode": "Disabled"}, "autoreset_mode"),
        ({"autoreset_mode": "sometimes"}, "autoreset_mode"),
        ({"render_mode": "human"}, "render_mode"),
        ({"max_steps": 0}, "max_steps"),
    ],
)
def test_arguments_that_are_refused(arguments, message):
    with pytest.raises(ValidationError, match=message):
        PlumeSearchVectorEnv(**arguments)


def test_render_is_a_picture_of_each_lane(free):
    single = PlumeSearchEnv(**FREE, render_mode="rgb_array")
    _, infos = free.reset(seed=2)
    pictures = free.render()
    assert len(pictures) == 4
    for lane, picture in enumerate(pictures):
        single.reset(seed=0, options={"start": infos["agent_xy"][lane]})
        np.testing.assert_array_equal(picture, single.render())
    silent = PlumeSearchVectorEnv(4, **FREE)
    silent.reset(seed=0)
    with pytest.raises(RenderingError, match="rgb_array"):
        silent.render()


def test_make_vec_gives_the_native_one(mode):
    env = gymnasium.make_vec(
        "plumejax/PlumeSearchLocal-v0", num_envs=4, grid_size=(16, 12), autoreset_mode=mode.value
    )
    assert isinstance(env, PlumeSearchVectorEnv)
    assert env.metadata["autoreset_mode"] is mode
    assert PlumeSearchVectorEnv.metadata.get("autoreset_mode") is None
    sync = gymnasium.make_vec("plumejax/PlumeSearchLocal-v0", 2, "sync", grid_size=(16, 12))
    assert isinstance(sync, SyncVectorEnv)


def test_record_episode_statistics_reads_every_episode():
    env = RecordEpisodeStatistics(PlumeSearchVectorEnv(3, **TASK))
    env.reset(seed=0)
    lengths = []
    for t in range(20):
        *_, infos = env.step([DOWN, UP, (DOWN, LEFT, UP)[t % 3]])
        if "episode" in infos:
            lengths += infos["episode"]["l"][infos["_episode"]].tolist()
    assert {2, 6} <= set(lengths) <= {2, 3, 4, 5, 6}


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_a_copy_goes_on_alike(free, copied):
    free.reset(seed=6)
    twin = copied(free)
    for actions in ([0, 1, 2, 3], [3, 2, 1, 0]):
        for a, b in zip(free.step(actions)[:4], twin.step(actions)[:4], strict=True):
            np.testing.assert_array_equal(a, b)


def test_full_field_is_batched():
    env = PlumeSearchVectorEnv(2, grid_size=(16, 12), max_steps=1, autoreset_mode="SameStep")
    obs, _ = env.reset(seed=0)
    assert obs in env.observation_space
    assert obs["concentration_field"].shape == (2, 12, 16)
    obs, *_, infos = env.step([UP, DOWN])
    assert obs in env.observation_space
    assert all(final in env.single_observation_space for final in infos["final_obs"])
    obs["concentration_field"][:] = 0.0  # the caller's own
