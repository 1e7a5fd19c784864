"""tests/base/test_spaces: samples are members, and what is not a member is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plumejax.base.spaces import Box, Dict, Discrete

CELLS = Box(0, np.asarray([3, 1], np.int32), (2,), np.int32)
FIELD = Box(-1.0, 2.5, (2, 3))
BOTH = Dict({"cell": CELLS, "field": FIELD})
SPACES = [Discrete(1), Discrete(4), CELLS, FIELD, BOTH]


@pytest.mark.parametrize("space", SPACES, ids=repr)
def test_samples_are_members_in_and_out_of_jit(space):
    sample = jax.jit(space.sample)
    for seed in range(5):
        member = sample(jax.random.key(seed))
        assert bool(jax.jit(space.contains)(member))
        assert bool(space.contains(space.sample(jax.random.key(seed))))


@settings(max_examples=30)
@given(st.integers(-(2**31), 2**31 - 1))
def test_discrete_holds_exactly_its_range(x):
    assert bool(Discrete(4).contains(x)) == (0 <= x < 4)


@pytest.mark.parametrize(
    "x", [1.0, True, np.float32(1), np.zeros((1,), np.int32), np.bool_(False)], ids=repr
)
def test_discrete_refuses_other_kinds_and_shapes(x):
    assert not bool(Discrete(4).contains(x))


def test_an_integer_box_draws_and_holds_both_bounds():
    drawn = jax.vmap(CELLS.sample)(jax.random.split(jax.random.key(0), 200))
    assert drawn.dtype == jnp.int32
    np.testing.assert_array_equal(drawn.min(0), [0, 0])
    np.testing.assert_array_equal(drawn.max(0), [3, 1])
    assert bool(CELLS.contains(np.asarray([3, 1])))
    assert not bool(CELLS.contains(np.asarray([3, 2])))


@pytest.mark.parametrize(
    "x",
    [
        np.zeros((3, 2), np.float32),
        np.zeros((2, 3), np.int32),
        np.full((2, 3), 2.6, np.float32),
        np.full((2, 3), np.nan, np.float32),
        np.float32(0),
    ],
    ids=["shape", "kind", "range", "nan", "scalar"],
)
def test_box_refuses(x):
    assert not bool(FIELD.contains(x))


def test_dict_refuses_missing_extra_and_wrong_members():
    member = BOTH.sample(jax.random.key(0))
    assert bool(BOTH.contains(member))
    assert not bool(BOTH.contains({"cell": member["cell"]}))
    assert not bool(BOTH.contains({**member, "more": 0}))
    assert not bool(BOTH.contains({**member, "cell": member["field"]}))
    assert not bool(BOTH.contains(member["cell"]))
