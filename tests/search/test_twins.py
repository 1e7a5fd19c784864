"""tests/search/test_twins: a twin is its task, told the way to the source."""

import jax
import numpy as np
import pytest

import plumejax
from plumejax.base.errors import ValidationError
from plumejax.search.motion import Oriented

KEY = jax.random.key(3)
SMALL = {"grid_size": (16, 12), "overrides": {"plume.sigma": 3.0, "ending.radius": 2.0}}


def test_every_task_has_a_twin_and_no_twin_has_one():
    tasks = plumejax.registered_tasks()
    twins = [task for task in tasks.values() if task.twin_of]
    bases = {name for name, task in tasks.items() if not task.twin_of and task.id.startswith(FIRST)}
    assert bases <= {task.twin_of for task in twins}
    assert all(task.id == task.twin_of.replace("-v0", "-FullyObserved-v0") for task in twins)


FIRST = ("PlumeSearch", "Olfactory", "PlumeTracking", "Recorded")
"""Other tests register tasks of their own."""


def test_a_twin_observes_the_way_and_is_else_its_task():
    env, params = plumejax.make("PlumeSearchLocal-v0", **SMALL)
    twin, told = plumejax.make("PlumeSearchLocal-FullyObserved-v0", **SMALL)
    _, state = env.reset(KEY, params)
    observation, same = twin.reset(KEY, told)
    source = np.asarray(env.plume.sources(state.plume, params.plume))[0]
    np.testing.assert_array_equal(observation, source - np.asarray(state.agent.position))
    np.testing.assert_array_equal(same.agent.position, state.agent.position)
    _, after, reward, *_ = env.step(KEY, state, np.int32(1), params)
    _, also, paid, *_ = twin.step(KEY, same, np.int32(1), told)
    np.testing.assert_array_equal(also.agent.position, after.agent.position)
    assert paid == reward


def test_a_motion_that_turns_sees_the_way_from_its_heading():
    twin, told = plumejax.make("PlumeSearchLocal-FullyObserved-v0", motion=Oriented(), **SMALL)
    (ahead, left), state = twin.reset(KEY, told)
    turned, *_ = twin.step(KEY, state, np.int32(1), told)  # left, so what was left is ahead
    np.testing.assert_allclose(turned, [left, -ahead], atol=1e-5)


def test_a_motion_that_drifts_feels_the_wind_too():
    twin, told = plumejax.make("PlumeTracking-Code-Constant-FullyObserved-v0", warmup=1)
    assert twin.observation_space(told).shape == (4,)


def test_a_twin_takes_the_choices_of_its_task_but_no_sensor():
    env, _ = plumejax.make("PlumeSearchLocal-v0")
    with pytest.raises(ValidationError, match="sensor"):
        plumejax.make("PlumeSearchLocal-FullyObserved-v0", sensor=env.sensor)
