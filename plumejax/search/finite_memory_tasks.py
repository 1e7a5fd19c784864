"""search/finite_memory_tasks: searches by hits alone, for agents of few memory states, by name.

After Verano, Panizon, Celani 2023 (PNAS 120: e2304230120): 92 x 131 cells, one source, hit or no
hit in each step. Here the wind blows along +x, so the grid is 131 wide and 92 high, and the row of
the start is one of x = 130.

The published cost of an episode that takes T steps is 1 - gamma^T; with the reward 1 in the step
that finds the source, the return discounted by `GAMMA` is gamma^(T-1). `hit_map` and `start_map`
are what an exact solver needs of a task.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from plumejax.base.errors import require
from plumejax.base.registry import Task, register
from plumejax.plumes.encounters import EncounterPlume, Isotropic, IsotropicParams, cosh
from plumejax.search.arena import OpenGrid
from plumejax.search.beliefs import Hits
from plumejax.search.endings import GoalDisc
from plumejax.search.environment import PlumeSearch
from plumejax.search.hit_row import HitRow, hit_probability
from plumejax.search.motion import AxisMoves
from plumejax.search.state import Params
from plumejax.search.tasks import plume_search

GAMMA = 0.99975
"""The published discount a step: a horizon of 4000 steps."""

MAX_STEPS = 20_000
"""Five horizons (ours): what is cut off would weigh `GAMMA ** 20_000`, 0.7 per cent, at most."""


def finite_memory_search(
    plume: EncounterPlume, numbers: Any, /, **static: Any
) -> tuple[PlumeSearch, Params]:
    """`(env, params)` of a search by hits alone, by an agent that does not know where it is.

    The observation, float32[1], is 1 for a hit and 0 for none, at the start too; the actions are
    the four of `AxisMoves`; found within 1.1 cells, so beside the source, not diagonally. It starts
    in the row that is farthest downwind, as often in each cell as there is a hit (`HitRow`).

    Args:
      plume, numbers: a plume of encounters on the plane, with one source that stays.
      **static: components, as in `plume_search`; a plume must be one of encounters.
    """
    given = static.get("plume", plume)
    require(isinstance(given, EncounterPlume), "plume", given, "a plume of encounters")
    ours = {
        "plume": plume,
        "sensor": Hits(given, 2),
        "motion": AxisMoves(),
        "start": HitRow(given),
        "arena": OpenGrid(given.grid_size),
    }
    env, params = plume_search(**{**ours, **static})
    params = params.replace(max_steps=np.int32(MAX_STEPS))
    if env.plume == plume:
        params = params.replace(plume=numbers)
    if env.ending == GoalDisc():
        params = params.replace(ending=params.ending.replace(radius=np.float32(1.1)))
    return env, params


def finite_memory_cosh(**static: Any) -> tuple[PlumeSearch, Params]:
    """`finite_memory_search` in the cosh plume: hits downwind only, of `sech^2(y / (0.2 x))`, from
    125 cells downwind of a source at [5, 46]. The place of the source is ours."""
    return finite_memory_search(*cosh(), **static)


def finite_memory_bessel(**static: Any) -> tuple[PlumeSearch, Params]:
    """`finite_memory_search` without wind: hits to all sides, of `1 - exp(-mu)` with mu a Bessel
    function K0 of the distance (`Isotropic`).

    The source is where that of the cosh plume is. Ours: odour gets 50 cells far, at a rate of 2, so
    that a hit has a probability of 0.83 beside the source and 0.03 where searches start.
    """
    plume, numbers = cosh(law=Isotropic())
    law = IsotropicParams(wavelength=np.float32(50.0), rate=np.float32(2.0))
    return finite_memory_search(plume, numbers.replace(law=law), **static)


def hit_map(env: PlumeSearch, params: Params) -> jax.Array:
    """float[height, width], indexed [y, x]: the probability of a hit in each cell; 0 at the source.

    Computed in the dtype of the plume's numbers.
    """
    width, height = env.plume.grid_size
    y, x = jnp.divmod(jnp.arange(width * height, dtype=jnp.int32), jnp.int32(width))
    cells = jnp.stack([x, y], axis=-1).astype(jnp.float32)
    state = env.plume.start(jax.random.key(0), params.plume)
    return hit_probability(env.plume, state, cells, params.plume).reshape(height, width)


def start_map(env: PlumeSearch, params: Params) -> jax.Array:
    """float[height, width], indexed [y, x]: the probability of a start in each cell; sums to 1.

    Computed in the dtype of the plume's numbers.

    Raises `ValidationError` for a task whose start is no `HitRow`.
    """
    require(isinstance(env.start, HitRow), "start", env.start, "a HitRow")
    width, _ = env.plume.grid_size
    state = env.plume.start(jax.random.key(0), params.plume)
    weights = env.start.weights(state, env.arena, params)
    row = jnp.arange(width, dtype=jnp.float32) == params.start.x
    return jnp.where(row[None], (weights / jnp.sum(weights))[:, None], 0.0)


_SOURCE = "Verano, Panizon, Celani 2023, PNAS 120: e2304230120"

for _task in (
    Task(
        "FiniteMemory-Cosh-v0",
        finite_memory_cosh,
        "hits alone, in the cosh plume, 131 x 92 cells",
        source=_SOURCE,
        difficulty="medium",
    ),
    Task(
        "FiniteMemory-Bessel-v0",
        finite_memory_bessel,
        "hits alone, without wind, 131 x 92 cells",
        source=_SOURCE,
        difficulty="hard",
    ),
):
    register(_task)
