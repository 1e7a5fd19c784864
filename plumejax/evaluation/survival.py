"""evaluation/survival: searches weighted with the probability that the source is not found yet.

For agents that believe what is so: the source is then distributed as they believe, and no source
need be drawn. The hits are drawn from the agent's own predictive distribution, given that it has
not found; of a search that goes on without end each step multiplies the probability `p_nf` of not
having found by `1 - p_end`, so each gives a whole law of the arrival time, where an episode with a
source gives one time (Loisy, Eloy 2022, Proc. R. Soc. A 478: 20220118). The expectations are those
of `evaluation.episodes` on the same task, their errors smaller.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from plumejax.base.errors import require
from plumejax.evaluation import lanes as side_by_side
from plumejax.evaluation.episodes import in_order
from plumejax.evaluation.lanes import LANES
from plumejax.evaluation.statistics import Arrivals, Estimate, mean, ratio
from plumejax.evaluation.tracks import STUCK, went_back
from plumejax.policies.belief import believed_model
from plumejax.search.environment import PlumeSearch
from plumejax.search.first_hit import FirstHit, by_inversion

ENOUGH = 1e-6
"""A search is over that has found with all but this probability, or whose time is over."""


_MEANS = ("walls", "cycled", "stuck", "hits")


class Searches(NamedTuple):
    """How n searches went, NumPy arrays.

    Attributes:
      steps: int32[n], until it was over.
      not_found: float64[n], the probability of not having found by then.
      time: float64[n], `sum_t p_nf(t)`, the mean of the steps until it has found or is over.
      walls: float64[n], the mean number of moves off the grid until it has found or is over.
      cycled: float64[n], the probability of not having found when first it had come back to its
        place of two steps ago more than `STUCK` times running; 0 if it never did.
      stuck: float64[n], the same where to have stayed at a wall counts as to have come back.
      hits: float64[n], the sum over steps of the probability to find by that one, times how many of
        the observations before told of a hit.
      cdf: float64[T], the mean over searches of the probability to have found within 1..T steps, T
        the time limit.
      error: float64[T], its standard error.
    """

    steps: np.ndarray
    not_found: np.ndarray
    time: np.ndarray
    walls: np.ndarray
    cycled: np.ndarray
    stuck: np.ndarray
    hits: np.ndarray
    cdf: np.ndarray
    error: np.ndarray


class Numbers(NamedTuple):
    """Of a `Weighted`: who searches, the key of all searches, and the params of the task."""

    policy: Any
    key: jax.Array
    params: Any


class Lane(NamedTuple):
    """A search that is going on.

    Attributes:
      memory: of the policy.
      observation: float32[1 + d], hits and the agent's cell.
      key: of its steps.
      steps: int32[], so far.
      away: float[T + 1], `p_nf` after 0, 1, ..., `steps` steps.
      walls, cycled, stuck, hits: float[], as in `Searches`.
      smelled: int32[], how many of the observations acted on told of a hit.
      returns, again: int32[], how often running it has come back to its place of two steps ago, and
        how often it was there again, having moved or not.
      before: int32[d], where it was a step ago.
    """

    memory: Any
    observation: jax.Array
    key: jax.Array
    steps: jax.Array
    away: jax.Array
    walls: jax.Array
    cycled: jax.Array
    stuck: jax.Array
    hits: jax.Array
    smelled: jax.Array
    returns: jax.Array
    again: jax.Array
    before: jax.Array


@dataclass(frozen=True)
class Weighted:
    """A search by a policy that believes, as a `lanes.Game` with `Numbers`.

    Attributes:
      env: the task.
      limit: T, its steps.
    """

    env: PlumeSearch
    limit: int

    def begin(self, numbers: Numbers, number: jax.Array) -> Lane:
        policy, key, params = numbers
        reset_key, init_key, run_key = jax.random.split(jax.random.fold_in(key, number), 3)
        # Of the episode the count that it begins with is used; its source is not.
        observation, _ = self.env.reset(reset_key, params)
        memory = policy.init(init_key)
        away = jnp.zeros(self.limit + 1, memory.belief.dtype).at[0].set(1)
        none, zero = jnp.zeros((), away.dtype), jnp.zeros((), jnp.int32)
        place = policy.place(observation)
        return Lane(
            memory=memory,
            observation=observation,
            key=run_key,
            steps=zero,
            away=away,
            walls=none,
            cycled=none,
            stuck=none,
            hits=none,
            smelled=zero,
            returns=zero,
            again=zero,
            before=place,
        )

    def step(self, numbers: Numbers, lane: Lane) -> Lane:
        policy, over = numbers.policy, self.over(numbers, lane)
        step_key = jax.random.fold_in(lane.key, lane.steps.astype(jnp.uint32))
        act_key, hit_key = jax.random.split(step_key)
        action, memory = policy.act(act_key, lane.memory, lane.observation)
        here = policy.place(lane.observation)
        there = policy.moved(here, action)
        p_end, q = policy.predict(memory.belief, here, action)
        hits = by_inversion(jax.random.uniform(hit_key, (), q.dtype), q)
        observation = jnp.concatenate([hits[None], there]).astype(lane.observation.dtype)

        # What `view` shows of a search that is over stays; nobody looks at its belief.
        p_nf = lane.away[lane.steps]
        later = jnp.where(over, p_nf, p_nf * jnp.maximum(1 - p_end, 0))
        kept = jnp.where(over, jnp.zeros_like(p_nf), p_nf)
        steps = jnp.where(over, lane.steps, lane.steps + 1)
        hit = self.env.sensor.hit(lane.observation, numbers.params)
        smelled = lane.smelled + hit.astype(jnp.int32)
        barred = jnp.all(there == here)
        returns = jnp.where(went_back(lane.before, here, there), lane.returns + 1, 0)
        again = jnp.where(jnp.all(there == lane.before), lane.again + 1, 0)
        return Lane(
            memory=memory,
            observation=observation,
            key=lane.key,
            steps=steps,
            away=lane.away.at[steps].set(later),
            walls=lane.walls + jnp.where(barred, kept, 0),
            cycled=jnp.where((returns > STUCK) & (lane.cycled == 0), kept, lane.cycled),
            stuck=jnp.where((again > STUCK) & (lane.stuck == 0), kept, lane.stuck),
            hits=lane.hits + (p_nf - later) * smelled.astype(p_nf.dtype),
            smelled=smelled,
            returns=returns,
            again=again,
            before=here,
        )

    def over(self, numbers: Numbers, lane: Lane) -> jax.Array:
        return (lane.away[lane.steps] < ENOUGH) | (lane.steps >= self.limit)

    def view(self, lane: Lane) -> dict[str, jax.Array]:
        return {name: getattr(lane, name) for name in ("steps", "away", *_MEANS)}


def search(
    env: PlumeSearch,
    policy: Any,
    key: jax.Array,
    params: Any,
    count: int,
    *,
    lanes: int = LANES,
    progress: Callable[[int], None] = lambda ended: None,
) -> Searches:
    """`Searches` of any number; the memory is that of `lanes`, and some bytes for each.

    Search i depends on `fold_in(key, i)` only.

    Args:
      env, params: the task.
      policy: one that believes what the task is, of `policies/bayesian`.
      count: searches.
      lanes, progress: those of `lanes.stream`.

    Raises:
      ValidationError: a policy or a task that there is no such weight for.
    """
    require_believer(env, policy, params)
    require(count >= 1, "count", count, ">= 1")
    limit = int(params.max_steps)
    parts = side_by_side.stream(
        Weighted(env, limit),
        Numbers(policy, key, params),
        count,
        lanes=lanes,
        progress=progress,
    )
    sums = np.zeros((2, limit + 1))
    each = in_order((which, _without_law(view, sums)) for which, view in parts)
    cdf = 1 - sums[0] / count
    spread = np.sqrt(np.maximum(sums[1] - sums[0] ** 2 / count, 0) / max(count - 1, 1))
    return Searches(**each, cdf=cdf[1:], error=spread[1:] / np.sqrt(count))


def _without_law(view: dict[str, np.ndarray], sums: np.ndarray) -> dict[str, np.ndarray]:
    """The view of some searches, its law added to `sums`, float64[2, T + 1], and left out."""
    steps, away = view["steps"], view["away"].astype(np.float64)
    not_found = np.take_along_axis(away, steps[:, None], axis=1)
    times = np.arange(away.shape[1])
    before = times < steps[:, None]
    law = np.where(before, away, not_found)
    sums += law.sum(axis=0), np.square(law).sum(axis=0)
    return {
        "steps": steps,
        "not_found": not_found[:, 0],
        "time": np.sum(away, axis=1, where=before),
        **{name: view[name].astype(np.float64) for name in _MEANS},
    }


def require_believer(env: PlumeSearch, policy: Any, params: Any) -> None:
    """Raise `ValidationError` unless the source is, whenever the agent acts, distributed as it
    believes: it begins by what the first hit says, and believes in the law of the task."""
    name = type(policy).__name__
    believes = all(callable(getattr(policy, method, None)) for method in ("believe", "predict"))
    require(believes, "policy", name, "one that believes and predicts, as infotaxis does")
    start = getattr(env, "start", None)
    drawn = isinstance(start, FirstHit)
    require(drawn, "env.start", start, "a FirstHit, which draws the source as the agent believes")
    law = believed_model(env, params).likelihood
    same = policy.model.likelihood.shape == law.shape
    same = same and np.allclose(policy.model.likelihood, law, rtol=1e-5, atol=1e-7)
    require(same, f"model of {name}", "another law", "that of the task, which it is weighed by")


@dataclass(frozen=True)
class Weighed:
    """What searches came to. Times are in steps, and errors standard errors.

    Attributes:
      searches: how many.
      not_found, error_not_found: the probability of not having found when the time is over.
      mean_steps_found, error_steps_found: mean arrival time, given that it found.
      restricted_mean, error_restricted_mean: of the arrival time, one not found counting with the
        time limit.
      percentiles: by per cent, `(steps, error)`; infinite if that many never arrive.
      hits, error_hits: hits to success: the mean number of observations before it found that told
        of a hit, given that it found.
      walls: moves off the grid an episode.
      cycled: the probability to have gone to and fro between two places before it found.
      stuck: the share of searches that were for long in no more than two places, by a wall also in
        one, found or not: searches here go on where one with a source would have found it.
      timed_out: the share of searches whose time was over with more than `ENOUGH` to find.
    """

    searches: int
    not_found: float
    error_not_found: float
    mean_steps_found: float
    error_steps_found: float
    restricted_mean: float
    error_restricted_mean: float
    percentiles: dict[int, Estimate]
    hits: float
    error_hits: float
    walls: float
    cycled: float
    stuck: float
    timed_out: float


PERCENTILES = (10, 25, 50, 75, 90, 95, 99)


def weigh(searches: Searches) -> Weighed:
    """What they came to."""
    found = 1 - searches.not_found
    not_found, restricted = mean(searches.not_found), mean(searches.time)
    # sum_t t P(arrival at t), by parts.
    arrival = ratio(searches.time - searches.steps * searches.not_found, found)
    law, hits = arrival_law(searches), ratio(searches.hits, found)
    return Weighed(
        searches=len(found),
        not_found=not_found.value,
        error_not_found=not_found.error,
        mean_steps_found=arrival.value,
        error_steps_found=arrival.error,
        restricted_mean=restricted.value,
        error_restricted_mean=restricted.error,
        percentiles={per_cent: law.percentile(per_cent / 100) for per_cent in PERCENTILES},
        hits=hits.value,
        error_hits=hits.error,
        walls=float(searches.walls.mean()),
        cycled=float(searches.cycled.mean()),
        stuck=float(np.mean(searches.stuck > 0)),
        timed_out=float(np.mean(searches.not_found >= ENOUGH)),
    )


def arrival_law(searches: Searches) -> Arrivals:
    """The law of the arrival time, up to the time limit."""
    times = np.arange(1, len(searches.cdf) + 1)
    return Arrivals(times, searches.cdf, searches.error)
