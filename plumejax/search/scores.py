"""search/scores: what a random and a perfect agent reach in each named search: its scale.

Measured by `python -m benchmarks.scores`, which writes `scores.json` beside this file.
"""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from plumejax.base.errors import ValidationError, require
from plumejax.base.registry import find

FILE = Path(__file__).with_name("scores.json")


@dataclass(frozen=True)
class Score:
    """What an agent came to.

    Attributes:
      mean_return: mean return of an episode.
      standard_error: of that mean.
      success: the share of episodes in which it found the source.
      success_low, success_high: its Wilson interval at 95 %.
      median_steps: median length of all episodes.
    """

    mean_return: float
    standard_error: float
    success: float
    success_low: float
    success_high: float
    median_steps: float


@dataclass(frozen=True)
class Scores:
    """What two agents came to in the same episodes of a task, which begin alike.

    Attributes:
      version: behaviour version of the task.
      episodes: how many each played.
      random: of `policies.reactive.Random`.
      perfect: of `policies.greedy.greedy`, which sees everything but the odour.
    """

    version: int
    episodes: int
    random: Score
    perfect: Score


def scores(task_id: str) -> Scores | None:
    """The `Scores` of a task, those of its base if it is a twin, which is the same but for what is
    observed; None if this behaviour version of it has not been measured.

    Raises `ValidationError` for an unknown id.
    """
    task = find(task_id)
    if task.twin_of:
        task = find(task.twin_of)
    row = _measured().get(task.id)
    if row is None or row["version"] != task.version:
        return None
    agents = {name: Score(**row[name]) for name in ("random", "perfect")}
    return Scores(row["version"], row["episodes"], **agents)


def normalised_return(task_id: str, mean_return: float) -> float:
    """`mean_return` on the scale of the task: 0 is random, 1 is perfect.

    It may be outside: worse than random, or better than greedy.

    Raises `ValidationError` for an unknown id, and for a task without a scale.
    """
    found = scores(task_id)
    if found is None:
        raise ValidationError(f"{task_id} has no measured scores; see `plumejax list`")
    number = isinstance(mean_return, int | float | np.generic) and np.isfinite(mean_return)
    require(number, "mean_return", mean_return, "one finite number")
    low, high = found.random.mean_return, found.perfect.mean_return
    require(low < high, f"{task_id}: perfect return", high, f"> that of a random agent, {low:g}")
    return (mean_return - low) / (high - low)


@cache
def _measured() -> dict[str, Any]:
    return json.loads(FILE.read_text()) if FILE.exists() else {}
