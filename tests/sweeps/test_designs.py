"""tests/sweeps/test_designs: which values are tried together."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plumejax.base.errors import ValidationError
from plumejax.sweeps.designs import grid, listed, random, sobol

SERIES = st.lists(st.floats(-5, 5), min_size=1, max_size=4, unique=True)


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(st.sampled_from(["a", "b.c", "d"]), SERIES, min_size=1))
def test_a_grid_has_every_combination_once_the_last_axis_fastest(axes):
    design = grid(axes)
    assert design.shape == tuple(len(x) for x in axes.values())
    for number, place in enumerate(np.ndindex(design.shape)):
        for i, (name, values) in zip(place, axes.items(), strict=True):
            assert design.columns[name][number] == values[i]
    for name, values in axes.items():
        np.testing.assert_array_equal(design.along(name), values)


def test_a_value_may_be_several_numbers():
    design = grid({"plume.source": [[1, 2], [3, 4]], "x": [5, 6, 7]})
    assert design.columns["plume.source"].shape == (6, 2)
    np.testing.assert_array_equal(design.along("plume.source"), [[1, 2], [3, 4]])


@pytest.mark.parametrize("way", [random, sobol])
def test_drawn_designs_are_in_their_ranges_and_of_their_seed(way):
    ranges = {"a": (0.0, 1.0), "b": (1e-3, 1e3)}
    design = way(ranges, 64, seed=3, log=["b"])
    assert design.axes == (("cell", ("a", "b")),)
    for name, (low, high) in ranges.items():
        assert np.all((design.columns[name] >= low) & (design.columns[name] <= high))
    # By its logarithm half are below 1, of which a uniform one would have a thousandth.
    assert 24 <= np.sum(design.columns["b"] < 1) <= 40
    again, other = way(ranges, 64, seed=3, log=["b"]), way(ranges, 64, seed=4, log=["b"])
    np.testing.assert_array_equal(design.columns["a"], again.columns["a"])
    assert not np.array_equal(design.columns["a"], other.columns["a"])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: grid({}), "axes = .* at least one"),
        (lambda: grid({"plume.sigma": []}), r"plume.sigma = \[\] .* at least one value"),
        (lambda: grid({"plume.sigma": [1, float("nan")]}), "plume.sigma = .* finite"),
        (lambda: grid({"plume.source": [[1, 2], [3]]}), "plume.source = .* values of one shape"),
        (lambda: grid({"plume.sigma": 3}), "plume.sigma = 3 .* values of one shape"),
        (lambda: listed({"a": [1, 2], "b": [1]}), "columns: lengths = .* all the same"),
        (lambda: random({"a": (2, 1)}, 4, 0), r"a = \(2, 1\) .* low < high"),
        (lambda: random({"a": (0, 1)}, 4, 0, log=["a"]), "above 0, to be drawn by its logarithm"),
        (lambda: random({"a": (0, 1)}, 4, 0, log=["b"]), "log = 'b' .* one of a"),
        (lambda: random({"a": (0, 1)}, 0, 0), "count = 0 .* an int > 0"),
        (lambda: random({"a": ("x", "y")}, 4, 0), r"a = \('x', 'y'\) .* low < high"),
        (lambda: random({"a": (0, 1)}, 4, -1), "seed = -1 .* an int >= 0"),
        (lambda: random({"a": (0, 1)}, 4, 0, log="a"), "log = 'a' .* a list of names"),
        (lambda: sobol({"a": (0, 1)}, 3, 0), "count = 3 .* a power of 2"),
    ],
)
def test_what_is_no_design_is_refused(make, message):
    with pytest.raises(ValidationError, match=message):
        make()
