"""tests/plumes/test_sources: sources that stay, drift and bounce, run and tumble."""

import hypothesis.strategies as st
import jax
import numpy as np
import pytest
from hypothesis import given, settings

from plumejax.base.errors import ValidationError
from plumejax.plumes.filaments import FilamentPlume
from plumejax.plumes.sources import (
    Drift,
    RunAndTumble,
    Still,
    default_source,
    require_sources,
)

KEY = jax.random.key(0)


def test_still_sources_stay():
    still = Still()
    params = still.default_params(2, 2)
    source = np.asarray([[1, 2], [3, 4]], np.float32)
    state = still.advance(KEY, still.start(KEY, source, params), 1.0, params)
    np.testing.assert_array_equal(still.positions(state), source)
    np.testing.assert_array_equal(still.positions(still.start(KEY, source[0], params)), source[:1])
    still.validate(params, 2, 2)


drift = jax.jit(Drift().advance)


@settings(max_examples=40)
@given(st.floats(0, 4, width=32), st.floats(-3, 3, width=32), st.integers(1, 30), st.floats(0.1, 1))
def test_a_drifting_source_bounces_as_light_in_a_box(x, speed, steps, dt):
    """Its path in a box of width 4 is a triangle wave; the other coordinate has no walls."""
    params = (
        Drift()
        .default_params(1, 2)
        .replace(
            velocity=np.asarray([[speed, speed]], np.float32),
            low=np.asarray([0, -np.inf], np.float32),
            high=np.asarray([4, np.inf], np.float32),
        )
    )
    state = Drift().start(KEY, np.asarray([x, 7], np.float32), params)
    for _ in range(steps):
        state = drift(KEY, state, np.float32(dt), params)
    unfolded = (x + speed * dt * steps) % 8
    want = min(unfolded, 8 - unfolded)
    np.testing.assert_allclose(state.position[0], [want, 7 + speed * dt * steps], atol=2e-3)
    np.testing.assert_allclose(np.abs(state.velocity), abs(speed), rtol=1e-6)


def test_no_step_is_long_enough_to_leave_the_box():
    params = (
        Drift()
        .default_params(1, 1)
        .replace(
            velocity=np.asarray([[30]], np.float32),
            low=np.zeros(1, np.float32),
            high=np.ones(1, np.float32),
        )
    )
    state = Drift().start(KEY, np.asarray([0.5], np.float32), params)
    for _ in range(5):
        state = drift(KEY, state, np.float32(0.1), params)
        assert 0 <= float(state.position[0, 0]) <= 1


def test_the_gradient_is_finite_with_walls_at_infinity():
    def end(source, velocity):
        params = Drift().default_params(1, 2).replace(velocity=velocity)
        state = Drift().start(KEY, source, params)
        return drift(KEY, state, np.float32(2.0), params).position.sum()

    source, velocity = np.zeros(2, np.float32), np.ones((1, 2), np.float32)
    by_source, by_velocity = jax.grad(end, (0, 1))(source, velocity)
    np.testing.assert_array_equal(by_source, [1, 1])
    np.testing.assert_array_equal(by_velocity, [[2, 2]])


RUNNERS = 20_000
TUMBLE = (
    RunAndTumble()
    .default_params(RUNNERS, 3)
    .replace(speed=np.float32(2.0), tumble_rate=np.float32(0.5))
)


@jax.jit
def tumbles(key, dt):
    """Velocities [RUNNERS, 3] at the start and 8 steps on, and how far they came."""
    first, key = jax.random.split(key)
    start = RunAndTumble().start(first, np.zeros((RUNNERS, 3), np.float32), TUMBLE)
    step = lambda state, key: (RunAndTumble().advance(key, state, dt, TUMBLE), None)  # noqa: E731
    end, _ = jax.lax.scan(step, start, jax.random.split(key, 8))
    return start.velocity, end.velocity, end.position


# The second is half of the first: the same law of time.
@pytest.mark.parametrize("dt", [0.5, 0.25])
def test_runs_and_tumbles(dt):
    start, end, moved = (np.asarray(x, float) for x in tumbles(jax.random.key(2), np.float32(dt)))
    np.testing.assert_allclose(np.sum(end**2, axis=1), 4, rtol=1e-5)
    assert not end[:, 2].any()
    assert not moved[:, 2].any()
    angle = np.arctan2(end[:, 1], end[:, 0])
    for order in (1, 2, 3):
        assert abs(np.exp(1j * order * angle).mean()) < 4 / np.sqrt(RUNNERS)
    kept = np.sum(start * end, axis=1) / 4
    persistence = np.exp(-0.5 * 8 * dt)
    assert abs(kept.mean() - persistence) < 4 * kept.std() / np.sqrt(RUNNERS)
    unturned = np.isclose(kept, 1, atol=1e-5).mean()
    assert abs(unturned - persistence) < 4 * np.sqrt(persistence / RUNNERS) + 2e-3


def test_a_runner_without_tumbles_runs_straight_and_stays_in_its_box():
    params = (
        RunAndTumble()
        .default_params(1, 2)
        .replace(
            tumble_rate=np.float32(0), low=-np.ones(2, np.float32), high=np.ones(2, np.float32)
        )
    )
    state = RunAndTumble().start(KEY, np.zeros(2, np.float32), params)
    speed = np.abs(state.velocity)
    step = jax.jit(RunAndTumble().advance)
    for key in jax.random.split(KEY, 20):
        state = step(key, state, np.float32(0.3), params)
        assert (np.abs(state.position) <= 1).all()
        np.testing.assert_array_equal(np.abs(state.velocity), speed)


@pytest.mark.parametrize(
    ("motion", "name", "value"),
    [(RunAndTumble(), "speed", -1.0), (RunAndTumble(), "tumble_rate", -1.0)]
    + [(motion, "low", [2.0, 5.0]) for motion in (Drift(), RunAndTumble())],
)
def test_bad_numbers_are_refused(motion, name, value):
    params = motion.default_params(1, 2)
    motion.validate(params, 1, 2)
    params = params.replace(high=np.full(2, 3, np.float32), **{name: np.asarray(value, np.float32)})
    with pytest.raises(ValidationError, match=rf"plume\.source_motion\.{name}"):
        motion.validate(params, 1, 2)


def test_default_sources_and_their_shapes():
    assert default_source(1, (1.0, 2.0)).tolist() == [1.0, 2.0]
    three = default_source(3, (1.0, 2.0, 5.0))
    assert three.tolist() == [[1, 1, 5], [1, 2, 5], [1, 3, 5]]
    assert three.dtype == np.float32
    plume, params = FilamentPlume(num_sources=3), FilamentPlume(num_sources=3).default_params()
    require_sources(plume, params.replace(source=three), 3)
    require_sources(plume, params.replace(source=np.stack([three, three])), 3)
    with pytest.raises(ValidationError, match=r"plume\.source\.shape"):
        require_sources(FilamentPlume(num_sources=2), params.replace(source=three), 3)
    with pytest.raises(ValidationError, match=r"plume\.source = "):
        require_sources(plume, params.replace(source=three * np.float32(np.nan)), 3)
    with pytest.raises(ValidationError, match="num_sources"):
        require_sources(FilamentPlume(num_sources=0), params, 3)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("velocity.shape", [1.0, 2.0, 3.0]),
        ("velocity.shape", [[1.0, 0.0], [2.0, 0.0]]),
        ("velocity", [[np.nan, 0.0]]),
        ("velocity.shape", 5.0),
        ("low.shape", [0.0, 0.0, 0.0]),
    ],
)
def test_a_drift_that_cannot_move_the_sources_is_refused(field, value):
    name = field.removesuffix(".shape")
    params = Drift().default_params(1, 2).replace(**{name: np.asarray(value, np.float32)})
    with pytest.raises(ValidationError, match=rf"plume\.source_motion\.{field} = "):
        Drift().validate(params, 1, 2)
