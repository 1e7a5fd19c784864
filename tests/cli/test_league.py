"""tests/cli/test_league: `plumejax league` and `plumejax evaluate TASK`, results and refusals."""

import json
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plumejax.cli import main
from plumejax.evaluation.results import read_result
from plumejax.learning.agent_files import read_agent, save_agent
from plumejax.learning.q_learning import Compass, QTable
from plumejax.learning.runs import SHIPPED, load_agent
from plumejax.learning.tables import save_policy

SMALL = ["--set", "max_steps=40", "ending.radius=25"]


@pytest.fixture(scope="module")
def league(tmp_path_factory):
    """A league's directory and the words of its command."""
    out = tmp_path_factory.mktemp("league")
    words = ["league", "PlumeSearchLocal-v0", "--policies", "random", "gradient", "perfect"]
    words += ["silkmoth", "--episodes", "24", "--out", str(out), *SMALL]
    assert main(words) == 0
    return out, words


def test_a_league_ranks_the_policies_and_says_who_does_not_fit(league):
    out, _ = league
    table = json.loads((out / "league.json").read_text())
    assert [row["policy"] for row in table] == ["perfect", "gradient", "random", "silkmoth"]
    best, climber, random, misfit = table
    assert best["summary"]["success"] >= climber["summary"]["success"]
    assert climber["summary"]["success"] > random["summary"]["success"]
    assert best["normalised_time"][0] == pytest.approx(best["summary"]["success"])
    assert misfit["summary"] is None
    assert "env.motion" in misfit["reason"]
    page = (out / "league.md").read_text()
    assert "`PlumeSearchLocal-v0`" in page
    assert "does not fit" in page
    for name in ("arrivals", "league"):
        assert (out / f"{name}-PlumeSearchLocal-v0.png").stat().st_size > 10_000


def test_a_report_of_it_replays_the_best(league, capsys):
    out, _ = league
    assert main(["report", str(out), "--episodes", "4"]) == 0
    assert "4 episodes" in capsys.readouterr().out
    text = (out / "report.html").read_text()
    told = re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1]
    played = [
        (each["title"].split(", ")[1], each["steps"]) for each in json.loads(told)["episodes"]
    ]
    wanted = [("perfect", 2), ("gradient", 1), ("random", 1)]
    for name, count in wanted:
        steps = read_result(out / "cells" / f"PlumeSearchLocal-v0--{name}.npz").outcomes.steps
        assert [x for who, x in played if who == name] == steps[:count].tolist()
    assert "does not fit" in text


def test_its_policies_played_the_same_episodes(league):
    out, _ = league
    cells = out / "cells"
    starts = [
        read_result(cells / f"PlumeSearchLocal-v0--{name}.npz").outcomes.track.distance
        for name in ("random", "gradient", "perfect")
    ]
    np.testing.assert_array_equal(starts[0], starts[1])
    np.testing.assert_array_equal(starts[0], starts[2])


def test_what_is_finished_is_not_played_again_and_what_is_lost_is(league, capsys):
    out, words = league
    lost = out / "cells" / "PlumeSearchLocal-v0--gradient.npz"
    kept = out / "cells" / "PlumeSearchLocal-v0--random.npz"
    before, written = (out / "league.json").read_text(), kept.stat().st_mtime_ns
    lost.unlink()
    assert main(words) == 0
    assert "2 of 4 were played before" in " ".join(capsys.readouterr().out.split())
    assert (out / "league.json").read_text() == before
    assert kept.stat().st_mtime_ns == written
    assert lost.exists()


def test_a_policy_is_evaluated_and_written_as_asked(tmp_path, capsys):
    out = [tmp_path / name for name in ("a.json", "a.png", "a.nc")]
    words = ["evaluate", "PlumeSearchLocal-v0", "--policy", "random", "--episodes", "24", *SMALL]
    assert main([*words, "--out", *map(str, out)]) == 0
    assert all(path.exists() for path in out)
    whole = json.loads(out[0].read_text())
    assert whole["of"]["policy"] == "random"
    assert whole["of"]["episodes"] == whole["scores"]["episodes"] == 24
    assert "random" in capsys.readouterr().out


def test_a_table_for_another_task_is_refused_before_anything_is_played(tmp_path, capsys):
    path, out = tmp_path / "table.npz", tmp_path / "league"
    save_policy(path, QTable(np.zeros((16, 4), np.float32), 16, "learned", Compass(0, 1, 2, 3)))
    assert main(["evaluate", "PlumeSearchLocal-v0", "--policy", str(path), *SMALL]) == 2
    assert "observation of the task" in capsys.readouterr().err
    words = ["league", "PlumeSearchLocal-v0", "--policies", str(path), "--out", str(out), *SMALL]
    assert main(words) == 0
    (row,) = json.loads((out / "league.json").read_text())
    assert "observation of the task" in row["reason"]


def test_a_trained_agent_plays_and_another_of_its_name_plays_anew(tmp_path, capsys):
    name = "PlumeSearchLocal-v0"
    run = tmp_path / "run"
    run.mkdir()
    stored = read_agent(SHIPPED / f"{name}.npz")
    agent = load_agent(name)[0]
    save_agent(run / "agent.npz", agent, stored.config, stored.params)
    words = ["league", name, "--policies", str(run), name, str(run / "agent.npz")]
    words += ["--episodes", "8", "--out", str(tmp_path / "league"), *SMALL]
    assert main(words) == 0
    table = json.loads((tmp_path / "league" / "league.json").read_text())
    assert len({row["summary"]["found"] for row in table}) == 1
    other = jax.tree.map(jnp.zeros_like, agent.parameters)
    save_agent(run / "agent.npz", agent.replace(parameters=other), stored.config, stored.params)
    capsys.readouterr()
    assert main(words) == 0
    assert "1 of 3 were played before" in " ".join(capsys.readouterr().out.split())
    words = ["evaluate", name, "--policy", name, "--policy-args", "rate=1", *SMALL]
    assert main(words) == 2
    assert "it is learned" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["evaluate", "NoTask-v0", "--policy", "random"], "NoTask-v0"),
        (["evaluate", "PlumeSearchLocal-v0"], "gradient"),
        (["evaluate", "PlumeSearchLocal-v0", "--policy", "luck"], "luck"),
        (["evaluate", "PlumeSearchLocal-v0", "--policy", "random", "--policy-args", "a=1"], "a"),
        (["evaluate", "PlumeSearchLocal-v0", "--policy", "random", "--out", "x.csv"], "x.csv"),
        (["evaluate", "PlumeSearchLocal-v0", "--policy", "silkmoth"], "env.motion"),
        (["league", "PlumeSearchLocal-v0", "--policies", "random", "random", "--out", "l"], "once"),
        (["league", "PlumeSearchLocal-v0", "--policies", "luck", "--out", "l"], "luck"),
        (["league", "NoTask-v0", "--policies", "random", "--out", "l"], "NoTask-v0"),
        (
            [
                "league",
                "PlumeSearchLocal-v0",
                "--policies",
                "random",
                "--episodes",
                "0",
                "--out",
                "l",
            ],
            "--episodes",
        ),
    ],
)
def test_what_cannot_be_played_is_refused_by_name(words, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
