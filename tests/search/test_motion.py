"""tests/search/test_motion: what each motion does, by the contract's words."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import plumejax
from plumejax.base.errors import ValidationError
from plumejax.plumes.interface import Air
from plumejax.search.arena import OpenGrid, PeriodicGrid, from_map
from plumejax.search.environment import PlumeSearch
from plumejax.search.motion import (
    NINE,
    AxisMoves,
    Moves,
    Oriented,
    RunAndTumble,
    WindRelative,
    ahead,
)
from plumejax.search.state import Agent

GRID = (16, 12)
ARENA = OpenGrid(GRID)
KEY = jax.random.key(0)


@pytest.fixture(scope="module")
def params(local):
    return local[1]


def agent(x, y, heading=0.0):
    return Agent(jnp.asarray([x, y], jnp.float32), jnp.float32(heading))


def move(motion, at, action, params, key=KEY):
    return motion.move(key, at, jnp.int32(action), None, ARENA, params)


def place(at):
    return tuple(float(x) for x in at.position)


@pytest.mark.parametrize(
    ("action", "place_after"), list(enumerate([(5, 7), (6, 6), (5, 5), (4, 6)]))
)
def test_four_moves_are_up_right_down_left(params, action, place_after):
    assert place(move(Moves(), agent(5, 6), action, params)) == place_after


@pytest.mark.parametrize(
    ("action", "step"),
    list(enumerate([(0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1), (-1, 0), (-1, 1), (0, 0)])),
)
def test_nine_moves_are_clockwise_from_up_then_stay(params, action, step):
    moved = move(Moves(NINE), agent(5, 6), action, params)
    assert place(moved) == (5 + step[0], 6 + step[1])
    assert Moves(NINE).space(params).n == 9


@pytest.mark.parametrize(
    ("at", "action"), [((0, 6), 3), ((15, 6), 1), ((5, 11), 0), ((5, 0), 2)], ids=str
)
def test_a_move_over_the_wall_ends_at_the_wall(params, at, action):
    assert place(move(Moves(), agent(*at), action, params)) == at
    far = params.replace(motion=params.motion.replace(step=np.float32(5.0)))
    inward = agent(at[0] and at[0] - 2, at[1])
    moved = place(move(Moves(), inward, action, far))
    assert 0 <= moved[0] <= 15
    assert 0 <= moved[1] <= 11


def test_a_diagonal_move_slides_along_the_wall(params):
    assert place(move(Moves(NINE), agent(15, 6), 1, params)) == (15, 7)


@pytest.mark.parametrize(
    ("heading", "place_after"), [(0, (6, 6)), (90, (5, 7)), (180, (4, 6)), (270, (5, 5))]
)
def test_forward_follows_the_heading(params, heading, place_after):
    moved = move(Oriented(), agent(5, 6, heading), 0, params)
    assert place(moved) == place_after
    assert moved.heading == heading


@settings(max_examples=30)
@given(turns=st.lists(st.sampled_from([1, 2]), max_size=8))
def test_turns_stay_in_the_circle_and_in_place(local, turns):
    at = agent(5, 6)
    for turn in turns:
        at = move(Oriented(), at, turn, local[1])
        assert 0 <= at.heading < 360
    assert at.heading == 90 * (turns.count(1) - turns.count(2)) % 360
    assert place(at) == (5, 6)


@settings(max_examples=30)
@given(heading=st.floats(0, 359.5, width=32), step=st.integers(1, 5), x=st.integers(0, 1000))
def test_ahead_rounds_the_way_as_float64_does(heading, step, x):
    got = ahead(jnp.asarray([x, 2 * x], jnp.float32), jnp.float32(heading), np.float32(step))
    way = step * math.cos(math.radians(heading)), step * math.sin(math.radians(heading))
    for axis, cells in enumerate(way):
        moved = float(got[axis]) - (axis + 1) * x
        assert moved == int(moved)
        # Half a cell may go either way.
        assert abs(moved - cells) <= 0.5 + 1e-5


def test_a_run_keeps_the_heading_and_a_tumble_draws_one(params):
    run = move(RunAndTumble(), agent(5, 6, 37.5), 0, params)
    assert run.heading == 37.5
    assert place(run) == (6, 7)
    keys = jax.random.split(KEY, 400)
    tumbled = jax.vmap(lambda key: move(RunAndTumble(), agent(5, 6, 37.5), 1, params, key))(keys)
    heading = np.asarray(tumbled.heading)
    assert ((heading >= 0) & (heading < 360)).all()
    # Uniform: the mean resultant of 400 directions exceeds 0.15 with probability e^-9.
    assert abs(np.exp(1j * np.deg2rad(heading)).mean()) < 0.15
    expected = np.asarray([5, 6]) + np.round(
        np.stack([np.cos(np.deg2rad(heading)), np.sin(np.deg2rad(heading))], -1)
    )
    np.testing.assert_array_equal(tumbled.position, expected)


def test_run_takes_the_angle_that_it_is_handed(params):
    moved = RunAndTumble().run(agent(5, 6), jnp.float32(225.0), ARENA, params)
    assert place(moved) == (4, 5)
    assert moved.heading == 225.0


@pytest.mark.parametrize(
    ("motion", "at", "mask"),
    [
        (Moves(), agent(0, 0), [1, 1, 0, 0]),
        (Moves(NINE), agent(15, 11), [0, 0, 0, 0, 1, 1, 1, 0, 1]),
        (Oriented(), agent(15, 3), [0, 1, 1]),
        (Oriented(), agent(15, 3, 90), [1, 1, 1]),
        (RunAndTumble(), agent(0, 3, 180), [0, 1]),
    ],
)
def test_the_mask_bars_what_the_wall_bars(params, motion, at, mask):
    np.testing.assert_array_equal(motion.mask(at, ARENA, params), np.asarray(mask, bool))


@pytest.mark.parametrize("step", [0.0, -1.0, 1.5])
def test_a_step_is_a_whole_number_of_cells(step):
    with pytest.raises(ValidationError, match=r"motion.step.*whole number"):
        plumejax.make("PlumeSearchLocal-v0", grid_size=GRID, overrides={"motion.step": step})


def test_only_a_tumble_makes_a_step_random(local):
    env, _ = local
    parts = {n: getattr(env, n) for n in ("plume", "sensor", "reward", "ending", "start", "arena")}
    assert not env.random_step
    assert env.num_actions == 4
    assert PlumeSearch(motion=RunAndTumble(), **parts).random_step
    assert not PlumeSearch(motion=Oriented(), **parts).random_step


LINE, SPACE = OpenGrid((5,)), OpenGrid((3, 4, 5))


def at_all(motion, places, arena, params):
    """Positions after every action at each of `places`, [places, actions, d], and the masks."""
    actions = jnp.arange(motion.space(params).n, dtype=jnp.int32)

    @jax.jit
    @jax.vmap
    def both(place):
        here = motion.begin(Agent(place, jnp.float32(0.0)), params)
        moved = jax.vmap(lambda a: motion.move(KEY, here, a, None, arena, params).position)(actions)
        return moved, motion.mask(here, arena, params)

    return jax.tree.map(np.asarray, both(jnp.asarray(places, jnp.float32)))


@pytest.mark.parametrize("arena", [LINE, OpenGrid((4, 3)), SPACE], ids=str)
def test_axis_moves_go_both_ways_along_each_axis_and_stay_at_a_wall(params, arena):
    n = len(arena.grid_size)
    motion = AxisMoves(n)
    assert motion.space(params).n == 2 * n
    places = np.stack(np.meshgrid(*map(np.arange, arena.grid_size)), -1).reshape(-1, n)
    moved, mask = at_all(motion, places, arena, params)
    for place, row, free in zip(places, moved, mask, strict=True):
        for action in range(2 * n):
            there = place.copy()
            there[action // 2] += 2 * (action % 2) - 1
            inside = (there >= 0).all() and (there < arena.grid_size).all()
            assert free[action] == inside
            np.testing.assert_array_equal(row[action], there if inside else place)


def test_axis_moves_on_the_plane_are_left_right_down_up(params):
    moved, _ = at_all(AxisMoves(2), [[5, 6]], ARENA, params)
    np.testing.assert_array_equal(moved[0], [[4, 6], [6, 6], [5, 5], [5, 7]])


def test_a_long_axis_move_off_the_grid_does_not_happen(params):
    far = params.replace(motion=params.motion.replace(step=np.float32(3.0)))
    moved, mask = at_all(AxisMoves(1), [[1]], LINE, far)
    np.testing.assert_array_equal(moved[0], [[1], [4]])
    np.testing.assert_array_equal(mask[0], [False, True])
    assert at_all(AxisMoves(1, at_wall="settle"), [[1]], LINE, far)[0][0, 0] == 0


MAP = """
    ....
    .#..
    ....
"""


@pytest.mark.parametrize(
    ("at_wall", "place_after"), [("settle", (0, 0)), ("stay", (0, 0)), ("slide", (1, 0))]
)
def test_what_an_obstacle_does_to_a_diagonal_move_is_a_choice(params, at_wall, place_after):
    arena, numbers = from_map(MAP)
    params = params.replace(arena=numbers)
    moved, mask = at_all(Moves(NINE, at_wall=at_wall), [[0, 0]], arena, params)
    assert not mask[0, 1]
    np.testing.assert_array_equal(moved[0, 1], place_after)
    np.testing.assert_array_equal(moved[0, 2], (1, 0))


@pytest.mark.parametrize(
    ("at_wall", "place_after"), [("settle", (15, 7)), ("stay", (15, 6)), ("slide", (15, 7))]
)
def test_what_the_edge_does_to_a_diagonal_move_is_a_choice(params, at_wall, place_after):
    moved, _ = at_all(Moves(NINE, at_wall=at_wall), [[15, 6]], ARENA, params)
    np.testing.assert_array_equal(moved[0, 1], place_after)


@pytest.mark.parametrize("motion", [Moves(at_wall="end"), Oriented(at_wall="end")])
def test_end_stays_and_remembers_the_last_touch(params, motion):
    here = motion.begin(agent(15, 6), params)
    assert not here.motion.touched
    into, away = (1, 0) if isinstance(motion, Moves) else (0, 1)
    hit = move(motion, here, into, params)
    assert place(hit) == (15, 6)
    assert hit.motion.touched
    assert not move(motion, hit, away, params).motion.touched


def test_only_a_motion_that_ends_at_a_wall_keeps_anything(params):
    for motion in (Moves(), Oriented(), RunAndTumble(), AxisMoves(2)):
        assert motion.begin(agent(5, 6), params).motion == ()
    with pytest.raises(
        ValidationError, match=r"motion.at_wall = 'bounce'.*settle, stay, slide, end"
    ):
        Moves(at_wall="bounce").validate(params)


def test_moves_on_a_periodic_grid_go_round(params):
    arena = PeriodicGrid(GRID)
    moved, mask = at_all(Moves(NINE, at_wall="slide"), [[15, 11], [0, 0]], arena, params)
    assert mask.all()
    np.testing.assert_array_equal(moved[0, :3], [[15, 0], [0, 0], [0, 11]])
    np.testing.assert_array_equal(moved[1, 4:7], [[0, 11], [15, 11], [15, 0]])


@pytest.mark.parametrize(
    ("wind", "up"),
    [
        ((2, 0), (-1, 0)),
        ((-0.1, 0.05), (1, 0)),
        ((1, 3), (0, -1)),
        ((1, -1.01), (0, 1)),
        ((0, 0), (-1, 0)),
    ],
)
def test_wind_relative_moves_are_up_down_and_across_the_felt_wind(params, wind, up):
    motion = WindRelative()
    air = Air(jnp.zeros(1), jnp.asarray([wind], jnp.float32))
    places = [
        place(motion.move(KEY, agent(5, 6), jnp.int32(a), air, ARENA, params)) for a in range(4)
    ]
    x, y = up
    ways = [(x, y), (-x, -y), (-y, x), (y, -x)]  # left of upwind is a quarter turn to the left
    assert places == [(5 + dx, 6 + dy) for dx, dy in ways]
    assert motion.feels_air
    assert motion.mask(agent(0, 0), ARENA, params).all()


def test_the_environment_hands_a_wind_relative_motion_the_air(local):
    env, _ = local
    parts = {n: getattr(env, n) for n in ("plume", "sensor", "reward", "ending", "start", "arena")}
    env = PlumeSearch(motion=WindRelative(), **parts)
    params = local[1].replace(motion=WindRelative().default_params())
    _, state = env.reset(KEY, params)
    state = state.replace(agent=agent(5, 6))
    _, state, *_ = env.step(KEY, state, jnp.int32(0), params)  # still air counts as along +x
    assert place(state.agent) == (4, 6)
