"""tests/learning/test_curricula: numbers that change as a training goes on."""

import jax.numpy as jnp
import numpy as np
import pytest

from plumejax.base.errors import ValidationError
from plumejax.learning.curricula import curriculum, params_at


def test_numbers_lie_on_the_lines_between_the_stages(local):
    _, params = local
    schedule = curriculum(
        params, [0.2, 0.6], {"ending.radius": [4.0, 2.0], "plume.source": [[1, 2], [3, 2]]}
    )
    for share, radius, x in ((0.0, 4, 1), (0.2, 4, 1), (0.4, 3, 2), (0.6, 2, 3), (1.0, 2, 3)):
        now = params_at(schedule, jnp.float32(share))
        np.testing.assert_allclose(now.ending.radius, radius, rtol=1e-6)
        np.testing.assert_allclose(now.plume.source, [x, 2], rtol=1e-6)
        assert now.plume.sigma == params.plume.sigma


def test_plain_params_stay_as_they_are(local):
    assert params_at(local[1], jnp.float32(0.5)) is local[1]


@pytest.mark.parametrize(
    ("at", "stages", "message"),
    [
        ([0.5, 0.2], {"ending.radius": [1, 2]}, "at = .* rising from 0 to 1"),
        ([0.0, 1.5], {"ending.radius": [1, 2]}, "at = .* rising from 0 to 1"),
        ([0.0, 1.0], {"ending.radius": [1, 2, 3]}, r"stages ending.radius: shape = \(3,\)"),
        ([0.0, 1.0], {"ending.radus": [1, 2]}, "Did you mean 'ending.radius'"),
    ],
)
def test_a_schedule_that_does_not_fit_is_refused(local, at, stages, message):
    with pytest.raises(ValidationError, match=message):
        curriculum(local[1], at, stages)
