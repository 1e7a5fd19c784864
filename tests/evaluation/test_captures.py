"""tests/evaluation/test_captures: a table has every step, pandas reads it, and it plays again."""

import json

import numpy as np
import pandas
import pytest

from plumejax.base import tables
from plumejax.base.errors import ValidationError
from plumejax.cli import main
from plumejax.evaluation.captures import capture, read_captured
from plumejax.evaluation.replays import record, replay
from plumejax.evaluation.trials import Trial, run_trial

TRIAL = Trial(
    "PlumeSearchLocal-v0",
    "gradient",
    episodes=7,
    seed=5,
    overrides={"max_steps": 40, "plume.sigma": 3.0},
    static={"grid_size": [16, 12]},
)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    told = []
    path = capture(TRIAL, tmp_path_factory.mktemp("captured"), told.append)
    assert sum(told) == 7
    return path


def test_pandas_reads_every_step_of_the_evaluation(table):
    data = pandas.read_parquet(table)
    outcomes = run_trial(TRIAL).outcomes
    last = data.groupby("episode").tail(1)
    np.testing.assert_array_equal(last["step"], outcomes.steps)
    np.testing.assert_array_equal(last["found"], outcomes.found)
    np.testing.assert_array_equal(last["total_reward"], outcomes.reward)
    assert len(data) == np.sum(outcomes.steps + 1)
    np.testing.assert_array_equal(data.groupby("episode")["reward"].sum(), outcomes.reward)
    # Only the last state of an episode was not answered with an action.
    np.testing.assert_array_equal(data["action"].isna(), data["step"] == data.groupby("episode")["step"].transform("max"))  # fmt: skip  # noqa: E501


def test_it_says_what_it_is_of(table):
    about = pandas.read_parquet(table).attrs["plumejax"]
    assert about["trial"]["task"] == TRIAL.task
    assert about["trial"]["seed"] == 5
    assert about["params"]["plume.sigma"] == 3.0
    assert {"plumejax", "jax", "numpy"} <= about["versions"].keys()


def test_an_episode_of_it_is_that_which_is_recorded_alone(table):
    alone, kept = record(TRIAL, 3), read_captured(table, 3)
    np.testing.assert_array_equal(kept.actions, alone.actions)
    for name, values in kept.states.items():
        np.testing.assert_allclose(values, alone.states[name], rtol=1e-6)
    assert replay(kept) is None


def test_it_says_where_it_parts(table):
    kept = read_captured(table, 2)
    moved = kept.states[".agent.position"].copy()
    moved[4:] += 1
    found = replay(kept._replace(states={**kept.states, ".agent.position": moved}))
    assert (found.step, found.name) == (4, ".agent.position")


def test_what_is_large_is_left_out_and_follows_by_playing_again(tmp_path):
    puffs = Trial(
        "PlumeTracking-Farrell-v0",
        "cast-and-surge",
        episodes=2,
        overrides={"max_steps": 10},
        static={"capacity": 32, "warmup": 8},
    )
    path = capture(puffs, tmp_path)
    kept, whole = read_captured(path, 1), record(puffs, 1)
    assert kept.states.keys() < whole.states.keys()
    assert kept.actions.shape == whole.actions.shape == (10, 2)
    assert replay(kept) is None


def test_the_command_captures_and_plays_again(tmp_path, capsys):
    numbers = ["--set", "max_steps=20", "plume.sigma=3", "--episodes", "5"]
    command = ["evaluate", TRIAL.task, "--policy", "random", *numbers, "--capture", str(tmp_path)]
    assert main(command) == 0
    (path,) = tmp_path.iterdir()
    assert main(["replay", str(path), "--number", "4"]) == 0
    assert "same states" in capsys.readouterr().out
    assert main(["replay", str(path), "--number", "5"]) == 2
    assert "number = 5" in capsys.readouterr().err
    before = {part.name: part.read_bytes() for part in path.iterdir()}
    assert main(command) == 2  # it is not written over
    assert before == {part.name: part.read_bytes() for part in path.iterdir()}


def test_parts_of_another_kind_are_refused(table):
    episode = tables.rows(0, np.zeros(1, int), {".x": np.zeros(2)})
    with pytest.raises(ValidationError, match="a table of the same task"):
        tables.append(table, {"trial": "another"}, [episode])
    with pytest.raises(ValidationError, match="parquet"):
        tables.append(table.with_suffix(".csv"), {}, [episode])


@pytest.mark.parametrize("content", [None, b"", b"no parquet"])
def test_what_is_no_table_is_told(tmp_path, content):
    path = tmp_path / "a.parquet"
    path.mkdir()
    if content is not None:
        (path / "part-00000.parquet").write_bytes(content)
    with pytest.raises(ValidationError, match="holds no table of episodes"):
        tables.read_episode(path, 0)


def test_a_table_is_whole_while_it_grows(tmp_path):
    path = tmp_path / "a.parquet"
    for number in range(3):
        states = {".x": np.arange(3.0), ".way": np.ones((3, 2, 2), np.float32) * number}
        tables.append(path, {"a": [1, 2]}, [tables.rows(number, np.ones((2, 2)), states)])
        data = pandas.read_parquet(path)
        assert sorted(data["episode"].unique()) == list(range(number + 1))
    about, columns = tables.read_episode(path, 2)
    assert about == {"a": [1, 2], "format": tables.FORMAT}
    assert json.dumps(about)
    assert columns["action"].shape == (2, 2)
    np.testing.assert_array_equal(columns[".way"], np.full((3, 4), 2.0))
