"""tests/search/test_clock_states: the time since the last whiff as few states."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plumejax.base.errors import ValidationError
from plumejax.search.clock_states import ClockStates
from plumejax.search.sensors import LocalConcentration
from plumejax.search.whiffs import TimeSinceWhiff

LOCAL = LocalConcentration()


def test_states_count_the_ticks_since_the_last_whiff_and_the_void_is_0(sensing, smell):
    clock = TimeSinceWhiff(LOCAL)
    sensor = ClockStates(clock, num_states=4)
    # 0.1 is no sum of powers of two: three steps of it are not quite 0.3.
    times = smell(clock, sensing(clock, dt=0.1, refractory=0.0), [0, 1, 1, 0, 0, 0, 0, 1, 0])
    params = sensing(sensor, dt=0.1)
    slower = params.replace(sensor=params.sensor.replace(tick=np.float32(0.2)))
    for numbers, expected in (
        (params, [0, 1, 1, 2, 3, 0, 0, 1, 2]),
        (slower, [0, 1, 1, 1, 2, 2, 3, 1, 1]),
    ):
        states, _ = jax.vmap(lambda t, p=numbers: sensor.respond(None, t, (), p))(times)
        assert states.dtype == jnp.int32
        assert states.tolist() == expected
        assert np.all(jax.vmap(sensor.space(numbers).contains)(states))


def test_what_does_not_fit_is_refused(sensing, two_noses):
    with pytest.raises(ValidationError, match="one reading"):
        sensing(ClockStates(TimeSinceWhiff(two_noses)))
    with pytest.raises(ValidationError, match="TimeSinceWhiff"):
        sensing(ClockStates(LOCAL))
    with pytest.raises(ValidationError, match="num_states"):
        sensing(ClockStates(TimeSinceWhiff(LOCAL), num_states=1))
    with pytest.raises(ValidationError, match=r"sensor\.tick"):
        sensing(ClockStates(TimeSinceWhiff(LOCAL)), tick=0.0)
    with pytest.raises(ValidationError, match=r"sensor\.of\.longest"):
        sensing(ClockStates(TimeSinceWhiff(LOCAL), num_states=200))
