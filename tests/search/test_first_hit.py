"""tests/search/test_first_hit: the first count and the source are drawn as published."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plumejax
from plumejax.base.errors import ValidationError
from plumejax.plumes.encounters import (
    first_hit_probabilities,
    isotropic,
    likelihoods,
    posterior,
    uniform_prior,
)
from plumejax.search.first_hit import FirstHit

MANY = 40_000
PLUME, NUMBERS = isotropic(19, 1.0, 1.0)
START = FirstHit(PLUME, 3)
# Loisy and Eloy 2022 by the design notes: L = 1, I = 1, 19 x 19, H = 3.
COUNTS = np.asarray([0.849187, 0.150813])


def numbers(**changes):
    _, params = plumejax.make("PlumeSearchLocal-v0", grid_size=(19, 19))
    own = START.default_params().replace(counts=COUNTS.astype(np.float32))
    return params.replace(plume=NUMBERS, start=own.replace(**changes))


@pytest.fixture(scope="module")
def drawn():
    params = numbers()
    state = PLUME.start(jax.random.key(0), NUMBERS)

    def place(key):
        source, agent, count = START.place(key, PLUME, state, None, params)
        return source, agent.position, count

    return jax.jit(jax.vmap(place))(jax.random.split(jax.random.key(1), MANY))


def test_counts_have_the_published_law(drawn):
    shares = np.bincount(np.asarray(drawn[2]), minlength=3)[1:] / MANY
    error = np.sqrt(COUNTS * (1 - COUNTS) / MANY)
    assert np.all(np.abs(shares - COUNTS) < 3 * error)
    law = first_hit_probabilities(np.float32(1), np.float32(1), 2, 3)
    np.testing.assert_allclose(law, COUNTS, atol=2e-6)


def test_the_source_is_of_the_posterior_of_its_count(drawn):
    source, place, count = (np.asarray(x) for x in drawn)
    assert np.all(place == 9)
    each = np.asarray(likelihoods(PLUME, NUMBERS, jnp.full(2, 9.0), 3))
    prior = np.asarray(uniform_prior((19, 19), jnp.full(2, 9.0)))
    for first in (1, 2):
        belief = np.asarray(posterior(prior, each[first]), float)
        cells = source[count == first].astype(int)
        found = np.zeros((19, 19))
        np.add.at(found, tuple(cells.T), 1.0)
        assert found[9, 9] == 0
        # Chi-squared over cells that expect five or more, within four standard deviations.
        expected = belief * len(cells)
        often = expected >= 5
        chi = np.sum((found[often] - expected[often]) ** 2 / expected[often])
        free = often.sum()
        assert abs(chi - free) < 4 * np.sqrt(2 * free)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"position": np.asarray([3.0, 19.0], np.float32)}, "start.position"),
        ({"position": np.asarray([3.5, 1.0], np.float32)}, "start.position"),
        ({"counts": np.asarray([0.5, 0.4], np.float32)}, "start.counts"),
        ({"counts": np.asarray([1.5, -0.5], np.float32)}, "start.counts"),
    ],
)
def test_bad_numbers_are_refused(change, field):
    with pytest.raises(ValidationError, match=field):
        START.validate(numbers(**change))
