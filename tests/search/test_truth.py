"""tests/search/test_truth: a told agent sees what is, and its search is the same search."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plumejax
from plumejax.base.errors import ValidationError
from plumejax.search.rewards import InformationGain, PotentialShaping, Sum
from plumejax.search.truth import told


@pytest.fixture(scope="module")
def steps(local):
    """`(told env, its params, states)`: of the search as it is and told, five steps of each."""
    env, params = local
    seeing, numbers = told(env, params)

    def run(env, params):
        states = [env.reset(jax.random.key(0), params)[1]]
        for action in (1, 0, 3, 2, 2):
            states.append(env.step(jax.random.key(1), states[-1], jnp.int32(action), params)[1])
        return states

    return seeing, numbers, run(env, params), run(seeing, numbers)


def test_it_observes_agent_sources_and_air(steps):
    seeing, numbers, _, states = steps
    for state in states:
        world = state.observation
        np.testing.assert_array_equal(world.agent.position, state.agent.position)
        np.testing.assert_array_equal(
            world.sources, seeing.plume.sources(state.plume, numbers.plume)
        )
        air = seeing.plume.sample(state.plume, state.agent.position[None], numbers.plume)
        np.testing.assert_allclose(world.air.concentration, air.concentration, rtol=1e-6)
        np.testing.assert_allclose(world.air.wind, air.wind, rtol=1e-6)


def test_the_search_is_the_same(steps):
    _, _, states, told_states = steps
    for state, seen in zip(states, told_states, strict=True):
        np.testing.assert_array_equal(seen.agent.position, state.agent.position)
        assert seen.total_reward == state.total_reward


def test_its_space_holds_worlds_and_nothing_else(steps):
    seeing, numbers, _, states = steps
    space = seeing.observation_space(numbers)
    world = states[-1].observation
    assert space.contains(world)
    assert space.contains(space.sample(jax.random.key(0)))
    assert not space.contains(world.replace(sources=jnp.zeros((2, 2), jnp.float32)))
    assert not space.contains(world.replace(sources=jnp.full((1, 2), jnp.nan, jnp.float32)))
    assert not space.contains(world.agent)


@pytest.mark.parametrize(
    "reward",
    [
        InformationGain(),
        Sum((("gain", InformationGain()),)),
        PotentialShaping(InformationGain()),
    ],
)
def test_a_reward_that_reads_the_sensor_is_refused(local, reward):
    with pytest.raises(ValidationError, match=r"reward = .*InformationGain.* does not read"):
        told(replace(local[0], reward=reward), local[1])


def test_a_search_with_numbers_drawn_is_refused():
    drawn = {"plume.sigma": plumejax.Uniform(4.0, 12.0)}
    with pytest.raises(ValidationError, match="numbers drawn"):
        told(*plumejax.make("PlumeSearchLocal-v0", grid_size=(16, 12), overrides=drawn))
