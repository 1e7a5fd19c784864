"""tests/adapters/test_two_arm: the host class, PettingZoo's and Gymnasium's own checks."""

import json
import warnings

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import plumejax
from plumejax.adapters.two_arm import EnvironmentConfig, NewtonMAEnv
from plumejax.arms import PhaseMachine, get_task, script_on_host
from plumejax.base.errors import StateError, ValidationError

STILL = [0.0, 0.0, 0.0, 1.0]


@pytest.fixture(scope="module")
def host():
    return NewtonMAEnv({"task_name": "lift", "max_steps": 60, "seed": 42})


SCHEMA = {
    "agent_id": int,
    "task": str,
    "phase": str,
    "instruction": str,
    "robot_state": {"position": (3,), "velocity": (3,), "gripper": float},
    "peer_state": {"position": (3,), "velocity": (3,), "gripper": float},
    "objects": dict,
    "metadata": dict,
    "rgb": (48, 48, 3),
}
"""Of an observation, as the seed has it."""


def check_schema(value, schema):
    if isinstance(schema, dict):
        assert set(value) == set(schema)
        for name, each in schema.items():
            check_schema(value[name], each)
    elif isinstance(schema, tuple):
        assert value.shape == schema
    else:
        assert isinstance(value, schema)


def test_an_episode_by_hand_on_the_host(host):
    observations = host.reset("lift the cube together")
    policy = script_on_host(get_task("lift"))
    machine = PhaseMachine(host.metadata.phases)
    done, steps, phases = False, 0, [observations[0]["phase"]]
    while not done:
        for i, seen in enumerate(observations):
            check_schema(seen, SCHEMA)
            assert seen["agent_id"] == i
            assert seen["instruction"] == "lift the cube together"
            # Goals are in every observation.
            assert seen["metadata"]["goals"]["target"].shape == (3,)
            np.testing.assert_array_equal(
                seen["peer_state"]["position"], observations[1 - i]["robot_state"]["position"]
            )
        observations, rewards, done, info = host.step(policy(host, machine, observations))
        machine.step(info)
        steps += 1
        assert info["step"] == steps
        assert all(isinstance(r, float) for r in rewards)
        if info["phase"] != phases[-1]:
            assert info["phase_complete"]
            phases.append(info["phase"])
        if info["previous_phase"] == "place":
            assert info["attachments"] == {"cube": [0, 1]}
    assert info["task_success"]
    assert 30 <= steps <= 36
    assert phases == list(host.metadata.phases)
    assert machine.is_terminal
    json.dumps(info["metadata"]["thresholds"])
    before = host.state
    with pytest.warns(UserWarning, match="after the end"):
        _, rewards, done, _ = host.step([STILL, STILL])
    assert (rewards, done) == ([0.0, 0.0], True)
    assert int(host.state.step_count) == int(before.step_count)
    picture = host.render()
    np.testing.assert_array_equal(picture["agent_a"], observations[0]["rgb"])


def test_short_actions_close_the_gripper_and_long_ones_are_cut(host):
    host.reset(None)
    observations, *_ = host.step([[0.01], [0.0, 0.02, 0.0, 0.5, 9.0, 9.0]])
    assert observations[0]["robot_state"]["gripper"] == 0.0
    assert observations[1]["robot_state"]["gripper"] == 0.5
    np.testing.assert_allclose(observations[0]["robot_state"]["position"][0], -0.27, atol=1e-6)


@pytest.mark.parametrize(
    ("actions", "error", "said"),
    [
        ([STILL], ValueError, "exactly 2"),
        ([STILL] * 3, ValueError, "exactly 2"),
        (7, TypeError, "sequence"),
        ([STILL, []], ValueError, "agent 1"),
        ([STILL, [0, 0, np.nan, 1]], ValueError, "agent 1"),
        ([[np.inf, 0, 0, 1], STILL], ValueError, "agent 0"),
        ([STILL, "fast"], TypeError, "agent 1"),
        ([None, STILL], TypeError, "agent 0"),
    ],
)
def test_bad_actions_change_nothing(host, actions, error, said):
    host.reset("x")
    before = jax.device_get(host.state)
    with pytest.raises(error, match=said):
        host.step(actions)
    jax.tree.map(np.testing.assert_array_equal, jax.device_get(host.state), before)


def test_scenes_come_of_the_seed_and_the_number_of_the_reset():
    def starts(seed):
        env = NewtonMAEnv({"seed": seed})
        return [env.reset("x")[0]["objects"]["cube"] for _ in range(3)]

    first, again, other = starts(1), starts(1), starts(2)
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first[0], first[1])
    assert not np.array_equal(first[0], other[0])


def test_lifecycle_on_the_host(host):
    fresh = NewtonMAEnv()
    with pytest.raises(StateError, match="reset"):
        fresh.step([STILL, STILL])
    with pytest.raises(StateError, match="reset"):
        fresh.render()
    fresh.close()
    fresh.close()
    for call in (lambda: fresh.reset("x"), lambda: fresh.step([STILL, STILL])):
        with pytest.raises(StateError, match="close"):
            call()


def test_configs_that_cannot_be_are_refused():
    assert EnvironmentConfig.from_mapping({}) == EnvironmentConfig("lift", 0, 200)
    for bad, said in (
        ({"seed": None}, "seed"),
        ({"seed": -1}, "seed"),
        ({"seed": True}, "seed"),
        ({"max_steps": 0}, "max_steps"),
        ({"max_steps": 1.5}, "max_steps"),
        ({"tasks": "lift"}, "tasks"),
    ):
        with pytest.raises(ValidationError, match=said):
            EnvironmentConfig.from_mapping(bad)
    with pytest.raises(KeyError, match="drawer, handoff, lift"):
        NewtonMAEnv({"task_name": "nope"})


@pytest.fixture(scope="module")
def two_agents():
    pettingzoo = pytest.importorskip("plumejax.adapters.pettingzoo")
    return pettingzoo.TwoArmParallelEnv


def test_pettingzoo_finds_nothing_wrong(two_agents):
    from pettingzoo.test import parallel_api_test, parallel_seed_test

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parallel_api_test(two_agents("TwoArm-HandOff-v0"), num_cycles=300)
        parallel_seed_test(lambda: two_agents("TwoArm-HandOff-v0"), num_cycles=30)


def test_both_agents_end_together(two_agents):
    env = two_agents("TwoArm-HandOff-v0", overrides={"max_steps": 2})
    observations, infos = env.reset(seed=3)
    again, _ = env.reset(seed=infos["agent_0"]["seed"])
    jax.tree.map(np.testing.assert_array_equal, observations, again)
    still = {agent: np.asarray(STILL, np.float32) for agent in env.agents}
    with pytest.raises(ValidationError, match="actions"):
        env.step({"agent_0": still["agent_0"]})
    with pytest.raises(ValidationError, match="agent_1"):
        env.step({**still, "agent_1": np.full(4, np.nan, np.float32)})
    _, rewards, _, truncated, _ = env.step(still)
    assert not any(truncated.values())
    assert set(rewards) == {"agent_0", "agent_1"}
    _, _, _, truncated, _ = env.step(still)
    assert all(truncated.values())
    assert env.agents == []
    assert env.step({}) == ({}, {}, {}, {}, {})


def test_gymnasium_finds_nothing_wrong_with_the_joint_view():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        env = gymnasium.make("plumejax/TwoArm-HandOff-v0", render_mode="rgb_array").unwrapped
        check_env(env)
    # That actions have units is meant.
    said = [str(w.message) for w in caught if "symmetric and normalized" not in str(w.message)]
    assert not said
    env.reset(seed=0)
    assert env.render().shape == (384, 384, 3)
    with pytest.raises(ValidationError, match="action"):
        env.step(np.full(8, np.nan, np.float32))
    with pytest.raises(ValidationError, match="no two-arm task"):
        type(env)("PlumeSearch-v0")


def test_the_joint_view_is_the_core():
    env = gymnasium.make("plumejax/TwoArm-HandOff-v0").unwrapped
    observation, info = env.reset(seed=5)
    core, params = plumejax.make("TwoArm-HandOff-v0")
    expected, state = core.reset(jax.random.key(info["seed"]), params)
    np.testing.assert_array_equal(observation, np.ravel(expected))
    action = np.linspace(-0.1, 1.1, 8, dtype=np.float32)
    observation, reward, *_ = env.step(action)
    expected, _, paid, *_ = core.step(jax.random.key(0), state, action.reshape(2, 4), params)
    np.testing.assert_array_equal(observation, np.ravel(expected))
    assert reward == float(np.mean(paid))
