"""benchmarks/success: `plumejax train` on several seeds: success, length and time of each.

    python -m benchmarks.success [TASK] [--seeds 5] [--data PATH] [--memory gru] [--out DIR]

Each seed is the command line in a process of its own, from start to exit, evaluation included.
"""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Literal

import tyro
from rich.console import Console
from rich.table import Table


def main(
    task: tyro.conf.Positional[str] = "PlumeSearchLocal-v0",
    *,
    seeds: int = 5,
    data: Path | None = None,
    memory: Literal["stack", "gru"] = "stack",
    out: Path = Path("runs/success"),
) -> None:
    """Train on several seeds and print one table.

    Args:
        task: id of the task.
        seeds: how many; they are 0, 1, ...
        data: path of a recording, for tasks that play one.
        memory: what the agent remembers with.
        out: folder for the runs; it must be new or empty.
    """
    table = Table("seed", "success", "interval", "median steps", "random", "gradient", "seconds")
    command = [sys.executable, "-m", "plumejax", "train", task, "--memory", memory]
    command += [] if data is None else ["--data", str(data)]
    for seed in range(seeds):
        run = out / f"seed{seed}"
        began = time.perf_counter()
        subprocess.run([*command, "--seed", str(seed), "--out", str(run)], check=True)
        seconds = time.perf_counter() - began
        scores = json.loads((run / "evaluation.json").read_text())["scores"]
        trained = scores["trained"]
        table.add_row(
            str(seed),
            f"{trained['success']:.3f}",
            f"{trained['success_low']:.3f}-{trained['success_high']:.3f}",
            f"{trained['median_steps']:.0f}",
            f"{scores['random']['success']:.3f}",
            f"{scores['gradient following']['success']:.3f}",
            f"{seconds:.0f}",
        )
    Console().print(table)


if __name__ == "__main__":
    tyro.cli(main)
