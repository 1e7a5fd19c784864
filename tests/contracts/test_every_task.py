"""tests/contracts/test_every_task: every named task passes the suite and 10^4 random steps."""

from dataclasses import replace

import jax
import pytest

import plumejax
from plumejax import testing

TASKS = plumejax.registered_tasks()
KEY = jax.random.key(5)

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def make(recorded_choices):
    """`make(id)`; what needs data gets a made-up recording.

    A task whose environment is another than the last one's finds JAX's caches empty: all that is
    compiled for a hundred tasks together takes 15 GB.
    """
    choices, near = recorded_choices
    last = [None]

    def make(task_id):
        static, numbers = (choices, near) if TASKS[task_id].needs else ({}, {})
        env, params = plumejax.make(task_id, overrides=numbers, **static)
        if env != last[0]:
            jax.clear_caches()
        last[0] = env
        return env, params

    return make


def shortened(env):
    """`(env, starts)`: where a plume blows before an episode starts, for a tenth of the time, and a
    few starts to begin from. The program is the same: fewer turns of one loop."""
    turns = getattr(env.plume, "warmup", 0)
    if not turns:
        return env, None
    return replace(env, plume=replace(env.plume, warmup=-(-turns // 10))), testing.LANES


@pytest.mark.parametrize("task_id", [id for id, task in TASKS.items() if not task.twin_of])
def test_it_keeps_every_promise(make, task_id):
    env, params = make(task_id)
    env, starts = shortened(env)
    # Rounding grows in the thousands of steps that a plume has blown, most in a wind that wanders.
    rtol = 1e-3 if starts else testing.RTOL
    testing.check_task(env, params, key=KEY, rtol=rtol, random_steps=0)
    assert testing.check_steps(env, params, KEY, 10_000, starts=starts).steps >= 10_000


@pytest.mark.parametrize("task_id", [id for id, task in TASKS.items() if task.twin_of])
def test_a_twin_keeps_the_promises_that_its_sensor_could_break(make, task_id):
    env, params = make(task_id)
    env, starts = shortened(env)
    testing.check_static(env, params)
    run = testing.episode(env, params, KEY, 8)
    for check in (testing.check_shapes, testing.check_spaces, testing.check_finite):
        check(env, params, KEY, run=run)
    testing.check_lifecycle(env, params, KEY, run=run)
    testing.check_traces(env, params, KEY, run=run)
    testing.check_key_reuse(env, params, KEY, run=run)
    assert testing.check_steps(env, params, KEY, 10_000, starts=starts).steps >= 10_000
