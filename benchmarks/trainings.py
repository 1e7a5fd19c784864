"""benchmarks/trainings: runs of `plumejax train`, one a core, each in its own directory."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from queue import Queue
from typing import Any

from rich.progress import track

from plumejax.base.files import write_whole


def train(runs: Mapping[Path, Sequence[str]]) -> None:
    """Train what is not there yet, and note what it took.

    Args:
      runs: of each run directory the arguments of `plumejax train` but `--out`.
    """
    cores: Queue[int] = Queue()
    for core in sorted(os.sched_getaffinity(0)):
        cores.put(core)

    def one(directory: Path) -> None:
        core, began = cores.get(), time.perf_counter()
        command = [sys.executable, "-m", "plumejax", "train", *runs[directory], "--out"]
        try:
            subprocess.run(
                [*command, str(directory)],
                check=True,
                stdout=subprocess.DEVNULL,
                preexec_fn=lambda: os.sched_setaffinity(0, {core}),
            )
        finally:
            cores.put(core)
        write_whole(directory / "seconds.json", json.dumps(time.perf_counter() - began))

    missing = [each for each in runs if not (each / "evaluation.json").is_file()]
    for each in missing:
        each.parent.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(cores.qsize()) as pool:
        jobs = [pool.submit(one, each) for each in missing]
        for job in track(as_completed(jobs), "training", total=len(jobs), transient=True):
            job.result()


def cost(directory: Path) -> dict[str, Any]:
    """Steps, and seconds from start to exit on one core, None if it was not trained here."""
    last = json.loads((directory / "metrics.jsonl").read_text().splitlines()[-1])
    seconds = directory / "seconds.json"
    whole = json.loads(seconds.read_text()) if seconds.is_file() else None
    return {"steps": last["steps"], "seconds": whole}
