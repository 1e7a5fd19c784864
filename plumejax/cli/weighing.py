"""cli/weighing: `plumejax evaluate TASK --estimator survival`, a policy that believes, weighed."""

import json
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from plumejax.base.errors import require
from plumejax.base.files import write_whole
from plumejax.cli.plume_named import bar
from plumejax.cli.scoring import draw_laws
from plumejax.evaluation.results import Subject, finite
from plumejax.evaluation.survival import Searches, Weighed, arrival_law, search, weigh
from plumejax.evaluation.trials import Trial, evaluation_key, make_agent, make_task, subject


def weighed(console: Console, trial: Trial, out: tuple[Path, ...]) -> None:
    """Weigh the searches of `trial`, show what they came to, and write it into `out`."""
    for path in out:
        good = path.suffix in (".json", ".png")
        require(good, "--out", str(path), "a file named *.json or *.png, of a survival estimate")
    about, searches = _searched(console, trial)
    summary = weigh(searches)
    console.print(_table(trial, about, summary))
    for path in out:
        if path.suffix == ".json":
            whole = {"of": asdict(about), "survival": finite(asdict(summary))}
            write_whole(path, json.dumps(whole, indent=2) + "\n")
        else:
            title = f"{trial.task}: {trial.label}"
            draw_laws(path, {trial.label: arrival_law(searches)}, about.max_steps, title)
        console.print(f"{path}", highlight=False, soft_wrap=True)


def _searched(console: Console, trial: Trial) -> tuple[Subject, Searches]:
    with bar(console) as shown:
        count = shown.add_task("making the task", total=None)
        env, params = make_task(trial)
        env, params, policy = make_agent(trial, env, params)
        shown.update(count, description=f"{trial.label} on {trial.task}", total=trial.episodes)

        def told(ended: int) -> None:
            shown.advance(count, ended)

        key = evaluation_key(trial.seed)
        searches = search(env, policy, key, params, trial.episodes, progress=told)
    return subject(trial, env, params), searches


def _table(trial: Trial, about: Subject, summary: Weighed) -> Table:
    shown = Table(
        title=f"{trial.task}: {trial.label}, {summary.searches} searches weighed by survival",
        caption=f"at most {about.max_steps} steps; ± standard error",
        show_header=False,
    )
    s = summary
    shown.add_row("not found", f"{s.not_found:.5f} ± {s.error_not_found:.5f}")
    shown.add_row("mean steps if found", f"{s.mean_steps_found:.2f} ± {s.error_steps_found:.2f}")
    shown.add_row("restricted mean", f"{s.restricted_mean:.2f} ± {s.error_restricted_mean:.2f}")
    for per_cent, (steps, error) in s.percentiles.items():
        shown.add_row(f"{per_cent} % have found within", f"{steps:.1f} ± {error:.1f}")
    shown.add_row("hits before, if found", f"{s.hits:.2f} ± {s.error_hits:.2f}")
    shown.add_row("barred moves an episode", f"{s.walls:.3f}")
    shown.add_row("cycled before it found", f"{s.cycled:.5f}")
    shown.add_row("searches that got stuck", f"{s.stuck:.5f}")
    shown.add_row("searches cut off", f"{s.timed_out:.5f}")
    return shown
