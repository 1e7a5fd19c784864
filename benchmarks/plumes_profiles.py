"""benchmarks/plumes_profiles: whiffs and blanks on the axis of each plume, against distance."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.plumes_checks import Check, mean
from plumejax.plumes import catalogue, statistics
from plumejax.plumes.turbulence import observe

AT_ONCE = 8


class Station(NamedTuple):
    """One place on the axis of a plume.

    Attributes:
      distance: from the source, in the plume's lengths.
      intermittency, error: share of the time above the threshold; the error is that among plumes.
      whiff, blank: mean seconds.
      blanks: whole ones seen.
      hill, hill_error: exponent of the blanks by a power law alone, above `shortest`.
      exponent, exponent_error, cutoff: of the blanks by a power law with an exponential cut-off.
      variation: standard deviation of the concentration over its mean.
      density: [seconds, probability a second] of the blanks, in bins of an even ratio.
    """

    distance: float
    intermittency: float
    error: float
    whiff: float
    blank: float
    blanks: int
    hill: float
    hill_error: float
    exponent: float
    exponent_error: float
    cutoff: float
    variation: float
    density: list[list[float]]


class Subject(NamedTuple):
    """A plume to look at.

    Attributes:
      label: in tables and pictures.
      make: `(plume, params)`.
      length: the unit of length.
      plumes, seconds, warmup: how many, how long each is recorded, and how long before.
      distances: from the source.
      threshold: of a whiff, and `rule`, how it is meant.
      shortest: seconds, where the laws of the blanks begin.
    """

    label: str
    make: Callable[[], tuple[Any, Any]]
    length: str
    plumes: int
    seconds: float
    warmup: float
    distances: tuple[float, ...]
    threshold: Callable[[Any], float]
    rule: str
    shortest: float


def _of_birth(share: float, peak: Callable[[Any], float]) -> Callable[[Any], float]:
    return lambda params: share * peak(params)


def _filament_peak(params: Any) -> float:
    return float(params.amount) / (np.sqrt(8 * np.pi**3) * float(params.radius) ** 3)


def _packet_peak(params: Any) -> float:
    return float(params.amount) / (np.pi * float(params.radius) ** 2)


def _tracer_peak(params: Any) -> float:
    return 1 / (2 * np.pi * float(params.radius) ** 2)


BIRTH = "1e-3 of the middle of a newborn puff"

SUBJECTS = {
    "straight": Subject(
        "Farrell puffs, straight wind",
        partial(catalogue.make, "farrell-straight", substeps=2),
        *("m", 16, 400.0, 60.0, (1, 2, 5, 10, 15, 20, 25, 40)),
        *(_of_birth(1e-3, _filament_peak), BIRTH, 0.5),
    ),
    "meandering": Subject(
        "Farrell puffs, meandering wind",
        partial(catalogue.make, "farrell", substeps=2),
        *("m", 16, 400.0, 60.0, (1, 2, 5, 10, 15, 20, 25, 40)),
        *(_of_birth(1e-3, _filament_peak), BIRTH, 0.5),
    ),
    "tracking": Subject(
        "plume tracking",
        partial(catalogue.make, "tracking-code"),
        *("m", 16, 100.0, 30.0, (0.5, 1, 2, 3, 4, 6, 8)),
        *(lambda _: 1e-4, "1e-4, the published one", 0.25),
    ),
    "sparse": Subject(
        "plume tracking, sparse",
        partial(catalogue.make, "tracking-code-sparse"),
        *("m", 16, 100.0, 30.0, (0.5, 1, 2, 3, 4, 6, 8)),
        *(lambda _: 1e-4, "1e-4, the published one", 0.25),
    ),
    "packets": Subject(
        "packets, Ornstein-Uhlenbeck",
        partial(catalogue.make, "packets-ou"),
        *("mm", 32, 500.0, 6.0, (30, 60, 120, 240, 360, 480)),
        *(_of_birth(1e-3, _packet_peak), BIRTH.replace("puff", "packet"), 0.5),
    ),
    "tracers": Subject(
        "tracers in the Fourier flow",
        partial(catalogue.make, "fourier-flow"),
        *("m", 16, 1500.0, 60.0, (1, 2, 5, 10, 20, 30)),
        *(_of_birth(1e-3, _tracer_peak), "1e-3 of the middle of a tracer", 1.0),
    ),
}

FIELD = {
    "distance, m": (20, 40, 100, 220),
    "intermittency": (0.41, 0.40, 0.58, 0.66),
    "mean whiff, s": (0.18, 0.10, 0.13, 0.365),
}
"""Open field, Yee et al. 1993 and Mylne and Mason 1991, as the design pages quote them."""


def profile(subject: Subject, quick: bool) -> list[Station]:
    """The stations of a plume; `quick` takes an eighth of the time."""
    plume, params = subject.make()
    dt = statistics.step_seconds(plume, params)
    seconds = subject.seconds / 8 if quick else subject.seconds
    places = statistics.downwind(plume, params, subject.distances)

    def one(key: jax.Array) -> jax.Array:
        warmup = round(subject.warmup / dt)
        record = statistics.record(plume, params, key, places, round(seconds / dt), warmup)
        return record.concentration

    keys = jax.random.split(jax.random.key(11), subject.plumes)
    series = np.asarray(jax.jit(lambda k: jax.lax.map(one, k, batch_size=AT_ONCE))(keys))
    threshold = subject.threshold(params)
    return [
        station(d, series[:, :, i].T, threshold, dt, subject.shortest)
        for i, d in enumerate(subject.distances)
    ]


def station(
    distance: float, series: np.ndarray, threshold: float, dt: float, shortest: float
) -> Station:
    """That of series float32[T, P] at one place in P plumes, or in P independent parts of one."""
    share = statistics.intermittency(series, threshold)
    whiffs, blanks = statistics.durations(series, threshold, dt)
    alone = statistics.fit_power_law(blanks, shortest, dt)
    cut = statistics.fit_power_law_with_cutoff(blanks, shortest, dt)
    return Station(
        distance=float(distance),
        intermittency=float(share.mean()),
        error=float(share.std(ddof=1) / np.sqrt(len(share))),
        whiff=_mean(whiffs),
        blank=_mean(blanks),
        blanks=len(blanks),
        hill=alone.exponent,
        hill_error=alone.error,
        exponent=cut.exponent,
        exponent_error=cut.error,
        cutoff=cut.cutoff,
        variation=float(statistics.variation(series.ravel())),
        density=density(blanks, dt),
    )


def density(durations: np.ndarray, dt: float) -> list[list[float]]:
    """[seconds, probability a second] in bins of whole `dt`, of an even ratio; no empty ones."""
    if not len(durations):
        return []
    last = np.ceil(durations.max() / dt) + 1
    edges = np.unique(np.round(np.geomspace(1, last, 25))) - 0.5
    counts, _ = np.histogram(durations / dt, edges)
    middle = np.sqrt(np.maximum(edges[:-1], 0.5) * edges[1:]) * dt
    per_second = counts / len(durations) / (np.diff(edges) * dt)
    seen = counts > 0
    return np.stack([middle[seen], per_second[seen]], -1).tolist()


def _mean(durations: np.ndarray) -> float:
    return float(durations.mean()) if len(durations) else float("nan")


# Turbulence, of which budgets and series come from one run


class Turbulence(NamedTuple):
    """Attributes: `checks`; `axis`, stations; `across`, [offset, intermittency, error, variation];
    `facts`, the dimensionless numbers by name; `distance` of the transect."""

    checks: list[Check]
    axis: list[Station]
    across: list[list[float]]
    facts: dict[str, float]
    distance: float


AXIS = (0.5, 1.0, 2.0, 4.0, 6.0, 8.0)
TRANSECT = 6.0
PARTS = 8


def turbulence(quick: bool) -> Turbulence:
    """The default turbulent plume while the wind crosses its box 16 times, and with dt halved."""
    crossings = 4 if quick else 16
    plume, params = catalogue.make("turbulence")
    run = _Run(plume, params, crossings)
    halved = params.replace(dt=np.float32(float(params.dt) / 2))
    # As long a warm-up in seconds.
    fine = _Run(type(plume)(warmup=2 * plume.warmup), halved, crossings / 2)
    series = run.gas[:, : len(AXIS)]
    dt = float(params.dt)
    axis = [station(d, run.parts(series[:, i]), 0.02, dt, 6 * dt) for i, d in enumerate(AXIS)]
    across = []
    for i, offset in enumerate(OFFSETS):
        gas = run.parts(run.gas[:, len(AXIS) + i])
        share = (gas > 0.02).mean(axis=0)
        variation = float(statistics.variation(gas.ravel()))
        error = share.std(ddof=1) / np.sqrt(PARTS)
        across.append([float(offset), float(share.mean()), float(error), variation])
    return Turbulence(run.checks() + _same(run, fine), axis, across, run.facts(), TRANSECT)


OFFSETS = np.linspace(-2.2, 2.2, 23)


class _Run:
    """A turbulent plume looked at for a while.

    Attributes:
      budget: leaves float64[T].
      gas: float32[T, n], on the axis and then across it.
    """

    def __init__(self, plume: Any, params: Any, crossings: float) -> None:
        self.plume, self.params = plume, params
        source = np.asarray(params.source)
        on_axis = source + np.stack([AXIS, np.zeros(len(AXIS))], -1)
        across = source + np.stack([np.full(len(OFFSETS), TRANSECT), OFFSETS], -1)
        places = np.concatenate([on_axis, across]).astype(np.float32)
        seconds = crossings * float(params.length)
        chunk = round(seconds / PARTS / float(params.dt))
        first, key = jax.random.split(jax.random.key(12))
        state = jax.jit(plume.start)(first, params)
        budgets, gas, lows, highs = [], [], [], []
        for part in jax.random.split(key, PARTS):
            state, budget, air = observe(plume, params, part, state, jnp.asarray(places), chunk)
            budgets.append([np.asarray(x, np.float64) for x in budget])
            gas.append(np.asarray(air.concentration))
            lows.append(float(state.concentration.min()))
            highs.append(float(state.concentration.max()))
        self.budget = type(budget)(*(np.concatenate(x) for x in zip(*budgets, strict=True)))
        self.gas = np.concatenate(gas)
        self.bounds = min(lows), max(highs)

    def parts(self, series: np.ndarray) -> np.ndarray:
        """float[T / PARTS, PARTS]: a series in parts of more than two crossings."""
        return series.reshape(PARTS, -1).T

    def checks(self) -> list[Check]:
        b, dt = self.budget, float(self.params.dt)
        energy = np.diff(b.energy) - (b.injected - b.dissipated - b.dragged)[1:]
        mass = np.diff(b.mass) - (b.emitted - b.absorbed)[1:]
        low, high = self.bounds
        injected = self.parts(b.injected).mean(axis=0) / dt
        return [
            mean("energy injected a second", float(self.params.forcing), injected),
            Check(
                "energy: sum of (change - gains + losses) / injected",
                0.0,
                float(energy.sum() / b.injected.sum()),
                slack=2e-3,
            ),
            Check(
                "gas: sum of (change - emitted + absorbed) / emitted",
                0.0,
                float(mass.sum() / b.emitted.sum()),
                slack=1e-5,
            ),
            Check("gas: lowest on the grid", 0.0, low, slack=1e-6),
            Check("gas: excess over 1 on the grid", 0.0, max(high - 1, 0.0), slack=1e-6),
        ]

    def facts(self) -> dict[str, float]:
        params, plume = self.params, self.plume
        rms = np.sqrt(self.budget.energy.mean())
        eddy = float(params.length) * plume.shape[0] / plume.shape[1] / plume.forcing_wavenumber
        speed = float(np.hypot(*np.asarray(plume.wind.mean(params.wind))))
        nu, kappa = float(params.viscosity), float(params.diffusivity)
        return {
            "u' / U": float(rms / speed),
            "Re_f = u' l_f / nu": float(rms * eddy / nu),
            "Sc": nu / kappa,
            "Pe = u' l_f / kappa": float(rms * eddy / kappa),
            "source radius / l_f": float(params.radius) / eddy,
            "crossings": len(self.gas) * float(params.dt) * speed / float(params.length),
        }


def _same(run: _Run, fine: _Run) -> list[Check]:
    """Statistics of two runs, the second of half the dt; errors are among the parts of each."""
    numbers = {
        "energy": (run.budget.energy, fine.budget.energy),
        **{
            f"intermittency at {AXIS[i]:g} m": (run.gas[:, i] > 0.02, fine.gas[:, i] > 0.02)
            for i in (2, 4)
        },
        f"intermittency {OFFSETS[16]:.1f} m off the axis": tuple(
            r.gas[:, len(AXIS) + 16] > 0.02 for r in (run, fine)
        ),
    }
    checks = []
    for name, (ours, theirs) in numbers.items():
        means, errors = [], []
        for each, series in ((run, ours), (fine, theirs)):
            parts = each.parts(series).mean(axis=0)
            means.append(float(parts.mean()))
            errors.append(float(parts.std(ddof=1) / np.sqrt(PARTS)))
        what = f"{name}, dt halved beside dt"
        checks.append(Check(what, means[0], means[1], float(np.hypot(*errors))))
    return checks


def plain(stations: Sequence[Station]) -> list[dict[str, Any]]:
    """For JSON, which has no number for what is not one."""
    return [
        {
            name: None if isinstance(x, float) and not np.isfinite(x) else x
            for name, x in each._asdict().items()
        }
        for each in stations
    ]
