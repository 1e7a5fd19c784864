"""tests/base/test_agents: several agents seen as lanes, their spaces, one policy for all."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plumejax.arms import two_arm
from plumejax.base.agents import PerAgent, Shared, of_one, stacked
from plumejax.base.batch import Batch
from plumejax.base.errors import ValidationError
from plumejax.base.spaces import Box, Dict, Discrete
from plumejax.learning.ppo import Hyperparameters, Shapes, ppo, train
from plumejax.policies.reactive import Random

KEY = jax.random.key(0)


@pytest.fixture(scope="module")
def drawer():
    env, params = two_arm("drawer", reward="progress")
    return env, params.replace(max_steps=np.int32(5))


def test_lanes_are_the_agents_of_the_episodes(drawer):
    env, params = drawer
    batch = Batch(env, 3)
    lanes = PerAgent(batch, 2)
    assert lanes.num_envs == 6
    observation, state = lanes.reset(KEY, params)
    expected, episodes = batch.reset(KEY, params)
    actions = jax.random.uniform(KEY, (6, 4), jnp.float32, -0.05, 1.0)
    for _ in range(6):
        np.testing.assert_array_equal(observation, np.reshape(expected, (6, -1)))
        np.testing.assert_array_equal(state.observation, observation)
        observation, state, reward, terminated, truncated, info = lanes.step(
            KEY, state, actions, params
        )
        expected, episodes, paid, _, over, told = batch.step(
            KEY, episodes, actions.reshape(3, 2, 4), params
        )
        np.testing.assert_array_equal(reward, np.ravel(paid))
        np.testing.assert_array_equal(truncated, np.repeat(over, 2))
        np.testing.assert_array_equal(info["step_count"], np.repeat(told["step_count"], 2))
        final = np.reshape(told["final_observation"], (6, -1))
        np.testing.assert_array_equal(info["final_observation"], final)
        assert terminated.shape == (6,)


def test_spaces_of_one_and_of_all():
    space = Dict({"a": Box(np.zeros(3, np.float32), 1.0, (3,)), "b": Discrete(4)})
    both = stacked(space, 2)
    assert both.spaces["a"].shape == (2, 3)
    assert both.spaces["b"].nvec == (4, 4)
    one = of_one(both)
    assert one.spaces["a"].shape == (3,)
    assert one.spaces["b"] == Discrete(4)
    with pytest.raises(ValidationError, match="cannot be stacked"):
        stacked(object(), 2)


def test_one_policy_acts_for_all(drawer):
    env, params = drawer
    policy = Shared(Random(of_one(env.action_space(params))), 2)
    observation, _ = env.reset(KEY, params)
    actions, _ = policy.act(KEY, policy.init(KEY), observation)
    assert env.action_space(params).contains(actions)
    assert not np.array_equal(actions[0], actions[1])


@pytest.mark.slow
def test_agents_learn_together(drawer):
    env, params = drawer
    shapes = Shapes(num_envs=4, num_steps=3, num_minibatches=2, num_epochs=1, stack=1, hidden=(8,))
    algorithm = ppo(env, params, shapes)
    assert algorithm.batch.num_envs == 4
    training, metrics = train(algorithm, KEY, params, Hyperparameters(updates=2.0), 2)
    assert np.all(np.isfinite(metrics.policy_loss))
    policy = Shared(algorithm.agent(training), 2)
    observation, _ = env.reset(KEY, params)
    actions, _ = policy.act(KEY, policy.init(KEY), observation)
    assert actions.shape == (2, 4)
    with pytest.raises(ValidationError, match="num_envs"):
        ppo(env, params, Shapes(num_envs=3, num_minibatches=1))
