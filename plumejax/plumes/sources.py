"""plumes/sources: how the sources of a plume move: not at all, straight on, or run and tumble.

A model has `num_sources` and a `source_motion`, both static, and two numbers: `source`, where they
are at the start, float32[d] (of one) or float32[S, d], and `source_motion`, the numbers of that.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.base.errors import require


class Moving(struct.PyTreeNode):
    """The state of sources that move.

    Attributes:
      position: float32[S, d], lengths of the plume.
      velocity: float32[S, d], lengths a second.
    """

    position: jax.Array
    velocity: jax.Array


@dataclass(frozen=True)
class Still:
    """Sources that stay; the state is where they are, as given: float32[d] or float32[S, d]."""

    random_start = random_step = False

    def default_params(self, num_sources: int, dimensions: int) -> tuple[()]:
        return ()

    def start(self, key: jax.Array, source: Any, params: Any) -> jax.Array:
        return jnp.asarray(source, jnp.float32)

    def advance(self, key: jax.Array, state: jax.Array, dt: Any, params: Any) -> jax.Array:
        return state

    def positions(self, state: jax.Array) -> jax.Array:
        """float32[S, d]."""
        return state if state.ndim == 2 else state[None]

    def validate(self, params: Any, num_sources: int, dimensions: int) -> None:
        """There is nothing to refuse."""


class DriftParams(struct.PyTreeNode):
    """Numbers of `Drift`.

    Attributes:
      velocity: float32[S, d], lengths a second.
      low, high: float32[d], the box whose walls turn a source back; by default there is none.
    """

    velocity: Any
    low: Any
    high: Any


@dataclass(frozen=True)
class Drift:
    """Sources that move straight on, and bounce off the walls of a box."""

    random_start = random_step = False

    def default_params(self, num_sources: int, dimensions: int) -> DriftParams:
        velocity = np.zeros((num_sources, dimensions), np.float32)
        return DriftParams(velocity, *_no_box(dimensions))

    def start(self, key: jax.Array, source: Any, params: DriftParams) -> Moving:
        position = jnp.atleast_2d(jnp.asarray(source, jnp.float32))
        return Moving(position, jnp.asarray(params.velocity, jnp.float32))

    def advance(self, key: jax.Array, state: Moving, dt: Any, params: DriftParams) -> Moving:
        return _bounce(state, dt, params)

    def positions(self, state: Moving) -> jax.Array:
        """float32[S, d]."""
        return state.position

    def validate(self, params: DriftParams, num_sources: int, dimensions: int) -> None:
        """Raise `ValidationError` if a number is not allowed, or the box is empty."""
        velocity, shape = np.asarray(params.velocity), (num_sources, dimensions)
        name = "plume.source_motion.velocity"
        require(velocity.shape[-2:] == shape, f"{name}.shape", velocity.shape, f"{shape}")
        require(np.all(np.isfinite(velocity)), name, params.velocity, "finite")
        _require_box(params, dimensions)


class RunAndTumbleParams(struct.PyTreeNode):
    """Numbers of `RunAndTumble`.

    Attributes:
      speed: float32[], lengths a second, >= 0.
      tumble_rate: float32[], tumbles a second, >= 0.
      low, high: float32[d], the box whose walls turn a source back; by default there is none.
    """

    speed: Any
    tumble_rate: Any
    low: Any
    high: Any


@dataclass(frozen=True)
class RunAndTumble:
    """Sources that run straight, and turn anew in the x-y plane at the moments of a Poisson law."""

    random_start = random_step = True

    def default_params(self, num_sources: int, dimensions: int) -> RunAndTumbleParams:
        return RunAndTumbleParams(np.float32(1.0), np.float32(0.1), *_no_box(dimensions))

    def start(self, key: jax.Array, source: Any, params: RunAndTumbleParams) -> Moving:
        position = jnp.atleast_2d(jnp.asarray(source, jnp.float32))
        return Moving(position, _runs(key, position, params))

    def advance(self, key: jax.Array, state: Moving, dt: Any, params: RunAndTumbleParams) -> Moving:
        when, where = jax.random.split(key)
        # Exact in law whatever dt: whether at least one tumble fell into the step.
        chance = -jnp.expm1(-jnp.asarray(params.tumble_rate, jnp.float32) * dt)
        tumbled = jax.random.uniform(when, state.position.shape[:1], jnp.float32) < chance
        runs = _runs(where, state.position, params)
        velocity = jnp.where(tumbled[:, None], runs, state.velocity)
        return _bounce(state.replace(velocity=velocity), dt, params)

    def positions(self, state: Moving) -> jax.Array:
        """float32[S, d]."""
        return state.position

    def validate(self, params: RunAndTumbleParams, num_sources: int, dimensions: int) -> None:
        """Raise `ValidationError` if a number is not allowed."""
        for name in ("speed", "tumble_rate"):
            value = np.asarray(getattr(params, name))
            good = np.all((value >= 0) & np.isfinite(value))
            require(good, f"plume.source_motion.{name}", value, ">= 0 and finite")
        _require_box(params, dimensions)


def _runs(key: jax.Array, position: jax.Array, params: RunAndTumbleParams) -> jax.Array:
    """float32[S, d]: velocities of runs in directions drawn uniformly in the x-y plane."""
    sources, dimensions = position.shape
    angle = jax.random.uniform(key, (sources,), jnp.float32, 0.0, 2 * np.pi)
    flat = [jnp.cos(angle), jnp.sin(angle)] + [jnp.zeros_like(angle)] * (dimensions - 2)
    return jnp.asarray(params.speed, jnp.float32) * jnp.stack(flat, axis=-1)


def _bounce(state: Moving, dt: Any, params: Any) -> Moving:
    low, high = (jnp.asarray(x, jnp.float32)[None] for x in (params.low, params.high))
    position = state.position + dt * state.velocity
    below, above = position < low, position > high
    position = jnp.where(below, 2 * low - position, position)
    position = jnp.where(above, 2 * high - position, position)
    velocity = jnp.where(below | above, -state.velocity, state.velocity)
    # Who is reflected out of the other side, by a step longer than the box, stays at that wall.
    return Moving(jnp.clip(position, low, high), velocity)


def _no_box(dimensions: int) -> tuple[np.ndarray, np.ndarray]:
    # Far beyond any plume, and finite, as every number of a task has to be.
    return np.full(dimensions, -1e30, np.float32), np.full(dimensions, 1e30, np.float32)


def _require_box(params: Any, dimensions: int) -> None:
    low, high = np.asarray(params.low), np.asarray(params.high)
    for name, side in (("low", low), ("high", high)):
        fits = side.shape[-1:] == (dimensions,)
        require(fits, f"plume.source_motion.{name}.shape", side.shape, f"({dimensions},)")
    require(
        np.all(low < high),
        "plume.source_motion.low",
        low,
        f"below plume.source_motion.high, {high.tolist()}",
    )


def default_source(num_sources: int, place: tuple[float, ...]) -> np.ndarray:
    """float32[d] of one source at `place`; of more, float32[S, d], one above the other in y."""
    one = np.asarray(place, np.float32)
    if num_sources == 1:
        return one
    spread = np.arange(num_sources, dtype=np.float32) - np.float32((num_sources - 1) / 2)
    return one + spread[:, None] * np.eye(len(place), dtype=np.float32)[1]


def require_sources(plume: Any, params: Any, dimensions: int) -> None:
    """Raise `ValidationError` unless the sources are finite and of the shape that the model has,
    and their motion can move them. A sweep may put one axis more before it."""
    count = plume.num_sources
    require(count >= 1, "num_sources", count, ">= 1")
    shape = (dimensions,) if count == 1 else (count, dimensions)
    array = np.asarray(params.source)
    require(array.shape[-len(shape) :] == shape, "plume.source.shape", array.shape, f"{shape}")
    require(np.all(np.isfinite(array)), "plume.source", params.source, "finite")
    plume.source_motion.validate(params.source_motion, count, dimensions)
    box = params.source_motion
    if hasattr(box, "low") and np.ndim(box.low) == np.ndim(box.high) == 1:
        low, high = np.asarray(box.low), np.asarray(box.high)
        inside = np.all((array >= low) & (array <= high))
        allowed = f"within plume.source_motion.low..high, {low.tolist()}..{high.tolist()}"
        require(inside, "plume.source", params.source, allowed)
