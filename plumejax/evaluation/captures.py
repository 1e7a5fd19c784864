"""evaluation/captures: every step of an evaluation's episodes in one table."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np

from plumejax.base import tables
from plumejax.base.errors import ValidationError, require
from plumejax.base.lifecycle import Lifecycle
from plumejax.evaluation import replays
from plumejax.evaluation.league import cell_name
from plumejax.evaluation.replays import EpisodeRecord
from plumejax.evaluation.trials import Trial, evaluation_key, make_agent, make_task

_STEPS = 2**20
"""Steps of episodes that are played at once, about."""


def capture(
    trial: Trial, folder: Path, progress: Callable[[int], None] = lambda ended: None
) -> Path:
    """Play the episodes of a trial, as `run_trial` does, and keep every step; the table's path.

    The table is FOLDER/TASK--POLICY.parquet (`base/tables`): a row for each state, the start and
    the end among them, with the action that it was answered with, and of the state all parts of at
    most `tables.MOST` numbers; what is larger, a plume of puffs, follows by playing it again.

    Raises:
      ValidationError: what is asked for is not there or does not fit, the table is there, or an
        action that the task refuses.
      PlumeError: pyarrow is not installed (the extra `data`).
    """
    path = new_table(trial, folder)
    about = replays.header(trial)
    env, params, policy = make_agent(trial, *make_task(trial))
    limit, key = int(params.max_steps), evaluation_key(trial.seed)
    params = jax.device_put(params)
    lanes = min(trial.episodes, max(1, min(256, _STEPS // limit)))
    for first in range(0, trial.episodes, lanes):
        # The last ones are played in as many lanes: one program serves all.
        numbers = np.arange(first, first + lanes, dtype=np.uint32)
        found = replays.played(env, policy, key, params, numbers, limit, tables.MOST)
        actions, named = jax.device_get(found[0]), replays.named(found[1])
        wanted = range(min(lanes, trial.episodes - first))
        tables.append(path, about, [_rows(first + i, actions[i], named, i) for i in wanted])
        progress(len(wanted))
    return path


def new_table(trial: Trial, folder: Path, name: str = "capture") -> Path:
    """The path of the table of a trial. Raises `ValidationError` if it is there already, or if
    `folder` takes none; `name` is what the folder is called."""
    tables.require_folder(name, folder)
    path = folder / f"{cell_name(trial)}.parquet"
    require(not path.exists(), name, str(folder), f"a folder without {path.name}")
    return path


def read_captured(path: Path, number: int) -> EpisodeRecord:
    """An episode of a table that `capture` wrote, as `replay` plays it again.

    Raises `ValidationError` for another table, or an episode that it does not have.
    """
    about, columns = tables.read_episode(path, number)
    actions = columns.pop("action")
    states = {name: columns[name] for name in columns if name.startswith(".")}
    return EpisodeRecord({**about, "number": number}, actions, states)


def _rows(number: int, actions: Any, named: dict[str, np.ndarray], lane: int) -> dict[str, Any]:
    steps = int(named[".step_count"][lane, -1])
    if named[".lifecycle"][lane, -1] == Lifecycle.READY:
        raise ValidationError(f"episode {number}: the task refuses the action {actions[steps]}")
    kept = {name: values[lane, : steps + 1] for name, values in named.items()}
    return tables.rows(number, actions[:steps], kept)
