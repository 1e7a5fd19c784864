"""tests/search/test_team: several agents on one plume, and what they see of each other."""

import re
from dataclasses import dataclass

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plumejax.adapters.gymnax import to_gymnax
from plumejax.adapters.spaces import to_gymnasium
from plumejax.base import paths, spaces
from plumejax.base.agents import stacked
from plumejax.base.batch import Batch
from plumejax.base.errors import ValidationError
from plumejax.base.randomised import Uniform, randomised
from plumejax.base.rollout import rollout
from plumejax.plumes.gaussian import GaussianPlume
from plumejax.plumes.interface import Air
from plumejax.search import starts
from plumejax.search.motion import Oriented, RunAndTumble
from plumejax.search.rewards import Progress
from plumejax.search.sensors import FullField, LocalConcentration
from plumejax.search.state import Agent, Scene
from plumejax.search.tasks import plume_search, plume_search_local
from plumejax.search.team import Neighbours, Team, follow
from plumejax.testing import check_task

GRID = (16, 12)
SOURCE = (8, 6)
SMALL = {"plume.sigma": 3.0, "ending.radius": 2.0, "max_steps": 40}
UP, RIGHT, DOWN, LEFT = range(4)
KEY = jax.random.key(0)


def team(num_agents=3, until="all", **parts):
    """`(env, params)`; a start at one place, unless another is given, compiles soonest."""
    env, params = plume_search_local(grid_size=GRID, **{"start": starts.Fixed(), **parts})
    return Team(env, num_agents, until), paths.override(params, SMALL)


@pytest.fixture(scope="module")
def three():
    return team(start=starts.Uniform())


def at(env, params, *places):
    """The state of a fresh episode with the agents at these places."""
    _, state = env.reset(KEY, params)
    position = jnp.asarray(places, jnp.float32)
    return state.replace(agent=state.agent.replace(position=position))


def step(env, params, state, *actions):
    return env.step(KEY, state, jnp.asarray(actions, jnp.int32), params)


@pytest.mark.slow
def test_a_team_keeps_every_promise():
    # Its motion draws, for each agent by itself.
    check_task(*team(motion=RunAndTumble()), steps=4)


def test_what_is_of_an_agent_leads_with_their_number(three):
    env, params = three
    observation, state = env.reset(KEY, params)
    assert observation.shape == (3, 1)
    assert state.total_reward.shape == state.found.shape == state.arrival.shape == (3,)
    assert state.agent.position.shape == (3, 2)
    assert len(np.unique(state.agent.position, axis=0)) > 1
    assert state.plume.shape == (2,)
    _, _, reward, terminated, _, info = step(env, params, state, UP, UP, UP)
    assert (reward.shape, reward.dtype) == ((3,), jnp.float32)
    assert terminated.shape == ()
    shapes = {name: value.shape for name, value in info.items()}
    assert shapes.pop("arrival") == (3,)
    assert set(shapes.values()) == {()}


def test_each_agent_searches_as_it_would_alone():
    env, params = team(reward=Progress())
    places = ((0, 0), (15, 11), (7, 9))
    state = at(env, params, *places)
    alone = [at(env.search, params, *place) for place in places]
    for actions in ((UP, LEFT, RIGHT), (RIGHT, DOWN, DOWN), (RIGHT, DOWN, DOWN)):
        observation, state, paid, *_ = step(env, params, state, *actions)
        outcomes = [
            env.search.step(KEY, s, jnp.int32(a), params)
            for s, a in zip(alone, actions, strict=True)
        ]
        alone = [outcome[1] for outcome in outcomes]
        np.testing.assert_allclose(observation, [o[0] for o in outcomes], rtol=1e-6)
        np.testing.assert_allclose(paid, [o[2] for o in outcomes], rtol=1e-6)
        np.testing.assert_array_equal(state.agent.position, [s.agent.position for s in alone])
        np.testing.assert_array_equal(state.found, [s.found for s in alone])
    np.testing.assert_array_equal(state.found, [False, False, True])


def test_who_has_arrived_rests_unpaid_until_all_have(three):
    env, params = three
    state = at(env, params, (5, 6), (4, 6), (0, 0))
    observation, state, reward, terminated, _, info = step(env, params, state, RIGHT, RIGHT, UP)
    np.testing.assert_array_equal(reward, [1, 0, 0])
    np.testing.assert_array_equal(info["arrival"], [1, -1, -1])
    assert (info["first"], bool(info["found"]), bool(terminated)) == (0, False, False)
    last, state, reward, _, _, info = step(env, params, state, LEFT, RIGHT, UP)
    np.testing.assert_array_equal(reward, [0, 1, 0])
    np.testing.assert_array_equal(state.agent.position, [(6, 6), (6, 6), (0, 2)])
    assert last[0] == observation[0]
    np.testing.assert_array_equal(info["arrival"], [1, 2, -1])
    position = state.agent.position.at[2].set(jnp.asarray([6, 5], jnp.float32))
    near = state.replace(agent=state.agent.replace(position=position))
    _, state, reward, terminated, truncated, info = step(env, params, near, LEFT, LEFT, RIGHT)
    np.testing.assert_array_equal(reward, [0, 0, 1])
    np.testing.assert_array_equal(info["arrival"], [1, 2, 3])
    assert (bool(terminated), bool(truncated)) == (True, False)
    assert (info["first"], bool(info["found"]), info["total_reward"]) == (0, True, 3)
    np.testing.assert_allclose(info["distance"], np.sqrt(2), rtol=1e-6)


def test_the_first_to_arrive_may_end_it():
    env, params = team(until="first")
    state = at(env, params, (0, 0), (5, 6), (8, 9))
    _, state, reward, terminated, _, info = step(env, params, state, UP, RIGHT, DOWN)
    np.testing.assert_array_equal(reward, [0, 1, 1])
    assert bool(terminated)
    assert bool(info["found"])
    assert (info["first"], info["step_count"]) == (1, 1)  # of two at once the lower number
    np.testing.assert_array_equal(info["arrival"], [-1, 1, 1])


@dataclass(frozen=True)
class FailsAtTheWall:
    """Found nowhere; failed at x = 0."""

    def default_params(self):
        return ()

    def ended(self, scene, params):
        return jnp.asarray(False), scene.agent.position[0] == 0


def test_it_is_over_when_nobody_is_left_to_search():
    env, params = plume_search_local(grid_size=GRID, start=starts.Fixed(), ending=FailsAtTheWall())
    env = Team(env, 2, "first")
    state = at(env, params, (1, 3), (2, 3))
    _, state, _, terminated, _, info = step(env, params, state, LEFT, LEFT)
    np.testing.assert_array_equal(state.failed, [True, False])
    assert not terminated
    assert not info["failed"]
    _, state, _, terminated, _, info = step(env, params, state, RIGHT, LEFT)
    np.testing.assert_array_equal(state.agent.position[:, 0], [0, 0])
    assert terminated
    assert info["failed"]
    assert (info["first"], bool(info["found"])) == (-1, False)


def test_one_bad_action_stops_all(three):
    env, params = three
    _, state = env.reset(KEY, params)
    bad = jnp.asarray([UP, 4, UP], jnp.int32)
    assert env.check(state, bad, params) == 4
    _, after, *_ = env.step(KEY, state, bad, params)
    np.testing.assert_array_equal(after.agent.position, state.agent.position)
    assert after.step_count == 0


# ---- what is shared ----


@dataclass(frozen=True)
class Noisy(GaussianPlume):
    """A Gaussian plume that draws 7 numbers to advance."""

    random_step = True

    def advance(self, key, state, params):
        return state + 0 * jnp.sum(jax.random.bits(key, (7,), jnp.uint32)).astype(jnp.float32)


def bits_drawn(step, *args):
    """The random bits that a step draws, as its jaxpr writes them."""
    return re.findall(r"(u32\[[\d,]*\]) = random_bits", str(jax.make_jaxpr(step)(*args)))


@pytest.mark.parametrize("num_agents", [1, 5])
def test_the_plume_is_advanced_once_for_all(num_agents):
    env, params = team(num_agents, plume=Noisy(GRID))
    _, state = jax.eval_shape(env.reset, KEY, params)
    action = env.action_space(params).sample(KEY)
    assert bits_drawn(env.step, KEY, state, action, params) == ["u32[7]"]


def test_plumes_of_their_own_would_be_noticed():
    env, params = team(1, plume=Noisy(GRID))
    batch = Batch(env, 5)
    _, state = jax.eval_shape(batch.reset, KEY, params)
    assert bits_drawn(batch.advance, KEY, state, jnp.zeros((5, 1), int), params) == ["u32[5,7]"]


@dataclass(frozen=True)
class Counted(GaussianPlume):
    """A Gaussian plume that notes where it is sampled."""

    def sample(self, state, positions, params):
        assert isinstance(self.grid_size, tuple)
        SAMPLED.append(positions.shape)
        return super().sample(state, positions, params)


SAMPLED = []


def test_the_air_is_sampled_once_for_all_probes():
    env, params = plume_search(grid_size=(4, 3), plume=Counted((4, 3)), sensor=FullField((4, 3)))
    env = Team(env, 2)
    _, state = jax.eval_shape(env.reset, KEY, params)
    SAMPLED.clear()
    jax.make_jaxpr(env.step_env)(KEY, state, env.action_space(params).sample(KEY), params)
    assert SAMPLED == [(2 * 4 * 3, 2)]


@dataclass(frozen=True)
class Drifts(Oriented):
    """Goes with the wind that it feels."""

    feels_air = True

    def move(self, key, agent, action, air, arena, params):
        return agent.replace(position=agent.position + air.wind[0])


@dataclass(frozen=True)
class Sheared(GaussianPlume):
    """The wind along x is y."""

    def sample(self, state, positions, params):
        wind = jnp.stack([positions[:, 1], jnp.zeros_like(positions[:, 1])], axis=-1)
        return Air(concentration=positions[:, 0], wind=wind)


def test_each_motion_feels_the_air_at_its_own_agent():
    env, params = team(2, plume=Sheared(GRID), motion=Drifts())
    state = at(env, params, (0, 2), (0, 5))
    for _ in range(2):  # what was felt at the places of the reset is spent on the first
        before, (_, state, *_) = state, step(env, params, state, 0, 0)
    moved = np.asarray(state.agent.position) - np.asarray(before.agent.position)
    np.testing.assert_array_equal(moved[:, 0], [2, 5])


@dataclass(frozen=True)
class DrawsTheSource(starts.Fixed):
    """Draws a source, the place one cell to its left, and a first count of hits."""

    def place(self, key, plume, plume_state, arena, params):
        source = jax.random.uniform(key, (2,), jnp.float32, 1.0, 9.0)
        agent = Agent(position=source - jnp.float32(1.0), heading=jnp.float32(0.0))
        return source, agent, jnp.int32(1)


@dataclass(frozen=True)
class FirstCount(LocalConcentration):
    """At reset the count that the start drew, and then the concentration."""

    def observe(self, key, state, scene, params):
        if scene.first is not None:
            return scene.first[None].astype(jnp.float32), state
        return super().observe(key, state, scene, params)


def test_a_start_that_draws_the_source_with_the_place_sends_all_from_there():
    env, params = team(start=DrawsTheSource(), sensor=FirstCount())
    observation, state = env.reset(KEY, params)
    np.testing.assert_array_equal(state.agent.position, np.stack([state.plume - 1] * 3))
    np.testing.assert_array_equal(observation, np.ones((3, 1)))


@dataclass(frozen=True)
class DrawsThenPlaces:
    """Draws a source, then places by `of`."""

    of: starts.Uniform

    def default_params(self):
        return Wrapped(self.of.default_params())

    def place(self, key, plume, plume_state, arena, params):
        source = jax.random.uniform(key, (2,), jnp.float32, 4.0, 8.0)
        inner = params.replace(start=params.start.of)
        return self.of.place(key, plume, source, arena, inner)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Wrapped:
    of: object


def test_a_start_that_draws_the_source_first_scatters_the_team_around_it():
    env, params = team(16, start=DrawsThenPlaces(starts.Uniform()))
    _, state = env.reset(KEY, params)
    assert len(np.unique(state.agent.position, axis=0)) > 8
    distance = np.linalg.norm(np.asarray(state.agent.position) - np.asarray(state.plume), axis=-1)
    assert np.all(distance > 2)


# ---- spaces, and the layers above ----


def test_spaces_lead_with_the_number_of_agents(three):
    env, params = three
    assert env.action_space(params) == spaces.MultiDiscrete((4, 4, 4))
    assert env.observation_space(params).shape == (3, 1)
    full = stacked(FullField(GRID).space(params), 3)
    assert full.spaces["agent_position"].shape == (3, 2)
    assert full.contains(full.sample(KEY))


def test_multi_discrete_holds_its_members_in_every_library():
    space = spaces.MultiDiscrete((2, 5))
    drawn = jax.vmap(space.sample)(jax.random.split(KEY, 64))
    np.testing.assert_array_equal(drawn.max(axis=0), [1, 4])
    np.testing.assert_array_equal(drawn.min(axis=0), [0, 0])
    bad = ([0, 5], [2, 0], [-1, 0], [0], [0.0, 1.0])
    assert not any(space.contains(jnp.asarray(x)) for x in bad)
    theirs = to_gymnasium(space)
    assert theirs == gymnasium.spaces.MultiDiscrete([2, 5], dtype=np.int32)
    assert np.asarray(drawn[0]) in theirs
    for x in drawn[:4]:
        assert to_gymnax(space).contains(x)
    assert not to_gymnax(space).contains(jnp.asarray(bad[0]))


class Still:
    """A policy: up, always."""

    def init(self, key):
        return ()

    def act(self, key, carry, observation):
        return jnp.zeros(len(observation), jnp.int32), carry


jax.tree_util.register_static(Still)


def test_a_team_rolls_out_and_is_randomised_like_any_task():
    env, params = randomised(*team(), {"plume.sigma": Uniform(2.0, 4.0), "max_steps": 5})
    carry, total = rollout(Batch(env, 4), Still(), KEY, params, 10)
    assert total.episodes >= 8
    assert carry.state.drawn["plume.sigma"].shape == (4,)
    assert carry.state.observation.shape == (4, 3, 1)


@pytest.mark.parametrize(
    ("num_agents", "until", "message"),
    [(0, "all", "num_agents = 0"), (2, "some", "until = 'some'"), (True, "all", "num_agents")],
)
def test_what_is_no_team_is_refused(num_agents, until, message):
    with pytest.raises(ValidationError, match=message):
        team(num_agents, until)


# ---- neighbours ----


def test_neighbours_tell_the_mean_heading_of_those_within_the_radius():
    env, params = team(4, sensor=Neighbours(), motion=Oriented())
    params = paths.override(params, {"sensor.radius": 3.0})
    env.validate(params)
    state = at(env, params, (0, 0), (3, 0), (0, 2), (15, 11))
    headings = jnp.asarray([180.0, 0.0, 90.0, 270.0], jnp.float32)
    state = state.replace(agent=state.agent.replace(heading=headings))
    observation, state, *_ = step(env, params, state, 1, 1, 1, 1)  # all turn left
    half = np.sqrt(0.5)
    # The first sees 90 and 180; the second at distance sqrt(13) from the third sees 270 alone.
    expected = [(-half, half), (0, -1), (0, -1), (0, 0)]
    np.testing.assert_allclose(observation, expected, atol=1e-6)
    assert env.observation_space(params).contains(observation)


def scene(team):
    agent = Agent(position=jnp.zeros(2, jnp.float32), heading=jnp.float32(0.0))
    empty = dict.fromkeys(Scene.__dataclass_fields__)
    return Scene(**{**empty, "agent": agent, "team": team})


def test_trust_blends_the_own_heading_with_the_neighbours():
    _, params = team(sensor=Neighbours())
    beside = Agent(position=jnp.ones((2, 2), jnp.float32), heading=jnp.full(2, 90, jnp.float32))
    opposed = beside.replace(heading=jnp.asarray([60.0, 240.0], jnp.float32))

    def observed(trust, others):
        numbers = paths.override(params, {"sensor.trust": trust})
        return sense(scene(others), numbers)[0]

    sense = jax.jit(lambda scene, numbers: Neighbours().observe(KEY, (), scene, numbers))
    np.testing.assert_allclose(observed(0.25, beside), (0.75, 0.25), atol=1e-6)
    np.testing.assert_allclose(observed(0.0, beside), (1, 0), atol=1e-6)
    np.testing.assert_allclose(observed(1.0, beside), (0, 1), atol=1e-6)
    np.testing.assert_allclose(observed(1.0, opposed), (0, 0), atol=1e-6)
    np.testing.assert_allclose(observed(0.25, None), (0.75, 0), atol=1e-6)  # alone
    own, public = jnp.asarray([1.0, 0.0]), jnp.asarray([0.0, 1.0])
    np.testing.assert_allclose(follow(own, public, np.float32(0.8)), (0.2, 0.8), rtol=1e-6)


def test_headings_have_gradients_where_nobody_is_near():
    _, params = team(sensor=Neighbours())

    def length(heading):
        others = Agent(position=jnp.full((1, 2), 99, jnp.float32), heading=heading[None])
        return jnp.sum(Neighbours().observe(KEY, (), scene(others), params)[0])

    assert jax.jit(jax.grad(length))(jnp.float32(10.0)) == 0


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [("radius", 0.0, r"sensor\.radius"), ("trust", 1.5, r"sensor\.trust .* \[0, 1\]")],
)
def test_bad_numbers_of_neighbours_are_refused(name, value, message):
    env, params = team(sensor=Neighbours())
    with pytest.raises(ValidationError, match=message):
        env.validate(paths.override(params, {f"sensor.{name}": value}))
