"""tests/learning/test_seeds: several trainings at once are each as alone."""

from functools import partial

import jax
import numpy as np

from plumejax.learning import seeds
from plumejax.learning.ppo import Hyperparameters, Shapes, continue_training, ppo

SHAPES = Shapes(8, 4, 2, 1, memory="rnn", hidden=(8,), units=8)


def test_each_seed_learns_as_it_would_alone(local):
    _, params = local
    algorithm = ppo(*local, SHAPES)
    hyper = Hyperparameters(updates=4.0)
    run = partial(continue_training, algorithm, updates=2)
    begin = jax.jit(seeds.side_by_side(algorithm.init, 2))(seeds.keys(5, 2), params)
    both, metrics = jax.jit(seeds.side_by_side(run, 2))(begin, params, hyper)
    assert metrics.entropy.shape == (2, 2)
    alone = jax.jit(algorithm.init)(jax.random.key(6), params)
    alone, _ = jax.jit(run)(alone, params, hyper)
    second = seeds.one_of(both, 1).parameters
    for a, b in zip(jax.tree.leaves(second), jax.tree.leaves(alone.parameters), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)
    first = jax.tree.leaves(seeds.one_of(both, 0).parameters)
    assert any(np.any(a != b) for a, b in zip(first, jax.tree.leaves(second), strict=True))
