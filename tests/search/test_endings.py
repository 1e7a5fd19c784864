"""tests/search/test_endings: what ends a search, and as what."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plumejax
from plumejax.base.errors import ComponentError, ValidationError
from plumejax.plumes import particles
from plumejax.plumes.bank import Bank, make_bank
from plumejax.plumes.filaments import TrackingPlume
from plumejax.plumes.gaussian import GaussianPlume
from plumejax.plumes.puffs import PuffState
from plumejax.search.bouts import Declare
from plumejax.search.endings import (
    AnyOf,
    AtWall,
    Declared,
    GoalDisc,
    LeftPlume,
    Never,
    goal_radius,
)
from plumejax.search.motion import Moves
from plumejax.search.state import Agent, Scene
from plumejax.search.walls import Touch

GRID = (16, 12)
PUFFS = TrackingPlume(capacity=8)


def scene(position, source=(0.0, 0.0), motion=(), plume_state=()):
    agent = Agent(jnp.asarray(position, jnp.float32), jnp.float32(0.0), motion)
    return Scene(
        agent=agent,
        previous=agent,
        action=None,
        air=None,
        plume_state=plume_state,
        sensor=(),
        previous_sensor=(),
        sources=jnp.asarray(source, jnp.float32)[None],
        found=jnp.asarray(False),
        failed=jnp.asarray(False),
        step_count=jnp.int32(1),
        plume=PUFFS,
    )


def puffs(*places):
    """The state of a plume of 8 slots with living puffs at these places, and dead ones at 0."""
    pool = particles.empty(8, 2)
    position = pool.position.at[:, : len(places)].set(jnp.asarray(places, jnp.float32).T)
    alive = jnp.arange(8) < len(places)
    return PuffState(pool.replace(position=position, alive=alive), (), jnp.zeros(2, jnp.float32))


def ended(ending, scene, params):
    found, failed = ending.ended(scene, params)
    assert found.dtype == failed.dtype == bool
    assert found.shape == failed.shape == ()
    return bool(found), bool(failed)


@pytest.fixture(scope="module")
def numbers(local):
    """`numbers(ending, **values)`: params for an ending on a plume of puffs."""

    def numbers(ending, plume=PUFFS, **values):
        own = ending.default_params()
        if values:
            own = own.replace(**{name: np.float32(x) for name, x in values.items()})
        return local[1].replace(ending=own, plume=plume.default_params())

    return numbers


def test_never_ends_nothing(numbers):
    assert ended(Never(), scene((0, 0)), numbers(Never())) == (False, False)


@pytest.mark.parametrize("touched", [False, True])
def test_a_touched_wall_fails(numbers, touched):
    at = scene((3, 4), motion=Touch(jnp.asarray(touched)))
    assert ended(AtWall(), at, numbers(AtWall())) == (False, touched)


def test_a_walk_into_the_wall_fails_and_one_into_the_disc_finds():
    ending = AnyOf((("wall", AtWall()), ("goal", GoalDisc())))
    env, params = plumejax.make(
        "PlumeSearchLocal-v0",
        grid_size=GRID,
        motion=Moves(at_wall="end"),
        ending=ending,
        overrides={"ending.goal.radius": 2.0},
    )
    _, start = env.reset(jax.random.key(0), params)

    def step(x, y, action):
        state = start.replace(agent=start.agent.replace(position=jnp.asarray([x, y], jnp.float32)))
        _, state, reward, terminated, *_ = env.step(jax.random.key(0), state, action, params)
        return bool(state.found), bool(state.failed), float(reward), bool(terminated)

    assert step(0, 6, 3) == (False, True, 0.0, True)
    assert step(5, 6, 1) == (True, False, 1.0, True)
    assert step(0, 6, 1) == (False, False, 0.0, False)


@pytest.mark.parametrize(
    ("x", "declares", "expected"),
    [(3, True, (True, False)), (2, True, (False, True)), (3, False, (False, False))],
)
def test_a_declaration_is_right_within_the_radius(x, declares, expected):
    """The source is at x = 8 and the radius 5, the boundary included."""
    motion = Declare(Moves())
    env, params = plumejax.make(
        "PlumeSearchLocal-v0", grid_size=GRID, motion=motion, ending=Declared()
    )
    _, state = env.reset(jax.random.key(0), params)
    before = state.agent.replace(position=jnp.asarray([x, 6], jnp.float32))
    stay_up = before.replace(motion=before.motion.replace(declared=jnp.asarray(declares)))
    at = scene((x, 6), (8, 6)).replace(agent=stay_up)
    assert ended(Declared(), at, params) == expected


def test_an_agent_has_left_the_plume_beyond_the_limit_from_every_puff(numbers):
    params = numbers(LeftPlume(), radius=0.25, limit=2.0)
    plume = puffs((4.0, 1.0), (6.0, 1.0))
    # 1.5 m beside one, 2 m beyond the other exactly, a little farther, and at a dead slot.
    for place, failed in (((4, 2.5), 0), ((8, 1), 0), ((8.001, 1), 1), ((0, 0.5), 1)):
        at = scene(place, (0, -9), plume_state=plume)
        assert ended(LeftPlume(), at, params) == (False, bool(failed))


def test_who_is_at_the_source_is_found_however_far_the_puffs_are(numbers):
    params = numbers(LeftPlume(), radius=0.25, limit=2.0)
    far = puffs((5.0, 0.0))
    assert ended(LeftPlume(), scene((0.25, 0), plume_state=far), params) == (True, False)
    assert ended(LeftPlume(), scene((0.26, 0), plume_state=far), params) == (False, True)


def test_nobody_leaves_a_plume_without_puffs(numbers):
    params = numbers(LeftPlume())
    assert ended(LeftPlume(), scene((9, 9), plume_state=puffs()), params) == (False, False)
    assert PUFFS.nearest(puffs(), jnp.zeros(2, jnp.float32), None) == np.inf


def test_the_distance_to_puffs_in_space_is_that_in_the_coordinates_of_the_agent():
    pool = particles.empty(2, 3)
    pool = pool.replace(position=pool.position.at[:, 0].set(jnp.asarray([3.0, 4.0, 12.0])))
    pool = pool.replace(alive=jnp.asarray([True, False]))
    state = PuffState(pool, (), jnp.zeros(2, jnp.float32))
    assert PUFFS.nearest(state, jnp.zeros(2, jnp.float32), None) == 5.0
    assert PUFFS.nearest(state, jnp.zeros(3, jnp.float32), None) == 13.0


@pytest.fixture(scope="module")
def bank():
    plume = TrackingPlume(capacity=256, substeps=4)
    params = plume.default_params().replace(rate=np.float32(20.0))
    return make_bank(
        plume,
        params.replace(source=np.asarray([0.0, 0.5], np.float32)),
        jax.random.key(3),
        num_plumes=1,
        num_frames=3,
        warmup=40,
        mirrored=True,
        thinned=True,
    )


def test_puffs_of_a_bank_are_where_the_air_of_the_episode_has_them(bank):
    bank, params = bank
    params = params.replace(keep=np.float32(0.5), axis=np.float32(0.7))

    @jax.jit
    def look(key):
        state = bank.start(key, params)
        places = bank.puffs_along(state, jnp.linspace(0.0, 100.0, 64), params)
        at_puffs = bank.sample(state, places, params).concentration
        centre = bank.sources(state, params)[0]
        return state.playing.mirrored, places, at_puffs, bank.nearest(state, centre, params)

    sides = set()
    for number in range(6):
        mirrored, places, concentration, nearest = look(jax.random.key(number))
        assert 2 <= len(np.unique(places, axis=0)) < 40
        assert np.all(np.diff(places[:, 0]) >= 0)
        assert np.all(np.asarray(concentration) > 0)
        source = np.asarray([0.0, 0.9 if mirrored else 0.5])
        expected = np.min(np.hypot(*(np.asarray(places) - source).T))
        np.testing.assert_allclose(nearest, expected, rtol=1e-4, atol=1e-6)
        sides.add(bool(mirrored))
    assert sides == {False, True}


def test_left_plume_asks_for_puffs(bank):
    bank, _ = bank
    plumejax.make("PlumeTracking-Code-Constant-v0", plume=bank)
    gaussians = Bank(GaussianPlume(), 1, 1)
    for plume in (GaussianPlume(), gaussians):
        with pytest.raises(ComponentError, match=r" asks the plume for nearest\(\)"):
            plumejax.make("PlumeTracking-Code-Constant-v0", plume=plume)


@pytest.mark.parametrize(
    ("ending", "name"),
    [(LeftPlume(), "radius"), (LeftPlume(), "limit"), (Declared(), "radius")],
    ids=str,
)
def test_lengths_that_are_not_positive_are_refused(numbers, ending, name):
    with pytest.raises(ValidationError, match=rf"ending.{name} = 0.0 .* must be > 0"):
        ending.validate(numbers(ending, **{name: 0.0}))
    swept = numbers(ending, **{name: 1.0})
    several = swept.ending.replace(**{name: np.asarray([1.0, 2.0], np.float32)})
    ending.validate(swept.replace(ending=several))


def test_parts_are_named_once_and_say_which_refuses(numbers):
    twice = AnyOf((("a", Never()), ("a", Never())))
    for ending in (twice, AnyOf(())):
        with pytest.raises(ValidationError, match="ending: names of the parts"):
            ending.validate(numbers(ending))
    ending = AnyOf((("disc", GoalDisc()), ("wall", AtWall())))
    params = numbers(ending)
    ending.validate(params)
    bad = {**params.ending, "disc": params.ending["disc"].replace(radius=np.float32(-1.0))}
    with pytest.raises(ValidationError, match=r"ending\.disc\.radius = -1.0"):
        ending.validate(params.replace(ending=bad))


def test_found_wins_over_failed(numbers):
    ending = AnyOf((("wall", AtWall()), ("disc", GoalDisc()), ("never", Never())))
    params = numbers(ending)
    touched = Touch(jnp.asarray(True))
    assert ended(ending, scene((4, 0), motion=touched), params) == (True, False)
    assert ended(ending, scene((6, 0), motion=touched), params) == (False, True)


def test_the_goal_radius_is_that_of_any_part():
    ending = AnyOf((("wall", AtWall()), ("disc", GoalDisc()), ("plume", LeftPlume())))
    assert goal_radius(ending.default_params()) == 5.0
    assert goal_radius(Declared().default_params()) == 5.0
    assert goal_radius(AnyOf((("wall", AtWall()),)).default_params()) is None
