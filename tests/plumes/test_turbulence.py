"""tests/plumes/test_turbulence: budgets, bounds and closed forms of eddies and gas; refusals."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plumejax.base.errors import ValidationError
from plumejax.plumes import rolling
from plumejax.plumes.flow import FourierFlow
from plumejax.plumes.sources import Drift
from plumejax.plumes.turbulence import TurbulentPlume, observe, report, transport
from plumejax.plumes.wind import OrnsteinUhlenbeck

SHAPE = (32, 64)
PLUME = TurbulentPlume(shape=SHAPE, warmup=0)
PARAMS = PLUME.default_params().replace(source=np.asarray([3, np.pi], np.float32))
CELL = 2 * np.pi / 32
DT = float(PARAMS.dt)
# These run long: they are worth the compilation that the suite goes without (tests/conftest.py).
OPTIMISED = {"xla_backend_optimization_level": 3, "xla_cpu_use_fusion_emitters": True}
TRANSECTS = np.asarray([(x, y) for x in (0.9, 11.5) for y in np.linspace(1, 5.2, 41)], np.float32)


@pytest.fixture(scope="module")
def run():
    """`(states, budget, air)`: 2000 steps of one plume, 80 s, after 500; a state of every 500."""
    state = rolling.begin(PLUME, jax.random.key(0), PARAMS)
    states, parts = [], []
    for key in jax.random.split(jax.random.key(1), 5):
        state, budget, air = observe(PLUME, PARAMS, key, state, jnp.asarray(TRANSECTS), 500)
        states.append(state)
        parts.append((budget, air))
    return states, *jax.tree.map(lambda *x: np.concatenate(x), *parts[1:])


def test_energy_is_in_balance(run):
    budget = [np.asarray(x, float) for x in run[1]]
    energy, injected, dissipated, dragged = budget[:4]
    # The losses over a step are those of a trapezoid.
    left = np.diff(energy) - (injected - dissipated - dragged)[1:]
    assert np.abs(left).sum() < 1e-3 * injected.sum()
    assert dissipated.min() > 0
    assert dragged.mean() == pytest.approx(0.2 * DT * (energy - injected / 2).mean(), rel=1e-3)
    # Blocks of 4 s are as good as independent.
    blocks = injected.reshape(20, 100).mean(axis=1) / DT
    assert abs(blocks.mean() - 0.0142) < 4 * blocks.std(ddof=1) / np.sqrt(20)
    assert blocks.std(ddof=1) < 0.01


def test_gas_is_conserved_between_source_and_fringe(run):
    *_, mass, emitted, absorbed = (np.asarray(x, float) for x in run[1])
    left = np.diff(mass) - (emitted - absorbed)[1:]
    # The rounding of a sum of 2048 float32, in whatever order it is compiled to.
    assert np.abs(left).max() < 4e-6 * mass.max()
    assert abs(left.sum()) < 1e-5 * emitted.sum()
    assert min(emitted.min(), absorbed.min()) > 0
    assert absorbed.mean() == pytest.approx(emitted.mean(), rel=0.05)


def test_gas_keeps_its_bounds_and_does_not_come_round(run):
    states, _, air = run
    for state in states:
        gas = np.asarray(state.concentration)
        assert gas.min() >= -1e-9
        assert 0.5 < gas.max() <= 1 + 1e-6
    upstream, downstream = np.split(np.asarray(air.concentration), 2, axis=1)
    assert np.all((upstream >= 0) & (downstream >= 0))
    assert downstream.max() > 0.1
    assert upstream.mean() < 5e-3 * downstream.mean()


def test_the_flow_has_no_divergence_and_is_that_of_the_vorticity(run):
    state = run[0][-1]
    rows, columns = np.mgrid[0:32, 0:64]
    corners = np.stack([columns, rows], -1).reshape(-1, 2) * CELL
    drift = np.asarray(state.drift, float)
    sides = CELL * np.asarray([64, 32])
    middles = [corners + CELL * np.asarray(shift) for shift in ((0, 0.5), (0.5, 0))]
    places = np.mod(np.concatenate(middles) + drift, sides)
    u, v = np.split(
        np.asarray(jax.jit(PLUME.sample)(state, places.astype(np.float32), PARAMS).wind), 2
    )
    u, v = u[:, 0].reshape(SHAPE) - 1, v[:, 1].reshape(SHAPE)
    divergence = np.roll(u, -1, 1) - u + np.roll(v, -1, 0) - v
    assert np.abs(u).max() > 0.2
    assert np.abs(divergence).max() < 1e-4 * np.abs(u).max()

    w = np.asarray(state.vorticity, float)
    kx, ky = np.arange(33)[None] / 2, np.fft.fftfreq(32, 1 / 32)[:, None]
    squared = kx**2 + ky**2
    squared[0, 0] = 1
    # The means over the sides, which a wave e^(i k x) has sin(h) / h of, h = k cell / 2.
    means = np.sinc(ky * CELL / 2 / np.pi) * np.exp(0.5j * ky * CELL)
    want = np.fft.irfft2(1j * ky * means * (w[0] + 1j * w[1]) / squared, norm="forward")
    np.testing.assert_allclose(u, want, atol=2e-5)


def test_the_tendency_is_that_of_advection(run):
    """Against `-(u w_x + v w_y)` in float64 on a grid so fine that there are no aliases."""
    w = np.asarray(run[0][-1].vorticity, float)
    got = np.asarray(jax.jit(PLUME._tendency)(run[0][-1].vorticity, PARAMS))
    fine = np.zeros((64, 65), complex)
    rows = np.r_[0:16, 49:64]
    coarse = np.r_[0:16, 17:32]
    fine[rows, :33] = (w[0] + 1j * w[1])[coarse]
    kx, ky = np.arange(65)[None] / 2, np.fft.fftfreq(64, 1 / 64)[:, None]
    squared = kx**2 + ky**2
    squared[0, 0] = 1
    factors = (1j * ky / squared, -1j * kx / squared, 1j * kx, 1j * ky)
    u, v, wx, wy = (np.fft.irfft2(f * fine, norm="forward") for f in factors)
    exact = np.fft.rfft2(-(u * wx + v * wy), norm="forward")[rows, :33]
    kept = (3 * np.arange(33)[None] < 64) & (3 * np.abs(np.fft.fftfreq(32, 1 / 32)) < 32)[:, None]
    exact = exact * kept[coarse]
    scale = np.abs(exact).max()
    np.testing.assert_allclose(got[0][coarse] / scale, exact.real / scale, atol=3e-5)
    np.testing.assert_allclose(got[1][coarse] / scale, exact.imag / scale, atol=3e-5)
    assert not np.any(got[:, 16])


@pytest.fixture(scope="module")
def mean_energy():
    """`f(dt, skipped, steps)`: of 12 plumes the energy at the start, and its mean later on."""

    @partial(jax.jit, compiler_options=OPTIMISED)
    @partial(jax.vmap, in_axes=(0, None, None, None))
    def f(key, dt, skipped, steps):
        params = PARAMS.replace(dt=dt)
        start = PLUME.start(jax.random.fold_in(key, 0), params)

        # Of the eddies alone: what is not carried on is not computed.
        def one(i, carry):
            vorticity, total = carry
            state = start.replace(vorticity=vorticity)
            state, budget = PLUME.step(jax.random.fold_in(key, i + 1), state, params)
            total = total + jnp.where(i >= skipped, budget.energy, jnp.float32(0))
            return state.vorticity, total

        first = PLUME._energy(start.vorticity, params).energy
        carry = start.vorticity, jnp.float32(0)
        _, total = jax.lax.fori_loop(0, skipped + steps, one, carry)
        return first, total / jnp.asarray(steps, jnp.float32)

    return partial(f, jax.random.split(jax.random.key(3), 12))


@pytest.mark.slow
def test_half_of_dt_leaves_the_energy(mean_energy):
    found = [
        np.asarray(mean_energy(np.float32(DT / n), 100 * n, 300 * n)[1], float) for n in (1, 2)
    ]
    error = np.sqrt(sum(x.var(ddof=1) / 12 for x in found))
    assert error < 0.06 * found[0].mean()
    assert abs(found[0].mean() - found[1].mean()) < 4 * error


def test_it_starts_with_the_energy_that_it_keeps(mean_energy):
    """Random eddies have it within a tenth or so, and the warm-up takes care of the rest."""
    start, later = (np.asarray(x, float) for x in mean_energy(np.float32(DT), 100, 300))
    assert start.mean() == pytest.approx(later.mean(), rel=0.25)


def test_gas_in_a_shear_flow_goes_where_it_must():
    """Second order: half the cell makes a quarter of the error, or nearly, at limited extremes."""
    coarse, fine = shear_error(32), shear_error(64)
    assert coarse < 0.01
    assert coarse / fine > 3


def shear_error(n):
    """Of a wave along x in `u = -sin y` on n x n cells, after a time."""
    cell = 2 * np.pi / n
    corner, middle = cell * np.arange(n), cell * (np.arange(n) + 0.5)
    flow = np.broadcast_to(np.cos(corner)[:, None], (n, n)).astype(np.float32)
    dt, steps = 0.2 * cell, 20 * n // 32

    @partial(jax.jit, compiler_options=OPTIMISED)
    def roll(gas):
        step = lambda _, gas: transport(gas, flow, cell, 0.0, dt)  # noqa: E731
        return jax.lax.fori_loop(0, steps, step, gas)

    def wave(shift):
        return 0.5 + 0.4 * np.sin(middle[None] + shift)

    end = roll(np.broadcast_to(wave(0.0), (n, n)).astype(np.float32))
    speed = -np.sin(middle) * np.sinc(cell / 2 / np.pi)
    return np.abs(np.asarray(end) - wave(-speed[:, None] * dt * steps)).mean()


@pytest.fixture(scope="module")
def carry():
    return jax.jit(transport)


def test_diffusion_of_a_wave(carry):
    x = (np.arange(32) + 0.5) * CELL
    begin = (0.5 + 0.4 * np.cos(x[None] * np.ones((32, 1)))).astype(np.float32)
    end = begin
    for _ in range(100):
        end = carry(end, np.zeros((32, 32), np.float32), CELL, 0.05, 0.1)
    # Of the differences of a grid: 4 sin^2(k cell / 2) / cell^2 for k^2.
    rate = 0.05 * (2 * np.sin(CELL / 2) / CELL) ** 2
    np.testing.assert_allclose(end - 0.5, (begin - 0.5) * np.exp(-rate * 10), atol=2e-5)


@pytest.mark.parametrize("seed", range(5))
def test_transport_makes_no_extremes_at_the_largest_step(carry, seed):
    rng = np.random.default_rng(seed)
    stream = rng.normal(size=(32, 32)).astype(np.float32)
    gas = begin = (rng.random((32, 32)) < 0.3).astype(np.float32)
    u, v = (np.abs(np.diff(stream, axis=i, append=stream.take([0], i))) / CELL for i in (0, 1))
    speed = np.max(np.maximum(u, np.roll(u, -1, 1)) + np.maximum(v, np.roll(v, -1, 0)))
    kappa = 0.1
    dt = 0.5 / (speed / CELL + 2 * kappa / CELL**2)
    total = gas.sum(dtype=np.float64)
    for _ in range(20):
        gas = np.asarray(carry(gas, stream, CELL, kappa, dt))
        assert gas.min() >= -1e-6
        assert gas.max() <= 1 + 1e-6
    assert gas.sum(dtype=np.float64) == pytest.approx(total, rel=1e-6)
    even = np.full((32, 32), 0.7, np.float32)
    np.testing.assert_allclose(carry(even, stream, CELL, kappa, dt), 0.7, atol=1e-6)
    # The bound is no empty one: steps four times as long do not keep it.
    assert np.asarray(carry(begin, stream, CELL, kappa, 4 * dt)).min() < -1e-3


@pytest.fixture(scope="module")
def quiet():
    """`f(params, gas, positions)`: `(state, air, slopes)` after 25 steps without warm-up; slopes
    are those of the concentration at the first three positions, in some of the numbers."""

    @jax.jit
    def f(params, gas, positions):
        def smell(numbers):
            own = params.replace(**numbers)
            state = PLUME.start(jax.random.key(7), own).replace(concentration=gas)
            step = lambda state, key: (PLUME.advance(key, state, own), None)  # noqa: E731
            state, _ = jax.lax.scan(step, state, jax.random.split(jax.random.key(8), 25))
            air = PLUME.sample(state, positions, own)
            return jnp.sum(air.concentration[:3]), (state, air)

        numbers = {name: getattr(params, name) for name in SLOPES}
        slopes, (state, air) = jax.grad(smell, has_aux=True)(numbers)
        return state, air, slopes

    return f


SLOPES = ("emission", "source", "wind", "diffusivity")
CLEAN = np.zeros(SHAPE, np.float32)


def with_wind(x, y):
    return PARAMS.wind.replace(velocity=np.asarray([x, y], np.float32))


def test_the_wind_carries_without_any_loss(quiet):
    """Without eddies and diffusion the gas is what it was, elsewhere; in any direction."""
    params = PARAMS.replace(
        forcing=np.float32(0),
        emission=np.float32(0),
        diffusivity=np.float32(0),
        fringe_strength=np.float32(0),
        wind=with_wind(1.3, -0.4),
    )
    begin = np.random.default_rng(0).random(SHAPE).astype(np.float32)
    rows, columns = np.mgrid[5:25, 5:45]
    shift = 25 * DT * np.asarray([1.3, -0.4])
    places = (np.stack([columns, rows], -1).reshape(-1, 2) + 0.5) * CELL + shift
    inside = np.all((places > 0) & (places < np.asarray([64, 32]) * CELL), axis=1)
    _, air, _ = quiet(params, begin, places.astype(np.float32))
    want = begin[5:25, 5:45].reshape(-1)
    np.testing.assert_allclose(air.concentration[inside], want[inside], atol=1e-4)
    np.testing.assert_allclose(air.wind, np.broadcast_to([1.3, -0.4], places.shape), atol=1e-6)


def test_a_still_source_fills_as_it_should(quiet):
    """Without flow and diffusion `C = 1 - e^(-emission G t)`."""
    params = PARAMS.replace(
        forcing=np.float32(0),
        diffusivity=np.float32(0),
        wind=with_wind(0, 0),
        emission=np.float32(2),
    )
    state, _, _ = quiet(params, CLEAN, np.zeros((800, 2), np.float32))
    x, y = (np.arange(n) * CELL + CELL / 2 for n in (64, 32))
    squared = (x[None] - 3) ** 2 + (y[:, None] - np.pi) ** 2
    bell = np.exp(-squared / (2 * float(PARAMS.radius) ** 2))
    want = 1 - np.exp(-2 * bell * 25 * DT)
    inner = slice(5, -5)  # the fringe is 4.1 cells wide
    got = np.asarray(state.concentration)
    np.testing.assert_allclose(got[inner, inner], want[inner, inner], atol=1e-5)


def test_outside_the_box_there_is_nothing_but_wind(quiet):
    outside = np.asarray([[-0.1, 3], [12.7, 3], [3, -0.1], [3, 6.4]], np.float32)
    places = np.concatenate([outside, np.full((796, 2), 3, np.float32)])
    _, air, _ = quiet(PARAMS, np.ones(SHAPE, np.float32), places)
    np.testing.assert_array_equal(air.concentration[:4], 0)
    np.testing.assert_array_equal(air.wind[:4], [[1, 0]] * 4)
    assert air.concentration[4] > 0.5
    assert np.abs(np.asarray(air.wind[4]) - [1, 0]).max() > 0.01


@pytest.mark.parametrize(
    "numbers",
    [
        {"emission": np.float32(0)},
        {"forcing": np.float32(0)},
        {"wind": with_wind(0, 0)},
        {"drag": np.float32(0), "diffusivity": np.float32(0), "fringe_strength": np.float32(0)},
    ],
)
def test_nothing_of_something_is_finite(quiet, numbers):
    places = np.full((800, 2), 2, np.float32)
    state, air, slopes = quiet(PARAMS.replace(**numbers), CLEAN, places)
    for leaf in jax.tree.leaves((state, air, slopes)):
        assert np.all(np.isfinite(leaf))
    assert np.any(state.concentration) == ("emission" not in numbers)
    assert np.any(state.vorticity) == ("forcing" not in numbers)


def test_gradients_are_those_of_finite_differences(quiet):
    places = np.zeros((800, 2), np.float32)
    places[:3] = [[3.2, 3.2], [3.7, 3.0], [3.4, 2.9]]
    params = PARAMS.replace(
        emission=np.float32(3),
        source=np.asarray([3, 3.1], np.float32),
        wind=with_wind(1, 0.1),
        diffusivity=np.float32(0.02),
    )
    _, air, slopes = quiet(params, CLEAN, places)
    assert np.asarray(air.concentration[:3]).sum() > 0.1
    for name in ("emission", "source", "wind", "diffusivity"):
        numbers, tree = jax.tree.flatten(getattr(params, name))
        slope = np.asarray(jax.tree.leaves(slopes[name])[0])
        for index in np.ndindex(slope.shape):
            by = 0.01 * max(abs(float(numbers[0][index])), 0.1)
            ends = []
            for shift in (by, -by):
                moved = np.array(numbers[0])
                moved[index] += np.float32(shift)
                changed = params.replace(**{name: jax.tree.unflatten(tree, [moved])})
                _, air, _ = quiet(changed, CLEAN, places)
                ends.append(np.asarray(air.concentration[:3], float).sum())
            change = (ends[0] - ends[1]) / (2 * by)
            assert change == pytest.approx(float(slope[index]), rel=0.03), name


def test_two_moving_sources_in_a_wind_that_wanders():
    plume = TurbulentPlume(
        shape=SHAPE,
        warmup=10,
        num_sources=2,
        source_motion=Drift(),
        wind=OrnsteinUhlenbeck(),
        substeps=5,
    )
    params = plume.default_params()
    params = params.replace(
        source=np.asarray([[3, 2], [4, 4.5]], np.float32),
        source_motion=params.source_motion.replace(
            velocity=np.asarray([[0.5, 0], [0, -0.25]], np.float32)
        ),
    )
    plume.validate(params)

    @jax.jit
    def start(key):
        state = plume.start(key, params)
        places = plume.sources(state, params)
        return places, plume.sample(state, places, params)

    places, air = jax.tree.map(np.asarray, start(jax.random.key(0)))
    gone = 50 * DT
    want = [[3 + 0.5 * gone, 2], [4, 4.5 - 0.25 * gone]]
    np.testing.assert_allclose(places, want, rtol=1e-5)
    assert air.concentration.min() > 0.3
    assert np.abs(air.wind - params.wind.velocity).max() > 0.01


def test_report():
    found = report(PLUME, PARAMS, jax.random.key(5), crossings=4.0, shares=(0.3, 0.8))
    assert found["u' / U"] == found["u'"] == pytest.approx(0.165, abs=0.03)
    nu = float(PARAMS.viscosity)
    assert found["Re_f"] == found["Pe"] == pytest.approx(found["u'"] * (np.pi / 2) / nu, rel=1e-5)
    assert found["Sc"] == 1
    assert found["k_max l_d"] == pytest.approx(1.34, abs=0.01)
    assert found["steps"] == pytest.approx(4 * 4 * np.pi / DT, abs=1)
    near, far = found["stations"]
    assert near["distance"] == pytest.approx(0.3 * (4 * np.pi - 0.8 - 3), rel=1e-5)
    assert near["peak"] > far["peak"] > 0
    for station in (near, far):
        axis, edge = station["axis"], station["edge"]
        assert edge["intermittency"] < axis["intermittency"] <= 1
        assert edge["variation"] > axis["variation"] > 0
        assert edge["mean"] <= 0.1 * axis["mean"] * 1.5
        assert 0 < abs(edge["offset"]) < np.pi


@pytest.mark.parametrize("shape", [(32, 64), (48, 96), (128, 256), (256, 512), (64, 64)])
def test_the_numbers_proposed_are_allowed(shape):
    plume = TurbulentPlume(shape=shape)
    plume.validate(plume.default_params())


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("viscosity", 1.5e-4),
        ("viscosity", 0.0),
        ("dt", 0.02),
        ("dt", 0.0),
        ("radius", 0.03),
        ("fringe_width", 3.2),
        ("fringe_strength", 5.0),
        ("source", [0.5, 3.0]),
        ("source", [2.0, 3.0, 1.0]),
        ("emission", -1.0),
        ("forcing", np.nan),
        ("length", 0.0),
    ],
)
def test_numbers_that_are_refused(field, value):
    plume = TurbulentPlume()
    params = plume.default_params().replace(**{field: np.asarray(value, np.float32)})
    with pytest.raises(ValidationError, match=rf"plume\.{field}"):
        plume.validate(params)


def test_a_wind_too_fast_for_the_source_is_refused():
    plume = TurbulentPlume()
    params = plume.default_params().replace(wind=with_wind(20, 0), fringe_strength=np.float32(1e3))
    with pytest.raises(ValidationError, match=r"plume\.dt.*one radius"):
        plume.validate(params)


def test_a_finer_grid_takes_a_smaller_viscosity():
    plume = TurbulentPlume(shape=(256, 512))
    small = plume.default_params().replace(viscosity=np.float32(2.5e-4))
    plume.validate(small)
    with pytest.raises(ValidationError, match=r"plume\.viscosity"):
        TurbulentPlume().validate(small)


@pytest.mark.parametrize(
    ("field", "static"),
    [
        ("shape", {"shape": (31, 64)}),
        ("forcing_wavenumber", {"shape": (12, 24)}),
        ("wind", {"wind": FourierFlow()}),
        ("substeps", {"substeps": 0}),
        ("warmup", {"warmup": -1}),
    ],
)
def test_structures_that_are_refused(field, static):
    plume = TurbulentPlume(**static)
    with pytest.raises(ValidationError, match=field):
        plume.validate(plume.default_params())
