"""benchmarks/plumes_checks: every plume model against the closed forms that it has to meet."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from plumejax.plumes import encounters, packets, particles
from plumejax.plumes.bank import make_bank
from plumejax.plumes.filaments import FarrellWind, FilamentPlume, TrackingPlume
from plumejax.plumes.flow import FourierFlow, TracerPlume
from plumejax.plumes.gaussian import AnisotropicGaussianPlume, GaussianPlume, WindGaussianPlume
from plumejax.plumes.recorded import RecordedPlume
from plumejax.plumes.wind import (
    Meander,
    OrnsteinUhlenbeck,
    RecordedWind,
    SwitchMany,
    SwitchOnce,
)

GOLDEN = Path(__file__).parents[1] / "tests" / "golden"
SIGMAS = 3.0
AT_ONCE = 16
"""Plumes side by side: more of them do not fit into a processor's cache."""


class Check(NamedTuple):
    """A number that theory or a publication gives, and what the model gives.

    Attributes:
      what: which number.
      expected, measured: it, and ours.
      error: the standard error of `measured` (and of `expected` where that has one).
      slack: what rounding, or a step that is not small, may add.
    """

    what: str
    expected: float
    measured: float
    error: float = 0.0
    slack: float = 0.0

    @property
    def met(self) -> bool:
        """Within three standard errors and the slack."""
        return abs(self.measured - self.expected) <= SIGMAS * self.error + self.slack


def mean(what: str, expected: float, samples: Any, slack: float = 0.0) -> Check:
    """The check of a mean of independent samples float[n]."""
    samples = np.asarray(samples, np.float64).ravel()
    error = samples.std(ddof=1) / np.sqrt(len(samples))
    return Check(what, float(expected), float(samples.mean()), float(error), slack)


def variance(what: str, expected: float, samples: Any, slack: float = 0.0) -> Check:
    """The check of the variance of independent samples float[n]; its error is as of normal ones."""
    samples = np.asarray(samples, np.float64).ravel()
    error = expected * np.sqrt(2 / (len(samples) - 1))
    return Check(what, float(expected), float(samples.var(ddof=1)), float(error), slack)


def share(what: str, expected: float, hits: Any, slack: float = 0.0) -> Check:
    """The check of how often something is so, bool[n] independent; the error is that of chance."""
    error = np.sqrt(expected * (1 - expected) / np.size(hits))
    return Check(what, expected, float(np.mean(hits)), float(error), slack)


def largest(what: str, deviations: Any, slack: float) -> Check:
    """The check that the largest of the deviations is 0 but for the slack."""
    return Check(what, 0.0, float(np.max(np.abs(np.asarray(deviations)))), slack=slack)


@partial(jax.jit, static_argnames=("plume", "steps", "lanes"))
def rolled(plume: Any, params: Any, key: jax.Array, steps: int, lanes: int) -> Any:
    """The states of `lanes` plumes after `steps` advances; leaves lead with `lanes`."""

    def one(key: jax.Array) -> Any:
        first, rest = jax.random.split(key)
        state = plume.start(first, params)
        return particles.repeat(lambda k, s: plume.advance(k, s, params), rest, state, steps)

    return jax.lax.map(one, jax.random.split(key, lanes), batch_size=AT_ONCE)


@partial(jax.jit, static_argnames=("wind", "steps", "every", "lanes"))
def blown(
    wind: Any, params: Any, key: jax.Array, dt: Any, steps: int, every: int, lanes: int
) -> Any:
    """States of `lanes` winds at the start and after every `every` steps of dt, [lanes, times]."""

    def one(key: jax.Array) -> Any:
        first, rest = jax.random.split(key)

        def turn(state: Any, key: jax.Array) -> tuple[Any, Any]:
            advance = lambda k, s: wind.advance(k, s, dt, params)  # noqa: E731
            return particles.repeat(advance, key, state, every), state

        return jax.lax.scan(turn, wind.start(first, params), jax.random.split(rest, steps))[1]

    return jax.vmap(one)(jax.random.split(key, lanes))


# Closed forms in space


def gaussian(lanes: int) -> list[Check]:
    """No chance in these: what is left is rounding, and the width of a quadrature's steps."""
    key, rng = jax.random.key(0), np.random.default_rng(0)
    x, y = (a.ravel() for a in np.meshgrid(np.arange(128), np.arange(128)))
    cells = np.stack([x, y], -1).astype(np.float32)
    plume = GaussianPlume()
    params = plume.default_params()
    seen = plume.sample(plume.start(key, params), cells, params).concentration
    wanted = np.exp(-((x - 64.0) ** 2 + (y - 64.0) ** 2) / (2 * 12.0**2))
    long = AnisotropicGaussianPlume()
    turned = long.default_params().replace(angle=np.float32(30), sigma=np.float32([14, 5]))
    total = long.sample(long.start(key, turned), cells, turned).concentration.sum()
    checks = [
        largest("isotropic: largest deviation from the closed form", seen - wanted, 1e-6),
        Check("isotropic: at the source", 1.0, float(seen.max())),
        Check("turned by 30 degrees: integral / (2 pi s1 s2)", 1.0, total / (140 * np.pi), 0, 1e-3),
    ]
    for dimensions, reflection in ((2, 1.0), (3, 1.0), (3, 0.0)):
        for x in (0.5, 4.0):
            flux = _flux(WindGaussianPlume(dimensions), reflection, x)
            ground = f", reflection {reflection:g}" if dimensions == 3 else ""
            what = f"wind, {dimensions}-D{ground}: flux through x = {x:g} m / rate"
            checks.append(Check(what, 1.0, flux, slack=1e-3))
    still = WindGaussianPlume()
    slow = still.default_params().replace(
        velocity=np.float32([1e-8, 0]), reflection=np.float32(0.0), vertical=np.float32(0.05)
    )
    away = rng.normal(0, 2, (200, 3)).astype(np.float32) + slow.source
    distance = np.linalg.norm(away - slow.source, axis=1)
    gas = still.sample(still.start(key, slow), away, slow).concentration
    ratio = np.asarray(gas) * 4 * np.pi * 0.05 * distance
    checks.append(largest("wind -> 0: C 4 pi D r / rate - 1", ratio - 1, 1e-4))
    checks += [
        largest(f"wind, 3-D: slope by {name}, relative deviation", d, 2e-4)
        for name, d in _slopes().items()
    ]
    return checks


def _flux(plume: WindGaussianPlume, reflection: float, x: float) -> float:
    """What passes the plane x m downwind of the source, `integral (u C - D dC/dx)`, over rate."""
    params = plume.default_params().replace(reflection=np.float32(reflection))
    state = plume.start(jax.random.key(0), params)
    cell = 0.02 if x > 1 else 0.01
    y = np.arange(-12 + cell / 2, 12, cell)
    # Without reflection the plume fills the space below the ground as well.
    z = y[y > 0] if reflection else y
    grid = np.meshgrid(y, z, indexing="ij") if plume.dimensions == 3 else [y]
    places = np.stack([np.full(grid[0].size, x), *(g.ravel() for g in grid)], -1)

    @jax.jit
    def passing(place: jax.Array) -> jax.Array:
        def at(place: jax.Array) -> jax.Array:
            return plume.sample(state, place[None], params).concentration[0]

        gas, slope = jax.value_and_grad(at)(place)
        return params.velocity[0] * gas - params.diffusivity * slope[0]

    flux = jax.lax.map(passing, jnp.asarray(places, jnp.float32), batch_size=8192)
    return float(np.asarray(flux, np.float64).sum() * cell ** (plume.dimensions - 1))


def _slopes() -> dict[str, np.ndarray]:
    """Relative deviation of gradients from differences of the closed form in float64, by number."""
    plume = WindGaussianPlume()
    params = plume.default_params()
    places = np.random.default_rng(1).uniform([1, -1, 0.2], [8, 1, 2], (50, 3)).astype(np.float32)

    def ours(source: Any, velocity: Any, diffusivity: Any, place: Any) -> jax.Array:
        own = params.replace(source=source, velocity=velocity, diffusivity=diffusivity)
        own = own.replace(vertical=diffusivity)
        state = plume.start(jax.random.key(0), own)
        return plume.sample(state, place[None], own).concentration[0]

    def closed(source: Any, velocity: Any, diffusivity: Any, place: Any) -> Any:
        speed, total = np.hypot(*velocity), 0.0
        for below in (1, -1):
            away = place - source * [1, 1, below]
            r = np.linalg.norm(away)
            power = (velocity @ away[:2] - speed * r) / (2 * diffusivity)
            total += np.exp(power) / (4 * np.pi * diffusivity * r)
        return total

    numbers = {
        "source": np.asarray(params.source, float),
        "wind": np.asarray([0.5, 0.1]),
        "diffusivity": np.asarray(0.05),
    }
    slopes = jax.jit(jax.vmap(jax.grad(ours, argnums=(0, 1, 2)), in_axes=(None, None, None, 0)))
    found = slopes(*(jnp.asarray(x, jnp.float32) for x in numbers.values()), places)
    deviations = {}
    for which, (name, value) in enumerate(numbers.items()):
        got = np.asarray(found[which], float).reshape(len(places), -1)
        wanted = np.empty_like(got)
        for index in range(value.size):
            step = np.zeros(value.size)
            step[index] = 1e-5
            ends = []
            for sign in (1, -1):
                moved = list(numbers.values())
                moved[which] = value + sign * step.reshape(value.shape)
                ends.append([closed(*moved, place.astype(float)) for place in places])
            wanted[:, index] = (np.asarray(ends[0]) - ends[1]) / 2e-5
        size = np.linalg.norm(wanted, axis=1, keepdims=True)
        deviations[name] = (got - wanted) / size
    return deviations


def encounter_rates(lanes: int) -> list[Check]:
    """The published tables in float64, by the largest deviation."""
    golden = json.loads((GOLDEN / "encounters.json").read_text())
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        return _encounter_tables(golden)
    finally:
        jax.config.update("jax_enable_x64", before)


def _encounter_tables(golden: dict[str, Any]) -> list[Check]:
    rates, laws, beliefs = [], [], []
    for row in golden["isotropic"]:
        length, rate = np.float64(row["L"]), np.float64(row["I"])
        mu = encounters.isotropic_rate(jnp.ones(()), length, rate, row["n"])
        rates.append(float(mu) - row["mu1"])
        law = encounters.first_hit_probabilities(length, rate, row["n"], row["H"])
        laws += list(law - row["first"])
    for row in golden["after_one_hit"]:
        law = encounters.IsotropicParams(np.float64(row["L"]), np.float64(row["I"]))
        plume = encounters.EncounterPlume(encounters.Isotropic(), (row["N"],) * row["n"])
        belief, place = _belief(plume, law, [row["N"] // 2] * row["n"], 4)
        beliefs.append(float(encounters.entropy(belief)) - row["entropy"])
        beliefs.append(float(encounters.mean_distance(belief, place)) - row["distance"])
        middle = [row["N"] // 2] * row["n"]
        beside = tuple(np.asarray(middle) + np.eye(row["n"], dtype=int)[0])
        beliefs.append(float(belief[beside]) - row["at"]["+"])
    row = golden["windy_after_one_hit"]
    law = encounters.WindyParams(np.float64(2.5), np.float64(2.0), np.float64(150.0))
    plume = encounters.EncounterPlume(encounters.Windy(), (81, 41))
    belief, place = _belief(plume, law, row["start"], 2)
    windy = [float(encounters.entropy(belief)) - row["entropy"]]
    windy.append(float(encounters.mean_distance(belief, place)) - row["distance"])
    windy += [float(belief[x, y]) - p for x, y, p in row["at"]]
    return [
        largest("isotropic: mu at one cell, five cases of 1 to 3 dimensions", rates, 5.1e-7),
        largest("isotropic: law of the first hit, five cases", laws, 5.1e-7),
        largest("isotropic: entropy, distance, belief after a hit, three cases", beliefs, 1e-9),
        largest("windy: entropy, distance, belief after a hit", windy, 1e-9),
    ]


def _belief(plume: Any, law: Any, place: Any, categories: int) -> tuple[jax.Array, jax.Array]:
    where = jnp.asarray(place, jnp.float64)
    params = plume.default_params().replace(law=law)
    likelihood = encounters.likelihoods(plume, params, where, categories)[1]
    return encounters.posterior(encounters.uniform_prior(plume.grid_size, where), likelihood), where


# Winds


def winds(lanes: int) -> list[Check]:
    return [*_switching(lanes), *_wandering(lanes), *_swinging(lanes), *farrell_noise(lanes)]


def _switching(lanes: int) -> list[Check]:
    once, key = SwitchOnce(), jax.random.key(0)
    params = once.default_params()
    states = np.float32([59.9, 60.1])
    angles = [
        np.degrees(np.arctan2(*once.at(s, jnp.zeros((2, 1)), params)[::-1, 0])) for s in states
    ]
    checks = [Check("switch-once: turn at its time, degrees", 45.0, angles[1] - angles[0], 0, 1e-4)]
    many = SwitchMany()
    params = many.default_params()
    for dt in (0.01, 0.005):
        every = round(0.5 / dt)
        offset = np.asarray(blown(many, params, key, dt, 120, every, 4 * lanes).offset, float)
        switches = np.sum(offset[:, 1:] != offset[:, :-1], axis=1) / (119 * 0.5)
        checks.append(mean(f"switch-many: switches a second, dt {dt:g} s", 1 / 3, switches))
        start, end = offset[:, 0], offset[:, -1]
        # N(0, 30) clipped at two standard deviations.
        expected = 900 * _clipped_variance(2.0)
        checks.append(variance(f"switch-many: variance at the start, dt {dt:g} s", expected, start))
        checks.append(variance(f"switch-many: variance after 60 s, dt {dt:g} s", expected, end))
    return checks


def _clipped_variance(limit: float) -> float:
    """Of a standard normal number that is clipped at +-limit."""
    x = np.linspace(-limit, limit, 20001)
    inside = np.trapezoid(x**2 * np.exp(-(x**2) / 2), x) / np.sqrt(2 * np.pi)
    beyond = 1 - np.trapezoid(np.exp(-(x**2) / 2), x) / np.sqrt(2 * np.pi)
    return float(inside + limit**2 * beyond)


def _wandering(lanes: int) -> list[Check]:
    wind = OrnsteinUhlenbeck()
    params, checks = wind.default_params(), []
    for dt in (0.1, 0.05):
        every = round(2.5 / dt)
        states = blown(wind, params, jax.random.key(1), dt, 5, every, 16 * lanes)
        states = np.asarray(states, float) / 0.1
        first = states[:, 0]
        name = "Ornstein-Uhlenbeck"
        checks.append(variance(f"{name}: variance after 10 s, dt {dt:g} s", 1.0, states[:, -1]))
        for k in (1, 2, 4):
            what = f"{name}: correlation over {2.5 * k:g} s, dt {dt:g} s"
            checks.append(mean(what, np.exp(-2.5 * k / 5), first * states[:, k]))
    return checks


def _swinging(lanes: int) -> list[Check]:
    wind = Meander()
    params = wind.default_params()
    phases = blown(wind, params, jax.random.key(2), 0.01, 3, 1000, 8 * lanes)
    angle = np.sin(2 * np.pi * np.asarray(phases, float)) * 20
    series = np.random.default_rng(0).normal(0, 1, (50, 2)).astype(np.float32)
    played = RecordedWind(50)
    numbers = played.default_params().replace(velocities=series)
    states = blown(played, numbers, jax.random.key(3), 1.0, 2, 7, 64 * lanes)
    at = jax.vmap(lambda s: played.at(s, jnp.zeros((2, 1), jnp.float32), numbers)[:, 0])
    seen = np.asarray(at(states[:, 1]), float)
    return [
        mean("meander: variance of the direction, degrees^2", 200.0, angle[:, 0] ** 2),
        largest("meander: half a period turns it over", angle[:, 1] + angle[:, 0], 0.05),
        largest("meander: a period brings it back", angle[:, 2] - angle[:, 0], 0.05),
        mean("recorded: mean along x", float(series[:, 0].mean()), seen[:, 0]),
        mean("recorded: mean along y", float(series[:, 1].mean()), seen[:, 1]),
    ]


def farrell_noise(lanes: int) -> list[Check]:
    """The noise at the corners: an oscillator, of which all is known; eight channels a wind."""
    wind = FarrellWind(shape=(3, 3), spin_up=0)
    params = wind.default_params()
    damping, bandwidth = float(params.damping), float(params.bandwidth)
    expected = float(params.gain) ** 2 * bandwidth / (4 * damping)
    slower = bandwidth * np.sqrt(1 - damping**2)
    checks = []
    for dt in (0.1, 0.05):
        states = blown(wind, params, jax.random.key(4), dt, 5, round(8 / dt), lanes)
        noise = np.asarray(states.noise, float).reshape(lanes, 5, -1)
        what = f"Farrell: variance of the noise after 32 s, dt {dt:g} s"
        checks.append(variance(what, expected, noise[:, -1]))
        for k in (1, 2, 4):
            lag = 8.0 * k
            wave = np.cos(slower * lag) + damping * bandwidth / slower * np.sin(slower * lag)
            correlation = np.exp(-damping * bandwidth * lag) * wave
            what = f"Farrell: correlation of the noise over {lag:g} s, dt {dt:g} s"
            checks.append(mean(what, correlation, noise[:, 0] * noise[:, k] / expected))
    return checks


# Puffs


def farrell(lanes: int) -> list[Check]:
    """Without wind noise, 40 s from an empty plume and ten puffs, in which no puff can leave."""
    plume = FilamentPlume(capacity=544)
    params = plume.default_params()
    east = params.wind.replace(velocity=np.float32([1, 0]))
    checks = []
    for dt, size in ((0.01, lanes), (0.005, lanes // 2)):
        own = params.replace(wind=east, dt=np.float32(dt))
        states = rolled(plume, own, jax.random.key(1), round(40 / dt), size)
        checks += _farrell_puffs(states, own, f", dt {dt:g} s")
    return checks + _farrell_field(lanes, params.replace(wind=east)) + _puff_holds(plume, params)


def _farrell_puffs(states: Any, params: Any, at: str) -> list[Check]:
    puffs = jax.tree.map(np.asarray, states.particles)
    counts = puffs.born.astype(float)
    used = puffs.alive & (puffs.age > 0.5)
    age = puffs.age[used].astype(float)
    x, y, z = (puffs.position[:, i][used].astype(float) for i in range(3))
    walks = {"x": x - 5 - age, "y": y, "z": z}
    return [
        mean(f"count after 40 s, 10 + 10 t{at}", 410.0, counts),
        variance(f"variance of the count, 10 t{at}", 400.0, counts),
        *(
            mean(f"var({name}) / age / (2 D){at}", 1.0, walk**2 / age / 0.04)
            for name, walk in walks.items()
        ),
    ]


PLACES = ((7, 0), (10, 0), (10, 1), (15, 0), (20, 0), (30, 0))


def _farrell_field(lanes: int, params: Any) -> list[Check]:
    """What is seen from 10 to 40 s, in units of the middle of a newborn puff."""
    straight = FilamentPlume(capacity=544, substeps=20)
    meandering = FilamentPlume(capacity=544, substeps=20, wind=FarrellWind())
    means, shares = _early(straight, params, 2 * lanes)
    checks = [
        mean(f"mean field at ({x}, {y}), 1e-3", 1e3 * farrell_mean(x, y), 1e3 * means[:, i])
        for i, (x, y) in enumerate(PLACES)
    ]
    own = meandering.default_params()
    for wind, seen, published in (
        ("straight", shares, (0.31, 0.12)),
        ("meandering", _early(meandering, own, lanes)[1], (0.06, 0.01)),
    ):
        for place, distance, share in ((1, 5, published[0]), (5, 25, published[1])):
            what = f"{wind} wind: intermittency {distance} m behind the source, 10 to 40 s"
            check = mean(what, share, seen[:, place], 0.005)
            # The design pages give two digits, of sixteen runs.
            error = float(np.hypot(check.error, seen[:, place].std(ddof=1) / 4))
            checks.append(check._replace(error=error))
    return checks


def _early(plume: FilamentPlume, params: Any, lanes: int) -> tuple[np.ndarray, np.ndarray]:
    """Means and shares of time above 1e-3, float64[lanes, places], from 10 to 40 s after an empty
    start, in units of the middle of a newborn puff."""
    places = np.float32([[x, y, 0] for x, y in PLACES])
    peak = float(params.amount) / (np.sqrt(8 * np.pi**3) * float(params.radius) ** 3)

    @jax.jit
    def runs(key: jax.Array) -> tuple[jax.Array, jax.Array]:
        def one(key: jax.Array) -> tuple[jax.Array, jax.Array]:
            first, rest = jax.random.split(key)

            def turn(state: Any, key: jax.Array) -> tuple[Any, jax.Array]:
                state = plume.advance(key, state, params)
                return state, plume.sample(state, places, params).concentration

            state = plume.start(first, params)
            gas = jax.lax.scan(turn, state, jax.random.split(rest, 200))[1][50:] / peak
            return gas.mean(axis=0), (gas > 1e-3).mean(axis=0)

        return jax.lax.map(one, jax.random.split(key, lanes), batch_size=AT_ONCE)

    means, shares = runs(jax.random.key(2))
    return np.asarray(means, np.float64), np.asarray(shares, np.float64)


def farrell_mean(x: float, y: float) -> float:
    """The closed form, mean of 10 to 40 s, in units of the middle of a newborn puff.

    `q A integral (2 pi s2)^(-3/2) exp(-((x - 5 - U tau)^2 + y^2) / (2 s2)) dtau` over the ages that
    there are, and the ten puffs that were there first.
    """
    age = np.linspace(0, 40, 400_001)
    square = 0.001 + (0.001 + 0.04) * age
    puff = (0.001 / square) ** 1.5 * np.exp(-((x - 5 - age) ** 2 + y**2) / (2 * square))
    step = age[1]
    # An age is there from the moment when a puff can have it.
    share = np.clip((40 - age) / 30, 0, 1)
    first = np.sum(puff[age >= 10]) * step / 30
    return float(10 * np.sum(puff * share) * step + 10 * first)


def _puff_holds(plume: FilamentPlume, params: Any) -> list[Check]:
    own = params.replace(rate=np.float32(0), initial=np.int32(7), diffusivity=np.float32(0))
    own = own.replace(growth=np.float32(0.05))
    states = rolled(plume, own, jax.random.key(3), 200, 1)
    state = jax.tree.map(lambda x: x[0], states)
    width = 0.001 + 0.05 * 2.0
    line = np.arange(-3, 3.01, 0.15, dtype=np.float32)
    grid = np.stack([a.ravel() for a in np.meshgrid(line, line, line)], axis=-1)
    middle = state.particles.position[:, 0][None]
    peak = plume.sample(state, middle, own).concentration[0]
    total = np.asarray(plume.sample(state, middle + grid, own).concentration, float).sum()
    closed = 7 * float(own.amount) / (np.sqrt(8 * np.pi**3) * width**1.5)
    held = total * 0.15**3 / (7 * float(own.amount))
    return [
        Check(
            "radius^2 after 2 s, from the peak: r^2 / (r0^2 + g t)",
            1.0,
            (closed / peak) ** (2 / 3),
            0,
            1e-4,
        ),
        Check("integral over space / (A x count)", 1.0, held, slack=1e-4),
    ]


def tracking(lanes: int) -> list[Check]:
    golden = json.loads((GOLDEN / "filaments.json").read_text())["tracking_intermittency"]
    plume = TrackingPlume()
    params, checks = plume.default_params(), []
    for dt in (0.01, 0.005):
        own = params.replace(dt=np.float32(dt))
        states = rolled(plume, own, jax.random.key(5), round(30 / dt / 4), lanes // 2)
        puffs = jax.tree.map(np.asarray, states.particles)
        used = puffs.alive & (puffs.age > 0.2)
        age = puffs.age[used].astype(float)
        y = puffs.position[:, 1][used].astype(float)
        counts = puffs.alive.sum(axis=1)
        checks += [
            # A puff leaves with the first step beyond the end: half a step more on average.
            mean(f"steady count, dt {dt:g} s", golden["steady_count"], counts, 100 * dt),
            mean(f"var(y) / age / (2 D), dt {dt:g} s", 1.0, y**2 / age / 0.0025),
        ]
    return [*checks, *_tracking_axis(lanes, golden), *_square(plume, params)]


def _tracking_axis(lanes: int, golden: dict[str, Any]) -> list[Check]:
    plume = TrackingPlume(capacity=1200)
    sparse = plume.default_params().replace(keep=np.float32(0.4), growth=np.float32(0.005))
    places = np.float32([[x, 0] for x in golden["distances"]])
    states = rolled(plume, sparse, jax.random.key(6), 625, 8 * lanes)
    gas = jax.jit(
        lambda states: jax.lax.map(
            lambda s: plume.sample(s, places, sparse).concentration, states, batch_size=AT_ONCE
        )
    )(states)
    above = np.asarray(gas) > 1e-4
    return [
        # The design pages give two digits.
        share(f"sparse: intermittency at {x} m", chance, above[:, i], 0.005)
        for i, (x, chance) in enumerate(zip(golden["distances"], golden["shares"], strict=True))
    ]


def _square(plume: TrackingPlume, params: Any) -> list[Check]:
    own = params.replace(rate=np.float32(400), diffusivity=np.float32(0))
    own = own.replace(wind=own.wind.replace(velocity=np.zeros(2, np.float32)))
    state = jax.tree.map(lambda x: x[0], rolled(plume, own, jax.random.key(7), 1, 1))
    puffs = state.particles
    aged = state.replace(particles=puffs.replace(age=jnp.full_like(puffs.age, 9.0)))
    count = float(puffs.alive.sum())
    seen = plume.sample(aged, np.float32([[0, 0], [0.099, -0.099], [0.101, 0]]), own)
    wanted = count * np.asarray([1e-3, 1e-3, 0])
    what = "c = (r0 / r)^3 nearer than r in x and in y, else 0: largest relative deviation"
    return [largest(what, (seen.concentration - wanted) / (1e-3 * count), 1e-5)]


# Packets


def packet_plumes(lanes: int) -> list[Check]:
    kinds = {
        "Ornstein-Uhlenbeck": packets.OrnsteinUhlenbeckCrosswind(),
        "telegraph": packets.TelegraphCrosswind(),
        "renewal": packets.RenewalCrosswind(),
        "white": packets.WhiteCrosswind(),
    }
    checks = []
    for name, kind in kinds.items():
        checks += _crosswind(kind, f"{name}: ", 1 / 60, lanes)
    halved = _crosswind(kinds["telegraph"], "telegraph, dt halved: ", 1 / 120, lanes // 2)
    return [*checks, *halved, *_packets_in_a_box(lanes)]


def _crosswind(kind: Any, name: str, dt: float, lanes: int) -> list[Check]:
    """`<y^2>` by age, for 20 s without walls."""
    plume = packets.PacketPlume(capacity=288, crosswind=kind)
    params = plume.default_params().replace(
        high=np.float32([6000, 6000]), low=np.float32([-50, -6000]), dt=np.float32(dt)
    )
    puffs = rolled(plume, params, jax.random.key(8), round(20 / dt), lanes).particles
    alive, age, y = (np.asarray(x) for x in (puffs.alive, puffs.age, puffs.position[:, 1]))
    checks = []
    for low, high in ((0.3, 0.7), (1.5, 2.5), (5, 10), (15, 20)):
        used = alive & (age > low) & (age < high)
        t = age[used].astype(float)
        closed = 2 * 1000 * t
        if not isinstance(kind, packets.WhiteCrosswind):
            closed = 2 * 2 * 45**2 * (t - 2 * (1 - np.exp(-t / 2)))
        ratio = y[used].astype(float) ** 2 / closed
        checks.append(mean(f"{name}<y^2> / closed form, age {low:g} to {high:g} s", 1.0, ratio))
    return checks


def _packets_in_a_box(lanes: int) -> list[Check]:
    plume = packets.PacketPlume()
    params = plume.default_params()
    states = rolled(plume, params, jax.random.key(9), 360, 16 * lanes)
    counts = np.asarray(states.particles.alive).sum(axis=1)
    alone = params.replace(rate=np.float32(200))
    state = jax.tree.map(lambda x: x[0], rolled(plume, alone, jax.random.key(10), 20, 1))
    x, y = np.meshgrid(np.arange(-100, 200, 1.5), np.arange(-100, 100, 1.5))
    grid = np.stack([x.ravel(), y.ravel()], -1).astype(np.float32)
    total = np.asarray(plume.sample(state, grid, alone).concentration, float).sum() * 1.5**2
    held = total / (float(alone.amount) * float(state.particles.alive.sum()))
    return [
        mean("count in the box, rate x 4 s", 40.0, counts, 10 / 60),
        variance("variance of the count", 40.0, counts, 10 / 60),
        Check("integral over the plane / (A x count)", 1.0, held, slack=1e-4),
    ]


# Flow


def fourier_flow(lanes: int) -> list[Check]:
    flow = FourierFlow()
    params = flow.default_params()
    places = np.random.default_rng(0).uniform(-30, 30, (2, 500)).astype(np.float32)

    def slopes(state: jax.Array) -> jax.Array:
        def at(place: jax.Array) -> jax.Array:
            return flow.at(state, place[:, None], params)[:, 0]

        return jax.vmap(jax.jacfwd(at), in_axes=1)(jnp.asarray(places))

    slope = np.asarray(jax.jit(slopes)(flow.start(jax.random.key(0), params)), float)
    divergence = np.trace(slope, axis1=1, axis2=2) / np.sqrt(np.mean(slope**2))
    checks = [largest("divergence over the root mean square slope", divergence, 1e-5)]
    for dt in (0.5, 0.25):
        states = blown(flow, params, jax.random.key(1), dt, 4, round(2.5 / dt), 128 * lanes)
        at = jax.vmap(jax.vmap(lambda s: flow.at(s, jnp.zeros((2, 1), jnp.float32), params)[:, 0]))
        u = (np.asarray(jax.jit(at)(states), float) - [1.0, 0.0]) / 0.5
        checks += [
            variance(f"variance of u / rms^2 at the start, dt {dt:g} s", 1.0, u[:, 0, 0]),
            variance(f"variance of v / rms^2 after 7.5 s, dt {dt:g} s", 1.0, u[:, -1, 1]),
        ]
        for k in (1, 2, 3):
            what = f"correlation of u over {2.5 * k:g} s, dt {dt:g} s"
            checks.append(mean(what, np.exp(-2.5 * k / 5), u[:, 0, 0] * u[:, k, 0]))
    return [*checks, *_tracers(lanes)]


def _tracers(lanes: int) -> list[Check]:
    plume = TracerPlume()
    params = plume.default_params()
    checks = []
    for dt in (0.1, 0.05):
        own = params.replace(dt=np.float32(dt))
        states = rolled(plume, own, jax.random.key(2), round(20 / dt), 8 * lanes)
        puffs = jax.tree.map(np.asarray, states.particles)
        young = puffs.alive & (puffs.age > 1) & (puffs.age < 10)
        # Where a tracer is, the flow is as anywhere: it drifts with the mean wind.
        drifted = [p[0][a] / t[a] for p, a, t in zip(puffs.position, young, puffs.age, strict=True)]
        per_plume = np.asarray([np.mean(d) for d in drifted])
        checks.append(
            mean(f"tracers: count after 20 s, dt {dt:g} s", 160.0, puffs.alive.sum(axis=1))
        )
        checks.append(mean(f"tracers: mean x / age, m/s, dt {dt:g} s", 1.0, per_plume))
    state = jax.tree.map(lambda x: x[0], states)
    x, y = np.meshgrid(np.arange(-20, 60, 0.2), np.arange(-30, 30, 0.2))
    grid = np.stack([x.ravel(), y.ravel()], -1).astype(np.float32)
    gas = jax.lax.map(
        lambda p: plume.sample(state, p[None], params).concentration[0], grid, batch_size=2000
    )
    held = np.asarray(gas, float).sum() * 0.04 / float(state.particles.alive.sum())
    return [*checks, Check("tracers: integral over the plane / count", 1.0, held, slack=1e-4)]


# Recordings


def replayed(lanes: int) -> list[Check]:
    """A recording of a field that is linear in space and time, and a bank beside its plume."""
    width, height, frames = 9, 7, 5
    plume = RecordedPlume(frames, (width, height), space="linear", time="linear", ends="clamp")
    t, y, x = np.mgrid[:frames, :height, :width]
    params = plume.default_params().replace(
        frames=(1 + 2 * x + 3 * y + 5 * t).astype(np.float32),
        frames_per_step=np.float32(0.25),
        spacing=np.float32([0.5, 2.0]),
        origin=np.float32([1.0, -3.0]),
    )
    state = plume.start(jax.random.key(0), params)
    inside = np.random.default_rng(0).uniform(0, [width - 1, height - 1], (500, 2))
    places = (inside * [0.5, 2.0] + [1.0, -3.0]).astype(np.float32)
    deviations = []
    for step in range(4 * (frames - 1)):
        gas = plume.sample(state, places, params).concentration
        deviations.append(gas - (1 + inside @ [2, 3] + 5 * step / 4))
        state = plume.advance(jax.random.key(0), state, params)
    return [
        largest("movie linear in x, y and t: largest deviation", deviations, 3e-5),
        *_bank_is_live(),
    ]


def _bank_is_live() -> list[Check]:
    plume = TrackingPlume(capacity=256)
    params = plume.default_params()
    key = jax.random.key(3)
    bank, own = make_bank(plume, params, key, 2, 30)
    places = np.random.default_rng(0).uniform([0, -0.2], [1, 0.2], (64, 2)).astype(np.float32)

    @jax.jit
    def live(key: jax.Array) -> jax.Array:
        state = plume.start(jax.random.fold_in(key, 0), params)

        def turn(state: Any, n: jax.Array) -> tuple[Any, jax.Array]:
            seen = plume.sample(state, places, params).concentration
            return plume.advance(jax.random.fold_in(key, n), state, params), seen

        return jax.lax.scan(turn, state, jnp.arange(1, 31, dtype=jnp.uint32))[1]

    @jax.jit
    def read(p: int, t: int) -> jax.Array:
        reading = bank.start(jax.random.key(0), own)
        playing = reading.playing.replace(movie=jnp.int32(p), phase=jnp.int32(t))
        return bank.sample(reading.replace(playing=playing), places, own).concentration

    apart = [
        np.asarray(live(jax.random.fold_in(key, p))) - np.stack([read(p, t) for t in range(30)])
        for p in (0, 1)
    ]
    return [largest("a bank beside the plume live, same keys: largest deviation", apart, 0.0)]


MODELS: dict[str, Callable[[int], list[Check]]] = {
    "gaussian": gaussian,
    "encounters": encounter_rates,
    "wind": winds,
    "packets": packet_plumes,
    "filaments, farrell": farrell,
    "filaments, plume tracking": tracking,
    "flow": fourier_flow,
    "recorded and bank": replayed,
}
"""By the room of the model; each is given how many plumes to roll out, at least 8."""
