"""evaluation/trials: one policy on one task: what is played is said by names and numbers."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from plumejax.base import registry
from plumejax.base.errors import near, require
from plumejax.evaluation.episodes import stream
from plumejax.evaluation.lanes import LANES
from plumejax.evaluation.results import Result, Subject
from plumejax.learning.runs import agent_path, load_agent, shipped
from plumejax.learning.tables import is_table, load_policy, require_fit
from plumejax.plumes.bank import Bank, make_bank
from plumejax.policies.catalogue import PERFECT, policies, prepare


@dataclass(frozen=True)
class Trial:
    """A policy on a task.

    Attributes:
      task: its id.
      policy: the name of a policy, a run directory, an agent's file or its name,
        as for `load_agent`, or a file of `learning.tables`.
      episodes: how many.
      seed: of the episodes; trials with one seed play the same ones.
      arguments: of the policy.
      overrides: numbers of the task, by dotted path.
      static: choices of the task.
      plumes: realisations of the plume, rolled out once and shared by the episodes; 0: each episode
        has its own. Worth it where a start is expensive; the unit of replication is then the plume.
    """

    task: str
    policy: str
    episodes: int = 1000
    seed: int = 0
    arguments: Mapping[str, Any] = field(default_factory=dict)
    overrides: Mapping[str, Any] = field(default_factory=dict)
    static: Mapping[str, Any] = field(default_factory=dict)
    plumes: int = 0

    @property
    def label(self) -> str:
        """What the policy is called: `infotaxis:rate=1.0`; a file by the last part of its path."""
        given = ",".join(f"{name}={value}" for name, value in sorted(self.arguments.items()))
        return Path(self.policy).name + (f":{given}" if given else "")


def parse_arguments(settings: Sequence[str], option: str) -> dict[str, Any]:
    """`("rate=1", "ties=random", ...)` as arguments of a policy: numbers, or else text.

    Raises `ValidationError`, which names `option`, for what has no name or no value.
    """
    parsed: dict[str, Any] = {}
    for setting in settings:
        name, _, value = setting.partition("=")
        require(name and value, option, setting, "NAME=VALUE, as in rate=1")
        try:
            parsed[name] = json.loads(value)
        except ValueError:
            parsed[name] = value
    return parsed


def make_task(trial: Trial) -> tuple[Any, Any]:
    """`(env, params)` of the trial's task, with a bank for its plume if there are `plumes` and the
    plume is one that changes by chance.

    Raises:
      ValidationError: no such task, a bad number, or one of the plume of a bank.
    """
    env, params = registry.make(trial.task, overrides=trial.overrides, **trial.static)
    return on_bank(env, params, trial.plumes, trial.seed)


def on_bank(env: Any, params: Any, plumes: int, seed: int) -> tuple[Any, Any]:
    """The task with a bank of so many plumes, if there are any and its plume changes by chance.

    Raises `ValidationError` in a task without a plume, and for a plume of a bank.
    """
    if not plumes or not getattr(getattr(env, "plume", None), "random_step", True):
        return env, params
    require(hasattr(env, "plume"), "plumes", plumes, "0 in a task without a plume")
    limit = int(params.max_steps)
    frames = limit + max(limit // 4, 50)
    key = jax.random.fold_in(evaluation_key(seed), 1)
    bank, numbers = make_bank(env.plume, params.plume, key, plumes, frames, margin=limit)
    env, params = replace(env, plume=bank), params.replace(plume=numbers)
    env.validate(params)
    return env, params


def evaluation_key(seed: Any) -> jax.Array:
    """The key of an evaluation, apart from every key that a training of that seed draws."""
    return jax.random.fold_in(jax.random.key(seed), 2**31 - 1)


def require_agent(name: str) -> None:
    """Raise `ValidationError` unless there is a policy, a trained agent or a table of that name."""
    path, known = Path(name), (PERFECT, *policies(), *shipped())
    if name in known or path.is_dir() or (path.suffix == ".npz" and path.is_file()):
        return
    allowed = f"a run directory, a file (*.npz), or one of {', '.join(known)}.{near(name, known)}"
    require(False, "policy", name, allowed)


def make_agent(trial: Trial, env: Any, params: Any) -> tuple[Any, Any, Any]:
    """`(env, params, policy)`: the task as the policy observes it, and the policy.

    Raises:
      ValidationError: a name that is neither a policy nor a file, or one that does not fit.
    """
    require_agent(trial.policy)
    learned = _learned(trial.policy)
    if learned is None:
        return prepare(trial.policy, env, params, **trial.arguments)
    given = dict(trial.arguments)
    require(not given, f"arguments of {trial.policy}", given, "left out: it is learned")
    if is_table(learned):
        table = load_policy(learned)
        require_fit(table, env, params)
        return env, params, table
    agent, *trained = load_agent(trial.policy)
    good = _forms(*trained) == _forms(env, params)
    require(good, "policy", trial.policy, f"one that observes and acts as in {trial.task}")
    return env, params, agent


def _learned(policy: str) -> Path | None:
    """The file of a policy that is learned."""
    path = Path(policy)
    if path.is_dir() or policy in shipped():
        return agent_path(policy)
    return path if path.suffix == ".npz" and path.is_file() else None


def _forms(env: Any, params: Any) -> Any:
    """Shapes and dtypes of observations and actions."""
    spaces = env.observation_space(params), env.action_space(params)

    def samples(key: jax.Array) -> Any:
        return tuple(space.sample(key) for space in spaces)

    return jax.eval_shape(samples, jax.random.key(0))


def run_trial(
    trial: Trial,
    task: tuple[Any, Any] | None = None,
    *,
    lanes: int = LANES,
    progress: Callable[[int], None] = lambda ended: None,
) -> Result:
    """Play it.

    Args:
      trial: what.
      task: of `make_task`, if that is there already.
      lanes, progress: those of `stream`.

    Raises:
      ValidationError: what is asked for is not there, or does not fit.
    """
    require(trial.episodes > 0, "episodes", trial.episodes, "> 0")
    env, params = make_task(trial) if task is None else task
    env, params, policy = make_agent(trial, env, params)
    key = evaluation_key(trial.seed)
    outcomes = stream(env, policy, key, params, trial.episodes, lanes=lanes, progress=progress)
    return Result(subject(trial, env, params), outcomes)


def subject(trial: Trial, env: Any, params: Any) -> Subject:
    """What a `Result` of this trial says of itself."""
    return Subject(
        task=trial.task,
        version=registry.find(trial.task).version,
        policy=trial.label,
        arguments=_as_json({**trial.arguments, **held(trial.policy)}),
        overrides=_as_json({**trial.overrides, **trial.static}),
        seed=trial.seed,
        episodes=trial.episodes,
        plumes=trial.plumes if isinstance(getattr(env, "plume", None), Bank) else 0,
        max_steps=int(params.max_steps),
        radius=float(getattr(getattr(params, "ending", None), "radius", 0.0)),
    )


def held(policy: str) -> dict[str, str]:
    """What tells a learned policy from another of its name."""
    learned = _learned(policy)
    return {} if learned is None else {"sha256": hashlib.sha256(learned.read_bytes()).hexdigest()}


def _as_json(numbers: Mapping[str, Any]) -> str:
    def plain(value: Any) -> Any:
        return np.asarray(value).tolist() if hasattr(value, "dtype") else str(value)

    return json.dumps(dict(numbers), default=plain, sort_keys=True)
