"""learning/runs: a training on disk: what it is a function of, its files, its agent."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import jax

from plumejax.arms import named_tasks as arms
from plumejax.base.agents import Shared
from plumejax.base.errors import ValidationError, require
from plumejax.base.files import write_whole
from plumejax.base.registry import find, make
from plumejax.learning.agent import Agent
from plumejax.learning.checkpoints import require_same, restore, versions
from plumejax.learning.ppo import PPO, Hyperparameters, Shapes, ppo
from plumejax.search import rewards

CONFIG, METRICS, EVALUATION = "config.json", "metrics.jsonl", "evaluation.json"
CHECKPOINTS, PICTURE = "checkpoints", "trajectories.png"


@dataclass(frozen=True)
class RunConfig:
    """All that a training is a function of.

    Attributes:
      task: id of the task.
      seed: of the training.
      updates: PPO updates of the whole training.
      updates_per_call: of them in one compiled call.
      data: path of a recording, if the task needs one.
      settings: numbers of the task by dotted path.
      shapes, hyperparameters: of PPO.
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
    versions: dict[str, str] = field(default_factory=versions)


def write_config(directory: Path, config: RunConfig) -> None:
    """Write `config.json`."""
    write_whole(directory / CONFIG, json.dumps(asdict(config), indent=2) + "\n")


def read_config(directory: Path) -> RunConfig:
    """The config of a run directory. Raises `ValidationError` if there is none to read."""
    path = directory / CONFIG
    require(path.is_file(), "run directory", str(directory), f"one that holds {CONFIG}")
    try:
        stored = dict(json.loads(path.read_text()))
        shapes = stored.pop("shapes")
        shapes = Shapes(**{**shapes, "hidden": tuple(shapes["hidden"])})
        hyper = Hyperparameters(**stored.pop("hyperparameters"))
        return RunConfig(**stored, shapes=shapes, hyperparameters=hyper)
    except (ValueError, KeyError, TypeError) as error:
        raise ValidationError(f"{path} is not the config of a run: {error}") from error


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


PAID_FOR_PROGRESS: dict[str, Callable[[Any, Any], tuple[Any, Any]]] = {
    "search": rewards.with_progress_reward,
    "arms": arms.with_progress_reward,
}
"""What agents learn on, by the family of the task."""


def make_training(config: RunConfig) -> tuple[PPO, Any]:
    """`(algorithm, params)` that the run trains with: the task, paid for progress."""
    env, params = PAID_FOR_PROGRESS[find(config.task).family](*make_task(config))
    return ppo(env, params, config.shapes), params


def load_agent(run: str | Path, data: str | Path | None = None) -> tuple[Any, Any, Any]:
    """`(agent, env, params)`: the newest policy of a run directory, and its task as defined.

    Args:
      run: what `plumejax train` wrote.
      data: another recording to have the task on; by default that of the run, unchanged.

    Raises:
      ValidationError: no run or checkpoint is there, or the data are no longer what they were.
    """
    directory = Path(run)
    config = read_config(directory)
    if data is not None:
        config = replace(config, data=str(data))
    algorithm, training_params = make_training(config)
    like = jax.eval_shape(algorithm.init, jax.random.key(0), training_params)
    training, saved = restore(directory / CHECKPOINTS, like, config.task)
    if data is None:
        require_same(saved, training_params)
    env, params = make_task(config)
    return acting(algorithm.agent(training), env), env, params


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
    algorithm, _ = make_training(config)
    shapes = config.shapes
    a_lane = shapes.num_steps * algorithm.encoder.num_inputs
    lanes = shapes.num_envs
    while lanes * a_lane > budget and lanes > shapes.num_minibatches:
        lanes //= 2
    return replace(config, shapes=replace(shapes, num_envs=lanes))
