"""search/hit_row: a start in one row across the wind, where there are hits."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.base.errors import ValidationError, require
from plumejax.plumes.encounters import EncounterPlume
from plumejax.search.beliefs import require_encounters, require_one_source
from plumejax.search.first_hit import by_inversion
from plumejax.search.starts import may_start
from plumejax.search.state import Agent, Params


class HitRowParams(struct.PyTreeNode):
    """Numbers of a `HitRow`.

    Attributes:
      x: float32[], cells, a whole number: where the row across the wind is.
    """

    x: Any


@dataclass(frozen=True)
class HitRow:
    """A cell of the row of one x, as often as there is a hit: the start of Verano, Panizon, Celani
    2023, who take the row that is farthest downwind (the default).

    Only cells that are free and outside the goal disc are drawn. Nothing is said of the first hit,
    which is drawn as any other.

    Attributes:
      plume: the task's plume, of two dimensions and one source that stays.
    """

    plume: EncounterPlume

    def __post_init__(self) -> None:
        require_one_source(self.plume, 2)
        require(len(self.grid_size) == 2, "grid_size", self.grid_size, "(width, height)")

    @property
    def grid_size(self) -> tuple[int, ...]:
        """Cells along each coordinate."""
        return self.plume.grid_size

    def default_params(self) -> HitRowParams:
        return HitRowParams(x=np.float32(self.grid_size[0] - 1))

    def place(
        self, key: jax.Array, plume: Any, plume_state: Any, arena: Any, params: Params
    ) -> tuple[Any, Agent, None]:
        cells = self.cells(params)
        uniform = jax.random.uniform(key, (), jnp.float32)
        weights = self.weights(plume_state, arena, params).astype(jnp.float32)
        index = by_inversion(uniform, weights)
        return plume_state, Agent(cells[index], jnp.zeros((), jnp.float32)), None

    def cells(self, params: Params) -> jax.Array:
        """float32[height, 2], the places of the row."""
        y = jnp.arange(self.grid_size[1], dtype=jnp.float32)
        x = jnp.broadcast_to(jnp.asarray(params.start.x, jnp.float32), y.shape)
        return jnp.stack([x, y], axis=-1)

    def weights(self, plume_state: Any, arena: Any, params: Params) -> jax.Array:
        """float[height], the probability of a hit at each cell, 0 where no search may begin."""
        cells = self.cells(params)
        hit = hit_probability(self.plume, plume_state, cells, params.plume)
        sources = self.plume.sources(plume_state, params.plume)
        return jnp.where(may_start(cells, sources, arena, params), hit, 0.0)

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` if the row is not on the grid, or the plume not one of hits."""
        require_encounters("start", params)
        x, width = np.asarray(params.start.x), self.grid_size[0]
        whole = np.all((x >= 0) & (x < width) & (x == np.round(x)))
        require(whole, "start.x", params.start.x, f"a whole number in 0..{width - 1}")

    def validate_place(self, arena: Any, params: Params) -> None:
        """Raise `ValidationError` if there is no hit anywhere in the row."""
        swept = jax.tree.map(np.ndim, params.start) != jax.tree.map(np.ndim, self.default_params())
        source = np.asarray(params.plume.source)
        # A sweep has no one answer.
        if swept or source.ndim != 1 or any(map(np.ndim, jax.tree.leaves(params.plume.law))):
            return
        state = self.plume.start(jax.random.key(0), params.plume)
        if not np.any(self.weights(state, arena, params)):
            raise ValidationError(
                f"start.x = {params.start.x} is not allowed: it must be a row with hits somewhere"
                f" outside the goal disc, and there are none from the source at {source.tolist()}"
            )


def hit_probability(
    plume: EncounterPlume, plume_state: Any, places: jax.Array, params: Any
) -> jax.Array:
    """float[n]: how probable one hit or more is at `places` float32[n, d].

    `params` are the plume's numbers; it is computed in their dtype.
    """
    rate = plume.sample(plume_state, places, params).concentration
    return plume.law.counts(rate, 2)[1]
