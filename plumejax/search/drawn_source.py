"""search/drawn_source: a start that draws where the source is, and then places the agent."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.base.errors import ComponentError, ValidationError, require, within
from plumejax.plumes.puffs import PuffState
from plumejax.plumes.sources import Moving
from plumejax.search.components import validate_part
from plumejax.search.state import Agent, Params


class DrawnSourceParams(struct.PyTreeNode):
    """Numbers of a `DrawnSource`.

    Attributes:
      of: those of the start of the agent.
      low, high: float32[d], lengths of the plume, the box that the source is drawn in.
    """

    of: Any
    low: Any
    high: Any


@dataclass(frozen=True)
class DrawnSource:
    """Draws the plume's one source uniformly in a box, then places the agent by `of`.

    For plumes that keep their source in their state: Gaussian ones, those of encounters, and
    puffs. Puffs that are already there are moved along with their source, which is the plume that
    it would have made if the wind is the same everywhere.

    Attributes:
      of: any start.
      dimensions: d of the box; a further coordinate of the source stays what it was.
      whole: whether the source is put in the middle of a cell, a place of whole numbers.
    """

    of: Any
    dimensions: int = 2
    whole: bool = False

    def default_params(self) -> DrawnSourceParams:
        low, high = np.zeros(self.dimensions, np.float32), np.ones(self.dimensions, np.float32)
        return DrawnSourceParams(of=self.of.default_params(), low=low, high=high)

    def place(
        self, key: jax.Array, plume: Any, plume_state: Any, arena: Any, params: Params
    ) -> tuple[Any, Agent, Any]:
        source_key, key = jax.random.split(key)
        own = params.start
        plume_state = with_source(plume_state, self._draw(source_key, own))
        return self.of.place(key, plume, plume_state, arena, params.replace(start=own.of))

    def _draw(self, key: jax.Array, own: DrawnSourceParams) -> jax.Array:
        low, high = jnp.asarray(own.low, jnp.float32), jnp.asarray(own.high, jnp.float32)
        uniform = jax.random.uniform(key, (self.dimensions,), jnp.float32)
        if not self.whole:
            return low + uniform * (high - low)
        low, high = jnp.ceil(low), jnp.floor(high)
        return jnp.minimum(low + jnp.floor(uniform * (high - low + 1)), high)

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` if the box is empty or `of` refuses its numbers."""
        low, high = np.asarray(params.start.low), np.asarray(params.start.high)
        least, most = (np.ceil(low), np.floor(high)) if self.whole else (low, high)
        cell = ", with a cell between" if self.whole else ""
        allowed = f"not above start.high, {high.tolist()}{cell}"
        require(np.all(least <= most), "start.low", low, allowed)
        validate_part("start", "of", self.of, params.replace(start=params.start.of))

    def validate_source(self, plume: Any, params: Params) -> None:
        """Raise `ValidationError` if the plume refuses a source at a corner of the box."""
        if not hasattr(plume, "validate"):
            return
        for name, moved in self._corners(params).items():
            try:
                plume.validate(moved.plume)
            except ValidationError as error:
                raise ValidationError(f"start.{name}: as a place of the source, {error}") from None

    def validate_place(self, arena: Any, params: Params) -> None:
        """Raise `ValidationError` if a corner of the box leaves `of` no place."""
        if hasattr(self.of, "validate_place"):
            for moved in self._corners(params).values():
                with within("start", "of"):
                    self.of.validate_place(arena, moved.replace(start=params.start.of))

    def _corners(self, params: Params) -> dict[str, Params]:
        """The numbers with the source at `low` and at `high`, by these names.

        Of a plume without one source, or a sweep, there are none: it has no one answer.
        """
        own, source = params.start, np.asarray(getattr(params.plume, "source", 0.0))
        if source.ndim != 1 or np.ndim(own.low) != 1 or np.ndim(own.high) != 1:
            return {}
        there = {
            name: np.concatenate([np.asarray(getattr(own, name)), source[self.dimensions :]])
            for name in ("low", "high")
        }
        return {
            name: params.replace(plume=params.plume.replace(source=x.astype(np.float32)))
            for name, x in there.items()
        }


def with_source(plume_state: Any, source: jax.Array) -> Any:
    """The state of a plume whose one source is at `source` float32[d]; see `DrawnSource`."""
    if isinstance(plume_state, PuffState):
        sources = with_source(plume_state.sources, source)
        shift = (_position(sources) - _position(plume_state.sources)).reshape(-1, 1)
        puffs = plume_state.particles
        puffs = puffs.replace(position=puffs.position + shift)
        return plume_state.replace(sources=sources, particles=puffs)
    if isinstance(plume_state, Moving):
        return plume_state.replace(position=with_source(plume_state.position, source))
    good = isinstance(plume_state, jax.Array) and plume_state.shape[:-1] in ((), (1,))
    if not good:
        kind = type(plume_state).__name__
        raise ComponentError(f"DrawnSource: a plume whose state is {kind} has no one source there")
    return plume_state.at[..., : len(source)].set(source)


def _position(sources: Any) -> jax.Array:
    return sources.position if isinstance(sources, Moving) else sources
