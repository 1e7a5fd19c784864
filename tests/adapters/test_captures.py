"""tests/adapters/test_captures: a Gymnasium environment keeps its episodes, and they play again."""

import copy
import subprocess
import sys

import gymnasium
import numpy as np
import pandas
import pytest

from plumejax import PlumeSearchEnv, PlumeSearchVectorEnv
from plumejax.adapters.captures import replay_captured
from plumejax.base.errors import ValidationError
from plumejax.cli import main
from plumejax.search.rewards import Sparse

SMALL = {"grid_size": (16, 12), "max_steps": 12, "task": "PlumeSearchLocal-v0"}


@pytest.fixture
def table(tmp_path):
    """Of three episodes: one to its end, one broken off, one begun elsewhere."""
    env = PlumeSearchEnv(**SMALL, capture=tmp_path)
    env.reset(seed=4)
    while env.state == "ready":
        env.step(env.action_space.sample())
    with pytest.warns(UserWarning, match="changes nothing"):
        env.step(0)
    env.reset(seed=9)
    env.step(1)
    env.reset(options={"start": (2, 3), "params": {"plume.sigma": 5.0}})
    env.step(2)
    env.step(3)
    assert list(tmp_path.iterdir()) == []  # not yet
    env.close()
    (path,) = tmp_path.iterdir()
    return path


def test_every_step_is_kept_with_its_seed(table):
    data = pandas.read_parquet(table)
    steps = data.groupby("episode")["step"].max().tolist()
    assert steps[1:] == [1, 2]
    assert steps[0] <= 12
    assert data.groupby("episode")["seed"].first().tolist()[:2] == [4, 9]
    first = data[data["episode"] == 2].iloc[0]
    assert first[["agent.position:0", "agent.position:1"]].tolist() == [2, 3]
    about = data.attrs["plumejax"]
    assert (about["task"], about["adapter"]["max_steps"]) == ("PlumeSearchLocal-v0", 12)


def test_they_play_again_by_the_command(table, capsys):
    for number in range(3):
        assert replay_captured(table, number) is None
        assert main(["replay", str(table), "--number", str(number)]) == 0
    assert capsys.readouterr().out.count("same states") == 3


def test_a_copy_has_a_table_of_its_own(tmp_path):
    env = PlumeSearchEnv(**SMALL, capture=tmp_path)
    env.reset(seed=0)
    twin = copy.deepcopy(env)
    for each in (env, twin):
        each.reset(seed=1)
        each.step(0)
        each.close()
    counts = sorted(len(pandas.read_parquet(path)) for path in tmp_path.iterdir())
    assert counts == [2, 3]  # the one that was going on has its start only


def test_gymnasium_makes_one(tmp_path):
    env = gymnasium.make("plumejax/PlumeSearchLocal-v0", capture=str(tmp_path), max_steps=5)
    for _ in range(2):
        env.reset(seed=3)
        env.step(0)
    env.close()
    (path,) = tmp_path.iterdir()
    assert replay_captured(path, 1) is None


def test_parts_of_its_users_own_are_named_where_it_should_play_again(tmp_path):
    env = PlumeSearchEnv(**SMALL, reward_fn=Sparse(), capture=tmp_path)
    env.reset(seed=0)
    env.step(0)
    env.close()
    (path,) = tmp_path.iterdir()
    assert len(pandas.read_parquet(path)) == 2
    with pytest.raises(ValidationError, match="reward_fn"):
        replay_captured(path, 0)


def test_episodes_are_those_of_an_environment_that_keeps_nothing(tmp_path):
    plain, kept = PlumeSearchEnv(**SMALL), PlumeSearchEnv(**SMALL, capture=tmp_path)
    for env in (plain, kept):
        env.reset(seed=7, options={"start": (1, 1)})
    for action in (0, 1, 1, 2):
        for a, b in zip(plain.step(action)[:4], kept.step(action)[:4], strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_a_vector_environment_keeps_every_lane(tmp_path, mode):
    arguments = {**SMALL, "max_steps": 4, "autoreset_mode": mode}
    env = PlumeSearchVectorEnv(3, **arguments, capture=tmp_path)
    seen = []
    for seed in (1, 2):
        env.reset(seed=seed)
        for step in range(7):  # beyond the end of an episode
            env.step(np.asarray([0, 1, (step + seed) % 4]))
            seen.append(env.functional_state.agent.position)
    env.close()
    (path,) = tmp_path.iterdir()
    data = pandas.read_parquet(path)
    assert len(data) == 2 * 8 * 3
    last = data[(data["episode"] == 1) & (data["step"] == 7)]
    assert last["lane"].tolist() == [0, 1, 2]
    np.testing.assert_array_equal(last[["agent.position:0", "agent.position:1"]], seen[-1])
    assert last["action"].isna().all()
    assert data["action"].isna().sum() == 6
    assert data.attrs["plumejax"]["adapter"]["autoreset_mode"] == mode
    for number in (0, 1):
        assert replay_captured(path, number) is None
        assert main(["replay", str(path), "--number", str(number)]) == 0


def test_what_is_not_closed_is_whole_at_the_end_of_the_program(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from plumejax import PlumeSearchEnv\n"
        f"env = PlumeSearchEnv(**{SMALL}, capture={str(tmp_path / 'kept')!r})\n"
        "env.reset(seed=1)\nenv.step(0)\n"
    )
    subprocess.run([sys.executable, str(script)], check=True)
    (path,) = (tmp_path / "kept").iterdir()
    assert len(pandas.read_parquet(path)) == 2


@pytest.mark.parametrize("folder", ["", 5, "{here}/file", "{here}/no/folder"])
def test_a_folder_that_takes_none_is_refused_at_once(tmp_path, folder):
    (tmp_path / "file").write_text("")
    folder = folder.format(here=tmp_path) if isinstance(folder, str) else folder
    with pytest.raises(ValidationError, match=r"capture = .* a folder to write into"):
        PlumeSearchEnv(**SMALL, capture=folder)
