"""cli/league: `plumejax league`, tasks times policies on the same episodes."""

from pathlib import Path
from typing import Any

import tyro
from matplotlib.figure import Figure
from rich.console import Console
from rich.markdown import Markdown

from plumejax.base.errors import require
from plumejax.base.registry import find
from plumejax.cli.evaluate import draw_arrivals
from plumejax.cli.plume_named import bar
from plumejax.evaluation.league import CELLS, Cell, markdown, rows, run_league, write_table
from plumejax.evaluation.results import Result, dataset, write_dataset
from plumejax.evaluation.trials import Trial, parse_arguments
from plumejax.learning.runs import parse_settings
from plumejax.viewing.figures import save
from plumejax.viewing.plots import league_chart


def league(
    tasks: tyro.conf.Positional[tuple[str, ...]],
    *,
    policies: tuple[str, ...],
    out: Path,
    episodes: int = 10_000,
    seed: int = 0,
    plumes: int = 0,
    set: tuple[str, ...] = (),
    data: Path | None = None,
    episodes_out: Path | None = None,
) -> int:
    """Play every policy on every task, all on the same episodes, and write who did how well.

    Writes league.md, league.json, league-TASK.png and arrivals-TASK.png into the directory. What is
    finished stays in its folder cells, and is not played again by the same command.

    Args:
        tasks: ids.
        policies: names, run directories, or files of agents or learned tables; arguments after a
            colon, as in infotaxis:rate=1,wavelength=2.
        out: the directory.
        episodes: of each policy on each task.
        seed: of the episodes.
        plumes: realisations of a changing plume, rolled out once and shared by the episodes; by
            default each has its own.
        set: numbers of every task, as in --set max_steps=500.
        data: a recording for tasks that play one.
        episodes_out: write every episode to this *.nc or *.zarr.
    """
    require(tasks, "TASKS", tasks, "at least one id")
    for task in tasks:
        find(task)
    require(episodes > 0, "--episodes", episodes, "> 0")
    require(0 <= seed < 2**31, "--seed", seed, "0 <= seed < 2**31")
    require(plumes >= 0, "--plumes", plumes, ">= 0")
    good = episodes_out is None or episodes_out.suffix in (".nc", ".zarr")
    require(good, "--episodes-out", str(episodes_out), "a file named *.nc or *.zarr")
    played: dict[str, Any] = {
        "episodes": episodes,
        "seed": seed,
        "overrides": parse_settings(set),
        "static": {} if data is None else {"data": str(data)},
        "plumes": plumes,
    }
    trials = [
        Trial(task, policy, arguments=arguments, **played)
        for task in tasks
        for policy, arguments in map(_parsed, policies)
    ]
    console = Console()
    with bar(console) as shown:
        count = shown.add_task("", total=episodes * len(trials))

        def told(trial: Trial, ended: int) -> None:
            name = f"{trial.label} on {trial.task}"
            shown.update(count, advance=ended, description=name)
            over = ended > 0 and shown.tasks[count].completed % episodes == 0
            if over and not console.is_terminal:
                # A log shows no bar.
                console.print(f"done: {name}", highlight=False, soft_wrap=True)

        try:
            cells = run_league(trials, out, progress=told)
        except KeyboardInterrupt:
            shown.stop()
            console.print(
                f"{out / CELLS} has what is finished; the same command goes on from there",
                highlight=False,
                soft_wrap=True,
            )
            raise
    write_table(out, cells)
    _draw(out, cells)
    if episodes_out is not None:
        write_dataset(episodes_out, dataset(_results(cells).values()))
    console.print(Markdown(markdown([cell for cell in cells if cell.result is not None])))
    for cell in cells:
        if cell.result is None:
            line = f"{cell.trial.label} does not fit {cell.trial.task}: {cell.reason}"
            console.print(line, highlight=False, soft_wrap=True)
    again = sum(cell.again for cell in cells)
    console.print(f"{out}: the tables and pictures; {again} of {len(cells)} were played before")
    return 0


def _results(cells: list[Cell]) -> dict[tuple[str, str], Result]:
    """By task and policy, of those that fit."""
    return {(c.trial.task, c.trial.label): c.result for c in cells if c.result is not None}


def _draw(out: Path, cells: list[Cell]) -> None:
    """Two pictures of each task, the best policy first."""
    results, best_first = _results(cells), rows(cells)
    for task in dict.fromkeys(row.task for row in best_first):
        ranked = [row for row in best_first if row.task == task]
        figure = Figure(figsize=(8, 1.6 + 0.25 * len(ranked)), layout="constrained")
        league_chart(figure.subplots(), ranked)
        figure.suptitle(task)
        save(figure, out / f"league-{task}.png")
        names = [row.policy for row in ranked if row.summary]
        laws = {name: results[task, name] for name in names}
        if laws:
            draw_arrivals(out / f"arrivals-{task}.png", laws, task)


def _parsed(spec: str) -> tuple[str, dict[str, Any]]:
    """`("infotaxis", {"rate": 1})` of "infotaxis:rate=1"."""
    name, _, given = spec.partition(":")
    return name, parse_arguments([part for part in given.split(",") if part], "--policies")
