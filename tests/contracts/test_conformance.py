"""tests/contracts/test_conformance: every task passes the suite, and the suite notices what breaks.

The tasks broken on purpose know nothing of odour: two counters that grow as the action says.
"""

import itertools
from dataclasses import dataclass, replace
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import struct

import plumejax
from plumejax import testing
from plumejax.base import lifecycle
from plumejax.base.environment import Environment, EnvParams, EnvState
from plumejax.base.lifecycle import Lifecycle
from plumejax.base.spaces import Box
from plumejax.search.motion import NINE, Moves, Oriented, RunAndTumble
from plumejax.search.rewards import StepPenalty
from plumejax.search.sensors import LocalConcentration

GRID = (16, 12)
SMALL = {"plume.sigma": 3.0, "ending.radius": 2.0, "max_steps": 40}
KEY = jax.random.key(0)


def test_the_local_task_conforms(local):
    testing.check_task(*local)


def test_the_full_task_keeps_the_promises_that_its_sensor_could_break(full):
    testing.check_static(*full)
    testing.check_shapes(*full, KEY, 4)
    testing.check_spaces(*full, KEY, 4)
    testing.check_finite(*full, KEY, 4)
    testing.check_eager(*full, KEY)
    testing.check_traces(*full, KEY)
    testing.check_copies(*full, KEY)


@pytest.mark.parametrize(
    "choices", [{"motion": RunAndTumble(), "reward": StepPenalty()}], ids=["tumble"]
)
def test_a_search_that_draws_in_its_steps_conforms(choices):
    env, params = plumejax.make("PlumeSearchLocal-v0", grid_size=GRID, overrides=SMALL, **choices)
    testing.check_task(env, params, key=jax.random.key(7))


@pytest.mark.parametrize("motion", [Moves(NINE), Oriented()], ids=repr)
def test_the_other_motions_keep_the_cheap_promises(motion):
    env, params = plumejax.make(
        "PlumeSearchLocal-v0", grid_size=GRID, overrides=SMALL, motion=motion
    )
    testing.check_static(env, params)
    testing.check_spaces(env, params, KEY)
    testing.check_lifecycle(env, params, KEY)
    testing.check_ending(env, params, KEY)


@struct.dataclass
class PairState(EnvState):
    """Two counters, float32[2], and a number that nobody needs."""

    value: Any
    extra: Any


@dataclass(frozen=True)
class Pair(Environment):
    """Two agents, each with a counter that the action moves; reward float32[2]."""

    gain: float = 1.0

    def default_params(self):
        return EnvParams(max_steps=np.int32(20))

    def action_space(self, params):
        return Box(-1.0, 1.0, (2,))

    def observation_space(self, params):
        return Box(-100.0, 100.0, (2,))

    def draw(self, key):
        return jax.random.uniform(key, (2,))

    def reset_env(self, key, params):
        value = self.draw(key)
        return PairState(
            lifecycle=jnp.int32(Lifecycle.READY),
            step_count=jnp.int32(0),
            total_reward=jnp.zeros(2),
            observation=value,
            value=value,
            extra=jnp.int32(0),
        )

    def step_env(self, key, state, action, params):
        value = state.value + jnp.float32(self.gain) * action
        state = state.replace(value=value, observation=value)
        return state, self.draw(key), jnp.asarray(False)


def test_a_task_of_two_agents_conforms():
    env = Pair()
    testing.check_task(env, env.default_params())


@dataclass(frozen=True, eq=False)
class ComparedById(Pair):
    """Two of them are never equal, so that each compiles anew."""

    __eq__, __hash__ = object.__eq__, object.__hash__


class PythonNumber(Pair):
    """Its step limit has no dtype."""

    def default_params(self):
        return EnvParams(max_steps=20)


class OneTotal(Pair):
    """Two agents' rewards, summed up in a scalar until the first step."""

    def reset_env(self, key, params):
        return super().reset_env(key, params).replace(total_reward=jnp.zeros(()))


class KeyInState(Pair):
    """Keeps a random key."""

    def reset_env(self, key, params):
        return super().reset_env(key, params).replace(extra=jax.random.fold_in(key, 1))


class OutOfSpace(Pair):
    """Observes more than it says."""

    def observation_space(self, params):
        return Box(-100.0, 0.0, (2,))


class NotFinite(Pair):
    """Divides by zero, later on."""

    def step_env(self, key, state, action, params):
        state, _, terminated = super().step_env(key, state, action, params)
        return state, 1.0 / (state.step_count - jnp.ones(2)), terminated


class Deaf(Pair):
    """Draws nothing, ever."""

    def draw(self, key):
        return jnp.ones(2)


class Restless(Pair):
    """Draws where it says that it does not."""

    random_step = False


class NeverStill(Pair):
    """Steps on after the end, and before the start."""

    def step(self, key, state, action, params):
        state, reward, _ = self.step_env(key, state, action, params)
        no = jnp.asarray(False)
        return state.observation, state, reward, no, no, self.info(state, params)


class CountsTwice(Pair):
    """Counts what has been counted."""

    def step_env(self, key, state, action, params):
        state, reward, terminated = super().step_env(key, state, action, params)
        return state.replace(step_count=state.step_count + 1), reward, terminated


class OtherUnderJit(Pair):
    """Looks at whether it is being traced."""

    def draw(self, key):
        drawn = super().draw(key)
        return drawn + 1.0 if isinstance(drawn, jax.core.Tracer) else drawn


@jax.custom_batching.custom_vmap
def _wrong_in_lanes(x):
    return x


@_wrong_in_lanes.def_vmap
def _(axis_size, in_batched, x):
    return x + 1.0, in_batched[0]


class WrongInLanes(Pair):
    """Another value under vmap."""

    def draw(self, key):
        return _wrong_in_lanes(super().draw(key))


class WeakAtFirst(Pair):
    """Its first state holds a Python number, the later ones an int32: a step compiles twice."""

    def reset_env(self, key, params):
        return super().reset_env(key, params).replace(extra=0)

    def step_env(self, key, state, action, params):
        state, reward, terminated = super().step_env(key, state, action, params)
        return state.replace(extra=jnp.int32(1)), reward, terminated


@dataclass(frozen=True)
class Forgetful(Pair):
    """Loses its gain when it is copied."""

    def __reduce__(self):
        return type(self), ()


class RunsAway(Pair):
    """Its counters leave the space after some steps, so rarely that few steps do not show it."""

    def observation_space(self, params):
        return Box(-4.0, 4.0, (2,))


class SkipsOne(Pair):
    """Begins an episode at step 1."""

    def reset_env(self, key, params):
        return super().reset_env(key, params).replace(step_count=jnp.int32(1))


class OwnRule(Pair):
    """Breaks a rule of its own."""

    def broken(self, state, params):
        return {"a counter is negative": jnp.any(state.value < 0)}


class Nonsense(Pair):
    """Its step adds up what does not fit."""

    def step_env(self, key, state, action, params):
        state, reward, terminated = super().step_env(key, state, action, params)
        return state, reward + jnp.zeros(2) @ jnp.zeros(3), terminated


class OnlyObserves(Pair):
    """Its reset gives no state."""

    def reset(self, key, params):
        return super().reset(key, params)[0]


class NoGradient(Pair):
    """The root of 0 has no finite gradient, and the one of its action is none either."""

    def step_env(self, key, state, action, params):
        state, reward, terminated = super().step_env(key, state, action, params)
        return state, reward + jnp.sqrt(0.0 * action), terminated


class Elsewhere(Pair):
    """Counts its steps outside the state, where no checkpoint keeps them."""

    def step(self, key, state, action, params):
        state = state.replace(extra=jnp.int32(next(steps_ever)))
        return state.observation, state, *super().step(key, state, action, params)[2:]


steps_ever = itertools.count()


class UsesAKeyTwice(Pair):
    """Draws two numbers that are one."""

    def draw(self, key):
        return super().draw(key) + jax.random.uniform(key, (2,))


BROKEN = [
    (ComparedById(), testing.check_static, "deep copy"),
    (PythonNumber(), testing.check_static, "Python number"),
    (Nonsense(), testing.check_calls, r"step cannot be traced: `.*jnp.zeros\(3\)"),
    (OnlyObserves(), testing.check_calls, "reset gave .* not a tuple of 2"),
    (OneTotal(), testing.check_shapes, "step 0: the state and that of the reset"),
    (KeyInState(), testing.check_shapes, "random key"),
    (OutOfSpace(), testing.check_spaces, "not in Box"),
    (NotFinite(), testing.check_finite, "step 0"),
    (Deaf(), testing.check_seeds, "one and the same episode"),
    (Restless(), testing.check_seeds, "random_step is False"),
    (NeverStill(), testing.check_lifecycle, "before the first reset"),
    (CountsTwice(), testing.check_ending, "after 1 steps"),
    (OtherUnderJit(), testing.check_eager, "without jit"),
    (WrongInLanes(), testing.check_vmap, "under vmap"),
    (WrongInLanes(), testing.check_batch, "lane 0"),
    (WeakAtFirst(), testing.check_traces, "step was traced [0-9] times"),
    (Forgetful(gain=2.0), testing.check_copies, "a step of the pickled task"),
    (UsesAKeyTwice(), testing.check_key_reuse, "reset uses a key twice"),
    (RunsAway(), testing.check_steps, r"not in its space \([0-9]+ times\)"),
    (NotFinite(), testing.check_steps, "not finite"),
    (SkipsOne(), testing.check_steps, "not 0 at the start"),
    (OwnRule(), testing.check_steps, "a counter is negative"),
    (NoGradient(), testing.check_gradients, "not finite through action"),
    (Elsewhere(), testing.check_saved, "a step of the restored state"),
]


@pytest.mark.parametrize(
    ("env", "check", "message"),
    BROKEN,
    ids=[f"{type(e).__name__}-{c.__name__}" for e, c, _ in BROKEN],
)
def test_the_suite_notices(env, check, message):
    params = env.default_params()
    args = (env, params) if check is testing.check_static else (env, params, KEY)
    # A broken task may rely on promotions that our own tests forbid.
    with (
        jax.numpy_rank_promotion("allow"),
        jax.numpy_dtype_promotion("standard"),
        pytest.raises(AssertionError, match=message),
    ):
        check(*args)


@dataclass(frozen=True)
class Louder(LocalConcentration):
    """Says that it observes less than it does."""

    def space(self, params):
        return Box(-2.0, -1.0, (1,))


def test_the_suite_notices_what_gymnasium_does(local):
    env, params = local
    with pytest.raises(AssertionError, match="observation"):
        testing.check_adapter(replace(env, sensor=Louder()), params)


def test_gradients_go_through_the_numbers_that_a_step_reads(local):
    norms = testing.check_gradients(*local, KEY)
    assert norms["plume.sigma"] > 0
    assert norms["start.min_distance"] == 0
    assert "action" not in norms
    pair = testing.check_gradients(Pair(), Pair().default_params(), KEY)
    # An action is in 3, 2, 1 observations of a counter, and twice in the last state.
    np.testing.assert_allclose(pair["action"], np.sqrt(2 * (5**2 + 4**2 + 3**2)), rtol=1e-6)


@pytest.mark.parametrize("starts", [None, 2])
def test_random_steps_are_counted(starts):
    count = testing.check_steps(Pair(), Pair().default_params(), KEY, 500, lanes=10, starts=starts)
    assert count == (500, 20, {})  # episodes of 20 steps; two each lane, after 20 and 40 of 50


def test_a_task_in_which_nothing_is_drawn_says_so():
    env = Deaf()
    testing.check_seeds(env, env.default_params(), KEY, random=False)
    with pytest.raises(AssertionError, match="random=False, yet"):
        testing.check_seeds(Pair(), env.default_params(), KEY, random=False)


def test_created_and_closed_leave_a_pair_alone():
    env, params = Pair(), Pair().default_params()
    _, state = env.reset(KEY, params)
    for make in (lifecycle.created, lifecycle.closed):
        after = env.step(KEY, make(state), jnp.ones(2), params)
        chex.assert_trees_all_equal(after[1], make(state))
        np.testing.assert_array_equal(after[2], [0.0, 0.0])
