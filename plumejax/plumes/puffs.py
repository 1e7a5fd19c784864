"""plumes/puffs: what plumes of puffs share: numbers, state, a step of dt, the wind at a place."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.base.errors import require
from plumejax.plumes import particles as pool
from plumejax.plumes.geometry import in_box
from plumejax.plumes.particles import Particles
from plumejax.plumes.sources import Still, default_source, require_sources
from plumejax.plumes.wind import Constant


class PuffParams(struct.PyTreeNode):
    """Numbers that every plume of puffs has; the unit of length is the plume's.

    Attributes:
      wind: those of the wind.
      source: float32[d], or float32[S, d] of several, where puffs are born.
      source_motion: those of the sources' motion.
      radius: float32[], length, width of a newborn puff, > 0.
      rate: float32[], puffs a second and source, >= 0.
      low, high: float32[2], length, a puff that leaves this box in x or y is gone.
      dt: float32[], s, one step of the model, > 0.
    """

    wind: Any
    source: Any
    source_motion: Any
    radius: Any
    rate: Any
    low: Any
    high: Any
    dt: Any


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


@dataclass(frozen=True)
class PuffPlume:
    """A Poisson stream of puffs that the wind carries. A model adds `_step`, `sample` and numbers.

    Attributes:
      capacity: slots for puffs; a birth that finds no slot does not happen.
      wind: any wind.
      num_sources: how many sources.
      source_motion: how they move.
      substeps: steps of dt in one `advance`.
      warmup: how often `start` advances a plume that has just begun.
    """

    capacity: int = 1000
    wind: Any = Constant()
    num_sources: int = 1
    source_motion: Any = Still()
    substeps: int = 1
    warmup: int = 0
    dimensions = 2

    def start(self, key: jax.Array, params: Any) -> Any:
        begin_key, warmup_key = jax.random.split(key)
        state = self._begin(begin_key, params)
        if not self.warmup:
            return state
        return pool.repeat(
            lambda key, state: self.advance(key, state, params), warmup_key, state, self.warmup
        )

    def advance(self, key: jax.Array, state: Any, params: Any) -> Any:
        return pool.repeat(
            lambda key, state: self._step(key, state, params), key, state, self.substeps
        )

    def sources(self, state: Any, params: Any) -> jax.Array:
        return self.source_motion.positions(state.sources)

    def nearest(self, state: Any, place: jax.Array, params: Any) -> jax.Array:
        """float32[]: from `place` float32[d] to the nearest puff, infinite if there is none.

        In the coordinates that the place has: x and y of puffs in three dimensions.
        """
        puffs = state.particles
        centres = puffs.position[: len(place)]
        squared = squared_distance(place[:, None], centres)[0]
        return jnp.sqrt(jnp.min(jnp.where(puffs.alive, squared, jnp.inf)))

    def puffs_along(self, state: Any, percents: jax.Array, params: Any) -> jax.Array:
        """float32[n, d]: the puffs at the percentiles along x float32[n], in 0..100; the source
        while there are none."""
        puffs = state.particles
        along = jnp.argsort(jnp.where(puffs.alive, puffs.position[0], jnp.inf))
        living = jnp.sum(puffs.alive, dtype=jnp.int32)
        rank = jnp.floor(percents / 100 * living.astype(jnp.float32)).astype(jnp.int32)
        chosen = along[jnp.clip(rank, 0, jnp.maximum(living - 1, 0))]
        return jnp.where(living > 0, puffs.position[:, chosen].T, self.sources(state, params)[:1])

    def thin(self, state: Any, keep: Any, salt: jax.Array) -> Any:
        """The state with a fraction `keep` of the puffs (`particles.thin`)."""
        return state.replace(particles=pool.thin(state.particles, keep, salt))

    def validate(self, params: Any) -> None:
        """Raise `ValidationError` if a number is not allowed."""
        for name in ("capacity", "substeps"):
            require(getattr(self, name) >= 1, name, getattr(self, name), ">= 1")
        require(self.warmup >= 0, "warmup", self.warmup, ">= 0")
        require_sources(self, params, self.dimensions)
        self.wind.validate(params.wind)
        low, high = np.asarray(params.low), np.asarray(params.high)
        require(np.all(low < high), "plume.low", params.low, f"below plume.high, {high.tolist()}")
        source = np.asarray(params.source)[..., :2]
        inside = np.all((source >= low) & (source <= high))
        box = f"in the box plume.low..plume.high, {low.tolist()}..{high.tolist()}"
        require(inside, "plume.source", params.source, box)
        require_not_negative("rate", params.rate)
        for name in ("radius", "dt"):
            value = np.asarray(getattr(params, name))
            good = np.all((value > 0) & np.isfinite(value))
            require(good, f"plume.{name}", value, "> 0 and finite")
        births = np.asarray(params.rate) * np.asarray(params.dt) * self.num_sources
        most = pool.MOST_MEAN_BIRTHS
        allowed = f"at most {most:g} births a step of plume.dt, of all sources"
        require(np.all(births <= most), "plume.rate", params.rate, allowed)
        if hasattr(self.wind, "largest_step"):
            limit = self.wind.largest_step(params.wind)
            good = np.all(np.asarray(params.dt) <= limit)
            require(good, "plume.dt", params.dt, f"<= {limit:g} s, by the numbers of plume.wind")

    def _own_defaults(self, source: tuple[float, ...]) -> dict[str, Any]:
        """Default numbers of wind and sources, the first of these at `source`."""
        return {
            "wind": self.wind.default_params(),
            "source": default_source(self.num_sources, source),
            "source_motion": self.source_motion.default_params(self.num_sources, self.dimensions),
        }

    def _begin(self, key: jax.Array, params: Any) -> Any:
        """An empty plume in its wind."""
        wind_key, source_key = jax.random.split(key)
        return PuffState(
            particles=pool.empty(self.capacity, self.dimensions),
            wind=self.wind.start(wind_key, params.wind),
            sources=self.source_motion.start(source_key, params.source, params.source_motion),
        )

    def _step(self, key: jax.Array, state: Any, params: Any) -> Any:
        """One step of dt."""
        raise NotImplementedError

    def _carry(
        self,
        keys: Sequence[jax.Array],
        state: PuffState,
        move: Callable[[Callable[[jax.Array], jax.Array], jax.Array, jax.Array], jax.Array],
        walk: jax.Array,
        rate: Any,
        params: Any,
    ) -> PuffState:
        """One step of dt: wind, sources, the puffs' move, who is gone, who is born.

        `keys` are four, `move` is `euler` or `midpoint`, `walk` float32[d, N] is the puffs' own
        displacement, `rate` float32[] what `params.rate` comes to.
        """
        wind_key, source_key, count_key, birth_key = keys
        dt = jnp.asarray(params.dt, jnp.float32)
        wind = self.wind.advance(wind_key, state.wind, dt, params.wind)
        sources = self.source_motion.advance(source_key, state.sources, dt, params.source_motion)
        puffs = state.particles
        carried = move(lambda place: self.wind.at(wind, place, params.wind), puffs.position[:2], dt)
        level = jnp.zeros((self.dimensions - 2, self.capacity), jnp.float32)
        position = puffs.position + jnp.concatenate([carried, level]) + walk
        here = in_box(position[:2].T, params.low, params.high)
        puffs = puffs.replace(position=position, age=puffs.age + dt, alive=puffs.alive & here)
        count = pool.poisson_count(count_key, rate * dt * self.num_sources)
        puffs, _ = pool.release(birth_key, puffs, count, self.source_motion.positions(sources))
        return PuffState(puffs, wind, sources)

    def _felt_wind(
        self, state: PuffState, places: jax.Array, positions: jax.Array, params: Any
    ) -> jax.Array:
        """float32[n, d]: the wind at `positions` float32[n, d], or `places` float32[., n]."""
        wind = self.wind.at(state.wind, places, params.wind).T
        return jnp.concatenate([wind, jnp.zeros_like(positions[:, 2:])], axis=1)


def euler(wind: Callable[[jax.Array], jax.Array], position: jax.Array, dt: jax.Array) -> jax.Array:
    """float32[2, N]: how far `wind` carries from `position` float32[2, N] in dt, by one step."""
    return dt * wind(position)


def midpoint(
    wind: Callable[[jax.Array], jax.Array], position: jax.Array, dt: jax.Array
) -> jax.Array:
    """As `euler`, with the wind half a step on: of second order in dt."""
    return dt * wind(position + dt / 2 * wind(position))


def squared_distance(places: jax.Array, centres: jax.Array) -> jax.Array:
    """float32[n, N] between `places` float32[d, n] and `centres` float32[d, N]."""
    squared = jnp.zeros((), jnp.float32)
    for place, centre in zip(places, centres, strict=True):
        squared = squared + jnp.square(place[:, None] - centre[None])
    return squared


def require_not_negative(name: str, value: Any) -> None:
    array = np.asarray(value)
    good = np.all((array >= 0) & np.isfinite(array))
    require(good, f"plume.{name}", value, ">= 0 and finite")
