"""search/first_hit: a search that begins with a hit, and a source drawn from what the hit says."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.base.errors import require
from plumejax.plumes.encounters import (
    EncounterPlume,
    likelihoods,
    posterior,
    uniform_prior,
)
from plumejax.search.beliefs import require_encounters, require_one_source
from plumejax.search.state import Agent, Params


class FirstHitParams(struct.PyTreeNode):
    """Numbers of a `FirstHit` start.

    Attributes:
      position: float32[d], cells, where the agent starts; whole numbers.
      counts: float32[H - 1], how probable it is that the first count is 1, 2, ..., H - 1; sums to
        1 (`encounters.first_hit_probabilities`).
    """

    position: Any
    counts: Any


@dataclass(frozen=True)
class FirstHit:
    """Always the same place; first a count of hits is drawn, then the source from the posterior.

    The prior of the source is uniform over all cells but the agent's (Loisy and Eloy 2022,
    Proceedings of the Royal Society A 478: 20220118). The count is the first observation.

    Attributes:
      plume: the task's plume, with one source that stays.
      categories: H of the count, at least 2.
    """

    plume: EncounterPlume
    categories: int = 2

    def __post_init__(self) -> None:
        require_one_source(self.plume, self.categories)

    @property
    def grid_size(self) -> tuple[int, ...]:
        """Cells along each coordinate."""
        return self.plume.grid_size

    def default_params(self) -> FirstHitParams:
        counts = np.zeros(self.categories - 1, np.float32)
        counts[0] = 1.0
        middle = np.asarray([n // 2 for n in self.grid_size], np.float32)
        return FirstHitParams(position=middle, counts=counts)

    def place(
        self, key: jax.Array, plume: Any, plume_state: Any, arena: Any, params: Params
    ) -> tuple[Any, Agent, jax.Array]:
        """The third value is the count, int32[]."""
        own = params.start
        place = jnp.asarray(own.position, jnp.float32)
        count, cell = jax.random.uniform(key, (2,), jnp.float32)
        first = 1 + by_inversion(count, jnp.asarray(own.counts, jnp.float32))
        each = likelihoods(self.plume, params.plume, place, self.categories)
        belief = posterior(uniform_prior(self.grid_size, place), each[first])
        index = by_inversion(cell, belief.ravel())
        source = jnp.stack(jnp.unravel_index(index, self.grid_size)).astype(plume_state.dtype)
        heading = jnp.zeros((), jnp.float32)
        return source.reshape(plume_state.shape), Agent(place, heading), first

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` if a number is not allowed, or the plume not one of hits."""
        require_encounters("start", params)
        own = params.start
        place, size = np.asarray(own.position), np.asarray(self.grid_size)
        whole = np.all((place >= 0) & (place < size) & (place == np.round(place)))
        require(whole, "start.position", own.position, f"a cell of the grid {self.grid_size}")
        counts = np.asarray(own.counts)
        good = bool(np.all(counts >= 0)) and np.allclose(counts.sum(axis=-1), 1, atol=1e-4)
        require(good, "start.counts", own.counts, ">= 0 with a sum of 1")


def by_inversion(uniform: jax.Array, law: jax.Array) -> jax.Array:
    """int32[]: an index drawn from float32[n] by a number in [0, 1); never one of probability 0."""
    upto = jnp.cumsum(law)
    return jnp.sum(uniform * upto[-1] >= upto, dtype=jnp.int32).clip(0, len(law) - 1)
