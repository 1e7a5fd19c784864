"""evaluation/statistics: what a number of episodes comes to, with its uncertainty. Host only."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from plumejax.base.errors import require
from plumejax.evaluation.episodes import Outcomes


class Estimate(NamedTuple):
    """A mean and its standard error; NaN where there is nothing to take it of."""

    value: Any
    error: Any


@dataclass(frozen=True)
class Summary:
    """What a number of episodes came to. Times are in steps, NaN where there is nothing to say.

    Attributes:
      episodes: how many.
      found: in how many the source was found.
      success: their share.
      success_low, success_high: its Wilson interval at 95 %.
      median_steps: median length over all episodes; one not found counts with its full length.
      mean_steps_found, error_steps_found: mean length of those that found it, its standard error.
      restricted_mean, error_restricted_mean: of the arrival time, one not found counting with the
        length of the longest episode.
      mean_return, error_return: of the task as defined.
      spl: success weighted by path length, the mean of S l / max(p, l) (Anderson et al. 2018), l
        the straight way from the start to the goal disc.
      overhead: of those that found it, the mean of p / l.
      walls: barred moves an episode.
      cycled: share of episodes that went to and fro between two places.
      failed: share of episodes that ended otherwise before their time was over.
      hits, error_hits: hits to success: of those that found it, the mean number of observations
        before that told of a hit, and its standard error; NaN of a sensor that tells of none.
      whiffs: of those, the mean number of runs of such observations.
    """

    episodes: int
    found: int
    success: float
    success_low: float
    success_high: float
    median_steps: float
    mean_steps_found: float
    error_steps_found: float
    restricted_mean: float
    error_restricted_mean: float
    mean_return: float
    error_return: float
    spl: float
    overhead: float
    walls: float
    cycled: float
    failed: float
    hits: float
    error_hits: float
    whiffs: float


def summarise(outcomes: Outcomes, radius: Any = 0.0) -> Summary:
    """The `Summary` of `outcomes`; `radius` of the goal, lengths of the plume.

    The last axis of the leaves is that of the episodes; others, of groups of them, are kept, and a
    radius of each group may be given.
    """
    found, failed = np.asarray(outcomes.found), np.asarray(outcomes.failed)
    steps, reward = np.asarray(outcomes.steps), np.asarray(outcomes.reward, float)
    low, high = wilson(found.sum(-1), found.shape[-1])
    restricted = restricted_mean(steps, found, steps.max(-1, keepdims=True))
    arrival, paid = mean(steps, found), mean(reward)
    track, nothing = outcomes.track, np.full(found.shape[:-1], np.nan)
    hits, whiffs = (
        Estimate(nothing, nothing) if x is None else mean(x, found)
        for x in (getattr(track, "hits", None), getattr(track, "whiffs", None))
    )
    spl = overhead = walls = cycled = nothing
    if track is not None:
        goal = np.asarray(radius)[..., None]
        shortest = np.maximum(np.asarray(track.distance) - goal, 0)
        spl = success_by_path(found, shortest, track.path).value
        overhead = path_overhead(found, shortest, track.path).value
        walls, cycled = mean(track.walls).value, mean(track.cycled).value
    values = {
        "episodes": np.full(found.shape[:-1], found.shape[-1]),
        "found": found.sum(-1),
        "success": found.mean(-1),
        "success_low": low,
        "success_high": high,
        "median_steps": np.median(steps, -1),
        "mean_steps_found": arrival.value,
        "error_steps_found": arrival.error,
        "restricted_mean": restricted.value,
        "error_restricted_mean": restricted.error,
        "mean_return": paid.value,
        "error_return": paid.error,
        "spl": spl,
        "overhead": overhead,
        "walls": walls,
        "cycled": cycled,
        "failed": failed.mean(-1),
        "hits": hits.value,
        "error_hits": hits.error,
        "whiffs": whiffs.value,
    }
    return Summary(
        **{name: x if np.ndim(x) else np.asarray(x).item() for name, x in values.items()}
    )


def mean(values: Any, among: Any = None) -> Estimate:
    """The mean of float[..., n] along the last axis and its standard error, float[...]; of those
    `among`, bool[..., n], if given."""
    values = np.asarray(values, float)
    if among is None:
        count: Any = values.shape[-1]
        total = values.sum(-1)
    else:
        values = np.where(among, values, 0.0)
        count, total = np.sum(among, -1), values.sum(-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = total / np.where(count > 0, count, np.nan)
        off = np.square(values - np.expand_dims(value, -1))
        square = off.sum(-1) if among is None else np.where(among, off, 0.0).sum(-1)
        error = np.sqrt(square / np.where(count > 1, count - 1, np.nan) / count)
    return Estimate(value[()], error[()])


def ratio(above: Any, below: Any) -> Estimate:
    """The ratio of the means of float[n] each, and its standard error to first order."""
    above, below = np.asarray(above, float), np.asarray(below, float)
    if not below.any():
        return Estimate(float("nan"), float("nan"))
    value = float(above.mean() / below.mean())
    return Estimate(value, mean(above - value * below).error / float(below.mean()))


def wilson(successes: Any, trials: Any, z: float = 1.959963984540054) -> tuple[Any, Any]:
    """Wilson's score interval of a proportion, by default at 95 % (E. B. Wilson 1927)."""
    p = np.asarray(successes) / trials
    scale = 1 + z**2 / trials
    centre = (p + z**2 / (2 * trials)) / scale
    half = z * np.sqrt(p * (1 - p) / trials + z**2 / (4 * trials**2)) / scale
    return np.maximum(centre - half, 0.0)[()], np.minimum(centre + half, 1.0)[()]


class Arrivals(NamedTuple):
    """The law of the arrival time: after `times` steps a share `cdf` has found the source.

    Attributes:
      times: int[k], steps, ascending, at which some arrive.
      cdf: float[k].
      error: float[k], its standard error (Greenwood 1926).
    """

    times: np.ndarray
    cdf: np.ndarray
    error: np.ndarray

    def quantile(self, q: float) -> float:
        """Steps after which a share `q` has arrived; infinite if that many never do."""
        there = np.flatnonzero(self.cdf >= q - 1e-12)
        return float(self.times[there[0]]) if len(there) else float("inf")

    def percentile(self, q: float) -> Estimate:
        """Steps after which a share `q` has arrived, the law taken as linear between steps, and
        the standard error; infinite if that many never do."""
        times, cdf = np.append(0.0, self.times), np.append(0.0, self.cdf)
        if cdf[-1] < q:
            return Estimate(float("inf"), float("nan"))
        error = float(np.interp(q, self.cdf, self.error))
        low, at, high = np.interp([q - error, q, q + error], cdf, times)
        return Estimate(float(at), float(high - low) / 2)


def arrivals(steps: Any, found: Any, failed: Any = None) -> Arrivals:
    """The `Arrivals` by Kaplan and Meier (1958).

    An episode that was cut off, neither found nor failed, is censored: of its searcher nothing is
    known after that. One that failed never arrives.

    Args:
      steps: int[n], lengths of the episodes.
      found, failed: bool[n]; by default none failed.
    """
    steps, found = np.asarray(steps), np.asarray(found, bool)
    failed = np.zeros_like(found) if failed is None else np.asarray(failed, bool)
    last = np.where(failed & ~found, np.iinfo(np.int64).max, steps.astype(np.int64))
    times, counts = np.unique(steps[found], return_counts=True)
    # At risk just before a time are those who were neither there nor cut off earlier.
    at_risk = len(last) - np.searchsorted(np.sort(last), times, side="left")
    away = np.cumprod(1 - counts / at_risk)
    left = at_risk - counts
    with np.errstate(divide="ignore", invalid="ignore"):
        growth = np.cumsum(np.where(left > 0, counts / (at_risk * left), 0.0))
    return Arrivals(times, 1 - away, away * np.sqrt(growth))


def restricted_mean(steps: Any, found: Any, horizon: Any) -> Estimate:
    """Mean of the arrival time up to `horizon` steps; who is not found by then counts with that."""
    return mean(np.where(np.asarray(found, bool), np.minimum(steps, horizon), horizon))


def discounted_cost(steps: Any, found: Any, gamma: float) -> Estimate:
    """1 - E[gamma^T], T infinite where the source was not found."""
    require(0 < gamma < 1, "gamma", gamma, "in (0, 1)")
    return mean(1 - np.where(np.asarray(found, bool), gamma ** np.asarray(steps, float), 0.0))


def path_overhead(found: Any, shortest: Any, path: Any) -> Estimate:
    """Mean of path over shortest way, float[n] lengths, of those that found the source."""
    shortest, path = np.asarray(shortest, float), np.asarray(path, float)
    use = np.asarray(found, bool) & (shortest > 0)
    return mean(path / np.where(use, shortest, 1.0), use)


def success_by_path(found: Any, shortest: Any, path: Any) -> Estimate:
    """Mean of S l / max(p, l), l the shortest way and p the path (Anderson et al. 2018)."""
    shortest = np.asarray(shortest, float)
    longer = np.maximum(np.maximum(np.asarray(path, float), shortest), np.finfo(float).tiny)
    return mean(np.asarray(found, bool) * np.where(longer > 1e-300, shortest / longer, 1.0))


def normalised_time(found: Any, fewest: Any, steps: Any) -> Estimate:
    """Mean of fewest over actual steps, 0 where the source was not found.

    The fewest are those of the perfect agent in the same episodes (`policies/greedy`).
    """
    return mean(np.asarray(found, bool) * np.asarray(fewest, float) / np.asarray(steps, float))


def paired_difference(a: Any, b: Any) -> Estimate:
    """Mean of a - b over the same episodes, float[n] each."""
    return mean(np.asarray(a, float) - np.asarray(b, float))


def interquartile_mean(values: Any) -> float:
    """Mean of the middle half of float[n]; values at its edges count in part.

    Of training seeds (Agarwal et al. 2021): less moved by one seed than a mean, by luck than a
    median.
    """
    values = np.sort(np.asarray(values, float).ravel())
    n = values.size
    require(n > 0, "values", n, "at least one")
    edges = np.arange(n + 1) / n
    weights = np.clip(np.minimum(edges[1:], 0.75) - np.maximum(edges[:-1], 0.25), 0, None)
    return float(np.sum(weights * values) / np.sum(weights))


def bootstrap(
    values: Any,
    groups: Any,
    statistic: Callable[[np.ndarray], float] = np.mean,
    *,
    resamples: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> tuple[float, float]:
    """The percentile interval of `statistic`: groups are drawn with replacement, then the episodes
    in each.

    The plume's realisation is the unit of replication: episodes in one plume are not independent.
    Where each episode has a plume of its own, `groups` is `range(n)`.

    Args:
      values: float[n].
      groups: int[n], the plume of each episode.
      statistic: of float[m].
      resamples, seed: of the bootstrap.
      level: of the interval.
    """
    values, groups = np.asarray(values, float), np.asarray(groups)
    rng = np.random.default_rng(seed)
    _, group, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    values, starts = values[np.argsort(group, kind="stable")], np.cumsum(sizes) - sizes
    found = []
    for _ in range(resamples):
        chosen = rng.integers(len(sizes), size=len(sizes))
        each = np.repeat(chosen, sizes[chosen])
        within = np.floor(rng.random(len(each)) * sizes[each]).astype(int)
        found.append(statistic(values[starts[each] + within]))
    low, high = np.quantile(found, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
