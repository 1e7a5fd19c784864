"""contracts: the state machine of `environment_state_machine.md`, under the names it lists."""

import warnings

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plumejax.adapters.gymnasium import AgentState, EnvironmentState, PlumeSearchEnv
from plumejax.base.errors import StateError
from plumejax.search.motion import NINE, Moves

UP, RIGHT, DOWN, LEFT = range(4)
ABOVE_GOAL = {"start": (8, 9)}
"""One move down from the goal disc (source (8, 6), radius 2)."""
CORNER = {"start": (0, 0)}


# ---- transitions ----


def test_initial_state_is_created(make_env):
    env = make_env()
    assert env.state is EnvironmentState.CREATED
    assert env.state == "created"
    assert env.agent_state is None
    assert (env.episode_count, env.step_count, env.seed) == (0, 0, None)


def test_cannot_step_before_reset(make_env):
    env = make_env()
    with pytest.raises(StateError, match=r"reset\(\) first"):
        env.step(UP)
    assert env.state is EnvironmentState.CREATED


def test_reset_transitions_to_ready(make_env):
    env = make_env()
    env.reset(seed=0)
    assert env.state is EnvironmentState.READY


def test_step_keeps_ready_when_not_terminal(make_env):
    env = make_env()
    env.reset(seed=0, options=CORNER)
    _, _, terminated, truncated, _ = env.step(UP)
    assert (terminated, truncated) == (False, False)
    assert env.state is EnvironmentState.READY


def terminated_env(make_env, **arguments):
    env = make_env(**arguments)
    env.reset(seed=0, options=ABOVE_GOAL)
    outcome = env.step(DOWN)
    return env, outcome


def truncated_env(make_env):
    env = make_env(max_steps=2)
    env.reset(seed=0, options=CORNER)
    env.step(LEFT)
    outcome = env.step(LEFT)
    return env, outcome


def test_step_transitions_to_terminated_on_goal(make_env):
    env, (_, reward, terminated, truncated, info) = terminated_env(make_env)
    assert (reward, terminated, truncated, info["goal_reached"]) == (1.0, True, False, True)
    assert env.state is EnvironmentState.TERMINATED


def test_step_transitions_to_truncated_on_timeout(make_env):
    env, (_, reward, terminated, truncated, info) = truncated_env(make_env)
    assert (reward, terminated, truncated, info["goal_reached"]) == (0.0, False, True, False)
    assert env.state is EnvironmentState.TRUNCATED


def test_goal_on_the_last_step_is_terminated_with_both_flags(make_env):
    env, (_, reward, terminated, truncated, _) = terminated_env(make_env, max_steps=1)
    assert (reward, terminated, truncated) == (1.0, True, True)
    assert env.state is EnvironmentState.TERMINATED


def test_can_reset_from_terminated(make_env):
    env, _ = terminated_env(make_env)
    env.reset()
    assert env.state is EnvironmentState.READY
    assert not env.agent_state.goal_reached


def test_can_reset_from_truncated(make_env):
    env, _ = truncated_env(make_env)
    env.reset()
    assert env.state is EnvironmentState.READY


def test_close_from_any_state(make_env):
    ready = make_env()
    ready.reset(seed=0)
    for env in (make_env(), ready, terminated_env(make_env)[0], truncated_env(make_env)[0]):
        env.close()
        assert env.state is EnvironmentState.CLOSED


def test_cannot_reset_after_close(make_env):
    env = make_env()
    env.close()
    with pytest.raises(StateError, match="after close"):
        env.reset(seed=0)
    assert env.state is EnvironmentState.CLOSED


def test_cannot_step_after_close(make_env):
    env = make_env()
    env.reset(seed=0)
    env.close()
    with pytest.raises(StateError, match="after close"):
        env.step(UP)
    assert env.state is EnvironmentState.CLOSED


def test_close_is_idempotent(make_env):
    env = make_env(render_mode="human")
    env.reset(seed=0)
    env.close()
    env.close()
    env.close()
    assert env.state is EnvironmentState.CLOSED


# ---- invariants ----


def snapshots(make_env, calls):
    """What can be read of an environment before and after each of `calls`."""
    env = make_env(max_steps=5)
    for call in [None, *calls]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            try:
                if call == "reset":
                    env.reset()
                elif call == "close":
                    env.close()
                elif call is not None:
                    env.step(call)
            except StateError:
                pass
        yield env


CALLS = st.lists(st.sampled_from(["reset", *range(4), *range(4), "close"]), max_size=20)


@settings(max_examples=20, deadline=None)
@given(calls=CALLS)
def test_state_always_valid(make_env, calls):
    for env in snapshots(make_env, calls):
        assert isinstance(env._state, EnvironmentState)
        assert env._state is env.state


@settings(max_examples=20, deadline=None)
@given(calls=CALLS)
def test_agent_state_exists_when_ready(make_env, calls):
    for env in snapshots(make_env, calls):
        if env.state is EnvironmentState.READY:
            assert isinstance(env._agent_state, AgentState)
            assert 0 <= env.agent_state.orientation < 360
        if env.state is EnvironmentState.CREATED:
            assert env.agent_state is None


@settings(max_examples=20, deadline=None)
@given(calls=CALLS)
def test_episode_count_monotonic(make_env, calls):
    before = 0
    for env in snapshots(make_env, calls):
        assert env._episode_count >= before >= 0
        before = env.episode_count
    until_closed = calls[: calls.index("close")] if "close" in calls else calls
    assert before == until_closed.count("reset")


@settings(max_examples=20, deadline=None)
@given(calls=CALLS)
def test_step_count_non_negative(make_env, calls):
    for env in snapshots(make_env, calls):
        assert env._step_count >= 0


def test_step_count_resets_with_episode(make_env):
    env = make_env()
    env.reset(seed=0, options=CORNER)
    env.step(UP)
    assert env.step_count == env.agent_state.step_count == 1
    env.reset()
    assert env.step_count == env.agent_state.step_count == 0


@settings(max_examples=20, deadline=None)
@given(calls=CALLS)
def test_step_count_bounded(make_env, calls):
    for env in snapshots(make_env, calls):
        assert env._step_count <= env._max_steps == 5
        if env.state is EnvironmentState.READY:
            assert env.step_count < env.max_steps


def test_closed_state_is_terminal(make_env):
    env = make_env(render_mode="rgb_array")
    env.reset(seed=0)
    env.close()
    for operation in (env.reset, lambda: env.step(UP), env.render):
        with pytest.raises(StateError):
            operation()
    assert env.state is EnvironmentState.CLOSED


def test_components_are_available(make_env):
    env = make_env()
    for component in (env._plume, env._reward_fn, env._obs_model, env._action_proc):
        assert component is not None


@settings(max_examples=20, deadline=None)
@given(seed=st.none() | st.integers(0, 2**31 - 1))
def test_seed_is_valid(make_env, seed):
    env = make_env()
    _, info = env.reset(seed=seed)
    assert info["seed"] == env._seed == env.seed
    assert 0 <= env.seed < 2**31
    assert seed in (None, env.seed)


def test_state_cannot_be_written(make_env):
    with pytest.raises(AttributeError):
        make_env()._state = EnvironmentState.READY


# ---- determinism ----


def assert_same(a, b):
    jax.tree.map(np.testing.assert_array_equal, a, b)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**31 - 1))
def test_reset_determinism(make_env, seed):
    env1, env2 = make_env(), make_env()
    env2.reset()  # what came before does not matter
    assert_same(env1.reset(seed=seed)[0], env2.reset(seed=seed)[0])


def episode(env, seed, actions):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return [env.reset(seed=seed)[0], *(env.step(action) for action in actions)]


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**31 - 1), actions=st.lists(st.integers(0, 8)))
def test_episode_determinism(make_env, seed, actions):
    env1, env2 = (make_env(action_processor=Moves(NINE)) for _ in range(2))
    assert_same(episode(env1, seed, actions), episode(env2, seed, actions))


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**31 - 1), actions=st.lists(st.integers(0, 3)))
def test_episode_determinism_of_the_default_motion(make_env, seed, actions):
    env1, env2 = make_env(), make_env()
    assert_same(episode(env1, seed, actions), episode(env2, seed, actions))


def test_the_seeds_own_examples_run():
    env = PlumeSearchEnv()
    with pytest.raises(StateError):
        env.step(0)
    env.reset(seed=42)
    _, _, terminated, truncated, _ = env.step(0)
    if terminated or truncated:
        env.reset(seed=43)
    env.close()
    env.close()
    with pytest.raises(StateError):
        env.reset()
