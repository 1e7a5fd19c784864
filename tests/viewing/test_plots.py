"""tests/viewing/test_plots: what is on the figure is what was given."""

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from plumejax.viewing.plots import FOUND, LOST, trajectories


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
    colour_bar = axes.figure.axes[1]
    assert colour_bar.get_ylabel() == "concentration (ppm)"
    np.testing.assert_allclose(axes.images[0].get_array(), np.maximum(field, field.max() * 1e-8))


@pytest.mark.parametrize("size", [(8.0, 3.0), (8.0, 8.0)])
def test_the_legend_of_trajectories_stands_clear_of_the_label_of_x(size):
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    width, height = (int(20 * x) for x in size)
    positions = np.zeros((2, 1, 2), np.float32)
    axes = trajectories(
        figure.add_subplot(), np.ones((height, width)), positions, [1], [True], np.zeros(2), 1.0
    )
    figure.draw_without_rendering()
    label, legend = axes.xaxis.label.get_window_extent(), axes.get_legend().get_window_extent()
    assert legend.y1 <= label.y0
    assert legend.y0 >= 0
