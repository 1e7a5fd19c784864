"""tests/search/test_whiffs: clocks and windows of whiffs, by hand and against a plain loop."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plumejax.base.errors import ValidationError
from plumejax.search.filters import Difference, History
from plumejax.search.sensors import LocalConcentration
from plumejax.search.whiffs import TimeSinceWhiff, WhiffFeatures

LOCAL = LocalConcentration()


def test_the_clock_starts_at_each_whiff_and_stops_at_the_longest(sensing, smell, two_noses):
    sensor = TimeSinceWhiff(two_noses)
    params = sensing(sensor, dt=0.5, threshold=0.25, refractory=0.0, longest=1.25)
    air = [[0, 0], [0.5, 0.25], [0, 0], [0, 0.5], [0, 0.5], [0, 0]]
    seen = smell(sensor, params, air)
    expected = [[1.25, 1.25], [0, 1.25], [0.5, 1.25], [1.0, 0], [1.25, 0], [1.25, 0.5]]
    np.testing.assert_array_equal(seen, expected)


def test_odour_within_the_refractory_time_is_no_new_whiff(sensing, smell):
    sensor = TimeSinceWhiff(LOCAL)
    assert sensor.default_params().refractory == np.float32(0.085)
    params = sensing(sensor, dt=0.03125)  # a power of two: 3 steps are over 0.085 s
    seen = smell(sensor, params, [0.5] * 5 + [0.0] + [0.5])[:, 0] / 0.03125
    np.testing.assert_array_equal(seen, [0, 1, 2, 0, 1, 2, 0])


def by_loop(readings, dt, length, window=10, shortest=5, fraction=0.5, floor=3e-6, longest=10.0):
    """Features and T after each reading, in plain Python."""
    past, t, blank, since = [], window, 0, longest
    features, windows = [], []
    for reading in readings:
        past.append(reading)
        last = ([0.0] * t + past)[-t:]
        threshold = max(fraction * sum(last) / t, floor)
        in_whiff = [x > threshold for x in last]
        runs = sum(
            now and not before
            for now, before in zip(in_whiff, [False, *in_whiff[:-1]], strict=True)
        )
        smelt = [x for x in last if x > threshold]
        since = 0.0 if in_whiff[-1] else min(since + dt, longest)
        intensity = sum(smelt) / len(smelt) if smelt else 0.0
        features.append((since, runs / (t * dt), len(smelt) / t, intensity))
        if not in_whiff[-1]:
            blank += 1
        elif blank:
            t = min(blank, length) if blank > t else max(t - 1, shortest)
            blank = 0
        windows.append(t)
    return np.asarray(features), np.asarray(windows)


def test_the_window_grows_to_a_blank_and_shrinks_by_one_else(sensing, smell_and_keep):
    sensor = WhiffFeatures(LOCAL, length=16)
    params = sensing(sensor, dt=0.5, window=3, shortest=2, longest=4.0)
    air = [0, 0.5, 0.5, 0, 0.25, 0, 0, 0, 1, 0, 0.125, 0]
    features, state = smell_and_keep(sensor, params, air)
    # By hand. A blank of 1 step is no longer than T: T - 1. That of 3 steps is. At the tenth
    # reading 0.125 does not exceed half of the mean, (1 + 0.125) / 3 / 2, so the blank goes on.
    np.testing.assert_array_equal(state.window, [3, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3])
    np.testing.assert_array_equal(state.blank, [1, 0, 0, 1, 0, 1, 2, 3, 0, 1, 2, 3])
    expected = [
        [4.0, 0, 0, 0],
        [0.0, 1 / 1.5, 1 / 3, 0.5],
        [0.0, 1.0, 1, 0.5],
        [0.5, 1.0, 0.5, 0.5],
        [0.0, 1.0, 0.5, 0.25],
        [0.5, 1.0, 0.5, 0.25],
        [1.0, 0, 0, 0],
        [1.5, 0, 0, 0],
        [0.0, 1.0, 0.5, 1],
        [0.5, 1 / 1.5, 1 / 3, 1],
        [1.0, 1 / 1.5, 1 / 3, 1],
        [1.5, 1 / 1.5, 1 / 3, 0.125],
    ]
    np.testing.assert_allclose(features, expected, rtol=1e-6)
    loop = by_loop(air, 0.5, 16, window=3, shortest=2, longest=4.0)
    np.testing.assert_allclose(features, loop[0], rtol=1e-6)
    np.testing.assert_array_equal(state.window, loop[1])


def test_long_and_sparse_odour_gives_what_a_plain_loop_gives(sensing, smell_and_keep):
    rng = np.random.default_rng(2)
    # Multiples of 1/64, so that no rounding decides what is a whiff.
    whiffs = np.repeat(rng.random(400) < 0.4, rng.geometric(0.2, 400))[:1500]
    air = whiffs * rng.integers(1, 64, len(whiffs)) / 64
    sensor = WhiffFeatures(LOCAL, length=24)
    params = sensing(sensor, dt=0.25)
    features, state = smell_and_keep(sensor, params, air)
    expected, windows = by_loop(air, 0.25, 24)
    np.testing.assert_array_equal(state.window, windows)
    np.testing.assert_allclose(features, expected, rtol=1e-5, atol=1e-6)
    assert windows.max() == 24
    assert windows.min() == 5
    own = sensor.default_params()
    assert (own.window, own.shortest, own.fraction, own.floor) == (10, 5, 0.5, np.float32(3e-6))


@pytest.mark.parametrize("steady", np.float32([0.1, 0.7, 1 / 3]))
def test_steady_odour_is_one_whiff_of_its_own_intensity(sensing, smell, steady):
    sensor = WhiffFeatures(LOCAL)
    # Saturated: here the mean of the readings may not round to more than each.
    numbers = LOCAL.default_params().replace(saturation=steady)
    params = sensing(sensor, dt=0.5, window=31, of=numbers)
    seen = smell(sensor, params, np.ones(40))
    np.testing.assert_allclose(seen[-1], [0, 1 / 15.5, 1, steady], rtol=1e-6)


def test_the_intensity_has_a_gradient(sensing):
    sensor = WhiffFeatures(LOCAL, length=16)
    params = sensing(sensor)

    def intensity(reading):
        return sensor.respond(None, reading, sensor.start(params), params)[0][3]

    for reading, slope in ((0.0, 0.0), (0.5, 1.0)):
        found = jax.grad(intensity)(jnp.full(1, reading, jnp.float32))
        np.testing.assert_array_equal(found, [slope])


@pytest.mark.parametrize(
    ("sensor", "numbers", "message"),
    [
        (TimeSinceWhiff(LOCAL), {"longest": 0.0}, "sensor.longest = 0.0"),
        (TimeSinceWhiff(LOCAL), {"refractory": 11.0}, "sensor.refractory = 11.0"),
        (WhiffFeatures(LOCAL), {"shortest": 0}, "sensor.shortest = 0"),
        (WhiffFeatures(LOCAL), {"window": 4}, "sensor.window = 4"),
        (WhiffFeatures(LOCAL, length=8), {}, "sensor.window = 10"),
        (WhiffFeatures(LOCAL), {"floor": -1.0}, "sensor.floor = -1.0"),
        (WhiffFeatures(History(LOCAL, 2)), {}, "one reading"),
        (WhiffFeatures(Difference(LOCAL)), {}, "reads >= 0"),
    ],
)
def test_bad_numbers_are_refused(sensing, sensor, numbers, message):
    with pytest.raises(ValidationError, match=message):
        sensing(sensor, **numbers)
