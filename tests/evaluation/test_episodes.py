"""tests/evaluation/test_episodes: fresh episodes, each once, and the way of the searcher."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import struct

import plumejax
from plumejax.base.errors import ValidationError
from plumejax.evaluation.episodes import play, require_plays, stream, trace
from plumejax.learning.ppo import Shapes, ppo
from plumejax.policies.reactive import KeepOrTurn

POLICY = KeepOrTurn((0, 1, 2, 3))


def test_play_is_a_loop_over_single_episodes(local):
    env, params = local
    key = jax.random.key(4)
    outcomes = play(env, POLICY, key, params, 5)
    for i in range(5):
        reset, init, run = jax.random.split(jax.random.fold_in(key, i), 3)
        obs, state = env.reset(reset, params)
        memory, done, t = POLICY.init(init), False, 0
        while not done:
            act, step = (jax.random.fold_in(run, 2 * t + k) for k in (0, 1))
            action, memory = POLICY.act(act, memory, obs)
            obs, state, _, terminated, truncated, _ = env.step(step, state, action, params)
            done, t = bool(terminated | truncated), t + 1
        assert int(outcomes.steps[i]) == t
        assert bool(outcomes.found[i]) == bool(terminated)
        assert float(outcomes.reward[i]) == float(state.total_reward)


def test_a_policy_of_another_task_is_refused_by_what_it_sees_or_does(local, full):
    env, params = local
    require_plays(POLICY, env, params)
    agent = ppo(*full, Shapes(num_envs=4, hidden=(4,))).untrained(jax.random.key(0))
    with pytest.raises(ValidationError, match=r"policy = 'Agent' .* one that observes Box"):
        require_plays(agent, env, params)
    turner = plumejax.make("PlumeTracking-Code-Constant-v0", capacity=8, warmup=1)
    with pytest.raises(ValidationError, match=r"policy = 'KeepOrTurn' .* gives actions in Box"):
        require_plays(POLICY, *turner)


def test_an_episode_does_not_depend_on_how_many_are_played_or_beside_which(local):
    env, params = local
    few = play(env, POLICY, jax.random.key(4), params, 5)
    told = []
    many = stream(env, POLICY, jax.random.key(4), params, 23, lanes=5, progress=told.append)
    later = stream(env, POLICY, jax.random.key(4), params, 5, first=18)
    same(jax.tree.map(lambda x: x[:5], many), few)
    same(jax.tree.map(lambda x: x[18:], many), later)
    assert sum(told) == 23


def same(a, b):
    jax.tree.map(np.testing.assert_array_equal, a, b)


def test_trace_shows_the_episodes_of_play(local):
    env, params = local
    outcomes, lanes = trace(env, POLICY, jax.random.key(4), params, 5, 40)
    same(outcomes, play(env, POLICY, jax.random.key(4), params, 5))
    path = np.asarray(lanes.state.agent.position)
    assert path.shape == (41, 5, 2)
    for i, steps in enumerate(np.asarray(outcomes.steps)):
        moved = np.abs(np.diff(path[:, i], axis=0)).sum(1)
        assert np.all(moved <= 1)
        assert np.all(moved[steps:] == 0)  # ended: frozen
        assert outcomes.track.path[i] == moved.sum()
        barred = (moved[:steps] == 0).sum()
        assert outcomes.track.walls[i] == barred
    source = np.asarray(params.plume.source)
    np.testing.assert_allclose(
        outcomes.track.distance, np.linalg.norm(path[0] - source, axis=1), rtol=1e-6
    )


def test_a_searcher_that_goes_to_and_fro_cycles(local):
    env, params = local
    outcomes = play(env, ToAndFro(), jax.random.key(4), params, 8)
    lost = ~outcomes.found
    assert lost.any()
    assert outcomes.track.cycled[lost].all()
    assert not play(env, POLICY, jax.random.key(4), params, 8).track.cycled.any()


class ToAndFro(struct.PyTreeNode):
    """Right, left, right, left."""

    def init(self, key):
        return jnp.int32(1)

    def act(self, key, carry, observation):
        return carry, 4 - carry


def test_of_a_sensor_that_tells_of_no_hits_none_are_counted(local):
    env, params = local
    assert play(env, POLICY, jax.random.key(4), params, 5).track.hits is None


class Refused(struct.PyTreeNode):
    """Acts as no action is numbered, from the third step on."""

    def init(self, key):
        return jnp.int32(0)

    def act(self, key, carry, observation):
        return jnp.where(carry < 3, jnp.int32(0), jnp.int32(99)), carry + 1


def test_an_episode_whose_action_is_refused_ends_and_is_told_of(local):
    env, params = local
    outcomes = play(env, Refused(), jax.random.key(0), params, 4)
    assert set(np.asarray(outcomes.steps).tolist()) <= {-1, 1, 2, 3}
    with pytest.raises(ValidationError, match=r"of 4 episodes Refused gave an action .* Discrete"):
        stream(env, Refused(), jax.random.key(0), params, 4)
