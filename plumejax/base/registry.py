"""base/registry: task ids and their factories; each family registers its own."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

from plumejax.base.errors import ValidationError, near, require
from plumejax.base.randomised import randomised

Factory = TypeVar("Factory", bound=Callable[..., tuple[Any, Any]])


@dataclass(frozen=True)
class Task:
    """A named task.

    Attributes:
      id: its name, ending in the version of its interface (`-v0`).
      factory: `factory(**static) -> (env, params)`.
      summary: one line for `plumejax list`.
      version: behaviour version, raised whenever an episode of it would come out differently.
      needs: static choices that have no default, such as a path to data.
      source: the paper or program that the task is from.
      difficulty: "easy", "medium" or "hard".
      twin_of: of a fully observed twin, the id of the task that it is the twin of.
      family: the package that the task is from, "search" or "arms": which adapters run it.
    """

    id: str
    factory: Callable[..., tuple[Any, Any]]
    summary: str
    version: int = 1
    needs: tuple[str, ...] = ()
    source: str = ""
    difficulty: str = ""
    twin_of: str = ""
    family: str = "search"


# The one module-level mutable: ids, which no result depends on.
_tasks: dict[str, Task] = {}


def register(task: Task) -> None:
    """Make `task` known by its id. Raises `ValidationError` if the id is taken."""
    if task.id in _tasks:
        raise ValidationError(f"task {task.id!r} is registered already; choose another id")
    _tasks[task.id] = task


def registered_tasks() -> dict[str, Task]:
    """Every task by id, in the order of registration."""
    return dict(_tasks)


def find(task_id: str) -> Task:
    """The task of that id. Raises `ValidationError` that lists the known ids."""
    if not isinstance(task_id, str) or task_id not in _tasks:
        known = ", ".join(_tasks)
        raise ValidationError(f"no task {task_id!r}.{near(task_id, _tasks)} There are: {known}")
    return _tasks[task_id]


def factory(make: Factory) -> Factory:
    """`make`, which meets a keyword that is none of its own with a `ValidationError` that lists
    those that are."""
    kinds = inspect.signature(make).parameters.items()
    choices = [name for name, parameter in kinds if parameter.kind is parameter.KEYWORD_ONLY]

    @wraps(make)
    def checked(*args: Any, **static: Any) -> tuple[Any, Any]:
        for name in static:
            if name not in choices:
                hint, known = near(name, choices), ", ".join(choices)
                raise ValidationError(f"no choice {name!r}.{hint} There are: {known}")
        return make(*args, **static)

    return checked  # type: ignore[return-value]


def make(
    task_id: str, *, overrides: Mapping[str, Any] | None = None, **static: Any
) -> tuple[Any, Any]:
    """`(env, params)` of a task, its numbers checked.

    Args:
      task_id: a registered id, e.g. `"PlumeSearch-v0"`.
      overrides: numbers by dotted path, e.g. `{"plume.sigma": 8.0}`, or distributions to draw them
        from at each reset, e.g. `{"plume.sigma": Uniform(4.0, 12.0)}`.
      **static: what changes shapes or kinds, e.g. `grid_size=(64, 64)`; as the task says.

    Raises:
      ValidationError: an unknown id, path or choice, or a number out of range.
    """
    task = find(task_id)
    missing = [name for name in task.needs if name not in static]
    if missing:
        shown = ", ".join(f"{name}=..." for name in missing)
        raise ValidationError(f"{task_id} needs {', '.join(missing)}: make({task_id!r}, {shown})")
    try:
        env, params = task.factory(**static)
    except TypeError as error:
        if "keyword argument" not in str(error):
            raise
        raise ValidationError(f"{task_id} has no such choice: {error}") from error
    is_dict = overrides is None or isinstance(overrides, Mapping)
    require(is_dict, "overrides", overrides, 'a dict of numbers by path, as in {"plume.sigma": 8}')
    env, params = randomised(env, params, overrides or {})
    env.validate(params)
    return env, params
