"""evaluation/statistics: a summary of episodes, with its uncertainty."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from plumejax.evaluation.episodes import Outcomes


@dataclass(frozen=True)
class Summary:
    """What a number of episodes came to.

    Attributes:
      episodes: how many.
      found: in how many the source was found.
      success: their share.
      success_low, success_high: its Wilson interval at 95 %.
      median_steps: median length over all episodes; one not found counts with its full length.
      mean_steps_found: mean length of those that found it; NaN if none did.
      mean_return: mean return of the task as defined.
    """

    episodes: int
    found: int
    success: float
    success_low: float
    success_high: float
    median_steps: float
    mean_steps_found: float
    mean_return: float


def summarise(outcomes: Outcomes) -> Summary:
    """The `Summary` of `outcomes`. Host only."""
    found, steps, reward = (np.asarray(x) for x in outcomes)
    low, high = wilson(int(found.sum()), found.size)
    return Summary(
        episodes=int(found.size),
        found=int(found.sum()),
        success=float(found.mean()),
        success_low=low,
        success_high=high,
        median_steps=float(np.median(steps)),
        mean_steps_found=float(steps[found].mean()) if found.any() else float("nan"),
        mean_return=float(reward.mean()),
    )


def wilson(successes: Any, trials: Any, z: float = 1.959963984540054) -> tuple[float, float]:
    """Wilson's score interval of a proportion, by default at 95 % (E. B. Wilson 1927)."""
    p = successes / trials
    scale = 1 + z**2 / trials
    centre = (p + z**2 / (2 * trials)) / scale
    half = z * np.sqrt(p * (1 - p) / trials + z**2 / (4 * trials**2)) / scale
    return float(max(centre - half, 0.0)), float(min(centre + half, 1.0))
