"""cli/scoring: an agent beside its baselines on fresh episodes: a table, a file, a picture."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jax
import numpy as np
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from plumejax.arms.controllers import scripted
from plumejax.arms.environment import TwoArm
from plumejax.base.files import write_whole
from plumejax.evaluation.episodes import stream, trace
from plumejax.evaluation.lanes import LANES
from plumejax.evaluation.results import finite
from plumejax.evaluation.statistics import Arrivals, Summary, summarise
from plumejax.evaluation.trials import evaluation_key, on_bank
from plumejax.learning.agent import deterministic
from plumejax.learning.recipes import recipe
from plumejax.learning.runs import EVALUATION, PICTURE, RunConfig
from plumejax.plumes.bank import Bank
from plumejax.policies.reactive import Random, gradient_follower
from plumejax.viewing.figures import save
from plumejax.viewing.plots import arrival_curves, learning_curves
from plumejax.viewing.scenery import canvas, concentration_field
from plumejax.viewing.searches import arm_paths, trajectories


def score(env: Any, params: Any, agent: Any, seed: int, episodes: int) -> dict[str, Summary]:
    """The agent beside others, one of them random, on the same fresh starts."""
    policies = {
        "trained": agent,
        "trained, likeliest actions": deterministic(agent),
        "random": Random(env.action_space(params)),
    }
    if isinstance(env, TwoArm):
        policies["scripted"] = scripted(env, params)
    else:
        policies["gradient following"] = gradient_follower(env, params)
    key, radius = evaluation_key(seed), _radius(params) or 0.0
    # A lane of a bank reads a whole plume a step: as many as fit into a cache.
    lanes = 32 if isinstance(getattr(env, "plume", None), Bank) else LANES
    params = jax.device_put(params)
    return {
        name: summarise(stream(env, policy, key, params, episodes, lanes=lanes), radius)
        for name, policy in policies.items()
        if policy is not None
    }


def table(scores: dict[str, Summary], task: str, params: Any) -> Table:
    """The scores as a table; the caption states radius and time limit."""
    limit = int(params.max_steps)
    radius = _radius(params)
    # An arena that is a box lies in the plume's own lengths.
    unit = "lengths of the plume" if hasattr(getattr(params, "arena", None), "low") else "cells"
    within = "" if radius is None else f"within {radius:g} {unit}, "
    episodes = next(iter(scores.values())).episodes
    shown = Table(
        title=f"{task}: {episodes} fresh episodes",
        caption=f"success: found {within}in at most {limit} steps; 95 % Wilson interval",
    )
    shown.add_column("policy")  # where it is narrow a name wraps, and no number is cut
    for name in ("success", "interval", "median\nsteps", "mean steps\nif found", "return"):
        shown.add_column(name, justify="right", no_wrap=True)
    for name, s in scores.items():
        shown.add_row(
            name,
            f"{s.success:.3f}",
            f"{s.success_low:.3f}-{s.success_high:.3f}",
            f"{s.median_steps:.0f}",
            f"{s.mean_steps_found:.1f}",
            f"{s.mean_return:.3f}",
        )
    return shown


def write_scores(
    path: Path,
    scores: dict[str, Summary],
    task: str,
    params: Any,
    seed: int,
    data: str | None,
) -> None:
    """Write the scores, and what they are of, to `path` as JSON."""
    rows = {name: finite(asdict(summary)) for name, summary in scores.items()}
    report = {
        "task": task,
        "data": data,
        "seed": seed,
        "max_steps": int(params.max_steps),
        "radius_cells": _radius(params),
        "scores": rows,
    }
    write_whole(path, json.dumps(report, indent=2) + "\n")


def draw_laws(path: Path, laws: Mapping[str, Arrivals], horizon: int, title: str) -> None:
    """Draw laws of arrival by name, up to `horizon` steps, into the PNG `path`."""
    figure = Figure(figsize=(9, 5), layout="constrained")
    arrival_curves(figure.subplots(), laws, horizon).set_title(title)
    save(figure, path)


MEASURES = {"success": "success (share of those that ended)", "return": "return of an episode"}
"""Of a training that are drawn, and how their axes are called."""

POINTS = 100
"""Of a learning curve: more updates are put together."""


def draw_learning(path: Path, metrics: Sequence[Sequence[str]], task: str) -> None:
    """Draw how trainings went into the PNG `path`; `metrics` are the lines of each seed's file."""
    seeds = [_learned([json.loads(line) for line in lines]) for lines in metrics]
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    for axes, (name, label) in zip(figure.subplots(1, 2), MEASURES.items(), strict=True):
        learning_curves(axes, [s["steps"] for s in seeds], [s[name] for s in seeds], label)
        if name == "success":
            axes.set_ylim(-0.02, 1.02)
    figure.suptitle(f"{task}: episodes while learning")
    save(figure, path)


def _learned(rows: list[dict[str, Any]]) -> dict[str, list[float]]:
    """Steps and `MEASURES` after at most `POINTS` of the updates, the mean of the episodes that
    ended since the one before."""
    parts = [part for part in np.array_split(np.asarray(rows, object), POINTS) if len(part)]
    means = {name: [_mean(part, name) for part in parts] for name in MEASURES}
    return {"steps": [part[-1]["steps"] for part in parts], **means}


def _mean(rows: Any, name: str) -> float:
    """Over the episodes of some updates; NaN if none ended."""
    weights = [row["episodes"] for row in rows]
    known = [row[name] or 0.0 for row in rows]
    return float(np.average(known, weights=weights)) if any(weights) else float("nan")


def draw(
    path: Path, env: Any, params: Any, agent: Any, task: str, seed: int, episodes: int = 16
) -> None:
    """Draw some of the scored episodes, over the plume of the first if there is one, into the PNG
    `path`."""
    key = evaluation_key(seed)
    outcomes, lanes = trace(env, agent, key, params, episodes, int(params.max_steps))
    states = lanes.state
    if isinstance(env, TwoArm):
        figure = Figure(figsize=(11, 5), layout="constrained")
        arm_paths(figure.subplots(1, 2), states, outcomes.steps, outcomes.found, params)
        figure.suptitle(f"{task}: {episodes} episodes of the trained agent")
        save(figure, path)
        return
    first = jax.tree.map(lambda x: x[0, 0], states)
    where = canvas(env.arena, params)
    figure = Figure(figsize=(7.5, 7.5), layout="constrained")
    axes = trajectories(
        figure.subplots(),
        concentration_field(env, first, params, where),
        states.agent.position,
        outcomes.steps,
        outcomes.found,
        np.asarray(env.plume.sources(first.plume, params.plume))[0],
        float(getattr(params.ending, "radius", 0.0)),
        getattr(params.arena, "free", None),
        getattr(env.plume, "unit", "arbitrary units"),
        where.extent,
        "cells" if hasattr(env.arena, "grid_size") else "lengths of the plume",
    )
    axes.set_title(
        f"{task}: {episodes} episodes of the trained agent\n(concentration: first episode's start)"
    )
    save(figure, path)


def _radius(params: Any) -> float | None:
    """That within which the source is found; None if there is none."""
    radius = getattr(getattr(params, "ending", None), "radius", None)
    return None if radius is None else float(radius)


def report(
    console: Console,
    directory: Path,
    trained: tuple[Any, Any, Any],
    config: RunConfig,
    episodes: int,
    of: str = "",
) -> None:
    """Score, show the table, and write evaluation and picture into `directory`.

    Args:
      console: for the table.
      directory: of the run.
      trained: what `load_agent` gives.
      config: of the run; its task, seed and data are those of the evaluation.
      episodes: of each policy.
      of: is put into the names of the two files.
    """
    agent, env, params = trained
    task, seed = config.task, config.seed
    with console.status(f"evaluating {episodes} episodes of each policy"):
        env, params = on_bank(env, params, recipe(env).plumes, seed)
        scores = score(env, params, agent, seed, episodes)
    console.print(table(scores, task, params))
    write_scores(_named(directory / EVALUATION, of), scores, task, params, seed, config.data)
    with console.status("drawing trajectories"):
        draw(_named(directory / PICTURE, of), env, params, agent, task, seed)


def _named(path: Path, of: str) -> Path:
    return path.with_stem(f"{path.stem}-{of}") if of else path
