"""plumes/puffs: what plumes of puffs share: their state, a step of dt, the wind at a place."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.base.errors import require
from plumejax.plumes import particles as pool
from plumejax.plumes.geometry import in_box
from plumejax.plumes.particles import Particles
from plumejax.plumes.sources import require_sources


class PuffState(struct.PyTreeNode):
    """The state of a plume of puffs.

    Attributes:
      particles: the puffs.
      wind: the wind's own state.
      sources: the sources' own state.
    """

    particles: Particles
    wind: Any
    sources: Any


def warm_up(plume: Any, key: jax.Array, state: Any, params: Any) -> Any:
    if not plume.warmup:
        return state
    return pool.repeat(lambda k, s: plume.advance(k, s, params), key, state, plume.warmup)


def carry(
    plume: Any, key: jax.Array, state: PuffState, walk: jax.Array, rate: Any, params: Any
) -> PuffState:
    """One step of dt: wind, sources, the puffs' move, who is gone, who is born.

    `walk` float32[d, N] is the puffs' own displacement.
    """
    wind_key, source_key, count_key, birth_key = jax.random.split(key, 4)
    dt = jnp.asarray(params.dt, jnp.float32)
    wind = plume.wind.advance(wind_key, state.wind, dt, params.wind)
    sources = plume.source_motion.advance(source_key, state.sources, dt, params.source_motion)
    puffs = state.particles
    carried = dt * plume.wind.at(wind, puffs.position, params.wind)
    still = jnp.zeros((len(walk) - 2, walk.shape[1]), jnp.float32)
    position = puffs.position + jnp.concatenate([carried, still]) + walk
    here = in_box(position[:2].T, params.low, params.high)
    puffs = puffs.replace(position=position, age=puffs.age + dt, alive=puffs.alive & here)
    count = pool.poisson_count(count_key, rate * dt * plume.num_sources)
    puffs, _ = pool.release(birth_key, puffs, count, plume.source_motion.positions(sources))
    return PuffState(puffs, wind, sources)


def felt_wind(
    plume: Any, state: PuffState, places: jax.Array, positions: jax.Array, params: Any
) -> jax.Array:
    """float32[n, d]: the wind at `positions` float32[n, d], which are `places` float32[., n]."""
    wind = plume.wind.at(state.wind, places, params.wind).T
    return jnp.concatenate([wind, jnp.zeros_like(positions[:, 2:])], axis=1)


def require_puffs(plume: Any, params: Any, dimensions: int) -> None:
    for name in ("capacity", "substeps"):
        require(getattr(plume, name) >= 1, name, getattr(plume, name), ">= 1")
    require(plume.warmup >= 0, "warmup", plume.warmup, ">= 0")
    require_sources(params.source, plume.num_sources, dimensions)
    plume.source_motion.validate(params.source_motion)
    plume.wind.validate(params.wind)
    low, high = np.asarray(params.low), np.asarray(params.high)
    require(np.all(low < high), "plume.low", params.low, f"below plume.high, {high.tolist()}")
    source = np.asarray(params.source)[..., :2]
    inside = np.all((source >= low) & (source <= high))
    require(inside, "plume.source", params.source, f"in the box {low.tolist()}..{high.tolist()}")
    require_not_negative("rate", params.rate)
    for name in ("radius", "dt"):
        value = np.asarray(getattr(params, name))
        require(np.all((value > 0) & np.isfinite(value)), f"plume.{name}", value, "> 0 and finite")
    births = np.asarray(params.rate) * np.asarray(params.dt) * plume.num_sources
    most = pool.MOST_MEAN_BIRTHS
    good = np.all(births <= most)
    require(
        good, "plume.rate", params.rate, f"at most {most:g} births a step of dt, of all sources"
    )
    if hasattr(plume.wind, "largest_step"):
        limit = plume.wind.largest_step(params.wind)
        require(np.all(np.asarray(params.dt) <= limit), "plume.dt", params.dt, f"<= {limit:g} s")


def require_not_negative(name: str, value: Any) -> None:
    array = np.asarray(value)
    good = np.all((array >= 0) & np.isfinite(array))
    require(good, f"plume.{name}", value, ">= 0 and finite")
