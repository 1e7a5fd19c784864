"""tests/search/test_sensors: what an agent smells, knows of itself, and is told."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plumejax
from plumejax.base.errors import ValidationError
from plumejax.plumes.gaussian import GaussianPlume, WindGaussianPlume
from plumejax.search.antennae import Antennae, Gradient, OdourMotion, bilateral
from plumejax.search.composed import Named, Stack
from plumejax.search.headings import ahead_and_left
from plumejax.search.sensors import (
    Heading,
    LastAction,
    LastControl,
    LocalConcentration,
    LocalPatch,
    LogConcentration,
    Position,
    SourceVector,
    StepsLeft,
)
from plumejax.search.state import Agent, Scene
from plumejax.search.wind_sensors import AmbientWind, ApparentWind

PLUME = GaussianPlume((16, 12))
SOURCE = (8.0, 6.0)


@pytest.fixture(scope="module")
def look(local):
    """`look(sensor, place, heading, ...)`: what it observes, its state and the params."""

    def look(
        sensor,
        place,
        heading=0.0,
        *,
        action=None,
        came=None,
        state=None,
        air=None,
        sources=(SOURCE,),
        step_count=0,
        dt=1.0,
        **more,
    ):
        own = sensor.default_params()
        own = own.replace(**more) if more else own
        params = local[1].replace(sensor=own, dt=np.float32(dt))
        agent = _agent(place, heading)
        probes = sensor.probes(agent, params)
        air = air or PLUME.sample(jnp.asarray(SOURCE), probes, params.plume)
        state = sensor.start(params) if state is None else state
        scene = Scene(
            agent=agent,
            previous=agent if came is None else _agent(came, heading),
            action=action,
            air=air,
            plume_state=(),
            sensor=state,
            previous_sensor=state,
            sources=jnp.asarray(sources, jnp.float32),
            found=jnp.asarray(False),
            failed=jnp.asarray(False),
            step_count=jnp.int32(step_count),
        )
        seen, state = sensor.observe(jax.random.key(0), state, scene, params)
        assert sensor.space(params).contains(seen)
        if hasattr(sensor, "validate"):
            sensor.validate(params)
        return jax.tree.map(np.asarray, seen), state

    def _agent(place, heading):
        return Agent(jnp.asarray(place, jnp.float32), jnp.float32(heading))

    return look


def smelt(*places):
    sigma = 3.0  # of the shared task
    square = np.sum((np.asarray(places, float) - SOURCE) ** 2, axis=-1)
    return np.exp(-square / (2 * sigma**2))


def test_log_concentration(look):
    seen, _ = look(LogConcentration(), (5, 6), floor=np.float32(0.01))
    expected = np.log1p(smelt((5, 6)) / 0.01) / np.log1p(1 / 0.01)
    np.testing.assert_allclose(seen, expected, rtol=1e-5)
    assert look(LogConcentration(), SOURCE)[0] == pytest.approx(1)


def test_a_patch_is_the_field_about_the_agent_with_y_upwards(look):
    seen, _ = look(LocalPatch(3), (5, 6), spacing=np.float32(2))
    places = [[(x, y) for x in (3, 5, 7)] for y in (4, 6, 8)]
    np.testing.assert_allclose(seen, smelt(*np.asarray(places)), rtol=1e-5)


def test_antennae_turn_with_the_heading(look):
    tips = {0: ((6, 7), (6, 5)), 90: ((4, 7), (6, 7)), 180: ((4, 5), (4, 7))}
    for heading, places in tips.items():
        seen, _ = look(bilateral(45.0), (5, 6), heading, reach=np.sqrt(2, dtype=np.float32))
        np.testing.assert_allclose(seen, smelt(*places), rtol=1e-5)
    three, _ = look(Antennae((90.0, 0.0, -90.0)), (5, 6), 0)
    np.testing.assert_allclose(three, smelt((5, 7), (6, 6), (5, 5)), rtol=1e-5)


def test_a_source_to_the_left_gives_a_positive_gradient(look):
    for heading, sign in ((270, 1), (90, -1)):
        seen, _ = look(Gradient(), (5, 6), heading)
        assert np.sign(seen[0]) == sign
    np.testing.assert_allclose(look(Gradient(), (5, 6), 0)[0], 0, atol=1e-6)


def test_odour_motion_is_that_of_hassenstein_and_reichardt(look):
    sensor = OdourMotion((90.0, -90.0))
    first, state = look(sensor, (5, 7), 0)
    assert first == 0
    then, _ = look(sensor, (6, 8), 0, action=jnp.int32(0), state=state)
    (l0, r0), (l1, r1) = smelt((5, 8), (5, 6)), smelt((6, 9), (6, 7))
    np.testing.assert_allclose(then, [l0 * r1 - r0 * l1], rtol=1e-4)
    # Odour that passes from left to right.
    params_seen = [(1.0, 0.0), (0.0, 1.0)]
    _, state = look(sensor, (5, 7), air=_air(params_seen[0]))
    moved, _ = look(sensor, (5, 7), action=jnp.int32(0), state=state, air=_air(params_seen[1]))
    assert moved == 1


def _air(concentration, wind=(0.0, 0.0)):
    air = PLUME.sample(jnp.asarray(SOURCE), jnp.zeros((len(concentration), 2)), _numbers())
    wind = jnp.broadcast_to(jnp.asarray(wind, jnp.float32), air.wind.shape)
    return air.replace(concentration=jnp.asarray(concentration, jnp.float32), wind=wind)


def _numbers():
    return PLUME.default_params()


def test_where_and_whither(look):
    np.testing.assert_array_equal(look(Position(), (3, 4))[0], [3, 4])
    high = np.asarray([2.0, 9.0], np.float32)
    np.testing.assert_array_equal(look(Position(), (3, 4), high=high)[0], [2, 4])
    np.testing.assert_allclose(look(Heading(), (3, 4), 90)[0], [0, 1], atol=1e-6)


def test_the_last_action_is_one_hot_and_none_at_reset(look):
    np.testing.assert_array_equal(look(LastAction(4), (3, 4))[0], np.zeros(4))
    seen, _ = look(LastAction(4), (3, 4), action=jnp.int32(2))
    np.testing.assert_array_equal(seen, [0, 0, 1, 0])


def test_the_last_control_is_the_action_itself_and_none_at_reset(look):
    np.testing.assert_array_equal(look(LastControl(2), (3, 4))[0], [0, 0])
    chosen = jnp.asarray([0.25, -0.5], jnp.float32)
    np.testing.assert_array_equal(look(LastControl(2), (3, 4), action=chosen)[0], chosen)
    seen, _ = look(LastControl(2), (3, 4), action=chosen, limit=np.float32(0.3))
    np.testing.assert_array_equal(seen, np.float32([0.25, -0.3]))


def test_the_steps_that_are_left_go_from_one_to_none(look):
    for count, left in ((0, 1.0), (10, 0.75), (40, 0.0)):  # of 40 in the shared task
        np.testing.assert_allclose(look(StepsLeft(), (3, 4), step_count=count)[0], [left])


def test_what_has_a_height_is_seen_along_the_ground_or_whole(look):
    sources, here, up = ((8, 6, 1), (5, 4, 9)), (5, 4, 2), {"air": _air([0.0])}
    at = {"sources": sources, **up}
    np.testing.assert_array_equal(look(Position(2), here, **at)[0], [5, 4])
    np.testing.assert_array_equal(look(Position(3), here, **at)[0], [5, 4, 2])
    # Along the ground the second source is the nearer one, in space the first.
    np.testing.assert_array_equal(look(SourceVector(2), here, **at)[0], [0, 0])
    np.testing.assert_array_equal(look(SourceVector(3), here, **at)[0], [3, 2, -1])
    ego = SourceVector(3, egocentric=True)
    np.testing.assert_allclose(look(ego, here, 90, **at)[0], [2, -3, -1], atol=1e-5)
    np.testing.assert_array_equal(look(SourceVector(2), here, **up)[0], [3, 2])


def test_antennae_and_patches_are_level(local):
    agent = Agent(jnp.asarray([5.0, 6.0, 2.0]), jnp.float32(90.0))
    for sensor in (bilateral(), LocalPatch(3)):
        params = local[1].replace(sensor=sensor.default_params())
        np.testing.assert_array_equal(sensor.probes(agent, params)[:, 2], 2)
    tips = bilateral(90.0).probes(agent, local[1].replace(sensor=bilateral().default_params()))
    np.testing.assert_allclose(tips, [[4, 6, 2], [6, 6, 2]], atol=1e-5)


def test_wind_with_a_height_is_felt_along_the_ground_or_whole(look):
    air = _air([0.0]).replace(wind=jnp.asarray([[2.0, 1.0, 0.5]]))
    here = {"air": air, "action": jnp.int32(0), "came": (4, 4, 0)}
    for dimensions, felt in ((2, [1, -1]), (3, [1, -1, -0.5])):
        sensor = ApparentWind(dimensions)
        numbers = {"state": jnp.zeros(dimensions, jnp.float32)}
        # Moved by (1, 0, 1); heading +y.
        seen, _ = look(sensor, (5, 4, 1), 90, **here, **numbers)
        np.testing.assert_allclose(seen, felt, atol=1e-6)


def test_the_way_to_the_source_in_both_frames(look):
    np.testing.assert_allclose(look(SourceVector(), (5, 4))[0], [3, 2])
    np.testing.assert_allclose(
        look(SourceVector(egocentric=True), (5, 4), 90)[0], [2, -3], atol=1e-5
    )
    near, _ = look(SourceVector(), (5, 4), reach=np.float32(2.5))
    np.testing.assert_allclose(near, [2.5, 2])
    up = ahead_and_left(jnp.asarray([1.0, 0.0, 4.0]), jnp.float32(180.0))
    np.testing.assert_allclose(up, [-1, 0, 4], atol=1e-6)


def test_wind_in_the_world_and_along_the_heading(look):
    air = _air([0.0], (2.0, 1.0))
    np.testing.assert_allclose(look(AmbientWind(egocentric=False), (5, 4), 90, air=air)[0], [2, 1])
    # It comes from behind on the right.
    np.testing.assert_allclose(look(AmbientWind(), (5, 4), 90, air=air)[0], [1, -2], atol=1e-6)
    noisy, _ = look(AmbientWind(noisy=True), (5, 4), 90, air=air, spread=np.float32(0.5))
    assert np.all(noisy != [1, -2])


def test_who_drifts_with_the_wind_feels_none(look):
    sensor, air = ApparentWind(egocentric=False), _air([0.0], (2.0, 1.0))
    seen, _ = look(sensor, (5, 4), came=(3, 3), action=jnp.int32(0), air=air)
    np.testing.assert_allclose(seen, [0, 0], atol=1e-6)
    # Who stands feels the wind, who runs faster than it a head wind.
    np.testing.assert_allclose(look(sensor, (5, 4), air=air)[0], [2, 1])
    seen, _ = look(sensor, (9, 4), came=(3, 4), action=jnp.int32(0), air=air)
    np.testing.assert_allclose(seen, [-4, 1], atol=1e-6)


def test_apparent_wind_is_in_lengths_a_second(look):
    # A length in half a second, against a wind of two lengths a second.
    sensor, air = ApparentWind(egocentric=False), _air([0.0], (2.0, 0.0))
    seen, _ = look(sensor, (5, 4), came=(6, 4), action=jnp.int32(0), air=air, dt=0.5)
    np.testing.assert_allclose(seen, [4, 0], atol=1e-6)


def test_the_wind_filter_forgets_exponentially(look):
    sensor, tau = AmbientWind(egocentric=False), np.float32(2.0)
    _, state = look(sensor, (5, 4), air=_air([0.0], (2.0, 1.0)), tau=tau)
    for steps in (1, 2):
        now = _air([0.0], (0.0, 0.0))
        seen, state = look(sensor, (5, 4), action=jnp.int32(0), state=state, air=now, tau=tau)
        np.testing.assert_allclose(seen, np.exp(-steps / 2) * np.asarray([2, 1]), rtol=1e-5)


PARTS = (
    ("nose", LocalConcentration()),
    ("patch", LocalPatch(3)),
    ("wind", AmbientWind(noisy=True)),
    ("place", Position()),
    ("tips", OdourMotion()),
)


def test_a_stack_is_its_parts_end_to_end(look):
    whole, state = look(Stack(PARTS), (5, 6), 30)
    named, _ = look(Named(PARTS), (5, 6), 30)
    np.testing.assert_array_equal(whole, np.concatenate([named[n].ravel() for n, _ in PARTS]))
    for name, sensor in PARTS:
        np.testing.assert_allclose(named[name], look(sensor, (5, 6), 30)[0], atol=1e-6)
    assert whole.shape == (1 + 9 + 2 + 2 + 1,)
    assert state["tips"].shape == (2,)


@pytest.mark.parametrize(
    ("sensor", "path", "value"),
    [
        (LogConcentration(), "sensor.floor", 0.0),
        (LocalPatch(), "sensor.spacing", -1.0),
        (Antennae(), "sensor.reach", 0.0),
        (SourceVector(), "sensor.reach", -1.0),
        (AmbientWind(), "sensor.tau", -1.0),
        (ApparentWind(), "sensor.limit", 0.0),
        (LastControl(2), "sensor.limit", 0.0),
        (Stack(PARTS), "sensor.patch.spacing", 0.0),
    ],
)
def test_bad_numbers_are_refused(sensor, path, value):
    with pytest.raises(ValidationError, match=rf"{path} = "):
        plumejax.make(
            "PlumeSearchLocal-v0", grid_size=(16, 12), sensor=sensor, overrides={path: value}
        )


def test_bad_choices_are_refused():
    for bad in (
        lambda: LocalPatch(4),
        lambda: Antennae(()),
        lambda: Gradient((1.0,)),
        lambda: ApparentWind(own="mine"),
        lambda: AmbientWind(1),
        lambda: ApparentWind(1),
        lambda: SourceVector(1, egocentric=True),
        lambda: Named(()),
        lambda: Named((("a", Heading()), ("a", Heading()))),
    ):
        with pytest.raises(ValidationError, match="is not allowed"):
            bad()
    env, params = plumejax.make("PlumeSearchLocal-v0", grid_size=(16, 12))
    nested = Stack((("inner", Named((("a", Heading()),))),))
    with pytest.raises(ValidationError, match="parts: inner"):
        nested.validate(params.replace(sensor=nested.default_params()))
    assert env.num_actions == 4


def test_a_search_with_a_stack_runs_and_smells_in_wind():
    plume = WindGaussianPlume()
    sensor = Stack((("nose", LocalConcentration()), ("wind", ApparentWind()), ("head", Heading())))
    env, params = plumejax.make(
        "PlumeSearchLocal-v0", grid_size=(16, 12), plume=plume, sensor=sensor
    )
    keys = jax.random.split(jax.random.key(0), 4)
    _, state = jax.vmap(env.reset, in_axes=(0, None))(keys, params)
    actions = jnp.asarray([0, 1, 2, 3], jnp.int32)
    seen, *_ = jax.vmap(env.step, in_axes=(0, 0, 0, None))(keys, state, actions, params)
    assert seen.shape == (4, 5)
    speed = params.plume.velocity[0]
    # Heading +x; a step up, right, down, left at a length a second in a wind of `speed`.
    expected = np.asarray([[speed, -1], [speed - 1, 0], [speed, 1], [speed + 1, 0]])
    inside = (np.asarray(state.agent.position) > 0).all(1)
    inside &= (np.asarray(state.agent.position) < [15, 11]).all(1)
    np.testing.assert_allclose(np.asarray(seen)[inside, 1:3], expected[inside], atol=1e-5)
    assert inside.any()
