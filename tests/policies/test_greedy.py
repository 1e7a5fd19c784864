"""tests/policies/test_greedy: an agent that is told everything is soon at the source."""

from collections import deque
from dataclasses import replace
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plumejax
from plumejax.base.errors import ValidationError
from plumejax.base.spaces import MultiDiscrete
from plumejax.evaluation.episodes import play
from plumejax.plumes.interface import Air
from plumejax.policies.geodesic import geodesic, shortest
from plumejax.policies.greedy import greedy
from plumejax.search.arena import ObstacleBox, OpenGrid, from_map
from plumejax.search.bouts import Declare, Saccades, SniffOrMove
from plumejax.search.endings import Declared, LeftPlume
from plumejax.search.motion import NINE, AxisMoves, Moves, Oriented, RunAndTumble, WindRelative
from plumejax.search.start_regions import UniformBox
from plumejax.search.state import Agent
from plumejax.search.truth import World, told
from plumejax.search.walking import TurnAndSpeed, Unicycle, Velocity

SIZE = 20
SOURCE = (8.0, 6.0)
WALLED = """
    ...............
    ...#########...
    ...........#...
    ...........#...
    ...........#...
    ...#########...
    ...............
"""


def search(local, motion, arena=None, numbers=None, ending=None, **values):
    """`(env, params)` on an open grid of 20 cells a side if no arena is given."""
    env, params = local
    arena = OpenGrid((SIZE,) * 2) if arena is None else arena
    ending = env.ending if ending is None else ending
    numbers = arena.default_params() if numbers is None else numbers
    own = motion.default_params()
    own = own.replace(**{k: np.float32(x) for k, x in values.items()})
    goal = ending.default_params().replace(radius=np.float32(1.5))
    params = params.replace(motion=own, arena=numbers, ending=goal)
    return replace(env, motion=motion, arena=arena, ending=ending), params


def steps_to_source(env, params, places, source=SOURCE, wind=(0.0, 0.0), steps=120):
    """int[n]: how many until it is found from each of `places`, 0 if it is not."""
    places = jnp.asarray(places, jnp.float32)
    wind = jnp.asarray([wind], jnp.float32)
    sources = jnp.asarray([source], jnp.float32)

    @jax.jit
    def run(policy, places, keys):
        def one(place, key):
            heading = jax.random.uniform(key, (), jnp.float32, 0.0, 360.0)
            agent = Agent(place, heading)
            agent = env.motion.begin(agent, params) if hasattr(env.motion, "begin") else agent
            air = Air(jnp.zeros(1, jnp.float32), wind)

            def step(so_far, now):
                agent, found, failed = so_far
                t, key = now
                world = World(agent, sources, air)
                action, _ = policy.act(key, (), world)
                moved = env.motion.move(
                    jax.random.fold_in(key, 1), agent, action, air, env.arena, params
                )
                here, lost = policy._ended(agent, moved, action, t, world)
                found = jnp.where((found == 0) & here & ~failed, t + 1, found)
                return (moved, found, failed | (lost & (found == 0))), None

            times = jnp.arange(steps, dtype=jnp.int32)
            start = (agent, jnp.int32(0), jnp.asarray(False))
            return jax.lax.scan(step, start, (times, jax.random.split(key, steps)))[0][1]

        return jax.vmap(one)(places, keys)

    keys = jax.random.split(jax.random.key(0), len(places))
    return np.asarray(run(greedy(env, params), places, keys))


def places(dimensions):
    """[n, d]: corners, and some places between."""
    corners = list(product((0, SIZE - 1), repeat=dimensions))
    others = np.random.default_rng(0).integers(0, SIZE, (8, dimensions))
    return np.concatenate([corners, others]).astype(float)


@pytest.mark.parametrize(
    ("motion", "order", "dimensions"),
    [
        (Moves(), 1, 2),
        pytest.param(Moves(NINE), np.inf, 2, marks=pytest.mark.slow),
        pytest.param(AxisMoves(1), 1, 1, marks=pytest.mark.slow),
        pytest.param(AxisMoves(3), 1, 3, marks=pytest.mark.slow),
    ],
)
def test_on_an_open_grid_it_takes_a_shortest_path(local, motion, order, dimensions):
    env, params = search(local, motion, OpenGrid((SIZE,) * dimensions))
    source = (8, 6, 11)[:dimensions]
    offsets = np.asarray(list(product((-1, 0, 1), repeat=dimensions)))
    goals = source + offsets[np.linalg.norm(offsets, axis=1) <= 1.5]
    ways = places(dimensions)[:, None] - goals[None]
    expected = np.linalg.norm(ways, order, axis=-1).min(axis=1)
    away = expected > 0  # who begins at the source has still to take a step
    found = steps_to_source(env, params, places(dimensions), source, (0.0,) * dimensions)
    np.testing.assert_array_equal(found[away], expected[away])


MOTIONS = {
    "oriented": (Oriented(), {}),
    "run and tumble": (RunAndTumble(), {}),
    "wind-relative": (WindRelative(), {}),
    "turn and speed": (TurnAndSpeed(), {"turn_range": 90.0, "max_speed": 1.5}),
    "unicycle": (Unicycle(), {"turn": 20.0}),
    "saccades": (Saccades(), {"speed": 1.0}),
    "sniffs": (SniffOrMove(Moves()), {}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MOTIONS)
def test_it_finds_the_source_in_every_motion(local, name):
    motion, values = MOTIONS[name]
    env, params = search(local, motion, **values)
    assert np.all(steps_to_source(env, params, places(2), wind=(0.5, 0.2)) > 0)


@pytest.mark.slow
def test_it_declares_at_the_source_and_nowhere_else(local):
    env, params = search(local, Declare(Oriented()), ending=Declared())
    assert np.all(steps_to_source(env, params, places(2)) > 0)


@pytest.mark.long
@pytest.mark.parametrize(("dimensions", "drag"), [(2, 0.05), (3, 1.0)])
def test_with_inertia_it_does_not_overshoot_for_ever(local, dimensions, drag):
    env, params = search(
        local, Velocity(dimensions), OpenGrid((SIZE,) * dimensions), acceleration=0.5, drag=drag
    )
    source = (8.0, 6.0, 11.0)[:dimensions]
    found = steps_to_source(env, params, places(dimensions), source, (0.0,) * dimensions)
    assert np.all(found > 0)


def steps_by_breadth_first(free, start, goals):
    """How many moves of four it is from a cell, (x, y), to one of `goals`, by the textbook."""
    seen, queue = {start}, deque([(start, 0)])
    while queue:
        (x, y), n = queue.popleft()
        if (x, y) in goals:
            return n
        for there in ((x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1)):
            inside = 0 <= there[1] < free.shape[0] and 0 <= there[0] < free.shape[1]
            if inside and free[there[1], there[0]] and there not in seen:
                seen.add(there)
                queue.append((there, n + 1))
    return None


def test_it_goes_round_a_wall_the_shortest_way(local):
    arena, numbers = from_map(WALLED)
    env, params = search(local, Moves(), arena, numbers)
    source = np.asarray([13.0, 3.0], np.float32)
    params = params.replace(plume=params.plume.replace(source=source))
    y, x = np.nonzero(numbers.free)
    goals = {(a, b) for a, b in zip(x, y, strict=True) if np.hypot(a - 13, b - 3) <= 1.5}
    starts = [(10, 3), (4, 4), (0, 0), (10, 2), (5, 6)]
    expected = [steps_by_breadth_first(numbers.free, start, goals) for start in starts]
    np.testing.assert_array_equal(steps_to_source(env, params, starts, source), expected)


@pytest.mark.slow
@pytest.mark.parametrize("motion", [Unicycle(), Velocity()])
def test_it_goes_round_a_wall_through_continuous_space(local, motion):
    free = from_map(WALLED)[1].free
    arena = ObstacleBox((15, 7))
    env, params = search(local, motion, arena, arena.default_params().replace(free=free))
    source = np.asarray([13.0, 3.0], np.float32)
    params = params.replace(plume=params.plume.replace(source=source), dt=np.float32(0.5))
    start = UniformBox()
    box = start.default_params().replace(low=np.zeros(2, np.float32), high=np.ones(2, np.float32))
    env, params = replace(env, start=start), params.replace(start=box)
    found = steps_to_source(env, params, [(10.2, 3.1), (4.0, 4.4), (0.0, 0.0)], source)
    assert np.all(found > 0)


def test_lengths_of_steps_that_may_not_cut_corners():
    free = np.asarray([[1, 1, 0], [1, 0, 1], [1, 1, 1]], bool)
    ends = np.full((3, 3), np.inf)
    ends[2, 2] = 0.0
    ways = [way for way in product((-1, 0, 1), repeat=2) if any(way)]
    steps = [(way, float(np.linalg.norm(way)), False) for way in ways]
    expected = [[4, 5, np.inf], [3, np.inf, 1], [2, 1, 0]]
    np.testing.assert_allclose(shortest(free, ends, steps), expected)


def test_a_source_that_is_drawn_is_gone_for_straight(local):
    arena, numbers = from_map(WALLED)
    env, params = search(local, Moves(), arena, numbers)
    assert geodesic(env, params) is not None
    assert geodesic(replace(env, plume=Wandering(env.plume)), params) is None
    assert geodesic(*search(local, Moves())) is None


class Wandering:
    """A plume whose source is where the key says."""

    def __init__(self, of):
        self.of = of
        self.default_params, self.sample = of.default_params, of.sample

    def start(self, key, params):
        return self.of.start(key, params) + jax.random.uniform(key, (2,), jnp.float32)

    def advance(self, key, state, params):
        return state

    def sources(self, state, params):
        return state.reshape(1, 2)


def test_it_plays_a_search_that_is_told_everything(local):
    seeing, params = told(*local)
    played = play(seeing, greedy(*local), jax.random.key(0), params, 16)
    assert np.all(played.found)


def test_actions_that_it_cannot_plan_are_refused(local):
    env, params = search(local, Moves())
    many = replace(env, motion=Many())
    with pytest.raises(ValidationError, match="action space = MultiDiscrete"):
        greedy(many, params)


class Many(Moves):
    def space(self, params):
        return MultiDiscrete((2, 2))


def test_of_an_ending_it_foresees_what_needs_no_plume():
    env, params = plumejax.make("PlumeTracking-Code-Constant-v0", warmup=0)
    assert isinstance(env.ending, LeftPlume)
    policy = greedy(env, params)
    near = params.plume.source[:2]
    agent = Agent(jnp.asarray(near), jnp.float32(0.0))
    world = World(agent, jnp.asarray(near)[None], Air(jnp.zeros(1), jnp.zeros((1, 2))))
    assert tuple(map(bool, policy._ended(agent, agent, None, jnp.int32(0), world))) == (True, False)
