"""tests/search/test_rewards: what steps are worth, and that shaping leaves policies alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plumejax
from plumejax.base.errors import ComponentError, ValidationError
from plumejax.plumes import particles
from plumejax.plumes.filaments import TrackingPlume
from plumejax.plumes.interface import Air
from plumejax.plumes.puffs import PuffState
from plumejax.search.beliefs import BeliefState
from plumejax.search.bouts import Declare
from plumejax.search.endings import AnyOf, AtWall, Declared, GoalDisc
from plumejax.search.motion import Moves
from plumejax.search.rewards import (
    DeclaredError,
    InformationGain,
    PotentialShaping,
    Sparse,
    StepPenalty,
    Sum,
)
from plumejax.search.state import Agent, Scene
from plumejax.search.tracking import TrackingCode, TrackingPaper

GRID = (6, 5)
GAMMA = 0.9


def step_scene(before, after, *, odour=0.0, found=False, failed=False, plume=(), **others):
    scene = Scene(
        agent=_agent(after),
        previous=_agent(before),
        action=None,
        air=Air(jnp.asarray([0.0, odour], jnp.float32), jnp.zeros((2, 2), jnp.float32)),
        plume_state=plume,
        sensor=(),
        previous_sensor=(),
        sources=jnp.asarray([[1.0, 0.0]], jnp.float32),
        found=jnp.asarray(found),
        failed=jnp.asarray(failed),
        step_count=jnp.int32(1),
        plume=TrackingPlume(),
    )
    return scene.replace(**others)


def _agent(position):
    return Agent(jnp.asarray(position, jnp.float32), jnp.float32(0.0))


def paid(reward, scene, params):
    value = reward.reward(scene, params)
    assert value.dtype == jnp.float32
    assert value.shape == ()
    return float(value)


@pytest.fixture(scope="module")
def numbers(local):
    """`numbers(reward, **values)`: params for a reward on a plume of puffs."""

    def numbers(reward, **values):
        own = reward.default_params()
        if values:
            own = own.replace(**{name: np.float32(x) for name, x in values.items()})
        return local[1].replace(reward=own, plume=TrackingPlume().default_params())

    return numbers


def one_puff(x, y):
    pool = particles.empty(4, 2)
    position = pool.position.at[:, 1].set(jnp.asarray([x, y], jnp.float32))
    alive = jnp.arange(4) == 1
    return PuffState(pool.replace(position=position, alive=alive), (), jnp.zeros(2, jnp.float32))


# Potential shaping


def decision_process(reward):
    """`(next, pay, over)`, [cells, actions] each, from the task's own step at each cell.

    A walk into the wall ends the search without the source, so that both kinds of end occur.
    """
    env, params = plumejax.make(
        "PlumeSearchLocal-v0",
        grid_size=GRID,
        motion=Moves(at_wall="end"),
        ending=AnyOf((("goal", GoalDisc()), ("wall", AtWall()))),
        reward=reward,
        overrides={"ending.goal.radius": 1.0, "plume.source": (4, 2)},
    )
    if isinstance(reward, PotentialShaping):
        own = params.reward.replace(gamma=np.float32(GAMMA), scale=np.float32(0.7))
        params = params.replace(reward=own)
    env.validate(params)
    _, start = env.reset(jax.random.key(0), params)
    places = jnp.asarray([(x, y) for y in range(GRID[1]) for x in range(GRID[0])], jnp.float32)

    def step(place, action):
        state = start.replace(agent=start.agent.replace(position=place))
        _, state, reward, over, *_ = env.step(jax.random.key(0), state, action, params)
        return state.agent.position, reward, over

    actions = jnp.arange(4)
    over_actions = jax.vmap(step, (None, 0))
    after, pay, over = jax.jit(jax.vmap(over_actions, (0, None)))(places, actions)
    x, y = np.moveaxis(np.asarray(after, int), -1, 0)
    return y * GRID[0] + x, np.asarray(pay, np.float64), np.asarray(over)


def action_values(process):
    """float64[cells, actions]: the optimal ones, by value iteration to 1e-12."""
    after, pay, over = process
    q = np.zeros(pay.shape)
    for _ in range(400):
        q = pay + GAMMA * np.where(over, 0.0, q.max(axis=1)[after])
    return q


def best(q):
    return q >= q.max(axis=1, keepdims=True) - 1e-5


@pytest.mark.parametrize("inner", [Sparse(), StepPenalty()], ids=str)
def test_potential_shaping_leaves_the_optimal_policies_alone(inner):
    plain, shaped = decision_process(inner), decision_process(PotentialShaping(inner))
    assert plain[2].any()
    assert not plain[2].all()
    assert np.abs(plain[1] - shaped[1]).max() > 0.1
    q, shaped_q = action_values(plain), action_values(shaped)
    np.testing.assert_array_equal(best(q), best(shaped_q))
    # Q of the shaped task is Q - Phi in every cell (Ng, Harada, Russell 1999).
    x, y = np.meshgrid(np.arange(GRID[0]), np.arange(GRID[1]))
    phi = -0.7 * np.hypot(x - 4, y - 2).ravel()
    np.testing.assert_allclose(shaped_q, q - phi[:, None], atol=1e-5)


def test_the_potential_is_zero_where_the_episode_ends(numbers):
    reward = PotentialShaping(Sparse())
    params = numbers(reward).replace()
    own = params.reward.replace(gamma=np.float32(0.5), scale=np.float32(2.0))
    params = params.replace(reward=own)
    going = step_scene((6, 0), (4, 0))
    assert paid(reward, going, params) == 2.0 * (5 - 0.5 * 3)
    assert paid(reward, going.replace(failed=jnp.asarray(True)), params) == 10.0
    assert paid(reward, going.replace(found=jnp.asarray(True)), params) == 11.0


# The rewards of plume tracking


@pytest.mark.parametrize(
    ("before", "after", "odour", "expected"),
    [
        ((3, 0), (2.5, 0), 1.0, 5 * 0.5 - 0.0333),
        ((3, 0), (3.5, 0), 1.0, -5 * 0.5 - 0.0333),
        ((3, 0), (2.5, 0), 0.0, -0.2 - 0.0333),  # no pay off the plume
        ((3, 0), (3.5, 0), 0.0, -5 * 0.5 - 0.2 - 0.0333),
        ((3, 0), (2.5, 0), 1e-4, -0.2 - 0.0333),  # as much as the threshold is off
        ((3, 0), (2.5, 0), 1.1e-4, 5 * 0.5 - 0.0333),
    ],
)
def test_the_published_code_pays_for_coming_nearer_in_the_plume(
    numbers, before, after, odour, expected
):
    scene = step_scene(before, after, odour=odour, plume=one_puff(3, 0))
    np.testing.assert_allclose(paid(TrackingCode(), scene, numbers(TrackingCode())), expected, 1e-5)


@pytest.mark.parametrize(
    ("after", "expected"),
    [((7, 4), -(5 * 6 + 5)), ((-2, 4), -2 * (5 * 3 + 5)), ((1, 4), -np.hypot(3, 4))],
)
def test_the_published_code_fines_who_is_lost_by_how_far(numbers, after, expected):
    """The source is at x = 1, the one puff 5 m away, but for the last one."""
    scene = step_scene((9, 9), after, failed=True, plume=one_puff(after[0] - 3, 0))
    np.testing.assert_allclose(paid(TrackingCode(), scene, numbers(TrackingCode())), expected, 1e-5)


def test_who_is_lost_without_a_puff_pays_a_finite_fine(numbers):
    nothing = PuffState(particles.empty(4, 2), (), jnp.zeros(2, jnp.float32))
    scene = step_scene((9, 9), (3, 4), failed=True, plume=nothing)
    assert paid(TrackingCode(), scene, numbers(TrackingCode())) == -10.0


def test_the_published_ends_and_steps(numbers):
    plume = one_puff(3, 0)
    found = step_scene((2, 0), (1, 0), found=True, plume=plume)
    assert paid(TrackingCode(), found, numbers(TrackingCode())) == 101.0
    params = numbers(TrackingPaper())
    assert paid(TrackingPaper(), found, params) == 100.0
    lost = step_scene((2, 0), (1, 0), failed=True)
    assert paid(TrackingPaper(), lost, params) == -10.0
    assert paid(TrackingPaper(), step_scene((2, 0), (1, 0)), params) == -np.float32(0.0333)


# The others


def test_information_gain_is_the_fall_of_the_entropy_in_bits(numbers):
    def believing(bits):
        return BeliefState(jnp.zeros((2, 2), jnp.float32), jnp.float32(bits))

    reward = InformationGain()
    scene = step_scene((2, 0), (1, 0), previous_sensor=believing(3.0), sensor=believing(1.5))
    assert paid(reward, scene, numbers(reward)) == 1.5
    assert paid(reward, scene, numbers(reward, per_bit=-2.0)) == -3.0
    stacked = scene.replace(
        previous_sensor={"map": Agent(None, None, believing(3.0))},
        sensor={"map": Agent(None, None, believing(1.5))},
    )
    assert paid(InformationGain("map.motion"), stacked, numbers(reward)) == 1.5
    for path in ("", "map", "none.motion"):
        with pytest.raises(ComponentError, match="no belief at"):
            InformationGain(path).reward(stacked, numbers(reward))


def test_a_declaration_costs_its_distance_once():
    env, params = plumejax.make(
        "PlumeSearchLocal-v0",
        grid_size=(16, 12),
        motion=Declare(Moves()),
        ending=Declared(),
        reward=DeclaredError(),
        overrides={"reward.per_length": 0.5, "ending.radius": 1.0},
    )
    _, state = env.reset(jax.random.key(0), params)
    state = state.replace(agent=state.agent.replace(position=jnp.asarray([5.0, 2.0], jnp.float32)))
    _, walked, reward, over, *_ = env.step(jax.random.key(0), state, 0, params)
    assert (float(reward), bool(over)) == (0.0, False)
    np.testing.assert_array_equal(walked.agent.position, [5.0, 3.0])
    declare = env.num_actions - 1
    _, _, reward, over, *_ = env.step(jax.random.key(0), state, declare, params)
    assert (float(reward), bool(over)) == (-0.5 * np.hypot(3, 4), True)
    before = state.agent
    again = step_scene((0, 0), (0, 0)).replace(
        agent=before.replace(motion=before.motion.replace(declared=jnp.asarray(True))),
        previous=before.replace(motion=before.motion.replace(declared=jnp.asarray(True))),
    )
    assert paid(DeclaredError(), again, params) == 0.0


def test_a_sum_is_the_sum_of_its_parts_by_name(numbers):
    reward = Sum((("goal", Sparse()), ("time", StepPenalty())))
    params = numbers(reward)
    reward.validate(params)
    assert paid(reward, step_scene((2, 0), (1, 0), found=True), params) == 2.0
    assert paid(reward, step_scene((2, 0), (3, 0)), params) == -np.float32(0.01)
    bad = {**params.reward, "time": params.reward["time"].replace(penalty=np.float32(-1.0))}
    with pytest.raises(ValidationError, match=r"reward\.time\.penalty = -1.0"):
        reward.validate(params.replace(reward=bad))


@pytest.mark.parametrize(
    ("reward", "name", "value", "allowed"),
    [
        (PotentialShaping(), "gamma", 1.5, "in"),
        (PotentialShaping(), "scale", -1.0, ">= 0"),
        (DeclaredError(), "per_length", -1.0, ">= 0"),
        (TrackingCode(), "off_plume", -0.2, ">= 0"),
        (TrackingCode(), "threshold", -1e-4, ">= 0"),
        (TrackingPaper(), "lost", -10.0, ">= 0"),
    ],
    ids=str,
)
def test_bad_numbers_are_refused(numbers, reward, name, value, allowed):
    good = numbers(reward)
    reward.validate(good)
    own = good.reward.replace(**{name: np.float32(value)})
    with pytest.raises(ValidationError, match=rf"reward.{name} = .* must be {allowed}"):
        reward.validate(good.replace(reward=own))
    swept = np.asarray([getattr(good.reward, name)] * 2)
    reward.validate(good.replace(reward=good.reward.replace(**{name: swept})))
