"""tests/learning/test_distributions: the two distributions against their formulas in float64."""

import jax
import jax.numpy as jnp
import numpy as np

from plumejax.learning.distributions import Categorical, Gaussian

LOGITS = np.asarray([[0.3, -1.2, 2.0], [5.0, 5.0, -5.0]], np.float32)
MEAN = np.asarray([[0.5, -1.0], [2.0, 0.0]], np.float32)
LOG_STD = np.asarray([[0.1, -0.7], [0.0, 0.4]], np.float32)


def test_categorical_matches_formula():
    p = np.exp(LOGITS.astype(float))
    p /= p.sum(axis=1, keepdims=True)
    d = Categorical(jnp.asarray(LOGITS))
    action = jnp.asarray([2, 0], jnp.int32)
    np.testing.assert_allclose(d.log_prob(action), np.log(p[[0, 1], [2, 0]]), rtol=1e-5)
    np.testing.assert_allclose(d.entropy(), -(p * np.log(p)).sum(1), rtol=1e-5)
    assert d.mode().tolist() == [2, 0]


def test_categorical_samples_its_probabilities():
    n = 4000
    d = Categorical(jnp.broadcast_to(jnp.asarray(LOGITS[0]), (n, 3)))
    share = np.bincount(d.sample(jax.random.key(0)), minlength=3) / n
    p = np.exp(LOGITS[0].astype(float))
    p /= p.sum()
    # Four standard errors of a share.
    assert np.all(np.abs(share - p) < 4 * np.sqrt(p * (1 - p) / n))


def test_gaussian_matches_formula():
    d = Gaussian(jnp.asarray(MEAN), jnp.asarray(LOG_STD))
    x = np.asarray([[0.0, 0.0], [1.0, 3.0]], np.float32)
    std = np.exp(LOG_STD.astype(float))
    density = np.exp(-((x - MEAN) ** 2) / (2 * std**2)) / np.sqrt(2 * np.pi * std**2)
    np.testing.assert_allclose(d.log_prob(jnp.asarray(x)), np.log(density).sum(1), rtol=1e-5)
    entropy = (0.5 * np.log(2 * np.pi * np.e * std**2)).sum(1)
    np.testing.assert_allclose(d.entropy(), entropy, rtol=1e-5)
    np.testing.assert_array_equal(d.mode(), MEAN)


def test_gaussian_samples_its_moments():
    n = 4000
    shape = (n, 2)
    d = Gaussian(jnp.broadcast_to(MEAN[0], shape), jnp.broadcast_to(LOG_STD[0], shape))
    x = np.asarray(d.sample(jax.random.key(1)))
    std = np.exp(LOG_STD[0])
    assert np.all(np.abs(x.mean(0) - MEAN[0]) < 4 * std / np.sqrt(n))
    assert np.all(np.abs(x.std(0) / std - 1) < 4 / np.sqrt(2 * n))
