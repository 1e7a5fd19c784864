"""tests/plumes/test_wind: moments, switches and times of every wind, from the first moment on."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plumejax.base.errors import ValidationError
from plumejax.plumes.wind import (
    Constant,
    Meander,
    OrnsteinUhlenbeck,
    RecordedWind,
    SwitchMany,
    SwitchOnce,
)

LANES = 20_000
HERE = np.zeros((2, 1), np.float32)


@partial(jax.jit, static_argnums=(0, 4))
def history(wind, params, key, dt, steps):
    """Of LANES winds: the states `[steps + 1, LANES, ...]` and velocities [steps + 1, LANES, 2]."""
    first, key = jax.random.split(key)
    start = jax.vmap(lambda key: wind.start(key, params))(jax.random.split(first, LANES))

    def step(state, key):
        keys = jax.random.split(key, LANES)
        after = jax.vmap(lambda key, state: wind.advance(key, state, dt, params))(keys, state)
        return after, state

    end, states = jax.lax.scan(step, start, jax.random.split(key, steps))
    states = jax.tree.map(lambda a, b: jnp.concatenate([a, b[None]]), states, end)
    at = jax.vmap(jax.vmap(lambda state: wind.at(state, HERE, params)[:, 0]))
    return states, at(states)


def test_constant_wind_is_constant_everywhere():
    wind = Constant()
    params = wind.default_params().replace(velocity=np.asarray([1, -2], np.float32))
    places = np.arange(15, dtype=np.float32).reshape(3, 5)
    state = wind.advance(jax.random.key(0), wind.start(jax.random.key(0), params), 1.0, params)
    got = wind.at(state, places, params)
    np.testing.assert_array_equal(got, np.repeat([[1], [-2]], 5, axis=1))
    np.testing.assert_array_equal(wind.mean(params), [1, -2])


def test_switch_once_turns_once_by_its_angle():
    wind = SwitchOnce()
    params = wind.default_params().replace(
        velocity=np.asarray([1, 1], np.float32), turn=np.float32(30), time=np.float32(2)
    )
    state = wind.start(jax.random.key(0), params)
    seen = []
    for _ in range(9):
        seen.append(np.asarray(wind.at(state, HERE, params)[:, 0]))
        state = wind.advance(jax.random.key(0), state, np.float32(0.5), params)
    np.testing.assert_allclose(seen[:4], [[1, 1]] * 4, rtol=1e-6)  # at 0, 0.5, 1, 1.5 s
    angle = np.deg2rad(45 + 30)
    want = [np.sqrt(2) * np.asarray([np.cos(angle), np.sin(angle)])] * 5
    np.testing.assert_allclose(seen[4:], want, rtol=1e-6)


MANY = SwitchMany().default_params().replace(jitter=np.float32(0.5), direction=np.float32(20))


def clipped_normal(spread, limit):
    """Variance of a normal number that is clipped, and the chance that it is."""
    grid = np.linspace(-limit, limit, 20001)
    density = np.exp(-0.5 * (grid / spread) ** 2) / (spread * np.sqrt(2 * np.pi))
    width = grid[1] - grid[0]
    beyond = 1 - np.sum(density[1:] + density[:-1]) / 2 * width
    return np.sum(grid**2 * density) * width + beyond * limit**2, beyond


# The second is half of the first.
@pytest.fixture(scope="module", params=[0.2, 0.1])
def switching(request):
    """`(dt, offset, left, velocity)` of switch-many, times along the first axis."""
    dt = request.param
    states, velocity = history(SwitchMany(), MANY, jax.random.key(4), np.float32(dt), 30)
    return dt, *(np.asarray(x, float) for x in (states.offset, states.left, velocity))


def test_directions_of_switch_many_are_a_clipped_normal_law_at_all_times(switching):
    _, offset, _, velocity = switching
    variance, beyond = clipped_normal(30, 60)
    for now in (offset[0], offset[-1]):
        assert np.abs(now).max() <= 60
        assert abs(now.mean()) < 4 * np.sqrt(variance / LANES)
        square = np.square(now)
        assert abs(square.mean() - variance) < 4 * square.std() / np.sqrt(LANES)
        clipped = np.mean(np.abs(now) == 60)
        assert abs(clipped - beyond) < 4 * np.sqrt(beyond / LANES)
    np.testing.assert_allclose(np.hypot(*velocity.T), 0.5, rtol=1e-5)
    angle = np.rad2deg(np.arctan2(velocity[..., 1], velocity[..., 0]))
    np.testing.assert_allclose(angle, 20 + offset, atol=1e-3)


def test_intervals_of_switch_many_are_uniform_and_stationary_from_the_start(switching):
    dt, offset, left, _ = switching
    switched = left[1:] > left[:-1]
    # A switch, and nothing else, turns the wind (it may turn to the same limit again).
    turned = offset[1:] != offset[:-1]
    assert not (turned & ~switched).any()
    assert np.mean(turned[switched]) > 0.99
    # The intervals drawn, in units of their mean: uniform in 0.5..1.5.
    drawn = (left[1:] - (left[:-1] - dt))[switched] / 3
    assert drawn.min() > 0.5 - 1e-5
    assert drawn.max() < 1.5 + 1e-5
    assert abs(drawn.mean() - 1) < 4 * np.sqrt(1 / 12 / len(drawn))
    assert abs(drawn.var() - 1 / 12) < 4 * np.sqrt((1 / 80 - 1 / 144) / len(drawn))
    # Time left to the next switch in a stationary renewal process: E[X^2] / (2 E[X]).
    want = 3 * (1 + 0.5**2 / 3) / 2
    second = 9 * (1 + 0.5**2) / 3  # E[X^3] / (3 E[X])
    for now in (left[0], left[-1]):
        assert abs(now.mean() - want) < 4 * np.sqrt((second - want**2) / LANES)
        assert now.min() >= 0
    # As many switches in any span as the mean interval has it.
    rate = switched.mean(axis=1) / dt
    assert np.abs(rate - 1 / 3).max() < 4.5 * np.sqrt(1 / 3 / dt / LANES)


@pytest.mark.parametrize("dt", [1.0, 0.5, 12.0])
def test_ornstein_uhlenbeck_has_its_mean_variance_and_time(dt):
    wind = OrnsteinUhlenbeck()
    params = wind.default_params().replace(
        velocity=np.asarray([1, -0.5], np.float32), spread=np.asarray([0.2, 0.4], np.float32)
    )
    _, velocity = history(wind, params, jax.random.key(1), np.float32(dt), 8)
    velocity = np.asarray(velocity, float) - [1, -0.5]
    variance = np.asarray([0.04, 0.16])
    error = 4 * np.sqrt(2 / LANES)
    for now in (velocity[0], velocity[-1]):
        np.testing.assert_array_less(np.abs(now.mean(axis=0)), 4 * np.sqrt(variance / LANES))
        np.testing.assert_allclose(np.mean(now**2, axis=0) / variance, 1, atol=error)
        assert abs(np.mean(now[:, 0] * now[:, 1])) < error * 0.08
    for steps in (1, 8):
        kept = np.mean(velocity[0] * velocity[steps], axis=0) / variance
        np.testing.assert_allclose(kept, np.exp(-steps * dt / 5), atol=error)


@pytest.mark.parametrize("dt", [5.0, 2.5])
def test_a_meander_swings_as_a_sine_from_any_phase(dt):
    wind = Meander()
    params = wind.default_params().replace(direction=np.float32(10))
    phase, velocity = history(wind, params, jax.random.key(2), np.float32(dt), 8)
    phase, velocity = np.asarray(phase, float), np.asarray(velocity, float)
    counts = np.histogram(phase[0], 20, (0, 1))[0]
    assert (np.abs(counts - LANES / 20) < 4.5 * np.sqrt(LANES / 20)).all()
    # 8 steps of 2.5 s are a period; by then every wind is as it was.
    np.testing.assert_allclose(velocity[-1], velocity[0], atol=2e-6)
    passed = np.arange(9)[:, None] * dt / 20
    angle = np.deg2rad(10 + 20 * np.sin(2 * np.pi * (phase[0] + passed)))
    want = 0.5 * np.stack([np.cos(angle), np.sin(angle)], -1)
    np.testing.assert_allclose(velocity, want, atol=5e-6)
    assert (phase >= 0).all()
    assert (phase < 1).all()


def test_a_recorded_wind_is_played_in_a_loop_linear_between_samples():
    wind = RecordedWind(num_frames=4)
    velocities = np.asarray([[0, 0], [2, 1], [4, -1], [1, 1]], np.float32)
    params = wind.default_params().replace(velocities=velocities, seconds=np.float32(0.5))
    wind.validate(params)
    time, velocity = history(wind, params, jax.random.key(3), np.float32(0.15), 30)
    time, velocity = np.asarray(time, float), np.asarray(velocity, float)
    counts = np.histogram(time[0], 16, (0, 4))[0]
    assert (np.abs(counts - LANES / 16) < 4.5 * np.sqrt(LANES / 16)).all()
    np.testing.assert_allclose(
        np.mod(time - time[0] - np.arange(31)[:, None] * 0.3 + 2, 4), 2, atol=1e-4
    )
    knots = np.concatenate([velocities, velocities[:1]])
    for component in range(2):
        want = np.interp(time, np.arange(5), knots[:, component])
        np.testing.assert_allclose(velocity[..., component], want, atol=1e-5)
    error = 4 * velocity.std(axis=(0, 1)) / np.sqrt(LANES)
    np.testing.assert_array_less(np.abs(velocity[0].mean(axis=0) - wind.mean(params)), error)


def test_every_wind_blows_at_any_place_and_has_finite_gradients():
    winds = (Constant(), SwitchOnce(), SwitchMany(), OrnsteinUhlenbeck(), Meander())
    places = np.ones((3, 7), np.float32)

    @jax.jit
    @jax.grad
    def blown(numbers):
        total = jnp.zeros((), jnp.float32)
        for wind, params in zip(winds, numbers, strict=True):
            start, step = jax.random.split(jax.random.key(0))
            state = wind.advance(step, wind.start(start, params), np.float32(0.1), params)
            air = wind.at(state, places, params)
            assert air.shape == (2, 7)
            total = total + jnp.sum(air) + jnp.sum(wind.mean(params))
        return total

    numbers = tuple(wind.default_params() for wind in winds)
    still = tuple(
        jax.tree.map(np.zeros_like, params).replace(
            **{name: getattr(params, name) for name in POSITIVE if hasattr(params, name)}
        )
        for params in numbers
    )
    for some in (numbers, still):
        assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(blown(some)))


POSITIVE = ("interval", "time", "period", "seconds")


def test_states_stay_float32_with_x64_on():
    winds = (SwitchOnce(), SwitchMany(), OrnsteinUhlenbeck(), Meander(), RecordedWind(3))
    with jax.enable_x64(True):
        for wind in winds:
            params = wind.default_params()
            state = jax.eval_shape(wind.start, jax.random.key(0), params)
            dt = jnp.float32(0.1)
            state = jax.eval_shape(wind.advance, jax.random.key(0), state, dt, params)
            air = jax.eval_shape(wind.at, state, jnp.zeros((2, 1), jnp.float32), params)
            assert {x.dtype for x in jax.tree.leaves((state, air))} == {np.dtype("float32")}


BAD = [
    (Constant(), "velocity", [np.nan, 0.0]),
    (SwitchOnce(), "velocity", [np.inf, 0.0]),
    (SwitchOnce(), "turn", np.nan),
    (SwitchOnce(), "time", -1.0),
    (SwitchMany(), "direction", np.nan),
    (SwitchMany(), "speed", -1.0),
    (SwitchMany(), "spread", -1.0),
    (SwitchMany(), "limit", np.inf),
    (SwitchMany(), "interval", 0.0),
    (SwitchMany(), "jitter", 1.0),
    (OrnsteinUhlenbeck(), "velocity", [np.nan, 0.0]),
    (OrnsteinUhlenbeck(), "spread", [0.1, -0.1]),
    (OrnsteinUhlenbeck(), "time", 0.0),
    (Meander(), "direction", np.nan),
    (Meander(), "speed", -1.0),
    (Meander(), "amplitude", -1.0),
    (Meander(), "period", 0.0),
    (RecordedWind(3), "velocities", [[0.0, np.nan]] * 3),
    (RecordedWind(3), "velocities", [[0.0, 0.0]] * 4),
    (RecordedWind(3), "seconds", 0.0),
]


@pytest.mark.parametrize(("wind", "name", "value"), BAD)
def test_a_bad_number_is_refused(wind, name, value):
    params = wind.default_params()
    wind.validate(params)
    with pytest.raises(ValidationError, match=rf"plume\.wind\.{name}"):
        wind.validate(params.replace(**{name: np.asarray(value, np.float32)}))
