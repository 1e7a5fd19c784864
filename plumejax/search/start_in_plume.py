"""search/start_in_plume: starts in a region that the plume decides: on a hit, at its puffs."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.base.errors import require
from plumejax.plumes.puffs import PuffParams
from plumejax.search.start_regions import Region, UniformBoxParams, in_box, require_box
from plumejax.search.state import Params


class OnHitParams(struct.PyTreeNode):
    """Numbers of `OnHit`.

    Attributes:
      low, high: float32[d], lengths of the plume.
      threshold: float32[], in the plume's unit, >= 0.
      heading: float32[], degrees, in [0, 360); unused where any heading is drawn.
    """

    low: Any
    high: Any
    threshold: Any
    heading: Any


@dataclass(frozen=True)
class OnHit(Region):
    """Uniform among the places of a box where the concentration is above `threshold`.

    Of `num_candidates` places the first that is allowed and above; if none is, the allowed one with
    the highest concentration.

    Attributes: those of `Region`.
    """

    num_candidates: int = 128

    def default_params(self) -> OnHitParams:
        return OnHitParams(
            low=np.zeros(self.dimensions, np.float32),
            high=np.ones(self.dimensions, np.float32),
            threshold=np.float32(1e-4),
            heading=np.float32(0.0),
        )

    def _draw(self, key: jax.Array, count: int, sources: jax.Array, params: Params) -> jax.Array:
        return in_box(key, (count, self.dimensions), params.start)

    def _choose(
        self, rank: jax.Array, places: jax.Array, plume: Any, plume_state: Any, params: Params
    ) -> jax.Array:
        concentration = plume.sample(plume_state, places, params.plume).concentration
        hit = concentration > params.start.threshold
        # What is not allowed comes after all that is, whose concentration is not below 0.
        worth = jnp.where(hit, jnp.inf, concentration)
        return jnp.argmax(jnp.where(rank == 2, worth, (rank - 2).astype(worth.dtype)))

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` if a number is not allowed."""
        super().validate(params)
        require_box(params.start)
        threshold = params.start.threshold
        require(np.all(np.asarray(threshold) >= 0), "start.threshold", threshold, ">= 0")


class PlumeQuantilesParams(struct.PyTreeNode):
    """Numbers of `PlumeQuantiles`.

    Attributes:
      lowest, highest: float32[], per cent of the puffs, 0 <= lowest <= highest <= 100.
      scatter: float32[], lengths of the plume, >= 0.
      heading: float32[], degrees, in [0, 360); unused where any heading is drawn.
    """

    lowest: Any
    highest: Any
    scatter: Any
    heading: Any


@dataclass(frozen=True)
class PlumeQuantiles(Region):
    """At the x of a puff drawn uniformly between two percentiles of the living puffs along x, and
    at its y plus a uniform number in -scatter..scatter; at the source while there are no puffs.

    For plumes that know their puffs (`puffs_along`). The percentiles are those of the paper on
    plume tracking (Singh, van Breugel, Rao, Brunton 2023); the scatter is ours.

    Attributes: those of `Region`.
    """

    asks = ("puffs_along",)

    def default_params(self) -> PlumeQuantilesParams:
        return PlumeQuantilesParams(
            lowest=np.float32(30.0),
            highest=np.float32(80.0),
            scatter=np.float32(0.5),
            heading=np.float32(0.0),
        )

    def _candidates(
        self, key: jax.Array, plume: Any, plume_state: Any, params: Params
    ) -> jax.Array:
        own = params.start
        uniform, aside = jax.random.uniform(key, (2, self.num_candidates), jnp.float32)
        percents = own.lowest + uniform * (own.highest - own.lowest)
        puffs = plume.puffs_along(plume_state, percents, params.plume)[:, : self.dimensions]
        return puffs.at[:, 1].add(own.scatter * (2 * aside - 1))

    def _draw(self, key: jax.Array, count: int, sources: jax.Array, params: Params) -> jax.Array:
        """float32[count, 2]: where puffs can be, and so an agent: `scatter` beyond their box."""
        _, puffs = _puff_numbers(params.plume)
        aside = np.asarray([0.0, params.start.scatter], np.float32)
        box = UniformBoxParams(puffs.low - aside, puffs.high + aside, heading=None)
        return in_box(key, (count, 2), box)

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` if a number is not allowed, or there will be no puffs."""
        super().validate(params)
        own = params.start
        low, high = np.asarray(own.lowest), np.asarray(own.highest)
        allowed = f"0 <= start.lowest <= start.highest, {high.tolist()}, <= 100 per cent"
        good = np.all((low >= 0) & (low <= high) & (high <= 100))
        require(good, "start.lowest", own.lowest, allowed)
        require(np.all(np.asarray(own.scatter) >= 0), "start.scatter", own.scatter, ">= 0 lengths")
        path, puffs = _puff_numbers(params.plume)
        for at, numbers in {"plume": params.plume, path: puffs}.items():
            for name in ("rate", "keep"):
                value = getattr(numbers, name, 1.0)
                some = np.all(np.asarray(value) > 0)
                require(some, f"{at}.{name}", value, "> 0, as starts are at puffs")

    def validate_place(self, arena: Any, params: Params) -> None:
        """Raise `ValidationError` if an agent may start nowhere in the box that puffs live in.

        Where in it they will be is not known on the host, nor how high in three dimensions.
        """
        _, puffs = _puff_numbers(params.plume)
        if self.dimensions == 2 and np.ndim(puffs.low) == np.ndim(puffs.high) == 1:
            super().validate_place(arena, params)


def _puff_numbers(plume: Any) -> tuple[str, PuffParams]:
    """`(path, numbers)` of the puffs of a plume, or of one that replays them."""
    replays = hasattr(plume, "plume")
    return ("plume.plume", plume.plume) if replays else ("plume", plume)
