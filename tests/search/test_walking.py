"""tests/search/test_walking: speeds, turns, inertia and walls in continuous space."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plumejax.base.errors import ValidationError
from plumejax.plumes.interface import Air
from plumejax.search.arena import BoxParams, ObstacleBox, ObstacleBoxParams, OpenBox
from plumejax.search.state import Agent
from plumejax.search.walking import (
    TurnAndSpeed,
    Unicycle,
    Velocity,
    in_circle,
    limited,
    tracking_code,
    tracking_paper,
    tracking_walking,
)

BOX = OpenBox(2)
KEY = jax.random.key(0)


def numbers(local, motion, dt, box=100.0, dimensions=2, **changed):
    """The params of a search in a box of -box..box with this motion."""
    side = np.full(dimensions, box, np.float32)
    own = motion.default_params().replace(**{k: np.float32(v) for k, v in changed.items()})
    return local[1].replace(motion=own, arena=BoxParams(-side, side), dt=np.float32(dt))


def begin(motion, params, place=(0.0, 0.0), heading=0.0):
    here = Agent(jnp.asarray(place, jnp.float32), jnp.float32(heading))
    return motion.begin(here, params)


def run(motion, params, actions, place=(0.0, 0.0), heading=0.0, wind=(0.0, 0.0), arena=BOX):
    """The agents after each of `actions`, stacked."""
    air = Air(jnp.zeros(1), jnp.asarray([wind], jnp.float32))

    @jax.jit
    def walk(agent, actions):
        def step(agent, action):
            agent = motion.move(KEY, agent, action, air, arena, params)
            return agent, agent

        return jax.lax.scan(step, agent, actions)[1]

    actions = np.asarray(actions)
    kind = np.int32 if actions.dtype.kind == "i" else np.float32
    walked = walk(begin(motion, params, place, heading), actions.astype(kind))
    return jax.tree.map(np.asarray, walked)


@pytest.mark.parametrize(
    ("preset", "turn", "far"),
    [
        # Half of 6.25 pi rad/s is 562.5 degrees/s, so 22.5 degrees in 0.04 s; 2 m/s make 0.08 m.
        (tracking_code, 22.5, 0.08),
        (tracking_paper, 45.0, 0.1),
        (tracking_walking, 3.6, 0.002),
    ],
)
def test_the_tracking_presets_turn_and_go_as_published(local, preset, turn, far):
    motion = TurnAndSpeed()
    params = numbers(local, motion, 0.04).replace(motion=preset())
    motion.validate(params)
    actions = [[1.0, 0.0], [0.5, 1.0], [0.0, 0.0], [0.0, 0.5]]
    walked = run(motion, params, actions)
    np.testing.assert_allclose(walked.heading, [turn, turn, 0, 360 - turn], atol=2e-4)
    left = np.deg2rad(turn)
    first = far * np.asarray([np.cos(left), np.sin(left)])
    last = first + far / 2 * np.asarray([np.cos(left), -np.sin(left)])
    expected = [[0, 0], first, first, last]
    np.testing.assert_allclose(walked.position, expected, rtol=1e-5, atol=1e-8)
    speed = np.hypot(*walked.motion.velocity.T)
    np.testing.assert_allclose(speed, [0, far / 0.04, 0, far / 0.08], rtol=1e-5)


@pytest.mark.parametrize("drift", [0.0, 0.4, 1.0])
def test_the_wind_carries_a_flying_agent_and_is_not_its_own_velocity(local, drift):
    motion = TurnAndSpeed()
    params = numbers(local, motion, 0.5, drift=drift)
    walked = run(motion, params, [[0.5, 0.0], [0.5, 1.0]], heading=90.0, wind=(0.6, -0.2))
    way = drift * 0.5 * np.asarray([0.6, -0.2])
    np.testing.assert_allclose(walked.position, [way, 2 * way + [0, 1]], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(walked.motion.velocity, [[0, 0], [0, 2]], atol=1e-6)


def test_a_walker_feels_no_air(local):
    motion = TurnAndSpeed(feels_air=False)
    params = numbers(local, motion, 0.04)
    motion.validate(params)
    moved = motion.move(KEY, begin(motion, params), np.float32([0.5, 1.0]), None, BOX, params)
    np.testing.assert_allclose(moved.position, [0.002, 0], rtol=1e-5, atol=1e-9)
    assert TurnAndSpeed().feels_air
    with pytest.raises(ValidationError, match=r"motion.drift.*feels_air=False"):
        motion.validate(params.replace(motion=tracking_code()))


def test_what_an_action_asks_beyond_its_space_it_does_not_get(local):
    motion = TurnAndSpeed()
    params = numbers(local, motion, 0.04)
    over, at = (run(motion, params, [[a, b]]) for a, b in ((7.0, 3.0), (1.0, 1.0)))
    np.testing.assert_array_equal(over.position, at.position)
    space = motion.space(params)
    assert space.contains(space.sample(KEY))
    assert space.shape == (2,)


@pytest.mark.parametrize(
    ("at_wall", "end", "velocity"),
    [
        ("settle", (1.0, 0.8), (0.0, 0.6)),
        ("stay", (0.5, 0.2), (0.0, 0.0)),
        ("slide", (0.5, 0.8), (0.0, 0.6)),
        ("end", (0.5, 0.2), (0.0, 0.0)),
    ],
)
def test_what_a_wall_does_is_a_choice(local, at_wall, end, velocity):
    motion = TurnAndSpeed(at_wall=at_wall)
    params = numbers(local, motion, 1.0, box=1.0, max_speed=1.0)
    heading = np.rad2deg(np.arctan2(0.6, 0.8))
    walked = run(motion, params, [[0.5, 1.0], [0.5, 0.0]], place=(0.5, 0.2), heading=heading)
    np.testing.assert_allclose(walked.position[0], end, rtol=1e-5)
    np.testing.assert_allclose(walked.motion.velocity[0], velocity, rtol=1e-5, atol=1e-7)
    np.testing.assert_array_equal(walked.motion.touched, [True, False])


def test_a_fast_agent_does_not_fly_through_a_wall(local):
    free = np.ones((8, 8), bool)
    free[:, 4] = False
    arena = ObstacleBox((8, 8), samples=4)
    place, gap = np.zeros(2, np.float32), np.full(2, 0.02, np.float32)
    motion = TurnAndSpeed()
    params = numbers(local, motion, 0.04).replace(arena=ObstacleBoxParams(free, place, gap))
    arena.validate(params)  # 0.08 m a step, and cells of 0.02 m
    actions = np.random.default_rng(0).uniform(0, 1, (2000, 2))
    walked = run(motion, params, actions, place=(0.02, 0.06), arena=arena)
    assert np.asarray(arena.inside(jnp.asarray(walked.position), params)).all()
    assert (walked.position[:, 0] <= 0.07).all()
    assert walked.motion.touched.any()
    assert not walked.motion.touched.all()
    with pytest.raises(ValidationError, match=r"arena.samples = 3.*>= 4"):
        ObstacleBox((8, 8), samples=3).validate(params)


def test_the_terminal_speed_is_acceleration_over_drag(local):
    motion = Velocity(2)
    params = numbers(local, motion, 0.1, acceleration=2.0, drag=4.0, max_speed=9.0)
    walked = run(motion, params, np.tile([1.0, -0.5], (60, 1)))
    np.testing.assert_allclose(walked.motion.velocity[-1], [0.5, -0.25], rtol=1e-6)
    time = 0.1 * np.arange(1, 61)
    exact = 0.5 * (1 - np.exp(-4 * time))
    np.testing.assert_allclose(walked.motion.velocity[:, 0], exact, rtol=1e-5)
    exact = 0.5 * (time - (1 - np.exp(-4 * time)) / 4)
    np.testing.assert_allclose(walked.position[:, 0], exact, rtol=1e-5)
    np.testing.assert_allclose(walked.heading, 360 - np.rad2deg(np.arctan(0.5)), rtol=1e-5)


@pytest.mark.parametrize("drag", [0.0, 0.003, 0.7, 30.0])
def test_a_path_does_not_depend_on_the_time_step(local, drag):
    motion, pushes = Velocity(2), np.random.default_rng(3).uniform(-1, 1, (10, 2))
    coarse, fine = (
        run(
            motion,
            numbers(local, motion, 0.2 / n, drag=drag, max_speed=50.0, acceleration=3.0),
            np.repeat(pushes, n, axis=0),
        )
        for n in (1, 8)
    )
    for name in ("position", "heading"):
        np.testing.assert_allclose(
            getattr(coarse, name), getattr(fine, name)[7::8], rtol=2e-4, atol=2e-5
        )
    # And the whole of it against small steps of Euler's in float64.
    v, x, dt = np.zeros(2), np.zeros(2), 0.2 / 2000
    for push in np.repeat(pushes, 2000, axis=0):
        x, v = x + v * dt, v + dt * (3.0 * push - drag * v)
    np.testing.assert_allclose(coarse.position[-1], x, rtol=2e-3, atol=1e-3)
    np.testing.assert_allclose(coarse.motion.velocity[-1], v, rtol=2e-3, atol=1e-3)


def test_the_speed_limit_holds_in_space_and_of_the_way_too(local):
    motion = Velocity(3)
    params = numbers(local, motion, 0.5, dimensions=3, acceleration=9.0, drag=0.1, max_speed=2.0)
    walked = run(motion, params, np.ones((6, 3)), place=np.zeros(3), arena=OpenBox(3))
    speed = np.linalg.norm(walked.motion.velocity, axis=-1)
    assert (speed <= 2.00001).all()
    np.testing.assert_allclose(speed[-1], 2.0, rtol=1e-6)
    np.testing.assert_allclose(
        np.diff(walked.position, axis=0)[-1], np.full(3, 1 / np.sqrt(3)), rtol=1e-5
    )
    np.testing.assert_allclose(walked.heading, 45.0, rtol=1e-6)
    assert motion.space(params).shape == (3,)


def test_a_wall_takes_the_momentum_towards_it(local):
    motion = Velocity(2)
    params = numbers(local, motion, 0.5, box=1.0, drag=0.0, acceleration=1.0, max_speed=9.0)
    walked = run(motion, params, [[1.0, 0.2]] * 3 + [[0.0, 0.0]] * 3)
    np.testing.assert_allclose(walked.position[2:, 0], 1.0, rtol=1e-6)
    np.testing.assert_allclose(walked.motion.velocity[2:, 0], 0.0)
    np.testing.assert_allclose(walked.motion.velocity[2:, 1], 0.3, rtol=1e-6)
    np.testing.assert_allclose(walked.heading[2:], 90.0)


def test_a_path_has_a_gradient_at_rest_and_without_drag(local):
    motion = Velocity(2)
    params = numbers(local, motion, 0.5)

    @jax.jit
    def far(push, drag):
        own = params.replace(motion=params.motion.replace(drag=drag))
        agent = begin(motion, own)
        for _ in range(2):
            agent = motion.move(KEY, agent, push, None, BOX, own)
        return jnp.sum(agent.position) + agent.heading

    for push in (np.zeros(2, np.float32), np.float32([0.3, 0.2])):
        slopes = jax.grad(far, argnums=(0, 1))(push, np.float32(0.0))
        assert all(np.isfinite(slope).all() for slope in jax.tree.leaves(slopes))


def test_a_unicycle_goes_forward_or_turns_on_the_spot(local):
    motion = Unicycle()
    params = numbers(local, motion, 0.5, speed=3.0, turn=40.0)
    motion.validate(params)
    walked = run(motion, params, [1, 0, 2, 2, 0], heading=350.0)
    np.testing.assert_allclose(walked.heading, [30, 30, 350, 310, 310], rtol=1e-6)
    east, south = np.deg2rad([30.0, 310.0])
    first = 1.5 * np.asarray([np.cos(east), np.sin(east)])
    last = first + 1.5 * np.asarray([np.cos(south), np.sin(south)])
    np.testing.assert_allclose(
        walked.position, [[0, 0], first, first, first, last], rtol=1e-5, atol=1e-6
    )


def test_the_masks(local):
    motion = Unicycle()
    params = numbers(local, motion, 0.5, box=1.0)
    for heading, free in ((0.0, False), (180.0, True)):
        here = begin(motion, params, (0.6, 0.0), heading)
        np.testing.assert_array_equal(motion.mask(here, BOX, params), [free, True, True])
    for motion in (TurnAndSpeed(), Velocity(2)):
        mask = motion.mask(here, BOX, numbers(local, motion, 0.5))
        assert mask.shape == (1,)
        assert mask.all()


def test_lanes_move_as_one_alone_would(local):
    motion = TurnAndSpeed(at_wall="slide")
    params = numbers(local, motion, 0.04, box=0.1)
    rng = np.random.default_rng(5)
    places = rng.uniform(-0.1, 0.1, (12, 2)).astype(np.float32)
    headings = rng.uniform(0, 360, 12).astype(np.float32)
    actions = rng.uniform(0, 1, (12, 2)).astype(np.float32)
    air = Air(jnp.zeros(1), jnp.asarray([[0.5, 0.0]], jnp.float32))

    def one(place, heading, action):
        agent = motion.begin(Agent(place, heading), params)
        return motion.move(KEY, agent, action, air, BOX, params)

    alone = jax.jit(one)
    together = jax.jit(jax.vmap(one))(places, headings, actions)
    assert together.motion.touched.any()
    for i, lane in enumerate(zip(places, headings, actions, strict=True)):
        for got, want in zip(jax.tree.leaves(together), jax.tree.leaves(alone(*lane)), strict=True):
            np.testing.assert_allclose(got[i], want, rtol=1e-5, atol=1e-7)


def test_angles_stay_in_the_circle():
    angles = jnp.asarray([-1e-6, 360.0, 725.0, -0.5, 359.99998, 0.0], jnp.float32)
    turned = np.asarray(in_circle(angles))
    np.testing.assert_allclose(turned, [0, 0, 5, 359.5, 359.99998, 0], atol=1e-4)
    assert ((turned >= 0) & (turned < 360)).all()


def test_a_limited_vector_keeps_its_direction():
    np.testing.assert_allclose(limited(jnp.asarray([3.0, 4.0]), 2.5), [1.5, 2.0], rtol=1e-6)
    np.testing.assert_array_equal(limited(jnp.asarray([0.3, 0.4]), 2.5), np.float32([0.3, 0.4]))


@pytest.mark.parametrize(
    ("motion", "change", "message"),
    [
        (TurnAndSpeed(), {"turn_range": 0.0}, r"motion.turn_range.*> 0"),
        (TurnAndSpeed(), {"max_speed": np.nan}, "motion.max_speed"),
        (TurnAndSpeed(), {"drift": 1.5}, r"motion.drift.*\[0, 1\]"),
        (Velocity(2), {"drag": -1.0}, r"motion.drag.*>= 0"),
        (Velocity(2), {"acceleration": np.inf}, "motion.acceleration"),
        (Velocity(4), {}, "motion.dimensions"),
        (Unicycle(), {"turn": 200.0}, "motion.turn"),
        (Unicycle(), {"speed": -1.0}, "motion.speed"),
        (Unicycle(at_wall="bounce"), {}, "motion.at_wall"),
    ],
)
def test_numbers_that_cannot_be_are_refused(local, motion, change, message):
    with pytest.raises(ValidationError, match=message):
        motion.validate(numbers(local, motion, 1.0, **change))


def test_a_sweep_is_validated_whole(local):
    params = numbers(local, Velocity(2), 1.0)
    sweep = params.replace(motion=params.motion.replace(drag=np.float32([0.0, 1.0, 2.0])))
    Velocity(2).validate(sweep)
    with pytest.raises(ValidationError, match=r"motion.drag"):
        Velocity(2).validate(
            params.replace(motion=params.motion.replace(drag=np.float32([0.0, -1.0])))
        )
