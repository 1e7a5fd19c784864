"""tests/base/test_lifecycle: the rules between the five codes, over all that can be put in."""

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from plumejax.base import lifecycle
from plumejax.base.lifecycle import Lifecycle

bools = st.booleans()


def test_codes_are_those_of_the_contract():
    assert [(m.name, int(m)) for m in Lifecycle] == [
        ("CREATED", 0),
        ("READY", 1),
        ("TERMINATED", 2),
        ("TRUNCATED", 3),
        ("CLOSED", 4),
    ]


@given(terminated=bools, truncated=bools)
def test_after_step_prefers_terminated(terminated, truncated):
    code = lifecycle.after_step(jnp.asarray(terminated), jnp.asarray(truncated))
    expected = (
        Lifecycle.TERMINATED
        if terminated
        else Lifecycle.TRUNCATED
        if truncated
        else Lifecycle.READY
    )
    assert code.dtype == jnp.int32
    assert code == expected


@settings(max_examples=30)
@given(st.lists(st.tuples(bools, bools), min_size=1, max_size=5))
def test_after_step_and_flags_are_inverse(pairs):
    terminated, truncated = (jnp.asarray(column) for column in zip(*pairs, strict=True))
    code = lifecycle.after_step(terminated, truncated)
    # A truncated step is one whose count has reached the limit.
    count = jnp.where(truncated, jnp.int32(9), jnp.int32(3))
    back = lifecycle.flags(code, count, np.int32(9))
    np.testing.assert_array_equal(back[0], terminated)
    np.testing.assert_array_equal(back[1], truncated)


@given(code=st.sampled_from(list(Lifecycle)), count=st.integers(0, 20))
def test_only_ended_episodes_carry_flags(code, count):
    terminated, truncated = lifecycle.flags(jnp.int32(code), jnp.int32(count), np.int32(10))
    assert bool(terminated) == (code == Lifecycle.TERMINATED)
    ended_late = code == Lifecycle.TERMINATED and count >= 10
    assert bool(truncated) == (code == Lifecycle.TRUNCATED or ended_late)
    assert bool(lifecycle.is_ready(jnp.int32(code))) == (code == Lifecycle.READY)


def test_created_and_closed_touch_the_code_alone(local):
    env, params = local
    _, state = env.reset(jax.random.key(0), params)
    for make, code in (
        (lifecycle.created, Lifecycle.CREATED),
        (lifecycle.closed, Lifecycle.CLOSED),
    ):
        made = make(state)
        assert made.lifecycle == code
        assert made.lifecycle.dtype == jnp.int32
        assert made.replace(lifecycle=state.lifecycle) == state


def test_a_bad_action_changes_nothing_and_check_names_it(local):
    env, params = local
    _, state = env.reset(jax.random.key(0), params)
    for bad in (4, -1, 2**31 - 1):
        assert env.check(state, bad, params) == 4
        _, after, reward, terminated, truncated, _ = env.step(jax.random.key(1), state, bad, params)
        assert after.step_count == 0
        np.testing.assert_array_equal(after.agent.position, state.agent.position)
        assert not reward
        assert not terminated
        assert not truncated


def test_check_knows_an_action_by_its_kind(local):
    env, params = local
    _, state = env.reset(jax.random.key(0), params)
    for fine in (0, np.int64(3), np.asarray(2), jnp.uint8(1)):
        assert env.check(state, fine, params) == 0
    for bad in (True, 1.0, np.float32(0), np.zeros(1, np.int32)):
        assert env.check(state, bad, params) == 4


def test_the_last_step_may_carry_both_flags(local):
    env, params = local
    _, state = env.reset(jax.random.key(0), params)
    source = jnp.asarray(params.plume.source)
    beside = state.agent.replace(position=source + jnp.asarray([3.0, 0.0]))
    state = state.replace(agent=beside, step_count=params.max_steps - jnp.int32(1))
    _, state, reward, terminated, truncated, _ = env.step(jax.random.key(1), state, 3, params)
    assert terminated
    assert truncated
    assert reward == 1.0
    assert state.lifecycle == Lifecycle.TERMINATED
