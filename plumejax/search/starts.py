"""search/starts: where an episode begins."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.base.errors import ValidationError, require
from plumejax.search.endings import goal_radius
from plumejax.search.environment import distance_to_source
from plumejax.search.state import Agent, Params


class FixedParams(struct.PyTreeNode):
    """Numbers of a `Fixed` start.

    Attributes:
      position: float32[2], x and y in cells.
      heading: float32[], degrees, in [0, 360).
    """

    position: Any
    heading: Any


@dataclass(frozen=True)
class Fixed:
    """Always the same place."""

    def default_params(self) -> FixedParams:
        return FixedParams(position=np.zeros(2, np.float32), heading=np.float32(0.0))

    def place(
        self, key: jax.Array, plume: Any, plume_state: Any, arena: Any, params: Params
    ) -> tuple[Any, Agent, None]:
        own = params.start
        agent = Agent(
            position=jnp.asarray(own.position, jnp.float32),
            heading=jnp.asarray(own.heading, jnp.float32),
        )
        return plume_state, agent, None

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` if the heading is not in [0, 360)."""
        require_heading("heading", params.start.heading)

    def validate_place(self, arena: Any, params: Params) -> None:
        """Raise `ValidationError` if the place is not in the arena, or the source not in reach."""
        position = params.start.position
        if one_answer(self, arena, params):
            inside = arena.inside(jnp.asarray(position, jnp.float32)[None], params)[0]
            require(inside, "start.position", position, "where the arena lets an agent stand")
            require_reachable(len(position), arena, params)


class UniformParams(struct.PyTreeNode):
    """Numbers of a `Uniform` start.

    Attributes:
      min_distance: float32[], cells; starts are at least so far from every source, and always
        outside the goal disc.
      heading: float32[], degrees, in [0, 360).
    """

    min_distance: Any
    heading: Any


@dataclass(frozen=True)
class Uniform:
    """Uniform over the cells of the arena's grid where a search may begin."""

    def default_params(self) -> UniformParams:
        return UniformParams(min_distance=np.float32(0.0), heading=np.float32(0.0))

    def place(
        self, key: jax.Array, plume: Any, plume_state: Any, arena: Any, params: Params
    ) -> tuple[Any, Agent, None]:
        sources = plume.sources(plume_state, params.plume)
        cell = _uniform_cell(key, sources, arena, params)
        heading = jnp.asarray(params.start.heading, jnp.float32)
        return plume_state, Agent(position=cell, heading=heading), None

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` if a number is not allowed."""
        distance = params.start.min_distance
        require(np.all(np.asarray(distance) >= 0), "start.min_distance", distance, ">= 0 cells")
        require_heading("heading", params.start.heading)

    def validate_place(self, arena: Any, params: Params) -> None:
        """Raise `ValidationError` if the arena is no grid, or no cell is left to start from."""
        size = getattr(arena, "grid_size", None)
        grid = size is not None and len(size) == 2
        require(grid, "start", self, f"a start for {arena!r}: this one is for grids of (x, y)")
        source = one_source(params)
        if source is None or not one_answer(self, arena, params):
            return
        require_reachable(2, arena, params)
        if not _any_room(source, arena, params):
            raise ValidationError(
                f"no cell is left to start from: ending.radius and start.min_distance bar all of"
                f" the grid {arena.grid_size} around the source at {source}; make them smaller"
            )


def one_answer(start: Any, arena: Any, params: Params) -> bool:
    """Whether there is one answer to where episodes may begin: these numbers are not swept."""
    proposed = start.default_params(), arena.default_params()
    given = params.start, params.arena
    same = jax.tree.map(np.ndim, proposed) == jax.tree.map(np.ndim, given)
    return same and not np.ndim(goal_radius(params.ending))


def require_reachable(dimensions: int, arena: Any, params: Params) -> None:
    """Raise `ValidationError` if agents, float32[dimensions], may stand nowhere in the goal disc of
    the one source."""
    source, radius = one_source(params), goal_radius(params.ending)
    if source is None or radius is None or len(source) < dimensions:
        return
    rng = np.random.default_rng(0)
    way = rng.normal(size=(_TRIED, dimensions))
    way *= rng.random((_TRIED, 1)) ** (1 / dimensions) / np.linalg.norm(way, axis=-1, keepdims=True)
    places = (source[:dimensions] + np.float32(radius) * way).astype(np.float32)
    reachable = np.any(arena.inside(jnp.asarray(places), params))
    allowed = f"within ending.radius, {radius}, of where the arena lets an agent stand"
    require(reachable, "plume.source", source, allowed)


_TRIED = 1024


def one_source(params: Params) -> np.ndarray | None:
    """float32[d], where the one source of the plume, or of what a bank keeps, is by the numbers;
    None of a plume without one, and of a sweep, which have no one answer."""
    plume = params.plume
    while not hasattr(plume, "source") and hasattr(plume, "plume"):
        plume = plume.plume
    source = np.asarray(getattr(plume, "source", 0.0), np.float32)
    return source if source.ndim == 1 else None


def may_start(positions: jax.Array, sources: jax.Array, arena: Any, params: Params) -> jax.Array:
    """bool[n]: which of float32[n, d] are in the arena, outside the goal disc of the ending, and as
    far from `sources` float32[S, d] as the start's `min_distance`, if it has these."""
    distance = jax.vmap(lambda p: distance_to_source(p, sources))(positions)
    allowed = arena.inside(positions, params)
    least, radius = getattr(params.start, "min_distance", None), goal_radius(params.ending)
    if least is not None:
        allowed &= distance >= least
    if radius is not None:
        allowed &= distance > radius
    return allowed


@partial(jax.jit, static_argnames="arena")
def _any_room(source: Any, arena: Any, params: Params) -> jax.Array:
    sources = jnp.asarray(source, jnp.float32)[None]
    return jnp.any(may_start(_every_cell(arena), sources, arena, params))


def _uniform_cell(key: jax.Array, all_sources: jax.Array, arena: Any, params: Params) -> jax.Array:
    """A cell drawn uniformly among those where `may_start`.

    A few candidates settle nearly every draw; if none of them will do, one of the allowed cells is
    drawn by its rank, so the draw ends also where hardly a cell is allowed.
    """
    width, height = arena.grid_size
    # One draw for all: every random call costs bits at each reset and seconds to compile. The
    # remainder favours no cell by more than its share of 2^32.
    *words, spare = jax.random.bits(key, (_CANDIDATES + 1,), jnp.uint32)
    candidates = (jnp.stack(words) % jnp.uint32(width * height)).astype(jnp.int32)
    good = may_start(_cells(candidates, arena), all_sources, arena, params)

    def by_rank(asked: jax.Array) -> jax.Array:
        # Tied to the loop it stands in, lest the compiler work it out for every draw beforehand.
        _, sources = jax.lax.optimization_barrier((asked, all_sources))
        count = jnp.cumsum(may_start(_every_cell(arena), sources, arena, params), dtype=jnp.int32)
        allowed = jnp.maximum(count[-1], 1)
        rank = (spare % allowed.astype(jnp.uint32)).astype(jnp.int32)
        # Where `validate` was not asked and no cell is allowed: the last one, still on the grid.
        last = jnp.int32(width * height - 1)
        return jnp.minimum(jnp.searchsorted(count, rank + 1).astype(jnp.int32), last)

    # Under vmap both branches of a cond run; a while loop runs its body only if some lane needs it.
    _, index = jax.lax.while_loop(
        lambda loop: ~loop[0],
        lambda loop: (jnp.asarray(True), by_rank(loop[0])),
        (jnp.any(good), candidates[jnp.argmax(good)]),
    )
    return _cells(index, arena)


_CANDIDATES = 4


def _every_cell(arena: Any) -> jax.Array:
    width, height = arena.grid_size
    return _cells(jnp.arange(width * height, dtype=jnp.int32), arena)


def _cells(index: jax.Array, arena: Any) -> jax.Array:
    """float32[..., 2] of the cells numbered row by row from (0, 0)."""
    width = arena.grid_size[0]
    return jnp.stack([index % width, index // width], axis=-1).astype(jnp.float32)


class FixedListParams(struct.PyTreeNode):
    """Numbers of a `FixedList`.

    Attributes:
      positions: float32[n, d], lengths of the plume.
      headings: float32[n], degrees, in [0, 360).
    """

    positions: Any
    headings: Any


@dataclass(frozen=True)
class FixedList:
    """One of n places, each with its heading, drawn uniformly: for assays.

    The places are the user's own: they may lie in the goal disc.

    Attributes:
      num_places: n.
      dimensions: d of a place.
    """

    num_places: int
    dimensions: int = 2

    def default_params(self) -> FixedListParams:
        return FixedListParams(
            positions=np.zeros((self.num_places, self.dimensions), np.float32),
            headings=np.zeros(self.num_places, np.float32),
        )

    def place(
        self, key: jax.Array, plume: Any, plume_state: Any, arena: Any, params: Params
    ) -> tuple[Any, Agent, None]:
        index = jax.random.randint(key, (), 0, self.num_places)
        position = jnp.asarray(params.start.positions, jnp.float32)[index]
        heading = jnp.asarray(params.start.headings, jnp.float32)[index]
        return plume_state, Agent(position=position, heading=heading), None

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` if there is no place, or a number does not fit."""
        require(self.num_places >= 1, "num_places", self.num_places, ">= 1")
        own, expected = params.start, self.default_params()
        for name in ("positions", "headings"):
            given, shape = np.shape(getattr(own, name)), getattr(expected, name).shape
            good = given[-len(shape) :] == shape
            require(good, f"start.{name}.shape", given, f"{shape}")
        require_heading("headings", own.headings)

    def validate_place(self, arena: Any, params: Params) -> None:
        """Raise `ValidationError` if a place is not in the arena, or the source not in reach."""
        positions = np.asarray(params.start.positions, np.float32)
        if one_answer(self, arena, params):
            outside = positions[~np.asarray(arena.inside(jnp.asarray(positions), params))]
            good = not len(outside)
            require(good, "start.positions", outside, "where the arena lets an agent stand")
            require_reachable(self.dimensions, arena, params)


def require_heading(name: str, heading: Any) -> None:
    """Raise `ValidationError` unless all angles are in [0, 360)."""
    angle = np.asarray(heading)
    good = np.all((angle >= 0) & (angle < 360))
    require(good, f"start.{name}", heading, "degrees in [0, 360)")
