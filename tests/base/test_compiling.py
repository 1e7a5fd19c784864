"""tests/base/test_compiling: what is compiled for one class is not run for another."""

import jax
import jax.numpy as jnp
from flax import struct

from plumejax.base.compiling import jit_by_class


class First(struct.PyTreeNode):
    x: jax.Array


class Second(struct.PyTreeNode):
    x: jax.Array


@jit_by_class(static=("times",), donate=("total",))
def name_of(thing, total, times):
    """Which class it was compiled for."""
    first = type(thing) is First
    return (total + (1.0 if first else 2.0)) * times


def test_classes_that_hold_alike_are_told_apart():
    # JAX alone mistakes one for the other in a few of these rounds, as their hashes happen to be.
    for _ in range(300):
        name_of = jit_by_class()(lambda thing: 1 if type(thing) is First else 2)
        other = type("Other", (struct.PyTreeNode,), {"__annotations__": {"x": jax.Array}})
        assert int(name_of(First(x=1.0))) == 1
        assert int(name_of(other(x=1.0))) == 2


def test_static_and_donated_arguments_are_found_by_name_and_by_place():
    total = jnp.zeros(3)
    after = name_of(First(x=1.0), total, 3)
    assert total.is_deleted()
    again = name_of(times=3, total=jnp.zeros(3), thing=Second(x=1.0))
    assert after.tolist() == [3.0] * 3
    assert again.tolist() == [6.0] * 3
    assert name_of.__doc__ == "Which class it was compiled for."
