"""search/beliefs: sensors that count hits, and one that knows what they say of the source."""

from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.base.errors import require
from plumejax.base.spaces import Box
from plumejax.plumes.encounters import (
    EncounterParams,
    EncounterPlume,
    displacement_likelihoods,
    entropy,
    posterior,
    uniform_prior,
)
from plumejax.plumes.sources import Still
from plumejax.search.state import Agent, Params, Scene


class HitsParams(struct.PyTreeNode):
    """`Hits`, and a `Belief`, have no numbers of their own: they are those of the plume."""


@dataclass(frozen=True)
class Hits:
    """The hits of an encounter plume where the agent stands, float32[1], in 0..categories - 1.

    The last category means "or more". At the start of an episode it is what the start drew, if that
    is a `FirstHit`.

    Attributes:
      plume: the task's plume, with one source that stays.
      categories: H of the count, at least 2 (`encounters.num_hits`); a `Cosh` plume has 2.
    """

    plume: EncounterPlume
    categories: int = 2

    def __post_init__(self) -> None:
        require_one_source(self.plume, self.categories)

    @property
    def grid_size(self) -> tuple[int, ...]:
        """Cells along each coordinate."""
        return self.plume.grid_size

    def default_params(self) -> HitsParams:
        return HitsParams()

    def start(self, params: Params) -> Any:
        return ()

    def probes(self, agent: Agent, params: Params) -> jax.Array:
        return agent.position[None]

    def observe(
        self, key: jax.Array, state: Any, scene: Scene, params: Params
    ) -> tuple[jax.Array, Any]:
        mu = scene.air.concentration[0]
        return self._count(key, mu, scene.first)[None].astype(jnp.float32), state

    def space(self, params: Params) -> Box:
        return Box(0.0, np.float32(self.categories - 1), (1,))

    def hit(self, observation: jax.Array, params: Params) -> jax.Array | None:
        return observation[0] > 0

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` if the task's plume is not of encounters."""
        require_encounters("sensor", params)

    def _count(self, key: jax.Array, mu: jax.Array, first: Any) -> jax.Array:
        """int32[]: by inversion of one uniform number, unless the start drew it."""
        if first is not None:
            return jnp.asarray(first, jnp.int32)
        laws = self.plume.law.counts(mu, self.categories)
        uniform = jax.random.uniform(key, (), laws.dtype)
        return jnp.sum(uniform >= jnp.cumsum(laws)[:-1], dtype=jnp.int32)


class BeliefState(struct.PyTreeNode):
    """What a `Belief` keeps.

    Attributes:
      belief: float32[*grid], how probable it is that the source is in each cell, indexed by
        coordinate, `[x, y, z]`; sums to 1.
      entropy: float32[], bits, of the belief.
    """

    belief: jax.Array
    entropy: jax.Array


@dataclass(frozen=True)
class Belief(Hits):
    """Hits of an encounter plume where the agent stands, and the Bayesian belief about the source.

    A step draws a count from the law of the plume, and updates the belief: the source is not in the
    cell of the agent, and each other cell is weighed by the probability of the count if it were
    there (Vergassola, Villermaux, Shraiman 2007, Nature 445: 406). It begins uniform over the grid,
    with a count at the start. Once the source is found the belief is all in its cell.

    It is for motions from cell to cell: the place of the agent counts as the nearest one.

    Policies see the observation only: the belief is for rewards, pictures and tests, as far as
    `observes` does not show it. A count that the plume's numbers cannot explain changes nothing.

    The observation is float32[k]: of each of `observes`, "hits" the count, in 0..categories - 1, of
    which the last means "or more", "entropy" that of the belief, bits.

    Attributes: those of `Hits`, and
      observes: "hits", "entropy" or both, in that order of the observation.
    """

    observes: tuple[Literal["hits", "entropy"], ...] = ("hits",)

    def __post_init__(self) -> None:
        super().__post_init__()
        good = self.observes and set(self.observes) <= {"hits", "entropy"}
        require(good, "observes", self.observes, '"hits", "entropy" or both')

    def start(self, params: Params) -> BeliefState:
        cells = np.prod(self.grid_size)
        belief = jnp.full(self.grid_size, 1.0 / cells, jnp.float32)
        return BeliefState(belief, jnp.asarray(np.log2(cells), jnp.float32))

    def observe(
        self, key: jax.Array, state: BeliefState, scene: Scene, params: Params
    ) -> tuple[jax.Array, BeliefState]:
        hits, after = self._learned(key, state, scene, params)
        seen = {"hits": hits.astype(jnp.float32), "entropy": after.entropy}
        return jnp.stack([seen[name] for name in self.observes]), after

    def space(self, params: Params) -> Box:
        most = {"hits": np.float32(self.categories - 1), "entropy": self._most_bits()}
        high = np.asarray([most[name] for name in self.observes], np.float32)
        return Box(0.0, high, (len(self.observes),))

    def hit(self, observation: jax.Array, params: Params) -> jax.Array | None:
        if "hits" not in self.observes:
            return None
        return observation[self.observes.index("hits")] > 0

    def _learned(
        self, key: jax.Array, state: BeliefState, scene: Scene, params: Params
    ) -> tuple[jax.Array, BeliefState]:
        """`(count int32[], belief after it)`."""
        hits = self._count(key, scene.air.concentration[0], scene.first)
        belief = self._updated(state.belief, hits, scene.agent.position, params)
        source = scene.sources[0]
        # 1 where the uniform prior of who stands on the source is 0: in its cell.
        there = (uniform_prior(self.grid_size, source) == 0).astype(belief.dtype)
        belief = jnp.where(scene.found, there, belief)
        # Rounding must not lift it out of the space.
        return hits, BeliefState(belief, jnp.clip(entropy(belief), 0.0, self._most_bits()))

    def _most_bits(self) -> np.float32:
        return np.float32(np.log2(np.prod(self.grid_size)))

    def _updated(
        self, prior: jax.Array, hits: jax.Array, place: jax.Array, params: Params
    ) -> jax.Array:
        """float32[*grid]: the belief after `hits` at `place`."""
        table = displacement_likelihoods(self.plume, params.plume, self.categories)
        cell = jnp.round(place).astype(jnp.int32)
        corner = np.asarray(self.grid_size, np.int32) - np.int32(1) - cell
        first = (hits, *corner)
        likelihood = jax.lax.dynamic_slice(table, first, (1, *self.grid_size))[0]
        # Where the count is impossible by all that is believed, Bayes' rule says 0 / 0.
        possible = jnp.any(prior * likelihood > 0)
        return posterior(prior, jnp.where(possible, likelihood, 1.0))


RINGS = (1, 2, 3, 4, 6, 9, 13, 19, 28, 42, 63, 94)
"""Displacements at which the rings of a `BeliefAround` begin: each cell near the agent by itself,
farther away about half as many more in each."""


@dataclass(frozen=True)
class BeliefAround(Belief):
    """The belief of a `Belief` as the agent sees it from where it stands: how probable it is that
    the source is in each patch of cells, the agent's own in the middle; float32[patches].

    Along each coordinate cells are told apart by their displacement from the agent: 0 by itself,
    and on both sides in rings; patches are their product, in the order of `belief`. What is off the
    grid holds nothing, so the walls can be seen. Counts are not shown: they are in the belief.

    Attributes: those of `Belief`, `observes` aside, and
      rings: the displacement at which each ring begins, from 1, rising; a ring ends where the next
        begins, the last at the edge of the grid, beyond which rings are left out. With
        `tuple(range(1, n))` every cell is a patch.
    """

    rings: tuple[int, ...] = RINGS

    def __post_init__(self) -> None:
        super().__post_init__()
        good = self.rings and self.rings[0] == 1 and bool(np.all(np.diff(self.rings) > 0))
        require(good, "rings", self.rings, "displacements from 1, rising")

    def observe(
        self, key: jax.Array, state: BeliefState, scene: Scene, params: Params
    ) -> tuple[jax.Array, BeliefState]:
        _, after = self._learned(key, state, scene, params)
        seen = after.belief
        for axis, cells in enumerate(self.grid_size):
            away = jnp.arange(cells, dtype=jnp.float32)[None] - scene.agent.position[axis]
            first, last = self._patches(axis)[:, :, None]
            patch = ((away >= first) & (away < last)).astype(jnp.float32)
            seen = jnp.moveaxis(jnp.tensordot(patch, seen, (1, axis)), 0, axis)
        # Rounding must not lift it out of the space.
        return jnp.clip(seen.reshape(-1), 0.0, 1.0), after

    def space(self, params: Params) -> Box:
        sizes = [self._patches(axis).shape[1] for axis in range(len(self.grid_size))]
        return Box(0.0, 1.0, (int(np.prod(sizes)),))

    def hit(self, observation: jax.Array, params: Params) -> jax.Array | None:
        return None

    def _patches(self, axis: int) -> np.ndarray:
        """float32[2, 2 R + 1]: displacements at which patches begin, and before which they end."""
        ahead = [ring for ring in self.rings if ring < self.grid_size[axis]]
        edges = np.asarray([*ahead, self.grid_size[axis]], np.float32)
        edges = np.concatenate([1 - edges[::-1], edges])
        return np.stack([edges[:-1], edges[1:]])


def require_one_source(plume: EncounterPlume, categories: int) -> None:
    """Raise `ValidationError` unless counts say where the source is: one that stays, two kinds."""
    require(categories >= 2, "categories", categories, ">= 2")
    still = plume.num_sources == 1 and isinstance(plume.source_motion, Still)
    require(still, "plume", plume, "a plume of one source that stays")


def require_encounters(role: str, params: Params) -> None:
    """Raise `ValidationError` if the task's plume is not of encounters."""
    good = isinstance(params.plume, EncounterParams)
    name = type(params.plume).__name__
    require(good, f"{role}: numbers of the plume", name, "those of an EncounterPlume")
