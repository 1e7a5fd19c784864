"""plumes/geometry: distances and boxes, coordinate by coordinate.

A reduction over an axis of two or three numbers keeps XLA from fusing a step into one loop over
the lanes, which then costs several times as much; sums written out do not.
"""

from functools import reduce
from operator import add, and_
from typing import Any

import jax
import jax.numpy as jnp


def distance(a: jax.Array, b: jax.Array) -> jax.Array:
    """float32[...]: Euclidean, between float32[..., d] and float32[..., d], which broadcast."""
    return jnp.sqrt(squared_distance(a, b))


def squared_distance(a: jax.Array, b: jax.Array) -> jax.Array:
    """float32[...]: the square of `distance`."""
    return reduce(add, (jnp.square(a[..., i] - b[..., i]) for i in range(a.shape[-1])))


def in_box(positions: jax.Array, low: Any, high: Any) -> jax.Array:
    """bool[...]: whether `low <= positions <= high` in each of d coordinates of float32[..., d].

    `low` and `high` are sequences of d numbers.
    """
    sides = zip(jnp.moveaxis(positions, -1, 0), low, high, strict=True)
    return reduce(and_, ((x >= least) & (x <= most) for x, least, most in sides))
