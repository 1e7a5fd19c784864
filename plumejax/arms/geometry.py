"""arms/geometry: lengths with a gradient everywhere, and numbers brought into [0, 1]."""

from typing import Any

import jax
import jax.numpy as jnp


def length(vector: jax.Array) -> jax.Array:
    """float[...]: of float[..., n]. At 0 its gradient is 0."""
    square = jnp.sum(jnp.square(vector), axis=-1)
    some = square > 0
    return jnp.where(some, jnp.sqrt(jnp.where(some, square, jnp.ones_like(square))), square)


def unit(x: Any) -> jax.Array:
    """float[...]: x within [0, 1]."""
    return jnp.clip(x, 0.0, 1.0)


def nearness(distance: jax.Array, scale: Any, within: Any = 0.0) -> jax.Array:
    """float[...], in [0, 1]: 1 up to `within`, 0 `scale` farther off, straight between."""
    return unit(1 - (distance - within) / scale)
