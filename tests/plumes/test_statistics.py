"""tests/plumes/test_statistics: whiffs and blanks counted by hand, laws found in samples."""

from dataclasses import dataclass
from itertools import groupby

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from plumejax.base.errors import ValidationError
from plumejax.plumes import rolling
from plumejax.plumes import statistics as stats
from plumejax.plumes.filaments import TrackingPlume
from plumejax.plumes.gaussian import GaussianPlume
from plumejax.plumes.interface import Air

SERIES = np.asarray([0, 3, 3, 0, 0, 0, 5, 0, 2, 2, 2, 0], np.float32)


def test_a_series_counted_by_hand():
    whiffs, blanks = stats.durations(SERIES, 1.0, 0.5)
    np.testing.assert_allclose(whiffs, [1.0, 0.5, 1.5])
    np.testing.assert_allclose(blanks, [1.5, 0.5])  # the first and the last are cut off
    assert stats.intermittency(SERIES, 1.0) == pytest.approx(6 / 12)
    assert stats.intermittency(SERIES, 2.0) == pytest.approx(3 / 12)  # at it is not above it
    assert stats.encounter_rate(SERIES, 1.0, 0.5) == pytest.approx(3 / (11 * 0.5))
    mean = 17 / 12
    assert stats.variation(SERIES) == pytest.approx(np.sqrt(55 / 12 - mean**2) / mean)
    assert stats.peak_to_mean(SERIES) == pytest.approx(5 / mean)
    found = stats.summarise(SERIES, 1.0, 0.5)
    assert (found.whiffs, found.blanks) == (3, 2)
    assert (found.whiff, found.blank) == (1.0, 1.0)
    assert found.mean == pytest.approx(mean)


def test_clean_air_is_no_number_and_no_error():
    found = stats.summarise(np.zeros((50, 2), np.float32), 0.1, 0.1)
    assert (found.mean, found.intermittency, found.encounters, found.whiffs) == (0, 0, 0, 0)
    assert np.isnan([found.variation, found.peak_to_mean, found.whiff, found.blank]).all()
    assert np.isnan(found.blank_law.exponent)
    assert found.blank_law.count == 0


@settings(max_examples=60)
@given(arrays(bool, st.tuples(st.integers(1, 30), st.integers(1, 3))))
def test_durations_are_the_runs_within(above):
    whiffs, blanks = stats.durations(above.astype(np.float32), 0.5, 1.0)
    runs = [[(kind, len(list(run))) for kind, run in groupby(column)] for column in above.T]
    inner = [run for column in runs for run in column[1:-1]]
    assert list(whiffs) == [n for kind, n in inner if kind]
    assert list(blanks) == [n for kind, n in inner if not kind]


def tempered(rng, count, exponent, shortest, cutoff):
    """Samples of `t^-a e^(-t/T)` above `shortest`: of the power law, those that survive."""
    kept = np.empty(0)
    while len(kept) < count:
        t = shortest * rng.uniform(size=4 * count) ** (-1 / (exponent - 1))
        kept = np.append(kept, t[rng.uniform(size=len(t)) < np.exp(-(t - shortest) / cutoff)])
    return kept[:count]


@pytest.mark.parametrize(("exponent", "cutoff"), [(1.5, 10.0), (2.5, 3.0)])
def test_the_law_with_a_cutoff_is_found_and_its_errors_are_right(exponent, cutoff):
    rng = np.random.default_rng(0)
    scores = []
    for _ in range(60):
        law = stats.fit_power_law_with_cutoff(tempered(rng, 1500, exponent, 0.1, cutoff), 0.1)
        assert law.count == 1500
        rate, rate_error = 1 / law.cutoff, law.cutoff_error / law.cutoff**2
        scores.append([(law.exponent - exponent) / law.error, (rate - 1 / cutoff) / rate_error])
    scores = np.asarray(scores)
    # 60 standard scores: their mean has an error of 0.13, their deviation one of 0.09.
    assert np.abs(scores.mean(0)).max() < 0.55
    assert np.abs(scores.std(0) - 1).max() < 0.35


def test_the_plain_law_is_found_and_its_error_is_right():
    rng = np.random.default_rng(1)
    laws = [stats.fit_power_law(rng.uniform(size=1000) ** -2, 1.0) for _ in range(60)]
    scores = np.asarray([(law.exponent - 1.5) / law.error for law in laws])
    assert abs(scores.mean()) < 0.5
    assert 0.65 < scores.std() < 1.35
    assert laws[0].error == pytest.approx(0.5 / np.sqrt(1000), rel=0.15)
    assert np.isinf(laws[0].cutoff)
    # Where there is no cut-off none that matters is found.
    law = stats.fit_power_law_with_cutoff(rng.uniform(size=3000) ** -1.0, 1.0)
    assert law.exponent == pytest.approx(2.0, abs=4 * law.error)
    assert law.cutoff > 100


def test_durations_in_whole_steps_are_corrected_for():
    t = tempered(np.random.default_rng(2), 40_000, 1.5, 0.004, 40.0)
    steps = 0.02 * np.rint(t / 0.02)
    law = stats.fit_power_law_with_cutoff(steps[steps > 0], 0.12, 0.02)
    assert law.exponent == pytest.approx(1.5, abs=4 * law.error)
    assert law.cutoff == pytest.approx(40.0, abs=4 * law.cutoff_error)
    uncorrected = stats.fit_power_law_with_cutoff(steps, 0.12)
    assert abs(uncorrected.exponent - 1.5) > 3 * law.error


def test_too_few_or_equal_durations_have_no_law():
    for fit in (stats.fit_power_law, stats.fit_power_law_with_cutoff):
        for few in ([], [2.0], [1.0] * 20):
            law = fit(np.asarray(few), 1.0)
            assert np.isnan(law.exponent)
            assert law.count == len(few)
        with pytest.raises(ValidationError, match="shortest"):
            fit(np.ones(5), 0.1, 0.2)


def test_the_mean_of_the_celani_law():
    t = tempered(np.random.default_rng(3), 200_000, 1.5, 0.001, 10.0)
    assert stats.mean_duration(0.001, 10.0) == pytest.approx(np.sqrt(np.pi * 0.01) / 2)
    error = t.std() / np.sqrt(len(t))
    # The relation leaves out terms of the order of sqrt(tau / T), 1 %.
    assert stats.mean_duration(0.001, 10.0) == pytest.approx(t.mean(), abs=4 * error, rel=0.02)


def test_intermittency_is_the_share_of_whiffs_in_whiff_and_blank():
    rng = np.random.default_rng(4)
    lengths = np.stack([rng.geometric(0.2, 5000), rng.geometric(0.05, 5000)], axis=1)
    series = np.repeat(np.tile([1.0, 0.0], 5000), lengths.ravel())
    found = stats.summarise(series, 0.5, 0.1)
    assert found.whiff / (found.whiff + found.blank) == pytest.approx(
        found.intermittency, rel=0.002
    )
    assert found.whiff == pytest.approx(0.5, rel=0.05)
    assert found.encounters == pytest.approx(1 / (found.whiff + found.blank), rel=0.002)


@dataclass(frozen=True)
class Swing:
    """A plume whose concentration is a walk, the same everywhere but for a factor of x."""

    unit = "made up"

    def default_params(self):
        return np.float32(0.5)

    def start(self, key, params):
        return jax.random.normal(key, (), jnp.float32)

    def advance(self, key, state, params):
        return state + params * jax.random.normal(key, (), jnp.float32)

    def sample(self, state, positions, params):
        wind = jnp.stack([jnp.full(len(positions), 2.0), jnp.full(len(positions), state)], -1)
        return Air(jnp.abs(state) * positions[:, 0], wind)

    def sources(self, state, params):
        return jnp.zeros((1, 2))


def test_a_record_is_the_plume_advanced_with_numbered_keys():
    plume, key = Swing(), jax.random.key(5)
    params = plume.default_params()
    places = np.float32([[1.0, 0.0], [3.0, 1.0]])
    air = stats.record(plume, params, key, places, 12, warmup=4)
    assert air.concentration.shape == (12, 2)
    assert air.wind.shape == (12, 2, 2)
    state = plume.start(jax.random.fold_in(key, 0), params)
    for n in range(1, 17):
        state = plume.advance(jax.random.fold_in(key, n), state, params)
        if n > 4:
            expected = abs(float(state)) * np.asarray([1.0, 3.0])
            np.testing.assert_allclose(air.concentration[n - 5], expected, rtol=1e-5)
    # In pieces it is the same.
    begun = rolling.skip(plume, key, 0, 4, rolling.begin(plume, key, params), params)
    begun, first = rolling.follow(plume, key, 4, 5, begun, jnp.asarray(places), params)
    _, rest = rolling.follow(plume, key, 9, 7, begun, jnp.asarray(places), params)
    pieces = np.concatenate([first.concentration, rest.concentration])
    np.testing.assert_allclose(pieces, air.concentration, rtol=1e-6)
    u, v = np.asarray(air.wind[:, 0, 0], float), np.asarray(air.wind[:, 0, 1], float)
    expected = np.sqrt((u.var() + v.var()) / 2) / np.hypot(u.mean(), v.mean())
    assert stats.turbulence_intensity(air.wind) == pytest.approx(expected, rel=1e-6)
    assert np.isnan(stats.turbulence_intensity(np.zeros((5, 2))))


def test_a_profile_is_the_summary_of_each_place():
    plume, key = Swing(), jax.random.key(5)
    found = stats.profile(plume, np.float32(0.5), key, [1.0, 4.0], 200, 1.0)
    series = stats.record(plume, np.float32(0.5), key, [[1.0, 0.0], [4.0, 0.0]], 200)
    assert found[1] == stats.summarise(np.asarray(series.concentration[:, 1]), 1.0, 1.0)
    assert found[1].mean == pytest.approx(4 * found[0].mean, rel=1e-5)
    assert found[0].intermittency < found[1].intermittency


def test_the_numbers_of_a_plume():
    plume = TrackingPlume()
    params = plume.default_params()  # U 0.5 m/s, 10 m, D 0.00125 m^2/s, r 0.01 m, 100 /s
    expected = {"Pe": 4000.0, "r0 / L": 1e-3, "releases per r0 / U": 2, "releases per L / U": 2000}
    assert stats.dimensionless(plume, params) == pytest.approx(expected)
    fewer = stats.dimensionless(plume, params.replace(keep=np.float32(0.4)))
    assert fewer["releases per L / U"] == pytest.approx(800)
    assert stats.step_seconds(plume, params) == pytest.approx(0.04)
    assert stats.crossing(plume, params) == 750  # 1.5 times 20 s, of 0.04 s
    south = params.replace(wind=params.wind.replace(velocity=np.float32([0.0, -2.0])))
    np.testing.assert_allclose(stats.downwind(plume, south, [0.0, 3.0]), [[0, 0], [0, -3]])
    still = params.replace(wind=params.wind.replace(velocity=np.zeros(2, np.float32)))
    assert set(stats.dimensionless(plume, still)) == {"r0 / L"}
    assert stats.crossing(plume, still) == 0
    gaussian = GaussianPlume((9, 9))
    assert stats.dimensionless(gaussian, gaussian.default_params()) == {}
    assert stats.step_seconds(gaussian, gaussian.default_params()) == 1
    np.testing.assert_allclose(
        stats.downwind(gaussian, gaussian.default_params(), [2.0]), [[6.0, 4.0]]
    )
