"""adapters/captures: every step of a Gymnasium environment's episodes in a table, and again."""

import atexit
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
from plumejax.base.registry import find
from plumejax.evaluation.replays import Difference, named, parts
from plumejax.learning.checkpoints import describe, versions

_EPISODES, _SECONDS = 64, 5.0
"""Finished episodes are written when there are so many, or so long after the last ones."""

_ROWS = 2**16
"""Of lanes that are written at once, about."""


class Recorder:
    """Keeps the steps of one environment: in memory until their episode is over, then on disk.

    Its table is FOLDER/TASK-MARK.parquet (`base/tables`), a row for each state; the mark is its
    own. It is whole after `close`, or the end of the program. If that is killed, the episode that
    was going on is lost, and those that ended in the last seconds.

    Args:
      folder: of the tables; made when the first is written.
      made: the arguments of the environment, by name.
      params: of its task.

    Raises `PlumeError` if pyarrow is not installed (the extra `data`).
    """

    def __init__(self, folder: str | Path, made: dict[str, Any], params: Any) -> None:
        self._again = folder, made, params
        self.path, self._about = _new_table(folder, made, params)
        self._done: list[dict[str, np.ndarray]] = []
        self._number, self._written = 0, time.monotonic()
        self._actions: list[Any] = []
        self._states: list[Any] = []
        self._begun: dict[str, Any] = {}
        atexit.register(self.close)

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
        atexit.unregister(self.close)
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


class LaneRecorder:
    """Keeps the steps of all lanes of a vector environment, a part of the table now and then.

    A row is the state of a lane, with the action that it was answered with; `episode` counts the
    resets of the whole, `step` the steps since then, `lane` the lanes. Under SAME_STEP the state
    after the end of an episode is the start of the next. Arguments as of `Recorder`.
    """

    def __init__(self, folder: str | Path, made: dict[str, Any], params: Any) -> None:
        self.path, self._about = _new_table(folder, made, params)
        self._number, self._step = -1, 0
        self._last: dict[str, np.ndarray] = {}
        self._begun: dict[str, Any] = {}
        self._kept: list[dict[str, np.ndarray]] = []
        atexit.register(self.close)

    def begin(self, seed: int, options: Any, states: Any) -> None:
        """All lanes begin anew."""
        self._end()
        self._number, self._step = self._number + 1, 0
        self._begun = {"seed": seed, "options": json.dumps(options, default=_listed)}
        self._last = _small_lanes(states)

    def step(self, actions: np.ndarray, states: Any) -> None:
        """The actions led to the states."""
        self._keep(np.asarray(actions), answered=True)
        self._step, self._last = self._step + 1, _small_lanes(states)
        self._actions = np.asarray(actions)
        if len(self._kept) * len(self._actions) > _ROWS:
            self._flush()

    def close(self) -> None:
        """All that was noted is on disk."""
        atexit.unregister(self.close)
        self._end()
        self._flush()

    def _keep(self, actions: np.ndarray, answered: bool) -> None:
        count = len(next(iter(self._last.values())))
        columns: dict[str, Any] = {
            "episode": np.full(count, self._number),
            "step": np.full(count, self._step),
            "lane": np.arange(count),
            **{name: np.full(count, value) for name, value in self._begun.items()},
        }
        none = np.full(count, not answered)
        self._kept.append(columns | tables.answered(actions, none, self._last))

    def _end(self) -> None:
        if self._last and self._step:
            self._keep(np.zeros_like(self._actions), answered=False)
        self._last = {}

    def _flush(self) -> None:
        if self._kept:
            tables.append(self.path, self._about, self._kept)
            self._kept = []


def replay_captured(path: Path, number: int, rtol: float = 1e-5) -> Difference | None:
    """An episode of a table that was captured here, played again with its seed, options and
    actions: where it comes to another state first, None if nowhere. Of a vector environment, all
    lanes from one reset to the next.

    Raises:
      ValidationError: another table, an episode that it does not have, an environment that was made
        of components of its user's, or a task that is not what it was.
    """
    from plumejax.adapters.gymnasium import PlumeSearchEnv
    from plumejax.adapters.gymnasium_vector import PlumeSearchVectorEnv

    about, columns = tables.read_episode(path, number)
    made, actions = about["adapter"], columns.pop("action")
    own = made.get("not plain", [])
    require(not own, str(path), ", ".join(own), "an environment of named parts, which can be made")
    lanes = made.get("num_envs")
    env: Any = PlumeSearchEnv(**made) if lanes is None else PlumeSearchVectorEnv(**made)
    known = json.loads(json.dumps(describe(env.params)))
    require(known == about["params"], "params", known, f"{about['params']}, as captured")
    small = _small if lanes is None else _small_lanes
    was = {name: x for name, x in columns.items() if name.startswith(".")}
    if lanes is not None:
        was = {name: x.reshape(-1, lanes, *x.shape[1:]) for name, x in was.items()}
        actions = actions.reshape(-1, lanes, *actions.shape[1:])
    env.reset(seed=int(columns["seed"][0]), options=json.loads(columns["options"][0]))
    states = [small(env.functional_state)]
    for action in actions:
        env.step(action)
        states.append(small(env.functional_state))
    env.close()
    now = {name: np.stack([each[name] for each in states]) for name in states[0]}
    return parts({name: x for name, x in was.items() if name in now}, now, rtol)


def _new_table(
    folder: str | Path, made: dict[str, Any], params: Any
) -> tuple[Path, dict[str, Any]]:
    """`(path, about)` of a table."""
    tables.require_folder("capture", folder)
    task = _task(made)
    about = {
        "adapter": _plain(made),
        "task": task,
        "version": find(task).version,
        "params": describe(params),
        "versions": versions(),
    }
    return Path(folder) / f"{task}-{uuid.uuid4().hex[:8]}.parquet", about


def _small(state: Any) -> dict[str, np.ndarray]:
    state = state.replace(observation=None)
    kept = jax.tree.map(lambda x: x if x.size <= tables.MOST else None, state)
    return named(jax.device_get(kept))


def _small_lanes(states: Any) -> dict[str, np.ndarray]:
    """Of states whose leaves lead with the lanes."""
    states = states.replace(observation=None)
    kept = jax.tree.map(lambda x: x if x[0].size <= tables.MOST else None, states)
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
