"""tests/interop/test_purejaxrl_way: a trainer as purejaxrl has them: one compiled function,
vmapped environments of five values in a scan, a wrapper on gymnax's base, all `info` stacked."""

from typing import Any, NamedTuple

import flax.linen as nn
import gymnax
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax.training.train_state import TrainState
from gymnax.wrappers.purerl import GymnaxWrapper

from plumejax.adapters.gymnax import FIVE_VALUES, register_all

pytestmark = pytest.mark.interop

LANES, STEPS, UPDATES, EPOCHS, PARTS = 64, 64, 40, 4, 4
GAMMA, LAMBDA, CLIP, ENTROPY, RATE = 0.97, 0.95, 0.2, 0.01, 3e-3


class Watched(NamedTuple):
    """The states of the environments, and the moments of what was observed."""

    env: Any
    count: jax.Array
    mean: jax.Array
    variance: jax.Array


class Normalised(GymnaxWrapper):
    """Many environments as one, whose observations have mean 0 and variance 1."""

    def reset(self, key, params):
        keys = jax.random.split(key, LANES)
        seen, env = jax.vmap(self._env.reset, in_axes=(0, None))(keys, params)
        return self._see(seen, Watched(env, 0.0, jnp.zeros(seen.shape[1:]), 0.0))

    def step(self, key, state, action, params):
        keys = jax.random.split(key, LANES)
        seen, env, reward, done, info = jax.vmap(self._env.step, in_axes=(0, 0, 0, None))(
            keys, state.env, action, params
        )
        return *self._see(seen, state._replace(env=env)), reward, done, info

    def _see(self, seen, state):
        count = state.count + LANES
        shift = seen.mean(0) - state.mean
        mean = state.mean + shift * LANES / count
        squares = state.variance * state.count + seen.var(0) * LANES
        variance = (squares + shift**2 * state.count * LANES / count) / count
        state = Watched(state.env, count, mean, variance)
        return (seen - mean) / jnp.sqrt(variance + 1e-8), state


class ActorCritic(nn.Module):
    """Logits and a value, of a perceptron each."""

    actions: int

    @nn.compact
    def __call__(self, x):
        def perceptron(outputs):
            return nn.Sequential([nn.Dense(32), nn.tanh, nn.Dense(32), nn.tanh, nn.Dense(outputs)])

        return perceptron(self.actions)(x), perceptron(1)(x)[..., 0]


class Step(NamedTuple):
    """One step of every lane."""

    seen: jax.Array
    action: jax.Array
    log_prob: jax.Array
    value: jax.Array
    reward: jax.Array
    done: jax.Array


def log_prob_of(logits, action):
    return jnp.take_along_axis(nn.log_softmax(logits), action[..., None], -1)[..., 0]


def make_train(env, params):
    env = Normalised(env)
    network = ActorCritic(env.num_actions)

    def play(carry, key):
        learner, state, seen = carry
        act, move = jax.random.split(key)
        logits, value = learner.apply_fn(learner.params, seen)
        action = jax.random.categorical(act, logits)
        after, state, reward, done, info = env.step(move, state, action, params)
        step = Step(seen, action, log_prob_of(logits, action), value, reward, done)
        return (learner, state, after), (step, info)

    def back(carry, step):
        advantage, next_value = carry
        delta = step.reward + GAMMA * next_value * (1 - step.done) - step.value
        advantage = delta + GAMMA * LAMBDA * (1 - step.done) * advantage
        return (advantage, step.value), advantage

    def loss(weights, step, advantage, target):
        logits, value = network.apply(weights, step.seen)
        ratio = jnp.exp(log_prob_of(logits, step.action) - step.log_prob)
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        gain = jnp.minimum(ratio * advantage, jnp.clip(ratio, 1 - CLIP, 1 + CLIP) * advantage)
        surprise = -(nn.softmax(logits) * nn.log_softmax(logits)).sum(-1)
        return -gain.mean() + 0.5 * ((value - target) ** 2).mean() - ENTROPY * surprise.mean()

    def learn(learner, part):
        return learner.apply_gradients(grads=jax.grad(loss)(learner.params, *part)), None

    def update(carry, key):
        playing, shuffling = jax.random.split(key)
        (learner, state, seen), (steps, info) = jax.lax.scan(
            play, carry, jax.random.split(playing, STEPS)
        )
        value = learner.apply_fn(learner.params, seen)[1]
        _, advantage = jax.lax.scan(back, (jnp.zeros(LANES), value), steps, reverse=True)
        data = (steps, advantage, advantage + steps.value)
        data = jax.tree.map(lambda x: x.reshape(LANES * STEPS, *x.shape[2:]), data)

        def epoch(learner, key):
            order = jax.random.permutation(key, LANES * STEPS).reshape(PARTS, -1)
            return jax.lax.scan(learn, learner, jax.tree.map(lambda x: x[order], data))

        learner, _ = jax.lax.scan(epoch, learner, jax.random.split(shuffling, EPOCHS))
        return (learner, state, seen), {**info, "returned_episode": steps.done}

    def train(key):
        starting, weighing, updating = jax.random.split(key, 3)
        seen, state = env.reset(starting, params)
        optimiser = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(RATE))
        weights = network.init(weighing, seen)
        learner = TrainState.create(apply_fn=network.apply, params=weights, tx=optimiser)
        return jax.lax.scan(update, (learner, state, seen), jax.random.split(updating, UPDATES))

    return train


def test_it_learns_to_search(search):
    """Random success is told by the first tenth of the updates, during which little is learned."""
    register_all()
    env, params = gymnax.make(
        "PlumeSearchLocal-v0" + FIVE_VALUES, overrides=search["overrides"], **search["static"]
    )
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        _, info = jax.jit(make_train(env, params))(jax.random.key(0))
    done, found = np.asarray(info["returned_episode"]), np.asarray(info["found"])
    first, last = slice(UPDATES // 10), slice(-UPDATES // 10, None)
    before, after = (found[part][done[part]] for part in (first, last))
    print(f"success {before.mean():.3f} of {before.size}, then {after.mean():.3f} of {after.size}")
    assert min(before.size, after.size) > 200
    assert after.mean() > before.mean() + 0.5
