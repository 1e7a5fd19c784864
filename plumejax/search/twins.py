"""search/twins: every named search once more, told the way to the source."""

from dataclasses import replace
from typing import Any

import numpy as np

from plumejax.base.errors import require
from plumejax.base.registry import Task, register, registered_tasks
from plumejax.search.composed import Stack
from plumejax.search.environment import PlumeSearch
from plumejax.search.own_motion import OwnVelocity
from plumejax.search.sensors import SourceVector
from plumejax.search.state import Params
from plumejax.search.walking import Velocity
from plumejax.search.wind_sensors import AmbientWind


def fully_observed(task: Task) -> Task:
    """The twin of a task: its id with -FullyObserved, its observation the way to the source.

    In everything else the two are one, so an agent's score on the twin says what the same motion,
    reward and time allow to one that need not search. It takes the choices of the task but
    `sensor`.
    """

    def factory(**static: Any) -> tuple[PlumeSearch, Params]:
        given = static.get("sensor")
        require(given is None, "sensor", given, f"none: a twin has a SourceVector; see {task.id}")
        return shown_the_way(*task.factory(**static))

    return replace(
        task,
        id=twin_id(task.id),
        factory=factory,
        summary="the same, told the way to the source",
        difficulty="easy",
        twin_of=task.id,
    )


def twin_id(task_id: str) -> str:
    """`"PlumeSearch-FullyObserved-v0"` of `"PlumeSearch-v0"`."""
    name, _, version = task_id.rpartition("-")
    return f"{name}-FullyObserved-{version}"


def shown_the_way(env: PlumeSearch, params: Params) -> tuple[PlumeSearch, Params]:
    """The same search with `SourceVector` as its sensor: ahead and to the left for a motion that
    turns with its heading (`egocentric`), else along x, y (and z); with the wind behind it,
    `AmbientWind` in the same frame, if the motion feels that, and `OwnVelocity` if it has inertia.
    The reach is the diagonal of the arena, whose `sides(params)` say how many dimensions there are.
    """
    sides = env.arena.sides(params)
    egocentric = getattr(env.motion, "egocentric", False)
    way = SourceVector(len(sides), egocentric=egocentric)
    reach = np.linalg.norm(sides).astype(np.float32)
    parts: list[tuple[str, Any]] = [("source", way)]
    numbers: dict[str, Any] = {"source": way.default_params().replace(reach=reach)}
    if getattr(env.motion, "feels_air", False):
        parts.append(("wind", AmbientWind(len(sides), egocentric=egocentric)))
    if isinstance(env.motion, Velocity):
        parts.append(("velocity", OwnVelocity(len(sides))))
        limit = np.asarray(params.motion.max_speed, np.float32)
        numbers["velocity"] = parts[-1][1].default_params().replace(limit=limit)
    if len(parts) == 1:
        return replace(env, sensor=way), params.replace(sensor=numbers["source"])
    numbers = {name: numbers.get(name, sensor.default_params()) for name, sensor in parts}
    return replace(env, sensor=Stack(tuple(parts))), params.replace(sensor=numbers)


# Imported after every module of tasks.
for _task in registered_tasks().values():
    if _task.family == "search":
        register(fully_observed(_task))
