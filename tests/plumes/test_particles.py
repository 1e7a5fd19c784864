"""tests/plumes/test_particles: the ring of puffs, Poisson counts, and thinning."""

from functools import partial
from math import exp, factorial

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings

from plumejax.plumes import noise, particles

DRAWS = 200_000


@pytest.fixture(scope="module")
def counts():
    """`counts(mean)` int32[DRAWS]."""
    keys = jax.random.split(jax.random.key(0), DRAWS)
    return jax.jit(lambda mean: jax.vmap(lambda key: particles.poisson_count(key, mean))(keys))


@pytest.mark.parametrize("mean", [0.0, 0.1667, 1.0, 8.0])
def test_counts_follow_the_law_of_poisson(counts, mean):
    got = np.asarray(counts(np.float32(mean)))
    assert got.dtype == np.int32
    assert abs(got.mean() - mean) <= 4 * np.sqrt(mean / DRAWS)
    assert abs(got.var() - mean) <= 4 * np.sqrt((2 * mean**2 + mean) / DRAWS)
    law = DRAWS * np.asarray([exp(-mean) * mean**k / factorial(k) for k in range(32)])
    seen = np.bincount(got, minlength=33)
    assert seen[32] == 0
    common = law > 20
    assert (np.abs(seen[:32] - law)[common] < 4.5 * np.sqrt(law[common])).all()


def test_the_largest_draw_is_a_tail_and_no_burst(monkeypatch):
    """Rounded sums of the law end a little below 1 for some means, and must not be passed."""
    almost = np.float32(1 - 2.0**-23)
    monkeypatch.setattr(jax.random, "uniform", lambda *args: almost)
    key = jax.random.key(0)
    means = np.linspace(0.01, 8, 2000, dtype=np.float32)
    most = np.asarray(jax.vmap(lambda mean: particles.poisson_count(key, mean))(means))
    assert (most < 32).all()
    assert (most[means < 1] <= 12).all()


def test_the_rate_has_a_finite_gradient_at_zero():
    def births(mean):
        count = particles.poisson_count(jax.random.key(0), mean)
        return count.astype(jnp.float32) * mean

    assert np.isfinite(jax.grad(births)(0.0))


class Ring:
    """The ring in plain Python: puff number k lies in slot k mod N or, where taken, nowhere."""

    def __init__(self, slots):
        self.slots = [None] * slots
        self.born = 0

    def release(self, count):
        for number in range(self.born, self.born + count):
            slot = number % len(self.slots)
            if self.slots[slot] is None:
                self.slots[slot] = number
        self.born += count


SLOTS = 5
SOURCES = jnp.asarray([[1.0, 2.0], [30.0, 40.0]], jnp.float32)
release = jax.jit(particles.release)


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 2**SLOTS - 1)), max_size=8))
def test_the_ring_is_that_of_its_twin(steps):
    """Any counts, also none and more than there are slots, and any deaths between."""
    pool, twin = particles.empty(SLOTS, 2), Ring(SLOTS)
    for index, (count, deaths) in enumerate(steps):
        before = list(twin.slots)
        twin.release(count)
        pool, new = release(jax.random.key(index), pool, jnp.int32(count), SOURCES)
        numbers = np.where(pool.alive, np.asarray(pool.number, np.int64), -1)
        assert numbers.tolist() == [-1 if k is None else k for k in twin.slots]
        assert np.asarray(new).tolist() == [a != b for a, b in zip(before, twin.slots, strict=True)]
        assert int(pool.born) == twin.born
        assert not np.asarray(pool.age)[np.asarray(new)].any()
        pool = pool.replace(age=pool.age + 1)
        killed = [bool(deaths >> slot & 1) for slot in range(SLOTS)]
        twin.slots = [None if dead else k for dead, k in zip(killed, twin.slots, strict=True)]
        pool = pool.replace(alive=pool.alive & ~jnp.asarray(killed))


def test_births_are_at_sources_chosen_evenly():
    pool, new = jax.jit(particles.release)(
        jax.random.key(0), particles.empty(4000, 2), jnp.int32(3000), SOURCES
    )
    assert int(new.sum()) == int(pool.alive.sum()) == 3000
    places = np.asarray(pool.position)[:, :3000].T
    first = (places == np.asarray(SOURCES[0])).all(axis=1)
    assert (first | (places == np.asarray(SOURCES[1])).all(axis=1)).all()
    assert abs(first.sum() - 1500) < 4 * np.sqrt(750)


def test_what_lives_is_not_touched_by_births():
    pool, _ = release(jax.random.key(0), particles.empty(SLOTS, 2), jnp.int32(3), SOURCES)
    pool = pool.replace(position=pool.position + 1, age=pool.age + 2)
    after, new = release(jax.random.key(0), pool, jnp.int32(9), SOURCES)
    assert np.asarray(new).tolist() == [False] * 3 + [True] * 2
    for name in ("position", "age", "alive", "number"):
        was, is_now = (np.asarray(getattr(p, name)) for p in (pool, after))
        np.testing.assert_array_equal(was[..., :3], is_now[..., :3])


MANY = 100_000


@pytest.fixture(scope="module")
def crowd():
    """Puffs of numbers 0.. of which all live."""
    pool = particles.empty(MANY, 2)
    return pool.replace(alive=jnp.ones(MANY, bool), number=jnp.arange(MANY, dtype=jnp.uint32))


thin = jax.jit(lambda pool, keep, salt: particles.thin(pool, keep, salt).alive)


@pytest.mark.parametrize("keep", [0.0, 0.1, 0.4, 1.0])
def test_thinning_keeps_the_fraction_without_pattern(crowd, keep):
    kept = np.asarray(thin(crowd, np.float32(keep), jnp.uint32(12)), float)
    error = 4 * np.sqrt(keep * (1 - keep) / MANY)
    assert abs(kept.mean() - keep) <= error + 1e-7
    for lag in (1, 2, 16, 256):
        both = np.mean(kept[lag:] * kept[:-lag])
        assert abs(both - keep**2) <= 2 * error + 1e-7
    other = np.asarray(thin(crowd, np.float32(keep), jnp.uint32(13)), float)
    assert abs(np.mean(kept * other) - keep**2) <= 2 * error + 1e-7


def test_thinnings_of_one_salt_nest_and_last(crowd):
    few, more = (np.asarray(thin(crowd, np.float32(k), jnp.uint32(5))) for k in (0.2, 0.6))
    assert (few <= more).all()
    later = crowd.replace(age=crowd.age + 9, position=crowd.position - 4)
    np.testing.assert_array_equal(thin(later, np.float32(0.2), jnp.uint32(5)), few)
    # A puff is kept by its number, wherever it lies.
    moved = crowd.replace(number=jnp.roll(crowd.number, 7))
    np.testing.assert_array_equal(thin(moved, np.float32(0.2), jnp.uint32(5)), np.roll(few, 7))
    dead = crowd.replace(alive=jnp.zeros(MANY, bool))
    assert not thin(dead, np.float32(1), jnp.uint32(5)).any()


def test_repeat_uses_a_key_a_time():
    draws = partial(particles.repeat, lambda key, state: (*state[1:], jax.random.uniform(key)))
    three = draws(jax.random.key(0), (jnp.float32(0),) * 3, 3)
    assert len({float(x) for x in three}) == 3
    one = draws(jax.random.key(0), (jnp.float32(0),) * 3, 1)
    assert float(one[2]) == float(jax.random.uniform(jax.random.key(0)))


def test_random_words_of_one_draw_are_independent():
    words = noise.words(jax.random.key(0), 3, MANY)
    laws = (noise.normal, noise.exponential, noise.sign)
    draws = jax.jit(lambda words: [law(words) for law in laws])(words)
    normals, exponentials, signs = (np.asarray(draw, float) for draw in draws)
    np.testing.assert_allclose(np.cov(normals), np.eye(3), atol=5 / np.sqrt(MANY))
    np.testing.assert_allclose(np.cov(normals**2), 2 * np.eye(3), atol=50 / np.sqrt(MANY))
    np.testing.assert_allclose(np.mean(normals**4, axis=1), 3, atol=4 * np.sqrt(96 / MANY))
    np.testing.assert_allclose(np.cov(exponentials), np.eye(3), atol=15 / np.sqrt(MANY))
    np.testing.assert_allclose(exponentials.mean(axis=1), 1, atol=4 / np.sqrt(MANY))
    np.testing.assert_allclose(signs @ signs.T / MANY, np.eye(3), atol=4 / np.sqrt(MANY))
    ends = jnp.asarray([0, 2**32 - 1], jnp.uint32)
    for law in (noise.uniform, noise.normal, noise.exponential):
        assert np.isfinite(law(ends)).all()
    assert (noise.uniform(ends) > 0).all()
    assert (noise.uniform(ends) < 1).all()


def test_the_noise_of_a_walk_has_mean_0_variance_1_and_no_memory():
    """Also between slots that share a random word: the whole covariance of 30 of them."""
    keys = jax.random.split(jax.random.key(0), 20_000)
    draw = jax.jit(jax.vmap(lambda key: noise.walk(key, 3, 10).ravel()))
    walks = np.asarray(draw(keys), float)
    few = 1 / np.sqrt(len(keys))
    np.testing.assert_allclose(walks.mean(axis=0), 0, atol=4.5 * few)
    np.testing.assert_allclose(walks.T @ walks / len(keys), np.eye(30), atol=6 * few)
    squares = walks**2 - 1
    np.testing.assert_allclose(squares.T @ squares / len(keys), 1.8 * np.eye(30), atol=20 * few)
