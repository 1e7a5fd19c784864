"""sweeps/running: the chunks of a sweep played, on the devices of this process or by Ray."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax
import numpy as np
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from plumejax.base.errors import require
from plumejax.base.extras import need
from plumejax.sweeps.chunks import Chunk, Told
from plumejax.sweeps.processes import Played, first_ones, shared_out
from plumejax.sweeps.store import Memory, Store

RETRIES = 5
"""How often a chunk is begun anew whose worker was lost."""


def run(sweep: Any, store: Path | None, executor: str, progress: Told | None) -> Any:
    """`Sweep.run`. Under `jax.distributed` process 0 has the store."""
    require(executor in EXECUTORS, "executor", executor, " or ".join(EXECUTORS))
    several = jax.process_count() > 1
    require(not (several and executor == "ray"), "executor", executor, "local in several processes")
    here = store is not None and jax.process_index() == 0
    kept = Store(store, sweep) if here and store is not None else Memory(sweep)
    done = np.asarray([kept.is_done(chunk) for chunk in sweep.chunks])
    if several:
        done = first_ones(done)
    pending = [chunk for chunk, there in zip(sweep.chunks, done, strict=True) if not there]
    if progress is None:
        with _bar(sweep, pending) as told:
            _fill(kept, EXECUTORS[executor](sweep, pending, told))
    else:
        _fill(kept, EXECUTORS[executor](sweep, pending, progress))
    data = kept.read()
    if several:
        for name in sorted(data.data_vars):
            data[name].values[...] = first_ones(data[name].values)
    return data


def _fill(kept: Memory | Store, played: Played) -> None:
    for chunk, measures in played:
        kept.write(chunk, measures)


@contextmanager
def _bar(sweep: Any, pending: list[Chunk]) -> Iterator[Told]:
    """A progress bar with the time left."""
    columns = (BarColumn(), TextColumn("{task.percentage:3.0f}%"), TimeRemainingColumn())
    with Progress(*columns, TextColumn("left  {task.description}"), transient=True) as shown:
        work = sum(map(sweep.work, pending))
        bar = shown.add_task(f"{len(pending)} chunks of {sweep.task}", total=work)
        yield lambda done: shown.advance(bar, done)


def local(sweep: Any, pending: list[Chunk], told: Told) -> Played:
    """Each device plays chunk after chunk; those of one process wait for none of the others."""
    if jax.process_count() == 1:
        return _here(sweep, pending, told)
    return shared_out(pending, list(sweep.measures), lambda own: _here(sweep, own, told))


def _here(sweep: Any, pending: list[Chunk], told: Told) -> Played:
    devices = jax.local_devices()
    free = list(devices)

    def one(chunk: Chunk) -> tuple[Chunk, dict[str, np.ndarray]]:
        device = free.pop()
        try:
            with jax.default_device(device):
                return chunk, sweep.play(chunk, told)
        finally:
            free.append(device)

    if len(devices) == 1:
        yield from map(one, pending)
        return
    with ThreadPoolExecutor(len(devices)) as pool:
        jobs = [pool.submit(one, chunk) for chunk in pending]
        try:
            for job in as_completed(jobs):
                yield job.result()
        finally:
            for job in jobs:
                job.cancel()


def by_ray(sweep: Any, pending: list[Chunk], told: Told) -> Played:
    """Chunks as tasks of a Ray cluster; one whose worker is lost is played again."""
    ray = need("ray", "ray")
    started = not ray.is_initialized()
    if started:
        ray.init(os.environ.get("RAY_ADDRESS"), log_to_driver=False, include_dashboard=False)
    try:
        task = ray.remote(max_retries=RETRIES)(_play)
        shared = ray.put(sweep)
        waiting = {task.remote(shared, chunk): chunk for chunk in pending}
        while waiting:
            (ended, *_), _ = ray.wait(list(waiting), num_returns=1)
            chunk = waiting.pop(ended)
            yield chunk, ray.get(ended)
            told(sweep.work(chunk))
    finally:
        if started:
            ray.shutdown()


def _play(sweep: Any, chunk: Chunk) -> dict[str, np.ndarray]:
    return sweep.play(chunk)


EXECUTORS: dict[str, Callable[[Any, list[Chunk], Told], Played]] = {"local": local, "ray": by_ray}
"""Ways to play chunks, in whatever order, by name."""
