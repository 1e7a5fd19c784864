"""tests/base/test_paths: dotted paths name every number, and refuse what does not fit."""

import numpy as np
import pytest

import plumejax
from plumejax.base import paths
from plumejax.base.errors import PlumeError, ValidationError
from plumejax.search.arena import MaskedGrid


def test_leaves_name_every_number(local):
    _, params = local
    assert list(paths.leaves(params)) == [
        "max_steps",
        "dt",
        "plume.sigma",
        "plume.source",
        "sensor.saturation",
        "motion.step",
        "ending.radius",
        "start.min_distance",
        "start.heading",
    ]


def test_override_keeps_dtype_and_leaves_the_original(local):
    _, params = local
    new = paths.override(params, {"plume.sigma": 7, "plume.source": (1, 2), "max_steps": 5.0})
    assert new.plume.sigma.dtype == np.float32
    assert new.plume.sigma == 7.0
    np.testing.assert_array_equal(new.plume.source, np.asarray([1, 2], np.float32))
    assert new.max_steps.dtype == np.int32
    assert params.plume.sigma == 3.0


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("plume.sigmma", 1.0, "Did you mean 'plume.sigma'"),
        (1, 2.0, "names no number"),
        ("max_steps", 2**40, "that int32 holds"),
        ("plume", 1.0, "names no number"),
        ("", 1.0, "names no number"),
        ("plume.sigma", (1.0, 2.0), "shape"),
        ("plume.source", 1.0, "shape"),
        ("plume.sigma", "wide", "not a number"),
        ("plume.sigma", None, "does not fit"),
        ("plume.sigma", "3", "does not fit"),
        ("plume.sigma", True, "does not fit"),
        ("plume.sigma", 1j, "does not fit"),
        ("max_steps", 2.5, "whole number"),
        ("max_steps", 2**40, "whole number"),
    ],
)
@pytest.mark.filterwarnings("ignore:Casting complex", "ignore:invalid value encountered")
def test_override_refuses(local, path, value, message):
    with pytest.raises(ValidationError, match=message):
        paths.override(local[1], {path: value})


def test_a_mask_is_overridden_by_booleans_only():
    kwargs = {"grid_size": (4, 3), "arena": MaskedGrid((4, 3))}
    free = np.ones((3, 4), bool)
    free[0, 0] = False
    small = {"ending.radius": 1.0}
    _, params = plumejax.make(
        "PlumeSearchLocal-v0", overrides={"arena.free": free, **small}, **kwargs
    )
    np.testing.assert_array_equal(params.arena.free, free)
    with pytest.raises(PlumeError, match="does not fit"):
        plumejax.make("PlumeSearchLocal-v0", overrides={"arena.free": 1.0 * free}, **kwargs)


def test_numbers_in_a_dict_have_paths_too():
    tree = {"a": np.float32(1.0), "b": {"c": np.int32(2)}}
    assert list(paths.leaves(tree)) == ["a", "b.c"]
    new = paths.override(tree, {"b.c": 5})
    assert (new["b"]["c"], tree["b"]["c"]) == (5, 2)
