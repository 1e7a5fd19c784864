"""benchmarks/trainers: PPO steps a second: ours, and one in PureJaxRL's style on gymnax CartPole.

Both have 1024 environments, 32 steps, 4 epochs of 4 minibatches, tanh layers of 64 and 64 for actor
and critic each, Adam, and normalise what they see with running moments. The other one is written
here for the comparison: vmapped environments in a scan, generalised advantages, epochs that shuffle
all steps, one compiled function.
"""

import time
from functools import partial
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax

import plumejax
from benchmarks.measure import Case, Prepared, start
from benchmarks.ours import LOCAL
from plumejax.learning.ppo import Hyperparameters, Shapes, continue_training, ppo

SHAPES = Shapes(num_envs=1024, num_steps=32, num_minibatches=4, num_epochs=4, hidden=(64, 64))
GAMMA, LAMBDA, CLIP, ENTROPY, VALUE = 0.99, 0.95, 0.2, 0.01, 0.5


def ours(stack: int) -> Case:
    """Our PPO; `stack` steps are shown, which makes 6 numbers each."""
    label = f"plumejax PPO, feed-forward, {LOCAL}, {6 * stack} inputs: a step of one lane"
    return Case(f"ppo/{stack}", label, SHAPES.num_envs, partial(_ours, stack))


def _ours(stack: int) -> Prepared:
    env, params = plumejax.make(LOCAL)
    shapes = Shapes(**{**vars(SHAPES), "stack": stack})
    algorithm = ppo(env, params, shapes)
    training = start(algorithm.init, jax.random.key(0), params)
    update = partial(continue_training, algorithm, updates=1)
    hyper = Hyperparameters(updates=1e9)
    return _updates(lambda training: update(training, params, hyper)[0], training)


def purejaxrl_style(normalise: bool) -> Case:
    what = "inputs normalised" if normalise else "inputs as they are"
    label = f"PureJaxRL-style PPO, same network, gymnax CartPole-v1, 4 {what}: a step of one lane"
    key = "ppo-cartpole/normalised" if normalise else "ppo-cartpole/plain"
    return Case(key, label, SHAPES.num_envs, partial(_purejaxrl_style, normalise))


def _updates(update: Any, training: Any) -> Prepared:
    """One compiled update a call, the training donated."""
    began = time.perf_counter()
    compiled = jax.jit(update, donate_argnums=0).lower(training).compile()
    facts = {"compile_seconds": time.perf_counter() - began}

    def once() -> int:
        nonlocal training
        training = jax.block_until_ready(compiled(training))
        return SHAPES.num_envs * SHAPES.num_steps

    return Prepared(once, facts)


class ActorCritic(nn.Module):
    """Logits and a value, from a perceptron each."""

    actions: int

    @nn.compact
    def __call__(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        def head(x: jax.Array, outputs: int) -> jax.Array:
            for size in SHAPES.hidden:
                x = nn.tanh(nn.Dense(size)(x))
            return nn.Dense(outputs)(x)

        return head(x, self.actions), head(x, 1)[..., 0]


class Moments(NamedTuple):
    """Running moments of the observations."""

    count: jax.Array
    mean: jax.Array
    variance: jax.Array


class Step(NamedTuple):
    """One step of every environment."""

    seen: jax.Array
    action: jax.Array
    log_prob: jax.Array
    value: jax.Array
    reward: jax.Array
    done: jax.Array


class Training(NamedTuple):
    """All that an update goes on from."""

    key: jax.Array
    parameters: Any
    optimiser: Any
    env_state: Any
    observation: jax.Array
    moments: Moments


def _merge(moments: Moments, x: jax.Array) -> Moments:
    """With the vectors x [N, F] counted in (Chan, Golub, LeVeque 1983)."""
    n = x.shape[0]
    total = moments.count + n
    shift = x.mean(0) - moments.mean
    squares = moments.variance * moments.count + x.var(0) * n
    squares = squares + jnp.square(shift) * moments.count * n / total
    return Moments(total, moments.mean + shift * n / total, squares / total)


def _purejaxrl_style(normalise: bool) -> Prepared:
    import gymnax

    env, params = gymnax.make("CartPole-v1")
    n, length = SHAPES.num_envs, SHAPES.num_steps
    network = ActorCritic(env.num_actions)
    optimiser = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(2.5e-4, eps=1e-5))

    def see(moments: Moments, observation: jax.Array) -> jax.Array:
        if not normalise:
            return observation
        return (observation - moments.mean) / jnp.sqrt(moments.variance + 1e-8)

    def collect(training: Training, key: jax.Array) -> tuple[Training, Step]:
        act_key, step_key = jax.random.split(key)
        seen = see(training.moments, training.observation)
        logits, value = network.apply(training.parameters, seen)
        action = jax.random.categorical(act_key, logits)
        log_prob = _log_prob(logits, action)
        observation, env_state, reward, terminated, truncated, _ = jax.vmap(
            env.step, in_axes=(0, 0, 0, None)
        )(jax.random.split(step_key, n), training.env_state, action, params)
        if normalise:
            training = training._replace(moments=_merge(training.moments, observation))
        training = training._replace(env_state=env_state, observation=observation)
        done = terminated | truncated
        return training, Step(seen, action, log_prob, value, reward, done)

    def loss(parameters: Any, part: tuple[Step, jax.Array, jax.Array]) -> jax.Array:
        step, advantage, target = part
        logits, value = network.apply(parameters, step.seen)
        ratio = jnp.exp(_log_prob(logits, step.action) - step.log_prob)
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        clipped = jnp.clip(ratio, 1 - CLIP, 1 + CLIP) * advantage
        policy = -jnp.minimum(ratio * advantage, clipped).mean()
        near = step.value + jnp.clip(value - step.value, -CLIP, CLIP)
        error = jnp.maximum(jnp.square(value - target), jnp.square(near - target)).mean() / 2
        log_probs = jax.nn.log_softmax(logits)
        entropy = -(jnp.exp(log_probs) * log_probs).sum(-1).mean()
        return policy + VALUE * error - ENTROPY * entropy

    def epoch(carry: tuple[Any, Any], key: jax.Array, data: Any) -> tuple[tuple[Any, Any], None]:
        order = jax.random.permutation(key, n * length)
        parts = jax.tree.map(
            lambda x: x.reshape(n * length, *x.shape[2:])[order].reshape(
                SHAPES.num_minibatches, -1, *x.shape[2:]
            ),
            data,
        )

        def gradient_step(carry: tuple[Any, Any], part: Any) -> tuple[tuple[Any, Any], None]:
            parameters, state = carry
            change, state = optimiser.update(jax.grad(loss)(parameters, part), state)
            return (optax.apply_updates(parameters, change), state), None

        return jax.lax.scan(gradient_step, carry, parts)

    def update(training: Training) -> Training:
        key, collect_key, learn_key = jax.random.split(training.key, 3)
        training, steps = jax.lax.scan(collect, training, jax.random.split(collect_key, length))
        seen = see(training.moments, training.observation)
        last_value = network.apply(training.parameters, seen)[1]
        advantage = _advantages(steps, last_value)
        data = (steps, advantage, advantage + steps.value)
        (parameters, state), _ = jax.lax.scan(
            partial(epoch, data=data),
            (training.parameters, training.optimiser),
            jax.random.split(learn_key, SHAPES.num_epochs),
        )
        return training._replace(key=key, parameters=parameters, optimiser=state)

    def init(key: jax.Array) -> Training:
        key, network_key, env_key = jax.random.split(key, 3)
        reset = jax.vmap(env.reset, in_axes=(0, None))
        observation, env_state = reset(jax.random.split(env_key, n), params)
        parameters = network.init(network_key, observation[0])
        moments = Moments(jnp.float32(1e-4), jnp.zeros(4), jnp.ones(4))
        return Training(
            key, parameters, optimiser.init(parameters), env_state, observation, moments
        )

    return _updates(update, start(init, jax.random.key(0)))


def _log_prob(logits: jax.Array, action: jax.Array) -> jax.Array:
    return jnp.take_along_axis(jax.nn.log_softmax(logits), action[..., None], -1)[..., 0]


def _advantages(steps: Step, last_value: jax.Array) -> jax.Array:
    """Generalised advantage estimates [T, N]."""

    def one(carry: tuple[jax.Array, jax.Array], step: Step) -> Any:
        advantage, next_value = carry
        alive = 1.0 - step.done
        delta = step.reward + GAMMA * next_value * alive - step.value
        advantage = delta + GAMMA * LAMBDA * alive * advantage
        return (advantage, step.value), advantage

    start = (jnp.zeros_like(last_value), last_value)
    return jax.lax.scan(one, start, steps, reverse=True)[1]
