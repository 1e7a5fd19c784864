"""policies/bayesian: infotaxis and other Bayesian searchers, made for a task.

The task observes hits and the agent's own position (`search/encounter_tasks`). What an agent takes
the world to be are numbers of its own: the world's, unless the factory is told others.
"""

import inspect
import math
from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple, get_args

import jax
import jax.numpy as jnp
import numpy as np

from plumejax.base.errors import require
from plumejax.policies.belief import after_moves, believed_model, by_moves, moves_away
from plumejax.policies.searchers import (
    CutoffInfotaxis,
    CutoffSpaceAwareInfotaxis,
    ExpectedGain,
    Infotaxis,
    KStepInfotaxis,
    MaxProbability,
    MostLikely,
    ProbabilityOverDistance,
    SpaceAwareInfotaxis,
    Thompson,
    Ties,
    Walls,
)
from plumejax.search.environment import PlumeSearch
from plumejax.search.state import Params


def tolerance_of(dtype: str, cells: int) -> float:
    """How much costs may differ and count as the same: what float32 rounds off costs of a bit that
    are sums over so many cells, and the 1e-10 of the published programs in float64."""
    return 1e-10 if dtype == "float64" else max(5e-7, 3e-8 * cells**0.5)


class _Told(NamedTuple):
    """What a factory knows of the task.

    Attributes:
      shared: the fields of every `Searcher`, by name.
      table: float64[H, *spans], the likelihood by displacement.
      dtype: of the policy.
    """

    shared: dict[str, Any]
    table: np.ndarray
    dtype: str

    def cast(self, numbers: Any) -> jax.Array:
        return jnp.asarray(numbers, self.dtype)

    def distances(self) -> np.ndarray:
        """float64[*spans]: 1-norm of each displacement."""
        return moves_away(self.shared["model"].grid_size)


def _told(
    env: PlumeSearch,
    params: Params,
    *,
    ties: Ties = "first",
    walls: Walls = "open",
    tolerance: float | None = None,
    dtype: str = "float32",
    wavelength: float | None = None,
    rate: float | None = None,
    speed: float | None = None,
    lifetime: float | None = None,
    width: float | None = None,
) -> _Told:
    """What is told of the task; the arguments are those of every factory here.

    Args:
      env, params: the task.
      ties: "first": of moves that cost the same the first is taken; "random": one is drawn.
      walls: "open": a move off the grid is weighed as others; "masked": it is never taken.
      tolerance: costs that differ by no more are the same; by default that of the dtype.
      dtype: "float32" or, under x64, "float64".
      wavelength, rate, speed, lifetime, width: of the law that the agent believes in, in the units
        of `plumes/encounters`; by default the world's.

    Raises:
      ValidationError: a task of another kind; an argument that is not allowed.
    """
    require(ties in get_args(Ties), "ties", ties, f"one of {get_args(Ties)}")
    require(walls in get_args(Walls), "walls", walls, f"one of {get_args(Walls)}")
    good = dtype == "float32" or (
        dtype == "float64" and jax.dtypes.canonicalize_dtype("float64") == dtype
    )
    require(good, "dtype", dtype, "float32, or float64 where jax_enable_x64 is on")
    model = believed_model(
        env,
        params,
        wavelength=wavelength,
        rate=rate,
        speed=speed,
        lifetime=lifetime,
        width=width,
    )
    table = model.likelihood
    slack = tolerance_of(dtype, math.prod(model.grid_size)) if tolerance is None else tolerance
    require(slack >= 0, "tolerance", slack, ">= 0")
    shared = {
        "model": model.replace(likelihood=jnp.asarray(table, dtype)),
        "tolerance": jnp.asarray(slack, dtype),
        "ties": ties,
        "walls": walls,
    }
    return _Told(shared, table, dtype)


def _factory(make: Callable[..., Any]) -> Callable[..., Any]:
    """`factory(env, params, *, ...)` of `make(told, *, ...)`, with the arguments of `_told` too."""
    env, params, *common = inspect.signature(_told).parameters.values()
    _, *own = inspect.signature(make).parameters.values()
    names = {parameter.name for parameter in common}

    @wraps(make)
    def factory(env: PlumeSearch, params: Params, **arguments: Any) -> Any:
        of_all = {name: arguments.pop(name) for name in names & set(arguments)}
        return make(_told(env, params, **of_all), **arguments)

    factory.__signature__ = inspect.Signature([env, params, *own, *common])  # type: ignore[attr-defined]
    return factory


@_factory
def infotaxis(told: _Told, *, cutoff: float = 0.0) -> Infotaxis | CutoffInfotaxis:
    """Infotaxis, Vergassola et al. 2007: the move that tells most about where the source is.

    Args:
      cutoff: where it is above 0, cells of less probability count nothing in an entropy; 1e-10 in
        Loisy and Heinonen 2023. Slower: every posterior is formed.
    """
    require(0 <= cutoff < 1, "cutoff", cutoff, "in [0, 1)")
    if cutoff > 0:
        return CutoffInfotaxis(**told.shared, cutoff=told.cast(cutoff))
    return Infotaxis(**told.shared, kernel=told.cast(_of_information(told.table)))


@_factory
def k_step_infotaxis(told: _Told, *, steps: int = 2) -> KStepInfotaxis:
    """Infotaxis that looks several moves ahead.

    Args:
      steps: moves that it looks ahead.
    """
    require(isinstance(steps, int) and steps >= 1, "steps", steps, "an int >= 1")
    kernel = told.cast(_of_information(told.table))
    return KStepInfotaxis(**told.shared, kernel=kernel, steps=steps)


@_factory
def space_aware_infotaxis(
    told: _Told, *, shift: float = -0.5, alpha: float = 0.5, cutoff: float = 0.0
) -> SpaceAwareInfotaxis | CutoffSpaceAwareInfotaxis:
    """Space-aware infotaxis, Loisy and Eloy 2022: infotaxis that also wants to be near.

    Args:
      shift: -0.5 as in Loisy and Eloy 2022, 0.5 as in Heinonen et al. 2023.
      alpha: in [0, 1], how the mean distance is weighed against the entropy; 0.5 as published.
      cutoff: as in `infotaxis`.
    """
    require(shift in (-0.5, 0.5), "shift", shift, "-0.5 or 0.5")
    require(0 <= alpha <= 1, "alpha", alpha, "in [0, 1]")
    require(0 <= cutoff < 1, "cutoff", cutoff, "in [0, 1)")
    shared = told.shared | {"shift": told.cast(shift), "alpha": told.cast(alpha)}
    if cutoff > 0:
        return CutoffSpaceAwareInfotaxis(**shared, cutoff=told.cast(cutoff))
    rest = np.concatenate([_np_xlogx(told.table), told.table * told.distances()])
    tables = {"hits": told.cast(after_moves(told.table)), "rest": told.cast(after_moves(rest))}
    return SpaceAwareInfotaxis(**(shared | tables))


@_factory
def max_probability(told: _Told) -> MaxProbability:
    """Greedy: the move that most probably finds the source."""
    return MaxProbability(**told.shared)


@_factory
def mean_distance(told: _Told) -> ExpectedGain:
    """The move after which the source is nearest on average, in moves; 0 if it is found."""
    return ExpectedGain(**told.shared, kernel=told.cast(-by_moves(told.distances())[..., None]))


@_factory
def voting(told: _Told) -> ExpectedGain:
    """Voting, Cassandra et al. 1996: every cell votes, by its probability, for what leads there.

    Where several moves lead to a cell its vote is split among them.
    """
    nearer = by_moves(told.distances()) < 0
    votes = nearer / np.maximum(nearer.sum(axis=1, keepdims=True), 1)
    return ExpectedGain(**told.shared, kernel=told.cast(votes[..., None]))


@_factory
def most_likely_state(told: _Told) -> MostLikely:
    """Most likely state, Cassandra et al. 1996: toward the most probable cell."""
    return MostLikely(**told.shared)


@_factory
def p_over_d(told: _Told) -> ProbabilityOverDistance:
    """Toward the cell of greatest probability over distance in moves."""
    return ProbabilityOverDistance(**told.shared)


@_factory
def thompson(told: _Told, *, persistence: int = 10) -> Thompson:
    """Thompson sampling: toward a cell drawn from the belief, for some moves or until there.

    Args:
      persistence: moves until the next cell is drawn.
    """
    good = isinstance(persistence, int) and persistence >= 1
    require(good, "persistence", persistence, "an int >= 1")
    return Thompson(**told.shared, persistence=np.int32(persistence))


@_factory
def qmdp(told: _Told, *, gamma: float = 0.99) -> ExpectedGain:
    """QMDP, Littman et al. 1995: as if the next move would tell where the source is.

    Greatest is sum_cells p gamma^d, d the moves that it is to the cell after the move. What is
    computed is its gain over to stay, over 1 - gamma, so that none of its digits are lost.

    Args:
      gamma: in (0, 1), the discount of a move.
    """
    require(0 < gamma < 1, "gamma", gamma, "in (0, 1)")
    gain = by_moves(gamma ** told.distances()) / (1 - gamma)
    return ExpectedGain(**told.shared, kernel=told.cast(gain[..., None]))


def _of_information(table: np.ndarray) -> np.ndarray:
    """float64[cells, 1 + 2d, H + 1]: `Infotaxis.kernel` of float64[H, *spans]."""
    return after_moves(np.concatenate([table, _np_xlogx(table).sum(axis=0, keepdims=True)]))


def _np_xlogx(x: np.ndarray) -> np.ndarray:
    return x * np.log2(np.where(x > 0, x, 1.0))


POLICIES: dict[str, Callable[..., Any]] = {
    "infotaxis": infotaxis,
    "k-step-infotaxis": k_step_infotaxis,
    "space-aware-infotaxis": space_aware_infotaxis,
    "greedy-belief": max_probability,
    "mean-distance": mean_distance,
    "voting": voting,
    "most-likely-state": most_likely_state,
    "p-over-d": p_over_d,
    "thompson": thompson,
    "qmdp": qmdp,
}
