"""tests/search/test_listed_starts: starts from a list."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plumejax
from plumejax.base.errors import ValidationError
from plumejax.plumes.bank import make_bank
from plumejax.plumes.filaments import TrackingPlume
from plumejax.search.listed_starts import Listed


@pytest.fixture(scope="module")
def listed():
    plume = TrackingPlume(capacity=64)
    bank, frames = make_bank(
        plume, plume.default_params(), jax.random.key(0), num_plumes=1, num_frames=8
    )
    start = Listed(3)
    env, params = plumejax.make("PlumeTracking-Code-Constant-v0", plume=bank, start=start)
    starts = start.default_params().replace(
        frames=np.asarray([2, 5, 7], np.int32),
        positions=np.float32([[1.0, 0.0], [2.0, 0.5], [3.0, -0.5]]),
        headings=np.float32([0.0, 90.0, 315.0]),
    )
    return env, params.replace(plume=frames, start=starts)


def test_each_start_is_as_it_is_listed(listed):
    env, params = listed

    @jax.jit
    @jax.vmap
    def begin(which):
        own = params.replace(start=params.start.replace(which=which))
        _, state = env.reset(jax.random.key(0), own)
        return state.plume.playing.phase, state.agent

    phases, agents = begin(jnp.arange(3, dtype=jnp.int32))
    np.testing.assert_array_equal(phases, params.start.frames)
    np.testing.assert_array_equal(agents.position, params.start.positions)
    np.testing.assert_array_equal(agents.heading, params.start.headings)


def test_a_start_that_is_not_listed_is_refused(listed):
    env, params = listed
    env.validate(params)
    with pytest.raises(ValidationError, match=r"start.which = 3 .* in 0\.\.2"):
        env.validate(params.replace(start=params.start.replace(which=np.int32(3))))
    wrong = params.start.replace(headings=np.float32([0.0, 0.0, 360.0]))
    with pytest.raises(ValidationError, match=r"start.headings .* \[0, 360\)"):
        env.validate(params.replace(start=wrong))
