"""benchmarks/memory: `python -m benchmarks.memory`: how much memory does olfactory search need?

On the two tasks of small memory (`FiniteMemory-*-v0`, a hit or none each step) it trains PPO with a
feed-forward network, with the last few steps in view, and with a recurrent one, and Q-learning on
the clock since the last hit; and sets them beside the finite-state controllers of
`benchmarks.finite_state`. What is there already is not done again. Writes
benchmarks/results/memory.json, and from it benchmarks/memory.md and a picture.
"""

import json
import os
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import jax
import numpy as np
import tyro
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.console import Console
from rich.markdown import Markdown
from rich.progress import track

import plumejax
from benchmarks import finite_state, report
from plumejax.base.batch import Batch
from plumejax.base.files import write_whole
from plumejax.evaluation.episodes import stream
from plumejax.learning import finite_state as fs
from plumejax.learning import q_learning as ql
from plumejax.learning.agent import deterministic
from plumejax.learning.curricula import curriculum
from plumejax.learning.ppo import Hyperparameters, Shapes, continue_training, ppo
from plumejax.search.beliefs import Hits
from plumejax.search.clock_states import ClockStates
from plumejax.search.finite_memory_tasks import GAMMA
from plumejax.search.rewards import Progress
from plumejax.search.whiffs import TimeSinceWhiff
from plumejax.viewing.figures import save

RESULTS = Path(__file__).parent / "results" / "memory.json"
PAGE = Path(__file__).with_name("memory.md")

STACKS = (2, 4, 16)
AGENTS = ("none", *(f"stack {n}" for n in STACKS), "gru")
"""What PPO remembers with; the last action and whether the hit is new are seen by all."""

CLOCKS = (2, 4, 8, 16, 32, 64)
"""States of the clock that Q-learning tells apart."""

LEARNERS = 64
"""Tables that are learned side by side; the best one on fresh episodes is taken."""

STEPS, LIMIT = 10_000_000, 1000
"""Of a training, and of an episode in it."""

CLOCK_STEPS = 400_000
"""Of each table."""


def main(
    *,
    seeds: int = 2,
    episodes: int = 1000,
    processes: int = os.cpu_count() or 1,
    out: Path = RESULTS,
    page: Path = PAGE,
) -> None:
    """Train what is missing, play, write the page.

    Args:
      seeds: trainings of each agent, of seeds 0, 1, ...
      episodes: that each plays.
      processes: at work side by side, on one core each.
      out: JSON to write and to go on from; the picture goes beside it.
      page: Markdown to write.
    """
    rows = json.loads(out.read_text())["rows"] if out.is_file() else []
    done = {(row["task"], row["agent"], row["seed"]) for row in rows}
    pool = ProcessPoolExecutor(processes, get_context("spawn"), initializer=_on_one_thread)
    missing = [job for job in _jobs(seeds) if job not in done]
    with pool:
        jobs = [pool.submit(measured, *job, episodes) for job in missing]
        for job in track(as_completed(jobs), "training", total=len(jobs), transient=True):
            rows.append(job.result())
            settings = {"episodes": episodes, "steps": STEPS, "clock_steps": CLOCK_STEPS}
            whole = {"settings": settings, "machine": report.machine(), "rows": rows}
            write_whole(out, json.dumps(whole, indent=1) + "\n")
    text = _page(rows, episodes)
    write_whole(page, text)
    _draw(out.with_suffix(".png"), rows)
    Console().print(Markdown(text))


def _on_one_thread() -> None:
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"


def _jobs(seeds: int) -> Iterator[tuple[str, str, int]]:
    for seed in range(seeds):
        for agent in reversed(AGENTS):
            yield from ((task, agent, seed) for task in finite_state.TASKS)
        if seed == 0:
            for states in CLOCKS:
                yield from ((task, f"clock {states}", 0) for task in finite_state.TASKS)


def measured(task: str, agent: str, seed: int, episodes: int) -> dict[str, Any]:
    """The row of one agent: what it costs, mean and standard error over episodes of the task."""
    began = time.process_time()
    learn = _clock if agent.startswith("clock") else _network
    env, params, policies = learn(task, agent, seed)
    trained = time.process_time() - began
    rows = [_played(env, params, policy, episodes) for policy in policies]
    best = min(rows, key=lambda row: row["cost"])
    about = {"task": task, "agent": agent, "seed": seed, "cpu_seconds": trained}
    return {**about, **best, "each": [row["cost"] for row in rows]}


def _played(env: Any, params: Any, policy: Any, episodes: int) -> dict[str, float]:
    outcomes = stream(env, policy, jax.random.key(2**20), params, episodes)
    found, steps = np.asarray(outcomes.found), np.asarray(outcomes.steps, np.float64)
    cost = 1 - np.where(found, GAMMA**steps, 0.0)
    error = float(cost.std() / np.sqrt(episodes))
    return {"cost": float(cost.mean()), "error": error, "found": float(found.mean())}


def _network(task: str, agent: str, seed: int) -> tuple[Any, Any, list[Any]]:
    """PPO: the agent as it draws its actions, and as it takes the likeliest."""
    env, params = plumejax.make(task)
    reward = Progress()
    paid = reward.default_params().replace(penalty=np.float32(0.02))
    name, _, steps = agent.partition(" ")
    shapes = Shapes(
        num_envs=256,
        num_steps=128,
        num_epochs=2,
        memory=name,
        stack=int(steps or 1),
        floor=1e-2,
    )
    easier = params.replace(reward=paid, max_steps=np.int32(LIMIT))
    algorithm = ppo(replace(env, reward=reward), easier, shapes)
    calls = STEPS // (10 * shapes.num_envs * shapes.num_steps)
    numbers = Hyperparameters(learning_rate=1e-3, updates=10.0 * calls, gamma=0.995)
    hyper = curriculum(numbers, [0.0, 1.0], {"entropy": [0.01, 0.001]})
    call = jax.jit(partial(continue_training, algorithm, updates=10), donate_argnums=0)
    training = jax.jit(algorithm.init)(jax.random.key(seed), easier)
    for _ in range(calls):
        training, _ = call(training, easier, hyper)
    made = jax.block_until_ready(algorithm.agent(training))
    return env, params, [made, deterministic(made)]


def _clock(task: str, agent: str, seed: int) -> tuple[Any, Any, list[Any]]:
    """Q-learning on the clock since the last hit: the table that did best while learning, by its
    last episodes, of many learned side by side."""
    plain, _ = plumejax.make(task)
    states = int(agent.split()[1])
    sensor = ClockStates(TimeSinceWhiff(Hits(plain.plume, 2)), states)
    reward = Progress()
    env, params = plumejax.make(
        task,
        sensor=sensor,
        overrides={
            "sensor.tick": 1.0,
            "sensor.of.threshold": 0.5,
            "sensor.of.refractory": 0.0,
            "sensor.of.longest": float(states),
        },
    )
    paid = reward.default_params().replace(penalty=np.float32(0.02))
    easier = params.replace(reward=paid, max_steps=np.int32(LIMIT))
    batch = Batch(replace(env, reward=reward), LEARNERS)
    key, run_key = jax.random.split(jax.random.key(seed))
    begun = ql.begin(batch, ql.table(env, easier, recovery="cast_and_surge"), key, easier)
    numbers = ql.Numbers(gamma=np.float32(0.995), alpha=np.float32(0.02), epsilon=np.float32(0.5))
    half = ql.train(batch, begun, run_key, easier, CLOCK_STEPS // 2, numbers)
    whole = ql.train(batch, half, run_key, easier, CLOCK_STEPS // 2, numbers)
    late = np.asarray(whole.found - half.found) / np.maximum(1, whole.episodes - half.episodes)
    order = np.argsort(-late, kind="stable")
    return env, params, [ql.learned(whole, int(learner)) for learner in order[:2]]


def bits(agent: str) -> float:
    """What an agent remembers, at most, besides the hit of now; NaN of real numbers."""
    name, _, count = agent.partition(" ")
    if name in ("clock", "states"):
        return float(np.log2(int(count)))
    # A step: whether there was a hit, and which of four moves was made.
    return {"none": 3.0, "stack": 3.0 * int(count or 1)}.get(name, float("nan"))


def _controllers(task: str) -> list[dict[str, Any]]:
    """What `benchmarks.finite_state` found, as rows."""
    rows = json.loads(finite_state.RESULTS.read_text())["rows"]
    return [
        {
            "agent": f"states {row['memories']}",
            "cost": row["value"],
            "error": 0.0,
            "found": row["found"],
        }
        for row in rows
        if row["task"] == task
    ]


FAMILIES = {
    "states": ("finite-state controller, optimised exactly", "#000000", "s-"),
    "clock": ("Q-learning on the clock since the last hit, casting", "#E69F00", "^-"),
    "none": ("PPO, feed-forward", "#0072B2", "o"),
    "stack": ("PPO, the last steps in view", "#56B4E9", "o"),
    "gru": ("PPO, GRU of 64 units", "#009E73", "D"),
}


def _page(rows: list[dict[str, Any]], episodes: int) -> str:
    lines = [
        "# How much memory does olfactory search need?",
        "",
        "`python -m benchmarks.memory`. Searches by hit or no hit alone, without knowing where",
        "one is (after Verano, Panizon, Celani 2023). What a search costs is 1 - E[gamma^T], gamma",
        f"= 0.99975; +- is a standard error over {episodes} episodes; every seed is here. PPO is",
        "paid for coming nearer while it learns; the better of drawn and likeliest actions is",
        f"shown, of Q-learning the best of two tables among {LEARNERS}; where the last hit is as",
        "long ago as its clock goes, it casts and surges. Controllers: `python -m",
        "benchmarks.finite_state`, exact values. Memory, in bits, is what an agent can tell apart",
        "besides the hit of now; the steps of a cast are not in it. PPO is shown its last move and",
        "whether the hit is new (3 bits a step); what 64 numbers of a GRU hold has no such bound.",
        "",
        "| task | agent | bits | cost | found | CPU s |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for task in finite_state.TASKS:
        for row in (*_controllers(task), *_of(rows, task)):
            memory = bits(row["agent"])
            told = "" if np.isnan(memory) else f"{memory:.3g}"
            seed = f", seed {row['seed']}" if "seed" in row and "clock" not in row["agent"] else ""
            error = f" +- {row['error']:.4f}" if row["error"] else ""
            spent = f"{row['cpu_seconds']:.0f}" if "cpu_seconds" in row else ""
            lines.append(
                f"| {task} | {row['agent']}{seed} | {told} | {row['cost']:.4f}{error} |"
                f" {row['found']:.3f} | {spent} |"
            )
    return "\n".join([*lines, "", "![Cost against memory](results/memory.png)", ""])


def _of(rows: list[dict[str, Any]], task: str) -> list[dict[str, Any]]:
    order = [*AGENTS, *(f"clock {n}" for n in CLOCKS)]
    own = [row for row in rows if row["task"] == task]
    return sorted(own, key=lambda row: (order.index(row["agent"]), row["seed"]))


def _draw(path: Path, rows: list[dict[str, Any]]) -> None:
    figure = Figure(figsize=(10, 4.4), layout="constrained")
    for axes, task in zip(figure.subplots(1, 2, sharey=True), finite_state.TASKS, strict=True):
        _panel(axes, task, [*_controllers(task), *_of(rows, task)])
    figure.axes[0].set_ylabel("cost of a search, 1 - E[gamma$^T$]")
    handles, names = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=3, frameon=False)
    save(figure, path)


def _panel(axes: Axes, task: str, rows: list[dict[str, Any]]) -> None:
    real = 3.0 * max(STACKS) * 3
    for family, (name, colour, style) in FAMILIES.items():
        own = [row for row in rows if row["agent"].split()[0] == family]
        at = [real if np.isnan(bits(row["agent"])) else bits(row["agent"]) for row in own]
        axes.plot(at, [row["cost"] for row in own], style, color=colour, label=name, ms=5, lw=1)
    env, params = plumejax.make(task)
    straight = finite_state.straight(fs.problem(env, params), params)
    axes.axhline(straight, color="0.6", lw=1, ls=":", label="straight to the source")
    axes.set_xscale("symlog", base=2, linthresh=1)
    marks = [0, 1, 2, 3, 6, 12, 24, 48]
    axes.set_xticks([*marks, real], [*map(str, marks), "64\nnumbers"])
    axes.set(yscale="log", xlabel="memory, bits", title=task, xlim=(-0.3, 1.4 * real))


if __name__ == "__main__":
    tyro.cli(main)
