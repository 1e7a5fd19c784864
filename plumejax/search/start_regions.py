"""search/start_regions: starts drawn in a region of a continuous arena.

Each draws `num_candidates` places in its region and takes the first that is in the arena and
outside the goal disc. Where none is, which has probability `(1 - f)^num_candidates` if a fraction f
of the region is allowed, it takes the first that is in the arena at least, and else the first of
all.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.base import paths
from plumejax.base.errors import ValidationError, require
from plumejax.search.endings import goal_radius
from plumejax.search.starts import (
    may_start,
    one_answer,
    one_source,
    require_heading,
    require_reachable,
)
from plumejax.search.state import Agent, Params


@dataclass(frozen=True)
class Region:
    """What the regions share. One adds `_draw`, or `_candidates`, and numbers.

    Attributes:
      dimensions: d of a place.
      any_heading: whether the heading is drawn uniformly, or is the number `heading`.
      num_candidates: places drawn for a start.
    """

    dimensions: int = 2
    any_heading: bool = True
    num_candidates: int = 32

    about_source: ClassVar[bool] = False
    """Whether the region lies about the source."""

    def place(
        self, key: jax.Array, plume: Any, plume_state: Any, arena: Any, params: Params
    ) -> tuple[Any, Agent, None]:
        place_key, heading_key = jax.random.split(key)
        places = self._candidates(place_key, plume, plume_state, params)
        sources = plume.sources(plume_state, params.plume)[:, : self.dimensions]
        allowed = may_start(places, sources, arena, params)
        # An integer each, the best of which is taken, and of equals the first.
        rank = allowed.astype(jnp.int32) + arena.inside(places, params).astype(jnp.int32)
        best = self._choose(rank, places, plume, plume_state, params)
        agent = Agent(position=places[best], heading=self._heading(heading_key, params))
        return plume_state, agent, None

    def _candidates(
        self, key: jax.Array, plume: Any, plume_state: Any, params: Params
    ) -> jax.Array:
        """float32[num_candidates, d]."""
        sources = plume.sources(plume_state, params.plume)[:, : self.dimensions]
        return self._draw(key, self.num_candidates, sources, params)

    def _draw(self, key: jax.Array, count: int, sources: jax.Array, params: Params) -> jax.Array:
        """float32[count, d]: places in the region, of sources float32[S, d]."""
        raise NotImplementedError

    def _choose(
        self, rank: jax.Array, places: jax.Array, plume: Any, plume_state: Any, params: Params
    ) -> jax.Array:
        """int32[]: which of the places, by int32[n] 2 where allowed, 1 where in the arena, 0."""
        return jnp.argmax(rank)

    def _heading(self, key: jax.Array, params: Params) -> jax.Array:
        if self.any_heading:
            return jax.random.uniform(key, (), jnp.float32, 0.0, 360.0)
        return jnp.asarray(params.start.heading, jnp.float32)

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` if a number is not allowed."""
        require(self.num_candidates >= 1, "num_candidates", self.num_candidates, ">= 1")
        require_heading("heading", params.start.heading)

    def validate_place(self, arena: Any, params: Params) -> None:
        """Raise `ValidationError` if of many places in the region an agent may start at none."""
        source = one_source(params)
        # Nor has a region about one of several sources one answer.
        if not one_answer(self, arena, params) or (source is None and self.about_source):
            return
        require_reachable(self.dimensions, arena, params)
        if source is None:  # far from everywhere
            source = np.full(self.dimensions, np.inf, np.float32)
        sources = jnp.asarray(source)[None, : self.dimensions]
        places = self._draw(jax.random.key(0), _TRIED, sources, params)
        if not jnp.any(may_start(places, sources, arena, params)):
            region = paths.leaves(params.start, "start")
            numbers = ", ".join(f"{path} = {np.asarray(x).tolist()}" for path, x in region.items())
            raise ValidationError(
                f"start: none of {_TRIED} places of {self!r} with {numbers} is in the arena and"
                f" outside the goal disc of ending.radius, {goal_radius(params.ending)}, around the"
                f" source at {source.tolist()}"
            )


_TRIED = 4096


class UniformBoxParams(struct.PyTreeNode):
    """Numbers of a `UniformBox`.

    Attributes:
      low, high: float32[d], lengths of the plume.
      heading: float32[], degrees, in [0, 360); unused where any heading is drawn.
    """

    low: Any
    high: Any
    heading: Any


@dataclass(frozen=True)
class UniformBox(Region):
    """Uniform in a box.

    The defaults are the box of the published code of plume tracking, x in 1..3 m and y in
    -0.5..0.5 m (Singh, van Breugel, Rao, Brunton 2023); in three dimensions z is 0.

    Attributes: those of `Region`.
    """

    def default_params(self) -> UniformBoxParams:
        low, high = np.zeros(self.dimensions, np.float32), np.zeros(self.dimensions, np.float32)
        low[:2], high[:2] = (1.0, -0.5)[: self.dimensions], (3.0, 0.5)[: self.dimensions]
        return UniformBoxParams(low, high, np.float32(0.0))

    def _draw(self, key: jax.Array, count: int, sources: jax.Array, params: Params) -> jax.Array:
        return in_box(key, (count, self.dimensions), params.start)

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` if a number is not allowed."""
        super().validate(params)
        require_box(params.start)


class RingParams(struct.PyTreeNode):
    """Numbers of a `Ring`.

    Attributes:
      nearest, farthest: float32[], lengths of the plume, from a source, 0 <= nearest <= farthest.
      heading: float32[], degrees, in [0, 360); unused where any heading is drawn.
    """

    nearest: Any
    farthest: Any
    heading: Any


@dataclass(frozen=True)
class Ring(Region):
    """Uniform over the ring between two distances from a source, in the x-y plane at its height.

    Of several sources one is drawn for each candidate.

    Attributes: those of `Region`.
    """

    about_source = True

    def default_params(self) -> RingParams:
        return RingParams(np.float32(10.0), np.float32(20.0), np.float32(0.0))

    def _draw(self, key: jax.Array, count: int, sources: jax.Array, params: Params) -> jax.Array:
        return _around(key, count, sources, 0.0, 180.0, params.start)

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` if a number is not allowed."""
        super().validate(params)
        _require_ring(params.start)


class DownwindConeParams(struct.PyTreeNode):
    """Numbers of a `DownwindCone`.

    Attributes:
      nearest, farthest: float32[], lengths of the plume, from a source, 0 <= nearest <= farthest.
      half_angle: float32[], degrees, in [0, 180].
      wind_direction: float32[], degrees, in [0, 360): where the mean wind goes to.
      heading: float32[], degrees, in [0, 360); unused where any heading is drawn.
    """

    nearest: Any
    farthest: Any
    half_angle: Any
    wind_direction: Any
    heading: Any


@dataclass(frozen=True)
class DownwindCone(Region):
    """Uniform over the sector of a `Ring` within `half_angle` of downwind.

    Attributes: those of `Region`.
    """

    about_source = True

    def default_params(self) -> DownwindConeParams:
        return DownwindConeParams(
            nearest=np.float32(10.0),
            farthest=np.float32(20.0),
            half_angle=np.float32(30.0),
            wind_direction=np.float32(0.0),
            heading=np.float32(0.0),
        )

    def _draw(self, key: jax.Array, count: int, sources: jax.Array, params: Params) -> jax.Array:
        own = params.start
        return _around(key, count, sources, own.wind_direction, own.half_angle, own)

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` if a number is not allowed."""
        super().validate(params)
        own = params.start
        _require_ring(own)
        half = np.asarray(own.half_angle)
        good = np.all((half >= 0) & (half <= 180))
        require(good, "start.half_angle", own.half_angle, "degrees in [0, 180]")
        require_heading("wind_direction", own.wind_direction)


def in_box(key: jax.Array, shape: tuple[int, int], own: Any) -> jax.Array:
    """float32[n, d] in the box `own.low`..`own.high`."""
    low, high = (jnp.asarray(x, jnp.float32)[None] for x in (own.low, own.high))
    return low + jax.random.uniform(key, shape, jnp.float32) * (high - low)


def _around(
    key: jax.Array, count: int, sources: jax.Array, towards: Any, half_angle: Any, own: Any
) -> jax.Array:
    """float32[count, d]: in the ring `own.nearest`..`own.farthest` about the sources, within
    `half_angle` degrees of `towards`; uniform over its area."""
    source_key, key = jax.random.split(key)
    chosen = jax.random.randint(source_key, (count,), 0, len(sources))
    outwards, sideways = jax.random.uniform(key, (2, count), jnp.float32)
    near, far = (jnp.square(jnp.asarray(x, jnp.float32)) for x in (own.nearest, own.farthest))
    distance = jnp.sqrt(near + outwards * (far - near))
    bearing = jnp.deg2rad(towards + half_angle * (2 * sideways - 1))
    flat = [distance * jnp.cos(bearing), distance * jnp.sin(bearing)]
    level = [jnp.zeros_like(distance)] * (sources.shape[1] - 2)
    return sources[chosen] + jnp.stack(flat + level, axis=-1)


def require_box(own: Any) -> None:
    """Raise `ValidationError` unless `own.low` is not above `own.high`."""
    low, high = np.asarray(own.low), np.asarray(own.high)
    require(np.all(low <= high), "start.low", low, f"not above start.high, {high.tolist()}")


def _require_ring(own: Any) -> None:
    near, far = np.asarray(own.nearest), np.asarray(own.farthest)
    good = np.all((near >= 0) & (near <= far))
    require(good, "start.nearest", own.nearest, f">= 0 and <= start.farthest, {far.tolist()}")
