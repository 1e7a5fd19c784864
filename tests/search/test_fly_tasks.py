"""tests/search/test_fly_tasks: the arenas of walking flies have the published numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plumejax
from plumejax.plumes.packets import PacketPlume
from plumejax.search.sensors import SourceVector

MANY = 20_000


@pytest.fixture(scope="module")
def gaussian():
    return plumejax.make("Fly-Gaussian-v0")


def test_the_gaussian_arena_is_the_published_one_in_mm(gaussian):
    # Alvarez-Salvado et al. 2018 by the design notes: sigma 5 cm, 300 s at 50 Hz, within 2 cm.
    _, params = gaussian
    assert params.plume.sigma == 50
    assert params.dt == np.float32(0.02)
    assert int(params.max_steps) == 300 * 50
    assert params.ending.radius == 20
    # The model's fastest fly has ON = 1: 6 (1 + 0.45) mm/s.
    assert params.motion.max_speed == pytest.approx(8.7)
    assert params.motion.drift == 0


def test_starts_are_uniform_about_the_source_but_for_the_goal_disc(gaussian):
    env, params = gaussian
    keys = jax.random.split(jax.random.key(0), MANY)
    _, state = jax.jit(jax.vmap(env.reset, in_axes=(0, None)))(keys, params)
    x, y = (np.asarray(state.agent.position) - params.plume.source).T
    assert np.hypot(x, y).min() > 20
    # Cells of 20 mm; a quarter of the disc is in each of the four that meet at the source.
    edges = np.linspace(-100, 100, 11)
    counts, _, _ = np.histogram2d(x, y, (edges, edges))
    assert counts.sum() == MANY
    area = np.full((10, 10), 400.0)
    area[4:6, 4:6] -= 100 * np.pi
    assert_drawn_from(counts, area)
    assert_drawn_from(np.histogram(state.agent.heading, 12, (0, 360))[0], np.ones(12))


def assert_drawn_from(counts, weights):
    """Chi-squared within four standard deviations."""
    expected = weights / weights.sum() * counts.sum()
    free = expected.size - 1
    assert abs(np.sum((counts - expected) ** 2 / expected) - free) < 4 * np.sqrt(2 * free)


def test_a_sample_is_any_turn_and_speed_of_the_model_and_its_goal_is_at_20_mm(gaussian):
    env, params = gaussian
    _, state = env.reset(jax.random.key(0), params)
    # Turns of the model are 20 z^2 degrees to either side, modulo a circle: z of 1, 2.9, 4.
    turns = np.asarray([20.0, -20.0, 168.2, -168.2, 20 * 4.0**2 - 360, 0.0, 0.0])
    speeds = np.asarray([8.7, 6.0, 1.2, 0.0, 8.7, 0.0, 0.0])
    away = np.asarray([60.0, 60.0, 60.0, 60.0, 60.0, 19.99, 20.01])
    actions = jnp.asarray(np.stack([0.5 + turns / 360, speeds / 8.7], axis=-1), jnp.float32)

    def step(away, action):
        place = params.plume.source + jnp.stack([away, 0 * away])
        agent = state.agent.replace(position=place, heading=jnp.float32(90.0))
        observation, after, _, found, *_ = env.step(
            jax.random.key(1), state.replace(agent=agent), action, params
        )
        return observation, after.agent.position - place, after.agent.heading, found

    away = jnp.asarray(away, jnp.float32)
    observation, way, heading, found = jax.jit(jax.vmap(step))(away, actions)
    np.testing.assert_allclose(heading, np.mod(90 + turns, 360), atol=2e-3)
    angle = np.deg2rad(90 + turns)
    want = 0.02 * speeds[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    np.testing.assert_allclose(way, want, atol=2e-4)
    np.testing.assert_array_equal(found, [False] * 5 + [True, False])
    # The last two stand still: the odour where they are, and no wind.
    odour = np.exp(-np.square(np.asarray(away[5:])) / (2 * 50**2))
    np.testing.assert_allclose(observation[5:, 0], odour, atol=1e-5)
    np.testing.assert_array_equal(observation[:, 1:], 0)


def test_the_steady_plume_is_1_at_10_mm_and_falls_as_the_root_of_the_distance():
    env, params = plumejax.make("Fly-GaussianWind-v0")
    places = jnp.asarray([[10.0, 0.0], [40.0, 0.0], [360.0, 0.0], [-10.0, 0.0]])
    state = env.plume.start(jax.random.key(0), params.plume)
    air = env.plume.sample(state, places, params.plume)
    np.testing.assert_allclose(air.concentration[:3], [1, 1 / 2, 1 / 6], rtol=0.03)
    assert air.concentration[0] == pytest.approx(1, abs=1e-4)
    assert air.concentration[3] < 1e-4
    # A fly that heads for +y has a wind along +x at its right.
    observation, start = env.reset(jax.random.key(0), params)
    agent = start.agent.replace(heading=jnp.float32(90.0))
    still = jnp.asarray([0.5, 0.0], jnp.float32)
    observation, *_ = env.step(jax.random.key(1), start.replace(agent=agent), still, params)
    np.testing.assert_allclose(observation[1:], [0, -120], atol=1e-4)


def test_the_packet_arena_has_the_published_fly_and_packets():
    env, params = plumejax.make("Fly-Packets-v0", warmup=2)
    # Jayaram et al. 2022 and the packet plume by the design notes.
    assert params.motion.speed == np.float32(10.1)
    assert (params.motion.turn, params.motion.turn_spread) == (30, 8)
    assert params.sensor["whiff"].refractory == np.float32(0.085)
    plume = params.plume
    assert (plume.rate, plume.radius, plume.diffusivity) == (10, 4, 10)
    assert (plume.crosswind.speed, plume.crosswind.time) == (45, 2)
    np.testing.assert_array_equal(plume.wind.velocity, [150, 0])
    assert float(params.dt) * int(params.max_steps) == pytest.approx(180)
    assert plumejax.make("Fly-Packets-v0")[0].plume.warmup * params.dt == pytest.approx(5)

    _, state = env.reset(jax.random.key(0), params)
    np.testing.assert_array_less(
        np.abs(state.agent.position - jnp.asarray([300.0, 0.0])), [101, 76]
    )

    def stand(threshold):
        numbers = {
            **params.sensor,
            "odour": params.sensor["odour"].replace(low=threshold, high=threshold),
            "whiff": params.sensor["whiff"].replace(threshold=threshold),
        }
        agent = state.agent.replace(heading=jnp.float32(0.0))
        seen, *_ = env.step(
            jax.random.key(1),
            state.replace(agent=agent),
            jnp.int32(3),
            params.replace(sensor=numbers),
        )
        return seen

    # Clean air, and what a threshold below it makes of that.
    clean, whiff = jax.jit(jax.vmap(stand))(jnp.asarray([1.0, -1.0], jnp.float32))
    np.testing.assert_allclose(clean, [0, 10, 150, 0], atol=1e-4)
    np.testing.assert_allclose(whiff, [1, 0, 150, 0], atol=1e-4)


def test_a_part_that_is_given_has_its_own_numbers_and_the_others_keep_theirs():
    _, params = plumejax.make("Fly-Packets-v0", sensor=SourceVector())
    assert params.sensor == SourceVector().default_params()
    assert params.ending.radius == 20
    _, params = plumejax.make("Fly-Gaussian-v0", plume=PacketPlume())
    assert params.dt == np.float32(1 / 60)
    assert params.motion.turn_range == 360 * 50


def test_there_is_odour_for_a_tenth_of_the_time_where_flies_start_among_packets():
    env, params = plumejax.make("Fly-Packets-v0")
    low, high = params.start.low, params.start.high
    mesh = np.meshgrid(*(np.linspace(a, b, 7) for a, b in zip(low, high, strict=True)))
    places = jnp.asarray(np.stack(mesh, axis=-1).reshape(-1, 2), jnp.float32)

    @jax.jit
    def share(key):
        first, rest = jax.random.split(key)

        def step(state, key):
            state = env.plume.advance(key, state, params.plume)
            return state, env.plume.sample(state, places, params.plume).concentration >= 1

        start = env.plume.start(first, params.plume)
        _, odour = jax.lax.scan(step, start, jax.random.split(rest, 1200))
        return odour.astype(jnp.float32).mean(0)

    shares = np.stack([share(key) for key in jax.random.split(jax.random.key(0), 16)])
    assert shares.mean() == pytest.approx(0.11, abs=0.01)
    assert shares.mean(0).min() > 0.05
    assert shares.mean(0).max() < 0.20
