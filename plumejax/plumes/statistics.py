"""plumes/statistics: what a sensor that stays in a plume meets: intermittency, whiffs and blanks.

A series is the concentration at one place or at several, `[T]` or `[T, ...]`, every `dt` seconds. A
whiff is a time above a threshold, a blank one at or below it. All of this runs on the host, in
float64, but for `record`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize

from plumejax.base.errors import require
from plumejax.plumes import rolling
from plumejax.plumes.interface import Air, clock


class Durations(NamedTuple):
    """Whole whiffs and blanks, float64[...] seconds: those that begin and end within the series."""

    whiffs: np.ndarray
    blanks: np.ndarray


@dataclass(frozen=True)
class PowerLaw:
    """`p(t) ~ t^-exponent e^(-t / cutoff)` for t above `shortest`, fitted to durations.

    Attributes:
      shortest: seconds; durations below it were left out.
      exponent, error: and its standard error; NaN where too few durations are left, or no exponent
        fits them.
      cutoff, cutoff_error: seconds; infinite without a cut-off.
      count: durations that it was fitted to.
    """

    shortest: float
    exponent: float
    error: float
    cutoff: float
    cutoff_error: float
    count: int


@dataclass(frozen=True)
class Summary:
    """What one place of a plume is like.

    Attributes:
      mean: of the concentration, in its unit.
      variation: standard deviation over mean; NaN in clean air, as is the next.
      peak_to_mean: largest over mean.
      intermittency: share of the time above the threshold.
      encounters: whiffs that begin, a second.
      whiff, blank: mean duration of whole whiffs and blanks, seconds; NaN where there was none.
      whiffs, blanks: how many whole ones.
      whiff_law, blank_law: their distributions, with a cut-off.
    """

    mean: float
    variation: float
    peak_to_mean: float
    intermittency: float
    encounters: float
    whiff: float
    blank: float
    whiffs: int
    blanks: int
    whiff_law: PowerLaw
    blank_law: PowerLaw


def record(
    plume: Any, params: Any, key: jax.Array, positions: Any, steps: int, warmup: int = 0
) -> Air:
    """The air at `positions` float32[n, d] after each of `steps` advances, as one scan.

    Leaves lead with `steps`: concentration float32[steps, n], wind float32[steps, n, d]. It can be
    mapped over keys: many plumes at once.

    Args:
      plume: any plume.
      params: of it.
      key: typed key, consumed; that of the whole plume, as `rolling` says.
      positions: lengths of the plume.
      steps: static.
      warmup: advances before them, which are not recorded.
    """
    state = rolling.begin(plume, key, params)
    state = rolling.skip(plume, key, 0, warmup, state, params)
    positions = jnp.asarray(positions, jnp.float32)
    return rolling.follow(plume, key, warmup, steps, state, positions, params)[1]


def intermittency(series: Any, threshold: float) -> np.ndarray:
    """float64[...]: the share of the time above `threshold`."""
    return np.mean(np.asarray(series) > threshold, axis=0)


def encounter_rate(series: Any, threshold: float, dt: float) -> np.ndarray:
    """float64[...]: how many whiffs begin a second."""
    above = np.asarray(series) > threshold
    return np.mean(above[1:] & ~above[:-1], axis=0) / dt


def variation(series: Any) -> np.ndarray:
    """float64[...]: standard deviation over mean; NaN in clean air."""
    series = np.asarray(series, np.float64)
    return _over(series.std(axis=0), series.mean(axis=0))


def peak_to_mean(series: Any) -> np.ndarray:
    """float64[...]: the largest concentration over the mean; NaN in clean air."""
    series = np.asarray(series, np.float64)
    return _over(series.max(axis=0), series.mean(axis=0))


def durations(series: Any, threshold: float, dt: float) -> Durations:
    """The whole whiffs and blanks of a series, or of all places of one `[T, ...]` together.

    The first and the last run of a series are cut off by its ends and left out: a series should be
    many times as long as the longest blank. Durations are whole multiples of `dt`.
    """
    above = np.asarray(series) > threshold
    runs = [_runs(column) for column in above.reshape(len(above), -1).T]
    whiffs, blanks = (
        dt * np.concatenate([lengths[inside == kind] for lengths, inside in runs])
        for kind in (True, False)
    )
    return Durations(whiffs, blanks)


def _runs(above: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(lengths, whether above) of the runs of bool[T] but for the first and the last."""
    edges = np.flatnonzero(above[1:] != above[:-1]) + 1
    return np.diff(edges), above[edges[:-1]]


def fit_power_law(durations: Any, shortest: float, dt: float = 0.0) -> PowerLaw:
    """`p(t) ~ t^-a` above `shortest` by maximum likelihood (Hill 1975): `a = 1 + n / sum ln(t/t0)`.

    Args:
      durations: float[n], seconds.
      shortest: seconds; what is below is left out. Some 6 `dt` or more are best.
      dt: what durations are multiples of: t0 is then `shortest - dt / 2` (Clauset et al. 2009).
    """
    kept, least = _above(durations, shortest, dt)
    spread = np.log(kept / least).sum()
    if len(kept) < 2 or spread == 0:
        return _no_law(shortest, len(kept))
    exponent = 1 + len(kept) / spread
    error = (exponent - 1) / np.sqrt(len(kept))
    return PowerLaw(float(shortest), float(exponent), float(error), np.inf, np.nan, len(kept))


def fit_power_law_with_cutoff(durations: Any, shortest: float, dt: float = 0.0) -> PowerLaw:
    """`p(t) ~ t^-a e^(-t / T)` above `shortest`, a and T by maximum likelihood.

    That of a dilute plume has a = 3/2 (Celani, Villermaux, Vergassola 2014, Physical Review X 4:
    041015). The errors are those of Fisher's information. Arguments as of `fit_power_law`.
    """
    kept, least = _above(durations, shortest, dt)
    x = kept / least
    if len(kept) < _FEWEST or np.ptp(x) == 0:
        return _no_law(shortest, len(kept))
    seen = np.asarray([np.log(x).mean(), x.mean()])

    def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
        a, b = theta[0], np.exp(theta[1])
        log_norm, means, _ = _tempered(a, b)
        return a * seen[0] + b * seen[1] + log_norm, (seen - means) * [1.0, b]

    # A cut-off beyond a hundred times the longest says that none was seen.
    lowest = np.log(0.01 / x.max())
    start = [1 + 1 / seen[0], np.log(1 / x.max())]
    bounds = [_EXPONENTS, (lowest, 3.0)]
    a, log_b = minimize(loss, start, jac=True, bounds=bounds, method="L-BFGS-B").x
    if a in _EXPONENTS:
        return _no_law(shortest, len(kept))
    if log_b <= lowest + 1e-6:
        return fit_power_law(durations, shortest, dt)
    _, _, covariance = _tempered(a, np.exp(log_b))
    errors = np.sqrt(np.diag(np.linalg.inv(covariance)) / len(kept))
    cutoff = least / np.exp(log_b)
    return PowerLaw(
        shortest=float(shortest),
        exponent=float(a),
        error=float(errors[0]),
        cutoff=float(cutoff),
        cutoff_error=float(cutoff * errors[1] / np.exp(log_b)),
        count=len(kept),
    )


_FEWEST = 20
"""Durations that two numbers are fitted to."""

_EXPONENTS = (-3.0, 20.0)
"""An exponent beyond is no power law."""


def _tempered(a: float, b: float) -> tuple[float, np.ndarray, np.ndarray]:
    """`x^-a e^(-b x)` above 1: log of its integral, means and covariance of (ln x, x).

    In s = ln x the integrand is smooth, and falls by e^-60 where this stops.
    """
    last = np.log1p(60 / b)
    s = np.linspace(0, last, 4001)
    log_density = (1 - a) * s - b * np.exp(s)
    top = log_density.max()
    weight = np.exp(log_density - top) * np.gradient(s)
    weight[[0, -1]] /= 2
    total = weight.sum()
    values = np.stack([s, np.exp(s)])
    means = values @ weight / total
    spread = values - means[:, None]
    return float(np.log(total) + top), means, (spread * weight) @ spread.T / total


def mean_duration(shortest: float, cutoff: float) -> float:
    """Seconds: the mean of `t^(-3/2) e^(-t / cutoff)` above `shortest`, about `sqrt(pi tau T) / 2`.

    Good where the cut-off is far above `shortest`.
    """
    return float(np.sqrt(np.pi * shortest * cutoff) / 2)


def summarise(series: Any, threshold: float, dt: float, shortest: float | None = None) -> Summary:
    """The `Summary` of one place: series `[T]`, or `[T, P]` of the same place in P plumes.

    Args:
      series: of the concentration.
      threshold: of whiffs.
      dt: seconds from one number to the next.
      shortest: seconds, where the laws begin; by default 6 dt.
    """
    series = np.asarray(series, np.float64)
    whiffs, blanks = durations(series, threshold, dt)
    pooled = series.reshape(-1)
    shortest = 6 * dt if shortest is None else shortest
    return Summary(
        mean=float(pooled.mean()),
        variation=float(variation(pooled)),
        peak_to_mean=float(peak_to_mean(pooled)),
        intermittency=float(intermittency(pooled, threshold)),
        encounters=float(np.mean(encounter_rate(series, threshold, dt))),
        whiff=float(whiffs.mean()) if len(whiffs) else np.nan,
        blank=float(blanks.mean()) if len(blanks) else np.nan,
        whiffs=len(whiffs),
        blanks=len(blanks),
        whiff_law=fit_power_law_with_cutoff(whiffs, shortest, dt),
        blank_law=fit_power_law_with_cutoff(blanks, shortest, dt),
    )


def downwind(plume: Any, params: Any, distances: Any) -> np.ndarray:
    """float32[n, 2]: places on the axis, `distances` float[n] from the first source.

    The axis is the direction of the mean wind, +x for a plume without one.
    """
    source = np.asarray(first_source(plume, params))[:2]
    wind = mean_wind(plume, params)
    speed = np.hypot(*wind)
    axis = wind / speed if speed > 0 else np.asarray([1.0, 0.0])
    places = source + np.asarray(distances, np.float64)[:, None] * axis
    return places.astype(np.float32)


def profile(
    plume: Any,
    params: Any,
    key: jax.Array,
    distances: Any,
    steps: int,
    threshold: float,
    warmup: int = 0,
) -> list[Summary]:
    """The `Summary` at each of `distances` downwind of the source, from one plume.

    Args:
      plume, params, key, steps, warmup: as of `record`.
      distances: float[n], lengths of the plume.
      threshold: of whiffs, in the unit of the concentration.
    """
    places = downwind(plume, params, distances)
    series = np.asarray(record(plume, params, key, places, steps, warmup).concentration)
    dt = step_seconds(plume, params)
    return [summarise(column, threshold, dt) for column in series.T]


def step_seconds(plume: Any, params: Any) -> float:
    """Seconds of one advance; 1 for a plume without a clock of its own."""
    seconds = clock(plume, params)
    return 1.0 if seconds is None else float(np.asarray(seconds))


def crossing(plume: Any, params: Any) -> int:
    """Advances in which the mean wind goes one and a half times from the source to the end of the
    plume's box, after which a plume that began empty is one; 0 without wind, box or clock."""
    speed = float(np.hypot(*mean_wind(plume, params)))
    seconds = 1.5 * _reach(plume, params) / speed if speed else 0.0
    return round(seconds / step_seconds(plume, params))


def mean_wind(plume: Any, params: Any) -> np.ndarray:
    """float64[2]: the mean wind that the numbers name, lengths a second; 0 if they name none."""
    wind = getattr(plume, "wind", None)
    if wind is None or not hasattr(wind, "mean"):
        return np.zeros(2)
    return np.asarray(wind.mean(params.wind), np.float64)[:2]


def first_source(plume: Any, params: Any) -> np.ndarray:
    """float64[d]: where the first source starts."""
    state = rolling.begin(plume, jax.random.key(0), params)
    return np.asarray(plume.sources(state, params)[0], np.float64)


def dimensionless(plume: Any, params: Any) -> dict[str, float]:
    """The dimensionless numbers that a plume's numbers make, by name; those it lacks left out.

    With U the mean wind, L the distance from the source to the edge of the box along x, D the
    diffusivity, r0 the radius of a newborn puff, q the puffs a second: "Pe" is U L / D, "r0 / L",
    "releases per r0 / U" q r0 / U, and "releases per L / U" the puffs in the air if none strays.
    What is measured on the moving plume, such as u' / U, is in `turbulence_intensity`.
    """
    return dict(_dimensionless(plume, params))


def _dimensionless(plume: Any, params: Any) -> Iterator[tuple[str, float]]:
    speed = float(np.hypot(*mean_wind(plume, params)))
    reach = _reach(plume, params)
    diffusivity, radius, rate = (
        _number(params, name) for name in ("diffusivity", "radius", "rate")
    )
    if hasattr(params, "keep"):  # the fraction of the releases that happen
        rate *= _number(params, "keep")
    if speed and reach and diffusivity:
        yield "Pe", speed * reach / diffusivity
    if reach and radius:
        yield "r0 / L", radius / reach
    if speed and radius and rate:
        yield "releases per r0 / U", rate * radius / speed
    if speed and reach and rate:
        yield "releases per L / U", rate * reach / speed


def turbulence_intensity(wind: Any) -> float:
    """`u' / U` of recorded wind `[..., 2 or 3]`: root mean square deviation of a component over the
    mean speed; NaN without wind."""
    wind = np.asarray(wind, np.float64).reshape(-1, np.shape(wind)[-1])[:, :2]
    mean = wind.mean(axis=0)
    return float(_over(np.sqrt(np.mean(np.square(wind - mean))), np.hypot(*mean)))


def _number(params: Any, name: str) -> float:
    value = getattr(params, name, None)
    return 0.0 if value is None or np.ndim(value) else float(np.asarray(value))


def _reach(plume: Any, params: Any) -> float:
    """From the source to the end of the plume's box along x; 0 if it has none."""
    high = getattr(params, "high", None)
    if high is None or np.ndim(high) != 1:
        return 0.0
    return max(float(np.asarray(high)[0] - first_source(plume, params)[0]), 0.0)


def _over(part: Any, whole: Any) -> np.ndarray:
    """`part / whole`, NaN where the whole is 0."""
    part, whole = np.asarray(part, np.float64), np.asarray(whole, np.float64)
    return np.divide(part, whole, out=np.full(part.shape, np.nan), where=whole != 0)


def _above(durations: Any, shortest: float, dt: float) -> tuple[np.ndarray, float]:
    require(shortest > dt / 2, "shortest", shortest, f"> {dt / 2:g}, half of dt")
    durations = np.asarray(durations, np.float64)
    # Multiples of dt are equal to `shortest` up to rounding only.
    return durations[durations >= shortest * (1 - 1e-9)], shortest - dt / 2


def _no_law(shortest: float, count: int) -> PowerLaw:
    return PowerLaw(float(shortest), np.nan, np.nan, np.nan, np.nan, count)
