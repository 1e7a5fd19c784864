"""tests/viewing/test_plots: what is on the figure is what was given."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from plumejax.evaluation.episodes import Outcomes
from plumejax.evaluation.league import Row
from plumejax.evaluation.statistics import Estimate, arrivals, summarise, wilson
from plumejax.viewing.figures import COLOURS
from plumejax.viewing.plots import arrival_curves, league_chart, learning_curves
from plumejax.viewing.plumes import durations


def axes():
    return Figure().add_subplot()


def test_learning_curves_are_each_seed_their_median_and_their_range():
    steps = [[10, 20, 30], [10, 20, 30], [10, 20]]
    values = [[0.0, 0.4, 1.0], [0.2, 0.6, 0.8], [0.1, 0.2]]
    drawn = learning_curves(axes(), steps, values, "success (share)", name="gru")
    *seeds, median = drawn.lines
    for line, x, y in zip(seeds, steps, values, strict=True):
        np.testing.assert_array_equal(line.get_xydata(), np.stack([x, y], 1))
    np.testing.assert_allclose(median.get_xydata(), [(10, 0.1), (20, 0.4), (30, 0.9)])
    assert median.get_linewidth() > 2 * seeds[0].get_linewidth()
    corners = drawn.collections[0].get_paths()[0].vertices
    for at, low, high in ((10, 0, 0.2), (20, 0.2, 0.6), (30, 0.8, 1)):
        found = corners[corners[:, 0] == at, 1]
        assert (found.min(), found.max()) == (low, high)
    assert (drawn.get_xlabel(), drawn.get_ylabel()) == ("environment steps", "success (share)")
    (entry,) = drawn.get_legend().get_texts()
    assert entry.get_text() == "gru, median of 3 seeds"


def test_groups_of_trainings_share_an_axis_that_holds_the_longest():
    drawn = learning_curves(axes(), [[10, 20]] * 2, [[0, 1], [0, 2]], "return", "a")
    learning_curves(drawn, [[10, 50]], [[1, 3]], "return", "b", COLOURS[1])
    low, high = drawn.get_xlim()
    assert low == 0
    assert 50 < high < 60
    names = [text.get_text() for text in drawn.get_legend().get_texts()]
    assert names == ["a, median of 2 seeds", "b"]


def test_seeds_told_of_at_other_steps_are_held_together_between_them():
    drawn = learning_curves(axes(), [[0, 20], [0, 10, 20]], [[0, 2], [4, np.nan, 4]], "return")
    np.testing.assert_allclose(drawn.lines[-1].get_xydata(), [(0, 2), (20, 3)])
    drawn = learning_curves(axes(), [[0, 20], [10]], [[0, 2], [4]], "return")
    np.testing.assert_allclose(drawn.lines[-1].get_xydata(), [(0, 0), (10, 2.5), (20, 2)])


def test_a_training_alone_is_one_curve_and_one_of_no_episode_none():
    drawn = learning_curves(axes(), [[1, 2]], [[0.5, 0.7]], "success")
    assert len(drawn.lines) == 1
    assert not drawn.collections
    assert drawn.get_legend() is None
    assert not learning_curves(axes(), [[1, 2]], [[np.nan, np.nan]], "success").lines


def row(policy, found=None, time=float("nan")):
    """A line of a league: `found` of 10 episodes of 7 steps each; None does not fit."""
    summary = None
    if found is not None:
        some = np.arange(10) < found
        steps = np.full(10, 7)
        summary = summarise(Outcomes(some, np.zeros(10, bool), steps, np.zeros(10)))
    return Row("task", policy, summary, float("nan"), Estimate(time, 0.0), "")


def test_a_league_chart_has_a_bar_and_interval_for_each_that_fits_the_first_on_top():
    drawn = league_chart(axes(), [row("a", 9, 0.8), row("b", 4, 0.3), row("c")])
    assert [text.get_text() for text in drawn.get_yticklabels()] == ["a", "b", "c"]
    bottom, top = drawn.get_ylim()
    assert bottom > top
    assert [(bar.get_y() + bar.get_height() / 2, bar.get_width()) for bar in drawn.patches] == [
        (pytest.approx(0), 0.9),
        (pytest.approx(1), 0.4),
    ]
    (whiskers,) = drawn.collections
    ends = [segment[:, 0] for segment in whiskers.get_segments()]
    np.testing.assert_allclose(ends, [wilson(9, 10), wilson(4, 10)])
    diamonds = next(line for line in drawn.lines if line.get_marker() == "D")
    np.testing.assert_array_equal(diamonds.get_xydata(), [(0.8, 0), (0.3, 1)])
    said = {text.get_position()[1]: text.get_text() for text in drawn.texts}
    assert said[2] == "does not fit"
    (right,) = drawn.child_axes
    assert [text.get_text() for text in right.get_yticklabels()] == ["7.0", "7.0"]
    assert drawn.get_xlabel() == "share of the episodes"


def test_without_the_perfect_agent_a_league_chart_has_no_diamonds():
    drawn = league_chart(axes(), [row("a", 3)])
    assert "D" not in [line.get_marker() for line in drawn.lines]
    assert len(drawn.get_legend().get_texts()) == 1


def test_a_league_that_nobody_fits_is_drawn():
    drawn = league_chart(axes(), [row("a"), row("b")])
    assert [text.get_text() for text in drawn.texts].count("does not fit") == 2
    assert not drawn.patches


def test_thirty_laws_of_arrival_are_told_apart_by_colour_or_dashes():
    law = arrivals([3, 5, 9, 9], [True, True, True, False])
    drawn = arrival_curves(axes(), {f"policy {i}": law for i in range(30)}, 20)
    styles = {(line.get_color(), line.get_linestyle()) for line in drawn.lines}
    assert len(styles) == 30
    assert {colour for colour, _ in styles} == set(COLOURS)
    x, y = drawn.lines[0].get_xydata().T
    np.testing.assert_array_equal(x, [1, 3, 5, 9, 20])
    np.testing.assert_allclose(y, [0, 0.25, 0.5, 0.75, 0.75])
    assert (drawn.get_xlabel(), drawn.get_ylabel()) == ("steps", "share arrived")


def test_durations_are_the_share_that_is_longer_of_what_has_ten_or_more():
    many = np.arange(10.0, 0.0, -1.0)
    drawn = durations(axes(), [many, many[:9]], ["10 m", "20 m"], "min")
    curve, slope = drawn.lines
    np.testing.assert_array_equal(curve.get_xdata(), np.arange(1, 11))
    np.testing.assert_allclose(curve.get_ydata(), np.arange(10, 0, -1) / 10)
    np.testing.assert_allclose(slope.get_ydata(), [1, 10**-0.5])
    assert curve.get_label() == "10 m"
    assert (drawn.get_xlabel(), drawn.get_ylabel()) == ("duration (min)", "share that is longer")
