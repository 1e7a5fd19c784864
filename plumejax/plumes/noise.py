"""plumes/noise: random numbers for particles, few random words a particle.

A word of a JAX key costs more than all else that a particle does in a step. So three numbers of a
walk share one (`walk`), or each particle draws one, from which a hash makes as many more as it
needs (`words`).
"""

import jax
import jax.numpy as jnp
import numpy as np


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


def walk(key: jax.Array, dimensions: int, slots: int) -> jax.Array:
    """float32[d, N] of mean 0 and variance 1, independent: the noise of one step of a random walk.

    Each is a binomial number of ten fair bits, three of them to a random word: on a CPU the words
    and the inverse error function of normal numbers would cost six times as much, and be most of
    what a step costs. Mean and variance are exact and the kurtosis is 2.8, so a walk of this noise
    is of the same (weak) order in dt as one of normal noise, and normal after a few steps.
    """
    total = dimensions * slots
    words = jax.random.bits(key, (-(-total // 3),), jnp.uint32)
    fields = jnp.concatenate([(words >> shift) & jnp.uint32(1023) for shift in (0, 10, 20)])
    ones = jax.lax.population_count(fields[:total]).astype(jnp.float32)
    return ((ones - 5) * np.float32(1 / np.sqrt(2.5))).reshape(dimensions, slots)


def mix(word: jax.Array) -> jax.Array:
    """uint32: every bit depends on every bit (the finaliser of MurmurHash3, Appleby, public)."""
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        word = (word ^ (word >> shift)) * jnp.uint32(factor)
    return word ^ (word >> 16)
