"""benchmarks/plumes_validation: `python -m benchmarks.plumes_validation`: every plume validated.

Writes benchmarks/plumes_validation.md: closed forms, whiffs and blanks against distance beside the
field, and speed beside peers; pictures and a JSON of the same in benchmarks/results.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import tyro
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks import plumes_checks, plumes_page, plumes_profiles, plumes_speed, report
from benchmarks.measure import Row, Spread
from plumejax.learning.runs import write_whole
from plumejax.viewing.figures import save

HERE = Path(__file__).parent
PAGE = HERE / "plumes_validation.md"
RESULTS = HERE / "results" / "plumes.json"


def main(*, out: Path | None = None, only: str = "", quick: bool = False) -> None:
    """Hold every plume to its theory, look at whiffs and blanks, and time them.

    Args:
      out: page to write; by default benchmarks/plumes_validation.md, or runs/plumes_validation.md
        if the run is not whole. JSON and pictures go to `results` beside it.
      only: the parts whose name has this in it; a wrong one lists them.
      quick: an eighth of the samples, in some minutes; for a look, not for a verdict.
    """
    jobs = {name: job for name, job in parts(quick).items() if only in name}
    if not jobs:
        sys.exit(f"only = {only!r} is not allowed: it must be part of one of {list(parts(quick))}")
    whole = not (only or quick)
    page = out or (PAGE if whole else Path("runs") / PAGE.name)
    content = run(jobs)
    report.write(page.parent / "results" / RESULTS.name, content)
    for name, picture in plumes_page.pictures(content).items():
        save(picture, page.parent / "results" / name)
    write_whole(page, plumes_page.page(content))
    console = Console()
    for model, checks in content["checks"].items():
        for check in checks:
            if not check["met"]:
                console.print(f"[red]not met:[/] {model}: {check['what']}", highlight=False)
    console.print(str(page), highlight=False, soft_wrap=True)


Part = Callable[[], dict[str, Any]]


def parts(quick: bool) -> dict[str, Part]:
    """What is done, by name; each gives some of the document, a dict of dicts by model."""
    lanes = 16 if quick else 96
    jobs: dict[str, Part] = {}
    for name, check in plumes_checks.MODELS.items():
        jobs[name] = lambda name=name, check=check: {"checks": {name: _plain(check(lanes))}}
    for name, subject in plumes_profiles.SUBJECTS.items():
        jobs[f"profile, {name}"] = lambda name=name, subject=subject: {
            "profiles": {name: plumes_profiles.plain(plumes_profiles.profile(subject, quick))}
        }
    jobs["turbulence"] = lambda: _turbulence(quick)
    jobs["speed"] = lambda: _speed(quick)
    return jobs


def run(jobs: dict[str, Part]) -> dict[str, Any]:
    """The document of a run, for JSON, under a progress bar."""
    content: dict[str, Any] = {"checks": {}, "profiles": {}, "turbulence": {}, "rows": []}
    columns = (BarColumn(), TextColumn("{task.percentage:3.0f}%"), TimeElapsedColumn())
    with Progress(*columns, TextColumn("{task.description}"), transient=True) as progress:
        bar = progress.add_task("", total=len(jobs))
        for name, job in jobs.items():
            progress.update(bar, description=name)
            for kind, found in job().items():
                content[kind] = found if kind == "rows" else {**content[kind], **found}
            progress.update(bar, advance=1)
    rows: list[Row] = content.pop("rows")
    return {**report.document(rows, [], plumes_speed.verdicts(rows)), **content}


def _plain(checks: list[plumes_checks.Check]) -> list[dict[str, Any]]:
    plain = []
    for check in checks:
        what, *numbers = check._asdict().items()
        plain.append({**dict([what]), **{k: float(v) for k, v in numbers}, "met": bool(check.met)})
    return plain


def _turbulence(quick: bool) -> dict[str, Any]:
    found = plumes_profiles.turbulence(quick)
    return {
        "checks": {"turbulence": _plain(found.checks)},
        "profiles": {"turbulence": plumes_profiles.plain(found.axis)},
        "turbulence": {"across": found.across, "facts": found.facts, "at": found.distance},
    }


def _speed(quick: bool) -> dict[str, list[Row]]:
    """In a process of its own, which may use one core: the peers use no more."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "rows.json"
        command = [sys.executable, "-m", "benchmarks.plumes_speed", str(path)]
        command += ["--quick"] if quick else []
        subprocess.run(command, check=True, cwd=HERE.parent, preexec_fn=_on_one_core)
        rows = json.loads(path.read_text())
    spreads: tuple[Literal["wall", "cpu"], ...] = ("wall", "cpu")
    return {
        "rows": [
            Row(**{**row, **{name: row[name] and Spread(*row[name]) for name in spreads}})
            for row in rows
        ]
    }


def _on_one_core() -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


if __name__ == "__main__":
    tyro.cli(main)
