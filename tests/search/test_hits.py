"""tests/search/test_hits: detections by hand, counts and noise by their laws."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from plumejax.base.errors import ValidationError
from plumejax.search.filters import Difference
from plumejax.search.hits import Dead, Detection, GaussianNoise, PoissonHits, Threshold
from plumejax.search.sensors import LocalConcentration

LOCAL = LocalConcentration()
N = 40_000


def test_a_threshold_with_hysteresis_goes_on_high_and_off_low(sensing, smell):
    sensor = Threshold(LOCAL)
    params = sensing(sensor, low=0.25, high=0.5)
    air = [0.25, 0.375, 0.5, 0.375, 0.25, 0.125, 0.375, 0.75, 0.0, 0.5]
    seen = smell(sensor, params, air)[:, 0]
    np.testing.assert_array_equal(seen, [0, 0, 1, 1, 1, 0, 0, 1, 0, 1])


def test_a_threshold_with_one_level_has_no_memory_and_each_nose_its_own(sensing, smell, two_noses):
    sensor = Threshold(two_noses)
    params = sensing(sensor, low=0.5, high=0.5)
    seen = smell(sensor, params, [[0.5, 0.0], [0.25, 1.0], [1.0, 0.25], [0.25, 0.25]])
    np.testing.assert_array_equal(seen, [[1, 0], [0, 1], [1, 0], [0, 0]])


@pytest.mark.parametrize(("mean", "categories"), [(0.1, 2), (0.607410, 3), (1.819402, 5)])
def test_counts_are_poisson_with_the_tail_in_the_last_category(
    sensing, smell, unsaturated, mean, categories
):
    inner, numbers = unsaturated
    sensor = PoissonHits(inner, categories)
    params = sensing(sensor, of=numbers, gain=mean / 2)
    seen = smell(sensor, params, np.full(N, 2.0))[:, 0]
    law = stats.poisson(mean).pmf(np.arange(categories))
    law[-1] = 1 - law[:-1].sum()
    parts = np.bincount(seen.astype(int), minlength=categories) / N
    # 4.5 standard errors of each part.
    assert np.all(np.abs(parts - law) < 4.5 * np.sqrt(law * (1 - law) / N)), (parts, law)


def test_no_odour_no_hit_and_much_odour_the_most_hits(sensing, smell, unsaturated):
    inner, numbers = unsaturated
    sensor = PoissonHits(inner, 4)
    seen = smell(sensor, sensing(sensor, of=numbers), [0.0] * 2000 + [1000.0] * 10)[:, 0]
    np.testing.assert_array_equal(seen, [0] * 2000 + [3] * 10)


def test_noses_miss_on_their_own(sensing, smell, two_noses):
    sensor = Detection(two_noses)
    seen = smell(sensor, sensing(sensor, probability=0.7), np.tile([[-1.0, 2.0]], (N, 1)))
    assert set(seen[:, 0]) == {-1.0, 0.0}
    passed = seen != 0
    error = 4.5 * np.sqrt(0.7 * 0.3 / N)
    np.testing.assert_allclose(passed.mean(0), 0.7, atol=error)
    np.testing.assert_allclose((passed[:, 0] & passed[:, 1]).mean(), 0.49, atol=error)
    for probability in (0.0, 1.0):
        sure = smell(sensor, sensing(sensor, probability=probability), np.ones((500, 2)))
        assert np.all(sure == probability)


def test_the_dead_read_nothing(sensing, smell, two_noses):
    for dead, alive in (((), [1, 1]), ((0,), [0, 1]), ((0, 1), [0, 0])):
        sensor = Dead(two_noses, dead)
        air = np.asarray([[0.5, 1.5], [-1.0, 2.0]])
        np.testing.assert_array_equal(smell(sensor, sensing(sensor), air), air * alive)


def test_noise_has_its_spread_and_stays_in_the_space_of_the_reading(sensing, smell, unsaturated):
    inner, numbers = unsaturated
    sensor = GaussianNoise(inner)
    seen = smell(sensor, sensing(sensor, of=numbers, spread=3.0, relative=0.04), np.full(N, 100.0))
    # sqrt(3^2 + 4^2) = 5.
    assert abs(seen.mean() - 100) < 4.5 * 5 / np.sqrt(N)
    assert abs(seen.std() / 5 - 1) < 4.5 / np.sqrt(2 * N)
    clean = smell(sensor, sensing(sensor, of=numbers, spread=3.0), np.zeros(N))
    assert abs((clean == 0).mean() - 0.5) < 4.5 * 0.5 / np.sqrt(N)
    quiet = smell(sensor, sensing(sensor, of=numbers, spread=0.0), [0.0, 3.25])
    np.testing.assert_array_equal(quiet[:, 0], [0.0, 3.25])


def test_only_what_draws_splits_the_key(sensing, smell, unsaturated):
    inner, numbers = unsaturated
    noise = GaussianNoise(inner)
    both = Detection(noise)
    assert noise.random_step
    assert both.random_step
    assert not Threshold(inner).random_step
    assert Threshold(noise).random_step
    air = np.full(64, 100.0)
    once = smell(noise, sensing(noise, of=numbers), air)
    noise_numbers = noise.default_params().replace(of=numbers)
    outer = sensing(both, of=noise_numbers, probability=1.0)
    assert not np.array_equal(smell(both, outer, air), once)
    threshold = Difference(noise)
    changes = smell(threshold, sensing(threshold, of=noise_numbers), air)
    np.testing.assert_array_equal(changes[1:], np.diff(once, axis=0))


def test_noise_and_misses_have_gradients(sensing):
    for sensor in (GaussianNoise(LOCAL), Detection(LOCAL), Dead(LOCAL, (0,))):
        params = sensing(sensor)

        def shown(own, reading, sensor=sensor, params=params):
            params = params.replace(sensor=own)
            state = sensor.start(params)
            return jnp.sum(sensor.respond(jax.random.key(1), reading, state, params)[0])

        slopes = jax.grad(shown, (0, 1))(params.sensor, jnp.full(1, 0.5, jnp.float32))
        assert all(np.all(np.isfinite(x)) for x in jax.tree.leaves(slopes))
        assert (slopes[1] != 0) == (not isinstance(sensor, Dead))


@pytest.mark.parametrize(
    ("sensor", "numbers", "message"),
    [
        (Threshold(LOCAL), {"low": 0.5, "high": 0.25}, "sensor.low = 0.5"),
        (PoissonHits(LOCAL, 1), {}, "sensor.num_hits = 1"),
        (PoissonHits(LOCAL), {"gain": -1.0}, "sensor.gain = -1.0"),
        (PoissonHits(Difference(LOCAL)), {}, "reads >= 0"),
        (Detection(LOCAL), {"probability": 1.5}, "sensor.probability = 1.5"),
        (Dead(LOCAL, (1,)), {}, r"sensor.dead = \(1,\)"),
        (GaussianNoise(LOCAL), {"spread": -1.0}, "sensor.spread = -1.0"),
        (GaussianNoise(LOCAL), {"relative": np.nan}, "sensor.relative = nan"),
    ],
)
def test_bad_numbers_are_refused(sensing, sensor, numbers, message):
    with pytest.raises(ValidationError, match=message):
        sensing(sensor, **numbers)
