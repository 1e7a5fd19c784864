"""plumes/encounters: how often a searcher meets odour, by the theory of infotaxis.

The concentration is mu, the mean number of hits in a step; a sensor draws a Poisson count of it,
whose tail is lumped into the last category. On the source's own cell there are no hits. The
isotropic and the windy plume are those of Vergassola, Villermaux, Shraiman 2007 (Nature 445: 406)
in the units of Loisy and Eloy 2022 (Proceedings of the Royal Society A 478: 20220118) and of Loisy
and Heinonen 2023 (European Physical Journal E 46: 17), the cosh plume that of Celani, Villermaux,
Vergassola 2014 (Physical Review X 4: 041015). Everything is computed in the dtype of the numbers,
so float64 numbers under x64 give float64 rates.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import ceil, sqrt
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.base.errors import require
from plumejax.plumes.bessel import scaled_k0
from plumejax.plumes.geometry import in_box
from plumejax.plumes.interface import Air
from plumejax.plumes.sources import Still, default_source, require_sources


def isotropic_rate(distance: jax.Array, wavelength: Any, rate: Any, dimensions: int) -> jax.Array:
    """float[...]: mu without wind.

    Args:
      distance: float[...], cells, >= 1; a cell is twice the searcher's radius.
      wavelength: float[], L, cells, >= 1: how far odour gets before it decays.
      rate: float[], I, the rate of emission in units of a step.
      dimensions: 1, 2 or 3, static.
    """
    decayed = distance / wavelength
    if dimensions == 1:
        return rate * 2 * wavelength / (2 * wavelength - 1) * jnp.exp(-decayed)
    if dimensions == 2:
        return rate / jnp.log(2 * wavelength) * jnp.exp(-decayed) * scaled_k0(decayed)
    return rate / (2 * distance) * jnp.exp(-decayed)


def windy_rate(
    distance: jax.Array, downwind: jax.Array, rate: Any, speed: Any, lifetime: Any
) -> jax.Array:
    """float[...]: mu in the plane of the source of the three-dimensional plume in wind along +x.

    Args:
      distance: float[...], cells, >= 1.
      downwind: float[...], cells, the searcher's x minus the source's.
      rate: float[], R, of emission in units of a step.
      speed: float[], V, of the wind over the diffusivity, a cell.
      lifetime: float[], tau, of odour in units of diffusivity and speed.
    """
    # The inverse of lambda = sqrt((tau / V^2) / (1 + tau / 4)), which is finite without wind too.
    decay = speed * jnp.sqrt((1 + lifetime / 4) / lifetime)
    return rate / distance * jnp.exp(speed * downwind / 2 - distance * decay)


def num_hits(highest: float) -> int:
    """H, the categories of a count: 0..H-1, of which the last means "or more".

    `highest` is mu at a distance of one cell; `H = ceil(mu + sqrt(mu)) + 1`.
    """
    return ceil(highest + sqrt(highest)) + 1


def hit_probabilities(mu: jax.Array, categories: int) -> jax.Array:
    """float[H, ...]: the law of the count for each mu float[...], `categories` = H.

    Poisson, with the tail in the last category. (To renormalise instead would be another task.)
    """
    last = categories - 1
    counts, term = [], jnp.exp(-mu)
    for h in range(last):
        counts.append(term)
        term = term * (mu / (h + 1))
    # 1 - sum(counts) drowns small tails in its rounding, so where mu is small they are summed.
    tail = jnp.where(mu < last, term * _tail_over_term(mu, last), 1 - sum(counts))
    return jnp.stack([*counts, tail])


def _tail_over_term(mu: jax.Array, least: int) -> jax.Array:
    """float[...]: of a Poisson count, `P(>= least) / P(least)`; mu float[...], up to `least`."""
    mu = jnp.minimum(mu, least)
    series = jnp.ones_like(mu)
    # From the far end, where a term is below 1e-17 of the sum.
    for k in reversed(range(least + 1, 3 * least + 20)):
        series = 1 + series * (mu / k)
    return series


def likelihoods(
    plume: "EncounterPlume", params: "EncounterParams", place: jax.Array, categories: int
) -> jax.Array:
    """float[H, *grid]: of each count at `place` float[d], by the cell that one source is in.

    0 in the cell of `place`: had it been there, the search were over. The grid is indexed by
    coordinate, `[x, y, z]`.
    """
    offsets = place[:, None] - _cells(plume.grid_size, place.dtype)
    laws = plume.law.counts(plume.law.rate(offsets, params.law), categories)
    known = jnp.where(_elsewhere(offsets)[None], laws, 0.0)
    return known.reshape(categories, *plume.grid_size)


def spans(grid_size: tuple[int, ...]) -> tuple[int, ...]:
    """How many displacements between cells there are along each coordinate."""
    return tuple(2 * n - 1 for n in grid_size)


def displacement_likelihoods(
    plume: "EncounterPlume", params: "EncounterParams", categories: int
) -> jax.Array:
    """float[H, *spans]: of each count by the source's cell minus that of the place, plus
    `grid_size - 1`; the window of it that is the grid is `likelihoods`. It is of the numbers alone,
    so lanes that share them share it. Of the dtype of the law."""
    # As seen from the middle of a grid that has all displacements as its cells.
    wide = EncounterPlume(plume.law, spans(plume.grid_size))
    dtype = jnp.result_type(*jax.tree.leaves(params.law))
    middle = jnp.asarray(plume.grid_size, dtype) - 1
    return likelihoods(wide, params, middle, categories)


def posterior(prior: jax.Array, likelihood: jax.Array) -> jax.Array:
    """float[*grid]: Bayes' rule; both float[*grid], not 0 everywhere."""
    joint = prior * likelihood
    return joint / jnp.sum(joint)


def uniform_prior(grid_size: tuple[int, ...], place: jax.Array) -> jax.Array:
    """float[*grid]: the source is in any cell but that of `place` float[d]."""
    elsewhere = _elsewhere(place[:, None] - _cells(grid_size, place.dtype)).astype(place.dtype)
    return (elsewhere / jnp.sum(elsewhere)).reshape(grid_size)


def entropy(belief: jax.Array, cutoff: Any = 1e-10) -> jax.Array:
    """float[], bits, of float[*grid]; cells below `cutoff` count nothing."""
    counts = belief > cutoff
    return -jnp.sum(jnp.where(counts, belief * jnp.log2(jnp.where(counts, belief, 1.0)), 0.0))


def mean_distance(belief: jax.Array, place: jax.Array) -> jax.Array:
    """float[]: moves along the axes that the source is away from `place` float[d], on average."""
    offsets = place[:, None] - _cells(belief.shape, belief.dtype)
    return jnp.sum(belief.ravel() * jnp.sum(jnp.abs(offsets), axis=0))


def first_hit_probabilities(
    wavelength: Any, rate: Any, dimensions: int, categories: int
) -> np.ndarray:
    """float64[H - 1]: how likely an isotropic search begins with 1, 2, ..., H - 1 hits.

    It begins with a hit, somewhere within 1000 L of the source; a count is weighed by the volume of
    the shell where it happens (Loisy and Eloy 2022).
    """
    distance = np.arange(1, int(1000 * float(wavelength)), dtype=np.asarray(wavelength).dtype)
    mu = isotropic_rate(jnp.asarray(distance), wavelength, rate, dimensions)
    # An n-ball's volume up to a factor.
    shells = (distance + 0.5) ** dimensions - (distance - 0.5) ** dimensions
    laws = np.asarray(hit_probabilities(mu, categories), np.float64)[1:]
    weights = laws @ shells.astype(np.float64)
    return weights / weights.sum()


def _cells(grid_size: tuple[int, ...], dtype: Any) -> jax.Array:
    """float[d, n]: every cell, the last coordinate running fastest."""
    mesh = np.meshgrid(*(np.arange(n) for n in grid_size), indexing="ij")
    return jnp.asarray(np.stack([x.ravel() for x in mesh]), dtype)


def _elsewhere(offsets: jax.Array) -> jax.Array:
    """bool[n]: which of float[d, n] lead to another cell."""
    return jnp.max(jnp.abs(offsets), axis=0) >= 0.5


def _apart(offsets: jax.Array) -> jax.Array:
    """float[n]: the length of float[d, n], cells, at least 1."""
    squared = jnp.sum(jnp.square(offsets), axis=0)
    # The inner floor keeps the root's infinite slope at 0 out of the gradient.
    return jnp.sqrt(jnp.maximum(squared, 1.0))


class IsotropicParams(struct.PyTreeNode):
    """Numbers of `Isotropic`.

    Attributes:
      wavelength: float[], L, cells, >= 1: how far odour gets before it decays.
      rate: float[], I, the rate of emission in units of a step, >= 0.
    """

    wavelength: Any
    rate: Any


@dataclass(frozen=True)
class Isotropic:
    """Diffusion and decay without wind, in one, two or three dimensions (`isotropic_rate`)."""

    unit = "hits a step"

    def default_params(self) -> IsotropicParams:
        """Those of `isotropic-53x53`."""
        return IsotropicParams(wavelength=np.float32(3.0), rate=np.float32(2.0))

    def rate(self, offsets: jax.Array, params: IsotropicParams) -> jax.Array:
        """float[n]: mu at `offsets` float[d, n], cells, from a source."""
        return isotropic_rate(_apart(offsets), params.wavelength, params.rate, len(offsets))

    def counts(self, mu: jax.Array, categories: int) -> jax.Array:
        return hit_probabilities(mu, categories)

    def validate(self, params: IsotropicParams, dimensions: int) -> None:
        """Raise `ValidationError` if a number is not allowed."""
        require(dimensions in (1, 2, 3), "grid_size", dimensions, "of 1, 2 or 3 dimensions")
        wavelength = np.asarray(params.wavelength)
        require(np.all(wavelength >= 1), "plume.law.wavelength", params.wavelength, ">= 1 cell")
        _require_least("rate", params.rate)


class WindyParams(struct.PyTreeNode):
    """Numbers of `Windy`.

    Attributes:
      rate: float[], R, of emission in units of a step, >= 0.
      speed: float[], V, of the wind along +x over the diffusivity, a cell, >= 0.
      lifetime: float[], tau, of odour in units of diffusivity and speed, > 0.
    """

    rate: Any
    speed: Any
    lifetime: Any


@dataclass(frozen=True)
class Windy:
    """Wind along +x, in the plane of the source of a three-dimensional plume (`windy_rate`)."""

    unit = "hits a step"

    def default_params(self) -> WindyParams:
        """Those of `windy-medium-detections`."""
        return WindyParams(rate=np.float32(2.5), speed=np.float32(2.0), lifetime=np.float32(150.0))

    def rate(self, offsets: jax.Array, params: WindyParams) -> jax.Array:
        """float[n]: mu at `offsets` float[2, n], cells, from a source."""
        numbers = (params.rate, params.speed, params.lifetime)
        return windy_rate(_apart(offsets), offsets[0], *numbers)

    def counts(self, mu: jax.Array, categories: int) -> jax.Array:
        return hit_probabilities(mu, categories)

    def validate(self, params: WindyParams, dimensions: int) -> None:
        """Raise `ValidationError` if a number is not allowed."""
        require(dimensions == 2, "grid_size", dimensions, "of 2 dimensions")
        for name in ("rate", "speed"):
            _require_least(name, getattr(params, name))
        lifetime = np.asarray(params.lifetime)
        require(np.all(lifetime > 0), "plume.law.lifetime", params.lifetime, "> 0")


class CoshParams(struct.PyTreeNode):
    """Numbers of `Cosh`.

    Attributes:
      width: float[], the plume's half width over the distance downwind, > 0.
    """

    width: Any


@dataclass(frozen=True)
class Cosh:
    """Hit or no hit, with probability `sech^2(y / (width x))` downwind and 0 upwind.

    What it gives for a rate is that probability itself.
    """

    unit = "hit probability"

    def default_params(self) -> CoshParams:
        return CoshParams(width=np.float32(0.2))

    def rate(self, offsets: jax.Array, params: CoshParams) -> jax.Array:
        """float[n]: the probability of a hit at `offsets` float[2, n], cells, from a source."""
        x, y = offsets
        downwind = x > 0
        decay = jnp.exp(-2 * jnp.abs(y) / (params.width * jnp.where(downwind, x, 1.0)))
        return jnp.where(downwind, 4 * decay / jnp.square(1 + decay), 0.0)

    def counts(self, mu: jax.Array, categories: int) -> jax.Array:
        """float[2, ...]: of no hit and of a hit; `categories` has to be 2."""
        require(categories == 2, "categories", categories, "2: a hit or none")
        return jnp.stack([1 - mu, mu])

    def validate(self, params: CoshParams, dimensions: int) -> None:
        """Raise `ValidationError` if a number is not allowed."""
        require(dimensions == 2, "grid_size", dimensions, "of 2 dimensions")
        require(np.all(np.asarray(params.width) > 0), "plume.law.width", params.width, "> 0")


class EncounterParams(struct.PyTreeNode):
    """Numbers of an `EncounterPlume`.

    Attributes:
      law: those of the law.
      source: float32[d], or float32[S, d] of several, cells.
      source_motion: those of the sources' motion, which has a step for its second.
    """

    law: Any
    source: Any
    source_motion: Any


@dataclass(frozen=True)
class EncounterPlume:
    """Mean rates of encounters on a grid of cells; those of several sources add up.

    The wind that it reports is the law's `speed`, in units of the diffusivity, or none. For moving
    sources one step is one second.

    Attributes:
      law: `Isotropic`, `Windy` or `Cosh`.
      grid_size: cells along each of 1, 2 or 3 coordinates; no hits beyond.
      num_sources: how many sources.
      source_motion: how they move.
    """

    law: Any = Isotropic()
    grid_size: tuple[int, ...] = (53, 53)
    num_sources: int = 1
    source_motion: Any = Still()

    @property
    def unit(self) -> str:
        return self.law.unit

    @property
    def random_start(self) -> bool:
        return self.source_motion.random_start

    @property
    def random_step(self) -> bool:
        return self.source_motion.random_step

    def default_params(self) -> EncounterParams:
        dimensions = len(self.grid_size)
        middle = tuple(n // 2 for n in self.grid_size)
        return EncounterParams(
            law=self.law.default_params(),
            source=default_source(self.num_sources, middle),
            source_motion=self.source_motion.default_params(self.num_sources, dimensions),
        )

    def start(self, key: jax.Array, params: EncounterParams) -> Any:
        return self.source_motion.start(key, params.source, params.source_motion)

    def advance(self, key: jax.Array, state: Any, params: EncounterParams) -> Any:
        return self.source_motion.advance(key, state, np.float32(1.0), params.source_motion)

    def sample(self, state: Any, positions: jax.Array, params: EncounterParams) -> Air:
        dtype = jnp.result_type(*jax.tree.leaves(params.law))
        places = jnp.asarray(positions, dtype).T
        inside = in_box(positions, (-0.5,) * len(places), [n - 0.5 for n in self.grid_size])
        mu = jnp.zeros((), dtype)
        for source in self.source_motion.positions(state):
            offsets = places - source.astype(dtype)[:, None]
            mu += jnp.where(inside & _elsewhere(offsets), self.law.rate(offsets, params.law), 0.0)
        return Air(concentration=mu, wind=self._wind(positions, params))

    def sources(self, state: Any, params: EncounterParams) -> jax.Array:
        return self.source_motion.positions(state)

    def validate(self, params: EncounterParams) -> None:
        """Raise `ValidationError` if a number is not allowed."""
        sizes = all(isinstance(n, int) and n > 0 for n in self.grid_size)
        require(sizes, "grid_size", self.grid_size, "ints > 0")
        self.law.validate(params.law, len(self.grid_size))
        require_sources(self, params, len(self.grid_size))
        source = np.asarray(params.source)
        inside = np.all((source >= 0) & (source <= np.asarray(self.grid_size) - 1))
        require(inside, "plume.source", params.source, f"inside the grid {self.grid_size}")

    def _wind(self, positions: jax.Array, params: EncounterParams) -> jax.Array:
        along = jnp.zeros_like(positions)
        speed = jnp.asarray(getattr(params.law, "speed", 0.0)).astype(along.dtype)
        return along.at[:, 0].set(speed)


def _require_least(name: str, value: Any) -> None:
    array = np.asarray(value)
    good = np.all((array >= 0) & np.isfinite(array))
    require(good, f"plume.law.{name}", value, ">= 0 and finite")


Made = tuple[EncounterPlume, EncounterParams]


def isotropic(size: int, wavelength: float, rate: float, **static: Any) -> Made:
    """A square grid of `size` cells without wind."""
    plume = EncounterPlume(**{"law": Isotropic(), "grid_size": (size, size), **static})
    law = IsotropicParams(np.float32(wavelength), np.float32(rate))
    return plume, plume.default_params().replace(law=law)


def windy(rate: float, **static: Any) -> Made:
    """81 x 41 cells in wind, the source 45 cells upwind of where searches start, [65, 20]."""
    plume = EncounterPlume(**{"law": Windy(), "grid_size": (81, 41), **static})
    params = plume.default_params()
    source = default_source(plume.num_sources, (20.0, 20.0))
    return plume, params.replace(law=params.law.replace(rate=np.float32(rate)), source=source)


def cosh(**static: Any) -> Made:
    """131 x 92 cells, the size of Verano, Panizon, Celani 2023, with the source at [5, 46]."""
    plume = EncounterPlume(**{"law": Cosh(), "grid_size": (131, 92), **static})
    source = default_source(plume.num_sources, (5.0, 46.0))
    return plume, plume.default_params().replace(source=source)


CASES: dict[str, Callable[..., Made]] = {
    "isotropic-19x19": partial(isotropic, 19, 1.0, 1.0),
    "isotropic-53x53": partial(isotropic, 53, 3.0, 2.0),
    "windy-medium-detections": partial(windy, 2.5),
    "windy-low-detections": partial(windy, 0.25),
    "cosh": cosh,
}
"""The four benchmark cases of Loisy and Heinonen 2023, and the cosh plume, by name."""
