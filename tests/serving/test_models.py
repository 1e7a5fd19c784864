"""tests/serving/test_models: models made of spaces hold their members, and nothing else."""

import json
from types import SimpleNamespace

import jax
import numpy as np
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

import plumejax
from plumejax.arms.environment import Finite
from plumejax.base.spaces import Box, MultiDiscrete
from plumejax.serving import models
from plumejax.serving.models import Array, encoded, member, packed, task_models, to_numpy


@pytest.mark.slow
@pytest.mark.parametrize(
    "task", ["PlumeSearch-v0", "PlumeSearchLocal-v0", "Fly-Gaussian-v0", "TwoArm-Lift-v0"]
)
def test_members_go_there_and_back(task):
    env, params = plumejax.make(task)
    action, observation = task_models(task, env, params)
    space = env.action_space(params)
    for seed in range(3):
        drawn = space.sample(jax.random.key(seed))
        sent = action.model_validate_json(json.dumps({"value": encoded(drawn)}))
        back = member(space, sent)
        np.testing.assert_array_equal(back, drawn)
        assert back.dtype == space.dtype
    key = jax.random.key(0)
    seen = models.observed(encoded(env.reset(key, params)[0]))
    assert observation.model_validate(seen).model_dump(exclude={"done", "reward", "metadata"})
    with pytest.raises(pydantic.ValidationError, match="frozen"):
        observation.model_validate(seen).done = True


def acting(space):
    """The model of its members."""
    task = SimpleNamespace(action_space=lambda _: space, observation_space=lambda _: space)
    return task_models("Made", task, None)[0]


def test_bounds_are_those_of_the_space():
    action = acting(Box(0.0, 1.0, (2,)))
    assert action(value=[0, 1.0])
    for wrong in ([0, 1.1], [-0.1, 0], [0], [0, 0, 0], [0, float("nan")], [0, True], [0, "1"], 0):
        with pytest.raises(pydantic.ValidationError):
            action(value=wrong)
    with pytest.raises(pydantic.ValidationError):
        action(value=[0, 1], more=1)
    action = acting(Box(np.float32([0, -1]), np.float32([1, 0]), (2,)))
    assert action(value=[1, -1])
    with pytest.raises(pydantic.ValidationError):
        action(value=[-1, 1])
    # What names bounds to sample in and takes all finite numbers, as two arms do.
    action = acting(Finite(0.0, 1.0, (2, 1), np.float32))
    assert action(value=[[9], [-9]])
    for wrong in ([[1e39], [0]], [[float("inf")], [0]], [[0]]):
        with pytest.raises(pydantic.ValidationError):
            action(value=wrong)
    action = acting(MultiDiscrete((2, 3)))
    assert action(value=[1, 2])
    for wrong in ([2, 2], [1, 3], [1], [1, 1.0]):
        with pytest.raises(pydantic.ValidationError):
            action(value=wrong)
    action = acting(Box(0.0, 1.0, (20, 20)))
    assert action(value=packed(np.ones((20, 20), np.float32)))
    for wrong in (np.full((20, 20), 2, np.float32), np.ones((20, 19), np.float32)):
        with pytest.raises(pydantic.ValidationError):
            action(value=packed(wrong))


DTYPES = st.sampled_from(models.DTYPES).map(np.dtype)


@settings(max_examples=30)
@given(DTYPES.flatmap(lambda dtype: arrays(dtype, array_shapes(min_dims=0, max_side=5))))
def test_arrays_go_there_and_back_bit_by_bit(array):
    back = to_numpy(Array.model_validate_json(json.dumps(packed(array))))
    assert (back.dtype, back.shape) == (array.dtype, array.shape)
    assert back.tobytes() == array.tobytes()


@settings(max_examples=30)
@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_float32_is_exact_in_json(number):
    text = json.dumps(encoded(np.float32([number])))
    assert np.float32(json.loads(text)).tobytes() == np.float32([number]).tobytes()


@pytest.mark.parametrize(
    "wrong",
    [
        {"dtype": "object", "shape": [1], "data": "AAAAAAAAAAA="},
        {"dtype": "float16", "shape": [1], "data": "AAA="},
        {"dtype": "int32", "shape": [2], "data": "AAAAAA=="},
        {"dtype": "int32", "shape": [1], "data": "AAAA*AA=="},
        {"dtype": "int32", "shape": [2**40, 2**40], "data": ""},
    ],
)
def test_an_array_that_is_none(wrong):
    with pytest.raises(ValueError, match=r"dtype|data"):
        to_numpy(Array.model_validate(wrong))
