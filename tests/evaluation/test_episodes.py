"""tests/evaluation/test_episodes: fresh episodes, each once, and their summary."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plumejax.evaluation.episodes import Outcomes, play, trace
from plumejax.evaluation.statistics import summarise, wilson
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
            act, step = jax.random.split(jax.random.fold_in(run, t))
            action, memory = POLICY.act(act, memory, obs)
            obs, state, _, terminated, truncated, _ = env.step(step, state, action, params)
            done, t = bool(terminated | truncated), t + 1
        assert int(outcomes.steps[i]) == t
        assert bool(outcomes.found[i]) == bool(terminated)
        assert float(outcomes.reward[i]) == float(state.total_reward)


def test_an_episode_does_not_depend_on_how_many_are_played(local):
    env, params = local
    few = play(env, POLICY, jax.random.key(4), params, 5)
    many = play(env, POLICY, jax.random.key(4), params, 9)
    for a, b in zip(few, many, strict=True):
        np.testing.assert_array_equal(a, b[:5])


def test_trace_shows_the_episodes_of_play(local):
    env, params = local
    outcomes, states = trace(env, POLICY, jax.random.key(4), params, 5, 40)
    for a, b in zip(outcomes, play(env, POLICY, jax.random.key(4), params, 5), strict=True):
        np.testing.assert_array_equal(a, b)
    path = np.asarray(states.agent.position)
    assert path.shape == (41, 5, 2)
    for i, steps in enumerate(np.asarray(outcomes.steps)):
        moved = np.abs(np.diff(path[:, i], axis=0)).sum(1)
        assert np.all(moved <= 1)
        assert np.all(moved[steps:] == 0)  # ended: frozen


def test_summary_of_known_outcomes():
    outcomes = Outcomes(
        jnp.asarray([True, False, True, True]),
        jnp.asarray([10, 40, 20, 30], jnp.int32),
        jnp.asarray([1.0, 0.0, 1.0, 1.0], jnp.float32),
    )
    s = summarise(outcomes)
    assert (s.episodes, s.found, s.success) == (4, 3, 0.75)
    assert (s.median_steps, s.mean_steps_found, s.mean_return) == (25.0, 20.0, 0.75)


@pytest.mark.parametrize(
    ("k", "n", "low", "high"),
    # Newcombe, Statistics in Medicine 17 (1998), table I, method 3 (score).
    [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_interval_matches_published_values(k, n, low, high):
    assert wilson(k, n) == pytest.approx((low, high), abs=5e-5)
