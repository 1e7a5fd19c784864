"""benchmarks/finite_state: `python -m benchmarks.finite_state`: what a little memory is worth.

Optimises finite-state controllers of 1 to 4 memory states on the two maps of `FiniteMemory-*-v0`,
and writes each number of states to benchmarks/results/finite_state.json as it is done; rerun, it
goes on with those that are missing. Then it draws what each costs, and paths, and writes
benchmarks/finite_state.md.
"""

import json
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import tyro
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import plumejax
from benchmarks import report
from plumejax.base.files import write_whole
from plumejax.evaluation.episodes import play, trace
from plumejax.learning import finite_state as fs
from plumejax.viewing.figures import save

RESULTS = Path(__file__).parent / "results" / "finite_state.json"

PAGE = Path(__file__).with_name("finite_state.md")

TASKS = ("FiniteMemory-Cosh-v0", "FiniteMemory-Bessel-v0")

PUBLISHED = (0.4385, 0.1611, 0.1066, 0.0792)
"""By the number of states: Verano, Panizon, Celani 2023 at their lowest threshold, on a map of
theirs, made of images."""


def main(
    *,
    out: Path = RESULTS,
    memories: int = 4,
    starts: int = 32,
    iterations: int = 40,
    further: int = 60,
    episodes: int = 500,
    seed: int = 0,
    processes: int = os.cpu_count() or 1,
) -> None:
    """Optimise controllers of 1, 2, ... memory states, and play them.

    There are many local optima, so each is trained from several starts, on a map of cells twice as
    wide (`finite_state.halved`): half of them random, half the best controller of one state less
    with a twin of a state drawn, a tenth of it random; for M states `starts // M` starts. The best
    one is then trained on the map itself.

    Args:
      out: JSON to write and to go on from; the picture goes beside it.
      memories: the most states.
      starts: of one state, all of them random.
      iterations: factorisations from each start, at most.
      further: factorisations of the best one on the map itself, at most.
      episodes: played by each, to compare with the exact value.
      seed: of starts and episodes.
      processes: at work side by side.
    """
    settings = {"starts": starts, "iterations": iterations, "further": further, "seed": seed}
    rows = _done(out, settings)
    console = Console()
    columns = (BarColumn(), TextColumn("{task.percentage:3.0f}%"), TimeElapsedColumn())
    pool = ProcessPoolExecutor(processes, get_context("spawn"))
    with pool, Progress(*columns, TextColumn("{task.description}"), console=console) as progress:
        counts = range(1, memories + 1)
        work = {count: _number(starts, count) + 1 for count in counts}
        bar = progress.add_task("", total=len(TASKS) * sum(work.values()))

        def tick(what: str) -> None:
            progress.update(bar, advance=1, description=what)

        for count in counts:
            for name in TASKS:
                if (name, count) in rows:
                    progress.update(bar, advance=work[count])
                    continue
                before = rows.get((name, count - 1))
                row = optimise(pool, name, count, before, settings, tick)
                rows[name, count] = {**row, **played(name, row["logits"], episodes, seed)}
                content = {"settings": settings, "published": PUBLISHED, "rows": [*rows.values()]}
                report.write(out, content)
                value = rows[name, count]["value"]
                console.print(f"{name}, {count} states: {value:.4f}", highlight=False)
    console.print(table(list(rows.values())))
    figure = picture(list(rows.values()), seed)
    save(figure, out.with_suffix(".png"))
    written = [out, out.with_suffix(".png")]
    if out == RESULTS:
        write_whole(PAGE, page(list(rows.values())))
        written.append(PAGE)
    for path in written:
        console.print(str(path), highlight=False, soft_wrap=True)


def _done(path: Path, settings: dict[str, Any]) -> dict[tuple[str, int], dict[str, Any]]:
    """The rows that are there already, if they were made with the same settings."""
    if not path.is_file():
        return {}
    content = json.loads(path.read_text())
    if content["settings"] != settings:
        return {}
    return {(row["task"], row["memories"]): row for row in content["rows"]}


def _number(starts: int, memories: int) -> int:
    return max(1, starts // memories)


def optimise(
    pool: Any,
    name: str,
    memories: int,
    before: dict[str, Any] | None,
    settings: dict[str, Any],
    tick: Callable[[str], None],
) -> dict[str, Any]:
    """The row of the best controller found; `before` is that of one state less."""
    search = fs.problem(*plumejax.make(name))
    wide = fs.halved(search)
    key = jax.random.fold_in(jax.random.key(settings["seed"]), memories)
    number = _number(settings["starts"], memories)
    random = number if before is None else number - number // 2
    starts = []
    for index in range(number):
        of_start = jax.random.fold_in(key, index)
        if before is None or index < random:
            starts.append(fs.random_logits(of_start, memories, spread=0.5))
        else:
            starts.append(grown(of_start, np.asarray(before["logits"])))
    jobs = [pool.submit(trained, wide, logits, settings["iterations"]) for logits in starts]
    for _ in as_completed(jobs):
        tick(f"{name}, {memories} states")
    first, seconds = zip(*(job.result() for job in jobs), strict=True)
    best = min(first, key=lambda training: float(training.value))
    last, more = pool.submit(trained, search, best.logits, settings["further"]).result()
    tick(f"{name}, {memories} states")
    return {
        "task": name,
        "memories": memories,
        "value": float(last.value),
        "factor": None if before is None else before["value"] / float(last.value),
        "random_starts": [float(t.value) for t in first[:random]],
        "grown_starts": [float(t.value) for t in first[random:]],
        "iterations": [sum(int(t.iterations) for t in first), int(last.iterations)],
        "cpu_seconds": sum(seconds) + more,
        "logits": np.round(last.logits, 6).tolist(),
    }


def grown(key: jax.Array, logits: np.ndarray) -> np.ndarray:
    """A controller with one state more than that of `logits`; the key is consumed."""
    state_key, noise_key = jax.random.split(key)
    state = int(jax.random.randint(state_key, (), 0, len(logits)))
    return fs.disturbed(noise_key, fs.split(logits, state))


def trained(search: fs.Problem, logits: np.ndarray, iterations: int) -> tuple[fs.Training, float]:
    """The training from `logits`, and the CPU-seconds that it took."""
    began = time.process_time()
    return fs.train(search, fs.begin(search, logits), iterations), time.process_time() - began


def played(name: str, logits: Any, episodes: int, seed: int) -> dict[str, float]:
    """Mean and standard error of `1 - gamma^T` over episodes, and the part that found."""
    env, params = plumejax.make(name)
    policy = fs.FiniteStateController(jnp.asarray(logits, jnp.float32))
    outcomes = play(env, policy, jax.random.key(seed), params, episodes)
    found = np.asarray(outcomes.found)
    cost = 1 - np.where(found, fs.GAMMA ** np.asarray(outcomes.steps, np.float64), 0.0)
    return {
        "played": float(cost.mean()),
        "played_error": float(cost.std() / np.sqrt(episodes)),
        "found": float(found.mean()),
    }


COLUMNS = ("task", "states", "value", "factor", "played", "found", "published", "CPU s")


def cells(row: dict[str, Any]) -> tuple[str, ...]:
    """A row of the table: what it costs, exactly and as played, beside what was published."""
    count = row["memories"]
    return (
        row["task"],
        str(count),
        f"{row['value']:.4f}",
        "" if row["factor"] is None else f"{row['factor']:.2f}",
        f"{row['played']:.4f} ± {row['played_error']:.4f}",
        f"{row['found']:.3f}",
        f"{PUBLISHED[count - 1]:.4f}" if count <= len(PUBLISHED) else "",
        f"{row['cpu_seconds']:.0f}",
    )


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (TASKS.index(row["task"]), row["memories"]))


def table(rows: list[dict[str, Any]]) -> Table:
    """What each costs, for the terminal."""
    shown = Table(title="1 - E[gamma^T] of the best controller found")
    for name in COLUMNS:
        shown.add_column(name, justify="left" if name == "task" else "right")
    for row in in_order(rows):
        shown.add_row(*cells(row))
    return shown


def page(rows: list[dict[str, Any]]) -> str:
    """The rows as Markdown, with the factor of all states together."""
    lines = [
        "# What a little memory is worth",
        "",
        "Finite-state controllers (Verano, Panizon, Celani 2023, PNAS 120: e2304230120) of 1 to 4"
        " memory states, optimised by exact values and gradients"
        " (`plumejax.learning.finite_state`), by `python -m benchmarks.finite_state`.",
        "",
        "The value is 1 - E[gamma^T], gamma = 0.99975, T the steps until the source is found; less"
        " is better. The factor is by how much one state more lowers it. Played are episodes of the"
        " task, mean and standard error. The published values, at their lowest threshold, are of"
        " another map, made of images.",
        "",
        "| " + " | ".join(COLUMNS) + " |",
        "| " + " | ".join("---" for _ in COLUMNS) + " |",
    ]
    lines += ["| " + " | ".join(cells(row)) + " |" for row in in_order(rows)]
    lines.append("")
    for name in TASKS:
        values = [row["value"] for row in in_order(rows) if row["task"] == name]
        if len(values) > 1:
            lines.append(f"- `{name}`: {_together(values)}")
    lines += [f"- published: {_together(PUBLISHED)}", ""]
    lines += ["![What each costs, and paths of each](results/finite_state.png)", ""]
    return "\n".join(lines)


def _together(values: Sequence[float]) -> str:
    first, last = values[0], values[-1]
    return f"{first:.4f} to {last:.4f} with {len(values)} states, a factor of {first / last:.2f}."


def picture(rows: list[dict[str, Any]], seed: int) -> Figure:
    """What each costs, and some paths of each over the probability of a hit."""
    most = max(row["memories"] for row in rows)
    figure = Figure(figsize=(3.6 * (most + 1), 5.6), layout="constrained")
    grid = figure.subplots(len(TASKS), most + 1, squeeze=False)
    for axes_row, name in zip(grid, TASKS, strict=True):
        own = {row["memories"]: row for row in rows if row["task"] == name}
        _costs(axes_row[0], name, own)
        for count, axes in enumerate(axes_row[1:], start=1):
            if count in own:
                _paths(axes, name, own[count], seed)
            else:
                axes.set_axis_off()
    return figure


def _costs(axes: Axes, name: str, rows: dict[int, dict[str, Any]]) -> None:
    axes.plot(list(rows), [row["value"] for row in rows.values()], "o-", label="this map")
    counts = range(1, len(PUBLISHED) + 1)
    axes.plot(counts, PUBLISHED, "s:", color="0.5", label="published, another map")
    env, params = plumejax.make(name)
    search = fs.problem(env, params)
    axes.axhline(straight(search, params), color="0.7", lw=1, label="straight to the source")
    axes.set(xlabel="memory states", ylabel="1 - E[gamma^T]", title=name, yscale="log")
    axes.set_xticks(counts)
    axes.legend(fontsize=7)


def straight(search: fs.Problem, params: Any) -> float:
    """What a search costs that walks straight to where the source is found."""
    y, x = np.nonzero(search.start)
    source = np.asarray(params.plume.source)
    steps = np.abs(x - source[0]) + np.abs(y - source[1]) - 1
    return float(1 - search.start[y, x] @ search.gamma**steps)


def _paths(axes: Axes, name: str, row: dict[str, Any], seed: int, episodes: int = 3) -> None:
    env, params = plumejax.make(name)
    policy = fs.FiniteStateController(jnp.asarray(row["logits"], jnp.float32))
    key = jax.random.key(seed + 1)
    outcomes, lanes = trace(env, policy, key, params, episodes, 4000)
    hit = fs.problem(env, params).hit
    axes.imshow(
        np.maximum(hit, 1e-3),
        origin="lower",
        cmap="Greys",
        norm=LogNorm(1e-3, 10.0),
        aspect="equal",
    )
    x, y = np.moveaxis(np.asarray(lanes.state.agent.position), -1, 0)
    for i in range(episodes):
        last = int(outcomes.steps[i]) + 1
        axes.plot(x[:last, i], y[:last, i], lw=0.7)
    axes.plot(*np.asarray(params.plume.source), "r*", ms=8)
    axes.set(xlim=(-0.5, hit.shape[1] - 0.5), ylim=(-0.5, hit.shape[0] - 0.5), xticks=[], yticks=[])
    axes.set_title(f"{row['memories']} states: {row['value']:.4f}", fontsize=9)


if __name__ == "__main__":
    tyro.cli(main)
