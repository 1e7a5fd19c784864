"""benchmarks/beliefs: `python -m benchmarks.beliefs`: PPO on the belief beside infotaxis.

Trains a feed-forward agent a seed on each of the four cases of olfactory search, whose observation
is the belief as the agent sees it (`search.beliefs.BeliefAround`), two at a time on two cores, and
plays the same number of episodes with it, with infotaxis and with space-aware infotaxis. What is
there already is not done again. Writes benchmarks/results/beliefs.json, and from it
benchmarks/beliefs.md and a picture.
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
from rich.progress import Progress

import plumejax
from benchmarks import report
from benchmarks.trainings import cost, train
from plumejax.base.files import write_whole
from plumejax.evaluation.episodes import stream
from plumejax.learning.agent import deterministic
from plumejax.policies.catalogue import prepare
from plumejax.viewing.figures import save

RESULTS = Path(__file__).parent / "results" / "beliefs.json"
PAGE = Path(__file__).with_name("beliefs.md")

CASES = ("Isotropic-19x19", "Isotropic-53x53", "Windy-Medium", "Windy-Low")
BASELINES = ("infotaxis", "space-aware-infotaxis")
LEARNED = "PPO"


def main(
    *,
    seeds: int = 3,
    cases: tuple[str, ...] = CASES,
    episodes: int = 20_000,
    runs: Path = Path("runs/beliefs"),
    out: Path = RESULTS,
    page: Path = PAGE,
) -> None:
    """Train what is missing, play, write the page.

    Args:
      seeds: agents of each case, of seeds 0, 1, ...
      cases: of the four.
      episodes: of each agent.
      runs: where the run directories are, CASE-seed0, ...
      out: JSON to write; the picture goes beside it.
      page: Markdown to write.
    """
    where = {(case, seed): runs / f"{case}-seed{seed}" for case in cases for seed in range(seeds)}
    train(
        {
            path: (f"Olfactory-{case}-Belief-v0", "--seed", str(seed))
            for (case, seed), path in where.items()
        }
    )
    rows = json.loads(out.read_text())["rows"] if out.is_file() else []
    done = {(row["case"], row["policy"], row["seed"]) for row in rows}
    wanted = [(case, policy, None) for case in cases for policy in BASELINES]
    wanted += [(case, LEARNED, seed) for case, seed in where]
    missing = [each for each in wanted if each not in done]
    with Progress(transient=True) as progress:
        bar = progress.add_task("", total=len(missing) * episodes)
        for case, policy, seed in missing:
            progress.update(bar, description=f"{case}, {policy}")
            learned = where.get((case, seed))
            task = _learned(learned) if learned else _baseline(case, policy)
            steps, limit = _play(task, episodes, lambda n: progress.advance(bar, n))
            row = {"case": case, "policy": policy, "seed": seed, "limit": limit}
            row |= _summary(steps, limit) | {"training": cost(learned) if learned else None}
            rows.append(row)
            settings = {"episodes": episodes}
            whole = {"settings": settings, "machine": report.machine(), "rows": rows}
            write_whole(out, json.dumps(whole, indent=1) + "\n")
    text = _page(rows, episodes)
    write_whole(page, text)
    _draw(out.with_suffix(".png"), rows)
    Console().print(Markdown(text))


def _baseline(case: str, policy: str) -> Any:
    return prepare(policy, *plumejax.make(f"Olfactory-{case}-v0"))


def _learned(run: Path) -> Any:
    agent, env, params = plumejax.load_agent(run)
    return env, params, deterministic(agent)


def _play(task: Any, episodes: int, progress: Any) -> tuple[np.ndarray, int]:
    """Steps of each episode, NaN where the source was not found; and the task's limit."""
    env, params, policy = task
    outcomes = stream(env, policy, jax.random.key(2**20), params, episodes, progress=progress)
    found = np.asarray(outcomes.found)
    return np.where(found, np.asarray(outcomes.steps, float), np.nan), int(params.max_steps)


def _summary(steps: np.ndarray, limit: int) -> dict[str, float]:
    """Of all episodes the share that found, and the time, that of the others counting as the
    limit; with the standard error of the mean."""
    found = np.isfinite(steps)
    shorter = np.where(found, steps, limit)
    return {
        "found": float(found.mean()),
        "mean": float(shorter.mean()),
        "error": float(shorter.std() / np.sqrt(len(steps))),
        "mean_if_found": float(steps[found].mean()),
        "median": float(np.median(shorter)),
        "p90": float(np.percentile(shorter, 90)),
    }


def _own(rows: list[dict[str, Any]], case: str, policy: str) -> list[dict[str, Any]]:
    own = [row for row in rows if (row["case"], row["policy"]) == (case, policy)]
    return sorted(own, key=lambda row: row["seed"] or 0)


def _cases(rows: list[dict[str, Any]]) -> list[str]:
    return [case for case in CASES if any(row["case"] == case for row in rows)]


def _page(rows: list[dict[str, Any]], episodes: int) -> str:
    lines = [
        "# PPO on the belief, beside infotaxis",
        "",
        "`python -m benchmarks.beliefs`. A feed-forward agent trained with",
        "`plumejax train Olfactory-CASE-Belief-v0`, whose observation is the belief of a Bayesian",
        "as seen from where it stands; every seed is here, none selected, the likeliest action at",
        f"each step. {episodes} episodes each. Steps until the source is found; one that is not",
        "found before the task's limit counts as that limit in `mean`, `median` and `p90`; +- is a",
        "standard error.",
        "",
        "| case | policy | mean | mean if found | median | p90 | not found | training |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for case in _cases(rows):
        for policy in (*BASELINES, LEARNED):
            for row in _own(rows, case, policy):
                name = policy if row["seed"] is None else f"{policy}, seed {row['seed']}"
                told = ""
                if row["training"]:
                    told = f"{row['training']['steps'] / 1e6:.0f} M steps"
                    seconds = row["training"]["seconds"]
                    told += f", {seconds / 60:.1f} min" if seconds else ""
                lines.append(
                    f"| {case} | {name} | {row['mean']:.2f} +- {row['error']:.2f} |"
                    f" {row['mean_if_found']:.2f} | {row['median']:.0f} | {row['p90']:.0f} |"
                    f" {1 - row['found']:.4f} | {told} |"
                )
    return "\n".join([*lines, "", "![Mean time of each](results/beliefs.png)", ""])


def _draw(path: Path, rows: list[dict[str, Any]]) -> None:
    cases = _cases(rows)
    figure = Figure(figsize=(2.6 * len(cases), 3.2), layout="constrained")
    for axes, case in zip(np.atleast_1d(figure.subplots(1, len(cases))), cases, strict=True):
        for place, policy in enumerate((*BASELINES, LEARNED)):
            own = _own(rows, case, policy)
            means = [row["mean"] for row in own]
            at = place + 0.12 * (np.arange(len(own)) - (len(own) - 1) / 2)
            axes.errorbar(
                at, means, [1.96 * row["error"] for row in own], fmt="o", color=f"C{place}"
            )
        axes.set_xticks(range(3), ["info-\ntaxis", "space-\naware", "PPO,\neach seed"])
        axes.set_xlim(-0.5, 2.5)
        axes.set_title(case)
    np.atleast_1d(figure.axes)[0].set_ylabel("mean time to the source, steps (95 %)")
    save(figure, path)


if __name__ == "__main__":
    tyro.cli(main)
