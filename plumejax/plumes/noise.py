"""plumes/noise: several random numbers a particle from one random word.

A word of a JAX key costs more than all else that a particle does in a step. So each particle draws
one, from which a hash makes as many more as it needs.
"""

import jax
import jax.numpy as jnp
import numpy as np

from plumejax.plumes.particles import mix


def words(key: jax.Array, how_many: int, particles: int) -> jax.Array:
    """uint32[how_many, particles]: uniform words, of `particles` words that the key gives."""
    drawn = jax.random.bits(key, (particles,), jnp.uint32)
    apart = (k * 0x9E3779B9 % 2**32 for k in range(1, how_many))
    return jnp.stack([drawn, *(mix(drawn + jnp.uint32(offset)) for offset in apart)])


def uniform(words: jax.Array) -> jax.Array:
    """float32[...]: in (0, 1), never an end, of uint32[...]."""
    return ((words >> 9).astype(jnp.float32) + 0.5) * np.float32(2.0**-23)


def normal(words: jax.Array) -> jax.Array:
    """float32[...]: from N(0, 1), within 5.2, of uint32[...]."""
    return np.float32(np.sqrt(2)) * jax.lax.erf_inv(2 * uniform(words) - 1)


def exponential(words: jax.Array) -> jax.Array:
    """float32[...]: of mean 1, > 0, of uint32[...]."""
    return -jnp.log(uniform(words))


def sign(words: jax.Array) -> jax.Array:
    """float32[...]: -1 or 1, of uint32[...]."""
    return jnp.where(words >> 31 == 0, jnp.float32(1.0), jnp.float32(-1.0))
