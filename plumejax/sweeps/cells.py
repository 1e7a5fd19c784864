"""sweeps/cells: the episodes of many cells side by side: each lane has the numbers of its cell.

A lane whose episode has ended takes the next one, of whichever cell: none waits for the slowest
cell. Only the numbers that differ are kept in each lane; all others, banks and movies among them,
are shared. So one program serves every value, and the memory is that of the lanes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from plumejax.base.environment import Environment
from plumejax.evaluation.episodes import Episode, Lane, Numbers, Outcomes


class Table(NamedTuple):
    """Of `Cells`: the numbers of all cells.

    Attributes:
      shared: `(policy, params)` of the first cell.
      varied: of each leaf that differs, its values, leading with the cells.
      keys: typed keys, one a cell.
      episodes: int32[], of each cell.
    """

    shared: Any
    varied: tuple[Any, ...]
    keys: jax.Array
    episodes: Any


class CellLane(NamedTuple):
    """A lane: `own` are its cell's values of the leaves that differ."""

    own: tuple[Any, ...]
    lane: Lane


@dataclass(frozen=True)
class Cells:
    """A `lanes.Game`: game i is episode `i % episodes` of cell `i // episodes`.

    Attributes:
      env: the task.
      which: of the leaves of `(policy, params)` those that differ between cells.
    """

    env: Environment
    which: tuple[int, ...]

    def begin(self, table: Table, number: jax.Array) -> CellLane:
        episodes = jnp.asarray(table.episodes).astype(number.dtype)
        cell = number // episodes
        own = tuple(jnp.asarray(values)[cell] for values in table.varied)
        numbers = self._numbers(table, own, table.keys[cell])
        return CellLane(own, Episode(self.env).begin(numbers, number % episodes))

    def step(self, table: Table, lane: CellLane) -> CellLane:
        # The key of the episodes is not asked for after they have begun.
        numbers = self._numbers(table, lane.own, lane.lane.key)
        return lane._replace(lane=Episode(self.env).step(numbers, lane.lane))

    def over(self, table: Table, lane: CellLane) -> jax.Array:
        numbers = self._numbers(table, lane.own, lane.lane.key)
        return Episode(self.env).over(numbers, lane.lane)

    def view(self, lane: CellLane) -> Outcomes:
        return Episode(self.env).view(lane.lane)

    def _numbers(self, table: Table, own: tuple[Any, ...], key: jax.Array) -> Numbers:
        leaves, structure = jax.tree.flatten(table.shared)
        for place, value in zip(self.which, own, strict=True):
            leaves[place] = value
        policy, params = jax.tree.unflatten(structure, leaves)
        return Numbers(policy, key, params)


def differing(trees: Sequence[Any]) -> tuple[int, ...]:
    """Which leaves of pytrees of one structure are not the same in all of them."""
    leaves = [jax.tree.leaves(tree) for tree in trees]
    return tuple(i for i in range(len(leaves[0])) if _differ([each[i] for each in leaves]))


def tabulated(trees: Sequence[Any], which: tuple[int, ...]) -> tuple[Any, tuple[np.ndarray, ...]]:
    """`(shared, varied)` of pytrees of one structure: the first tree, and the values of the leaves
    `which`, leading with the trees."""
    leaves = [jax.tree.leaves(tree) for tree in trees]
    return trees[0], tuple(np.stack([np.asarray(each[i]) for each in leaves]) for i in which)


def _differ(values: list[Any]) -> bool:
    first = values[0]
    return any(x is not first and not np.array_equal(np.asarray(x), first) for x in values[1:])
