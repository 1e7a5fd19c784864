"""search/levels: searches made easier and harder, by how rarely there is odour and how far it is.

Intermittency is the part of the time that there is odour: of the places where an episode of plume
tracking starts, the share where odour is above the sensor's floor (`tests/search/test_levels.py`).
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from plumejax.base import paths
from plumejax.base.registry import Task, register
from plumejax.search.hits import Detection
from plumejax.search.sensors import LocalConcentration
from plumejax.search.state import Params
from plumejax.search.tasks import plume_search_local
from plumejax.search.tracking_tasks import CODE, plume_tracking


def with_numbers(make: Any, numbers: Mapping[str, Any], **parts: Any) -> Any:
    """A factory like `make` that has other numbers, by dotted path, and other components where none
    are given. A component that was given keeps its own numbers."""

    def factory(**static: Any) -> tuple[Any, Params]:
        env, params = make(**{**parts, **static})
        ours = {path: x for path, x in numbers.items() if path.split(".")[0] not in static}
        return env, paths.override(params, ours)

    return factory


def local_search(size: int, detection: float) -> Any:
    """The factory of `PlumeSearchLocal-v0` on a grid of `size` cells a side, odour being detected
    with a probability, each step on its own."""
    parts = {"grid_size": (size, size), "sensor": Detection(LocalConcentration())}
    return with_numbers(plume_search_local, {"sensor.probability": np.float32(detection)}, **parts)


def filament_tracking(
    preset: str, near: float, far: float, wide: float, max_steps: int, limit: float
) -> Any:
    """The factory of plume tracking in filaments, from a box `near` to `far` m downwind of the
    source and as `wide` to both sides; lost more than `limit` m from the nearest filament."""
    starts = (("low", (near, -wide)), ("high", (far, wide)))
    edition = replace(CODE, starts=starts, max_steps=max_steps)
    make = partial(plume_tracking, preset, edition)
    return with_numbers(make, {"ending.limit": np.float32(limit)})


_FILAMENTS = "Singh et al. 2023; Farrell et al. 2002; the levels are plumejax's"
_LOCAL = "plume_nav_sim 0.1.0; the levels are plumejax's"

for _id, _factory, _summary, _source, _difficulty in (
    (
        "PlumeSearchLocal-Easy-v0",
        local_search(32, 1.0),
        "32 x 32 cells, odour detected in every step",
        _LOCAL,
        "easy",
    ),
    (
        "PlumeSearchLocal-Medium-v0",
        local_search(64, 0.3),
        "64 x 64 cells, odour detected in 0.3 of the steps",
        _LOCAL,
        "medium",
    ),
    (
        "PlumeSearchLocal-Hard-v0",
        local_search(128, 0.1),
        "128 x 128 cells, odour detected in 0.1 of the steps",
        _LOCAL,
        "hard",
    ),
    (
        "PlumeTracking-Farrell-Easy-v0",
        filament_tracking("farrell-straight", 2.0, 4.0, 0.5, 300, 2.0),
        "filaments in a constant wind, from 2 to 4 m: intermittency 0.41",
        _FILAMENTS,
        "easy",
    ),
    (
        "PlumeTracking-Farrell-Medium-v0",
        filament_tracking("farrell", 4.0, 8.0, 1.0, 750, 10.0),
        "filaments in a wandering wind, from 4 to 8 m: intermittency 0.08",
        _FILAMENTS,
        "medium",
    ),
    (
        "PlumeTracking-Farrell-Hard-v0",
        filament_tracking("farrell", 15.0, 25.0, 2.0, 1500, 10.0),
        "filaments in a wandering wind, from 15 to 25 m: intermittency 0.05",
        _FILAMENTS,
        "hard",
    ),
):
    register(Task(_id, _factory, _summary, source=_source, difficulty=_difficulty))
