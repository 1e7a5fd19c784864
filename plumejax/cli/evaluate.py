"""cli/evaluate: `plumejax evaluate`, a trained agent or a policy on fresh episodes."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal

import tyro
from rich.console import Console

from plumejax.base.errors import ValidationError, require
from plumejax.base.files import write_whole
from plumejax.base.registry import registered_tasks
from plumejax.cli.plume_named import bar
from plumejax.cli.scoring import draw_laws, report, table
from plumejax.cli.weighing import weighed
from plumejax.evaluation import captures
from plumejax.evaluation.episodes import stream
from plumejax.evaluation.precision import play_to_precision
from plumejax.evaluation.results import Result, dataset, finite, write_dataset
from plumejax.evaluation.statistics import arrivals, summarise
from plumejax.evaluation.trials import (
    Trial,
    evaluation_key,
    make_agent,
    make_task,
    parse_arguments,
    subject,
)
from plumejax.learning import runs
from plumejax.learning.recipes import recipe
from plumejax.learning.runs import RunConfig, load_agent, parse_settings, read_config
from plumejax.policies.catalogue import PERFECT, describe, policies

_EPISODES = 1000


def evaluate(
    target: tyro.conf.Positional[str],
    *,
    policy: str | None = None,
    policy_args: tuple[str, ...] = (),
    estimator: Literal["sampled", "survival"] = "sampled",
    episodes: int | None = None,
    error: float | None = None,
    seed: int | None = None,
    set: tuple[str, ...] = (),
    plumes: int = 0,
    data: Path | None = None,
    out: tuple[Path, ...] = (),
    capture: Path | None = None,
) -> int:
    """Evaluate a policy on a task, or the newest checkpoint of a run beside its baselines.

    Of a run, writes evaluation.json and trajectories.png into the run directory; for a recording of
    another name than the run's, evaluation-NAME.json and trajectories-NAME.png.

    Args:
        target: id of a task, or what `plumejax train` wrote.
        policy: its name (a wrong one lists them), a run directory, or the file of an agent or a
            learned table (*.npz).
        policy_args: numbers of the policy, as in --policy-args gamma=0.9.
        estimator: sampled: episodes with a source each. survival: of policies that believe in the
            law of the task, hits drawn as they predict them and each step weighed with the
            probability that the source is not found yet; its errors are smaller.
        episodes: fresh episodes of each policy; by default 1000.
        error: play as many as give the mean length this relative standard error; --episodes is
            then the most.
        seed: of the episodes; by default 0, or that of the run.
        set: numbers of the task, as in --set plume.sigma=8.
        plumes: realisations of a changing plume, rolled out once and shared by the episodes; by
            default each has its own.
        data: a recording for tasks that play one; of a run, another one, or where its own lies now.
        capture: folder for a table *.parquet of every step of every episode, which pandas reads and
            `plumejax replay` plays again; of a run, those of its agent.
        out: files to write: *.json what it came to, *.png arrival times, *.nc or *.zarr every
            episode.
    """
    require(episodes is None or episodes > 0, "--episodes", episodes, "> 0")
    require(seed is None or 0 <= seed < 2**31, "--seed", seed, "0 <= seed < 2**31")
    require(error is None or error > 0, "--error", error, "> 0")
    require(plumes >= 0, "--plumes", plumes, ">= 0")
    if target not in registered_tasks():
        if not Path(target).is_dir():
            agent = Path(target).suffix == ".npz"
            hint = f"; an agent's file plays with plumejax evaluate TASK --policy {target}"
            raise ValidationError(
                f"{target!r} is neither a task, which `plumejax list` shows, nor a run"
                f" directory{hint if agent else ''}"
            )
        only_tasks: dict[str, Any] = {
            "--policy": policy,
            "--policy-args": policy_args,
            "--estimator": estimator != "sampled",
            "--error": error,
            "--set": set,
            "--plumes": plumes,
            "--out": out,
        }
        wrong = [option for option, value in only_tasks.items() if value]
        require(not wrong, ", ".join(wrong), target, "of a task, not of a run")
        return _run(Path(target), episodes or _EPISODES, seed, data, capture)
    _require_files(out)
    if policy is None:
        names = "\n".join(f"  {name}: {describe(name)}" for name in (PERFECT, *policies()))
        raise ValidationError(f"--policy says which policy plays {target}; there are\n{names}")
    trial = Trial(
        task=target,
        policy=policy,
        episodes=episodes or (1_000_000 if error else _EPISODES),
        seed=seed or 0,
        arguments=parse_arguments(policy_args, "--policy-args"),
        overrides=parse_settings(set),
        static={} if data is None else {"data": str(data)},
        plumes=plumes,
    )
    if capture is not None:
        captures.new_table(trial, capture, "--capture")
    if estimator == "survival":
        require(capture is None, "--capture", capture, "left out with --estimator survival")
        require(error is None, "--error", error, "left out with --estimator survival")
        weighed(Console(), trial, out)
    else:
        result, params = _played(Console(), trial, error)
        _report(Console(), trial, (result, params), out)
        if capture is not None:
            keep_steps(replace(trial, episodes=result.subject.episodes), capture)
    return 0


def keep_steps(trial: Trial, folder: Path) -> None:
    """Capture the episodes of a trial, with a bar."""
    with bar(Console()) as shown:
        count = shown.add_task("keeping every step", total=trial.episodes)
        path = captures.capture(trial, folder, lambda ended: shown.advance(count, ended))
    Console().print(f"{path}: {trial.episodes} episodes", highlight=False, soft_wrap=True)


def _run(
    directory: Path, episodes: int, seed: int | None, data: Path | None, capture: Path | None
) -> int:
    config = read_config(directory)
    trained = load_agent(directory, data)
    moved = data is None or config.data is None or data.stem == Path(config.data).stem
    of = "" if data is None or moved else data.stem
    used = config.data if data is None else str(data)
    config = replace(config, seed=config.seed if seed is None else seed, data=used)
    if capture is not None:
        captures.new_table(of_run(directory, config, episodes), capture, "--capture")
    report(Console(), directory, trained, config, episodes, of)
    if capture is not None:
        keep_steps(of_run(directory, config, episodes), capture)
    return 0


def of_run(directory: Path, config: RunConfig, episodes: int) -> Trial:
    """The trial that the evaluation of a run's agent is."""
    return Trial(
        config.task,
        str(directory),
        episodes=episodes,
        seed=config.seed,
        overrides=config.settings,
        static={} if config.data is None else {"data": config.data},
        plumes=recipe(runs.make_task(config)[0]).plumes,
    )


def _played(console: Console, trial: Trial, error: float | None) -> tuple[Result, Any]:
    """`(result, params)`."""
    with bar(console) as shown:
        count = shown.add_task("making the task", total=None)
        env, params = make_task(trial)
        env, params, policy = make_agent(trial, env, params)
        shown.update(count, description=f"{trial.label} on {trial.task}", total=trial.episodes)
        key = evaluation_key(trial.seed)

        def told(ended: int) -> None:
            shown.advance(count, ended)

        if error is None:
            outcomes = stream(env, policy, key, params, trial.episodes, progress=told)
        else:
            most = trial.episodes
            outcomes = play_to_precision(
                env, policy, key, params, error, least=min(256, most), most=most, progress=told
            )
    about = replace(subject(trial, env, params), episodes=len(outcomes.steps))
    return Result(about, outcomes), params


def _require_files(out: tuple[Path, ...]) -> None:
    for path in out:
        good = path.suffix in (".json", ".png", ".nc", ".zarr")
        require(good, "--out", str(path), "a file named *.json, *.png, *.nc or *.zarr")
        require(path.parent.is_dir(), "--out", str(path), "in a folder that is there")


def _report(console: Console, trial: Trial, played: tuple[Result, Any], out: Any) -> None:
    result, params = played
    summary = summarise(result.outcomes, result.subject.radius)
    console.print(table({trial.label: summary}, trial.task, params))
    for path in out:
        if path.suffix == ".json":
            whole = {"of": asdict(result.subject), "scores": finite(asdict(summary))}
            write_whole(path, json.dumps(whole, indent=2) + "\n")
        elif path.suffix == ".png":
            draw_arrivals(path, {trial.label: result}, f"{trial.task}: {trial.label}")
        else:
            write_dataset(path, dataset([result]))
        console.print(f"{path}", highlight=False, soft_wrap=True)


def draw_arrivals(path: Path, results: dict[str, Result], title: str) -> None:
    """Draw the arrival times of `results` by name into the PNG `path`."""
    laws, horizon = {}, 2
    for name, result in results.items():
        outcomes = result.outcomes
        laws[name] = arrivals(outcomes.steps, outcomes.found, outcomes.failed)
        horizon = max(horizon, result.subject.max_steps)
    draw_laws(path, laws, horizon, title)
