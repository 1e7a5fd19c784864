"""tests/contracts/test_strict_modes: one pass under each of JAX's strict modes, and with x64 on."""

import os
import subprocess
import sys
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plumejax
from plumejax import testing
from plumejax.base.batch import Batch
from plumejax.search.motion import RunAndTumble


@pytest.fixture(scope="module")
def tumbling():
    """`(env, params)` that draws in its resets and in its steps."""
    overrides = {"plume.sigma": 3.0, "ending.radius": 2.0, "max_steps": 2}
    return plumejax.make(
        "PlumeSearchLocal-v0", grid_size=(16, 12), motion=RunAndTumble(), overrides=overrides
    )


def one_pass(env, params):
    """Resets, steps and a reset within a step, of a batch."""
    batch = Batch(env, 2)
    keys = jax.random.split(jax.random.key(0), 4)
    observation, state = batch.reset(keys[0], params)
    for key in keys[1:]:
        observation, state, *_ = batch.step(key, state, jnp.zeros(2, jnp.int32), params)
    assert (state.step_count == 1).all()
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(observation))


def test_no_key_is_used_twice(tumbling):
    with jax.debug_key_reuse(True):
        one_pass(*tumbling)
        # The check is alive: the same key, used twice.
        with pytest.raises(jax.errors.KeyReuseError):
            jax.jit(lambda key: jax.random.uniform(key) + jax.random.normal(key)).trace(
                jax.random.key(0)
            )


def test_no_nan_is_made_on_the_way(full):
    with jax.debug_nans(True):
        env, params = full
        one_pass(env, params.replace(max_steps=np.int32(2)))
        with pytest.raises(FloatingPointError):
            jnp.zeros(()) / jnp.zeros(())


def test_no_tracer_leaks(local):
    env, params = local
    with jax.checking_leaks():
        one_pass(env, params.replace(max_steps=np.int32(2)))


REPRESENTATIVES = [
    "PlumeSearchLocal-v0",  # a grid
    "Olfactory-Isotropic-19x19-v0",  # encounters
    "PlumeTracking-Code-SwitchMany-v0",  # puffs
    "PlumeTracking-Farrell-Easy-v0",  # filaments
    "Recorded-v0",  # a recording, with walls
]


@pytest.mark.slow
@pytest.mark.parametrize("task_id", REPRESENTATIVES)
def test_a_named_task_passes_in_every_strict_mode(task_id, recorded_choices):
    if plumejax.registered_tasks()[task_id].needs:
        choices, near = recorded_choices
        env, params = plumejax.make(task_id, overrides=near, **choices)
    else:
        env, params = plumejax.make(task_id)
    if hasattr(env.plume, "warmup"):
        # Looking for NaN after each of a minute's steps would take an hour.
        env = replace(env, plume=replace(env.plume, warmup=20))
    # Rank and dtype promotion are strict in every test. `check_task` plays one episode in several
    # ways, so with one key several times: here each key is used once.
    with jax.debug_key_reuse(True), jax.debug_nans(True), jax.checking_leaks():
        reset_key, *keys = jax.random.split(jax.random.key(7), 7)
        _, state = jax.jit(env.reset)(reset_key, params)
        step = jax.jit(env.step)
        for action_key, key in zip(keys[:3], keys[3:], strict=True):
            action = env.action_space(params).sample(action_key)
            _, state, *_ = step(key, state, action, params)
    testing.check_key_reuse(env, params, jax.random.key(8))


@pytest.mark.slow
def test_the_suite_passes_with_x64_on():
    script = """
import jax, jax.numpy as jnp
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")
import plumejax
from plumejax import testing
assert jnp.zeros(()).dtype == jnp.float64
from plumejax.search.motion import RunAndTumble
env, params = plumejax.make(
    "PlumeSearch-v0",
    grid_size=(16, 12),
    motion=RunAndTumble(),
    overrides={"plume.sigma": 3.0, "ending.radius": 2.0},
)
testing.check_task(env, params, steps=3)
_, state = env.reset(jax.random.key(0), params)
wide = {x.dtype for x in jax.tree.leaves(state)} & {jnp.dtype("float64"), jnp.dtype("int64")}
assert not wide, wide
"""
    environ = {**os.environ, "JAX_ENABLE_X64": "1"}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, env=environ
    )
    assert done.returncode == 0, done.stderr[-3000:]
