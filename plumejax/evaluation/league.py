"""evaluation/league: tasks times policies, played on the same episodes; a table that says who won.

Each trial is written when it is done, and read again by the next run of the same league, so a crash
loses the one that was being played.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from plumejax.base.errors import ValidationError
from plumejax.base.files import write_whole
from plumejax.evaluation.results import Result, finite, read_result, write_result
from plumejax.evaluation.statistics import Estimate, Summary, normalised_time, summarise
from plumejax.evaluation.trials import Trial, make_task, require_agent, run_trial, subject
from plumejax.policies.catalogue import PERFECT

CELLS = "cells"
"""The folder of a league that holds the results of its trials."""


@dataclass(frozen=True)
class Cell:
    """A trial of a league and what came of it.

    Attributes:
      trial: what was played.
      result: the outcomes; None if the policy does not fit the task.
      reason: why it does not fit, else "".
      again: whether the result was there already.
    """

    trial: Trial
    result: Result | None
    reason: str = ""
    again: bool = False


def run_league(
    trials: Sequence[Trial],
    directory: Path,
    *,
    progress: Callable[[Trial, int], None] = lambda trial, ended: None,
) -> list[Cell]:
    """Play the trials that `directory` does not hold yet; every one in the order given.

    Trials of a task stand together, so that the task is made once.

    Raises:
      ValidationError: a task or policy that is not there, or two trials of one name.
    """
    for trial in trials:
        require_agent(trial.policy)
    names = [cell_name(trial) for trial in trials]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValidationError(f"a league plays each policy on a task once, not {', '.join(twice)}")
    (directory / CELLS).mkdir(parents=True, exist_ok=True)
    cells, made_of, task = [], None, None
    for trial, name in zip(trials, names, strict=True):
        of = (trial.task, str(trial.overrides), str(trial.static), trial.plumes, trial.seed)
        if of != made_of:
            made_of, task = of, make_task(trial)
        cells.append(_cell(trial, task, directory / CELLS / f"{name}.npz", progress))
    return cells


def cell_name(trial: Trial) -> str:
    """What the file of a trial is called, but for its ending."""
    return f"{trial.task}--{trial.label}".replace(":", "-")


def _cell(trial: Trial, task: Any, path: Path, progress: Callable[[Trial, int], None]) -> Cell:
    if path.exists():
        held = read_result(path)
        if held.subject == subject(trial, *task):
            progress(trial, trial.episodes)
            return Cell(trial, held, again=True)
    try:
        result = run_trial(trial, task, progress=lambda ended: progress(trial, ended))
    except ValidationError as error:
        progress(trial, trial.episodes)
        return Cell(trial, None, reason=str(error))
    write_result(path, result)
    return Cell(trial, result)


@dataclass(frozen=True)
class Row:
    """A line of the table.

    Attributes:
      task, policy: of the trial.
      summary: None if the policy does not fit.
      median_arrival: steps after which half have arrived; infinite if they never do.
      normalised_time: fewest over actual steps, the fewest those of the perfect agent in the same
        episodes; NaN without it.
      reason: why the policy does not fit.
    """

    task: str
    policy: str
    summary: Summary | None
    median_arrival: float
    normalised_time: Estimate
    reason: str


def rows(cells: Sequence[Cell]) -> list[Row]:
    """The table: by task in the order given, in each the best first, by success, then by time."""
    perfect = {c.trial.task: c.result for c in cells if c.trial.policy == PERFECT}
    lines = [_row(cell, perfect.get(cell.trial.task)) for cell in cells]
    order = list(dict.fromkeys(line.task for line in lines))

    def rank(line: Row) -> tuple[Any, ...]:
        s = line.summary
        best = (1, 0.0, 0.0) if s is None else (0, -round(s.success, 4), s.restricted_mean)
        return (order.index(line.task), *best, line.policy)

    return sorted(lines, key=rank)


def _row(cell: Cell, perfect: Result | None) -> Row:
    trial, result = cell.trial, cell.result
    policy = trial.label
    nothing = Estimate(float("nan"), float("nan"))
    if result is None:
        return Row(trial.task, policy, None, float("nan"), nothing, cell.reason)
    ours = result.outcomes
    time = nothing
    if perfect is not None:
        time = normalised_time(
            ours.found, np.minimum(perfect.outcomes.steps, ours.steps), ours.steps
        )
    summary = summarise(ours, result.subject.radius)
    share = np.sort(np.where(ours.found, ours.steps, np.inf))
    half = float(share[(len(share) - 1) // 2])
    return Row(trial.task, policy, summary, half, time, "")


def markdown(cells: Sequence[Cell]) -> str:
    """The tables, a heading for each task."""
    text, task = [], None
    by_task = {cell.trial.task: cell for cell in cells if cell.result is not None}
    for row in rows(cells):
        if row.task != task:
            task = row.task
            text += ["", f"### `{task}`", "", *_head(by_task.get(task))]
        text.append(_line(row))
    return "\n".join([*text[1:], ""])


def _head(cell: Cell | None) -> list[str]:
    about = []
    if cell is not None and cell.result is not None:
        of = cell.result.subject
        shared = f", {of.plumes} plumes shared by all" if of.plumes else ""
        about = [
            f"Found within {of.radius:g} in at most {of.max_steps} steps; {of.episodes} episodes,"
            f" the same for every policy (seed {of.seed}{shared}).",
            "",
        ]
    return [
        *about,
        "| policy | success | 95 % | median arrival | mean if found | restricted mean | time g"
        " | SPL | lost | cycles |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]


def _line(row: Row) -> str:
    s = row.summary
    if s is None:
        return f"| {row.policy} | does not fit: {row.reason} |" + " |" * 8
    numbers = [
        f"{s.success:.3f}",
        f"{s.success_low:.3f} to {s.success_high:.3f}",
        "never" if np.isinf(row.median_arrival) else f"{row.median_arrival:.0f}",
        _pm(s.mean_steps_found, s.error_steps_found),
        _pm(s.restricted_mean, s.error_restricted_mean),
        "" if np.isnan(row.normalised_time.value) else f"{row.normalised_time.value:.2f}",
        "" if np.isnan(s.spl) else f"{s.spl:.2f}",
        f"{s.failed:.3f}",
        "" if np.isnan(s.cycled) else f"{s.cycled:.3f}",
    ]
    return f"| {row.policy} | " + " | ".join(numbers) + " |"


def _pm(value: float, error: float) -> str:
    if np.isnan(value):
        return "none"
    return f"{value:.1f}" if np.isnan(error) else f"{value:.1f} ± {error:.1f}"


def write_table(directory: Path, cells: Sequence[Cell]) -> None:
    """Write league.md and league.json into `directory`."""
    write_whole(directory / "league.md", markdown(cells))
    table = [finite(asdict(row)) for row in rows(cells)]
    write_whole(directory / "league.json", json.dumps(table, indent=1) + "\n")
