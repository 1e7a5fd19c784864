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
from plumejax.search.arena import OpenGrid
from plumejax.search.environment import PlumeSearch
from plumejax.search.motion import NINE, Moves, Oriented, RunAndTumble, ahead
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
