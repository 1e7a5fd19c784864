"""tests/plumes/test_filaments: both puff plumes against their closed forms and published values."""

import json
from functools import partial
from pathlib import Path

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plumejax
from plumejax.base.batch import Batch
from plumejax.base.errors import ValidationError
from plumejax.plumes.filaments import FarrellWind, FilamentPlume, TrackingPlume
from plumejax.plumes.particles import repeat
from plumejax.plumes.sources import Drift
from plumejax.plumes.wind import SwitchMany

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "filaments.json").read_text())
LANES = 64
# These run long: they are worth the compilation that the suite goes without (tests/conftest.py).
OPTIMISED = {"xla_backend_optimization_level": 3, "xla_cpu_use_fusion_emitters": True}
EAST = {"wind": {"velocity": np.asarray([1.0, 0.0], np.float32)}}


def numbers(plume, **changes):
    """The plume's own numbers with some others, those of the wind under `wind`."""
    params = plume.default_params()
    wind = params.wind.replace(**changes.pop("wind", {}))
    return params.replace(wind=wind, **changes)


@partial(jax.jit, static_argnames=("plume", "steps", "every"), compiler_options=OPTIMISED)
def roll(plume, params, key, positions, steps, every):
    """The last states of `LANES` plumes, and the mean and the share of time of odour at places."""

    def one(key):
        first, rest = jax.random.split(key)

        def turn(carry, key):
            state = repeat(lambda k, s: plume.advance(k, s, params), key, carry, every)
            return state, plume.sample(state, positions, params).concentration

        keys = jax.random.split(rest, steps // every)
        return jax.lax.scan(turn, plume.start(first, params), keys)

    return jax.vmap(one)(jax.random.split(key, LANES))


# Without wind noise, long enough to compare the mean field and too short for a puff to leave.
FARRELL = FilamentPlume(capacity=480)
PLACES = np.asarray([[*place, 0.0] for place in GOLDEN["farrell_mean_field"]["places"]], np.float32)


@pytest.fixture(scope="module")
def farrell():
    params = numbers(FARRELL, **EAST)
    return params, *roll(FARRELL, params, jax.random.key(1), PLACES, 4000, 20)


def test_farrell_counts_ten_and_ten_a_second(farrell):
    _, state, _ = farrell
    counts = np.asarray(state.particles.born, float)
    # Mean 10 + 10 t and variance 10 t at t = 40 s; each within 3 standard errors.
    assert abs(counts.mean() - 410) < 3 * np.sqrt(400 / LANES)
    assert abs(counts.var(ddof=1) / 400 - 1) < 3 * np.sqrt(2 / (LANES - 1))


def test_farrell_walks_with_its_diffusivity(farrell):
    params, state, _ = farrell
    puffs = state.particles
    alive = np.asarray(puffs.alive) & (np.asarray(puffs.age) > 0.5)
    age = np.asarray(puffs.age)[alive]
    x, y, z = np.moveaxis(np.asarray(puffs.position), 1, 0)[:, alive]
    # The ten that began together are one draw in eleven at most: the error is as of independent.
    error = 3 * np.sqrt(2 / len(age))
    for walk in (x - 5 - age, y, z):
        assert abs(np.mean(walk**2 / age) / (2 * params.diffusivity) - 1) < error


def test_farrell_mean_field_is_the_closed_form(farrell):
    params, _, concentration = farrell
    birth = params.amount / (np.sqrt(8 * np.pi**3) * params.radius**3)
    runs = np.asarray(concentration)[:, 50:].mean(axis=1) / birth  # 10 to 40 s
    error = runs.std(axis=0, ddof=1) / np.sqrt(LANES)
    means = sum(np.asarray(GOLDEN["farrell_mean_field"][part]) for part in ("means", "first_ten"))
    assert np.all(error < 0.12 * means), error / means
    assert np.all(np.abs(runs.mean(axis=0) - means) < 3 * error + 0.005 * means)


# What the shorter tests roll, 100 steps each, so that they share their compilation.
PUFFS, SQUARES = FilamentPlume(capacity=64), TrackingPlume(capacity=256, substeps=1)
FLAT = PLACES[:, :2]


def test_a_puff_grows_and_holds_its_amount():
    plume = PUFFS
    params = numbers(plume, initial=np.int32(1), rate=np.float32(0), growth=np.float32(0.5))
    state = roll(plume, params, jax.random.key(0), FLAT, 100, 20)[0]
    state = jax.tree.map(lambda x: x[0], state)
    centre = state.particles.position[:, 0]
    width = 0.001 + 0.5 * 1.0
    at_centre = plume.sample(state, centre[None], params).concentration[0]
    peak = 8.3e8 / (np.sqrt(8 * np.pi**3) * width**1.5)
    np.testing.assert_allclose(at_centre, peak, rtol=2e-5)
    # The sum over a fine grid is the integral: here 1.8 widths to a cell would already do.
    line = np.arange(-5, 5.01, 0.4, dtype=np.float32)
    grid = np.stack([a.ravel() for a in np.meshgrid(line, line, line)], axis=-1)
    total = plume.sample(state, centre[None] + grid, params).concentration.sum() * 0.4**3
    np.testing.assert_allclose(total, params.amount, rtol=1e-4)


def test_two_coordinates_are_read_at_the_height():
    plume = FilamentPlume(capacity=480)
    params = numbers(plume, height=np.float32(0.3))
    state = plume.start(jax.random.key(0), params)
    flat = np.asarray([[5.1, 0.0]], np.float32)
    deep = np.asarray([[5.1, 0.0, 0.3]], np.float32)
    ours, theirs = (plume.sample(state, p, params) for p in (flat, deep))
    assert ours.concentration[0] == theirs.concentration[0] > 0
    assert ours.wind.shape == (1, 2)
    np.testing.assert_array_equal(theirs.wind[0, 2], 0.0)


def test_halving_dt_leaves_the_law():
    """The walk and the count of the tracking plume with steps of 0.01, 0.005 and 0.0025 s."""
    for dt in (0.01, 0.005, 0.0025):
        params = numbers(SQUARES, dt=np.float32(dt))
        puffs = roll(SQUARES, params, jax.random.key(2), FLAT, 100, 20)[0].particles
        alive, age = np.asarray(puffs.alive), np.asarray(puffs.age)
        used = alive & (age > 0.1)
        walk = np.asarray(puffs.position)[:, 1][used] ** 2 / age[used]
        assert abs(walk.mean() - 2 * 0.00125) < 3 * walk.std() / np.sqrt(used.sum())
        born = 100 * 100 * dt
        assert abs(alive.sum(axis=1).mean() - born) < 3 * np.sqrt(born / LANES)


def test_tracking_plume_is_as_steady_and_as_patchy_as_published():
    plume = TrackingPlume(capacity=1200, substeps=1, warmup=0)
    growth = np.float32(0.005)
    # A third of the steps: what is counted here does not depend on dt.
    params = numbers(plume, keep=np.float32(0.4), growth=growth, dt=np.float32(0.03))
    golden = GOLDEN["tracking_intermittency"]
    places = np.asarray([[x, 0.0] for x in golden["distances"]], np.float32)
    state, concentration = roll(plume, params, jax.random.key(3), places, 1000, 20)
    counts = np.asarray(state.particles.alive).sum(axis=1)
    expected = golden["steady_count"] * 0.4
    assert abs(counts.mean() - expected) < 3 * np.sqrt(expected / LANES) + 2 * 0.03 * 40
    late = np.asarray(concentration)[:, -15:] > 0  # 21 to 30 s: the plume stands
    share = late.mean(axis=(0, 1))
    error = late.mean(axis=1).std(axis=0, ddof=1) / np.sqrt(LANES)
    assert np.all(np.abs(share - golden["shares"]) < 3 * error + 0.02), (share, error)


def test_a_tracking_puff_is_a_square():
    plume = TrackingPlume(capacity=8, substeps=1)
    params = numbers(plume)
    state = plume.start(jax.random.key(0), params)
    puffs = state.particles
    one = puffs.replace(
        position=puffs.position.at[:, 0].set(jnp.asarray([3.0, 0.5], jnp.float32)),
        age=puffs.age.at[0].set(9.0),
        alive=puffs.alive.at[0].set(True),
    )
    state = state.replace(particles=one)
    places = np.asarray([[3.09, 0.59], [3.11, 0.5], [3.0, 0.39], [0.0, 0.0]], np.float32)
    got = plume.sample(state, places, params).concentration
    np.testing.assert_allclose(got, [0.001, 0, 0, 0], rtol=1e-5)


@pytest.mark.slow
def test_a_wind_in_strong_gusts_stays_within_its_bounds():
    """A grid so coarse that centred differences alone would run away within a minute."""
    wind = FarrellWind(shape=(11, 11))
    params = wind.default_params()
    most = 6 * params.gain * np.sqrt(params.bandwidth / (4 * params.damping))
    _, later = blow(wind, params, jax.random.key(5), np.float32(0.125), 400)
    fluctuation = np.asarray(later.field) - params.velocity[:, None, None]
    assert np.all(np.abs(fluctuation) <= most * 1.0001)


def test_puffs_that_leave_are_gone():
    params = numbers(SQUARES, wind={"velocity": np.asarray([40.0, 0.0], np.float32)})
    puffs = roll(SQUARES, params, jax.random.key(0), FLAT, 100, 20)[0].particles
    x = np.asarray(puffs.position)[:, 0][np.asarray(puffs.alive)]
    assert x.max() <= 10
    assert np.asarray(puffs.age)[np.asarray(puffs.alive)].max() <= 10 / 40 + 0.01
    assert np.asarray(puffs.born).min() > 60


@partial(jax.jit, static_argnames=("wind", "steps"), compiler_options=OPTIMISED)
def blow(wind, params, key, dt, steps):
    """The states of 256 winds when they start and after some steps."""

    def one(key):
        first, rest = jax.random.split(key)
        start = wind.start(first, params)
        return start, repeat(lambda k, s: wind.advance(k, s, dt, params), rest, start, steps)

    return jax.vmap(one)(jax.random.split(key, 256))


@pytest.mark.slow
def test_the_wind_noise_is_stationary_from_the_start():
    wind = FarrellWind(shape=(6, 6), spin_up=20)
    params = wind.default_params()
    variance = params.gain**2 * params.bandwidth / (4 * params.damping)
    for dt in (0.05, 0.5):  # 0.5 s by plain Euler steps would double the variance
        for state in blow(wind, params, jax.random.key(4), np.float32(dt), 100):
            noise = np.asarray(state.noise)
            error = 3 * np.sqrt(2 / noise.size)
            assert abs(noise.var() / variance - 1) < error
            slope = np.asarray(state.slope).var() / (variance * params.bandwidth**2)
            # The slope's variance is exact only as dt goes to 0; here (w dt)^2 / 4 <= 0.0025.
            assert abs(slope - 1) < error + 0.005


@pytest.mark.slow
def test_the_wind_field_is_stationary_from_the_start():
    wind = FarrellWind()
    params = wind.default_params()
    start, later = blow(wind, params, jax.random.key(5), np.float32(0.125), 400)
    for component in (0, 1):
        then, now = (np.asarray(s.field)[:, component, 10, 5] for s in (start, later))
        # Of the logarithm of a variance, from the fourth moment: gusts are not normal.
        errors = [(np.mean((x - x.mean()) ** 4) / x.var() ** 2 - 1) / 256 for x in (then, now)]
        assert abs(np.log(now.var() / then.var())) < 3 * np.sqrt(sum(errors))
        spread = np.sqrt((now.var() + then.var()) / 256)
        assert abs(now.mean() - then.mean()) < 3 * spread


def test_the_wind_field_makes_the_stated_step():
    """One step beside the equations written out with loops."""
    wind = FarrellWind(shape=(5, 4), spin_up=3)
    params = wind.default_params().replace(diffusivity=np.asarray([10.0, 5.0], np.float32))
    state = wind.start(jax.random.key(6), params)
    after = np.asarray(wind.advance(jax.random.key(7), state, np.float32(0.1), params).field)
    padded = np.zeros((2, 6, 7))
    corners = np.asarray(state.noise) + params.velocity[:, None]
    for c in (0, 1):
        a, b, d, e = corners[c]
        for j in range(6):
            for i in range(7):
                s, t = i / 6, j / 5
                padded[c, j, i] = (a * (1 - s) + b * s) * (1 - t) + (d * (1 - s) + e * s) * t
    padded[:, 1:-1, 1:-1] = state.field
    dx, dy = 100 / 4, 100 / 3
    for c in (0, 1):
        for j in range(1, 5):
            for i in range(1, 6):
                u, v = padded[:, j, i]
                p = padded[c]
                rate = -u * (p[j, i + 1] - p[j, i - 1]) / (2 * dx)
                rate -= v * (p[j + 1, i] - p[j - 1, i]) / (2 * dy)
                rate += 10 / 2 * (p[j, i + 1] - 2 * p[j, i] + p[j, i - 1]) / dx**2
                rate += 5 / 2 * (p[j + 1, i] - 2 * p[j, i] + p[j - 1, i]) / dy**2
                np.testing.assert_allclose(
                    after[c, j - 1, i - 1], p[j, i] + 0.1 * rate, rtol=1e-5, atol=1e-5
                )


def test_the_wind_is_linear_between_its_nodes():
    wind = FarrellWind(shape=(6, 6), spin_up=0)
    params = wind.default_params()
    state = wind.start(jax.random.key(0), params)
    y, x = np.mgrid[-50:51:20, 0:101:20].astype(np.float32)
    field = np.stack([1 + 0.1 * x - 0.2 * y, 0.3 * x + 0.05 * y])
    places = np.asarray([[3.0, 50.0, 99.0, 200.0], [-49.0, 7.0, 49.5, 0.0]], np.float32)
    u, v = wind.at(state.replace(field=jnp.asarray(field)), places, params)
    x, y = np.clip(places[0], 0, 100), places[1]
    np.testing.assert_allclose(u, 1 + 0.1 * x - 0.2 * y, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(v, 0.3 * x + 0.05 * y, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("plume", [PUFFS, SQUARES])
def test_still_air_and_no_emission_are_defined(plume):
    still = {"velocity": np.zeros(2, np.float32)}
    params = numbers(plume, wind=still, rate=np.float32(0))
    if hasattr(params, "initial"):
        params = params.replace(initial=np.int32(0))
    state, concentration = roll(plume, params, jax.random.key(0), FLAT, 100, 20)
    assert not np.any(state.particles.alive)
    np.testing.assert_array_equal(concentration, 0.0)


def test_gradients_of_the_concentration():
    """By source, wind, walk and growth, beside differences; no puff is born by chance."""
    plume = FilamentPlume(capacity=16)
    params = numbers(plume, rate=np.float32(0), amount=np.float32(1.0), growth=np.float32(0.2))
    place = np.asarray([[6.0, 0.4, 0.1]], np.float32)

    @jax.jit
    def concentration(source, velocity, diffusivity, growth):
        moved = params.replace(
            source=source,
            wind=params.wind.replace(velocity=velocity),
            diffusivity=diffusivity,
            growth=growth,
        )
        state = plume.start(jax.random.key(0), moved)
        advance = lambda key, state: plume.advance(key, state, moved)  # noqa: E731
        state = repeat(advance, jax.random.key(1), state, 50)
        return plume.sample(state, place, moved).concentration[0]

    at = [np.asarray([5.0, 0.0, 0.0]), np.asarray([1.0, 0.0]), np.asarray(0.02), np.asarray(0.2)]
    at = [x.astype(np.float32) for x in at]
    slopes = jax.jit(jax.grad(concentration, argnums=(0, 1, 2, 3)))(*at)
    for which, slope in enumerate(slopes):
        assert np.all(np.isfinite(slope))
        for index in np.ndindex(slope.shape):
            step = np.float32(0.02 * max(1.0, abs(float(at[which][index]))) * 0.1)
            ends = []
            for sign in (1, -1):
                values = [x.copy() for x in at]
                values[which][index] += sign * step
                ends.append(float(concentration(*values)))
            difference = (ends[0] - ends[1]) / (2 * step)
            scale = max(abs(difference), 0.05 * float(np.abs(slope).max()))
            assert abs(difference - slope[index]) < 0.03 * scale, (which, index)


@pytest.mark.parametrize(
    ("plume", "changes", "field"),
    [
        (FilamentPlume(), {"radius": np.float32(0)}, "plume.radius"),
        (FilamentPlume(), {"diffusivity": np.float32(-1)}, "plume.diffusivity"),
        (FilamentPlume(), {"rate": np.float32(1e6)}, "plume.rate"),
        (FilamentPlume(), {"rate": np.float32(np.nan)}, "plume.rate"),
        (FilamentPlume(), {"source": np.asarray([99, 0, 0], np.float32)}, "plume.source"),
        (FilamentPlume(), {"source": np.asarray([9, 0], np.float32)}, "plume.source.shape"),
        (FilamentPlume(capacity=5), {}, "plume.initial"),
        (FilamentPlume(wind=FarrellWind()), {"dt": np.float32(0.5)}, "plume.dt"),
        (FilamentPlume(wind=FarrellWind()), {"wind": {"damping": np.float32(2)}}, "plume.wind"),
        (TrackingPlume(), {"keep": np.float32(1.5)}, "plume.keep"),
        (TrackingPlume(), {"dt": np.float32(0)}, "plume.dt"),
        (TrackingPlume(substeps=0), {}, "substeps"),
        (TrackingPlume(), {"high": np.asarray([-3, 10], np.float32)}, "plume.low"),
    ],
)
def test_bad_numbers_are_refused(plume, changes, field):
    with pytest.raises(ValidationError, match=field):
        plume.validate(numbers(plume, **changes))


def test_lanes_of_a_search_in_puffs_are_the_search_alone():
    """Two sources that move, and a wind that turns: each lane of a batch, step by step."""
    plume = FilamentPlume(24, SwitchMany(), num_sources=2, source_motion=Drift())
    env, params = plumejax.make("PlumeSearchLocal-v0", grid_size=(16, 12), plume=plume)
    source = np.asarray([[3, 4, 0], [9, 5, 0]], np.float32)
    own = params.plume.replace(source=source, low=np.zeros(2, np.float32))
    params = params.replace(plume=own, max_steps=np.int32(6))
    env.validate(params)
    batch, first, second = Batch(env, 3), jax.random.key(0), jax.random.key(1)
    states = jax.jit(batch.reset)(first, params)[1]
    reset, step = jax.jit(env.reset), jax.jit(env.step)
    alone = [reset(jax.random.fold_in(first, lane), params)[1] for lane in range(3)]
    actions = jnp.asarray([0, 1, 2], jnp.int32)
    advance = jax.jit(batch.advance)
    for time in range(6):
        key = jax.random.fold_in(second, time)
        states = advance(key, states, actions, params)[1]
        keys = [jax.random.fold_in(key, lane) for lane in range(3)]
        alone = [step(k, s, a, params)[1] for k, s, a in zip(keys, alone, actions, strict=True)]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *alone)
    chex.assert_trees_all_close(states, stacked, rtol=1e-5, atol=1e-6)
    assert np.asarray(stacked.plume.particles.alive).sum() > 10


def test_a_warm_start_is_a_cold_one_advanced():
    cold, warm = (FilamentPlume(24, warmup=n) for n in (0, 30))
    params = numbers(cold, dt=np.float32(0.1))
    ages = np.asarray(jax.jit(warm.start)(jax.random.key(0), params).particles.age)
    # The ten of the cold start are 3 s old now.
    np.testing.assert_allclose(ages[:10], 3.0, rtol=1e-5)
    assert np.all(ages[10:] < 2.95)
