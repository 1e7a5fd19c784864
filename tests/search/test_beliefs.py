"""tests/search/test_beliefs: the belief is the theory's, and counts are drawn from its law."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plumejax.base.errors import ValidationError
from plumejax.plumes.encounters import CASES, EncounterPlume, entropy, hit_probabilities
from plumejax.plumes.sources import Drift
from plumejax.policies.belief import Model
from plumejax.search.arena import OpenGrid
from plumejax.search.beliefs import Belief, BeliefAround
from plumejax.search.endings import GoalDisc
from plumejax.search.environment import PlumeSearch
from plumejax.search.motion import Moves
from plumejax.search.rewards import InformationGain
from plumejax.search.starts import Fixed

PLUME, NUMBERS = CASES["isotropic-19x19"]()
SENSOR = Belief(PLUME, 3, ("hits", "entropy"))


@pytest.fixture(scope="module")
def task():
    env = PlumeSearch(
        PLUME,
        SENSOR,
        Moves(),
        InformationGain(),
        GoalDisc(),
        Fixed(),
        OpenGrid((19, 19)),
    )
    params = env.default_params().replace(plume=NUMBERS.replace(source=np.float32([12, 9])))
    params = params.replace(
        start=params.start.replace(position=np.float32([9, 9])),
        ending=params.ending.replace(radius=np.float32(0.5)),
    )
    env.validate(params)
    return env, params


def rate(offsets):
    """mu of the isotropic plume with L = I = 1 in float64, of float64[..., 2]."""
    from scipy.special import k0

    return k0(np.maximum(np.hypot(*np.moveaxis(offsets, -1, 0)), 1)) / np.log(2)


def bayes(belief, place, hits):
    """The step of the theory in float64: not here, then the count; of H = 3 categories."""
    cells = np.stack(np.meshgrid(np.arange(19), np.arange(19), indexing="ij"), axis=-1)
    mu = rate(cells - np.asarray(place))
    laws = [np.exp(-mu), mu * np.exp(-mu)]
    laws.append(1 - laws[0] - laws[1])
    joint = belief * laws[hits]
    joint[tuple(np.asarray(place, int))] = 0
    return joint / joint.sum()


def bits(belief):
    kept = belief[belief > 1e-10]
    return -(kept * np.log2(kept)).sum()


def test_the_belief_follows_bayes_rule_and_the_reward_is_what_it_gains(task):
    env, params = task
    observation, state = env.reset(jax.random.key(1), params)
    belief = bayes(np.full((19, 19), 1 / 361), (9, 9), int(observation[0]))
    space = env.observation_space(params)
    counts = [int(observation[0])]
    for number, action in enumerate((0, 1, 2, 2, 1, 0)):
        before = bits(belief)
        np.testing.assert_allclose(state.sensor.belief, belief, rtol=2e-4, atol=1e-9)
        np.testing.assert_allclose(observation[1], before, rtol=1e-4)
        assert space.contains(observation)
        key = jax.random.key(20 + number)
        observation, state, reward, *_ = env.step(key, state, action, params)
        belief = bayes(belief, state.agent.position, int(observation[0]))
        np.testing.assert_allclose(reward, before - bits(belief), atol=1e-3)
        counts.append(int(observation[0]))
    assert len(set(counts)) > 1


def test_a_found_source_is_known(task):
    env, params = task
    _, state = env.reset(jax.random.key(0), params)
    state = state.replace(agent=state.agent.replace(position=jnp.asarray([11.0, 9.0])))
    before = state.sensor.entropy
    observation, state, reward, over, *_ = env.step(jax.random.key(0), state, 1, params)
    assert over
    np.testing.assert_array_equal(observation, [0, 0])
    assert reward == before
    expected = np.zeros((19, 19))
    expected[12, 9] = 1
    np.testing.assert_array_equal(state.sensor.belief, expected)


def test_counts_have_the_law_of_the_plume():
    mu = jnp.float32(0.9)
    keys = jax.random.split(jax.random.key(0), 20_000)
    drawn = jax.jit(jax.vmap(lambda key: SENSOR._count(key, mu, None)))(keys)
    law = np.asarray(hit_probabilities(mu, 3), np.float64)
    seen = np.bincount(np.asarray(drawn), minlength=3) / len(drawn)
    error = np.sqrt(law * (1 - law) / len(drawn))
    # Four standard errors; by chance alone once in 5000 keys, and this key is fixed.
    assert np.all(np.abs(seen - law) < 4 * error)
    assert len(seen) == 3


def test_a_count_that_nothing_explains_changes_nothing(task):
    _, params = task
    certain = jnp.zeros((19, 19), jnp.float32).at[9, 9].set(1.0)
    updated = SENSOR._updated(certain, jnp.int32(1), jnp.asarray([9.0, 9.0], jnp.float32), params)
    np.testing.assert_array_equal(updated, certain)


@pytest.mark.parametrize(("case", "categories"), [("windy-low-detections", 2), ("cosh", 2)])
def test_other_laws_and_shapes_of_grids(task, case, categories):
    plume, numbers = CASES[case]()
    sensor = Belief(plume, categories, ("entropy",))
    params = task[1].replace(plume=numbers)
    sensor.validate(params)
    place = jnp.asarray([40.0, 20.0], jnp.float32)
    start = sensor.start(params)
    np.testing.assert_allclose(entropy(start.belief), start.entropy, rtol=1e-5)
    for hits in range(categories):
        belief = sensor._updated(start.belief, jnp.int32(hits), place, params)
        np.testing.assert_allclose(belief.sum(), 1, rtol=1e-5)
        assert entropy(belief) < start.entropy
    assert belief[20, 20] > 5 * belief[60, 20]  # a hit came from upwind


def test_the_belief_around_the_agent_sums_patches_by_their_displacement(task):
    env, params = task
    edges = [1, 2, 4, 9, 19]
    env = replace(env, sensor=BeliefAround(PLUME, 3, rings=(1, 2, 4, 9, 30)))
    observation, state = env.reset(jax.random.key(1), params)
    for number, action in enumerate((0, 1, 1, 2)):
        assert env.observation_space(params).contains(observation)
        place, belief = np.asarray(state.agent.position, int), np.asarray(state.sensor.belief)
        rings = [np.searchsorted(edges, abs(np.arange(19) - x), side="right") for x in place]
        along = [ring * np.sign(np.arange(19) - x) for ring, x in zip(rings, place, strict=True)]
        expected = np.zeros((9, 9))
        np.add.at(expected, (along[0][:, None] + 4, along[1][None] + 4), belief)
        np.testing.assert_allclose(observation.reshape(9, 9), expected, rtol=1e-5)
        key = jax.random.key(20 + number)
        observation, state, *_ = env.step(key, state, action, params)


def test_every_cell_is_a_patch_where_each_ring_is_one_wide(task):
    env, params = task
    env = replace(env, sensor=BeliefAround(PLUME, 3, rings=tuple(range(1, 19))))
    observation, state = env.reset(jax.random.key(1), params)
    centred = Model((19, 19), np.zeros((3, 37, 37), np.float32)).centred(
        state.sensor.belief, state.agent.position.astype(jnp.int32)
    )
    np.testing.assert_array_equal(observation.reshape(37, 37), centred)


@pytest.mark.parametrize("rings", [(), (2, 3), (1, 3, 2)])
def test_rings_that_are_none_are_refused(rings):
    with pytest.raises(ValidationError, match=r"rings = .* displacements from 1, rising"):
        BeliefAround(PLUME, 3, rings=rings)


def test_what_a_belief_cannot_be_of_is_refused(task, local):
    with pytest.raises(ValidationError, match=r"categories = 1 .* must be >= 2"):
        Belief(PLUME, 1)
    with pytest.raises(ValidationError, match="observes"):
        replace(SENSOR, observes=("heat",))
    for plume in (EncounterPlume(num_sources=2), EncounterPlume(source_motion=Drift())):
        with pytest.raises(ValidationError, match="one source that stays"):
            Belief(plume)
    with pytest.raises(ValidationError, match="sensor: numbers of the plume = 'GaussianParams'"):
        SENSOR.validate(local[1])
    env, params = task
    other = replace(env, plume=replace(env.plume, grid_size=(9, 9)))
    with pytest.raises(ValidationError, match="grid_size"):
        other.validate(params)
