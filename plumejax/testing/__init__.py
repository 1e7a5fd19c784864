"""testing: the conformance suite, what every plumejax task holds to, for users' own tasks too.

    from plumejax.testing import check_task

    def test_my_task():
        check_task(*plumejax.make("MyTask-v0"))

`check_task` calls the smaller checks; each can be called alone, and each raises `AssertionError`
that says what differs. They know nothing of odour: any `Environment` will do.
"""

from typing import Any

import chex
import jax

from plumejax.base.environment import Environment
from plumejax.testing.adapter import check_adapter, is_search
from plumejax.testing.episodes import Episode, Outcome, episode
from plumejax.testing.forms import RTOL
from plumejax.testing.gradients import check_gradients
from plumejax.testing.lives import check_ending, check_lifecycle
from plumejax.testing.promises import (
    check_calls,
    check_copies,
    check_finite,
    check_key_reuse,
    check_seeds,
    check_shapes,
    check_spaces,
    check_static,
)
from plumejax.testing.saving import check_saved
from plumejax.testing.steps import Count, check_steps
from plumejax.testing.transformations import (
    LANES,
    check_batch,
    check_eager,
    check_scan,
    check_traces,
    check_vmap,
)

__all__ = [
    "LANES",
    "RTOL",
    "Count",
    "Episode",
    "Outcome",
    "check_adapter",
    "check_batch",
    "check_calls",
    "check_copies",
    "check_eager",
    "check_ending",
    "check_finite",
    "check_gradients",
    "check_key_reuse",
    "check_lifecycle",
    "check_saved",
    "check_scan",
    "check_seeds",
    "check_shapes",
    "check_spaces",
    "check_static",
    "check_steps",
    "check_task",
    "check_traces",
    "check_vmap",
    "episode",
]


def check_task(
    env: Environment,
    params: Any,
    *,
    key: chex.PRNGKey | None = None,
    steps: int = 8,
    random_steps: int = 1_000,
    random: bool = True,
    rtol: float = RTOL,
) -> None:
    """Raise `AssertionError` unless the task keeps every promise that a plumejax task makes.

    Args:
      env: the environment.
      params: its numbers.
      key: typed key for resets, steps and random actions; by default `jax.random.key(0)`.
      steps: steps of each random episode, > 1.
      random_steps: of `check_steps`, where two starts serve all episodes; 0 leaves it out.
      random: False for a task in which nothing is drawn, where all seeds give the same episode.
      rtol: relative (and, near 0, absolute) error allowed to floats between two ways to compute
        the same thing.
    """
    key = jax.random.key(0) if key is None else key
    check_static(env, params)
    check_calls(env, params, key)
    # Most checks look at one episode, and a start may cost seconds.
    run = episode(env, params, key, steps)
    check_shapes(env, params, key, steps, run=run)
    check_spaces(env, params, key, steps, run=run)
    check_finite(env, params, key, steps, run=run)
    check_seeds(env, params, key, steps, random=random, run=run)
    check_lifecycle(env, params, key, run=run)
    check_ending(env, params, key, rtol=rtol)
    check_eager(env, params, key, rtol=rtol, run=run)
    check_vmap(env, params, key, rtol=rtol, run=run)
    check_scan(env, params, key, steps, rtol=rtol, run=run)
    check_traces(env, params, key, run=run)
    check_batch(env, params, key, rtol=rtol)
    check_copies(env, params, key, run=run)
    check_key_reuse(env, params, key, run=run)
    check_gradients(env, params, key, run=run)
    check_saved(env, params, key, run=run)
    check_steps(env, params, key, random_steps, starts=LANES)
    if is_search(env):
        check_adapter(env, params)
