"""tests/evaluation/test_precision: episodes are played until the error is as small as asked."""

import jax
import numpy as np
import pytest

from plumejax.base.errors import ValidationError
from plumejax.evaluation.episodes import stream
from plumejax.evaluation.precision import mean_length, play_to_precision
from plumejax.policies.reactive import Random


def test_it_stops_when_the_error_is_as_small_as_asked(local):
    env, params = local
    policy, key = Random(env.action_space(params)), jax.random.key(0)
    outcomes = play_to_precision(env, policy, key, params, 0.05, least=32, lanes=32)
    value, error = mean_length(outcomes)
    assert error <= 0.05 * value
    first = stream(env, policy, key, params, 32, lanes=32)
    np.testing.assert_array_equal(outcomes.steps[:32], first.steps)
    before = mean_length(first)
    assert before.error > 0.05 * before.value, "32 episodes were enough: the test shows nothing"


def test_it_stops_at_the_most_that_is_allowed(local):
    env, params = local
    policy = Random(env.action_space(params))
    outcomes = play_to_precision(env, policy, jax.random.key(0), params, 1e-6, least=32, most=64)
    assert len(outcomes.steps) == 64


@pytest.mark.parametrize(
    ("wrong", "named"),
    [({"relative_error": 0.0}, "relative_error"), ({"least": 1}, "least"), ({"most": 8}, "least")],
)
def test_bad_numbers_are_refused(local, wrong, named):
    env, params = local
    numbers = {"relative_error": 0.1, "least": 16, "most": 32, **wrong}
    with pytest.raises(ValidationError, match=named):
        play_to_precision(env, None, jax.random.key(0), params, **numbers)
