"""benchmarks/transfer: `python -m benchmarks.transfer`: trackers in another plume.

Trains an agent a seed in the filaments of Farrell et al. with `plumejax train`, one a core, and
plays it, the tracker of Singh et al.'s plume that comes with the package, cast-and-surge and the
perfect agent in both plumes, each in steady and in changing wind. What is there already is not done
again. Writes benchmarks/results/transfer.json, and from it benchmarks/transfer.md and a picture.
"""

import json
from pathlib import Path
from typing import Any

import jax
import numpy as np
import tyro
from matplotlib.figure import Figure
from rich.console import Console
from rich.markdown import Markdown
from rich.progress import track

import plumejax
from benchmarks import report
from benchmarks.trainings import cost, train
from plumejax.base.files import write_whole
from plumejax.evaluation.episodes import stream
from plumejax.evaluation.statistics import summarise
from plumejax.evaluation.trials import on_bank
from plumejax.learning.agent import deterministic
from plumejax.policies.catalogue import prepare
from plumejax.viewing.figures import save

RESULTS = Path(__file__).parent / "results" / "transfer.json"
PAGE = Path(__file__).with_name("transfer.md")

TASK = "PlumeTracking-Farrell-v0"
SHIPPED = "PlumeTracking-Code-SwitchMany-v0"
TASKS = {
    "PlumeTracking-Code-Constant-v0": "puffs, constant wind",
    "PlumeTracking-Code-SwitchMany-v0": "puffs, the wind turns",
    "PlumeTracking-FarrellStraight-v0": "filaments, constant wind",
    "PlumeTracking-Farrell-v0": "filaments, the wind wanders",
}
BASELINES = ("cast-and-surge", "perfect")

UNSEEN = 2**20
"""Of the key of the plumes; trainings roll theirs out from their own seeds."""

LANES = 32
"""A lane of a bank reads a whole plume a step: as many as fit into a cache."""


def main(
    *,
    seeds: int = 3,
    episodes: int = 1000,
    plumes: int = 64,
    runs: Path = Path("runs/transfer"),
    out: Path = RESULTS,
    page: Path = PAGE,
) -> None:
    """Train what is missing, play, write the page.

    Args:
      seeds: agents in filaments, of seeds 0, 1, ...
      episodes: of each agent in each task.
      plumes: that share them, rolled out anew.
      runs: where the run directories are, seed0, seed1, ...
      out: JSON to write; the picture goes beside it.
      page: Markdown to write.
    """
    where = {f"filaments, seed {k}": runs / f"seed{k}" for k in range(seeds)}
    train({run: (TASK, "--seed", str(k)) for k, run in enumerate(where.values())})
    learned = {**where, "puffs, as shipped": SHIPPED}
    names = [f"{name}{how}" for name in learned for how in ("", ", likeliest")]
    rows = json.loads(out.read_text())["rows"] if out.is_file() else []
    done = {(row["task"], row["agent"]) for row in rows}
    for task in TASKS:
        missing = [name for name in (*names, *BASELINES) if (task, name) not in done]
        if not missing:
            continue
        made = on_bank(*plumejax.make(task), plumes, UNSEEN)
        for name in track(missing, task, transient=True):
            env, params, policy = _playing(name, learned, made)
            key = jax.random.key(UNSEEN)
            outcomes = stream(env, policy, key, jax.device_put(params), episodes, lanes=LANES)
            found = summarise(outcomes, float(params.ending.radius))
            row = {"task": task, "agent": name, "success": found.success}
            row |= {"low": found.success_low, "high": found.success_high}
            row |= {"lost": found.failed, "steps": found.mean_steps_found}
            rows.append(row)
            settings = {"episodes": episodes, "plumes": plumes}
            costs = {name: cost(run) for name, run in where.items()}
            whole = {"settings": settings, "machine": report.machine(), "training": costs}
            write_whole(out, json.dumps({**whole, "rows": rows}, indent=1) + "\n")
    whole = json.loads(out.read_text())
    text = _page(whole)
    write_whole(page, text)
    _draw(out.with_suffix(".png"), whole["rows"])
    Console().print(Markdown(text))


def _playing(name: str, learned: dict[str, Any], made: tuple[Any, Any]) -> tuple[Any, Any, Any]:
    if name in BASELINES:
        return prepare(name, *made)
    of = name.removesuffix(", likeliest")
    agent = plumejax.load_agent(learned[of])[0]
    return *made, agent if of == name else deterministic(agent)


def _page(whole: dict[str, Any]) -> str:
    rows, settings = whole["rows"], whole["settings"]
    of = {(row["task"], row["agent"]): row for row in rows}
    lines = [
        "# From plume to plume",
        "",
        f"`python -m benchmarks.transfer`. Trackers trained in filaments (`plumejax train {TASK}`,",
        "every seed, none selected), the one of puffs that comes with the package (trained on",
        f"`{SHIPPED}`), and two that learn nothing: cast and surge, and the perfect agent, which",
        f"knows where the source is. {settings['episodes']} episodes each, of {settings['plumes']}",
        "plumes that no training has seen, from the task's own starts, in 300 steps; success in",
        "per cent with its Wilson interval at 95 %, which takes the plumes for independent.",
        "",
        "| agent | " + " | ".join(TASKS.values()) + " |",
        "| --- |" + " --- |" * len(TASKS),
    ]
    for agent in _agents(rows):
        cells = [_cell(of.get((task, agent))) for task in TASKS]
        lines.append(f"| {agent} | " + " | ".join(cells) + " |")
    told = ", ".join(
        f"{name}: {each['steps'] / 1e6:.0f} M steps"
        + (f", {each['seconds'] / 60:.1f} min" if each["seconds"] else "")
        for name, each in whole["training"].items()
    )
    return "\n".join(
        [
            *lines,
            "",
            f"From start to exit (tapes, compilation, training, evaluation) on one core: {told}.",
            "",
            "![Success of every agent in every plume](results/transfer.png)",
            "",
        ]
    )


def _agents(rows: list[dict[str, Any]]) -> list[str]:
    """Those of filaments first, by their seeds."""
    names = dict.fromkeys(row["agent"] for row in rows)
    return sorted(names, key=lambda name: (0, name) if name.startswith("filaments") else (1, ""))


def _cell(row: dict[str, Any] | None) -> str:
    if row is None:
        return ""
    return f"{100 * row['success']:.1f} ({100 * row['low']:.0f} to {100 * row['high']:.0f})"


def _draw(path: Path, rows: list[dict[str, Any]]) -> None:
    agents = _agents(rows)
    table = np.full((len(agents), len(TASKS)), np.nan)
    for row in rows:
        table[agents.index(row["agent"]), list(TASKS).index(row["task"])] = 100 * row["success"]
    figure = Figure(figsize=(8, 0.42 * len(agents) + 1.6), layout="constrained")
    axes = figure.subplots()
    shown = axes.imshow(table, cmap="cividis", vmin=0, vmax=100, aspect="auto")
    for (i, j), value in np.ndenumerate(table):
        colour = "k" if value > 60 else "w"
        axes.text(j, i, f"{value:.0f}", ha="center", va="center", color=colour)
    axes.set_yticks(range(len(agents)), agents)
    axes.set_xticks(range(len(TASKS)), [name.replace(", ", ",\n") for name in TASKS.values()])
    figure.colorbar(shown, ax=axes, label="success, %")
    save(figure, path)


if __name__ == "__main__":
    tyro.cli(main)
