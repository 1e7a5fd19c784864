"""plumes/particles: puffs that are born, move, age and are gone, in arrays of a fixed size.

A pool is a ring of N slots. The puff with birth number k lies in slot k mod N for all its life, so
a birth writes where the ring stands and nothing is searched, sorted or moved. A birth whose slot
is still taken by the puff N births ago does not happen: the pool is full.
"""

from collections.abc import Callable
from math import factorial
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.plumes import noise

State = TypeVar("State")

MOST_BIRTHS = 32
"""Births in one step are counted up to here."""

MOST_MEAN_BIRTHS = 8.0
"""Above this mean number of births a step, `MOST_BIRTHS` would cut off a visible tail."""


class Particles(struct.PyTreeNode):
    """N puffs, coordinates first, so that each coordinate is one row of numbers.

    Attributes:
      position: float32[d, N], lengths of the plume.
      age: float32[N], seconds since birth.
      alive: bool[N], False: the slot is empty and its other numbers mean nothing.
      number: uint32[N], birth number of the puff in the slot.
      born: uint32[], births so far, and so the number of the next.
    """

    position: jax.Array
    age: jax.Array
    alive: jax.Array
    number: jax.Array
    born: jax.Array


def empty(slots: int, dimensions: int) -> Particles:
    """A pool without puffs."""
    return Particles(
        position=jnp.zeros((dimensions, slots), jnp.float32),
        age=jnp.zeros(slots, jnp.float32),
        alive=jnp.zeros(slots, bool),
        number=jnp.zeros(slots, jnp.uint32),
        born=jnp.zeros((), jnp.uint32),
    )


def poisson_count(key: jax.Array, mean: Any) -> jax.Array:
    """int32[]: a Poisson number of mean float32[] in 0..`MOST_MEAN_BIRTHS`.

    By inversion of one uniform number, exact to its 2^-23; the tail beyond `MOST_BIRTHS` (less
    than 1e-10) is cut off. `jax.random.poisson` loops, and costs more than a step.
    """
    mean = jnp.asarray(mean, jnp.float32)
    orders = np.arange(MOST_BIRTHS, dtype=np.float32)
    per_order = np.asarray([1.0 / factorial(k) for k in range(MOST_BIRTHS)], np.float32)
    # The first power by hand: the gradient of 0^0 is not a number.
    powers = jnp.concatenate([jnp.ones(1, jnp.float32), mean ** orders[1:]])
    cumulated = jnp.cumsum(jnp.exp(-mean) * powers * per_order)
    # The sum rounds to a little more or less than 1; less would let a draw pass all of it.
    uniform = jax.random.uniform(key, (), jnp.float32) * cumulated[-1]
    return jnp.sum(uniform >= cumulated, dtype=jnp.int32)


def release(
    key: jax.Array, particles: Particles, count: Any, sources: jax.Array
) -> tuple[Particles, jax.Array]:
    """`count` int32[] births at `sources` float32[S, d], each at one drawn uniformly.

    Returns the pool and `new` bool[N], the slots of the newborn. The key is used only where there
    are several sources. So S sources of rate q each are one stream of rate S q.
    """
    slots = particles.age.shape[0]
    first = (particles.born % jnp.uint32(slots)).astype(jnp.int32)
    # The how many-th birth a slot would take; a comparison, since CPUs have no vector remainder.
    order = jnp.arange(slots, dtype=jnp.int32) - first
    order = jnp.where(order < 0, order + slots, order)
    new = (order < count) & ~particles.alive
    if len(sources) == 1:
        places = sources[0][:, None]
    else:
        places = sources.T[:, jax.random.randint(key, (slots,), 0, len(sources))]
    pool = particles.replace(
        position=jnp.where(new[None], places, particles.position),
        age=jnp.where(new, 0.0, particles.age),
        alive=particles.alive | new,
        number=jnp.where(new, particles.born + order.astype(jnp.uint32), particles.number),
        born=particles.born + jnp.asarray(count).astype(jnp.uint32),
    )
    return pool, new


def repeat(
    step: Callable[[jax.Array, State], State], key: jax.Array, state: State, times: int
) -> State:
    """`state` after `times` calls of `step(key, state)`, each with a key of its own."""
    if times == 1:
        return step(key, state)
    keys = jax.random.split(key, times)
    return jax.lax.scan(lambda state, key: (step(key, state), None), state, keys)[0]


def thin(particles: Particles, keep: Any, salt: jax.Array) -> Particles:
    """The pool with a fraction `keep` float32[] of its puffs, chosen for life.

    Which ones is a hash of birth number and `salt` uint32[]: puffs of a thinned Poisson plume are a
    Poisson plume, and another salt chooses others.
    """
    word = noise.mix(particles.number ^ noise.mix(salt))
    chosen = (word >> 8).astype(jnp.float32) * np.float32(2.0**-24) < keep
    return particles.replace(alive=particles.alive & chosen)
