"""adapters/config: which search an adapter runs: a config, plain arguments, components."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import numpy as np

from plumejax.base.errors import ValidationError, require
from plumejax.base.randomised import Randomised
from plumejax.base.registry import make
from plumejax.search.components import require_component
from plumejax.search.environment import PlumeSearch
from plumejax.search.state import Params

DEFAULT_TASK = "PlumeSearch-v0"


@dataclass(frozen=True)
class EnvironmentConfig:
    """A task with its choices and numbers, as `plumejax.make(task, overrides=..., **static)`.

    Attributes:
      task: a registered id.
      static: choices that change shapes or kinds, by name (`{"grid_size": (64, 64)}`).
      overrides: numbers, or distributions, by dotted path (`{"plume.sigma": 8.0}`).
    """

    task: str = DEFAULT_TASK
    static: Mapping[str, Any] = field(default_factory=dict)
    overrides: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any]) -> "EnvironmentConfig":
        """A config from `{"task": ..., "static": {...}, "overrides": {...}}`, each optional.

        Overrides may be nested (`{"plume": {"sigma": 8.0}}`). Raises `ValidationError` for another
        key or a value of the wrong kind; ids and paths are checked when the environment is made.
        """
        require(isinstance(mapping, Mapping), "config", mapping, "a mapping")
        known = ("task", "static", "overrides")
        for key in mapping:
            require(key in known, "config key", key, f"one of {known}")
        task = mapping.get("task", DEFAULT_TASK)
        require(isinstance(task, str), "config task", task, "a task id")
        static, overrides = mapping.get("static", {}), mapping.get("overrides", {})
        require(isinstance(static, Mapping), "config static", static, "a mapping")
        require(isinstance(overrides, Mapping), "config overrides", overrides, "a mapping")
        static = {name: _hashable(value) for name, value in static.items()}
        return cls(task, static, dict(_flat(overrides)))

    @classmethod
    def from_toml(cls, path: str | PathLike[str]) -> "EnvironmentConfig":
        """A config from a TOML file with `task`, `[static]` and `[overrides]`.

        Raises `ValidationError` if the file cannot be read, is not TOML, or says something else.
        """
        try:
            with open(path, "rb") as file:
                mapping = tomllib.load(file)
        except (OSError, tomllib.TOMLDecodeError) as error:
            raise ValidationError(f"config file {str(path)!r} cannot be read: {error}") from error
        return cls.from_mapping(mapping)


def compose(
    *,
    task: str | None = None,
    plume_model: Any = None,
    reward_fn: Any = None,
    observation_model: Any = None,
    action_processor: Any = None,
    config: EnvironmentConfig | Mapping[str, Any] | None = None,
    grid_size: tuple[int, int] | None = None,
    source_location: tuple[int, int] | None = None,
    max_steps: int | None = None,
    goal_radius: float | None = None,
) -> tuple[PlumeSearch, Params]:
    """`(env, params)` of the search that the arguments of `PlumeSearchEnv` describe.

    Components win over `config`, `config` over the plain arguments.

    Raises:
      ValidationError: a number, id or choice that is not allowed, or a task that is no search.
      ComponentError: a component without the methods of its kind.
    """
    config = _config(config, task)
    plain = {
        "plume.source": source_location,
        "max_steps": _positive_int("max_steps", max_steps),
        "ending.radius": _positive("goal_radius", goal_radius),
    }
    components = {
        "plume": plume_model,
        "reward": reward_fn,
        "sensor": observation_model,
        "motion": action_processor,
    }
    components = {role: c for role, c in components.items() if c is not None}
    for role, component in components.items():
        require_component(role, component)
    # A plume that knows its grid sets it, unless another is asked for.
    grid = grid_size if grid_size is not None else getattr(plume_model, "grid_size", None)
    static = {} if grid is None else {"grid_size": grid}
    env, params = make(
        config.task,
        overrides={**{p: v for p, v in plain.items() if v is not None}, **config.overrides},
        **{**static, **config.static, **components},
    )
    search = env.env if isinstance(env, Randomised) else env
    if not isinstance(search, PlumeSearch):
        raise ValidationError(f"task {config.task!r} is no plume search, but a {env.name}")
    return env, params


def _config(config: Any, task: str | None) -> EnvironmentConfig:
    """The config that is meant; `task` names the task where `config` does not."""
    if not isinstance(config, EnvironmentConfig):
        default = {} if task is None else {"task": task}
        require(
            config is None or isinstance(config, Mapping),
            "config",
            config,
            "an EnvironmentConfig or a mapping",
        )
        config = EnvironmentConfig.from_mapping({**default, **(config or {})})
    require(task in (None, config.task), "task", task, f"that of config, {config.task!r}")
    return config


def _positive_int(name: str, value: Any) -> Any:
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    require(value is None or (whole and 0 < value < 2**31), name, value, "an int > 0")
    return value


def _positive(name: str, value: Any) -> Any:
    number = isinstance(value, int | float | np.integer | np.floating) and value is not True
    good = value is None or (number and 0 < value < np.inf)
    require(good, name, value, "a finite number of cells > 0")
    return value


def _flat(tree: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Every number of a nested mapping with its dotted path."""
    items: list[tuple[str, Any]] = []
    for key, value in tree.items():
        inside = isinstance(value, Mapping)
        items += _flat(value, f"{prefix}{key}.") if inside else [(f"{prefix}{key}", value)]
    return items


def _hashable(value: Any) -> Any:
    """TOML and JSON have lists where a static choice is a tuple."""
    return tuple(_hashable(v) for v in value) if isinstance(value, list) else value
