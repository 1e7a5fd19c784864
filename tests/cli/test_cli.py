"""tests/cli/test_cli: the command line end to end, on a small task and few steps."""

import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import jax
import numpy as np
import orbax.checkpoint as ocp
import pandas
import pytest
from matplotlib.image import imread
from PIL import Image

import plumejax
from plumejax.base.errors import ValidationError
from plumejax.base.registry import registered_tasks
from plumejax.cli import main
from plumejax.cli.scoring import evaluation_key
from plumejax.evaluation.episodes import play
from plumejax.learning.runs import STAGES, agent_history

SMALL = ["--set", "plume.sigma=6", "ending.radius=8", "max_steps=40", "--num-envs", "8"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The run directory of a short training."""
    out = tmp_path_factory.mktemp("cli") / "run"
    choices = ["--seed", "3", "--hyper", "entropy=0.01", "--out", str(out)]
    assert main(["train", "--steps", "2000", *choices, *SMALL]) == 0
    return out


def test_train_leaves_a_whole_run_directory(run):
    names = {path.name for path in run.iterdir()}
    assert names == {
        "config.json",
        "agent.npz",
        "metrics.jsonl",
        "checkpoints",
        "evaluation.json",
        "trajectories.png",
        "learning.png",
        "history",
    }
    config = json.loads((run / "config.json").read_text())
    assert (config["task"], config["seed"]) == ("PlumeSearchLocal-v0", 3)
    assert config["settings"]["plume.sigma"] == 6
    assert config["hyperparameters"]["entropy"] == 0.01
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [row["update"] for row in rows] == list(range(1, config["updates"] + 1))
    assert rows[-1]["steps"] == config["updates"] * 8 * config["shapes"]["num_steps"] >= 2000
    for name in ("trajectories.png", "learning.png"):
        assert imread(run / name).std() > 0.05  # not an empty sheet


def test_evaluation_is_on_the_task_as_defined_beside_two_baselines(run):
    report = json.loads((run / "evaluation.json").read_text())
    assert report["max_steps"] == 40
    assert report["radius_cells"] == 8
    ours = {"trained", "trained, likeliest actions"}
    assert set(report["scores"]) == {*ours, "random", "gradient following"}
    for row in report["scores"].values():
        assert row["episodes"] == 1000
        assert row["mean_return"] == pytest.approx(row["success"])  # the sparse reward
        assert row["success_low"] <= row["success"] <= row["success_high"]


def test_evaluate_repeats_the_evaluation_of_a_run(run, capsys):
    before = (run / "evaluation.json").read_text()
    assert main(["evaluate", str(run)]) == 0
    assert (run / "evaluation.json").read_text() == before
    shown = capsys.readouterr().out
    assert "gradient following" in shown
    assert "at most 40 steps" in shown


def test_the_table_shows_whole_numbers_where_it_is_narrow(run, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    own = tmp_path / "run"
    shutil.copytree(run, own)
    assert main(["evaluate", str(own), "--episodes", "50"]) == 0
    assert "…" not in capsys.readouterr().out


def test_load_agent_gives_the_policy_that_was_scored(run):
    agent, env, params = plumejax.load_agent(run)
    assert int(params.max_steps) == 40
    outcomes = play(env, agent, evaluation_key(3), params, 1000)
    scores = json.loads((run / "evaluation.json").read_text())["scores"]
    assert int(outcomes.found.sum()) == scores["trained"]["found"]


def test_it_keeps_the_agents_along_the_training(run):
    config = json.loads((run / "config.json").read_text())
    steps, files = zip(*agent_history(run), strict=True)
    assert steps[0] == 0
    assert steps[-1] == config["updates"] * 8 * config["shapes"]["num_steps"]
    assert 3 <= len(steps) <= STAGES + 1
    agents = [plumejax.load_agent(path)[0].parameters for path in (*files, run)]
    differ = [
        any(np.any(x != y) for x, y in zip(*map(jax.tree.leaves, (a, b)), strict=True))
        for a, b in itertools.pairwise(agents)
    ]
    assert differ == [True] * (len(steps) - 1) + [False]  # the last is the run's own


def test_a_film_of_a_training_and_one_of_its_agent(run, tmp_path, capsys):
    for name, more in (("a.gif", ["--of", "training"]), ("b.gif", ["--episodes", "2"])):
        path = tmp_path / name
        assert main(["video", str(run), "--out", str(path), "--every", "20", *more]) == 0
        with Image.open(path) as film:
            assert film.n_frames > 1
            assert np.asarray(film.convert("RGB")).std() > 10
    assert re.search(r"b\.gif: \d frames", capsys.readouterr().out)
    wrong = ["video", "PlumeSearchLocal-v0", "--out", str(tmp_path / "c.gif")]
    assert main(wrong) == 2
    assert "--policy" in capsys.readouterr().err
    assert main([*wrong[:3], str(tmp_path / "c.avi"), "--policy", "random"]) == 2
    assert {path.name for path in tmp_path.iterdir()} == {"a.gif", "b.gif"}


def test_a_report_of_a_run_has_its_scores_and_its_episodes(run, tmp_path, capsys):
    out = tmp_path / "report.html"
    assert main(["report", str(run), "--episodes", "3", "--out", str(out)]) == 0
    text = out.read_text()
    scores = json.loads((run / "evaluation.json").read_text())["scores"]
    for name, row in scores.items():
        assert f"<td>{name}</td><td>{row['success']:.3f}</td>" in text
    episodes = json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])["episodes"]
    agent, env, params = plumejax.load_agent(run)
    outcomes = play(env, agent, evaluation_key(3), params, 3)
    assert [each["steps"] for each in episodes] == outcomes.steps.tolist()
    assert text.count("data:image/png") == 2
    for wrong in (tmp_path, run / "config.json"):
        assert main(["report", str(wrong)]) == 2
    assert "no run directory" in capsys.readouterr().err
    assert main(["report", str(run), "--episodes", "21"]) == 2


def test_the_evaluation_of_a_run_can_be_captured(run, tmp_path):
    own = tmp_path / "run"
    shutil.copytree(run, own)
    folder = tmp_path / "steps"
    assert main(["evaluate", str(own), "--episodes", "20", "--capture", str(folder)]) == 0
    (table,) = folder.iterdir()
    agent, env, params = plumejax.load_agent(own)
    outcomes = play(env, agent, evaluation_key(3), params, 20)
    steps = pandas.read_parquet(table).groupby("episode")["step"].max()
    np.testing.assert_array_equal(steps, outcomes.steps)
    assert main(["replay", str(table), "--number", "7"]) == 0


def test_exported_states_are_those_of_the_agent(run, tmp_path):
    out = tmp_path / "states.nc"
    gru = tmp_path / "gru"
    memory = ["--memory", "lstm", "--steps", "300", "--out", str(gru)]
    assert main(["train", *memory, *SMALL]) == 0
    assert main(["export-states", str(gru), "--out", str(out), "--episodes", "5"]) == 0
    import xarray

    data = xarray.load_dataset(out)
    assert dict(data.sizes) == {"episode": 5, "step": 40, "number": 1, "unit": 128, "axis": 2, "wind_axis": 2}  # fmt: skip  # noqa: E501
    agent, env, params = plumejax.load_agent(gru)
    outcomes = play(env, agent, evaluation_key(0), params, 5)
    np.testing.assert_array_equal(data.steps, outcomes.steps)
    np.testing.assert_array_equal(data.running.sum("step"), outcomes.steps)
    # Where it has not yet seen anything the odour is what the plume is there, and it moves a cell.
    here = data.isel(episode=0, step=0)
    np.testing.assert_allclose(here.observation[0], here.concentration, rtol=1e-6)
    moved = np.abs(data.position.diff("step")).sum("axis")
    assert moved.max() == 1
    assert not np.isnan(data.hidden.where(data.running, 0.0)).any()
    assert np.isnan(data.hidden.where(~data.running, np.nan)).all()


def test_list_and_help(capsys):
    assert main(["list"]) == 0
    shown = capsys.readouterr().out
    for task in registered_tasks().values():
        if task.twin_of:
            assert f"fully observed twin: {task.id}" in shown
        else:
            assert f"{task.id}  version {task.version}, {task.difficulty}" in shown
    assert "perfect 1 (100% found)" in shown
    assert "Singh et al. 2023" in shown
    with pytest.raises(SystemExit) as stop:
        main(["train", "--help"])
    assert stop.value.code == 0
    shown = capsys.readouterr().out
    for option in ("--seed", "--steps", "--num-envs", "--out", "--resume", "--data"):
        assert option in shown


BAD = {
    "task": (["train", "PlumeSearch-v9"], "PlumeSearch-v9"),
    "number": (["train", "--set", "plume.sigma=-1"], "plume.sigma"),
    "path": (["train", "--set", "plume.sgma=1"], "Did you mean"),
    "setting": (["train", "--set", "plume.sigma"], "PATH=NUMBER"),
    "hyper name": (["train", "--hyper", "entrpy=1"], "Did you mean 'entropy'"),
    "hyper number": (["train", "--hyper", "gamma=-1"], "--hyper gamma = -1"),
    "hyper share": (["train", "--hyper", "gae_lambda=1.5"], "from 0 to 1"),
    "hyper form": (["train", "--hyper", "gamma"], "--hyper = 'gamma'"),
    "seed": (["train", "--seed", "-1"], "--seed"),
    "steps": (["train", "--steps", "0"], "--steps"),
    "lanes": (["train", "--num-envs", "6"], "num_minibatches"),
    "no data": (["train", "Recorded-v0"], "--data"),
    "data": (["train", "Recorded-v0", "--data", "nowhere.npz"], "nowhere.npz"),
    "superfluous data": (["train", "--data", "nowhere.npz"], "--data"),
    "place": (["train", "--out", "/dev/null/run"], "/dev/null/run"),
    "run": (["evaluate", "nowhere"], "nor a run directory"),
    "states of nothing": (["export-states", "nowhere", "--out", "x.nc"], "PlumeSearchLocal-v0"),
    "states in no file": (["export-states", "PlumeSearchLocal-v0", "--out", "x.txt"], "*.nc"),
    "seeds": (["train", "--seeds", "0"], "--seeds"),
    "resume": (["train", "--resume", "nowhere"], "config.json"),
    "resume with more": (["train", "--resume", "nowhere", "--seed", "2"], "alone"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_clear_error_and_leaves_nothing(case, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments, message = BAD[case]
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("error:")
    assert message in error
    assert not list(tmp_path.iterdir())


def test_a_run_directory_in_use_is_refused(run, capsys):
    assert main(["train", "--out", str(run)]) == 2
    assert "new or empty" in capsys.readouterr().err


def _numbers(run):
    directory = (run / "checkpoints").resolve()
    with ocp.CheckpointManager(directory) as manager:
        step = manager.latest_step()
        args = ocp.args.Composite(training=ocp.args.StandardRestore())
        return step, manager.restore(step, args=args).training


@pytest.mark.slow
def test_interrupted_training_resumes_to_where_it_would_have_ended(tmp_path):
    steps = ["--steps", "60000", *SMALL]
    command = [sys.executable, "-m", "plumejax"]
    # The three processes compile the same programs.
    env = {**os.environ, "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "compiled")}
    cut, whole = tmp_path / "cut", tmp_path / "whole"
    process = subprocess.Popen(
        [*command, "train", "--out", str(cut), *steps], env=env, stdout=subprocess.PIPE, text=True
    )
    metrics = cut / "metrics.jsonl"
    while process.poll() is None and not (metrics.is_file() and metrics.stat().st_size):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    shown, _ = process.communicate()
    assert process.returncode == 130, shown
    assert f"--resume {cut}" in shown
    updates = json.loads((cut / "config.json").read_text())["updates"]
    assert 0 < _numbers(cut)[0] < updates
    for arguments in (["--resume", str(cut)], ["--out", str(whole), *steps]):
        subprocess.run([*command, "train", *arguments], env=env, check=True, capture_output=True)
    (a_step, a), (b_step, b) = _numbers(cut), _numbers(whole)
    assert a_step == b_step == updates
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_array_equal(x, y)
    rows = [
        [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        for run in (cut, whole)
    ]
    for row in rows[0] + rows[1]:
        del row["steps_per_second"]
    assert rows[0] == rows[1]
    assert (cut / "evaluation.json").read_text() == (whole / "evaluation.json").read_text()


def test_a_diverging_training_stops_with_its_last_good_checkpoint(tmp_path, capsys):
    run = tmp_path / "run"
    rates = ["--hyper", "learning_rate=1e30", "max_grad_norm=1e30", "--steps", "2000"]
    assert main(["train", "--out", str(run), *rates, *SMALL]) == 2
    error = capsys.readouterr().err
    assert "seed 0 diverged in update" in error
    assert "not finite" in error
    assert not (run / "evaluation.json").exists()


def test_several_seeds_leave_a_run_directory_each(tmp_path, capsys):
    run = tmp_path / "run"
    assert main(["train", "--seed", "3", "--seeds", "2", "--steps", "2000", "--out", str(run), *SMALL]) == 0  # fmt: skip  # noqa: E501
    shared = {"checkpoints", "config.json", "learning.png"}
    assert {p.name for p in run.iterdir()} == shared | {"seed3", "seed4"}
    assert not (run / "seed3" / "learning.png").exists()
    with pytest.raises(ValidationError, match="it has several: seed3, seed4"):
        plumejax.load_agent(run)
    configs = [json.loads((run / f"seed{n}" / "config.json").read_text()) for n in (3, 4)]
    assert [(c["seed"], c["seeds"]) for c in configs] == [(3, 1), (4, 1)]
    first, second = (plumejax.load_agent(run / f"seed{n}")[0].parameters for n in (3, 4))
    assert any(np.any(a != b) for a, b in zip(*map(jax.tree.leaves, (first, second)), strict=True))
    assert main(["evaluate", str(run / "seed4"), "--episodes", "50"]) == 0
    capsys.readouterr()
    learned = (run / "seed4" / "agent.npz").read_bytes()
    assert main(["train", "--resume", str(run / "seed4")]) == 2  # it would begin anew
    assert f"it must be {run}" in capsys.readouterr().err
    assert (run / "seed4" / "agent.npz").read_bytes() == learned
