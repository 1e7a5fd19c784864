"""evaluation/precision: as many episodes as an error asks for."""

from collections.abc import Callable
from math import ceil
from typing import Any

import jax
import numpy as np

from plumejax.base.environment import Environment
from plumejax.base.errors import require
from plumejax.base.rollout import Policy
from plumejax.evaluation.episodes import Outcomes, stream
from plumejax.evaluation.lanes import LANES
from plumejax.evaluation.statistics import Estimate, mean


def mean_length(outcomes: Outcomes) -> Estimate:
    """Of all episodes, so of the arrival time restricted to the time limit if none fails."""
    return mean(outcomes.steps)


def play_to_precision(
    env: Environment,
    policy: Policy,
    key: jax.Array,
    params: Any,
    relative_error: float,
    *,
    of: Callable[[Outcomes], Estimate] = mean_length,
    least: int = 256,
    most: int = 1_000_000,
    lanes: int = LANES,
    progress: Callable[[int], None] = lambda ended: None,
) -> Outcomes:
    """`stream` of about the fewest episodes with a standard error of `relative_error` of the value.

    They are the first ones of `play` with that key. To stop when an estimate looks sharp biases it
    a little, the less the more episodes there are at least.

    Args:
      relative_error: > 0.
      of: the estimate.
      least, most: episodes; with `most` it stops, sharp enough or not.
      lanes, progress: those of `stream`.

    Raises:
      ValidationError: a number that is not allowed.
    """
    require(relative_error > 0, "relative_error", relative_error, "> 0")
    require(1 < least <= most, "least", least, f"in 2..most = {most}")
    outcomes, played = None, 0
    wanted = least
    while True:
        more = stream(
            env, policy, key, params, wanted - played, first=played, lanes=lanes, progress=progress
        )
        outcomes = more if outcomes is None else joined(outcomes, more)
        played = wanted
        value, error = of(outcomes)
        ratio = error / (relative_error * abs(value)) if value else np.inf
        if played >= most or ratio <= 1:
            return outcomes
        # The error falls with the root of the number; it is itself an estimate, so not too far.
        growth = min(max(1.05 * ratio**2, 1.2), 4.0) if np.isfinite(ratio) else 4.0
        wanted = min(ceil(played * growth), most)


def joined(first: Outcomes, then: Outcomes) -> Outcomes:
    """The outcomes of both, one after the other."""
    return jax.tree.map(lambda a, b: np.concatenate([a, b]), first, then)
