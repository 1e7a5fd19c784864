"""policies/particles: infotaxis whose belief is a cloud of particles, for positions without a grid.

A particle is a place where the source may be, with a weight; hits reweigh them all, and where few
are left that count they are drawn anew (sequential importance resampling; Gordon, Salmond, Smith
1993, IEE Proceedings F 140: 107). On the cells of a grid, one particle each, it is the belief of
`policies/belief`, and so are the gains.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.base.errors import require
from plumejax.search.beliefs import Hits
from plumejax.search.composed import Stack
from plumejax.search.endings import goal_radius
from plumejax.search.environment import PlumeSearch
from plumejax.search.headings import direction
from plumejax.search.motion import AxisMoves
from plumejax.search.sensors import Heading, Position
from plumejax.search.state import Params
from plumejax.search.walking import TurnAndSpeed


class Cloud(struct.PyTreeNode):
    """A belief about where the source is.

    Attributes:
      places: float32[N, d], lengths of the plume.
      weights: float32[N], sum to 1.
    """

    places: jax.Array
    weights: jax.Array


class ParticleFilter(struct.PyTreeNode):
    """Bayes' rule on a `Cloud`, for hits of a law of encounters.

    Attributes:
      law: of the hits, and `numbers`, its own.
      categories: H of a count, static.
      size: N, static.
      radius: float32[], within which the source would have been found.
      low, high: float32[d], corners of the box that the source is in.
      fewest: float32[], part of N; where 1 / sum weights^2 is less, particles are drawn anew.
      roughening: float32[], K: those are moved by N(0, K E N^(-1/d)) along each axis, E the extent
        of the cloud along it (Gordon et al. 1993).
    """

    law: Any = struct.field(pytree_node=False)
    categories: int = struct.field(pytree_node=False)
    size: int = struct.field(pytree_node=False)
    numbers: Any
    radius: Any
    low: Any
    high: Any
    fewest: Any
    roughening: Any

    def start(self, key: jax.Array) -> Cloud:
        """The source may be anywhere in the box; the key is consumed."""
        shape = (self.size, len(self.low))
        uniform = jax.random.uniform(key, shape, jnp.float32)
        places = self.low[None] + uniform * (self.high - self.low)[None]
        return Cloud(places, jnp.full(self.size, 1.0 / self.size, jnp.float32))

    def outcomes(self, cloud: Cloud, position: jax.Array) -> jax.Array:
        """float32[1 + H, N]: how probable it is at `position` that the source is found, else each
        count, by where it is."""
        offsets = position[:, None] - cloud.places.T
        found = jnp.sum(jnp.square(offsets), axis=0) <= jnp.square(self.radius)
        counts = self.law.counts(self.law.rate(offsets, self.numbers), self.categories)
        missed = jnp.where(found[None], 0.0, counts)
        return jnp.concatenate([found.astype(missed.dtype)[None], missed])

    def updated(self, key: jax.Array, cloud: Cloud, position: jax.Array, hits: jax.Array) -> Cloud:
        """After `hits` at `position`, where the source is not; the key is consumed.

        A count that is impossible by all that is believed changes nothing.
        """
        likelihood = self.outcomes(cloud, position)[1 + hits]
        joint = cloud.weights * likelihood
        total = jnp.sum(joint)
        possible = total > 0
        weights = jnp.where(possible, joint / jnp.where(possible, total, 1.0), cloud.weights)
        few = 1.0 / jnp.sum(jnp.square(weights)) < self.fewest * self.size
        fresh = self._drawn_anew(key, cloud.places, weights)
        return jax.tree.map(
            lambda new, old: jnp.where(few, new, old), fresh, Cloud(cloud.places, weights)
        )

    def gain(self, cloud: Cloud, position: jax.Array) -> jax.Array:
        """float32[]: bits that a move to `position` is expected to tell of where the source is: the
        entropy of the outcome, less what it has if the place is known."""
        each = self.outcomes(cloud, position)
        share = jnp.sum(each * cloud.weights[None], axis=1)
        known = jnp.sum(_xlogx(each), axis=0)
        return jnp.sum(known * cloud.weights) - jnp.sum(_xlogx(share))

    def _drawn_anew(self, key: jax.Array, places: jax.Array, weights: jax.Array) -> Cloud:
        draw_key, move_key = jax.random.split(key)
        chosen = places[systematic(draw_key, weights)]
        extent = jnp.max(chosen, axis=0) - jnp.min(chosen, axis=0)
        scale = self.roughening * extent * self.size ** (-1.0 / len(self.low))
        moved = chosen + scale[None] * jax.random.normal(move_key, chosen.shape, chosen.dtype)
        inside = jnp.clip(moved, self.low[None], self.high[None])
        return Cloud(inside, jnp.full_like(weights, 1.0 / self.size))


def systematic(key: jax.Array, weights: jax.Array) -> jax.Array:
    """int32[N]: N indices drawn by float32[N], each about N times its weight often, by one uniform
    number; the key is consumed."""
    n = len(weights)
    upto = jnp.cumsum(weights)
    combs = (jnp.arange(n, dtype=weights.dtype) + jax.random.uniform(key, (), weights.dtype)) / n
    index = jnp.searchsorted(upto, combs * upto[-1], side="right")
    return jnp.clip(index, 0, n - 1).astype(jnp.int32)


class ParticleInfotaxis(struct.PyTreeNode):
    """Takes the move that is expected to tell most about where the source is; see `Infotaxis`.

    An observation is float32[1 + d + ...]: hits, the position, and where moves are headings cosine
    and sine of the agent's own.

    Attributes:
      filter: the belief.
      actions: [A, ...], those that are weighed.
      moves: float32[A, d], lengths, where each leads, ahead and to the left of the heading if
        `headed`.
      headed: whether moves are relative to the heading, static.
    """

    filter: ParticleFilter
    actions: Any
    moves: Any
    headed: bool = struct.field(pytree_node=False)

    def init(self, key: jax.Array) -> Cloud:
        """The cloud drawn; the key is consumed."""
        return self.filter.start(key)

    def act(self, key: jax.Array, carry: Cloud, observation: Any) -> tuple[jax.Array, Cloud]:
        """`(action, carry)`; the key is consumed."""
        d = len(self.filter.low)
        hits, position = jnp.round(observation[0]).astype(jnp.int32), observation[1 : 1 + d]
        cloud = self.filter.updated(key, carry, position, hits)
        there = position[None] + self._ways(observation[1 + d :])
        there = jnp.clip(there, self.filter.low[None], self.filter.high[None])
        gains = jax.vmap(self.filter.gain, (None, 0))(cloud, there)
        return jnp.asarray(self.actions)[jnp.argmax(gains)], cloud

    def _ways(self, heading: jax.Array) -> jax.Array:
        """float32[A, d]: `moves` in the frame of the world; `heading` float32[2]."""
        if not self.headed:
            return jnp.asarray(self.moves)
        cos, sin = heading
        ahead, left = self.moves.T
        return jnp.stack([ahead * cos - left * sin, ahead * sin + left * cos], axis=1)


def _xlogx(x: jax.Array) -> jax.Array:
    return jnp.where(x > 0, x * jnp.log2(jnp.where(x > 0, x, 1.0)), 0.0)


def particle_infotaxis(
    env: PlumeSearch,
    params: Params,
    *,
    particles: int = 1000,
    turns: int = 9,
    fewest: float = 0.5,
    roughening: float = 0.2,
) -> ParticleInfotaxis:
    """Infotaxis on a cloud of particles, for positions without a grid.

    Observed are a Stack of `Hits` and `Position`, and the motion is `AxisMoves`; or of `Heading`
    too, and then `TurnAndSpeed` without drift, of which the fastest speed and so many turns are
    weighed.

    Args:
      env, params: the task.
      particles: how many.
      turns: turns that are weighed, from the sharpest right to the sharpest left.
      fewest: in [0, 1], part of the particles; where fewer count they are drawn anew.
      roughening: K of Gordon et al. 1993, how far those are moved.

    Raises:
      ValidationError: a task of another kind; an argument that is not allowed.
    """
    require(isinstance(particles, int) and particles > 0, "particles", particles, "an int > 0")
    require(isinstance(turns, int) and turns > 1, "turns", turns, "an int > 1")
    require(0 <= fewest <= 1, "fewest", fewest, "in [0, 1]")
    require(roughening >= 0, "roughening", roughening, ">= 0")
    headed = isinstance(env.motion, TurnAndSpeed)
    wanted = [Hits, Position, Heading] if headed else [Hits, Position]
    kinds = [type(part) for _, part in env.sensor.parts] if type(env.sensor) is Stack else []
    names = ", ".join(kind.__name__ for kind in wanted)
    require(kinds == wanted, "env.sensor", env.sensor, f"a Stack of {names}, in that order")
    hits = env.sensor.parts[0][1]
    radius = goal_radius(params.ending)
    require(radius is not None, "env.ending", env.ending, "one with a radius")
    actions, moves = _by_heading(params, turns) if headed else _along_axes(env, params)
    dimensions = len(hits.grid_size)
    require(moves.shape[1] == dimensions, "env.motion", env.motion, f"of {dimensions} dimensions")
    cloud = ParticleFilter(
        law=hits.plume.law,
        categories=hits.categories,
        size=particles,
        numbers=params.plume.law,
        radius=np.float32(radius),
        low=np.zeros(dimensions, np.float32),
        high=np.asarray(hits.grid_size, np.float32) - np.float32(1),
        fewest=np.float32(fewest),
        roughening=np.float32(roughening),
    )
    return ParticleInfotaxis(cloud, actions, moves, headed)


def _along_axes(env: PlumeSearch, params: Params) -> tuple[np.ndarray, np.ndarray]:
    require(type(env.motion) is AxisMoves, "env.motion", env.motion, "AxisMoves or TurnAndSpeed")
    axes = np.eye(env.motion.dimensions, dtype=np.float32) * np.float32(params.motion.step)
    moves = np.stack([-axes, axes], axis=1).reshape(-1, len(axes))
    return np.arange(len(moves), dtype=np.int32), moves


def _by_heading(params: Params, turns: int) -> tuple[np.ndarray, np.ndarray]:
    own = params.motion
    require(np.all(np.asarray(own.drift) == 0), "motion.drift", own.drift, "0")
    parts = np.linspace(0.0, 1.0, turns, dtype=np.float32)
    angles = (parts - np.float32(0.5)) * np.float32(own.turn_range * params.dt)
    ways = np.asarray([np.asarray(direction(angle)) for angle in angles])
    stride = np.float32(own.max_speed * params.dt)
    return np.stack([parts, np.ones_like(parts)], axis=1), stride * ways


POLICIES: dict[str, Callable[..., Any]] = {"particle-infotaxis": particle_infotaxis}
