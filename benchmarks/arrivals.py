"""benchmarks/arrivals: `python -m benchmarks.arrivals`: how soon infotaxis finds, beside OTTO.

Infotaxis on the tasks whose arrival times are published, by both estimators, in float32 and in
float64. Writes each row to benchmarks/results/arrivals.json as it is done; rerun, it goes on with
those that are missing. Then it writes benchmarks/arrivals.md and draws the laws of arrival.
"""

import json
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import tyro
from matplotlib.figure import Figure
from rich.console import Console
from rich.markdown import Markdown
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

import plumejax
from benchmarks import report
from plumejax.base.files import write_whole
from plumejax.evaluation.episodes import stream
from plumejax.evaluation.results import finite
from plumejax.evaluation.statistics import Arrivals, arrivals, mean
from plumejax.evaluation.survival import arrival_law, search, weigh
from plumejax.policies.bayesian import infotaxis
from plumejax.viewing.figures import save
from plumejax.viewing.plots import arrival_curves

RESULTS = Path(__file__).parent / "results" / "arrivals.json"
PAGE = Path(__file__).with_name("arrivals.md")
PUBLISHED = Path(__file__).parents[1] / "tests" / "golden" / "infotaxis.json"

TASKS = (
    "Olfactory-Isotropic-1D-v0",
    "Olfactory-Isotropic-19x19-v0",
    "Olfactory-Isotropic-53x53-v0",
    "Olfactory-Windy-Medium-v0",
)

LANES = 256
"""Few: the last lanes of a case go on alone, to a time limit of up to 10,000 steps."""


class Row(NamedTuple):
    """What is measured: a task, how, and in what numbers."""

    task: str
    estimator: str
    dtype: str


ROWS = [
    Row(task, estimator, dtype)
    for dtype in ("float32", "float64")
    for task in TASKS
    for estimator in ("survival", "sampled")
]


def main(
    *, episodes: int = 20_000, seed: int = 0, only: str = "", out: Path = RESULTS, page: Path = PAGE
) -> None:
    """Measure the rows that `out` lacks, then write the page and the picture of those it has.

    Args:
      episodes: of each row, and searches weighed by survival.
      seed: of the episodes.
      only: measure the rows that have this in "TASK estimator dtype".
      out: JSON to write and to go on from; the picture goes beside it.
      page: Markdown to write.
    """
    settings = {"policy": "infotaxis", "episodes": episodes, "seed": seed}
    rows = _done(out, settings)
    missing = [row for row in ROWS if row not in rows and only in " ".join(row)]
    console = Console()
    columns = (BarColumn(), TextColumn("{task.percentage:3.0f}%"), TimeElapsedColumn())
    with Progress(*columns, TextColumn("{task.description}"), console=console) as progress:
        bar = progress.add_task("", total=len(missing) * episodes)
        for row in missing:
            progress.update(bar, description=" ".join(row))
            rows[row] = measure(row, episodes, seed, lambda n: progress.advance(bar, n))
            held = [{**each._asdict(), **rows[each]} for each in ROWS if each in rows]
            report.write(out, {"settings": settings, "machine": report.machine(), "rows": held})
    text = markdown(rows, settings)
    console.print(Markdown(text))
    write_whole(page, text)
    save(picture(rows), out.with_suffix(".png"))
    for path in (out, page, out.with_suffix(".png")):
        console.print(str(path), highlight=False, soft_wrap=True)


def _done(path: Path, settings: dict[str, Any]) -> dict[Row, dict[str, Any]]:
    """The rows that are there already, if they were made with the same settings."""
    content = json.loads(path.read_text()) if path.is_file() else {}
    if content.get("settings") != settings:
        return {}
    return {Row(*(row.pop(name) for name in Row._fields)): row for row in content["rows"]}


def measure(row: Row, episodes: int, seed: int, progress: Callable[[int], None]) -> dict[str, Any]:
    """The numbers of a row, `(value, standard error)` each, and its law of arrival."""
    began = time.process_time()
    with jax.enable_x64(row.dtype == "float64"):
        env, params = plumejax.make(row.task)
        policy = infotaxis(env, params, dtype=row.dtype)
        game = (env, policy, jax.random.key(seed), params, episodes)
        by = {"survival": _weighed, "sampled": _sampled}[row.estimator]
        numbers, law = by(*game, lanes=LANES, progress=progress)
    percentiles = {f"p{q}": law.percentile(q / 100) for q in (50, 90)}
    return {
        **{name: [float(f"{x:.6g}") for x in pair] for name, pair in numbers.items()},
        **{name: finite([float(f"{x:.6g}") for x in pair]) for name, pair in percentiles.items()},
        "limit": int(params.max_steps),
        "cpu_seconds": round(time.process_time() - began, 1),
        "law": _thinned(law),
    }


def _weighed(*game: Any, **how: Any) -> tuple[dict[str, Any], Arrivals]:
    searches = search(*game, **how)
    s = weigh(searches)
    numbers = {
        "mean": (s.mean_steps_found, s.error_steps_found),
        "not_found": (s.not_found, s.error_not_found),
        "stuck": mean(searches.stuck > 0),
        "hits": (s.hits, s.error_hits),
    }
    return numbers, arrival_law(searches)


def _sampled(*game: Any, **how: Any) -> tuple[dict[str, Any], Arrivals]:
    outcomes = stream(*game, **how)
    found = outcomes.found
    numbers = {
        "mean": mean(outcomes.steps[found]),
        "not_found": mean(~found),
        "stuck": mean(outcomes.track.cycled),
        "hits": mean(outcomes.track.hits[found]),
    }
    return numbers, arrivals(outcomes.steps, found, outcomes.failed)


def _thinned(law: Arrivals, most: int = 80) -> list[list[float]]:
    """`[steps, cdf, error]` of about `most` times, for the picture."""
    wanted = np.geomspace(1, law.times[-1], most)
    which = np.unique(np.clip(np.searchsorted(law.times, wanted), 0, len(law.times) - 1))
    rows = zip(law.times[which], law.cdf[which], law.error[which], strict=True)
    return [[int(t), round(float(p), 5), float(f"{e:.2g}")] for t, p, e in rows]


def markdown(rows: dict[Row, dict[str, Any]], settings: dict[str, Any]) -> str:
    """The page: every row beside what is published, and how far apart they are."""
    golden = json.loads(PUBLISHED.read_text())
    lines = [
        "# How soon infotaxis finds",
        "",
        "By `python -m benchmarks.arrivals`, beside values of OTTO and OTTO-benchmark (Loisy, Eloy"
        f" 2022; Loisy, Heinonen 2023). {settings['episodes']} episodes a row, seed"
        f" {settings['seed']}; ± is a standard error; z is the distance to the published mean, and"
        " of the estimators to each other, in combined standard errors.",
        "",
        "Both estimators give the mean of the arrival time *given that the source is found* before"
        " the task's time limit. *survival* draws hits from the agent's own predictive distribution"
        " and weighs each step with the probability not to have found yet, till that is below"
        " 1e-6; *sampled* plays episodes with a source. In neither does an agent that is stuck"
        " stop: it is played on, and if it does not find in time it counts as not found. *stuck*"
        " is the share that was for more than 8 steps running where it was two steps before: of"
        " *survival* of all searches, also of those that with a source would have ended before,"
        " and staying at a wall counts; of *sampled* of the episodes, before they ended, and only"
        " going to and fro counts.",
        "",
        "| task | estimator | numbers | mean, if found | published | z | p50 | p90 | not found"
        " | stuck | hits before | CPU s |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for key in sorted(rows, key=lambda row: (TASKS.index(row.task), row.dtype, row.estimator)):
        row, published = rows[key], golden["arrival"][key.task]
        cells = [
            f"`{key.task}`",
            key.estimator,
            key.dtype,
            _pm(row["mean"], 2),
            _pm(published, 2),
            f"{apart(row['mean'], published):+.1f}",
            _pm(row["p50"], 1),
            _pm(row["p90"], 1),
            _pm(row["not_found"], 4),
            f"{row['stuck'][0]:.4f}",
            _pm(row["hits"], 2),
            f"{row['cpu_seconds']:.0f}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", *_agreement(rows), ""]
    more = [
        f"`{task}` {', '.join(f'{name} {value}' for name, value in numbers.items())}"
        for task, numbers in golden["arrival_percentiles"].items()
    ]
    return "\n".join(
        [*lines, f"Published besides: {'; '.join(more)}.", "", "![Laws](results/arrivals.png)", ""]
    )


def _agreement(rows: dict[Row, dict[str, Any]]) -> list[str]:
    """The table of how far the two estimators are apart."""
    lines = ["| task | numbers | sampled against survival: z of mean | of not found |"]
    lines.append("| --- | --- | --- | --- |")
    for task, dtype in product(TASKS, ("float32", "float64")):
        both = [rows.get(Row(task, name, dtype)) for name in ("sampled", "survival")]
        if None not in both:
            zs = [apart(*(row[name] for row in both)) for name in ("mean", "not_found")]
            lines.append(f"| `{task}` | {dtype} | {zs[0]:+.1f} | {zs[1]:+.1f} |")
    return lines


def apart(a: Any, b: Any) -> float:
    """How far `(value, error)` are apart, in combined standard errors."""
    both = float(np.hypot(a[1], b[1]))
    return (a[0] - b[0]) / both if both else 0.0


def _pm(pair: Any, digits: int) -> str:
    value, error = pair
    if value is None:
        return "never"
    return f"{value:.{digits}f} ± {error:.{digits}f}"


def picture(rows: dict[Row, dict[str, Any]]) -> Figure:
    """The laws of arrival of each task beside each other."""
    figure = Figure(figsize=(15, 8), layout="constrained")
    for axes, task in zip(figure.subplots(2, 2).flat, TASKS, strict=True):
        own = {row: rows[row] for row in ROWS if row.task == task and row in rows}
        if not own:
            axes.set_axis_off()
            continue
        laws = {
            f"{row.estimator}, {row.dtype}": Arrivals(*np.asarray(held["law"]).T)
            for row, held in own.items()
        }
        horizon = max(held["limit"] for held in own.values())
        arrival_curves(axes, laws, horizon).set_title(task)
    return figure


if __name__ == "__main__":
    tyro.cli(main)
