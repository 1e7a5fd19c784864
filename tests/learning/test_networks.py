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
