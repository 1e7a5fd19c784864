"""cli/train: `plumejax train`, from a task to a run directory."""

import json
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal

import jax
import numpy as np
import tyro
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from plumejax.base.errors import PlumeError, ValidationError, near, require
from plumejax.base.files import write_whole
from plumejax.cli.scoring import report
from plumejax.learning.checkpoints import require_same, restore, save
from plumejax.learning.ppo import Hyperparameters, Metrics, Shapes, Training, continue_training
from plumejax.learning.runs import (
    CHECKPOINTS,
    CONFIG,
    METRICS,
    RunConfig,
    acting,
    fitting_shapes,
    make_task,
    make_training,
    parse_settings,
    read_config,
    read_metrics,
    write_config,
)

_SECONDS_BETWEEN_CHECKPOINTS = 10.0
_UPDATES_PER_CALL = 5
_TASK, _STEPS = "PlumeSearchLocal-v0", 1_500_000


def train(
    task: tyro.conf.Positional[str] = _TASK,
    *,
    seed: int = 0,
    steps: int = _STEPS,
    num_envs: int | None = None,
    out: Path | None = None,
    memory: Literal["none", "stack", "gru"] = "stack",
    data: Path | None = None,
    set: tuple[str, ...] = (),
    hyper: tuple[str, ...] = (),
    resume: Path | None = None,
) -> int:
    """Train an agent with PPO, evaluate it beside baselines, and draw what it does.

    Ctrl-C stops after the call that is running and keeps a checkpoint; go on with --resume.

    Args:
        task: id of the task, one of `plumejax list`.
        seed: of the training.
        steps: environment steps, rounded up to whole calls.
        num_envs: episodes side by side; by default 1024, or what large observations leave room for.
        out: run directory, new or empty; by default runs/TASK-seedSEED-TIME.
        memory: what the agent remembers with: nothing, the last few steps, or a recurrent unit.
        data: path of a recording, for tasks that play one.
        set: numbers of the task, as in --set plume.sigma=8 ending.radius=3.
        hyper: numbers of PPO, as in --hyper entropy=0.01 learning_rate=1e-3.
        resume: run directory of a training to go on with; all other choices are as they were.
    """
    console = Console()
    if resume is not None:
        given = {
            "TASK": task != _TASK,
            "--seed": seed != 0,
            "--steps": steps != _STEPS,
            "--num-envs": num_envs is not None,
            "--out": out is not None,
            "--memory": memory != "stack",
            "--data": data is not None,
            "--set": set != (),
            "--hyper": hyper != (),
        }
        more = ", ".join(name for name, was in given.items() if was)
        require(not more, "--resume", f"{resume} with {more}", "alone: a run keeps its choices")
        directory, config = resume, read_config(resume)
    else:
        config = _new_config(task, seed, steps, num_envs, memory, data, set, hyper)
        directory = _new_directory(out, config)
        write_config(directory, config)
    return _run(console, directory, config)


def _new_config(
    task: str,
    seed: int,
    steps: int,
    num_envs: int | None,
    memory: str,
    data: Path | None,
    settings: tuple[str, ...],
    hyper: tuple[str, ...],
) -> RunConfig:
    require(0 <= seed < 2**31, "--seed", seed, "0 <= seed < 2**31")
    require(steps > 0, "--steps", steps, "> 0")
    numbers = _hyperparameters(parse_settings(hyper, "--hyper"))
    shapes = Shapes(memory=memory)
    if num_envs is not None:
        shapes = replace(shapes, num_envs=num_envs)
    config = RunConfig(
        task=task,
        seed=seed,
        updates=1,
        updates_per_call=_UPDATES_PER_CALL,
        data=None if data is None else str(data.resolve()),
        settings=parse_settings(settings),
        shapes=shapes,
    )
    if num_envs is None:
        config = fitting_shapes(config)
    else:
        make_task(config)
    a_call = config.updates_per_call * config.shapes.num_envs * config.shapes.num_steps
    updates = -(-steps // a_call) * config.updates_per_call
    numbers = numbers.replace(updates=float(updates))
    return replace(config, updates=updates, hyperparameters=numbers)


def _hyperparameters(given: dict[str, Any]) -> Hyperparameters:
    known = [field.name for field in fields(Hyperparameters) if field.name != "updates"]
    for name, value in given.items():
        if name not in known:
            hint = near(name, known)
            raise ValidationError(
                f"--hyper {name}: no such number.{hint} There are: {', '.join(known)}"
            )
        good = type(value) in (int, float) and 0 <= value < float("inf")
        require(good, f"--hyper {name}", value, "a number >= 0")
    return Hyperparameters(**{name: float(value) for name, value in given.items()})


def _new_directory(out: Path | None, config: RunConfig) -> Path:
    if out is None:
        now = datetime.now().strftime("%Y%m%d-%H%M%S")
        out = Path("runs") / f"{config.task}-seed{config.seed}-{now}"
    taken = out.exists() and (not out.is_dir() or any(out.iterdir()))
    require(not taken, "--out", str(out), "new or empty; --resume goes on with one")
    out.mkdir(parents=True, exist_ok=True)
    return out


def _run(console: Console, directory: Path, config: RunConfig) -> int:
    algorithm, params = make_training(config)
    device = jax.devices()[0]
    console.print(
        f"[bold]{config.task}[/], seed {config.seed}, {config.updates} updates of"
        f" {config.shapes.num_envs} x {config.shapes.num_steps} steps on {device.device_kind};"
        f" run directory {directory}",
        highlight=False,
        soft_wrap=True,
    )
    with console.status("compiling"):
        key = jax.random.key(config.seed)
        checkpoints = directory / CHECKPOINTS
        if checkpoints.is_dir():
            like = jax.eval_shape(algorithm.init, key, params)
            training, saved = restore(checkpoints, like, config.task)
            require_same(saved, params)
        else:
            training = jax.jit(algorithm.init)(key, params)
        lines = read_metrics(directory, int(training.update))
        write_whole(directory / METRICS, "".join(f"{line}\n" for line in lines))
        call = jax.jit(
            partial(continue_training, algorithm, updates=config.updates_per_call), donate_argnums=0
        )
        compiled = call.lower(training, params, config.hyperparameters).compile()

    def step(training: Training) -> tuple[Training, Metrics]:
        return compiled(training, params, config.hyperparameters)

    training, stopped = _loop(console, directory, config, params, step, training)
    if stopped:
        console.print(
            f"interrupted after {int(training.update)} of {config.updates} updates; go on with\n"
            f"  plumejax train --resume {directory}",
            highlight=False,
            soft_wrap=True,
        )
        return 130
    env, task_params = make_task(config)
    agent = acting(algorithm.agent(training), env)
    report(console, directory, env, task_params, agent, config.task, config.seed, 1000, config.data)
    names = ", ".join(sorted(p.name for p in directory.iterdir() if p.name != CONFIG))
    console.print(f"{directory}: {CONFIG}, {names}", highlight=False, soft_wrap=True)
    return 0


def _loop(
    console: Console,
    directory: Path,
    config: RunConfig,
    params: Any,
    step: Any,
    training: Training,
) -> tuple[Training, bool]:
    """Calls until the updates are done or Ctrl-C; `(training, whether it was stopped)`."""
    a_call = config.updates_per_call * config.shapes.num_envs * config.shapes.num_steps
    columns = (
        BarColumn(),
        TextColumn("{task.percentage:3.0f}%  {task.fields[rate]}"),
        TextColumn("success {task.fields[success]}  return {task.fields[ret]}"),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    save_now = partial(save, directory / CHECKPOINTS, task=config.task, params=params)
    saved_at, saved = time.perf_counter(), int(training.update)
    with _interrupts() as interrupted, Progress(*columns, console=console) as progress:
        bar = progress.add_task(
            "", total=config.updates, completed=saved, rate="", success="-", ret="-"
        )
        while int(training.update) < config.updates and not interrupted:
            began = time.perf_counter()
            training, metrics = step(training)
            metrics = jax.device_get(metrics)
            seconds = time.perf_counter() - began
            rows = _rows(metrics, int(training.update) - config.updates_per_call, config)
            lines = [json.dumps({**row, "steps_per_second": a_call / seconds}) for row in rows]
            with (directory / METRICS).open("a") as file:
                file.writelines(f"{line}\n" for line in lines)
            _show(progress, bar, int(training.update), a_call / seconds, rows)
            if time.perf_counter() - saved_at > _SECONDS_BETWEEN_CHECKPOINTS:
                save_now(training)
                saved_at, saved = time.perf_counter(), int(training.update)
        if int(training.update) > saved:
            save_now(training)
    return training, int(training.update) < config.updates


def _rows(metrics: Metrics, done: int, config: RunConfig) -> list[dict[str, Any]]:
    """One row an update. Raises `PlumeError` if the training has diverged."""
    rows = []
    for i in range(config.updates_per_call):
        row = jax.tree.map(lambda x, i=i: float(x[i]), metrics)
        if not np.all(np.isfinite(jax.tree.leaves(row))):
            raise PlumeError(
                f"the training diverged in update {done + i + 1} (loss not finite); the last good"
                " checkpoint is kept. Try another seed or fewer steps a training"
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
