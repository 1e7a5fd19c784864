"""testing/lives: an episode's beginning and end, and the steps that must change nothing."""

from typing import Any

import chex
import jax.numpy as jnp
import numpy as np

from plumejax.base import lifecycle, spaces
from plumejax.base.environment import Environment
from plumejax.base.lifecycle import Lifecycle
from plumejax.testing.episodes import Episode, Outcome, episode
from plumejax.testing.forms import RTOL, close, equal, require_that


def check_lifecycle(
    env: Environment, params: Any, key: chex.PRNGKey, *, run: Episode | None = None
) -> None:
    """CREATED and CLOSED states are inert, a bad action changes nothing, and `check` says why."""
    state = env.reset(key, params)[1] if run is None else run.state
    space = env.action_space(params)
    action = space.sample(key)
    _check_is(env, state, action, params, 0, "a READY state and an action of the space")
    created, closed = lifecycle.created(state), lifecycle.closed(state)
    _check_is(env, created, action, params, 1, "a CREATED state")
    _check_is(env, closed, action, params, 3, "a CLOSED state")
    _inert(env, created, action, key, params, "a step before the first reset")
    _inert(env, closed, action, key, params, "a step after close")
    bad = _bad_action(space)
    if bad is not None:
        _check_is(env, state, bad, params, 4, f"the action {bad!r}, not in {space},")
        _inert(env, state, bad, key, params, f"a step with the action {bad!r}, not in {space},")


def check_ending(
    env: Environment, params: Any, key: chex.PRNGKey, *, rtol: float = RTOL, max_steps: int = 3
) -> None:
    """Steps are counted, `truncated` is `step_count >= max_steps`, and the end is the end.

    After it the state, the last observation and the flags stay, with reward 0.
    """
    params = params.replace(max_steps=np.int32(max_steps))
    run = episode(env, params, key, max_steps)
    state, total = run.state, jnp.zeros_like(run.state.total_reward)
    require_that(int(state.lifecycle) == Lifecycle.READY, "a reset does not leave the state READY")
    require_that(int(state.step_count) == 0, "a reset does not set step_count to 0")
    require_that(not np.any(state.total_reward), "a reset does not set total_reward to 0")
    for t, step in enumerate(run.steps):
        state, total, count = step.state, total + step.reward, t + 1
        require_that(int(state.step_count) == count, f"after {count} steps: {state.step_count=}")
        late = bool(step.truncated) == (count >= max_steps)
        require_that(late, f"{max_steps=}, after {count} steps: truncated is {step.truncated}")
        code = lifecycle.after_step(step.terminated, step.truncated)
        fits = state.lifecycle == code
        require_that(fits, f"{state.lifecycle=} does not fit the flags of {step}")
        close(state.total_reward, total, "total_reward and the sum of rewards", rtol)
        if step.terminated | step.truncated:
            break
    _check_is(env, state, run.actions[0], params, 2, "an ended episode")
    for k, action in zip(run.keys, run.actions, strict=True):
        _inert(env, state, action, k, params, "a step after the end")
        after = Outcome(*env.step(k, state, action, params))
        equal(after[3:], step[3:], "flags and info after the end, and of the last step")


def _check_is(env: Environment, state: Any, action: Any, params: Any, code: int, what: str) -> None:
    got = int(env.check(state, action, params))
    require_that(got == code, f"check gives {got}, not {code}, for {what}")


def _inert(
    env: Environment, state: Any, action: Any, key: chex.PRNGKey, params: Any, what: str
) -> None:
    step = Outcome(*env.step(key, state, action, params))
    equal(step.state, state, f"the state after {what} and before it")
    equal(step.observation, state.observation, f"the observation after {what} and before it")
    require_that(not np.any(step.reward), f"{what} pays {step.reward}")
    limit = env.episode_params(state, params).max_steps
    flags = lifecycle.flags(state.lifecycle, state.step_count, limit)
    equal((step.terminated, step.truncated), flags, f"the flags after {what} and before it")


def _bad_action(space: Any) -> Any:
    """One that the space does not hold but a step can be traced with; None if there is none."""
    if isinstance(space, spaces.Discrete):
        return jnp.int32(space.n)
    if isinstance(space, spaces.MultiDiscrete):
        return jnp.asarray(space.nvec, jnp.int32)
    if isinstance(space, spaces.Box) and jnp.issubdtype(space.dtype, jnp.floating):
        return jnp.full(space.shape, jnp.nan, space.dtype)
    return None
