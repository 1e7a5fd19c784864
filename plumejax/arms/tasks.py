"""arms/tasks: what a two-arm task is, the registry of tasks by name, and several mixed into one."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from plumejax.arms.state import OBJECTS, ArmsState, Scene
from plumejax.base.errors import require


class Grip(NamedTuple):
    """How a task's objects are held.

    Attributes:
      attach_radius: float[], m, a closed gripper this near takes hold.
      release_above: float[], in [0, 1], one more open than this lets go.
      exists: bool[2], which of the slots hold an object.
    """

    attach_radius: jax.Array
    release_above: jax.Array
    exists: jax.Array


@dataclass(frozen=True)
class TaskMetadata:
    """What the host tells of a task.

    Attributes:
      phases: their names, in order.
      extras: goals and thresholds by name.
    """

    phases: Sequence[str]
    extras: Mapping[str, Any]


class TaskSpec(Protocol):
    """A two-arm task: static, hashable, all methods pure; `params` are `ArmsParams.task`.

    Attributes:
      name: as it is registered.
      objects: names of its one or two objects.
      goals: names of the rows of `ArmsState.goal` that it uses.
    """

    name: str
    objects: tuple[str, ...]
    goals: tuple[str, ...]

    def phases(self) -> tuple[str, ...]:
        """Names of its five phases."""

    def default_params(self) -> Any:
        """Its numbers."""

    def validate(self, params: Any) -> None:
        """Raise `ValidationError` if a number is not allowed. Host only."""

    def build_scene(self, params: Any) -> Scene:
        """The scene before anything is drawn."""

    def reset(self, key: jax.Array, params: Any) -> Scene:
        """A scene drawn; the key is consumed."""

    def grip(self, state: ArmsState, params: Any) -> Grip:
        """How its objects are held."""

    def reward(self, state: ArmsState, params: Any) -> tuple[ArmsState, jax.Array]:
        """`(state, float[2])`: what the phase pays each arm, and the state with `phase_complete`,
        and with what the task itself keeps."""

    def progress(self, state: ArmsState, params: Any) -> jax.Array:
        """float[], in [0, 1]: how far its phase has come."""

    def success(self, state: ArmsState, params: Any) -> jax.Array:
        """bool[]: whether it is done, after `reward`."""

    def waypoints(self, seen: Mapping[str, Any]) -> tuple[jax.Array, jax.Array]:
        """`(float[P, 2, 3], float[P, 2])`: where a hand-written controller sends the grippers in
        each phase, and how open, by a `views.named` observation."""

    def scripted_action(self, seen: Mapping[str, Any], phase: jax.Array) -> jax.Array:
        """float[2, 4]: the action of that controller."""

    def info(self, state: ArmsState, params: Any) -> dict[str, jax.Array]:
        """Distances and the like by name, float[] each."""


def pick(index: jax.Array, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """What branch number `index`, int32[], makes of the operands."""
    return jax.lax.switch(index, list(branches), *operands)


@dataclass(frozen=True)
class Mixture:
    """Several tasks, one of which is drawn at each reset; `params` are a dict by task name.

    Attributes:
      tasks: with distinct names.
    """

    tasks: tuple[Any, ...]
    name = "multi"
    objects = ("object_0", "object_1")
    goals = ("goal_0", "goal_1", "goal_2")

    def __post_init__(self) -> None:
        names = [task.name for task in self.tasks]
        require(len(names) > 0 and len(set(names)) == len(names), "tasks", names, "distinct names")

    def phases(self) -> tuple[str, ...]:
        return tuple(f"phase_{i}" for i in range(len(self.tasks[0].phases())))

    def default_params(self) -> dict[str, Any]:
        return {task.name: task.default_params() for task in self.tasks}

    def validate(self, params: Any) -> None:
        for task in self.tasks:
            task.validate(params[task.name])

    def build_scene(self, params: Any) -> Scene:
        return self.tasks[0].build_scene(params[self.tasks[0].name])

    def reset(self, key: jax.Array, params: Any) -> Scene:
        which_key, own_key = jax.random.split(key)
        index = jax.random.randint(which_key, (), 0, len(self.tasks), jnp.int32)
        scene = self._of(index, "reset", params, own_key)
        return scene.replace(task=index)

    def grip(self, state: ArmsState, params: Any) -> Grip:
        return self._of(state.task, "grip", params, state)

    def reward(self, state: ArmsState, params: Any) -> tuple[ArmsState, jax.Array]:
        return self._of(state.task, "reward", params, state)

    def progress(self, state: ArmsState, params: Any) -> jax.Array:
        return self._of(state.task, "progress", params, state)

    def success(self, state: ArmsState, params: Any) -> jax.Array:
        return self._of(state.task, "success", params, state)

    def waypoints(self, seen: Mapping[str, Any]) -> tuple[jax.Array, jax.Array]:
        return pick(seen["task"][0], [task.waypoints for task in self.tasks], seen)

    def scripted_action(self, seen: Mapping[str, Any], phase: jax.Array) -> jax.Array:
        branches = [task.scripted_action for task in self.tasks]
        return pick(seen["task"][0], branches, seen, phase)

    def info(self, state: ArmsState, params: Any) -> dict[str, jax.Array]:
        """Those of every task; 0 of one that it is not."""
        found: dict[str, jax.Array] = {}
        for index, task in enumerate(self.tasks):
            for name, value in task.info(state, params[task.name]).items():
                mine = jnp.where(state.task == index, value, jnp.zeros_like(value))
                found[name] = found[name] + mine if name in found else mine
        return found

    def _of(self, index: jax.Array, method: str, params: Any, first: Any) -> Any:
        """What `method` of task number `index` gives with its own numbers."""

        def branch(task: Any) -> Callable[[Any], Any]:
            return lambda first: getattr(task, method)(first, params[task.name])

        return pick(index, [branch(task) for task in self.tasks], first)


def parts(task: Any) -> tuple[Any, ...]:
    """The tasks that a task may turn out to be, by number `ArmsState.task`."""
    return task.tasks if isinstance(task, Mixture) else (task,)


def drawn_in(key: jax.Array, low: Any, high: Any) -> jax.Array:
    """float[2]: x and y, drawn uniformly between `low` and `high`; the key is consumed."""
    low, high = jnp.asarray(low), jnp.asarray(high)
    return jax.random.uniform(key, (2,), low.dtype, low, high)


def require_lengths(name: str, params: Any, positive: Sequence[str]) -> None:
    """Raise `ValidationError` unless these numbers of a task's params are > 0, and those that have
    to do with grippers in [0, 1]. Host only."""
    for field in positive:
        value = getattr(params, field)
        require(np.all(np.asarray(value) > 0), f"task.{field} of {name}", value, "> 0")
    for field in ("jitter", "grasp_threshold"):
        value = getattr(params, field)
        require(np.all(np.asarray(value) >= 0), f"task.{field} of {name}", value, ">= 0")
    for field in ("release_above", "open"):
        value = np.asarray(getattr(params, field))
        require(np.all((value >= 0) & (value <= 1)), f"task.{field} of {name}", value, "in [0, 1]")


def slots(task: Any) -> jax.Array:
    """bool[2]: which slots hold an object of a task that is not mixed."""
    return jnp.arange(OBJECTS, dtype=jnp.int32) < len(task.objects)


# As in base/registry: names, which no result depends on.
_factories: dict[str, Callable[[], Any]] = {}


def register_task(name: str, factory: Callable[[], Any]) -> None:
    """Make a task known: `factory()` gives a `TaskSpec`. Raises `ValueError` for a taken name."""
    require(name not in _factories, "task name", name, "one that is not registered already")
    _factories[name] = factory


def deregister_task(name: str) -> None:
    """Forget a task. Raises `KeyError` if there is none."""
    get_task(name)
    del _factories[name]


def get_task(name: str) -> Any:
    """The `TaskSpec` of that name. Raises `KeyError` that lists what there is."""
    if name not in _factories:
        raise KeyError(f"no two-arm task {name!r}; there are: {', '.join(sorted(_factories))}")
    return _factories[name]()


def iter_registered_tasks() -> Iterator[str]:
    """Their names, sorted."""
    return iter(sorted(_factories))
