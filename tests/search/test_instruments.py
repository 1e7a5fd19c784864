"""tests/search/test_instruments: response times and laws of gas sensors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plumejax.base.errors import ValidationError
from plumejax.search.filters import Difference
from plumejax.search.instruments import DIFFUSION_PID, FAST_PID, MOX, PID, Resistance
from plumejax.search.sensors import LocalConcentration

LOCAL = LocalConcentration()


def test_metal_oxide_sees_in_3_seconds_and_forgets_in_16(sensing, smell, unsaturated):
    inner, numbers = unsaturated
    sensor = MOX(inner)
    for dt in (0.5, 2.0):
        n = int(10 / dt)
        params = sensing(sensor, dt=dt, of=numbers)
        seen = smell(sensor, params, np.repeat([200.0, 50.0], n))[:, 0]
        t = dt * np.arange(1, n + 1)
        top = 200 * (1 - np.exp(-10 / 2.96))
        np.testing.assert_allclose(seen[:n], 200 * (1 - np.exp(-t / 2.96)), rtol=1e-5)
        np.testing.assert_allclose(seen[n:], 50 + (top - 50) * np.exp(-t / 15.71), rtol=1e-5)


def test_each_metal_oxide_sensor_has_its_own_way(sensing, smell, two_noses):
    sensor = MOX(two_noses)
    seen = smell(sensor, sensing(sensor, rise=1.0, decay=2.0), [[-1.0, 2.0], [1.0, 0.0]])
    down, up = np.exp(-0.5), np.exp(-1.0)
    first = np.asarray([-1 + down, 2 - 2 * up])
    second = np.asarray([1 + (first[0] - 1) * up, first[1] * down])
    np.testing.assert_allclose(seen, [first, second], rtol=1e-5)


def test_resistance_is_that_of_the_data_sheet(sensing, smell, unsaturated):
    inner, numbers = unsaturated
    sensor = Resistance(inner)
    params = sensing(sensor, of=numbers)
    ppm = np.asarray([0.0, 4.573, 50.0, 300.0, 1000.0])
    ratio = smell(sensor, params, ppm)[:, 0]
    np.testing.assert_allclose(ratio, (1 + ppm / 4.573) ** -0.7155, rtol=1e-4)
    # R0 is the resistance in 300 ppm of ethanol, and that in air is 21 R0.
    assert abs(21 * ratio[3] - 1) < 0.06
    # In much gas the fitted line of GADEN.
    np.testing.assert_allclose(21 * ratio[3:], 62.32 * ppm[3:] ** -0.7155, rtol=0.012)


def test_photo_ionisation_follows_up_to_its_bandwidth(sensing, smell):
    sensor = PID(LOCAL)
    dt = 1e-5
    params = sensing(sensor, dt=dt)
    t = dt * np.arange(1, 3001)
    seen = smell(sensor, params, 0.5 + 0.5 * np.sin(2 * np.pi * 330 * t))[-909:, 0]
    # Three periods: at its bandwidth the amplitude is 1 / sqrt(2) of the true one.
    np.testing.assert_allclose(np.ptp(seen), np.sqrt(0.5), rtol=0.01)
    assert sensor.default_params().tau == np.float32(FAST_PID[0])


def test_photo_ionisation_without_a_pump_has_90_percent_in_3_seconds(sensing, smell, unsaturated):
    inner, numbers = unsaturated
    sensor = PID(inner)
    tau, limit = DIFFUSION_PID
    params = sensing(sensor, dt=0.5, of=numbers, tau=tau, limit=limit)
    seen = smell(sensor, params, np.repeat([10.0, 0.0], [6, 40]))[:, 0]
    np.testing.assert_allclose(seen[5], 9.0, rtol=1e-5)
    decayed = 9.0 * np.exp(-0.5 * np.arange(1, 41) / tau)
    np.testing.assert_allclose(seen[6:], np.where(decayed >= 0.1, decayed, 0), rtol=1e-4)
    assert 0 < np.sum(decayed < 0.1) < 40


def test_instruments_have_finite_gradients_in_clean_air_and_in_gas(sensing):
    for sensor in (MOX(LOCAL), PID(LOCAL), Resistance(LOCAL)):
        params = sensing(sensor)

        def shown(own, reading, sensor=sensor, params=params):
            params = params.replace(sensor=own)
            state = sensor.start(params)
            return jnp.sum(sensor.respond(None, reading, state, params)[0])

        for reading in (0.0, 0.5):
            at = jnp.full(1, reading, jnp.float32)
            slopes = jax.grad(shown, (0, 1))(params.sensor, at)
            assert all(np.all(np.isfinite(x)) for x in jax.tree.leaves(slopes))
            assert slopes[1] != 0


@pytest.mark.parametrize(
    ("sensor", "numbers", "message"),
    [
        (MOX(LOCAL), {"rise": 0.0}, "sensor.rise = 0.0"),
        (MOX(LOCAL), {"decay": -1.0}, "sensor.decay = -1.0"),
        (PID(LOCAL), {"tau": 0.0}, "sensor.tau = 0.0"),
        (PID(LOCAL), {"limit": -1.0}, "sensor.limit = -1.0"),
        (PID(Difference(LOCAL)), {}, "reads >= 0"),
        (Resistance(LOCAL), {"exponent": 0.0}, "sensor.exponent = 0.0"),
        (Resistance(Difference(LOCAL)), {}, "reads >= 0"),
    ],
)
def test_bad_numbers_are_refused(sensing, sensor, numbers, message):
    with pytest.raises(ValidationError, match=message):
        sensing(sensor, **numbers)
