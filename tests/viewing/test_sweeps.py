"""tests/viewing/test_sweeps: figures of sweeps: what is drawn is what was measured."""

import numpy as np
import pytest
import xarray

from plumejax.base.errors import ValidationError
from plumejax.viewing.plots import is_geometric
from plumejax.viewing.sweeps import figure


def sweep(**coordinates):
    """A dataset as a sweep gives it: success is the number of the cell."""
    shape = tuple(len(x) for x in coordinates.values())
    values = np.arange(np.prod(shape), dtype=float).reshape(shape) / 100
    dims = tuple(coordinates)
    arrays = {"success": values, "success_low": values - 0.05, "success_high": values + 0.05}
    data = xarray.Dataset({k: (dims, v) for k, v in arrays.items()}, coordinates)
    for name in coordinates:
        data[name].attrs["units"] = "m"
    return data


def test_few_values_of_the_second_axis_are_curves_with_bands():
    data = sweep(wind=[0.1, 1.0, 10.0], policy=["a", "b"])
    (axes,) = figure(data).axes
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_xscale()) == (
        "wind (m)",
        "success",
        "log",
    )
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "policy = a",
        "policy = b",
    ]
    np.testing.assert_allclose(axes.lines[1].get_ydata(), data.success.sel(policy="b"))
    band = axes.collections[1].get_paths()[0].vertices[:, 1]
    np.testing.assert_allclose([band.min(), band.max()], [-0.04, 0.1])


def test_many_values_of_the_second_axis_are_a_map_in_rising_order():
    data = sweep(wind=[2.0, 1.0], rate=np.arange(7.0))
    axes = figure(data).axes[0]
    (mesh,) = axes.collections
    np.testing.assert_allclose(mesh.get_array(), data.success.values[::-1].T)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("wind (m)", "rate (m)")


def test_further_axes_are_panels_of_one_scale_and_slices_are_the_nearest():
    data = sweep(a=np.arange(8.0), b=np.arange(9.0), c=[1.0, 5.0])
    panels = [axes for axes in figure(data).axes if axes.get_title()]
    assert [axes.get_title() for axes in panels] == ["c = 1", "c = 5"]
    assert len({axes.collections[0].get_clim() for axes in panels}) == 1
    (alone, _) = figure(data, at={"c": 4.2}).axes
    np.testing.assert_allclose(alone.collections[0].get_array(), data.success.sel(c=5.0).T)


def test_seeds_are_drawn_as_their_median_and_range():
    data = sweep(gamma=[0.9, 0.99], seed=[0, 1, 2])
    drawn = figure(data)
    (axes,) = drawn.axes
    np.testing.assert_allclose(axes.lines[0].get_ydata(), [0.01, 0.04])
    band = axes.collections[0].get_paths()[0].vertices[:, 1]
    np.testing.assert_allclose([band.min(), band.max()], [0.0, 0.05])
    assert drawn.get_suptitle() == "median and range of 3 seeds"
    assert figure(data, x="seed").axes[0].get_xlabel() == "seed (m)"


def test_the_slice_that_is_drawn_is_named():
    data = sweep(a=np.arange(8.0), c=[1.0, 5.0])
    assert figure(data, at={"c": 4.2}).get_suptitle() == "c = 5"
    with pytest.raises(ValidationError, match=r"at c = 6 .* a number from 1 to 5"):
        figure(data, at={"c": 6})


def test_of_what_has_not_been_played_there_is_no_picture():
    data = sweep(a=np.geomspace(1, 100, 5)) * np.nan
    with pytest.raises(ValidationError, match="success = 'NaN everywhere'"):
        figure(data)


def test_a_list_of_cells_is_drawn_as_points():
    cells = {"success": ("cell", [0.1, 0.9, 0.5])}
    places = {"a": ("cell", [1.0, 2.0, 3.0]), "b": ("cell", [3.0, 1.0, 2.0])}
    axes = figure(xarray.Dataset(cells, places)).axes[0]
    np.testing.assert_allclose(axes.collections[0].get_offsets(), [[1, 3], [2, 1], [3, 2]])
    np.testing.assert_allclose(axes.collections[0].get_array(), [0.1, 0.9, 0.5])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"value": "sucess"}, "value = 'sucess': there is none. Did you mean 'success'"),
        ({"x": "d"}, "x = 'd': there is none. Known: a, b, c"),
        ({"x": "a", "y": "a"}, "y = 'a' .* another than x"),
        ({"at": {"a": "left"}}, "at a = 'left' .* a number"),
        ({}, "slices = .* at most 12; choose with --at"),
    ],
)
def test_what_cannot_be_drawn_is_named(options, message):
    data = sweep(a=np.arange(3.0), b=np.arange(3.0), c=np.arange(13.0))
    with pytest.raises(ValidationError, match=message):
        figure(data, **options)


def test_a_geometric_series_is_known():
    assert is_geometric(np.geomspace(0.1, 10, 5))
    assert not is_geometric(np.linspace(0.1, 10, 5))
    assert not is_geometric([1, 2, 4])
    assert not is_geometric([0, 1, 10])
