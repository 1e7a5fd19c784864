"""cli/report: `plumejax report`: a run, a league or a sweep as one HTML file, with its episodes."""

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import tyro
from rich.console import Console
from rich.progress import Progress

from plumejax.base.errors import ValidationError, require
from plumejax.base.files import write_whole
from plumejax.cli.plume_named import bar, require_out
from plumejax.evaluation.episodes import trace
from plumejax.evaluation.league import CELLS
from plumejax.evaluation.results import Subject, read_result
from plumejax.evaluation.trials import Trial, evaluation_key, make_agent, make_task, on_bank
from plumejax.learning.recipes import recipe
from plumejax.learning.runs import (
    CONFIG,
    EVALUATION,
    LEARNING,
    METRICS,
    PICTURE,
    load_agent,
    read_config,
)
from plumejax.viewing import player
from plumejax.viewing.report import Section, page

SHOWN = 12
"""Episodes that are replayed, unless `--episodes` says otherwise."""

MOST = 20
"""Episodes of a report: with these it is less than 5 MB."""


def report(
    target: tyro.conf.Positional[Path],
    *,
    out: Path | None = None,
    episodes: int = SHOWN,
    value: str | None = None,
) -> int:
    """Make a report of results as one HTML file: tables, pictures, and a player of episodes.

    The file needs no network and no other file. The player shows the plume as it moves, the way of
    the agent, what it smells, and the belief or the hidden state it acts on. Where the results are
    of a bank of plumes it plays in four at most, so these episodes are others of the same kind.

    Args:
        target: a run directory of `plumejax train`, the directory of a `plumejax league`, or the
            store (*.zarr) of a `plumejax sweep`.
        out: the file, *.html; by default report.html in the directory, of a store beside it.
        episodes: that can be replayed, up to 20; they are played anew.
        value: of a sweep, what is drawn; by default success.
    """
    require_out(out, ".html")
    require(0 <= episodes <= MOST, "--episodes", episodes, f"0 to {MOST}")
    good = value is None or target.suffix == ".zarr"
    require(good, "--value", value, "left out: it is for sweeps")
    with bar(Console()) as shown:
        if (target / CONFIG).is_file():
            title, sections, watched = _of_run(target, episodes, shown)
        elif (target / CELLS).is_dir():
            title, sections, watched = _of_league(target, episodes, shown)
        elif target.suffix == ".zarr":
            title, sections, watched = _of_sweep(target, episodes, value or "success", shown)
        else:
            raise ValidationError(
                f"{target} is no run directory (with {CONFIG}), no league (with {CELLS}/) and no"
                " store of a sweep (*.zarr)"
            )
    usual = target.with_suffix(".html") if target.suffix == ".zarr" else target / "report.html"
    text = page(title, sections, watched)
    write_whole(out or usual, text)
    Console().print(
        f"{out or usual}: {len(watched)} episodes, {len(text) / 1e6:.1f} MB",
        highlight=False,
        soft_wrap=True,
    )
    return 0


Parts = tuple[str, list[Section], list[dict[str, Any]]]
"""Title, sections and episodes of a report."""


def _of_run(directory: Path, episodes: int, shown: Progress) -> Parts:
    config = read_config(directory)
    require(
        config.seeds == 1,
        "TARGET",
        str(directory),
        f"a run of one seed, such as {directory / f'seed{config.seed}'}",
    )
    agent, env, params = load_agent(directory)
    rows = [json.loads(line) for line in (directory / METRICS).read_text().splitlines()]
    scores = json.loads((directory / EVALUATION).read_text()) if _has(directory, EVALUATION) else {}
    last = rows[-1] if rows else {"steps": 0, "update": 0}
    memory = config.shapes.memory
    kind = "without memory" if memory == "none" else f"with memory of the kind {memory}"
    text = (
        f"PPO {kind}, seed {config.seed}: {last['update']} of"
        f" {config.updates} updates, {last['steps']:,} environment steps."
    )
    pictures = {
        "Episodes while learning": LEARNING,
        "Episodes of the evaluation": PICTURE,
    }
    found = {k: (directory / v).read_bytes() for k, v in pictures.items() if _has(directory, v)}
    sections = [
        Section("Evaluation", text, _score_rows(scores.get("scores", {}))),
        Section("Pictures", figures=found),
        Section("Numbers", "Of PPO and of the task.", _numbers(config)),
    ]
    if not scores:
        sections[0] = sections[0]._replace(text=f"{text} It has not been evaluated.")
    with_plumes = on_bank(env, params, min(recipe(env).plumes, 4), config.seed)
    watched = _watch(*with_plumes, agent, config.seed, episodes, "trained agent", shown)
    return f"{config.task}, a training", sections, list(watched)


def _score_rows(scores: dict[str, Any]) -> list[list[str]]:
    if not scores:
        return []
    head = ["policy", "success", "95 %", "median steps", "mean steps if found", "return"]
    return [head, *([name, *_scored(s)] for name, s in scores.items())]


def _scored(s: dict[str, Any]) -> list[str]:
    interval = f"{s['success_low']:.3f} to {s['success_high']:.3f}"
    rest = map(_short, (s["median_steps"], s["mean_steps_found"], s["mean_return"]))
    return [f"{s['success']:.3f}", interval, *rest]


def _numbers(config: Any) -> list[list[str]]:
    chosen = {f"hyper {k}": v for k, v in sorted(vars(config.hyperparameters).items())}
    shapes = {f"shape {k}": v for k, v in sorted(vars(config.shapes).items())}
    return [
        ["number", "value"],
        *([k, _short(v)] for k, v in (config.settings | shapes | chosen).items()),
    ]


def _of_league(directory: Path, episodes: int, shown: Progress) -> Parts:
    done = (directory / "league.json").is_file()
    require(done, "TARGET", str(directory), "a finished league: the command that began it goes on")
    rows = json.loads((directory / "league.json").read_text())
    tasks = list(dict.fromkeys(row["task"] for row in rows))
    sections = [
        Section(
            task,
            "The same episodes for every policy; the best first.",
            _league_rows([row for row in rows if row["task"] == task]),
            {
                path.stem: path.read_bytes()
                for path in (directory / f"league-{task}.png", directory / f"arrivals-{task}.png")
                if path.is_file()
            },
        )
        for task in tasks
    ]
    firsts = [next((r for r in rows if r["task"] == task and r["summary"]), None) for task in tasks]
    head, *lines = _league_rows([row for row in firsts if row])
    named = [[row["task"], *line] for row, line in zip(filter(None, firsts), lines, strict=True)]
    sections.insert(0, Section("Best of each task", "", [["task", *head], *named]))
    results = (read_result(path) for path in sorted((directory / CELLS).glob("*.npz")))
    subjects = {(s.task, s.policy): s for s in (result.subject for result in results)}
    best = [
        subjects[row["task"], row["policy"]]
        for rank in range(3)
        for task in tasks
        for row in [r for r in rows if r["task"] == task and r["summary"]][rank : rank + 1]
        if (row["task"], row["policy"]) in subjects
    ]
    best = best[: max(1, episodes)]
    shares = [len(part) for part in np.array_split(np.arange(episodes), max(1, len(best)))]
    watched: list[dict[str, Any]] = []
    for subject, share in zip(best, shares, strict=False):
        watched += _watch_trial(_trial(subject), share, shown)
    return f"League of {len(tasks)} tasks", sections, watched


def _league_rows(rows: list[dict[str, Any]]) -> list[list[str]]:
    head = ["policy", "success", "95 %", "median steps", "mean steps if found", "return"]
    lines = [head]
    for row in rows:
        if row["summary"] is None:
            lines.append([row["policy"], f"does not fit: {row['reason']}", "", "", "", ""])
        else:
            lines.append([row["policy"], *_scored(row["summary"])])
    return lines


def _trial(subject: Subject) -> Trial:
    """What was played, as far as its result says: of a learned policy the name of its file."""
    arguments = json.loads(subject.arguments)
    arguments.pop("sha256", None)
    numbers = json.loads(subject.overrides)
    static = {
        name: numbers.pop(name) for name in list(numbers) if "." not in name and name != "max_steps"
    }
    return Trial(
        subject.task,
        subject.policy.split(":")[0],
        seed=subject.seed,
        arguments=arguments,
        overrides=numbers,
        static=static,
        plumes=min(subject.plumes, 4),
    )


def _of_sweep(path: Path, episodes: int, value: str, shown: Progress) -> Parts:
    from plumejax.sweeps.store import load, read_description
    from plumejax.viewing.sweeps import figure

    data, about = load(path), read_description(path)
    played, cells = int(data.done.sum()), data.done.size
    if not played:
        raise ValidationError(
            f"{path}: no cell has been played yet; plumejax sweep goes on with it"
        )
    figures = {value: figure(data, value)}
    flat = data[value].values.ravel()
    order = np.argsort(np.where(np.isnan(flat), -np.inf, flat), kind="stable")[::-1][:played]
    head = ["cell", *_columns(data), *(name for name in data.data_vars if name != "done")]
    ends = dict.fromkeys([*order[:5].tolist(), *order[-2:].tolist()])
    rows = [head, *([n, *map(_short, _cell(data, n, head[1:]).values())] for n in ends)]
    text = (
        f"{about['task']}: {played} of {cells} cells have been played, {data.attrs['episodes']}"
        f" episodes each. The five cells of the highest {value}, and the two of the lowest:"
    )
    sections = [Section("Cells", text, rows, figures)]
    sections.append(
        Section("What exactly", "", [["", ""], *([k, _short(v)] for k, v in about.items())])
    )
    watched: list[dict[str, Any]] = []
    if "policy" in about and "arguments" in about and episodes:
        chosen = list(dict.fromkeys([order[0], order[len(order) // 2], order[-1]]))[:episodes]
        for cell, part in zip(
            chosen, np.array_split(np.arange(episodes), len(chosen)), strict=True
        ):
            own = _cell(data, int(cell), _columns(data))
            watched += _watch_trial(_cells_trial(about, own), len(part), shown)
    return f"Sweep of {about['task']}", sections, watched


def _columns(data: Any) -> list[str]:
    """Names of what varies, of one number a cell."""
    return [name for name, values in data.coords.items() if values.ndim == 1]


def _cell(data: Any, number: int, names: list[str]) -> dict[str, Any]:
    where = dict(zip(data.done.dims, np.unravel_index(number, data.done.shape), strict=True))
    here = data.isel(where)
    return {name: here[name].values.item() for name in names}


def _cells_trial(about: dict[str, Any], own: dict[str, Any]) -> Trial:
    """The trial that a cell of a sweep played."""
    policy = str(own.pop("policy", about["policy"]))
    seed = int(own.pop("seed", about["seed"]))
    given = {k.removeprefix("policy."): own.pop(k) for k in list(own) if k.startswith("policy.")}
    fixed = {name: _plain(x) for name, x in about["arguments"].items()}
    return Trial(
        about["task"],
        policy,
        seed=seed,
        arguments=fixed | given,
        overrides=about["overrides"] | own,
        static={name: _plain(x) for name, x in about["static"].items()},
        plumes=min(about["plumes"], 4),
    )


def _plain(text: str) -> Any:
    """A value that a description has as text."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _watch_trial(trial: Trial, episodes: int, shown: Progress) -> list[dict[str, Any]]:
    """Episodes of a trial; none where its policy or its data are not at hand."""
    try:
        env, params, policy = make_agent(trial, *make_task(trial))
    except ValidationError as error:
        shown.console.print(f"not replayed: {error}", highlight=False, soft_wrap=True)
        return []
    title = f"{trial.task}, {trial.label}"
    return list(_watch(env, params, policy, trial.seed, episodes, title, shown))


def _watch(
    env: Any, params: Any, policy: Any, seed: int, episodes: int, title: str, shown: Progress
) -> Iterator[dict[str, Any]]:
    if not episodes:
        return
    count = shown.add_task(f"playing {title}", total=episodes)
    params = jax.device_put(params)
    limit = int(params.max_steps)
    outcomes, lanes = trace(env, policy, evaluation_key(seed), params, episodes, limit)
    for each in player.episodes(env, params, policy, outcomes, lanes, title):
        yield each
        shown.advance(count)


def _has(directory: Path, name: str) -> bool:
    return (directory / name).is_file()


def _short(value: Any) -> str:
    """A value of a table."""
    if value is None:
        return "none"
    if isinstance(value, float | np.floating):
        return f"{value:.4g}"
    return str(value)
