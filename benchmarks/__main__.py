"""benchmarks/__main__: `python -m benchmarks`: measure everything, print one table, write JSON."""

import sys
from pathlib import Path

import tyro
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks import ours, plots, report, rounds
from benchmarks.measure import Row, measure_round

RESULTS = Path(__file__).parent / "results" / "speed.json"


def main(*, quick: bool = False, only: str = "", out: Path | None = None) -> None:
    """Speed of plumejax, of its bare arithmetic and of its peers on this machine.

    Args:
      quick: what the targets compare but for training, in less than a minute.
      only: measure what has this in its key or label, and no fresh processes.
      out: JSON to write; by default benchmarks/results/speed.json, or runs/speed.json if the run is
        not whole.
    """
    everything = rounds.whole()
    chosen = [
        r._replace(cases=[case for case in r.cases if only in case.key or only in case.label])
        for r in (rounds.quick() if quick else everything)
    ]
    kinds = dict.fromkeys(report.kind(case.key) for r in everything for case in r.cases)
    if not any(r.cases for r in chosen):
        sys.exit(f"only = {only!r} is not allowed: it must be part of a label or of {list(kinds)}")
    starts = 0 if only else 1 if quick else 5
    rows = _measure(chosen, starts)
    measured = {row.key for row in rows}
    left_out = [c.key for r in everything for c in r.cases if c.key not in measured]
    targets = [v for v in report.verdicts(rows) if v.reached is not None]
    content = report.document(rows, left_out, targets)
    whole = not quick and not only
    path = out or (RESULTS if whole else Path("runs") / RESULTS.name)
    report.write(path, content)

    console = Console()
    if not console.is_terminal:
        console = Console(width=120)
    place = content["machine"]
    title = f"{place['cpu']}, {place['cores']} cores, {content['date']}"
    console.print(report.table(rows, title, targets))
    if left_out:
        some = dict.fromkeys(report.kind(key) for key in left_out)
        console.print(f"rows left out of this run: some of {', '.join(some)}", highlight=False)
    pictures = plots.draw(content["rows"], path.parent) if whole else []
    for written in (path, *pictures):
        console.print(str(written), highlight=False, soft_wrap=True)


def _measure(chosen: list[rounds.Round], starts: int) -> list[Row]:
    """The rows of the rounds, then of `starts` fresh processes, under a progress bar."""
    total = sum(len(r.cases) * (1 + r.repeats) for r in chosen) + 2 * starts
    columns = (BarColumn(), TextColumn("{task.percentage:3.0f}%"), TimeElapsedColumn())
    with Progress(*columns, TextColumn("{task.description}"), transient=True) as progress:
        bar = progress.add_task("", total=total)

        def tick(key: str) -> None:
            progress.update(bar, advance=1, description=key)

        rows = [row for r in chosen for row in measure_round(r.cases, r.repeats, r.seconds, tick)]
        if starts:
            progress.update(bar, description="fresh processes")
            rows += ours.startup(starts)
            progress.update(bar, completed=total)
    return rows


if __name__ == "__main__":
    tyro.cli(main)
