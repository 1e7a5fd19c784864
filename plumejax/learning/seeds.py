"""learning/seeds: several trainings in one compiled call, shared out among the devices."""

from collections.abc import Callable
from math import gcd
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P


def keys(first: int, count: int) -> jax.Array:
    """Typed keys of the seeds `first`, `first + 1`, ..."""
    return jnp.stack([jax.random.key(first + k) for k in range(count)])


def each(run: Callable[..., Any]) -> Callable[..., Any]:
    """`run(one, *shared)`, pure, as a function of several, whose leaves lead with how many.

    On a CPU one after another, since there a product of matrices for each is slower than the
    products one by one; elsewhere side by side.
    """

    def all_of_them(some: Any, *shared: Any) -> Any:
        if jax.default_backend() == "cpu":
            return jax.lax.map(lambda one: run(one, *shared), some)
        return jax.vmap(lambda one: run(one, *shared))(some)

    return all_of_them


def side_by_side(run: Callable[..., Any], count: int) -> Callable[..., Any]:
    """`run(one, *shared)`, pure, as a function of `count` of them, whose leaves lead with `count`.

    Each device has its share of them and waits for none of the others. No number depends on that,
    but for rounding.
    """
    devices = gcd(count, jax.local_device_count())
    mesh = jax.make_mesh((devices,), ("seeds",), axis_types=(AxisType.Auto,))

    def spread(every: Any, *shared: Any) -> Any:
        return jax.shard_map(
            each(run),
            mesh=mesh,
            in_specs=(P("seeds"), *[P() for _ in shared]),
            out_specs=P("seeds"),
            check_vma=False,  # loops of a task may well start from constants
        )(every, *shared)

    return spread


def one_of(every: Any, number: int) -> Any:
    """Training `number` of several."""
    return jax.tree.map(lambda x: x[number], every)
