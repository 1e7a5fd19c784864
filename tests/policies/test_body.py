"""tests/policies/test_body: what a policy feels and wants, in every frame and motion."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plumejax
from plumejax.base.errors import ValidationError
from plumejax.plumes.interface import Air
from plumejax.policies import animals, cast_and_surge, chemotaxis, recoveries, whiff_flies
from plumejax.policies.body import turn_upwind, wrapped
from plumejax.policies.fitting import body
from plumejax.policies.reader import reader
from plumejax.search.antennae import bilateral
from plumejax.search.bouts import Declare, Saccades
from plumejax.search.composed import Named, Stack
from plumejax.search.filters import OnOff
from plumejax.search.headings import ahead_and_left, direction
from plumejax.search.hits import GaussianNoise, Threshold
from plumejax.search.motion import NINE, AxisMoves, Moves, Oriented, RunAndTumble, WindRelative
from plumejax.search.sensors import Heading, LocalConcentration, Position
from plumejax.search.state import Agent, Scene
from plumejax.search.walking import Travel, TurnAndSpeed, Unicycle
from plumejax.search.whiffs import TimeSinceWhiff
from plumejax.search.wind_sensors import AmbientWind, ApparentWind

WIND = np.asarray([3.0, -4.0], np.float32)
HEADING = np.float32(40.0)
NOSE = ("odour", LocalConcentration())


def task(sensor, motion=None):
    parts = {} if motion is None else {"motion": motion}
    return plumejax.make("Fly-GaussianWind-v0", sensor=sensor, **parts)


def observed(env, params, speed=2.0):
    """What an agent with a heading of 40 degrees observes in wind that moves ahead by itself."""
    velocity = speed * direction(HEADING)
    here = jnp.asarray([5.0, 5.0], jnp.float32)
    agent = Agent(here, HEADING, Travel(velocity, jnp.asarray(False)))
    before = agent.replace(position=here - velocity * params.dt)
    probes = env.sensor.probes(agent, params)
    air = Air(jnp.full(len(probes), 0.25), jnp.broadcast_to(jnp.asarray(WIND), (len(probes), 2)))
    start = env.sensor.start(params)
    no = jnp.asarray(False)
    scene = Scene(
        agent, before, jnp.zeros(2), air, None, start, start, here[None], no, no, jnp.int32(1)
    )
    return env.sensor.observe(jax.random.key(0), start, scene, params)[0]


@pytest.mark.parametrize(
    "sensor",
    [
        Stack((NOSE, ("wind", AmbientWind()))),
        Stack(
            (("place", Position()), ("wind", AmbientWind(egocentric=False)), NOSE, ("h", Heading()))
        ),
        Named((("all", Stack((("h", Heading()), NOSE))), ("wind", AmbientWind(egocentric=False)))),
        Stack((NOSE, ("wind", ApparentWind(own="air")))),
        Stack((NOSE, ("wind", ApparentWind(own="ground", egocentric=False)), ("h", Heading()))),
    ],
    ids=["ahead", "with a compass", "named", "apparent in air", "apparent over ground"],
)
def test_odour_and_wind_are_the_same_however_they_are_told(sensor):
    env, params = task(sensor)
    of = body(env, params, wind=True)
    posture = of.begin(jax.random.key(0)).replace(speed=jnp.float32(2.0))
    observation = observed(env, params)
    assert float(of.odour(observation)) == 0.25
    want = ahead_and_left(jnp.asarray(WIND), HEADING)
    np.testing.assert_allclose(of.wind(posture, observation), want, atol=2e-5)


def test_on_fixed_directions_the_frame_is_that_of_a_heading_in_mind():
    env, params = task(Stack((NOSE, ("wind", AmbientWind()), ("h", Heading()))), Moves())
    of = body(env, params, wind=True)
    posture = of.begin(jax.random.key(0)).replace(heading=jnp.float32(100.0))
    want = ahead_and_left(jnp.asarray(WIND), jnp.float32(100.0))
    np.testing.assert_allclose(of.wind(posture, observed(env, params)), want, atol=1e-5)


def test_a_told_wind_is_read_where_none_is_felt():
    env, params = task(LocalConcentration(), WindRelative())
    of = body(env, params, wind=True, downwind=30.0)
    posture = of.begin(jax.random.key(0)).replace(heading=jnp.float32(0.0))
    np.testing.assert_allclose(of.wind(posture, jnp.zeros(1)), [-1.0, 0.0], atol=1e-6)
    env, params = task(Stack((NOSE, ("h", Heading()))))
    of = body(env, params, wind=True, downwind=70.0)
    felt = of.wind(of.begin(jax.random.key(0)), observed(env, params))
    np.testing.assert_allclose(felt, direction(jnp.float32(30.0)), atol=1e-5)


@pytest.mark.parametrize(
    ("sensor", "reading", "odour"),
    [
        (GaussianNoise(Threshold(LocalConcentration())), [0.7], 0.7),
        (TimeSinceWhiff(LocalConcentration()), [0.0], 1.0),
        (TimeSinceWhiff(LocalConcentration()), [0.3], 0.0),
        (
            Stack((("on_off", OnOff(LocalConcentration())), ("nose", bilateral()))),
            [9, 9, 1, 3],
            2.0,
        ),
    ],
)
def test_the_nose_is_found_within_what_wraps_it(sensor, reading, odour):
    env, params = task(sensor)
    assert float(reader(env, params).odour(jnp.asarray(reading, jnp.float32))) == np.float32(odour)


def test_the_way_upwind_over_ground_makes_up_for_drift():
    for angle in (0.0, 50.0, -90.0):
        wind = jnp.asarray([0.6, 0.3], jnp.float32)
        turn = float(turn_upwind(wind, angle, 0.5, 2.0))
        over_ground = 2.0 * np.asarray(direction(jnp.float32(turn))) + 0.5 * np.asarray(wind)
        way = np.rad2deg(np.arctan2(over_ground[1], over_ground[0]))
        upwind = np.rad2deg(np.arctan2(-0.3, -0.6))
        assert abs(float(wrapped(way - upwind - angle))) < 1e-3
    assert float(turn_upwind(jnp.zeros(2), 70.0)) == 0.0


@pytest.mark.parametrize(
    ("motion", "longest"), [(Moves(), 0.75), (Moves(NINE), 0.75), (AxisMoves(), 0.75)]
)
def test_fixed_directions_keep_to_a_line_at_any_angle(motion, longest):
    env, params = task(LocalConcentration(), motion)
    of = body(env, params)
    ways = np.asarray(motion.directions if isinstance(motion, Moves) else of.directions)
    go = jax.jit(of.go)
    for heading in (0.0, 20.0, 45.0, 117.0, 290.0):
        posture = of.begin(jax.random.key(0)).replace(heading=jnp.float32(0.0))
        place = np.zeros(2)
        turn = heading
        for _ in range(40):
            action, posture = go(posture, jnp.float32(turn), jnp.float32(1.0))
            place, turn = place + ways[int(action)], 0.0
            ahead, left = np.asarray(
                ahead_and_left(jnp.asarray(place, jnp.float32), jnp.float32(heading))
            )
            assert abs(left) < longest
        assert ahead > 25


@pytest.mark.parametrize(
    ("motion", "wants"),
    [
        (Saccades(), [((40.0, 1.0), 1), ((-16.0, 1.0), 2), ((10.0, 1.0), 0), ((40.0, 0.0), 3)]),
        (Unicycle(), [((40.0, 1.0), 1), ((-16.0, 1.0), 2), ((10.0, 1.0), 0)]),
        (Declare(Oriented()), [((40.0, 1.0), 0), ((-46.0, 1.0), 2), ((190.0, 1.0), 2)]),
        (RunAndTumble(), [((-40.0, 1.0), 1), ((5.0, 1.0), 0)]),
        (Moves(NINE), [((0.0, 0.0), 8), ((90.0, 1.0), 0), ((-45.0, 1.0), 3)]),
    ],
)
def test_what_is_wanted_is_the_nearest_action(motion, wants):
    env, params = task(LocalConcentration(), motion)
    of = body(env, params)
    posture = of.begin(jax.random.key(0)).replace(heading=jnp.float32(0.0))
    for (turn, speed), action in wants:
        assert int(of.go(posture, turn, speed)[0]) == action


def test_a_turn_that_takes_longer_is_owed():
    env, params = task(LocalConcentration(), TurnAndSpeed(feels_air=False))
    params = params.replace(dt=np.float32(0.1))  # of 180 degrees a second
    of = body(env, params)
    action, posture = of.go(of.begin(jax.random.key(0)), 50.0, of.fastest)
    np.testing.assert_allclose(action, [1.0, 1.0])
    assert float(posture.owed) == pytest.approx(41.0)


@pytest.mark.parametrize(
    ("make", "sensor", "motion", "names"),
    [
        (chemotaxis.e_coli, Position(), None, "env.sensor.*LocalConcentration"),
        (chemotaxis.braitenberg, LocalConcentration(), None, "env.sensor.*Antennae"),
        (chemotaxis.braitenberg, bilateral(), Moves(), "env.motion.*TurnAndSpeed"),
        (cast_and_surge.cast_and_surge, LocalConcentration(), None, "env.sensor.*AmbientWind"),
        (recoveries.circling, Stack((NOSE, ("w", AmbientWind()))), RunAndTumble(), "env.motion"),
        (recoveries.circling, Stack((NOSE, ("w", AmbientWind()))), Moves(), "env.sensor.*Heading"),
        (animals.alvarez_salvado, Stack((NOSE, ("w", AmbientWind()))), Saccades(), "env.motion"),
        (whiff_flies.demir, Stack((NOSE, ("w", AmbientWind()))), None, "fastest"),
    ],
)
def test_a_policy_refuses_a_task_that_does_not_fit(make, sensor, motion, names):
    env, params = task(sensor, motion)
    with pytest.raises(ValidationError, match=names):
        make(env, params)


def test_the_fastest_turn_right_is_an_action_too():
    """Rounded, half a range to the right came to -1e-8."""
    env, params = plumejax.make("PlumeTracking-Code-Constant-v0")
    walker = body(env, params)
    posture = walker.begin(jax.random.key(0))
    turns = jnp.linspace(-180.0, 180.0, 997)
    actions, _ = jax.vmap(lambda turn: walker.go(posture, turn, walker.fastest))(turns)
    assert jnp.all(jax.vmap(env.action_space(params).contains)(actions))
