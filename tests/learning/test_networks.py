"""tests/learning/test_networks: unrolling a sequence is stepping through it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plumejax.learning.networks import (
    FeedForward,
    Recurrent,
    forward,
    initial_parameters,
    unroll,
)

T, N, F = 5, 3, 4


@pytest.mark.parametrize(
    "network", [FeedForward(2, True, (8,)), Recurrent(2, False, (8,), size=6)], ids=["ff", "gru"]
)
def test_unroll_is_stepping_with_blank_states_where_episodes_start(network):
    parameters = initial_parameters(network, jax.random.key(0), F)
    xs = jax.random.normal(jax.random.key(1), (T, N, F), jnp.float32)
    starts = jnp.zeros((T, N), bool).at[2, 1].set(True).at[4, 0].set(True)
    blank = jax.tree.map(lambda b: jnp.broadcast_to(b, (N, *b.shape)), network.blank())
    begin = jax.tree.map(lambda b: b + 0.3, blank)
    distribution, value = unroll(network, parameters, begin, xs, starts)
    state = begin
    for t in range(T):
        state = jax.tree.map(
            lambda s, t=t: jnp.where(starts[t][:, None], jnp.zeros_like(s), s), state
        )
        one, v, state = forward(network, parameters, state, xs[t])
        np.testing.assert_allclose(value[t], v, atol=1e-6)
        np.testing.assert_allclose(
            jax.tree.leaves(distribution)[0][t], jax.tree.leaves(one)[0], atol=1e-6
        )


def test_a_continuous_actor_means_what_is_allowed_and_spreads_as_the_input_says():
    network = FeedForward(2, False, (8,))
    drawn = initial_parameters(network, jax.random.key(0), F)
    # As after a long training, which drives what is clipped far beyond the bounds.
    parameters = jax.tree.map(lambda x: 300 * x, drawn)
    xs = jax.random.normal(jax.random.key(1), (N, F), jnp.float32)
    distribution, _, _ = forward(network, parameters, (), xs)
    assert np.abs(distribution.mean).max() > 0.9
    assert np.abs(distribution.mean).max() <= 1.0
    assert np.ptp(distribution.log_std, axis=0).min() > 0.0
    distribution, _, _ = forward(network, drawn, (), xs)
    np.testing.assert_allclose(distribution.log_std, -0.5, atol=0.1)
