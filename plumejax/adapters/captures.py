"""adapters/captures: every step of a Gymnasium environment's episodes in a table, and again."""

import json
import time
import uuid
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jax
import numpy as np

from plumejax.adapters.config import DEFAULT_TASK, EnvironmentConfig
from plumejax.base import tables
from plumejax.base.errors import require
from plumejax.base.extras import need
from plumejax.base.registry import find
from plumejax.evaluation.replays import Difference, named, parts
from plumejax.learning.checkpoints import describe, versions

_EPISODES, _SECONDS = 64, 5.0
"""Finished episodes are written when there are so many, or so long after the last ones."""


class Recorder:
    """Keeps the steps of one environment: in memory until their episode is over, then on disk.

    Its table is FOLDER/TASK-MARK.parquet (`base/tables`), a row for each state; the mark is its
    own. An episode that was not ended by a reset or by `close` when the process is killed is lost,
    and those finished in the last seconds.

    Args:
      folder: of the tables; made when the first is written.
      made: the arguments of the environment, by name.
      params: of its task.

    Raises `PlumeError` if pyarrow is not installed (the extra `data`).
    """

    def __init__(self, folder: str | Path, made: dict[str, Any], params: Any) -> None:
        need("pyarrow", "data")
        self._again = folder, made, params
        task = _task(made)
        self.path = Path(folder) / f"{task}-{uuid.uuid4().hex[:8]}.parquet"
        self._about = {
            "adapter": _plain(made),
            "task": task,
            "version": find(task).version,
            "params": describe(params),
            "versions": versions(),
        }
        self._done: list[dict[str, np.ndarray]] = []
        self._number, self._written = 0, time.monotonic()
        self._actions: list[Any] = []
        self._states: list[Any] = []
        self._begun: dict[str, Any] = {}

    def fresh(self) -> "Recorder":
        """One of the same environment with a table of its own."""
        return Recorder(*self._again)

    def begin(self, seed: int, options: Any, state: Any) -> None:
        """An episode begins, and the one before is over."""
        self._end()
        self._begun = {"seed": seed, "options": json.dumps(options, default=_listed)}
        self._actions, self._states = [], [_small(state)]
        if len(self._done) >= _EPISODES or time.monotonic() - self._written > _SECONDS:
            self.flush()

    def step(self, action: Any, state: Any) -> None:
        """The action led to the state."""
        self._actions.append(np.asarray(action))
        self._states.append(_small(state))

    def close(self) -> None:
        """All that was noted is on disk."""
        self._end()
        self._states = []
        self.flush()

    def flush(self) -> None:
        """All finished episodes are on disk."""
        if self._done:
            tables.append(self.path, self._about, self._done)
            self._done, self._written = [], time.monotonic()

    def _end(self) -> None:
        if not self._states:
            return
        states = {k: np.stack([each[k] for each in self._states]) for k in self._states[0]}
        actions = np.asarray(self._actions) if self._actions else np.zeros(0, np.int64)
        self._done.append(tables.rows(self._number, actions, states, self._begun))
        self._number += 1
        self._states = []


def replay_captured(path: Path, number: int, rtol: float = 1e-5) -> Difference | None:
    """An episode of a table of a `Recorder` played again, with its seed, options and actions: where
    it comes to another state first, None if nowhere.

    Raises:
      ValidationError: another table, an episode that it does not have, an environment that was made
        of components of its user's, or a task that is not what it was.
    """
    from plumejax.adapters.gymnasium import PlumeSearchEnv

    about, columns = tables.read_episode(path, number)
    made, actions = about["adapter"], columns.pop("action")
    own = made.get("not plain", [])
    require(not own, str(path), ", ".join(own), "an environment of named parts, which can be made")
    env = PlumeSearchEnv(**made)
    known = json.loads(json.dumps(describe(env.params)))
    require(known == about["params"], "params", known, f"{about['params']}, as captured")
    options = json.loads(columns["options"][0])
    env.reset(seed=int(columns["seed"][0]), options=options)
    states = [_small(env.functional_state)]
    for action in actions:
        env.step(action)
        states.append(_small(env.functional_state))
    env.close()
    now = {k: np.stack([each[k] for each in states]) for k in states[0]}
    return parts({k: x for k, x in columns.items() if k in now}, now, rtol)


def _small(state: Any) -> dict[str, np.ndarray]:
    state = state.replace(observation=None)
    kept = jax.tree.map(lambda x: x if x.size <= tables.MOST else None, state)
    return named(jax.device_get(kept))


def _task(made: dict[str, Any]) -> str:
    config = made["config"]
    if isinstance(config, EnvironmentConfig):
        return config.task
    return (config or {}).get("task", made["task"] or DEFAULT_TASK)


def _plain(made: dict[str, Any]) -> dict[str, Any]:
    """Arguments for JSON; "not plain" names those that have no form there."""
    told: dict[str, Any] = {}
    for name, value in made.items():
        if value is None:
            continue
        try:
            told[name] = json.loads(json.dumps(value, default=_listed))
        except (TypeError, ValueError):
            told.setdefault("not plain", []).append(f"{name} = {value!r}")
    return told


def _listed(value: Any) -> Any:
    if isinstance(value, EnvironmentConfig):
        return asdict(value)
    if hasattr(value, "dtype"):
        return np.asarray(value).tolist()
    raise TypeError(f"{value!r} has no form in JSON")
