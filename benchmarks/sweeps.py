"""benchmarks/sweeps: `python -m benchmarks.sweeps`: what a cell of a sweep costs.

Plays the same cells of the same task (a random walk of 200 steps over widths of the plume and radii
of the goal) by `plumejax.Sweep` and by a pool of processes that run plume_nav_sim's environment
(extra `bench`), and sweeps of ever more cells. Writes benchmarks/results/sweeps.json, and from it
benchmarks/sweeps.md and a picture.
"""

import json
import os
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import tyro
from matplotlib.figure import Figure
from rich.console import Console
from rich.markdown import Markdown
from rich.progress import track

import plumejax
from benchmarks import report
from plumejax.base.files import write_whole
from plumejax.cli.cores import a_core_each
from plumejax.viewing.figures import save

RESULTS = Path(__file__).parent / "results" / "sweeps.json"
PAGE = Path(__file__).with_name("sweeps.md")

STEPS = 200
SIZES = (16, 64, 256, 1024, 4096)
"""Cells of the sweeps."""

TARGET = 200
"""Episodes a CPU-second, ours to theirs, asked for."""


def main(
    *,
    episodes: int = 64,
    peer_cells: int = 64,
    peer_episodes: int = 4,
    rounds: int = 3,
    out: Path = RESULTS,
    page: Path = PAGE,
) -> None:
    """Measure, write the page.

    Args:
      episodes: of each of our cells.
      peer_cells: played by plume_nav_sim.
      peer_episodes: of each.
      rounds: of everything; medians are told.
      out: JSON to write; the picture goes beside it.
      page: Markdown to write.
    """
    a_core_each()
    sizes: dict[int, list[float]] = {size: [] for size in SIZES}
    theirs: list[float] = []
    their_steps = float("nan")
    first = {size: _seconds(_ours(size, episodes)) for size in SIZES}
    for _ in track(range(rounds), "measuring", transient=True):
        seconds, their_steps = _peer(peer_cells, peer_episodes)
        theirs.append(peer_cells * peer_episodes / seconds)
        for size in SIZES:
            sizes[size].append(_seconds(_ours(size, episodes)))
    rows = [
        {"cells": size, "cpu_seconds": taken, "first_cpu_seconds": first[size]}
        for size, taken in sizes.items()
    ]
    lengths = {"ours": _length(_ours(peer_cells, episodes)), "theirs": their_steps}
    settings = {"episodes": episodes, "steps": STEPS, "mean_steps": lengths}
    whole = {"settings": settings, "machine": report.machine(), "rows": rows, "peer": theirs}
    write_whole(out, json.dumps(whole, indent=1) + "\n")
    text = _page(whole)
    write_whole(page, text)
    _draw(out.with_suffix(".png"), whole)
    Console().print(Markdown(text))


def _axes(cells: int) -> tuple[np.ndarray, np.ndarray]:
    """Widths and radii, whose product has so many cells."""
    count = round(cells**0.5)
    return np.linspace(4.0, 24.0, count), np.linspace(1.0, 5.0, count)


def _ours(cells: int, episodes: int) -> plumejax.Sweep:
    widths, radii = _axes(cells)
    return plumejax.Sweep(
        "PlumeSearchLocal-v0",
        {"plume.sigma": widths, "ending.radius": radii},
        policy="random",
        episodes=episodes,
        overrides={"max_steps": STEPS},
    )


def _seconds(sweep: plumejax.Sweep) -> float:
    """CPU-seconds of a run, of all threads."""
    began = time.process_time()
    sweep.run(progress=lambda ended: None)
    return time.process_time() - began


def _length(sweep: plumejax.Sweep) -> float:
    """Mean length of the episodes."""
    return float(sweep.run(progress=lambda ended: None).restricted_mean.mean())


def _peer(cells: int, episodes: int) -> tuple[float, float]:
    """CPU-seconds of the pool, without starting it, and the mean length of the episodes."""
    widths, radii = _axes(cells)
    jobs = [(width, radius, episodes) for width in widths for radius in radii]
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as pool:
        list(pool.map(_walk, jobs[: os.cpu_count()]))  # imports
        seconds, steps = zip(*pool.map(_walk, jobs), strict=True)
    return sum(seconds), sum(steps) / (len(jobs) * episodes)


def _walk(job: tuple[float, float, int]) -> tuple[float, int]:
    """CPU-seconds and steps of some episodes of one cell."""
    from plume_nav_sim.envs.factory import create_component_environment

    width, radius, episodes = job
    env = create_component_environment(
        grid_size=(128, 128),
        goal_location=(64, 64),
        plume_sigma=float(width),
        goal_radius=float(radius),
        max_steps=STEPS,
        warn_deprecated=False,
    )
    actions = np.random.default_rng(0).integers(0, env.action_space.n, STEPS)
    began, steps = time.process_time(), 0
    for episode in range(episodes):
        env.reset(seed=episode)
        for action in actions:
            _, _, terminated, truncated, _ = env.step(int(action))
            steps += 1
            if terminated or truncated:
                break
    return time.process_time() - began, steps


def _rates(whole: dict[str, Any]) -> Callable[[dict[str, Any]], float]:
    episodes = whole["settings"]["episodes"]
    return lambda row: row["cells"] * episodes / float(np.median(row["cpu_seconds"]))


def _slope(whole: dict[str, Any]) -> float:
    """Of the logarithm of the cost against that of the cells, of the larger half of the sweeps."""
    rows = whole["rows"][len(whole["rows"]) // 2 :]
    cells = np.log([row["cells"] for row in rows])
    return float(np.polyfit(cells, np.log([np.median(row["cpu_seconds"]) for row in rows]), 1)[0])


def _page(whole: dict[str, Any]) -> str:
    rate, peer = _rates(whole), float(np.median(whole["peer"]))
    best, lengths = rate(whole["rows"][-1]), whole["settings"]["mean_steps"]
    lines = [
        "# What a cell of a sweep costs",
        "",
        "`python -m benchmarks.sweeps`. Random walks of 200 steps in `PlumeSearchLocal-v0`, 128 x"
        f" 128 cells; {whole['settings']['episodes']} episodes a cell; medians of"
        f" {len(whole['peer'])} rounds in one process.",
        "",
        "| cells | CPU s | the first time, with compiling | episodes a CPU-second |",
        "| --- | --- | --- | --- |",
    ]
    for row in whole["rows"]:
        lines.append(
            f"| {row['cells']} | {np.median(row['cpu_seconds']):.2f} |"
            f" {row['first_cpu_seconds']:.2f} | {rate(row):,.0f} |"
        )
    return "\n".join(
        [
            *lines,
            f"| plume_nav_sim, a pool of processes | | | {peer:,.1f} |",
            "",
            f"{best / peer:.0f} times as many episodes a CPU-second as the pool of plume_nav_sim"
            f" ({TARGET} asked), of {lengths['ours']:.0f} steps on average, theirs of"
            f" {lengths['theirs']:.0f}. The cost of the larger sweeps grows with the cells to the"
            f" power {_slope(whole):.2f}.",
            "",
            "![Cost against cells](results/sweeps.png)",
            "",
        ]
    )


def _draw(path: Path, whole: dict[str, Any]) -> None:
    figure = Figure(figsize=(5, 3.6), layout="constrained")
    axes = figure.subplots()
    cells = np.asarray([row["cells"] for row in whole["rows"]], float)
    taken = [np.median(row["cpu_seconds"]) for row in whole["rows"]]
    axes.plot(cells, taken, "o-", color="#0072B2", label="plumejax.Sweep")
    peer = whole["settings"]["episodes"] * cells / np.median(whole["peer"])
    axes.plot(cells, peer, "--", color="#D55E00", label="plume_nav_sim, by its rate")
    axes.set(xscale="log", yscale="log", xlabel="cells", ylabel="CPU-seconds")
    axes.legend(frameon=False)
    save(figure, path)


if __name__ == "__main__":
    tyro.cli(main)
