"""tests/learning/test_encoding: what a network is shown."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plumejax.base.errors import ValidationError
from plumejax.base.spaces import Box, Dict, Discrete
from plumejax.learning.encoding import Encoder, Moments, encoder_for

LOCAL = Encoder(readings=(True,), sizes=(1,), actions=4, bounds=None, stack=3, floor=1e-15)
PLAIN = Moments(jnp.float32(1.0), jnp.zeros(2, jnp.float32), jnp.ones(2, jnp.float32))


def test_a_reading_enters_as_logarithm_and_change():
    memory = LOCAL.blank()
    first, memory, _ = LOCAL.encode(PLAIN, memory, jnp.asarray([np.exp(-2.0)], jnp.float32))
    memory = LOCAL.remember(memory, jnp.int32(2))
    second, memory, _ = LOCAL.encode(PLAIN, memory, jnp.asarray([np.exp(-1.5)], jnp.float32))
    first, second = first.reshape(3, 6), second.reshape(3, 6)
    np.testing.assert_allclose(first[2], [-2.0, 0, 0, 0, 0, 0], atol=1e-5)
    np.testing.assert_allclose(second[2], [-1.5, 0.5, 0, 0, 1, 0], atol=1e-5)
    np.testing.assert_array_equal(second[1], first[2])
    np.testing.assert_array_equal(second[0], np.zeros(6))


def test_readings_below_the_floor_count_as_it():
    features, _ = LOCAL.features(LOCAL.blank(), jnp.zeros(1, jnp.float32))
    np.testing.assert_allclose(features, [np.log(1e-15), 0.0], rtol=1e-6)


def test_moments_merge_to_those_of_all_numbers():
    x = np.random.default_rng(0).normal(3.0, 2.0, (500, 4)).astype(np.float32)
    some, rest = x[:100], x[100:]
    moments = Moments(jnp.float32(100), jnp.asarray(some.mean(0)), jnp.asarray(some.var(0)))
    difference = rest - some.mean(0)
    moments = moments.merge(
        jnp.float32(400), jnp.asarray(difference.mean(0)), jnp.asarray((difference**2).mean(0))
    )
    assert float(moments.count) == 500
    np.testing.assert_allclose(moments.mean, x.mean(0), rtol=1e-4)
    np.testing.assert_allclose(moments.variance, x.var(0), rtol=1e-4)


def test_first_moments_are_those_of_the_starts():
    observations = jnp.exp(jnp.asarray([[-1.0], [-3.0]], jnp.float32))
    moments = LOCAL.first_moments(observations)
    np.testing.assert_allclose(moments.mean, [-2.0, 0.0], atol=1e-6)
    np.testing.assert_allclose(moments.variance, [1.0, 1.0], rtol=1e-5)


def test_the_leaves_of_a_dict_are_told_apart_by_their_spaces():
    space = Dict(
        {
            "position": Box(0, 15, (2,), np.int32),
            "field": Box(0.0, 1.0, (2, 3)),
            "wind": Box(-1.0, 1.0, (2,)),
        }
    )
    encoder = encoder_for(space, Discrete(4), 1)
    assert encoder.sizes == (6, 2, 2)  # field, position, wind: as jax orders a dict
    assert encoder.readings == (True, False, False)
    features, readings = encoder.features(encoder.blank(), space.sample(jax.random.key(0)))
    assert features.shape == (encoder.num_features,) == (16,)
    assert readings.shape == (6,)


def test_bounds_of_continuous_actions_are_minus_one_and_one_to_the_network():
    low, high = np.asarray([-1.0, -0.08, -np.inf]), np.asarray([0.5, 0.08, np.inf])
    encoder = encoder_for(Box(0.0, 1.0, (1,)), Box(low, high, (3,)), 1)
    assert not encoder.discrete
    actions = jnp.asarray([[-1.0, 1.0, 5.0], [0.0, 0.5, -5.0], [3.0, -7.0, 0.0]], jnp.float32)
    expected = [[-1.0, 0.08, 5.0], [-0.25, 0.04, -5.0], [0.5, -0.08, 0.0]]
    np.testing.assert_allclose(encoder.allowed(actions), expected, rtol=1e-6)
    np.testing.assert_allclose(encoder.allowed(actions[1]), expected[1], rtol=1e-6)


def test_an_action_space_that_cannot_be_learned_is_refused():
    with pytest.raises(ValidationError, match="Discrete, or a Box"):
        encoder_for(Box(0.0, 1.0, (1,)), Dict({"a": Discrete(2)}), 1)


def test_a_large_observation_is_shown_as_it_is_now():
    space = Dict({"field": Box(0.0, 1.0, (20, 20)), "wind": Box(-1.0, 1.0, (2,))})
    encoder = encoder_for(space, Discrete(4), 4)
    assert encoder.num_inputs == 402 + 4
    moments = encoder.first_moments(
        jax.tree.map(lambda x: x[None], space.sample(jax.random.key(0)))
    )
    inputs, memory, features = encoder.encode(
        moments, encoder.blank(), space.sample(jax.random.key(1))
    )
    assert (inputs.shape, features.shape, memory.reading.shape) == ((406,), (402,), (0,))
