"""benchmarks/conformance: a million random steps of every named task, in which no rule is broken.

    python -m benchmarks.conformance [IDS...] [--steps N] [--data PATH]

The rules are those of `plumejax.testing.check_steps`; beside them the whole of `check_task`, and
through which numbers a step has a gradient (`check_gradients`). Writes
benchmarks/results/conformance.json after each id, and the table benchmarks/conformance.md. Ids that
are there already, in this version and with as many steps, are not run again, so a run that was
stopped goes on where it was; name them to run them again.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import jax
import tyro
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

import plumejax
from plumejax import testing
from plumejax.base.files import write_whole

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "conformance.json"
PAGE = HERE / "conformance.md"

STARTS = 64
"""Starts that the episodes share where a plume blows before an episode starts."""


def main(
    ids: tyro.conf.Positional[tuple[str, ...]] = (),
    *,
    steps: int = 1_000_000,
    data: Path | None = None,
    out: Path = RESULTS,
    page: Path = PAGE,
) -> None:
    """Run random steps of named tasks, count broken rules, and write what was found.

    Args:
      ids: of the tasks; by default all that have no result yet.
      steps: random steps of each.
      data: path of a recording, for tasks that play one; without it they are left out.
      out: JSON to write.
      page: the table to write.
    """
    tasks = plumejax.registered_tasks()
    unknown = [id for id in ids if id not in tasks]
    if unknown:
        sys.exit(f"there are no tasks {', '.join(unknown)}")
    rows = json.loads(out.read_text()) if out.exists() else {}
    rows = {id: rows[id] for id in tasks if id in rows}
    left = list(ids) or [id for id in tasks if not _is_done(rows.get(id), tasks[id], steps)]
    left = [id for id in left if data is not None or not tasks[id].needs]
    columns = (BarColumn(), TextColumn("{task.percentage:3.0f}%"), TimeElapsedColumn())
    with Progress(*columns, TextColumn("{task.description}"), transient=True) as progress:
        bar = progress.add_task("", total=steps * len(left))
        for done, id in enumerate(left):
            progress.update(bar, description=id, completed=steps * done)

            def tick(count: testing.Count, done: int = done) -> None:
                progress.update(bar, completed=steps * done + min(count.steps, steps))

            needed = {"data": data} if tasks[id].needs else {}
            rows[id] = {"version": tasks[id].version, **measure(id, needed, steps, tick)}
            rows = {name: rows[name] for name in tasks if name in rows}
            write_whole(out, json.dumps(rows, indent=1) + "\n")
            write_whole(page, table(rows))
    console = Console()
    broken = {id: row["broken"] for id, row in rows.items() if row["broken"]}
    console.print(f"{len(rows)} of {len(tasks)} tasks, {len(left)} in this run; broken: {broken}")


def measure(id: str, needed: dict[str, Any], steps: int, tick: Any) -> dict[str, Any]:
    """What random steps of one task come to."""
    env, params = plumejax.make(id, **needed)
    starts = STARTS if getattr(getattr(env, "plume", None), "warmup", 0) else None
    seen = [testing.Count(0, 0, {})]

    def watch(count: testing.Count) -> None:
        seen.append(count)
        tick(count)

    began = time.perf_counter()
    # Rounding grows in the thousands of steps that a plume blows, most where filaments are thin.
    testing.check_task(env, params, rtol=1e-2 if starts else testing.RTOL, random_steps=0)
    try:
        testing.check_steps(env, params, jax.random.key(1), steps, starts=starts, progress=watch)
    except AssertionError:
        if not seen[-1].broken:
            raise
    count, seconds = seen[-1], time.perf_counter() - began
    norms = testing.check_gradients(env, params, jax.random.key(2))
    return {
        "steps": count.steps,
        "episodes": count.episodes,
        "starts": starts,
        "broken": count.broken,
        "gradient": [path for path, norm in norms.items() if norm],
        "seconds": round(seconds, 1),
    }


def table(rows: dict[str, dict[str, Any]]) -> str:
    """The page, in Markdown."""
    lines = [
        "# Random steps of every task",
        "",
        "Every task passes `plumejax.testing.check_task`. Then random agents act, and in every "
        "step every rule of `check_steps` is looked at. "
        f"Where an episode starts with a plume that has blown for a while, {STARTS} starts serve "
        "all episodes (*). The last column has the numbers through which three steps have a "
        "gradient that is not 0; all gradients are finite. Made by "
        "`python -m benchmarks.conformance`.",
        "",
        "| id | version | steps | episodes ended | rules broken | a gradient through |",
        "|---|---|---|---|---|---|",
    ]
    for id, row in rows.items():
        broken = "; ".join(f"{name}: {n}" for name, n in row["broken"].items()) or "0"
        through = ", ".join(f"`{path}`" for path in row["gradient"]) or "none"
        star = "*" if row["starts"] else ""
        lines.append(
            f"| {id} | {row['version']} | {row['steps']:,} | {row['episodes']:,}{star} | {broken}"
            f" | {through} |"
        )
    return "\n".join(lines) + "\n"


def _is_done(row: Any, task: plumejax.Task, steps: int) -> bool:
    return row is not None and row["version"] == task.version and row["steps"] >= steps


if __name__ == "__main__":
    tyro.cli(main)
