"""testing/gradients: through which numbers a step has a gradient, and that it is finite."""

from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np

from plumejax.base import paths
from plumejax.base.environment import Environment
from plumejax.testing.episodes import Episode, Outcome, episode
from plumejax.testing.forms import is_float, require_that, stack

STEPS = 3
"""Enough for a number to reach the observation by way of the state."""


def check_gradients(
    env: Environment, params: Any, key: chex.PRNGKey, *, run: Episode | None = None
) -> dict[str, float]:
    """The norm of the gradient through each float of `params`, by dotted path, and the actions.

    The gradient is that of the sum of every float that `STEPS` steps of a random episode give:
    observations, rewards, and the last state. It has to be finite; it is 0 for a number that only
    a start reads, that the steps do not reach or that acts by a threshold. `action` is there if
    actions are continuous.
    """
    run = run or episode(env, params, key, STEPS)
    numbers = {path: x for path, x in paths.leaves(params).items() if is_float(np.asarray(x))}
    numbers = {path: jnp.asarray(x) for path, x in numbers.items()}
    actions = stack(run.actions[:STEPS])
    if not jax.tree.leaves(actions) or not all(map(is_float, jax.tree.leaves(actions))):
        found = _gradient(env, params, run, numbers, None)
    else:
        found = _gradient(env, params, run, {**numbers, "action": actions}, "action")
    norms = {path: float(np.linalg.norm(np.ravel(x))) for path, x in found.items()}
    bad = [path for path, norm in norms.items() if not np.isfinite(norm)]
    require_that(not bad, f"the gradient is not finite through {', '.join(bad)}")
    return norms


def _gradient(
    env: Environment, params: Any, run: Episode, numbers: dict[str, Any], action: str | None
) -> Any:
    @jax.jit
    @jax.grad
    def gradient(numbers: dict[str, Any]) -> jax.Array:
        own, given = params, stack(run.actions[:STEPS])
        for path, x in numbers.items():
            if path == action:
                given = x
            else:
                own = paths.replace(own, path, x)

        def one(state: Any, taken: Any) -> tuple[Any, jax.Array]:
            step = Outcome(*env.step(taken[0], state, taken[1], own))
            return step.state, _sum_of_floats((step.observation, step.reward))

        last, sums = jax.lax.scan(one, run.state, (jnp.stack(run.keys[:STEPS]), given))
        return jnp.sum(sums) + _sum_of_floats(last)

    return gradient(numbers)


def _sum_of_floats(tree: Any) -> jax.Array:
    total = jnp.zeros((), jnp.float32)
    for x in jax.tree.leaves(tree):
        if is_float(x):
            total += jnp.sum(x).astype(jnp.float32)
    return total
