"""testing/transformations: the same without `jit`, under `vmap` and `scan`, and in a `Batch`."""

import pickle
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np

from plumejax.base import lifecycle
from plumejax.base.batch import RESET, Batch
from plumejax.base.environment import Environment
from plumejax.testing.episodes import Episode, Outcome, before, episode
from plumejax.testing.forms import RTOL, close, require_that, stack

LANES = 2
"""Lanes of the checks that need some."""


def check_eager(
    env: Environment,
    params: Any,
    key: chex.PRNGKey,
    *,
    rtol: float = RTOL,
    run: Episode | None = None,
) -> None:
    """Op by op, below `jit`, a reset and a step give the same; loops are compiled all the same."""
    run = run or episode(env, params, key, 1)
    reset_key = jax.random.split(key, 3)[0]
    _, state = _below_jit(env, "reset")(reset_key, params)
    step = Outcome(*_below_jit(env, "step")(run.keys[0], run.state, run.actions[0], params))
    close(state, run.state, "a reset without jit, and with it", rtol)
    close(step, run.steps[0], "a step without jit, and with it", rtol)


def check_vmap(
    env: Environment,
    params: Any,
    key: chex.PRNGKey,
    *,
    rtol: float = RTOL,
    run: Episode | None = None,
) -> None:
    """Under `vmap` over keys, states and actions each lane steps as it does alone; `check_batch`
    looks at resets."""
    run = run or episode(env, params, key, LANES)
    step = jax.vmap(env.step, in_axes=(0, 0, 0, None))(
        jnp.stack(run.keys[:LANES]), before(run, LANES), stack(run.actions[:LANES]), params
    )
    close(Outcome(*step), stack(run.steps[:LANES]), "steps under vmap, and alone", rtol)


def check_scan(
    env: Environment,
    params: Any,
    key: chex.PRNGKey,
    steps: int = 8,
    *,
    rtol: float = RTOL,
    run: Episode | None = None,
) -> None:
    """An episode in one `lax.scan` is the episode of a Python loop."""
    run = run or episode(env, params, key, steps)

    def one(state: Any, given: Any) -> tuple[Any, Outcome]:
        outcome = Outcome(*env.step(*given[:1], state, *given[1:], params))
        return outcome.state, outcome

    given = (jnp.stack(run.keys), stack(run.actions))
    _, scanned = jax.lax.scan(one, run.state, given)
    close(scanned, stack(run.steps), "an episode under scan, and in a loop", rtol)


def check_traces(
    env: Environment, params: Any, key: chex.PRNGKey, *, run: Episode | None = None
) -> None:
    """One trace serves every key, action and value of every number, and every equal `env`."""
    run = run or episode(env, params, key, 2)
    env_twin = pickle.loads(pickle.dumps(env))
    more = jax.tree.map(lambda x: x + np.ones((), x.dtype), params.max_steps)
    params_twin = jax.tree.map(jnp.asarray, params.replace(max_steps=more))
    traced = {"reset": 0, "step": 0}

    def reset(env: Environment, key: chex.PRNGKey, params: Any) -> Any:
        traced["reset"] += 1
        return env.reset(key, params)

    def step(env: Environment, key: chex.PRNGKey, state: Any, action: Any, params: Any) -> Any:
        traced["step"] += 1
        return env.step(key, state, action, params)

    jit_reset, jit_step = jax.jit(reset, static_argnums=0), jax.jit(step, static_argnums=0)
    states = (run.state, run.steps[0].state, run.steps[1].state)
    for e, p, k in ((env, params, key), (env_twin, params_twin, run.keys[0])):
        jit_reset.trace(e, k, p)
        for state in (*states, lifecycle.created(run.state), lifecycle.closed(run.state)):
            jit_step.trace(e, k, state, e.action_space(p).sample(k), p)
    for name, count in traced.items():
        require_that(
            count == 1,
            f"{name} was traced {count} times over two keys, two values of max_steps and two equal"
            " environments: look for a dtype or a weak type that changes, or an env compared by id",
        )


def check_batch(env: Environment, params: Any, key: chex.PRNGKey, *, rtol: float = RTOL) -> None:
    """Lane i of a `Batch` is `env` with `fold_in(key, i)`, so the number of lanes changes nothing.

    A lane that ends gives its last observation, and starts afresh with a key of its own.
    """
    params = params.replace(max_steps=np.int32(LANES))
    batch = Batch(env, LANES)
    reset_key, action_key, step_key = jax.random.split(key, 3)
    space = env.action_space(params)
    actions = [space.sample(k) for k in jax.random.split(action_key, LANES)]
    _, state = batch.reset(reset_key, params)
    # The lanes stand at different steps of their episodes, so that the last one ends.
    states = state.replace(step_count=jnp.arange(LANES, dtype=jnp.int32))
    step = Outcome(*batch.step(step_key, states, stack(actions), params))
    for i, action in enumerate(actions):
        what = f"lane {i} of a batch, and the environment alone:"
        lane, last, got = jax.tree.map(lambda x, i=i: x[i], (state, states, step))
        _, alone = env.reset(jax.random.fold_in(reset_key, i), params)
        close(lane, alone, f"{what} reset", rtol)
        expected = Outcome(*env.step(jax.random.fold_in(step_key, i), last, action, params))
        info = {**expected.info, "final_observation": expected.observation}
        close(got[2:], (*expected[2:5], info), f"{what} what a step returns", rtol)
        after = expected.state
        if expected.terminated | expected.truncated:
            _, after = env.reset(jax.random.fold_in(step_key, i + RESET), params)
        close(got[:2], (after.observation, after), f"{what} where a step leads", rtol)


def _below_jit(env: Environment, name: str) -> Any:
    """The method `name` of `env` as Python runs it."""
    method = getattr(type(env), name)
    return getattr(method, "__wrapped__", method).__get__(env)
