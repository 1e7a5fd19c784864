"""benchmarks/accelerator: `python -m benchmarks.accelerator`: many lanes on the device JAX finds.

The cases of `python -m benchmarks` that run in one compiled loop, with as many lanes as a GPU or
TPU wants, one table, and JSON under the device's name in benchmarks/results.
"""

import sys
from pathlib import Path

import jax
import tyro
from rich.console import Console

from benchmarks import ours, peers, report, trainers
from benchmarks.measure import Case, measure_round

BATCHES = (4096, 65536, 1048576)


def main() -> None:
    """Many lanes on a GPU or TPU: one table, and JSON under its name in benchmarks/results."""
    if jax.default_backend() == "cpu":
        sys.exit("jax finds no accelerator here; `python -m benchmarks` measures on a CPU")
    rounds = [[*_trainers(), *_batch(BATCHES[0])], *(_batch(lanes) for lanes in BATCHES[1:])]
    rows = [row for cases in rounds for row in measure_round(cases, 5, 0.3)]
    device = jax.devices()[0].device_kind
    console = Console(width=120)
    console.print(report.table(rows, f"{len(jax.devices())} x {device}"))
    name = f"speed_{device.lower().replace(' ', '_')}.json"
    path = Path(__file__).parent / "results" / name
    report.write(path, {"device": device, **report.document(rows, [])})
    console.print(str(path))


def _batch(lanes: int) -> list[Case]:
    make = (ours.local, ours.arithmetic, peers.cartpole, ours.recorded)
    return [one(lanes) for one in make]


def _trainers() -> list[Case]:
    return [trainers.ours(stack=1), trainers.purejaxrl_style(normalise=True)]


if __name__ == "__main__":
    tyro.cli(main)
