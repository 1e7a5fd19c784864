"""tests/plumes/test_flow: the flow's divergence, variance, times and symmetry; tracers in it."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plumejax.base.errors import ValidationError
from plumejax.plumes.flow import FourierFlow, TracerPlume

# Not optimised: that compiles twice as fast, for what runs only a few times.
QUICK = {"xla_backend_optimization_level": 0}
FLOW = FourierFlow()
PARAMS = FLOW.default_params()
FROZEN = PARAMS.replace(time=np.float32(1e9))
LANES = 20_000
PLACES = np.random.default_rng(0).uniform(-30, 30, (2, 200)).astype(np.float32)


def twin(state, places):
    """The flow in float64, mode by mode: u = U + (-d psi / dy, d psi / dx)."""
    wave = 2 * np.pi / 10
    flow = np.asarray([[1.0], [0.0]]) + np.zeros((2, places.shape[1]))
    waves = wave * np.asarray([(1, 0), (0, 1), (1, 1), (1, -1)])
    for (kx, ky), a, b in zip(waves, *state, strict=True):
        # psi = sigma Re[A e^(i k x)], sigma falls as 1 / k^2; the state gives cosine and sine of u.
        sigma = 0.5 * wave * np.sqrt(2 / 3) / (kx**2 + ky**2)
        amplitude = -b - 1j * a
        slope = np.real(1j * amplitude * np.exp(1j * (kx * places[0] + ky * places[1])))
        flow += sigma * slope * np.asarray([[-ky], [kx]])
    return flow


@pytest.fixture(scope="module")
def state():
    return FLOW.start(jax.random.key(1), PARAMS)


def test_the_flow_is_the_curl_of_eight_modes(state):
    got = FLOW.at(state, PLACES, PARAMS)
    assert got.dtype == np.float32
    want = twin(np.asarray(state, float), PLACES.astype(float))
    np.testing.assert_allclose(got, want, atol=2e-5)
    np.testing.assert_allclose(FLOW.at(state, PLACES + 10, PARAMS), got, atol=5e-5)


def test_the_divergence_is_zero(state):
    one = lambda place: FLOW.at(state, place[:, None], PARAMS)[:, 0]  # noqa: E731
    slopes = np.asarray(jax.jit(jax.vmap(jax.jacfwd(one)))(PLACES.T))
    divergence = slopes[:, 0, 0] + slopes[:, 1, 1]
    assert np.sqrt(np.mean(slopes**2)) > 0.1
    assert np.abs(divergence).max() < 1e-6


@jax.jit
def states(key, dt):
    """float32[2, LANES, 8]: of many flows at the start and ten steps on."""
    first, key = jax.random.split(key)
    keys = jax.random.split(first, LANES)
    start = jax.vmap(lambda key: FLOW.start(key, PARAMS))(keys)

    def step(index, state):
        keys = jax.random.split(jax.random.fold_in(key, index), LANES)
        return jax.vmap(lambda key, state: FLOW.advance(key, state, dt, PARAMS))(keys, state)

    end = jax.lax.fori_loop(0, 10, step, start)
    return jnp.stack([start, end]).reshape(2, LANES, 8)


@pytest.fixture(scope="module")
def basis():
    """u - U and its slopes at three places are linear in the state: float64[8, place, 2 (, 2)]."""
    places = jnp.asarray([[0.0, 0.0], [3.1, -7.7], [123.0, 45.0]], jnp.float32)
    still = PARAMS.replace(velocity=np.zeros(2, np.float32))
    units = jnp.eye(8, dtype=jnp.float32).reshape(8, 2, 4)
    at = lambda place, state: FLOW.at(state, place[:, None], still)[:, 0]  # noqa: E731
    over = lambda f: jax.vmap(jax.vmap(f, (0, None)), (None, 0))  # noqa: E731
    both = jax.jit(lambda: (over(at)(places, units), over(jax.jacfwd(at))(places, units)))
    return [np.asarray(x, float) for x in both()]


# The second is half of the first: the law after a time does not depend on the step.
@pytest.mark.parametrize("dt", [0.5, 0.25, 5.0])
def test_variance_and_correlation_time(basis, dt):
    both = np.asarray(states(jax.random.key(0), np.float32(dt)), float)
    start, end = np.tensordot(both, basis[0], 1)
    error = 4 * 0.25 * np.sqrt(2 / LANES)
    for u in (start, end):
        np.testing.assert_allclose(np.mean(u**2, axis=0), 0.25, atol=error)
        np.testing.assert_allclose(u.mean(axis=0), 0.0, atol=4 * 0.5 / np.sqrt(LANES))
        np.testing.assert_allclose(np.mean(u[..., 0] * u[..., 1], axis=0), 0.0, atol=error)
    want = 0.25 * np.exp(-10 * dt / 5)
    np.testing.assert_allclose(np.mean(start * end, axis=0), want, atol=error)


def test_variance_and_slopes_are_those_of_an_isotropic_flow(basis):
    """The state has variance 1 each, so what is expected is a sum over it: to rounding."""
    flow, slopes = basis
    np.testing.assert_allclose(np.sum(flow**2, axis=0), 0.25, rtol=1e-4)
    np.testing.assert_allclose(np.sum(flow[..., 0] * flow[..., 1], axis=0), 0, atol=1e-5)
    along = 0.25 * (2 * np.pi / 10) ** 2 / 3  # rms^2 k_s^2 / 3
    square = np.sum(slopes**2, axis=0)
    np.testing.assert_allclose(square, [along * np.asarray([[1, 3], [3, 1]])] * 3, rtol=1e-4)
    # As of every isotropic flow without divergence: <du_x/dy du_y/dx> = -<(du_x/dx)^2>.
    cross = np.sum(slopes[..., 0, 1] * slopes[..., 1, 0], axis=0)
    np.testing.assert_allclose(cross, -along, rtol=1e-4)


@pytest.mark.parametrize(
    ("name", "value"), [("rms", -1.0), ("box", 0.0), ("time", 0.0), ("velocity", np.nan)]
)
def test_a_bad_number_of_the_flow_is_refused(name, value):
    FLOW.validate(PARAMS)
    with pytest.raises(ValidationError, match=rf"plume\.wind\.{name}"):
        FLOW.validate(PARAMS.replace(**{name: np.float32(value)}))


PLUME = TracerPlume(capacity=64)
TRACERS = PLUME.default_params()


LANES_OF_TRACERS = 200
SPREAD = np.random.default_rng(1).uniform(-5, 5, (2, 64)).astype(np.float32)


@partial(jax.jit, compiler_options=QUICK)
def run(params, alive, steps):
    """The states of many plumes that start with all tracers spread about, or with none."""

    def one(key):
        state = PLUME.start(key, params)
        tracers = state.particles.replace(position=jnp.asarray(SPREAD), alive=alive)
        step = lambda i, state: PLUME.advance(jax.random.fold_in(key, i), state, params)  # noqa: E731
        return jax.lax.fori_loop(0, steps, step, state.replace(particles=tracers))

    return jax.vmap(one)(jax.random.split(jax.random.key(0), LANES_OF_TRACERS))


ALL, NONE = np.ones(64, bool), np.zeros(64, bool)


def test_without_eddies_tracers_ride_on_the_wind_and_diffuse():
    straight = TRACERS.replace(
        wind=PARAMS.replace(rms=np.float32(0)),
        rate=np.float32(5.0),
        diffusivity=np.float32(0.3),
        low=np.full(2, -1e3, np.float32),
        high=np.full(2, 1e3, np.float32),
    )
    tracers = jax.tree.map(np.asarray, run(straight, NONE, 60).particles)
    counts = tracers.alive.sum(axis=1).astype(float)
    assert abs(counts.mean() - 30) < 4 * np.sqrt(30 / LANES_OF_TRACERS)
    assert abs(counts.var(ddof=1) - 30) < 4 * np.sqrt((2 * 30**2 + 30) / LANES_OF_TRACERS)
    age = tracers.age[tracers.alive].astype(float)
    x, y = tracers.position.transpose(1, 0, 2)[:, tracers.alive].astype(float)
    for away in (x - age, y):
        ratio = away[age > 0] ** 2 / (2 * 0.3 * age[age > 0])
        assert abs(ratio.mean() - 1) < 4 * np.sqrt(2 / len(ratio))


def test_paths_are_of_second_order():
    """In flows that stand still, half the step makes a quarter of the error."""
    still = TRACERS.replace(wind=FROZEN, rate=np.float32(0))
    ends = [
        np.asarray(run(still.replace(dt=np.float32(6 / n)), ALL, n).particles.position, float)
        for n in (15, 30, 120)
    ]
    errors = [np.sqrt(np.mean((end - ends[2]) ** 2)) for end in ends[:2]]
    assert 3.0 < errors[0] / errors[1] < 5.5
    assert errors[1] < 0.02


def test_gradients_are_those_of_finite_differences():
    places = np.asarray([[3.0, 0.5], [1.2, -0.3]], np.float32)

    @partial(jax.jit, compiler_options=QUICK)
    @jax.value_and_grad
    def smell(numbers):
        source, velocity, radius = numbers
        wind = FROZEN.replace(velocity=velocity)
        params = TRACERS.replace(source=source, wind=wind, radius=radius)
        step = lambda state, key: (PLUME.advance(key, state, params), None)  # noqa: E731
        keys = jax.random.split(jax.random.key(1), 60)
        state = jax.lax.scan(step, PLUME.start(keys[0], params), keys[1:])[0]
        return jnp.sum(PLUME.sample(state, places, params).concentration)

    numbers = [np.zeros(2, np.float32), np.asarray([0.6, 0.1], np.float32), np.float32(0.8)]
    value, gradients = smell(numbers)
    assert value > 0
    for which, gradient in enumerate(gradients):
        for index in np.ndindex(gradient.shape):
            ends = []
            for shift in (0.01, -0.01):
                moved = [np.array(number) for number in numbers]
                moved[which][index] += np.float32(shift)
                ends.append(float(smell(moved)[0]))
            assert (ends[0] - ends[1]) / 0.02 == pytest.approx(float(gradient[index]), rel=0.01)


@pytest.fixture(scope="module")
def eddies():
    return jax.tree.map(lambda x: x[2], run(TRACERS, NONE, 60))


def test_the_integral_over_the_plane_is_the_number_of_tracers(eddies):
    x, y = (np.arange(*ends, 0.2, dtype=np.float32) for ends in ((-8, 14), (-10, 10)))
    grid = np.stack(np.meshgrid(x, y), -1).reshape(-1, 2)
    air = jax.jit(PLUME.sample)(eddies, grid, TRACERS)
    count = int(eddies.particles.alive.sum())
    assert 30 < count <= 64
    assert 0.04 * float(np.sum(air.concentration, dtype=float)) == pytest.approx(count, rel=1e-4)
    wind = FLOW.at(eddies.wind, jnp.asarray(grid.T), TRACERS.wind).T
    np.testing.assert_allclose(air.wind, wind, atol=1e-5)


def test_without_emission_there_is_no_odour_and_half_thins(eddies):
    silent = run(TRACERS.replace(rate=np.float32(0)), NONE, 60)
    silent = jax.tree.map(lambda x: x[0], silent)
    places = np.zeros((1, 2), np.float32)
    concentration = lambda state: PLUME.sample(state, places, TRACERS).concentration.sum()  # noqa: E731
    value, gradient = jax.jit(jax.value_and_grad(concentration, allow_int=True))(silent)
    assert value == 0
    assert not np.any(gradient.particles.position)
    half = PLUME.thin(eddies, np.float32(0.5), jnp.uint32(3)).particles.alive
    assert (np.asarray(eddies.particles.alive) >= np.asarray(half)).all()
    assert 0 < half.sum() < eddies.particles.alive.sum()


def test_numbers_stay_float32_with_x64_on():
    plume = TracerPlume(capacity=8, warmup=1, num_sources=2)
    params = plume.default_params()
    with jax.enable_x64(True):
        state = jax.eval_shape(plume.start, jax.random.key(0), params)
        state = jax.eval_shape(plume.advance, jax.random.key(0), state, params)
        air = jax.eval_shape(plume.sample, state, jnp.zeros((3, 2), jnp.float32), params)
    assert plume.sources(state, params).shape == (2, 2)
    wide = {np.dtype("float64"), np.dtype("int64")}
    assert not {leaf.dtype for leaf in jax.tree.leaves((state, air))} & wide


@pytest.mark.parametrize(
    ("name", "value"),
    [("radius", 0.0), ("dt", 0.0), ("diffusivity", -1.0), ("rate", 1e3), ("source", [0.0, 50.0])],
)
def test_a_bad_number_of_the_tracers_is_refused(name, value):
    PLUME.validate(TRACERS)
    with pytest.raises(ValidationError, match=rf"plume\.{name}"):
        PLUME.validate(TRACERS.replace(**{name: np.asarray(value, np.float32)}))
