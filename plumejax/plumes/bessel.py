"""plumes/bessel: the one special function that plumes need and JAX lacks."""

import jax
import jax.numpy as jnp
import numpy as np

_NODES = 46


def scaled_k0(x: jax.Array) -> jax.Array:
    """float[...]: `e^x K_0(x)`, K_0 the modified Bessel function, of x >= 1e-6.

    The integral of `exp(-x (cosh t - 1))` over t >= 0 by the trapezoidal rule, which converges
    exponentially here, out to where the integrand has fallen by e^38. Unlike the usual polynomials
    it is exact in float64 too (to 1e-12 of its value), and so are its derivatives.
    """
    # How far depends on x, or the step would be too wide for the narrow peak of a large x.
    end = jax.lax.stop_gradient(jnp.arccosh(1 + 38 / x))
    step = end / _NODES
    shape = (-1,) + (1,) * jnp.ndim(x)
    halves = step[None] * jnp.asarray(np.arange(_NODES + 1) / 2, x.dtype).reshape(shape)
    powers = jnp.exp(-2 * x[None] * jnp.square(jnp.sinh(halves)))  # cosh t - 1 = 2 sinh^2(t / 2)
    return step * (jnp.sum(powers, axis=0) - 0.5)
