"""serving/models: pydantic models of a task made of its spaces, and arrays as JSON."""

import base64
import binascii
import math
import sys
from functools import partial
from typing import Annotated, Any

import numpy as np
from pydantic import AfterValidator, BaseModel, Field, create_model

from plumejax.base.spaces import Box, Dict, Discrete, MultiDiscrete
from plumejax.serving.environment import Action, Frozen, Observation

LARGE = 256
"""An array of as many numbers is written in base64: as a list it takes ten times the time and four
times the room."""

DTYPES = ("bool", "int32", "uint32", "float32", "float64")
"""Of what is written in base64, little-endian."""

VALUE = "value"
"""The one field of a model whose space is no `Dict`."""


class Array(Frozen):
    """An array of numbers, row by row.

    Attributes:
      dtype: one of `DTYPES`.
      shape: of the array.
      data: base64 of its little-endian bytes.
    """

    dtype: str
    shape: tuple[Annotated[int, Field(strict=True, ge=0)], ...] = Field(max_length=8)
    data: str


def task_models(
    name: str, env: Any, params: Any, bases: tuple[type, type] = (Action, Observation)
) -> tuple[Any, Any]:
    """`(action, observation)`: models of the members of the task's spaces, subclasses of `bases`;
    `name` is part of theirs. A space that is no `Dict` becomes the field `value`."""
    action = _model(f"{name}Action", bases[0], bounded(env.action_space(params)))
    observation = _model(f"{name}Observation", bases[1], env.observation_space(params))
    return action, observation


def stacked_models(name: str, env: Any, params: Any) -> tuple[type[Action], type[Observation]]:
    """As `task_models` with a leading axis of lanes, every field an `Array`."""

    def arrays(name: str, base: type, space: Any) -> Any:
        fields: Any = dict.fromkeys(_fields(space), (Array, ...))
        return create_model(name, __base__=base, **fields)

    return (
        arrays(f"{name}Actions", Action, env.action_space(params)),
        arrays(f"{name}Observations", Observation, env.observation_space(params)),
    )


def bounded(space: Any) -> Any:
    """`space` with the bounds that it holds its members to: some spaces name bounds to sample in,
    and take all finite numbers."""
    if isinstance(space, Dict):
        return Dict({name: bounded(each) for name, each in space.spaces.items()})
    if not isinstance(space, Box) or not np.issubdtype(space.dtype, np.floating):
        return space
    high = np.broadcast_to(np.asarray(space.high, space.dtype), space.shape)
    beyond = np.where(np.isfinite(high), high + np.abs(high) + 1, high).astype(space.dtype)
    if np.all(beyond == high) or not bool(space.contains(beyond)):
        return space
    return Box(-np.inf, np.inf, tuple(space.shape), space.dtype)


def encoded(value: Any) -> Any:
    """A number or array, or a dict of them, as JSON has it."""
    if isinstance(value, dict):
        return {name: encoded(each) for name, each in value.items()}
    array = np.asarray(value)
    return array.tolist() if array.size < LARGE else packed(array)


def encoded_rows(rows: np.ndarray) -> list[Any]:
    """What `encoded` gives of each row."""
    if math.prod(rows.shape[1:]) < LARGE:
        return rows.tolist()
    return [packed(row) for row in rows]


def packed(value: Any) -> Any:
    """As `encoded`, each array an `Array` however small."""
    if isinstance(value, dict):
        return {name: packed(each) for name, each in value.items()}
    array = np.asarray(value)
    if array.dtype == np.int64:  # of Python's numbers; none of ours are
        array = array.astype(np.int32)
    small_end_first = array.astype(array.dtype.newbyteorder("<"), copy=False)
    data = base64.b64encode(small_end_first.tobytes()).decode()
    return {"dtype": array.dtype.name, "shape": list(array.shape), "data": data}


def to_numpy(array: Array) -> np.ndarray:
    """The array. Raises `ValueError` if dtype, shape and data do not go together."""
    if array.dtype not in DTYPES:
        raise ValueError(f"dtype {array.dtype!r} is not one of {', '.join(DTYPES)}")
    dtype = np.dtype(array.dtype).newbyteorder("<")
    try:
        data = base64.b64decode(array.data, validate=True)
    except binascii.Error as error:
        raise ValueError(f"data is not base64: {error}") from None
    size = math.prod(array.shape) * dtype.itemsize
    if len(data) != size:
        raise ValueError(f"data has {len(data)} bytes, and the array that it is of has {size}")
    return np.frombuffer(data, dtype).reshape(array.shape).astype(array.dtype)


def member(space: Any, action: BaseModel) -> Any:
    """The member of `space` that an action of the model says, in NumPy arrays."""
    names = _fields(space)
    found = {name: _array(each, getattr(action, name)) for name, each in names.items()}
    return found if isinstance(space, Dict) else found[VALUE]


def lanes_member(space: Any, action: BaseModel, n: int) -> Any:
    """n members of `space`, leading with n. Raises `ValueError` that says what is wrong."""
    found = {
        name: _fit(to_numpy(getattr(action, name)), bounded(each), (n, *each.shape))
        for name, each in _fields(space).items()
    }
    return found if isinstance(space, Dict) else found[VALUE]


def observed(observation: Any) -> dict[str, Any]:
    """An observation of a task, arrays or a dict of them, as the fields of its model."""
    return observation if isinstance(observation, dict) else {VALUE: observation}


def _fields(space: Any) -> dict[str, Any]:
    return dict(space.spaces) if isinstance(space, Dict) else {VALUE: space}


def _model(name: str, base: type[BaseModel], space: Any) -> Any:
    fields = {field: (_type(each), ...) for field, each in _fields(space).items()}
    return create_model(name, __base__=base, **fields)  # type: ignore[call-overload]


def _type(space: Any) -> Any:
    """The type of the members of a space that is no `Dict`."""
    if isinstance(space, Discrete):
        return _whole(0, space.n - 1)
    if isinstance(space, MultiDiscrete):
        nvec = np.asarray(space.nvec)
        return _nested(np.zeros_like(nvec), nvec - 1, _whole)
    if math.prod(space.shape) >= LARGE:
        return Annotated[Array, AfterValidator(partial(_fitting, space))]
    low, high = (np.broadcast_to(np.asarray(b), space.shape) for b in (space.low, space.high))
    dtype = np.dtype(space.dtype)
    return _nested(low, high, _whole if dtype.kind in "iu" else partial(_real, dtype))


def _whole(low: Any, high: Any) -> Any:
    return Annotated[int, Field(strict=True, ge=int(low), le=int(high))]


def _real(dtype: np.dtype, low: Any, high: Any) -> Any:
    most = float(np.finfo(dtype).max)
    # Of a number below the least of float32 JSON schemas make a number that is not finite.
    low, high = max(float(low), -most), min(float(high), most)
    bounds: dict[str, Any] = {}
    if low > -sys.float_info.max:
        bounds["ge"] = low
    if high < sys.float_info.max:
        bounds["le"] = high
    return Annotated[float, Field(strict=True, allow_inf_nan=False, **bounds)]


def _nested(low: np.ndarray, high: np.ndarray, scalar: Any) -> Any:
    """Tuples within tuples, of the shape of the bounds."""
    if low.ndim == 0:
        return scalar(low, high)
    n = len(low)
    if n and np.all(low == low[:1]) and np.all(high == high[:1]):
        row = _nested(low[0], high[0], scalar)
        return Annotated[
            tuple[row, ...],  # type: ignore[valid-type]
            Field(min_length=n, max_length=n),
        ]
    return tuple[tuple(_nested(*bounds, scalar) for bounds in zip(low, high, strict=True))]  # type: ignore[misc]


def _array(space: Any, value: Any) -> np.ndarray:
    if isinstance(value, Array):
        return to_numpy(value)
    return np.asarray(value, space.dtype)


def _fitting(space: Any, array: Array) -> Array:
    _fit(to_numpy(array), space, tuple(space.shape))
    return array


def _fit(array: np.ndarray, space: Any, shape: tuple[int, ...]) -> np.ndarray:
    """`array`, if it is of the shape and within the bounds of the space."""
    dtype = np.dtype(space.dtype)
    if array.shape != shape or array.dtype.kind != dtype.kind:
        raise ValueError(f"it is {array.dtype}{array.shape}, and should be {dtype}{shape}")
    low, high = _bounds(space)
    if not np.all(np.isfinite(array)) or not np.all((array >= low) & (array <= high)):
        raise ValueError("a number is out of bounds")
    return array.astype(dtype)


def _bounds(space: Any) -> tuple[Any, Any]:
    if isinstance(space, Discrete):
        return 0, space.n - 1
    if isinstance(space, MultiDiscrete):
        return 0, np.asarray(space.nvec) - 1
    return np.asarray(space.low), np.asarray(space.high)
