"""search/encounter_tasks: the benchmark of olfactory search, hits on a grid, by name.

The four cases of Loisy and Heinonen 2023 (European Physical Journal E 46: 17), and one-dimensional
and three-dimensional ones of Loisy and Eloy 2022 (Proceedings of the Royal Society A 478:
20220118). The agent knows where it is; the source is in one cell, drawn from what the first hit
says.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np

from plumejax.base.registry import Task, register
from plumejax.plumes.encounters import (
    CASES,
    EncounterPlume,
    Isotropic,
    IsotropicParams,
    first_hit_probabilities,
    isotropic_rate,
    num_hits,
)
from plumejax.search.arena import OpenGrid
from plumejax.search.beliefs import BeliefAround, Hits
from plumejax.search.composed import Stack
from plumejax.search.environment import PlumeSearch
from plumejax.search.first_hit import FirstHit
from plumejax.search.motion import AxisMoves
from plumejax.search.sensors import Position
from plumejax.search.state import Params
from plumejax.search.tasks import plume_search


def encounter_search(
    plume: EncounterPlume,
    numbers: Any,
    counts: np.ndarray,
    position: np.ndarray,
    max_steps: int,
    **static: Any,
) -> tuple[PlumeSearch, Params]:
    """`(env, params)` of a search for one cell by hits.

    The observation is the hits, then the agent's position, float32[1 + d]; the actions are those of
    `AxisMoves`; found in the source's cell.

    Args:
      plume, numbers: a plume of encounters.
      counts: float[H - 1], how probable a first count of 1, 2, ..., H - 1 is.
      position: float[d], where the agent starts.
      max_steps: steps after which an episode is truncated.
      **static: components, as in `plume_search`.
    """
    categories, dimensions = len(counts) + 1, len(plume.grid_size)
    sensor = Stack((("hits", Hits(plume, categories)), ("place", Position(dimensions))))
    parts = {
        "sensor": sensor,
        "motion": AxisMoves(dimensions),
        "start": FirstHit(plume, categories),
        "arena": OpenGrid(plume.grid_size),
        **static,
    }
    env, params = plume_search(plume=plume, **parts)
    params = params.replace(plume=numbers, max_steps=np.int32(max_steps))
    if hasattr(params.ending, "radius"):
        params = params.replace(ending=params.ending.replace(radius=np.float32(0.5)))
    if isinstance(env.start, FirstHit):
        start = params.start.replace(
            position=np.asarray(position, np.float32), counts=np.asarray(counts, np.float32)
        )
        params = params.replace(start=start)
    if env.sensor == sensor:
        last = np.asarray(plume.grid_size, np.float32) - np.float32(1)
        place = params.sensor["place"].replace(high=last)
        params = params.replace(sensor={**params.sensor, "place": place})
    return env, params


def isotropic_search(
    size: int, wavelength: float, rate: float, dimensions: int, max_steps: int, **static: Any
) -> tuple[PlumeSearch, Params]:
    """`encounter_search` without wind on a grid of `size` cells a side, from its middle."""
    plume = EncounterPlume(Isotropic(), (size,) * dimensions)
    law = IsotropicParams(np.float32(wavelength), np.float32(rate))
    numbers = plume.default_params().replace(law=law)
    highest = float(isotropic_rate(jnp.float32(1), law.wavelength, law.rate, dimensions))
    counts = first_hit_probabilities(law.wavelength, law.rate, dimensions, num_hits(highest))
    middle = np.full(dimensions, size // 2)
    return encounter_search(plume, numbers, counts, middle, max_steps, **static)


def windy_search(case: str, **static: Any) -> tuple[PlumeSearch, Params]:
    """`encounter_search` in wind, from [65, 20] with one hit; a count is 0, or 1 and more."""
    plume, numbers = CASES[case]()
    return encounter_search(plume, numbers, np.ones(1), np.asarray([65, 20]), 10_000, **static)


def by_belief(factory: Any) -> Any:
    """The factory of the same searches, whose observation is `BeliefAround`: the belief of a
    Bayesian who knows the plume, as seen from where it stands, float32[patches]."""

    def made(**static: Any) -> tuple[PlumeSearch, Params]:
        if static.get("sensor") is not None:
            return factory(**static)
        (_, hits), _ = factory(**static)[0].sensor.parts
        return factory(**static, sensor=BeliefAround(hits.plume, hits.categories))

    return made


def _isotropic(*case: Any) -> Any:
    return lambda **static: isotropic_search(*case, **static)


def _windy(case: str) -> Any:
    return lambda **static: windy_search(case, **static)


_CASES = "Loisy, Heinonen 2023, Eur. Phys. J. E 46: 17"
_THEORY = "Loisy, Eloy 2022, Proc. R. Soc. A 478: 20220118"

for _id, _factory, _summary, _source, _difficulty in (
    (
        "Olfactory-Isotropic-19x19-v0",
        _isotropic(19, 1.0, 1.0, 2, 642),
        "hits without wind, 19 x 19 cells",
        _CASES,
        "easy",
    ),
    (
        "Olfactory-Isotropic-53x53-v0",
        _isotropic(53, 3.0, 2.0, 2, 2188),
        "hits without wind, 53 x 53 cells",
        _CASES,
        "medium",
    ),
    (
        "Olfactory-Windy-Medium-v0",
        _windy("windy-medium-detections"),
        "hits in wind, 81 x 41 cells, medium detections",
        _CASES,
        "medium",
    ),
    (
        "Olfactory-Windy-Low-v0",
        _windy("windy-low-detections"),
        "hits in wind, 81 x 41 cells, low detections",
        _CASES,
        "hard",
    ),
    (
        "Olfactory-Isotropic-1D-v0",
        _isotropic(33, 2.0, 2.0, 1, 1000),
        "hits without wind on a line of 33 cells",
        _THEORY,
        "easy",
    ),
    (
        "Olfactory-Isotropic-3D-v0",
        _isotropic(39, 2.0, 2.0, 3, 10_000),
        "hits without wind in 39 x 39 x 39 cells",
        _THEORY,
        "hard",
    ),
):
    register(Task(_id, _factory, _summary, source=_source, difficulty=_difficulty))
    if _source == _CASES:
        _name, _, _version = _id.rpartition("-")
        register(
            Task(
                f"{_name}-Belief-{_version}",
                by_belief(_factory),
                f"{_summary}; the belief is observed",
                source=_source,
                difficulty=_difficulty,
            )
        )
