"""tests/policies/test_reactive: the baselines do what their names say."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plumejax
from plumejax.base.errors import ValidationError
from plumejax.base.spaces import Discrete
from plumejax.evaluation.episodes import play
from plumejax.policies.reactive import KeepOrTurn, Random, gradient, gradient_follower
from plumejax.search.composed import Stack
from plumejax.search.motion import NINE, Moves, Oriented, RunAndTumble
from plumejax.search.sensors import LocalConcentration, Position

SMALL = {"plume.sigma": 3.0, "ending.radius": 2.0, "max_steps": 200}


@pytest.mark.parametrize("motion", [Moves(), Moves(NINE), Oriented(), RunAndTumble()])
def test_following_the_gradient_finds_the_source_more_often_than_chance(motion):
    env, params = plumejax.make(
        "PlumeSearchLocal-v0", grid_size=(32, 32), motion=motion, overrides=SMALL
    )
    key = jax.random.key(0)
    followed = play(env, gradient_follower(env), key, params, 200)
    chance = play(env, Random(env.action_space(params)), key, params, 200)
    assert float(followed.found.mean()) > 0.9
    assert float(followed.steps.mean()) < 0.7 * float(chance.steps.mean())


def test_it_follows_the_full_field_as_it_does_the_local_reading(full, local):
    a = play(full[0], gradient_follower(full[0]), jax.random.key(1), full[1], 50)
    b = play(local[0], gradient_follower(local[0]), jax.random.key(1), local[1], 50)
    np.testing.assert_array_equal(a.steps, b.steps)


def test_keep_or_turn_keeps_on_a_rise_and_turns_on_a_fall():
    policy = KeepOrTurn((0, 1, 2, 3))
    carry = (jnp.float32(0.5), jnp.int32(2))
    keys = jax.random.split(jax.random.key(0), 50)
    rise = jax.vmap(lambda k: policy.act(k, carry, jnp.asarray([0.6], jnp.float32))[0])(keys)
    fall = jax.vmap(lambda k: policy.act(k, carry, jnp.asarray([0.4], jnp.float32))[0])(keys)
    assert set(rise.tolist()) == {2}
    assert set(fall.tolist()) == {0, 1, 3}


def test_random_draws_every_action_alike():
    policy = Random(Discrete(4))
    keys = jax.random.split(jax.random.key(0), 4000)
    actions = jax.vmap(lambda k: policy.act(k, (), None)[0])(keys)
    share = np.bincount(actions, minlength=4) / 4000
    # Four standard errors of a share of a quarter.
    assert np.all(np.abs(share - 0.25) < 4 * np.sqrt(0.25 * 0.75 / 4000))


def test_a_motion_without_a_follower_has_none():
    env, _ = plumejax.make("PlumeSearchLocal-v0", grid_size=(8, 8), motion=Still())
    assert gradient_follower(env) is None


def test_a_task_without_odour_has_none():
    env, params = plumejax.make("PlumeSearch-FullyObserved-v0", grid_size=(8, 8))
    assert gradient_follower(env) is None
    with pytest.raises(ValidationError, match="sensor of odour"):
        gradient(env, params)


def test_it_reads_the_odour_wherever_it_stands():
    env, params = plumejax.make(
        "Olfactory-Windy-Low-v0",
        sensor=Stack((("place", Position()), ("odour", LocalConcentration()))),
    )
    follower = gradient(env, params)
    rise = jnp.asarray([0.0, 0.0, 0.6], jnp.float32)
    action, _ = follower.act(jax.random.key(0), (jnp.float32(0.5), jnp.int32(2)), rise)
    assert int(action) == 2


@dataclass(frozen=True)
class Still:
    """A motion that goes nowhere: there is no climbing with it."""

    def default_params(self):
        return ()

    def space(self, params):
        return Discrete(1)

    def move(self, key, agent, action, air, arena, params):
        return agent

    def mask(self, agent, arena, params):
        return jnp.ones(1, bool)
