"""tests/search/test_filters: exact answers of the sensors with a memory."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plumejax
from plumejax import testing
from plumejax.base.errors import ValidationError
from plumejax.base.paths import override
from plumejax.search.filters import Adaptation, Delay, Difference, History, LowPass, OnOff
from plumejax.search.sensors import FullField, LocalConcentration
from plumejax.search.state import Agent

LOCAL = LocalConcentration()
FLY = {"adapt_on": 490, "on": 36, "adapt_off": 504, "fast": 31, "slow": 242}
"""Alvarez-Salvado et al. 2018, in samples at 50 Hz."""


@pytest.mark.parametrize("cuts", [1, 4, 64])
def test_a_low_pass_answers_a_step_with_an_exponential_however_time_is_cut(sensing, smell, cuts):
    sensor = LowPass(LOCAL)
    params = sensing(sensor, dt=0.5 / cuts, tau=0.8)
    seen = smell(sensor, params, np.full(8 * cuts, 0.7))[cuts - 1 :: cuts, 0]
    expected = 0.7 * (1 - np.exp(-0.5 * np.arange(1, 9) / 0.8))
    np.testing.assert_allclose(seen, expected, rtol=1e-5)


def test_a_low_pass_forgets_as_it_learns_and_holds_what_may_be_negative(sensing, smell, two_noses):
    sensor = LowPass(two_noses)
    air = np.concatenate([np.tile([[-1.0, 2.0]], (3, 1)), np.zeros((3, 2))])
    seen = smell(sensor, sensing(sensor, tau=1.0), air)
    rise = 1 - np.exp(-np.arange(1, 4))
    shape = np.concatenate([rise, rise[-1] * np.exp(-np.arange(1, 4))])
    np.testing.assert_allclose(seen, shape[:, None] * [-1.0, 2.0], rtol=1e-5)
    # Far quicker than a step it is the reading itself, and not an ulp more.
    air = np.random.default_rng(0).uniform([-1, 0], [1, 2], (500, 2)).astype(np.float32)
    np.testing.assert_array_equal(smell(sensor, sensing(sensor, tau=0.01), air), air)


def odour(n=700):
    """float[n]: pulses of many lengths and heights, and blanks."""
    rng = np.random.default_rng(1)
    return np.repeat(rng.uniform(0, 1, n) * (rng.random(n) < 0.5), rng.integers(1, 40, n))[:n]


def test_on_and_off_are_those_of_the_fly(sensing, smell):
    c, sensor = odour(), OnOff(LOCAL)
    own = sensor.default_params()
    for name, n in FLY.items():
        assert getattr(own, name) == np.float32(n * 0.02)
    assert own.scale == np.float32(0.01)
    gain = {name: -np.expm1(-1 / n) for name, n in FLY.items()}
    a_on = a_off = on = r = rh = 0.0
    rows = []
    for x in c:
        co = x / (x + 0.01 + a_off)
        on += (x / (x + 0.01 + a_on) - on) * gain["on"]
        r += (co - r) * gain["fast"]
        rh += (co - rh) * gain["slow"]
        a_on += (x - a_on) * gain["adapt_on"]
        a_off += (x - a_off) * gain["adapt_off"]
        rows.append((on, max(0.0, rh - r)))
    assert np.max(rows, axis=0)[1] > 0.1
    np.testing.assert_allclose(smell(sensor, sensing(sensor, dt=0.02), c), rows, atol=2e-6)


def test_adaptation_compresses_by_the_flys_formula(sensing, smell):
    c, sensor = odour(), Adaptation(LOCAL)
    # The time constant whose exact step is Euler's of 490 samples.
    params = sensing(sensor, dt=0.02, tau=-0.02 / np.log1p(-1 / 490))
    adapted, rows = 0.0, []
    for x in c:
        adapted += (x - adapted) / 490
        rows.append(x / (x + 0.01 + adapted))
    np.testing.assert_allclose(smell(sensor, params, c)[:, 0], rows, rtol=1e-5)
    assert sensor.default_params().tau == np.float32(9.8)
    # In steady odour c, adapted, half of it and the scale: c / (2 c + scale).
    adapted = smell(sensor, sensing(sensor, dt=5.0), np.full(40, 0.3))[-1, 0]
    np.testing.assert_allclose(adapted, 0.3 / 0.61, rtol=1e-5)


def test_a_delay_shows_the_first_reading_until_the_delayed_ones_come(sensing, smell, two_noses):
    air = np.asarray([[0.5, 1.5], [0.1, 0.2], [-0.3, 0.4], [0.5, 0.6], [0.7, 0.8]], np.float32)
    for steps, order in ((1, [0, 0, 1, 2, 3]), (3, [0, 0, 0, 0, 1])):
        sensor = Delay(two_noses, steps)
        np.testing.assert_array_equal(smell(sensor, sensing(sensor), air), air[order])


def test_a_history_has_the_newest_last_and_zeros_before_the_start(sensing, smell, two_noses):
    sensor = History(two_noses, 3)
    seen = smell(sensor, sensing(sensor), [[0.5, 1.5], [-1.0, 2.0], [0.25, 1.0], [0.0, 0.5]])
    expected = [
        [0, 0, 0, 0, 0.5, 1.5],
        [0, 0, 0.5, 1.5, -1, 2],
        [0.5, 1.5, -1, 2, 0.25, 1],
        [-1, 2, 0.25, 1, 0, 0.5],
    ]
    np.testing.assert_array_equal(seen, expected)
    space = sensor.space(sensing(sensor))
    np.testing.assert_array_equal(space.low, [-1, 0] * 3)
    np.testing.assert_array_equal(space.high, [1, 2] * 3)


def test_the_space_holds_the_zeros_of_before_the_start(sensing, smell, two_noses):
    above = replace(two_noses, low=(0.5, 0.5))
    # `smell` asks whether each observation is in the space.
    history = History(above, 2)
    assert smell(history, sensing(history), [[0.5, 1.5]])[0, 0] == 0
    slow = LowPass(above)
    assert smell(slow, sensing(slow, tau=10.0), [[0.5, 1.5]])[0, 0] < 0.5


def test_a_difference_is_to_the_reading_before(sensing, smell, two_noses):
    sensor = Difference(two_noses)
    seen = smell(sensor, sensing(sensor), [[0.5, 1.5], [-1.0, 2.0], [1.0, 0.0], [1.0, 0.0]])
    np.testing.assert_array_equal(seen, [[0, 0], [-1.5, 0.5], [2, -2], [0, 0]])


def test_wrappers_compose_and_read_their_numbers_at_dotted_paths(sensing, smell):
    sensor = History(LowPass(Delay(LOCAL, 1)), 2)
    params = sensing(sensor)
    params = override(params, {"sensor.of.tau": 1.0, "sensor.of.of.of.saturation": 0.5})
    seen = smell(sensor, params, [0.25, 2.0, 0.0])
    v = 1 - np.exp(-1)
    first, second = 0.25 * v, 0.25 * v * (2 - v)
    third = second + (0.5 - second) * v
    np.testing.assert_allclose(seen, [[0, first], [first, second], [second, third]], rtol=1e-5)
    agent = Agent(jnp.asarray([3.0, 4.0], jnp.float32), jnp.float32(0.0))
    np.testing.assert_array_equal(sensor.probes(agent, params), [[3.0, 4.0]])
    assert not sensor.random_step
    # Also for a sweep, whose numbers have one more axis.
    sensor.validate(params.replace(sensor=swept(params.sensor)))


def swept(own):
    return jax.tree.map(lambda x: np.stack([x, x, x]), own)


def test_filters_have_finite_gradients_at_the_start_of_an_episode(sensing):
    for sensor in (LowPass(LOCAL), Adaptation(LOCAL), OnOff(LOCAL)):
        params = sensing(sensor, dt=0.02)

        def total(own, reading, sensor=sensor, params=params):
            params = params.replace(sensor=own)
            state = sensor.start(params)
            seen = []
            for _ in range(3):
                observation, state = sensor.respond(None, reading, state, params)
                seen.append(jnp.sum(observation))
            return sum(seen)

        for reading in (0.0, 0.5):
            at = jnp.full(1, reading, jnp.float32)
            slopes = jax.jit(jax.grad(total, (0, 1)))(params.sensor, at)
            assert all(np.all(np.isfinite(x)) for x in jax.tree.leaves(slopes))
            assert slopes[1] > 0


@pytest.mark.parametrize(
    ("sensor", "numbers", "message"),
    [
        (LowPass(LOCAL), {"tau": 0.0}, "sensor.tau = 0.0"),
        (LowPass(LOCAL), {"tau": np.nan}, "sensor.tau = nan"),
        (Adaptation(LOCAL), {"scale": -1.0}, "sensor.scale = -1.0"),
        (OnOff(LOCAL), {"slow": 0.0}, "sensor.slow = 0.0"),
        (Delay(LOCAL, 0), {}, "sensor.steps = 0"),
        (History(LOCAL, 0), {}, "sensor.length = 0"),
        (LowPass(FullField((4, 4))), {}, "sensor.of = FullField"),
        (Adaptation(Difference(LOCAL)), {}, r"a sensor that reads >= 0"),
        (LowPass(LowPass(LOCAL)), {"of": LowPass(LOCAL).default_params().replace(tau=-1)}, "tau"),
    ],
)
def test_bad_numbers_are_refused(sensing, sensor, numbers, message):
    with pytest.raises(ValidationError, match=message):
        sensing(sensor, **numbers)


def test_a_task_with_a_filtered_nose_is_a_task():
    env, params = plumejax.make(
        "PlumeSearchLocal-v0", grid_size=(16, 12), sensor=History(LowPass(Delay(LOCAL, 2)), 2)
    )
    testing.check_spaces(env, params, jax.random.key(0), 8)
    testing.check_shapes(env, params, jax.random.key(0), 8)
