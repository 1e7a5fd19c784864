"""tests/adapters/test_stable_baselines3: PlumeSearchVecEnv beside the vector environment."""

import subprocess
import sys

import gymnasium
import numpy as np
import pytest

from plumejax.base.errors import PlumeError, ValidationError

TASK = "PlumeSearchLocal-v0"
CHOICES = {"grid_size": (16, 12), "goal_radius": 2.0, "max_steps": 6}


def test_without_the_package_its_extra_is_named():
    script = """
import sys
sys.modules["stable_baselines3"] = None  # as if it were not installed
import plumejax.adapters.stable_baselines3
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    told = "PlumeError: this needs stable_baselines3: pip install 'plumejax[interop]'"
    assert done.stderr.strip().endswith(told)


@pytest.fixture(scope="module")
def vec_env():
    """The class; skips without Stable-Baselines3."""
    pytest.importorskip("stable_baselines3", reason="the extra interop is not installed")
    from plumejax.adapters.stable_baselines3 import PlumeSearchVecEnv

    return PlumeSearchVecEnv


@pytest.mark.interop
def test_its_steps_are_those_of_the_vector_environment(vec_env):
    ours = vec_env(8, task=TASK, **CHOICES)
    plain = gymnasium.make_vec(f"plumejax/{TASK}", 8, autoreset_mode="SameStep", **CHOICES)
    ours.seed(7)
    np.testing.assert_array_equal(ours.reset(), plain.reset(seed=7)[0])
    assert [info["episode_count"] for info in ours.reset_infos] == [1] * 8
    rng, ends, finds = np.random.default_rng(0), 0, 0
    for _ in range(60):
        actions = rng.integers(4, size=8)
        seen, reward, done, rows = ours.step(actions)
        observation, *outcome, infos = plain.step(actions)
        terminated, truncated = outcome[1:]
        np.testing.assert_array_equal(seen, observation)
        np.testing.assert_array_equal(reward, outcome[0])
        np.testing.assert_array_equal(done, terminated | truncated)
        assert reward.dtype == np.float32
        for lane, row in enumerate(rows):
            of = infos["final_info"] if done[lane] else infos
            np.testing.assert_array_equal(row["agent_xy"], of["agent_xy"][lane])
            assert row["step_count"] == of["step_count"][lane]
            assert row["TimeLimit.truncated"] == (truncated[lane] and not terminated[lane])
            assert ("terminal_observation" in row) == ("is_success" in row) == done[lane]
            assert "episode" not in row  # VecMonitor's own name
        for lane in np.flatnonzero(done):
            last = rows[lane]["terminal_observation"]
            np.testing.assert_array_equal(last, infos["final_obs"][lane])
            assert rows[lane]["is_success"] == terminated[lane]
            assert ours.reset_infos[lane]["episode_count"] == infos["episode_count"][lane]
        ends, finds = ends + done.sum(), finds + terminated.sum()
    assert ends > 80
    assert 0 < finds < ends


@pytest.mark.interop
def test_a_seed_and_options_are_of_the_next_reset(vec_env):
    env = vec_env(2, task=TASK, **CHOICES, render_mode="rgb_array")
    env.seed(7)
    env.set_options({"start": (3, 4)})
    first = env.reset()
    assert [info["agent_xy"].tolist() for info in env.reset_infos] == [[3, 4]] * 2
    assert [info["seed"] for info in env.reset_infos] == [7, 7]
    assert env.get_images()[1].dtype == np.uint8
    assert not (env.reset() == first).all()
    assert env.seed(None) == [None, None]
    with pytest.raises(ValidationError, match=r"seed = -1 is not allowed"):
        env.seed(-1)
    env.set_options([{"start": (3, 4)}, {}])
    with pytest.raises(ValidationError, match=r"options = .* the same in every lane"):
        env.reset()


@pytest.mark.interop
def test_what_a_lane_does_not_have_is_refused(vec_env):
    with pytest.raises(ValidationError, match=r"autoreset_mode = 'NextStep' is not allowed"):
        vec_env(2, task=TASK, autoreset_mode="NextStep")
    env = vec_env(3, task=TASK)
    assert env.get_attr("core", [0, 2]) == [env.env.core] * 2
    assert not env.has_attr("nothing")
    assert env.env_is_wrapped(gymnasium.Wrapper) == [False] * 3
    with pytest.raises(PlumeError, match=r"set_attr\('render_mode'\): the lanes share one"):
        env.set_attr("render_mode", None)
    with pytest.raises(PlumeError, match=r"env_method\('close'\): the lanes share one"):
        env.env_method("close")


@pytest.mark.interop
def test_named_observations_stay_named(vec_env):
    env = vec_env(2, task="PlumeSearch-v0", grid_size=(8, 8), goal_radius=1.0, max_steps=1)
    assert {name: x.shape[0] for name, x in env.reset().items()} == dict.fromkeys(
        ("agent_position", "concentration_field", "source_location"), 2
    )
    _, _, done, rows = env.step(np.zeros(2, int))
    assert done.all()
    for row in rows:
        assert row["terminal_observation"] in env.observation_space
