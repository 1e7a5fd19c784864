"""arms/named_tasks: the two-arm tasks by name, their ids, and states from recorded beginnings."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np

from plumejax.arms.drawer import Drawer
from plumejax.arms.environment import TwoArm
from plumejax.arms.handoff import HandOff
from plumejax.arms.lift import Lift
from plumejax.arms.rewards import ByPhase, Progress
from plumejax.arms.state import ARMS, OBJECTS, ArmsParams, ArmsState, at_rest, real
from plumejax.arms.tasks import Mixture, get_task, register_task
from plumejax.arms.views import Flat, Named
from plumejax.base.errors import ValidationError, require
from plumejax.base.registry import Task, factory, register

REWARDS: dict[str, Callable[[], Any]] = {"reference": ByPhase, "progress": Progress}

VIEWS: dict[str, Callable[[], Any]] = {
    "flat": Flat,
    "named": Named,
    "pictures": partial(Named, pictures=True),
}


@factory
def two_arm(
    task: Any, *, reward: Any = "reference", view: Any = "flat"
) -> tuple[TwoArm, ArmsParams]:
    """`(env, params)` of a two-arm task.

    Args:
      task: a `TaskSpec`, or the name of a registered one.
      reward: "reference", what the phases pay; "progress"; or an object as in `arms/rewards`.
      view: "flat", float[2, N]; "named", a dict; "pictures", that with `rgb`; or an object as in
        `arms/views`.

    Raises:
      ValidationError: an unknown choice.
      KeyError: an unknown task.
    """
    env = TwoArm(
        get_task(task) if isinstance(task, str) else task,
        _chosen("view", view, VIEWS),
        _chosen("reward", reward, REWARDS),
    )
    return env, env.default_params()


def _chosen(what: str, choice: Any, known: Mapping[str, Callable[[], Any]]) -> Any:
    names = f"one of {', '.join(known)}"
    if isinstance(choice, str):
        require(choice in known, what, choice, names)
        return known[choice]()
    method = {"view": "observe", "reward": "pay"}[what]
    good = hasattr(choice, method) and not isinstance(choice, type)
    require(good, what, choice, f"{names}, or an object with {method}()")
    return choice


def with_progress_reward(env: TwoArm, params: ArmsParams) -> tuple[TwoArm, ArmsParams]:
    """The same task paid by `Progress`."""
    reward = Progress()
    return TwoArm(env.task, env.view, reward), params.replace(reward=reward.default_params())


def state_from(task: Any, initial: Mapping[str, Any], *, view: Any = "flat") -> ArmsState:
    """The READY state that a record begins with, observed.

    Args:
      task: a `TaskSpec` that is not mixed, or its name.
      initial: `arm` float[2, 3]; `grip` float[2]; `obj` float[n, 3], of its n objects; `held`
        bool[n, 2]; `goal`, places float[3] by name, in the order of the task's goals; without it
        they are those of an undrawn scene. A whole record, with `initial` and `goal`, will do.
      view: as of `two_arm`.

    Raises:
      ValidationError: a part is missing or of another shape.
    """
    env, params = two_arm(task, view=view)
    if "initial" in initial:
        initial = {"goal": initial.get("goal", {}), **initial["initial"]}
    n = len(env.task.objects)
    shapes = {"arm": (ARMS, 3), "grip": (ARMS,), "obj": (n, 3), "held": (n, ARMS)}
    given = {}
    for name, shape in shapes.items():
        require(name in initial, "initial", sorted(initial), f"with {name!r}")
        given[name] = np.asarray(initial[name])
        fits = given[name].shape == shape
        require(fits, f"initial[{name!r}].shape", given[name].shape, str(shape))
    scene = env.task.build_scene(params.task)
    goal = np.array(scene.goal)
    places = list(initial.get("goal", {}).values())
    if places:
        if np.shape(places) != (len(env.task.goals), 3):
            raise ValidationError(f"goal = {places} must be {len(env.task.goals)} places")
        goal[: len(places)] = places
    state = at_rest(
        scene.replace(
            arm_position=jnp.asarray(given["arm"], real()),
            object_position=jnp.asarray(_filled(given["obj"], (OBJECTS, 3)), real()),
            goal=jnp.asarray(goal, real()),
        )
    ).replace(
        gripper=jnp.asarray(given["grip"], real()),
        held=jnp.asarray(_filled(given["held"], (OBJECTS, ARMS)), bool),
    )
    return env.observed(state, params)


def _filled(rows: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """`rows` with zeros after them."""
    whole = np.zeros(shape, rows.dtype)
    whole[: len(rows)] = rows
    return whole


for _task in (Lift, HandOff, Drawer):
    register_task(_task.name, _task)

_SOURCE = "a kinematic coordination benchmark; rules of an MIT-licensed two-arm environment"

for _id, _spec, _summary in (
    ("TwoArm-Lift-v0", Lift(), "Two arms lift a cube together and put it on a target."),
    ("TwoArm-HandOff-v0", HandOff(), "One arm hands a baton to the other, which puts it down."),
    ("TwoArm-Drawer-v0", Drawer(), "Two arms pull a drawer open and hold it."),
    (
        "TwoArm-Multi-v0",
        Mixture((Lift(), HandOff(), Drawer())),
        "One of the three two-arm tasks, drawn at each reset.",
    ),
):
    register(
        Task(
            _id,
            partial(two_arm, _spec),
            _summary,
            source=_SOURCE,
            difficulty="medium",
            family="arms",
        )
    )
