"""search/headings: degrees counter-clockwise from +x, as vectors and frames."""

import jax
import jax.numpy as jnp


def direction(heading: jax.Array) -> jax.Array:
    """float32[2]: the unit vector along `heading`, float32[] degrees."""
    angle = jnp.deg2rad(heading)
    return jnp.where(jnp.arange(2) == 0, jnp.cos(angle), jnp.sin(angle))


def in_circle(degrees: jax.Array) -> jax.Array:
    """float32[]: the same angle in [0, 360)."""
    angle = jnp.mod(degrees, 360.0)
    # The remainder of a tiny negative angle rounds to 360 itself.
    return jnp.where(angle < 360.0, angle, jnp.zeros_like(angle))


def ahead_and_left(way: jax.Array, heading: jax.Array) -> jax.Array:
    """float32[d]: `way` float32[d] in the frame of the heading: ahead, to the left, and up."""
    cos, sin = direction(heading)
    flat = jnp.stack([cos * way[0] + sin * way[1], cos * way[1] - sin * way[0]])
    return jnp.concatenate([flat, way[2:]])
