"""cli/train: `plumejax train`, from a task to a run directory."""

import json
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal

import jax
import numpy as np
import tyro
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from plumejax.base.errors import PlumeError, ValidationError, require
from plumejax.base.files import write_whole
from plumejax.base.tables import require_folder
from plumejax.cli.cores import a_core_each
from plumejax.cli.evaluate import keep_steps, of_run
from plumejax.cli.scoring import draw_learning, report
from plumejax.evaluation.captures import new_table
from plumejax.evaluation.trials import Trial
from plumejax.learning import seeds as trainings
from plumejax.learning.agent_files import save_agent
from plumejax.learning.checkpoints import describe, is_saved, require_same, restore, save
from plumejax.learning.ppo import Metrics, Training, continue_training
from plumejax.learning.runs import (
    AGENT,
    CHECKPOINTS,
    CONFIG,
    LEARNING,
    METRICS,
    STAGES,
    RunConfig,
    history_path,
    load_agent,
    make_task,
    make_training,
    new_config,
    parse_settings,
    read_config,
    read_metrics,
    write_config,
)

_SECONDS_BETWEEN_CHECKPOINTS = 10.0
_TASK = "PlumeSearchLocal-v0"


def train(
    task: tyro.conf.Positional[str] = _TASK,
    *,
    seed: int = 0,
    seeds: int = 1,
    steps: int | None = None,
    num_envs: int | None = None,
    out: Path | None = None,
    memory: Literal["none", "stack", "gru", "rnn", "lstm"] | None = None,
    data: Path | None = None,
    set: tuple[str, ...] = (),
    hyper: tuple[str, ...] = (),
    resume: Path | None = None,
    capture: Path | None = None,
) -> int:
    """Train an agent with PPO, evaluate it beside baselines, and draw what it does.

    Ctrl-C stops after the call that is running and keeps a checkpoint; go on with --resume. The
    folder history has the agent as it was along the way.

    Args:
        task: id of the task, one of `plumejax list`.
        seed: of the training.
        seeds: how many trainings, of this seed and those that follow it, in one program, on all
            devices or cores. Each leaves a run directory of its own within.
        steps: environment steps of each, rounded up to whole calls; by default what the task takes.
        num_envs: episodes side by side; by default what suits the task, and its observations leave
            room for.
        out: run directory, new or empty; by default runs/TASK-seedSEED-TIME.
        memory: what the agent remembers with: nothing, the last few steps (stack), or a recurrent
            layer, gated (gru), plain (rnn) or long short-term (lstm). By default stack, for plume
            tracking gru.
        data: path of a recording, for tasks that play one.
        set: numbers of the task, as in --set plume.sigma=8 ending.radius=3.
        hyper: numbers of PPO, as in --hyper entropy=0.01 learning_rate=1e-3.
        capture: folder for a table *.parquet of every step of the agent's episodes, those of the
            evaluation at the end.
        resume: run directory of a training to go on with; all other choices are as they were.
    """
    console = Console()
    if capture is not None:
        require_folder("--capture", capture)
    if resume is not None:
        given = {
            "TASK": task != _TASK,
            "--seed": seed != 0,
            "--seeds": seeds != 1,
            "--steps": steps is not None,
            "--num-envs": num_envs is not None,
            "--out": out is not None,
            "--memory": memory is not None,
            "--data": data is not None,
            "--set": set != (),
            "--hyper": hyper != (),
        }
        more = ", ".join(name for name, was in given.items() if was)
        require(not more, "--resume", f"{resume} with {more}", "alone: a run keeps its choices")
        directory, config = resume, read_config(resume)
        _require_whole(directory)
        a_core_each(config.seeds)
    else:
        a_core_each(seeds)
        config = _new_config(task, seed, seeds, steps, num_envs, memory, data, set, hyper)
        directory = _new_directory(out, config)
        write_config(directory, config)
    for own, each in _own_runs(directory, config):
        if capture is not None:
            new_table(Trial(each.task, str(own)), capture, "--capture")
    return _run(console, directory, config, capture)


def _require_whole(directory: Path) -> None:
    """Raise `ValidationError` for one seed of several: their checkpoints are kept together, and it
    would begin anew over what it has learned."""
    whole = directory.resolve().parent
    if (directory / CHECKPOINTS).is_dir() or not (whole / CONFIG).is_file():
        return
    own = [path.resolve() for path, _ in _own_runs(whole, read_config(whole))]
    one_of_several = directory.resolve() in own
    require(not one_of_several, "--resume", str(directory), f"{whole}, which has all its seeds")


def _new_config(
    task: str,
    seed: int,
    seeds: int,
    steps: int | None,
    num_envs: int | None,
    memory: str | None,
    data: Path | None,
    settings: tuple[str, ...],
    hyper: tuple[str, ...],
) -> RunConfig:
    require(0 <= seed < 2**31, "--seed", seed, "0 <= seed < 2**31")
    require(1 <= seeds <= 1024, "--seeds", seeds, "1 <= seeds <= 1024")
    require(steps is None or steps > 0, "--steps", steps, "> 0")
    shapes = {"num_envs": num_envs, "memory": memory}
    return new_config(
        task,
        seed=seed,
        seeds=seeds,
        steps=steps,
        data=None if data is None else str(data.resolve()),
        settings=parse_settings(settings),
        shapes={name: x for name, x in shapes.items() if x is not None},
        hyperparameters=parse_settings(hyper, "--hyper"),
        option="--hyper ",
    )


def _new_directory(out: Path | None, config: RunConfig) -> Path:
    if out is None:
        now = datetime.now().strftime("%Y%m%d-%H%M%S")
        out = Path("runs") / f"{config.task}-seed{config.seed}-{now}"
    taken = out.exists() and (not out.is_dir() or any(out.iterdir()))
    require(not taken, "--out", str(out), "new or empty; --resume goes on with one")
    out.mkdir(parents=True, exist_ok=True)
    return out


def _run(console: Console, directory: Path, config: RunConfig, capture: Path | None) -> int:
    with _preparing(console) as told:
        algorithm, params = make_training(config, told)
    device = jax.devices()[0]
    several = f"{config.seeds} trainings from seed" if config.seeds > 1 else "seed"
    console.print(
        f"[bold]{config.task}[/], {several} {config.seed}, {config.updates} updates of"
        f" {config.shapes.num_envs} x {config.shapes.num_steps} steps on {device.device_kind};"
        f" run directory {directory}",
        highlight=False,
        soft_wrap=True,
    )
    with console.status("compiling"):
        described = describe(params)
        params = jax.device_put(params)
        keys = trainings.keys(config.seed, config.seeds)
        begin = trainings.side_by_side(algorithm.init, config.seeds)
        checkpoints = directory / CHECKPOINTS
        if is_saved(checkpoints):
            like = jax.eval_shape(begin, keys, params)
            training, saved = restore(checkpoints, like, config.task)
            require_same(saved, described)
        else:
            training = jax.jit(begin)(keys, params)
        run = partial(continue_training, algorithm, updates=config.updates_per_call)
        spread = trainings.side_by_side(run, config.seeds)
        call = jax.jit(spread, donate_argnums=0)
        compiled = call.lower(training, params, config.hyperparameters).compile()

    def step(training: Training) -> tuple[Training, Metrics]:
        return compiled(training, params, config.hyperparameters)

    task_described = describe(make_task(config)[1])

    def write_agents(training: Training, where: Callable[[Path], Path]) -> None:
        for own, each in _own_runs(directory, config):
            agent = algorithm.agent(trainings.one_of(training, each.seed - config.seed))
            path = where(own)
            path.parent.mkdir(exist_ok=True)
            save_agent(path, agent, asdict(each), task_described)

    def stage(training: Training) -> None:
        steps = _done(training) * config.shapes.num_envs * config.shapes.num_steps
        with _writing(directory, training):
            write_agents(training, lambda own: history_path(own, steps))

    def keep(training: Training) -> None:
        with _writing(directory, training):
            # Agents first: after a stop in between, --resume writes them again.
            write_agents(training, lambda own: own / AGENT)
            save(checkpoints, training, config.task, described)

    training, stopped = _loop(console, directory, config, (keep, stage), step, training)
    own_runs = _own_runs(directory, config)
    learned = [read_metrics(own, config.updates) for own, _ in own_runs]
    draw_learning(directory / LEARNING, learned, config.task)
    if stopped:
        console.print(
            f"interrupted after {_done(training)} of {config.updates} updates; go on with\n"
            f"  plumejax train --resume {directory}",
            highlight=False,
            soft_wrap=True,
        )
        return 130
    for own, each in own_runs:
        report(console, own, load_agent(own), each, 1000)
        if capture is not None:
            keep_steps(of_run(own, each, 1000), capture)
        names = ", ".join(sorted(p.name for p in own.iterdir() if p.name != CONFIG))
        console.print(f"{own}: {CONFIG}, {names}", highlight=False, soft_wrap=True)
    if config.seeds > 1:
        console.print(f"{directory}: {LEARNING}, of all seeds", highlight=False, soft_wrap=True)
    return 0


@contextmanager
def _writing(directory: Path, training: Training) -> Iterator[None]:
    """Raise `PlumeError`, which says how to go on, where a file cannot be written."""
    try:
        yield
    except OSError as error:
        raise PlumeError(
            f"the checkpoint of update {_done(training)} could not be written ({error}); the"
            f" last one before it is whole: go on with plumejax train --resume {directory}"
        ) from error


def _own_runs(directory: Path, config: RunConfig) -> list[tuple[Path, RunConfig]]:
    """`(directory, config)` of each seed: of several, one within."""
    if config.seeds == 1:
        return [(directory, config)]
    numbers = range(config.seed, config.seed + config.seeds)
    return [(directory / f"seed{n}", replace(config, seed=n, seeds=1)) for n in numbers]


def _done(training: Training) -> int:
    """Updates done, of each of the trainings."""
    return int(training.update[0])


@contextmanager
def _preparing(console: Console) -> Iterator[Callable[[int, int], None]]:
    """A bar that shows once there is something to prepare."""
    columns = (TextColumn("rolling out plumes"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        bars: list[Any] = []

        def told(done: int, total: int) -> None:
            if not bars:
                bars.append(progress.add_task("", total=total))
            progress.update(bars[0], completed=done)

        yield told


def _loop(
    console: Console,
    directory: Path,
    config: RunConfig,
    write: tuple[Callable[[Training], None], Callable[[Training], None]],
    step: Callable[[Training], tuple[Training, Metrics]],
    training: Training,
) -> tuple[Training, bool]:
    """Calls until the updates are done or Ctrl-C; `(training, whether it was stopped)`.

    `write` are two: what keeps a checkpoint, and what keeps the agents as they are now.
    """
    keep, stage = write
    a_call = config.updates_per_call * config.shapes.num_envs * config.shapes.num_steps
    a_call *= config.seeds
    own_runs = _own_runs(directory, config)
    columns = (
        BarColumn(),
        TextColumn("{task.percentage:3.0f}%  {task.fields[rate]}"),
        TextColumn("success {task.fields[success]}  return {task.fields[ret]}"),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    saved_at, saved = time.perf_counter(), _done(training)
    for own, each in own_runs:
        if own != directory:
            own.mkdir(exist_ok=True)
            write_config(own, each)
        lines = read_metrics(own, saved)
        write_whole(own / METRICS, "".join(f"{line}\n" for line in lines))
    with _interrupts() as interrupted, Progress(*columns, console=console) as progress:
        bar = progress.add_task(
            "", total=config.updates, completed=saved, rate="", success="-", ret="-"
        )
        if saved == 0:
            stage(training)
        while _done(training) < config.updates and not interrupted:
            began = time.perf_counter()
            training, metrics = step(training)
            metrics = jax.device_get(metrics)
            seconds = time.perf_counter() - began
            before = _done(training) - config.updates_per_call
            every = []
            for number, (own, each) in enumerate(own_runs):
                rows = _rows(trainings.one_of(metrics, number), before, each)
                lines = [json.dumps({**row, "steps_per_second": a_call / seconds}) for row in rows]
                with (own / METRICS).open("a") as file:
                    file.writelines(f"{line}\n" for line in lines)
                every += rows
            _show(progress, bar, _done(training), a_call / seconds, every)
            if before * STAGES // config.updates < _done(training) * STAGES // config.updates:
                stage(training)
            if time.perf_counter() - saved_at > _SECONDS_BETWEEN_CHECKPOINTS:
                keep(training)
                saved_at, saved = time.perf_counter(), _done(training)
        if _done(training) > saved:
            keep(training)
    return training, _done(training) < config.updates


def _rows(metrics: Metrics, done: int, config: RunConfig) -> list[dict[str, Any]]:
    """One row an update. Raises `PlumeError` if the training has diverged."""
    rows = []
    for i in range(config.updates_per_call):
        row = jax.tree.map(lambda x, i=i: float(x[i]), metrics)
        if not np.all(np.isfinite(jax.tree.leaves(row))):
            raise PlumeError(
                f"the training of seed {config.seed} diverged in update {done + i + 1} (loss not"
                " finite); the last good checkpoint is kept. Try another seed, or a lower"
                " --hyper learning_rate"
            )
        episodes = row.episodes
        ended = max(episodes.episodes, 1.0)
        some = episodes.episodes > 0
        rows.append(
            {
                "update": done + i + 1,
                "steps": (done + i + 1) * config.shapes.num_envs * config.shapes.num_steps,
                "episodes": int(episodes.episodes),
                "success": episodes.found / ended if some else None,
                "return": episodes.reward / ended if some else None,
                "episode_steps": episodes.steps / ended if some else None,
                **{k: v for k, v in row._asdict().items() if k != "episodes"},
            }
        )
    return rows


def _show(
    progress: Progress, bar: Any, update: int, rate: float, rows: list[dict[str, Any]]
) -> None:
    ended = [row for row in rows if row["episodes"]]
    shown: dict[str, Any] = {"rate": f"{rate:,.0f} steps/s"}
    if ended:
        weights = [row["episodes"] for row in ended]
        for name, of in (("success", "success"), ("ret", "return")):
            shown[name] = f"{np.average([row[of] for row in ended], weights=weights):.2f}"
    progress.update(bar, completed=update, **shown)


@contextmanager
def _interrupts() -> Iterator[list[int]]:
    """A list that the first Ctrl-C fills; a second one is as usual."""
    seen: list[int] = []

    def note(number: int, frame: Any) -> None:
        seen.append(number)
        signal.signal(signal.SIGINT, before)

    try:
        before = signal.signal(signal.SIGINT, note)
    except ValueError as error:  # not the main thread
        raise ValidationError("plumejax train runs in the main thread of a process") from error
    try:
        yield seen
    finally:
        signal.signal(signal.SIGINT, before)
