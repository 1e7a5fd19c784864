"""learning/distributions: the two action distributions, Categorical and diagonal Gaussian."""

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct


class Categorical(struct.PyTreeNode):
    """Over 0..n-1; `logits` float32[..., n], unnormalised."""

    logits: jax.Array

    def sample(self, key: jax.Array) -> jax.Array:
        """int32[...]; the key is consumed."""
        return jax.random.categorical(key, self.logits).astype(jnp.int32)

    def mode(self) -> jax.Array:
        """int32[...], the likeliest."""
        return jnp.argmax(self.logits, axis=-1).astype(jnp.int32)

    def log_prob(self, action: jax.Array) -> jax.Array:
        """float32[...] of int32[...]."""
        log_p = jax.nn.log_softmax(self.logits)
        return jnp.take_along_axis(log_p, action[..., None], axis=-1)[..., 0]

    def entropy(self) -> jax.Array:
        """float32[...], nats."""
        log_p = jax.nn.log_softmax(self.logits)
        return -jnp.sum(jnp.exp(log_p) * log_p, axis=-1)


class Gaussian(struct.PyTreeNode):
    """Over R^d with independent components; `mean` and `log_std` float32[..., d]."""

    mean: jax.Array
    log_std: jax.Array

    def sample(self, key: jax.Array) -> jax.Array:
        """float32[..., d]; the key is consumed."""
        noise = jax.random.normal(key, self.mean.shape, self.mean.dtype)
        return self.mean + jnp.exp(self.log_std) * noise

    def mode(self) -> jax.Array:
        """float32[..., d], the mean."""
        return self.mean

    def log_prob(self, action: jax.Array) -> jax.Array:
        """float32[...] of float32[..., d]."""
        z = (action - self.mean) * jnp.exp(-self.log_std)
        constant = jnp.asarray(0.5 * np.log(2.0 * np.pi), z.dtype)
        return -jnp.sum(jnp.square(z) / 2 + self.log_std + constant, axis=-1)

    def entropy(self) -> jax.Array:
        """float32[...], nats."""
        constant = jnp.asarray(0.5 * np.log(2.0 * np.pi * np.e), self.log_std.dtype)
        return jnp.sum(self.log_std + constant, axis=-1)
