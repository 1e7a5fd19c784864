"""benchmarks/kernels: `python -m benchmarks.kernels`: where the local task's step spends its time.

Profiles a compiled loop of steps and lists XLA's kernels by their time a step. Tracing makes small
kernels look dearer than they are: read it for what is large, and how often it runs.
"""

import gzip
import json
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import jax
import tyro
from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks import ours


def main(*, lanes: int = 4096, most: int = 20) -> None:
    """XLA's kernels in a step of `PlumeSearchLocal-v0`, by time.

    Args:
      lanes: of the batch.
      most: rows to show.
    """
    once = ours.local(lanes).prepare().once
    for _ in range(8):  # until lanes end at their usual rate
        once()
    with TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            steps = once() / lanes
        (path,) = Path(folder).rglob("*.trace.json.gz")
        with gzip.open(path) as file:
            events = json.load(file)["traceEvents"]
    time, runs = Counter[str](), Counter[str]()
    for event in events:
        name = event.get("name", "")
        # Python's own frames begin with $; what XLA calls its executor holds all the others.
        if event.get("ph") == "X" and not name.startswith(("$", "Thunk", "Pjit", "end: ")):
            time[name] += event["dur"]
            runs[name] += 1
    table = Table("kernel, or loop with all in it", "us a step", "runs a step", box=box.SIMPLE_HEAD)
    for name, spent in time.most_common(most):
        table.add_row(name, f"{spent / steps:.2f}", f"{runs[name] / steps:.2f}")
    Console().print(table)


if __name__ == "__main__":
    tyro.cli(main)
