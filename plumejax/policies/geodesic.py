"""policies/geodesic: how far it is to the source round the obstacles, worked out on the host."""

from collections.abc import Iterable
from functools import reduce
from itertools import product
from operator import add
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.plumes.geometry import distance
from plumejax.search.endings import goal_radius
from plumejax.search.environment import PlumeSearch
from plumejax.search.motion import AxisMoves, Moves, Oriented, WindRelative
from plumejax.search.state import Params


class Geodesic(struct.PyTreeNode):
    """Distances to where the source is found, through free cells.

    Attributes:
      table: float32[..., height + 2, width + 2], of each cell's centre, with a border; more than
        anything else where there is no way.
      origin, spacing: float32[d], of the cells, as in `ObstacleBox`.
      source: float32[d].
      radius: float32[], within which the source is found.
    """

    table: jax.Array
    origin: jax.Array
    spacing: jax.Array
    source: jax.Array
    radius: jax.Array

    def distance(self, position: jax.Array) -> jax.Array:
        """float32[]: from a place, float32[>= d], by the centre of its cell or of one beside it, to
        which it is straight; of a place beside the source straight to that."""
        axes = np.arange(len(self.origin))
        place = position[axes]
        cell, goal = (
            jnp.floor((x - self.origin) / self.spacing + 0.5) for x in (place, self.source)
        )
        ways = []
        for step in _beside(len(axes)):
            centre = self.origin + (cell + step) * self.spacing
            index = (cell + step).astype(jnp.int32) + 1
            inside = [jnp.clip(i, 0, n - 1) for i, n in zip(index, self.table.T.shape, strict=True)]
            ways.append(self.table[tuple(reversed(inside))] + distance(place, centre))
        straight = jnp.maximum(distance(place, self.source) - self.radius, 0.0)
        apart = reduce(add, (jnp.abs(cell[i] - goal[i]) for i in axes))
        return jnp.where(apart <= 1, straight, reduce(jnp.minimum, ways))


def geodesic(env: PlumeSearch, params: Params) -> Geodesic | None:
    """The distances of a search whose arena has obstacles and whose source stays where it is in
    every episode; None of any other."""
    free = getattr(params.arena, "free", None)
    source = None if free is None else _fixed_source(env, params)
    if source is None:
        return None
    free = np.asarray(free)
    d = free.ndim
    origin = np.asarray(getattr(params.arena, "origin", np.zeros(d)), np.float32)
    spacing = np.asarray(getattr(params.arena, "spacing", np.ones(d)), np.float32)
    radius = np.float32(goal_radius(params.ending) or 0.0)
    index = np.indices(free.shape)[::-1]
    each = [o + i * s - x for o, i, s, x in zip(origin, index, spacing, source, strict=False)]
    straight = np.where(free, np.sqrt(sum(np.square(x) for x in each)), np.inf)
    found = straight <= np.maximum(radius, straight.min())
    lengths = shortest(
        free, np.where(found, np.maximum(straight - radius, 0), np.inf), _steps(env.motion, spacing)
    )
    known = np.isfinite(lengths)
    nowhere = 2 * lengths[known].max() + spacing.sum()
    table = np.pad(np.where(known, lengths, nowhere), 1, constant_values=nowhere)
    numbers = (table, origin, spacing, source[:d], radius)
    return Geodesic(*(jnp.asarray(x, jnp.float32) for x in numbers))


def shortest(
    free: np.ndarray, ends: np.ndarray, steps: Iterable[tuple[tuple[int, ...], float, bool]]
) -> np.ndarray:
    """float64, like `free`: the length of the shortest way through free cells that ends with one of
    `ends`, the lengths from there, infinite where it does not end.

    Args:
      free: bool[..., height, width].
      ends: float, of the same shape.
      steps: (offset, length, cuts) of each: how far it goes along each axis, `[z, y, x]`, and
        whether it may cut corners.
    """
    moves = [
        (offset, np.where(_open(free, offset, cuts), length, np.inf))
        for offset, length, cuts in steps
    ]
    now, before = np.asarray(ends, float), None
    while before is None or not np.array_equal(now, before):
        before = now
        for offset, length in moves:
            now = np.minimum(now, length + shifted(now, offset, np.inf))
    return now


def _open(free: np.ndarray, offset: tuple[int, ...], cuts: bool) -> np.ndarray:
    """bool, like `free`: whether a step is free, with all it passes if it may not cut corners."""
    passed = [(0,) * len(offset), offset] if cuts else product(*({0, o} for o in offset))
    return reduce(np.logical_and, (shifted(free, o, False) for o in passed))


def shifted(x: np.ndarray, offset: tuple[int, ...], outside: Any) -> np.ndarray:
    """`x[i + offset]` at every i; `outside` over the edge."""
    reach = max(map(abs, offset))
    padded = np.pad(x, reach, constant_values=outside)
    return padded[
        tuple(slice(reach + o, reach + o + n) for o, n in zip(offset, x.shape, strict=True))
    ]


def _steps(motion: Any, spacing: np.ndarray) -> list[tuple[tuple[int, ...], float, bool]]:
    """The steps of a motion from cell to cell: of one on the grid each counts one, of another its
    length."""
    while hasattr(motion, "of"):
        motion = motion.of
    if isinstance(motion, Moves):
        return [(way[::-1], 1.0, True) for way in motion.directions if any(way)]
    ways = [way for way in product((-1, 0, 1), repeat=len(spacing)) if any(way)]
    if isinstance(motion, AxisMoves | Oriented | WindRelative):
        ways = [way for way in ways if sum(map(abs, way)) == 1]
    return [(way, float(np.linalg.norm(way * spacing[::-1])), False) for way in ways]


def _fixed_source(env: PlumeSearch, params: Params) -> np.ndarray | None:
    """float32[d]; None if there are several, or one that is drawn or moves."""
    seen = []
    for seed in range(2):
        start_key, key = jax.random.split(jax.random.key(seed))
        state = env.reset_env(start_key, params).plume
        moved = env.plume.advance(key, state, params.plume)
        seen += [np.asarray(env.plume.sources(x, params.plume)) for x in (state, moved)]
    same = len(seen[0]) == 1 and all(np.array_equal(seen[0], x) for x in seen)
    return seen[0][0] if same else None


def _beside(dimensions: int) -> list[np.ndarray]:
    """float32[d] each: no step, and one to either side along each axis."""
    ways = product((-1, 0, 1), repeat=dimensions)
    return [np.asarray(way, np.float32) for way in ways if sum(map(abs, way)) <= 1]
