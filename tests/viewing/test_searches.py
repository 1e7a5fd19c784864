"""tests/viewing/test_searches: what is on the figure is what was given."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from plumejax.base.errors import ValidationError
from plumejax.viewing.searches import FOUND, LOST, belief_map, encounter_map, trajectories


def test_trajectories_draw_each_path_to_its_end_in_the_colour_of_its_outcome():
    positions = np.zeros((4, 2, 2), np.float32)
    positions[:, 0, 0] = [0, 1, 2, 2]
    positions[:, 1, 1] = [5, 4, 3, 2]
    field = np.exp(-np.hypot(*np.mgrid[:6, :8]))
    axes = trajectories(
        Figure().add_subplot(),
        field,
        positions,
        np.asarray([2, 3]),
        np.asarray([True, False]),
        np.asarray([2.0, 0.0]),
        1.0,
        unit="ppm",
    )
    paths = {
        line.get_color(): line.get_xydata()
        for line in axes.lines
        if len(line.get_xdata()) in (3, 4)
    }
    np.testing.assert_array_equal(paths[FOUND], positions[:3, 0])
    np.testing.assert_array_equal(paths[LOST], positions[:, 1])
    assert axes.get_xlabel() == "x (cells)"
    assert axes.get_ylabel() == "y (cells)"
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    assert names == ["found (1)", "not found (1)", "goal, radius 1 cells"]
    (colour_bar,) = axes.child_axes
    assert colour_bar.get_ylabel() == "concentration (ppm)"
    np.testing.assert_allclose(axes.images[0].get_array(), np.maximum(field, field.max() * 1e-8))


def test_an_encounter_map_is_hits_over_visits_and_blank_where_nobody_was():
    positions = np.asarray([[[0.5, 0.5], [0.5, 0.5]], [[0.6, 0.4], [2.5, 1.5]], [[9.0, 9.0]] * 2])
    hits = np.asarray([[True, False], [False, True], [True, True]])
    extent, source = (0.0, 3.0, 0.0, 2.0), np.asarray([2.0, 1.0, 7.0])
    axes = encounter_map(Figure().add_subplot(), positions, hits, extent, source, (3, 2), "m")
    (mesh,) = axes.collections
    expected = [[1 / 3, np.nan, np.nan], [np.nan, np.nan, 1]]
    np.testing.assert_allclose(mesh.get_array().filled(np.nan), expected)
    corners = mesh.get_coordinates()
    np.testing.assert_array_equal(corners[0, :, 0], [0, 1, 2, 3])
    np.testing.assert_array_equal(corners[:, 0, 1], [0, 1, 2])
    (star,) = axes.lines
    np.testing.assert_array_equal(star.get_xydata(), [[2, 1]])
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("x (m)", "y (m)")
    assert axes.child_axes[0].get_ylabel() == "share of visits with a hit"


def test_cells_of_too_few_visits_are_blank():
    positions = [[0.5, 0.5], [0.5, 0.5], [1.5, 0.5]]
    extent, source = (0.0, 2.0, 0.0, 1.0), (0.0, 0.0)
    axes = encounter_map(
        Figure().add_subplot(), positions, [True] * 3, extent, source, (2, 1), least=2
    )
    np.testing.assert_array_equal(axes.collections[0].get_array().mask, [[False, True]])


def test_a_belief_map_shows_it_over_x_and_y_with_the_way_and_its_bits():
    belief = np.zeros((4, 3))
    belief[3, 0], belief[1, 2] = 0.75, 0.25
    way = np.asarray([[0, 0], [0, 1], [1, 1]])
    axes = belief_map(Figure().add_subplot(), belief, way, np.asarray([1, 2]), floor=1e-3)
    shown = axes.images[0].get_array()
    assert shown.shape == (3, 4)
    assert (shown[0, 3], shown[2, 1], shown[1, 0]) == (0.75, 0.25, 1e-3)
    assert axes.images[0].get_clim() == (1e-3, 0.75)
    assert axes.get_title() == "entropy 0.81 bits"
    drawn = {line.get_label(): line.get_xydata().tolist() for line in axes.lines}
    assert drawn == {"way so far": way.tolist(), "agent": [[1, 1]], "source": [[1, 2]]}
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("x (cells)", "y (cells)")


def test_a_belief_in_space_is_summed_over_the_height_and_its_bits_are_those_of_the_whole():
    belief = np.zeros((4, 3, 2))
    belief[2, 1] = 0.5
    axes = belief_map(Figure().add_subplot(), belief, np.asarray([[0, 0, 1]]))
    shown = axes.images[0].get_array()
    assert shown[1, 2] == 1
    assert axes.get_title() == "entropy 1.00 bits"
    assert "all heights" in axes.child_axes[0].get_ylabel()


def test_a_belief_along_a_line_is_refused():
    with pytest.raises(ValidationError, match="2 or 3 dimensions"):
        belief_map(Figure().add_subplot(), np.full(4, 0.25), [[0]])
