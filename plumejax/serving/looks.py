"""serving/looks: what a person is shown of an episode: where everything is, and the plume."""

from functools import partial
from typing import Any

import jax
import numpy as np

from plumejax.arms.environment import TwoArm
from plumejax.base.errors import RenderingError
from plumejax.base.spaces import Box
from plumejax.search.bouts import Declare, Saccades, SniffOrMove
from plumejax.search.environment import PlumeSearch
from plumejax.search.motion import AxisMoves, Moves, Oriented, RunAndTumble, WindRelative
from plumejax.search.walking import TurnAndSpeed, Unicycle, Velocity
from plumejax.serving.models import packed
from plumejax.viewing import frames
from plumejax.viewing.scenery import canvas, scenery, turns

_WAYS = {
    (0, 1): "up",
    (1, 1): "up right",
    (1, 0): "right",
    (1, -1): "down right",
    (0, -1): "down",
    (-1, -1): "down left",
    (-1, 0): "left",
    (-1, 1): "up left",
    (0, 0): "stay",
}

_NAMES = {
    Oriented: ("forward", "turn left", "turn right"),
    Unicycle: ("forward", "turn left", "turn right"),
    RunAndTumble: ("run", "tumble"),
    Saccades: ("forward", "turn left", "turn right", "stand still"),
    WindRelative: ("upwind", "downwind", "crosswind, left", "crosswind, right"),
    TurnAndSpeed: ("turn", "speed"),
}


def look(env: Any, state: Any, params: Any) -> dict[str, Any]:
    """An episode as it stands, as JSON has it. Compiled once for each task.

    `extent` is x from and to, y from and to, of a map in the task's lengths; `agents`, `objects`,
    `goals` and `sources` are what is on it, each `{"at": [x, y], "name"}`, agents with a `heading`
    in degrees if theirs says something. `levels`, uint8[H, W] with row 0 at the lowest y, are the
    cube root of the concentration, 255 from `top` on; `free` are the pixels an agent may be on, if
    not all; `radius` is that of the goal. `odour` is what there is of it where the agent is. A task
    that there is no map of has neither.
    """
    params = env.episode_params(state, params)
    task = _innermost(env)
    shown: dict[str, Any] = {"max_steps": int(params.max_steps)}
    if getattr(params, "dt", None) is not None:
        shown["time"] = float(params.dt) * int(state.step_count)
    if isinstance(task, PlumeSearch):
        return {**shown, **_search(task, state, params)}
    if isinstance(task, TwoArm):
        return {**shown, **_arms(task, state, params)}
    return shown


def controls(env: Any, params: Any) -> dict[str, Any]:
    """What there is to choose: `actions`, names of whole numbers, or `axes`, each `{"name", "low",
    "high"}`, of the numbers of an array; of an unknown motion the names are missing."""
    space, task = env.action_space(params), _innermost(env)
    if isinstance(task, TwoArm):
        names = [f"arm {a}: {axis}" for a in (0, 1) for axis in ("x", "y", "z", "open")]
    else:
        names = names_of(getattr(task, "motion", None))
    if not isinstance(space, Box):
        return {"actions": names, "axes": []}
    ends = [np.broadcast_to(end, space.shape).ravel() for end in (space.low, space.high)]
    names += [str(i) for i in range(len(names), ends[0].size)]
    return {
        "actions": [],
        "axes": [
            {"name": name, "low": _finite(low), "high": _finite(high)}
            for name, low, high in zip(names, *ends, strict=True)
        ],
    }


def unit(env: Any) -> dict[str, str]:
    """The units of odour and of length; "" if the task does not say."""
    task = _innermost(env)
    plume = getattr(task, "plume", None)
    on_grid = hasattr(getattr(task, "arena", None), "grid_size")
    length = "m" if isinstance(task, TwoArm) else "cells" if on_grid else ""
    return {
        "odour": getattr(plume, "unit", ""),
        "length": getattr(plume, "length", None) or length,
    }


def colour_table() -> dict[str, Any]:
    """uint8[256, 3], packed: the colour of each level."""
    return packed(frames.colour_table())


def names_of(motion: Any) -> list[str]:
    """Names of the actions of a motion, or of the numbers of one action; none of an unknown one."""
    match motion:
        case Moves():
            return [_WAYS.get(way, str(way)) for way in motion.directions]
        case AxisMoves():
            return ["left", "right", "down", "up", "lower", "higher"][: 2 * motion.dimensions]
        case Velocity():
            return ["x", "y", "z"][: motion.dimensions]
        case SniffOrMove():
            return [*names_of(motion.of), "sniff"]
        case Declare():
            return [*names_of(motion.of), "declare"]
    return list(_NAMES.get(type(motion), ()))


def _search(env: PlumeSearch, state: Any, params: Any) -> dict[str, Any]:
    place, heading, odour = jax.device_get(_agent(env, state, params))
    agent = {
        "at": _flat(place),
        "position": place.tolist(),
        "heading": float(heading) if turns(env) else None,
    }
    shown = {"agents": [agent], "odour": float(odour)}
    try:
        where = canvas(env.arena, params)
    except RenderingError:
        return shown
    field, free, sources, *_ = jax.device_get(scenery(env, state, params, where))
    top = float(frames.brightest(field, getattr(params.sensor, "saturation", None)))
    radius = getattr(params.ending, "radius", None)
    return {
        **shown,
        "extent": where.extent,
        "levels": packed(np.rint(255 * np.asarray(frames.levels(field, top))).astype(np.uint8)),
        "top": top,
        "free": None if free.all() else packed(free),
        "sources": [{"at": at} for at in (where.origin + sources * where.spacing).tolist()],
        "radius": None if radius is None else float(radius),
    }


@partial(jax.jit, static_argnames="env")
def _agent(env: PlumeSearch, state: Any, params: Any) -> tuple[Any, ...]:
    """`(position, heading, odour there)`."""
    at = state.agent.position
    air = env.plume.sample(state.plume, at[None], params.plume)
    return at, state.agent.heading, air.concentration[0]


def _arms(env: TwoArm, state: Any, params: Any) -> dict[str, Any]:
    exists = np.asarray(_slots(env, state, params))
    low, high = np.asarray(params.workspace_low), np.asarray(params.workspace_high)
    arms, objects, goals = jax.device_get((state.arm_position, state.object_position, state.goal))
    used = [(name, at) for name, at in zip(env.task.goals, goals, strict=False) if at.any()]
    there = zip(env.task.objects, objects[: len(env.task.objects)], strict=True)
    return {
        "agents": [{**_high(f"arm {i}", at), "heading": None} for i, at in enumerate(arms)],
        "objects": [
            _high(name, at) for (name, at), is_there in zip(there, exists, strict=False) if is_there
        ],
        "goals": [_high(name, at) for name, at in used],
        "extent": [float(end) for end in (low[0], high[0], low[1], high[1])],
    }


@partial(jax.jit, static_argnames="env")
def _slots(env: TwoArm, state: Any, params: Any) -> jax.Array:
    return env.task.grip(state, params.task).exists


def _high(name: str, place: np.ndarray) -> dict[str, Any]:
    return {"name": name, "at": _flat(place), "position": place.tolist()}


def _flat(place: np.ndarray) -> list[float]:
    """x and y; a place on a line is at y = 0."""
    return [*place[:2].tolist(), 0.0][:2]


def _finite(number: Any) -> float | None:
    return float(number) if np.isfinite(number) else None


def _innermost(env: Any) -> Any:
    """The task whose numbers `Randomised` draws."""
    return getattr(env, "env", env)
