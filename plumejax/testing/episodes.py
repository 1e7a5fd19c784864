"""testing/episodes: the random episodes that the checks look at."""

from typing import Any, NamedTuple

import chex
import jax

from plumejax.base.environment import Environment
from plumejax.testing.forms import stack


class Outcome(NamedTuple):
    """What a step returns."""

    observation: Any
    state: Any
    reward: chex.Array
    terminated: chex.Array
    truncated: chex.Array
    info: dict[str, Any]


class Episode(NamedTuple):
    """A reset and the steps after it; `steps[t]` is what `actions[t]` with `keys[t]` led to."""

    observation: Any
    state: Any
    actions: list[Any]
    keys: list[chex.PRNGKey]
    steps: list[Outcome]


def episode(env: Environment, params: Any, key: chex.PRNGKey, steps: int) -> Episode:
    """A reset and `steps` steps of random actions, in a Python loop."""
    reset_key, action_key, step_key = jax.random.split(key, 3)
    space = env.action_space(params)
    actions = [space.sample(k) for k in jax.random.split(action_key, steps)]
    keys = list(jax.random.split(step_key, steps))
    observation, state = env.reset(reset_key, params)
    outcomes, last = [], state
    for k, action in zip(keys, actions, strict=True):
        outcome = Outcome(*env.step(k, last, action, params))
        outcomes.append(outcome)
        last = outcome.state
    return Episode(observation, state, actions, keys, outcomes)


def before(run: Episode, count: int) -> Any:
    """The states before the first `count` steps, as lanes."""
    return stack([run.state, *(step.state for step in run.steps)][:count])
