"""benchmarks/scores: what a random and a perfect agent reach in each named search.

    python -m benchmarks.scores [IDS...] [--episodes N] [--data PATH]

Both play the same episodes, told everything (`plumejax.search.truth`), so that they begin alike.
Writes `plumejax/search/scores.json` after each id, and from it `benchmarks/scores.md`; ids that are
not asked for keep what they had. A fully observed twin has the scores of its base.
"""

import json
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import tyro
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import plumejax
from plumejax.base.files import write_whole
from plumejax.evaluation.episodes import stream
from plumejax.evaluation.statistics import wilson
from plumejax.policies.greedy import greedy
from plumejax.policies.reactive import Random
from plumejax.search.scores import FILE
from plumejax.search.truth import told

PAGE = Path(__file__).with_name("scores.md")
EPISODES, FEW = 256, 64
"""Episodes of an id, and of one whose plume blows before an episode starts."""

LANES = 64
"""Episodes at a time: a plume of particles each takes memory."""


def main(
    ids: tyro.conf.Positional[tuple[str, ...]] = (),
    *,
    episodes: int = 0,
    data: Path | None = None,
    out: Path = FILE,
) -> None:
    """Measure the scores of named searches and print one table.

    Args:
      ids: of the tasks; by default all but those that need data when none are given.
      episodes: of each agent and task; by default 256, and 64 of a plume that blows for a while
        before an episode starts.
      data: path of a recording, for tasks that play one.
      out: JSON to write.
    """
    tasks = {
        id: t
        for id, t in plumejax.registered_tasks().items()
        if not t.twin_of and t.family == "search"
    }
    unknown = [id for id in ids if id not in tasks]
    if unknown:
        sys.exit(f"{', '.join(unknown)}: no tasks, or twins, which have the scores of their base")
    chosen = ids or [id for id, t in tasks.items() if data is not None or not t.needs]
    made = {}
    for id in chosen:
        needed = {"data": data} if "data" in tasks[id].needs and data is not None else {}
        made[id] = plumejax.make(id, **needed)
    count = {id: episodes or _episodes(env) for id, (env, _) in made.items()}
    columns = (BarColumn(), TextColumn("{task.percentage:3.0f}%"), TimeElapsedColumn())
    with Progress(*columns, TextColumn("{task.description}"), transient=True) as progress:
        bar = progress.add_task("", total=2 * sum(count.values()))
        rows = {}
        for id, (env, params) in made.items():
            progress.update(bar, description=id)
            agents = measure(env, params, count[id], lambda n: progress.advance(bar, n))
            rows[id] = {"version": tasks[id].version, "episodes": count[id], **agents}
            record(out, {id: rows[id]}, list(tasks))
    console = Console()
    if not console.is_terminal:
        console = Console(width=120)
    console.print(table(rows))
    write_whole(PAGE, page(json.loads(out.read_text())))


def page(rows: dict[str, Any]) -> str:
    """The rows as Markdown, for those who want to know what a return means."""
    lines = [
        "# What returns mean",
        "",
        "Mean returns of an agent that acts at random and of one that is told everything and goes"
        " straight to the source (`plumejax.policies.greedy`), and the share of episodes in which"
        " each finds it, by `python -m benchmarks.scores`. A return r is normalised to"
        " (r - random) / (perfect - random), 0 for the one and 1 for the other:"
        " `plumejax.normalised_return(id, r)`. The fully observed twin of a task has its scores.",
        "",
        "| task | version | episodes | random: return | found | perfect: return | found | steps |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for id, row in rows.items():
        cells = [f"`{id}`", str(row["version"]), str(row["episodes"])]
        for name in ("random", "perfect"):
            s = row[name]
            cells += [
                f"{s['mean_return']:.3f} ± {s['standard_error']:.3f}",
                f"{s['success']:.3f} ({s['success_low']:.3f} to {s['success_high']:.3f})",
            ]
        cells.append(f"{row['perfect']['median_steps']:.0f}")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, ""])


def measure(env: Any, params: Any, episodes: int, progress: Any) -> dict[str, dict[str, float]]:
    """The scores of the two agents by name, on one and the same set of episodes."""
    key = jax.random.key(0)
    agents = {"random": Random(env.action_space(params)), "perfect": greedy(env, params)}
    search, numbers = told(env, params)
    return {
        name: score(stream(search, agent, key, numbers, episodes, lanes=LANES, progress=progress))
        for name, agent in agents.items()
    }


def score(outcomes: Any) -> dict[str, float]:
    """The fields of a `search.scores.Score`, to six digits."""
    found, steps, reward = (
        np.asarray(x) for x in (outcomes.found, outcomes.steps, outcomes.reward)
    )
    low, high = wilson(int(found.sum()), found.size)
    fields = {
        "mean_return": reward.mean(dtype=float),
        "standard_error": reward.std(ddof=1, dtype=float) / np.sqrt(reward.size),
        "success": found.mean(),
        "success_low": low,
        "success_high": high,
        "median_steps": np.median(steps),
    }
    return {name: float(f"{value:.6g}") for name, value in fields.items()}


def record(path: Path, rows: dict[str, Any], order: list[str]) -> None:
    """Put `rows` among those in the JSON at `path`, in this order of ids; others are left out."""
    known = json.loads(path.read_text()) if path.exists() else {}
    known |= rows
    content = {id: known[id] for id in order if id in known}
    write_whole(path, json.dumps(content, indent=1) + "\n")


def table(rows: dict[str, Any]) -> Table:
    """The rows for people: mean return, its standard error, success and steps of both agents."""
    shown = Table("task", "episodes")
    for name in ("random", "", "", "perfect", "", ""):
        shown.add_column(name, justify="right", no_wrap=True)
    for id, row in rows.items():
        cells = []
        for name in ("random", "perfect"):
            s = row[name]
            mean = f"{s['mean_return']:.3f} +- {s['standard_error']:.3f}"
            cells += [mean, f"{s['success']:.3f}", f"{s['median_steps']:.0f}"]
        shown.add_row(id, str(row["episodes"]), *cells)
    return shown


def _episodes(env: Any) -> int:
    return FEW if getattr(env.plume, "warmup", 0) > 0 else EPISODES


if __name__ == "__main__":
    tyro.cli(main)
