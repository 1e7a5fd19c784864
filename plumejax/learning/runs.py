"""learning/runs: a training on disk: what it is a function of, its files, its agent."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from plumejax.base.agents import Shared
from plumejax.base.errors import ValidationError, near, require
from plumejax.base.files import write_whole
from plumejax.base.registry import find, make
from plumejax.learning.agent import Agent
from plumejax.learning.agent_files import fill, read_agent
from plumejax.learning.checkpoints import describe, require_same, versions
from plumejax.learning.curricula import params_at
from plumejax.learning.ppo import PPO, Hyperparameters, Shapes, ppo
from plumejax.learning.recipes import Told, recipe

CONFIG, METRICS, EVALUATION = "config.json", "metrics.jsonl", "evaluation.json"
CHECKPOINTS, PICTURE, AGENT = "checkpoints", "trajectories.png", "agent.npz"
LEARNING = "learning.png"
HISTORY, STAGES = "history", 8
"""Folder of the agents along a training, and how many there are after the untrained one."""


@dataclass(frozen=True)
class RunConfig:
    """All that a training is a function of.

    Attributes:
      task: id of the task.
      seed: of the training; of several the first, the others follow it.
      updates: PPO updates of the whole training.
      updates_per_call: of them in one compiled call.
      data: path of a recording, if the task needs one.
      settings: numbers of the task by dotted path.
      shapes, hyperparameters: of PPO.
      seeds: trainings side by side, alike but for their seed.
      versions: of the packages that began it.
    """

    task: str
    seed: int
    updates: int
    updates_per_call: int
    data: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    shapes: Shapes = field(default_factory=Shapes)
    hyperparameters: Hyperparameters = field(default_factory=Hyperparameters)
    seeds: int = 1
    versions: dict[str, str] = field(default_factory=versions)


def write_config(directory: Path, config: RunConfig) -> None:
    """Write `config.json`."""
    write_whole(directory / CONFIG, json.dumps(asdict(config), indent=2) + "\n")


def read_config(directory: Path) -> RunConfig:
    """The config of a run directory. Raises `ValidationError` if there is none to read."""
    path = directory / CONFIG
    require(path.is_file(), "run directory", str(directory), f"one that holds {CONFIG}")
    try:
        return _config(json.loads(path.read_text()))
    except (ValueError, KeyError, TypeError) as error:
        raise ValidationError(f"{path} is not the config of a run: {error}") from error


def _config(stored: dict[str, Any]) -> RunConfig:
    shapes = {**stored["shapes"], "hidden": tuple(stored["shapes"]["hidden"])}
    parts = {
        "shapes": Shapes(**shapes),
        "hyperparameters": Hyperparameters(**stored["hyperparameters"]),
    }
    return RunConfig(**{**stored, **parts})


UPDATES_PER_CALL = 5


def new_config(
    task: str,
    *,
    seed: int = 0,
    seeds: int = 1,
    steps: int | None = None,
    data: str | None = None,
    settings: Mapping[str, Any] | None = None,
    shapes: Mapping[str, Any] | None = None,
    hyperparameters: Mapping[str, Any] | None = None,
    option: str = "",
) -> RunConfig:
    """The config of a training by the recipe of its task, but for what is given.

    Args:
      task: its id.
      seed, seeds, data: as in `RunConfig`.
      steps: environment steps, rounded up to whole calls.
      settings: numbers of the task by dotted path.
      shapes: fields of `Shapes`; without `num_envs` there are as many lanes as fit.
      hyperparameters: fields of `Hyperparameters`.
      option: stands before their names in an error.

    Raises `ValidationError` for what is not known or not allowed.
    """
    config = RunConfig(task, seed, 1, UPDATES_PER_CALL, data, dict(settings or {}), seeds=seeds)
    usual = recipe(make_task(config)[0])
    numbers = changed(usual.hyperparameters, hyperparameters or {}, option)
    given: dict[str, Any] = dict(shapes or {})
    given = {name: tuple(x) if isinstance(x, list) else x for name, x in given.items()}
    for name in given:
        known = [each.name for each in fields(Shapes)]
        _require_named("shapes", name, known)
    config = replace(config, shapes=replace(usual.shapes, **given))
    if "num_envs" not in given:
        config = fitting_shapes(config)
    a_call = config.updates_per_call * config.shapes.num_envs * config.shapes.num_steps
    updates = -(-(steps or usual.steps) // a_call) * config.updates_per_call
    return replace(config, updates=updates, hyperparameters=numbers.replace(updates=float(updates)))


def changed(usual: Hyperparameters, given: Mapping[str, Any], option: str = "") -> Hyperparameters:
    """Hyperparameters with some replaced. Raises `ValidationError` for a name that is none of
    theirs, or a number that is not allowed; `option` stands before it."""
    known = [each.name for each in fields(Hyperparameters) if each.name != "updates"]
    for name, value in given.items():
        _require_named(option.strip(), name, known)
        share = name in ("gamma", "gae_lambda", "anneal", "ahead")
        good = type(value) in (int, float) and 0 <= value < float("inf")
        good = good and (value <= 1 or not share)
        allowed = "a number from 0 to 1" if share else "a number >= 0"
        require(good, f"{option}{name}", value, allowed)
    return usual.replace(**{name: float(value) for name, value in given.items()})


def _require_named(where: str, name: str, known: list[str]) -> None:
    if name not in known:
        hint, names = near(name, known), ", ".join(known)
        raise ValidationError(f"{where} {name}: no such number.{hint} There are: {names}".lstrip())


def make_task(config: RunConfig) -> tuple[Any, Any]:
    """`(env, params)` of the task as defined.

    Raises:
      ValidationError: the task needs data and got none, or the other way round.
    """
    needs = find(config.task).needs
    require(
        "data" not in needs or config.data is not None,
        "--data",
        None,
        f"the path of a recording: {config.task} needs one",
    )
    require("data" in needs or config.data is None, "--data", config.data, "left out here")
    static = {"data": config.data} if config.data is not None else {}
    return make(config.task, overrides=config.settings, **static)


def make_training(config: RunConfig, told: Told = lambda done, total: None) -> tuple[PPO, Any]:
    """`(algorithm, params)` that the run trains with, by the recipe of its task; the params may be
    a `Curriculum`. What is rolled out for it depends on the config alone; `told` hears of it."""
    env, params = make_task(config)
    env, params = recipe(env).prepare(env, params, config.seed, told)
    return ppo(env, params_at(params, jnp.zeros((), jnp.float32)), config.shapes), params


def load_agent(run: str | Path, data: str | Path | None = None) -> tuple[Any, Any, Any]:
    """`(agent, env, params)`: a trained policy, and its task as defined.

    Args:
      run: what `plumejax train` wrote, the directory of one seed; an agent's file; or the name of
        an agent that comes with the package, one of `shipped()`.
      data: another recording to have the task on; by default that of the run, unchanged.

    Raises:
      ValidationError: no agent is there, or the data are no longer what they were.
    """
    path = agent_path(run)
    stored = read_agent(path)
    try:
        config = _config(stored.config)
    except (KeyError, TypeError) as error:
        raise ValidationError(f"{path} holds an agent of another version: {error}") from error
    if data is not None:
        config = replace(config, data=str(data))
    env, params = make_task(config)
    if data is None:
        require_same(stored.params, describe(params))
    algorithm = ppo(env, params, config.shapes)
    like = jax.eval_shape(algorithm.untrained, jax.random.key(0))
    return acting(fill(like, stored, path), env), env, params


def history_path(run: Path, steps: int) -> Path:
    """The file of the agent that a training had after so many environment steps."""
    return run / HISTORY / f"agent-{steps:011d}.npz"


def agent_history(run: Path) -> list[tuple[int, Path]]:
    """`(environment steps, file)` of the agents along a training, in time.

    Raises `ValidationError` for a run that kept none.
    """
    files = sorted((run / HISTORY).glob("agent-*.npz"))
    require(files, "run directory", str(run), f"one of a training that kept its {HISTORY}")
    return [(int(path.stem.removeprefix("agent-")), path) for path in files]


def agent_path(run: str | Path) -> Path:
    """The file of an agent: of a run directory, itself, or one that comes with the package.

    Raises `ValidationError` if it is none of these.
    """
    path = Path(run)
    if path.is_dir():
        seeds = sorted(each.parent.name for each in path.glob(f"*/{AGENT}"))
        more = f"; it has several: {', '.join(seeds)}" if seeds else ""
        good = (path / AGENT).is_file()
        require(good, "run directory", str(path), f"one that holds {AGENT}{more}")
        return path / AGENT
    if path.suffix == ".npz" and path.is_file():
        return path
    require(
        str(run) in shipped(),
        "agent",
        str(run),
        f"a run directory, an agent's file, or one of {', '.join(shipped())}",
    )
    return SHIPPED / f"{run}.npz"


SHIPPED = Path(__file__).parent / "agents"
"""Where the agents are that come with the package, NAME.npz each."""


def shipped() -> list[str]:
    """Names of the agents that come with the package: the tasks that they were trained on."""
    return sorted(path.stem for path in SHIPPED.glob("*.npz"))


def acting(agent: Agent, env: Any) -> Any:
    """The policy that acts for all agents of `env`: each by `agent`, if there are several."""
    return agent if env.num_agents is None else Shared(agent, env.num_agents)


def read_metrics(directory: Path, updates: int) -> list[str]:
    """The first `updates` whole lines of the metrics, as they stand."""
    path = directory / METRICS
    lines = path.read_text().splitlines() if path.is_file() else []
    return lines[:updates]


def parse_settings(settings: tuple[str, ...], option: str = "--set") -> dict[str, Any]:
    """`("plume.sigma=8", ...)`, given to `option`, as numbers by path. Raises `ValidationError` for
    anything else."""
    parsed: dict[str, Any] = {}
    for setting in settings:
        path, sign, value = setting.partition("=")
        try:
            parsed[path] = json.loads(value)
        except ValueError:
            sign = ""
        require(sign, option, setting, "PATH=NUMBER, as in plume.sigma=8 or plume.source=[3,4]")
    return parsed


def fitting_shapes(config: RunConfig, budget: int = 2**27) -> RunConfig:
    """The config with as many lanes as its inputs leave room for, `budget` numbers an update."""
    algorithm = ppo(*make_task(config), config.shapes)
    shapes = config.shapes
    a_lane = shapes.num_steps * algorithm.encoder.num_inputs
    lanes = shapes.num_envs
    while lanes * a_lane > budget and lanes > shapes.num_minibatches:
        lanes //= 2
    return replace(config, shapes=replace(shapes, num_envs=lanes))
