"""tests/evaluation/test_statistics: metrics and intervals, against published and closed values."""

import numpy as np
import pytest

from plumejax.base.errors import ValidationError
from plumejax.evaluation import statistics as stats
from plumejax.evaluation.episodes import Outcomes
from plumejax.evaluation.tracks import Track

FOUND = np.asarray([True, False, True, True])
STEPS = np.asarray([10, 40, 20, 30], np.int32)


def outcomes(track=None):
    failed = np.zeros(4, bool)
    reward = np.asarray([1.0, 0.0, 1.0, 1.0], np.float32)
    return Outcomes(FOUND, failed, STEPS, reward, track=track)


def test_summary_of_known_outcomes():
    s = stats.summarise(outcomes())
    assert (s.episodes, s.found, s.success) == (4, 3, 0.75)
    assert (s.median_steps, s.mean_steps_found, s.mean_return) == (25.0, 20.0, 0.75)
    assert (s.restricted_mean, s.failed) == (25.0, 0.0)
    assert s.error_steps_found == pytest.approx(10 / np.sqrt(3))
    assert np.isnan([s.spl, s.hits, s.whiffs]).all()


def test_paths_are_compared_with_the_straight_way_to_the_goal_disc():
    track = Track(
        path=np.asarray([8.0, 90.0, 12.0, 3.0]),
        distance=np.asarray([6.0, 6.0, 8.0, 5.0]),
        walls=np.asarray([0, 4, 0, 0]),
        cycled=np.asarray([False, True, False, False]),
        returns=None,
        before=None,
        hits=np.asarray([1, 9, 3, 5]),
        whiffs=np.asarray([1, 2, 3, 2]),
    )
    s = stats.summarise(outcomes(track), radius=2.0)
    assert (s.hits, s.error_hits, s.whiffs) == (3.0, pytest.approx(2 / np.sqrt(3)), 2.0)
    assert s.spl == pytest.approx((4 / 8 + 0 + 6 / 12 + 1) / 4)
    assert s.overhead == pytest.approx((8 / 4 + 12 / 6 + 3 / 3) / 3)
    assert (s.walls, s.cycled) == (1.0, 0.25)


@pytest.mark.parametrize(
    ("k", "n", "low", "high"),
    # Newcombe, Statistics in Medicine 17 (1998), table I, method 3 (score).
    [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_interval_matches_published_values(k, n, low, high):
    assert stats.wilson(k, n) == pytest.approx((low, high), abs=5e-5)


def test_arrivals_match_the_published_survival_of_leukaemia_patients():
    # Freireich et al. 1963, weeks in remission under 6-MP; survival and standard errors as in
    # Kleinbaum and Klein, Survival Analysis, chapter 2, and Collett. A minus is a censored time.
    weeks = [6, 6, 6, -6, 7, -9, 10, -10, -11, 13, 16, -17, -19, -20, 22, 23]
    weeks = np.asarray([*weeks, -25, -32, -32, -34, -35])
    law = stats.arrivals(np.abs(weeks), weeks > 0)
    assert law.times.tolist() == [6, 7, 10, 13, 16, 22, 23]
    survival = [0.857, 0.807, 0.753, 0.690, 0.627, 0.538, 0.448]
    np.testing.assert_allclose(1 - law.cdf, survival, atol=5e-4)
    errors = [0.0764, 0.0869, 0.0963, 0.1068, 0.1141, 0.1282, 0.1346]
    np.testing.assert_allclose(law.error, errors, atol=5e-5)
    assert law.quantile(0.5) == 23
    assert law.quantile(0.9) == np.inf


def test_who_failed_never_arrives_and_who_was_cut_off_might():
    steps, found = np.asarray([1, 2, 3]), np.asarray([False, True, True])
    cut = stats.arrivals(steps, found)
    lost = stats.arrivals(steps, found, failed=~found)
    np.testing.assert_allclose(cut.cdf, [0.5, 1.0])
    np.testing.assert_allclose(lost.cdf, [1 / 3, 2 / 3])


def test_the_restricted_mean_is_the_area_above_the_law_of_arrival():
    steps, found = np.asarray([3, 9, 9, 5]), np.asarray([True, False, False, True])
    law = stats.arrivals(steps, found)
    away = [1 - law.cdf[law.times <= t].max(initial=0) for t in range(9)]
    assert stats.restricted_mean(steps, found, 9).value == pytest.approx(sum(away))


def test_discounted_cost_of_a_geometric_arrival():
    p, gamma, n = 0.05, 0.9, 200_000
    steps = np.random.default_rng(0).geometric(p, n)
    expected = 1 - p * gamma / (1 - (1 - p) * gamma)
    cost = stats.discounted_cost(steps, np.ones(n, bool), gamma)
    assert abs(cost.value - expected) < 3 * cost.error
    assert stats.discounted_cost([5], [False], 0.9).value == 1
    with pytest.raises(ValidationError, match=r"gamma = 1\.5"):
        stats.discounted_cost([5], [True], 1.5)


def test_normalised_time_is_one_for_the_perfect_and_zero_for_the_lost():
    g = stats.normalised_time([True, True, False], [4, 4, 4], [4, 8, 100])
    assert g.value == pytest.approx(0.5)


def test_pairs_share_what_is_common_to_both():
    rng = np.random.default_rng(1)
    common = rng.normal(0, 10, 500)
    difference = stats.paired_difference(common + 1 + rng.normal(0, 0.1, 500), common)
    assert abs(difference.value - 1) < 4 * difference.error
    assert difference.error < 0.01


def test_the_interquartile_mean_counts_the_middle_half():
    assert stats.interquartile_mean([0, 1, 2, 100]) == pytest.approx(1.5)
    # Five values: half of the second and fourth... 0.25 to 0.75 holds 3/4 of them, and the third.
    assert stats.interquartile_mean([-9, 1, 2, 4, 99]) == pytest.approx((0.75 * 5 + 2) / 2.5)


def test_a_bootstrap_over_plumes_is_wider_than_one_over_episodes_where_plumes_differ():
    rng = np.random.default_rng(2)
    plume = np.repeat(np.arange(20), 50)
    values = rng.normal(0, 1, 20)[plume] + rng.normal(0, 0.1, 1000)
    low, high = stats.bootstrap(values, plume)
    narrow = stats.bootstrap(values, np.arange(1000))
    expected = 2 * 1.96 / np.sqrt(20)
    assert high - low == pytest.approx(expected * values.std(), rel=0.3)
    assert narrow[1] - narrow[0] < (high - low) / 3


def test_percentiles_are_linear_between_steps_and_carry_the_error_of_the_law():
    law = stats.Arrivals(np.asarray([2, 4]), np.asarray([0.5, 0.9]), np.asarray([0.1, 0.04]))
    assert law.percentile(0.25).value == 1.0
    assert law.percentile(0.7).value == 3.0
    # The law is as steep as 0.2 a step there, and its error 0.07.
    assert law.percentile(0.7).error == pytest.approx(0.07 / 0.2)
    assert law.percentile(0.95).value == np.inf


def test_a_ratio_of_means_has_its_error_to_first_order():
    rng = np.random.default_rng(0)
    draws = rng.normal([6.0, 2.0], [1.0, 0.5], (4000, 50, 2))
    each = [stats.ratio(*sample.T) for sample in draws[:200]]
    spread = np.std(draws[..., 0].mean(axis=1) / draws[..., 1].mean(axis=1))
    assert np.mean([ratio.error for ratio in each]) == pytest.approx(spread, rel=0.03)
    assert each[0].value == draws[0, :, 0].mean() / draws[0, :, 1].mean()
