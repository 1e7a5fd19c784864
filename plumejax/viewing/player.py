"""viewing/player: what a browser needs to replay episodes, as JSON, small enough for a file."""

import base64
import zlib
from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import numpy as np

from plumejax.arms.environment import TwoArm
from plumejax.evaluation.episodes import Lane, Outcomes
from plumejax.learning.agent import Agent
from plumejax.plumes.interface import clock
from plumejax.viewing.frames import brightest, levels
from plumejax.viewing.scenery import Canvas, Scenery, canvas, scenery, search_of, turns

QUALITIES = ((120, 64), (90, 48), (60, 40), (40, 32), (20, 24))
"""Moments of a plume that are kept, and pixels of its longer side; the first that fit are taken."""

MOST_BYTES = 120_000
"""Of the plume of an episode, compressed: 20 episodes make less than 5 MB of text."""

COLUMNS = 1000
"""Moments of a hidden state that are kept."""

DECADES = 4.0
"""Below the greatest probability of a belief, as far as one is shown."""


def episodes(
    env: Any, params: Any, policy: Any, outcomes: Outcomes, lanes: Lane, title: str
) -> Iterator[dict[str, Any]]:
    """What is shown of each of some episodes, for JSON.

    Args:
      env, params: the task, a search or one of two arms.
      policy: that played.
      outcomes, lanes: of `evaluation.episodes.trace`.
      title: stands before the number of each.
    """
    outcomes = jax.device_get(outcomes._replace(track=None))
    for number, steps in enumerate(outcomes.steps):
        one = jax.tree.map(lambda x, i=number: x[:, i], lanes)
        how = "found" if outcomes.found[number] else "lost" if outcomes.failed[number] else "no"
        ended = {"found": "found", "lost": "failed", "no": "time over"}[how]
        yield {
            "title": f"{title}, episode {number}: {ended} after {steps} steps",
            "found": bool(outcomes.found[number]),
            "steps": int(steps),
            "dt": _seconds(env, params),
            **_of_every_step(env, one, int(steps)),
            **_mind(policy, one, int(steps)),
            **_scene(env, params, one.state, int(steps)),
        }


def packed(values: np.ndarray) -> dict[str, Any]:
    """An array of uint8, uint16 or float32, compressed as text, the low byte of a number first."""
    little = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
    data = base64.b64encode(zlib.compress(little.tobytes(), 9)).decode()
    return {"dtype": values.dtype.name, "shape": list(values.shape), "data": data}


def _steps(values: Any, low: Any, high: Any) -> dict[str, Any]:
    """Numbers that lie between two, as uint16 of that range."""
    low, high = np.asarray(low, float), np.asarray(high, float)
    share = (np.asarray(values, float) - low) / np.where(high > low, high - low, 1.0)
    return packed(np.rint(65535 * np.clip(share, 0, 1)).astype(np.uint16))


def _of_every_step(env: Any, lane: Lane, steps: int) -> dict[str, Any]:
    """Rewards, and the hits that were acted on, by step."""
    total = np.asarray(lane.state.total_reward, float)
    total = total.reshape(len(total), -1).sum(axis=1)[: steps + 1]
    told: dict[str, Any] = {"total": packed(total.astype(np.float32))}
    hits = getattr(lane.track, "hits", None)
    if hits is not None:
        told["hits"] = np.flatnonzero(np.diff(np.asarray(hits)[: steps + 1])).tolist()
    return told


def _scene(env: Any, params: Any, states: Any, steps: int) -> dict[str, Any]:
    inner = getattr(env, "env", env)
    if isinstance(inner, TwoArm):
        low, high = np.asarray(params.workspace_low), np.asarray(params.workspace_high)
        arms, objects = (
            np.asarray(x)[: steps + 1, :, :2] for x in (states.arm_position, states.object_position)
        )
        there = np.any(objects != 0, axis=(0, 2))
        extent = [float(x) for x in (low[0], high[0], low[1], high[1])]
        return {
            "extent": extent,
            "unit": "m",
            "agents": _ways(arms, extent),
            "objects": _ways(objects[:, there], extent),
        }
    params = env.episode_params(jax.tree.map(lambda x: x[0], states), params)
    search = search_of(env)
    whole = canvas(search.arena, params)
    places = np.asarray(states.agent.position, float)[: steps + 1]
    places = places[:, None] if places.ndim == 2 else places
    flat = np.zeros((*places.shape[:2], 2))
    flat[..., : min(2, places.shape[-1])] = places[..., :2]
    odour = np.asarray(_odour(search, states, params), float)[: steps + 1]
    most = float(odour.max())
    on_grid = hasattr(search.arena, "grid_size")
    shown = {
        "extent": [round(x, 5) for x in whole.extent],
        "unit": getattr(search.plume, "length", None)
        or ("cells" if on_grid else "lengths of the plume"),
        "odour_unit": getattr(search.plume, "unit", "arbitrary units"),
        "radius": _number(getattr(params.ending, "radius", None)),
        "agents": _ways(flat, whole.extent),
        "most": float(f"{most:.4g}"),
        "odour": _steps(np.cbrt(odour), 0.0, np.cbrt(most)),
    }
    if turns(env):
        headings = np.asarray(states.agent.heading, float)[: steps + 1]
        shown["heading"] = _steps(headings.reshape(steps + 1, -1)[:, 0], 0.0, 360.0)
    for moments, pixels in QUALITIES:
        field = _fields(env, states, params, steps, _coarse(whole, pixels), moments)
        if len(field["field"]["data"]) * 3 / 4 < MOST_BYTES:
            break
    return {**shown, **field}


def _ways(places: np.ndarray, extent: Any) -> list[dict[str, Any]]:
    """Of each of float[T, n, 2] its way, in shares of the map."""
    left, right, bottom, top = extent
    return [_steps(places[:, i], (left, bottom), (right, top)) for i in range(places.shape[1])]


def _fields(
    env: Any, states: Any, params: Any, steps: int, where: Canvas, most: int
) -> dict[str, Any]:
    """The plume at some moments of an episode, what stands in it, and the wind."""
    moments = _moments(steps, most)
    # Room that is left over shows the last moment again: one program serves every episode.
    padded = np.concatenate([moments, np.repeat(moments[-1:], most - len(moments))])
    some = jax.tree.map(lambda x: x[padded], states)
    seen = jax.device_get(_seen(env, where.size, some, params, where.origin, where.spacing))
    seen = jax.tree.map(lambda x: x[: len(moments)], seen)
    saturation = getattr(params.sensor, "saturation", None)
    top = max(float(brightest(field, saturation)) for field in seen.field)
    # A quarter of the levels is told apart as well, and compresses better.
    level = np.rint(np.asarray(levels(seen.field, top)) * 63).astype(np.uint8) * 4
    still = bool((level == level[:1]).all())
    sources = where.origin + where.spacing * seen.sources
    free = seen.free[0]
    return {
        "moments": moments.tolist(),
        "field": packed(level[:1] if still else level),
        "top": float(f"{top:.4g}"),
        "sources": [
            _short(x) for x in (sources[:1] if (sources == sources[:1]).all() else sources)
        ],
        "wind": _short(seen.wind),
        "free": None if free.all() else packed(free.astype(np.uint8)),
    }


@partial(jax.jit, static_argnames=("env", "size"))
def _seen(
    env: Any, size: tuple[int, int], states: Any, params: Any, origin: Any, spacing: Any
) -> Scenery:
    where = Canvas(size, origin, spacing)
    return jax.lax.map(lambda state: scenery(env, state, params, where), states)


@partial(jax.jit, static_argnames="env")
def _odour(env: Any, states: Any, params: Any) -> jax.Array:
    """float32[T]: the concentration at the agent, of a team at the first one."""

    def one(state: Any) -> jax.Array:
        at = state.agent.position
        at = at if at.ndim == 2 else at[None]
        return env.plume.sample(state.plume, at[:1], params.plume).concentration[0]

    return jax.lax.map(one, states)


def _coarse(where: Canvas, longest: int) -> Canvas:
    """A canvas of the same region with at most so many pixels along its longer side."""
    times = max(1, -(-max(where.size) // longest))
    width, height = (max(1, n // times) for n in where.size)
    spacing = where.spacing * np.asarray(where.size, np.float32)
    spacing = spacing / np.asarray([width, height], np.float32)
    corner = where.origin - where.spacing / 2
    return Canvas((width, height), corner + spacing / 2, spacing)


def _mind(policy: Any, lane: Lane, steps: int) -> dict[str, Any]:
    """The belief by step, summed over heights, or the hidden state: what it acts on then."""
    belief, ahead = getattr(lane.memory, "belief", None), 1
    if belief is None:
        belief, ahead = getattr(getattr(lane.state, "sensor", None), "belief", None), 0
    # A memory has what was observed once it has acted on it, which is a step later.
    acted = np.minimum(np.arange(steps + 1) + ahead, steps)
    if belief is not None and belief.ndim > 1:
        for most, _ in QUALITIES:
            told = _belief(belief, acted, _moments(steps, most))
            if len(told["belief"]["data"]) * 3 / 4 < MOST_BYTES:
                break
        return told
    if isinstance(policy, Agent):
        acted = np.minimum(_moments(steps, COLUMNS) + 1, steps)
        units = [np.asarray(x)[acted] for x in jax.tree.leaves(lane.memory[1])]
        if units:
            hidden = np.concatenate([x.reshape(len(x), -1) for x in units], axis=1)
            hidden = hidden / max(float(np.abs(hidden).max()), 1e-9)
            return {"hidden": packed(np.rint((hidden + 1) * 127.5).astype(np.uint8))}
    return {}


def _belief(belief: Any, acted: np.ndarray, moments: np.ndarray) -> dict[str, Any]:
    """A belief, indexed [T, x, y, z], at some moments, indexed [row, column]."""
    shown = np.asarray(belief[acted[moments]], float)
    shown = shown.reshape(*shown.shape[:3], -1).sum(axis=-1) if shown.ndim > 2 else shown
    shown = np.moveaxis(shown.reshape(*shown.shape[:2], -1), 1, 2)
    most = shown.max(axis=(1, 2), keepdims=True)
    level = np.asarray(levels(shown / np.where(most > 0, most, 1), 1.0, DECADES))
    level = np.rint(level * 63).astype(np.uint8) * 4
    bits = -np.sum(shown * np.log2(np.where(shown > 0, shown, 1.0)), axis=(1, 2))
    return {"belief": packed(level), "believed": moments.tolist(), "entropy": _short(bits)}


def _moments(steps: int, most: int) -> np.ndarray:
    """int[k]: at most so many of the steps from 0 on, evenly, the first and the last among them."""
    return np.unique(np.linspace(0, steps, min(most, steps + 1)).astype(int))


def _seconds(env: Any, params: Any) -> float | None:
    """Seconds that a step takes; None where nothing is known of time."""
    inner = getattr(env, "env", env)
    if isinstance(inner, TwoArm):
        return None
    seconds = clock(search_of(env).plume, params.plume)
    return None if seconds is None else float(np.max(np.asarray(seconds)))


def _number(value: Any) -> float | None:
    return None if value is None else float(np.asarray(value))


def _short(values: Any) -> Any:
    """Nested lists of numbers of four digits, for JSON, which knows no NaN."""
    array = np.asarray(values, float)
    if array.ndim == 0:
        return float(f"{array:.4g}") if np.isfinite(array) else None
    return [_short(each) for each in array]
