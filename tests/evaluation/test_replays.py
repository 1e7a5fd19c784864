"""tests/evaluation/test_replays: a recorded episode is played again, and parts where it says."""

import numpy as np
import pytest

from plumejax.base.errors import ValidationError
from plumejax.cli import main
from plumejax.evaluation.episodes import stream
from plumejax.evaluation.replays import load_episode, record, replay, save_episode
from plumejax.evaluation.trials import Trial, evaluation_key, make_agent, make_task

SMALL = {"max_steps": 40, "plume.sigma": 3.0}
TRIAL = Trial(
    "PlumeSearchLocal-v0", "gradient", seed=5, overrides=SMALL, static={"grid_size": [16, 12]}
)
PUFFS = Trial(
    "PlumeTracking-Farrell-v0",
    "cast-and-surge",
    overrides={"max_steps": 30},
    static={"capacity": 32, "warmup": 8},
)


@pytest.fixture(scope="module")
def episode():
    return record(TRIAL, 3)


@pytest.fixture(scope="module")
def puffs():
    """Of a plume that draws at every step."""
    return record(PUFFS)


def test_it_is_the_episode_of_an_evaluation(episode):
    env, params, policy = make_agent(TRIAL, *make_task(TRIAL))
    outcome = stream(env, policy, evaluation_key(5), params, 1, first=3)
    steps = int(outcome.steps[0])
    assert len(episode.actions) == steps > 1
    assert episode.states[".step_count"].tolist() == list(range(steps + 1))
    assert episode.states[".total_reward"][-1] == outcome.reward[0]


@pytest.mark.parametrize("name", ["episode", "puffs"])
def test_what_is_read_comes_to_the_same_states(name, request, tmp_path):
    made, path = request.getfixturevalue(name), tmp_path / "episode.npz"
    save_episode(path, made)
    read = load_episode(path)
    assert read.header == made.header
    assert read.states.keys() == made.states.keys()
    assert replay(read) is None


def test_it_says_where_it_parts(puffs):
    name = next(x for x in puffs.states if x.endswith("agent.position"))
    moved = puffs.states[name].copy()
    moved[7:, 0] += 0.5
    found = replay(puffs._replace(states={**puffs.states, name: moved}))
    assert (found.step, found.name) == (7, name)
    np.testing.assert_allclose(found.recorded - found.now, [0.5, 0], atol=1e-5)
    actions = puffs.actions.copy()
    actions[4] = 1 - actions[4]
    found = replay(puffs._replace(actions=actions))
    assert found.step == 5
    counted = puffs.states[".step_count"].copy()
    counted[2] = 9
    found = replay(puffs._replace(states={**puffs.states, ".step_count": counted}))
    assert (found.step, found.recorded, found.now) == (2, 9, 2)


def test_a_task_that_is_not_what_it_was_is_refused(episode):
    header = {**episode.header, "version": 99}
    with pytest.raises(ValidationError, match=r"version = 2 .* 99, as recorded"):
        replay(episode._replace(header=header))
    header = {**episode.header, "params": {**episode.header["params"], "plume.sigma": 4.0}}
    with pytest.raises(ValidationError, match=r"plume.sigma = 3.0 .* 4.0"):
        replay(episode._replace(header=header))


def test_the_commands(tmp_path, capsys):
    file = tmp_path / "one.npz"
    task = ["PlumeSearchLocal-v0", "--policy", "gradient", "--set", "max_steps=30"]
    assert main(["record", *task, "--number", "2", "--out", str(file)]) == 0
    assert "episode 2" in capsys.readouterr().out
    assert main(["replay", str(file)]) == 0
    assert "come to the same states" in capsys.readouterr().out
    episode = load_episode(file)
    wrong = episode.states[".total_reward"] + np.float32(1)
    save_episode(file, episode._replace(states={**episode.states, ".total_reward": wrong}))
    assert main(["replay", str(file)]) == 1
    assert "parts after step 0 of" in capsys.readouterr().out
    file.write_bytes(b"no")
    assert main(["replay", str(file)]) == 2
    assert "holds no episode of plumejax" in capsys.readouterr().err
    assert main(["record", *task, "--out", str(tmp_path / "one.json")]) == 2
    assert "--out" in capsys.readouterr().err
