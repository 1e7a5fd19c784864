"""learning/ppo: proximal policy optimisation as a pure function of (key, hyperparameters)."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from flax import struct
from jax.sharding import Mesh

from plumejax.base.agents import PerAgent, of_one
from plumejax.base.batch import Batch
from plumejax.base.errors import require
from plumejax.base.rollout import Totals, Transition, ended_episodes
from plumejax.learning.agent import Agent
from plumejax.learning.curricula import params_at
from plumejax.learning.encoding import Encoder, Memory, Moments, encoder_for
from plumejax.learning.networks import (
    CELLS,
    FeedForward,
    Network,
    Recurrent,
    forward,
    initial_parameters,
    unroll,
)


@dataclass(frozen=True)
class Shapes:
    """What fixes the shapes of a training: static.

    Attributes:
      num_envs: lanes stepped side by side; every agent of an episode is one.
      num_steps: steps of each lane an update.
      num_minibatches: parts that the lanes are split into for a gradient step; divides `num_envs`.
      num_epochs: passes over the data of an update.
      memory: "none" (feed-forward on what is seen now), "stack" (on the last few steps), or one of
        the recurrent `CELLS`, "gru", "rnn" and "lstm".
      stack: steps that "stack" shows the network.
      hidden: sizes of the hidden layers of actor and critic.
      units: of the recurrent layer.
      floor: in the plume's unit, > 0; readings below it count as it.
    """

    num_envs: int = 1024
    num_steps: int = 32
    num_minibatches: int = 4
    num_epochs: int = 4
    memory: str = "stack"
    stack: int = 4
    hidden: tuple[int, ...] = (64, 64)
    units: int = 64
    floor: float = 1e-15

    def __post_init__(self) -> None:
        for name in ("num_envs", "num_steps", "num_minibatches", "num_epochs", "stack", "units"):
            value = getattr(self, name)
            require(isinstance(value, int) and value > 0, name, value, "an int > 0")
        require(
            self.num_envs % self.num_minibatches == 0,
            "num_envs",
            self.num_envs,
            f"a multiple of num_minibatches = {self.num_minibatches}",
        )
        number = isinstance(self.floor, int | float) and self.floor > 0
        require(number, "floor", self.floor, "a number > 0")
        sizes = isinstance(self.hidden, tuple) and all(
            type(x) is int and x > 0 for x in self.hidden
        )
        require(sizes, "hidden", self.hidden, "a tuple of ints > 0")
        known = ("none", "stack", *CELLS)
        require(self.memory in known, "memory", self.memory, f"one of {', '.join(known)}")


class Hyperparameters(struct.PyTreeNode):
    """The numbers of a training, each a scalar that may be traced and so swept with `vmap`.

    Attributes:
      learning_rate: of Adam, at the start; it falls linearly over `updates`.
      anneal: the share of the learning rate that is gone at the end, in [0, 1].
      updates: number of updates of the whole training.
      gamma: discount a step.
      gae_lambda: of generalised advantage estimation (Schulman et al. 2016).
      clip: of the probability ratio (Schulman et al. 2017).
      entropy: weight of the entropy bonus.
      value: weight of the value loss.
      ahead: weight of what lies ahead of an episode that ran out of time, in [0, 1]; at 0 the limit
        is an end as any other.
      max_grad_norm: gradients are scaled down to this norm.
    """

    learning_rate: Any = 3e-3
    anneal: Any = 1.0
    updates: Any = 100.0
    gamma: Any = 0.99
    gae_lambda: Any = 0.95
    clip: Any = 0.2
    entropy: Any = 0.003
    value: Any = 0.5
    ahead: Any = 1.0
    max_grad_norm: Any = 0.5


class Training(NamedTuple):
    """Where a training stands; the whole of it, so that it can be saved and gone on from.

    Attributes:
      key: typed key of what is still to be drawn.
      update: int32[], updates done.
      parameters: of the network.
      optimiser: Adam's state.
      moments: the observation normaliser.
      env_state: of every lane, with its last observation.
      memory: of the encoder, every lane.
      hidden: the network's state, every lane.
    """

    key: jax.Array
    update: jax.Array
    parameters: Any
    optimiser: Any
    moments: Moments
    env_state: Any
    memory: Memory
    hidden: Any


class Metrics(NamedTuple):
    """What one update reports, float32[] each; `episodes` are those that ended in it."""

    episodes: Totals
    policy_loss: jax.Array
    value_loss: jax.Array
    entropy: jax.Array
    kl: jax.Array
    gradient_norm: jax.Array


class _Data(NamedTuple):
    """One step of every lane, for the loss."""

    inputs: jax.Array
    start: jax.Array
    action: jax.Array
    log_prob: jax.Array
    value: jax.Array
    reward: jax.Array
    done: jax.Array


_scale_by_adam = optax.scale_by_adam(eps=1e-5)


@dataclass(frozen=True)
class PPO:
    """PPO on one task: static, so that its functions compile once. See `ppo` to make one.

    Attributes:
      batch: the lanes, a `Batch`, or a `PerAgent` where several agents share the policy.
      shapes: what fixes the shapes.
      encoder: from observations to network inputs.
      network: the actor-critic.
    """

    batch: Batch | PerAgent
    shapes: Shapes
    encoder: Encoder
    network: Network

    def init(self, key: jax.Array, params: Any) -> Training:
        """A training that has not begun; the key is consumed. `params` are the task's, or a
        `Curriculum`."""
        params = params_at(params, jnp.zeros((), jnp.float32))
        key, network_key, env_key = jax.random.split(key, 3)
        observation, env_state = self.batch.reset(env_key, params)
        parameters = initial_parameters(self.network, network_key, self.encoder.num_inputs)
        return Training(
            key=key,
            update=jnp.zeros((), jnp.int32),
            parameters=parameters,
            optimiser=_scale_by_adam.init(parameters),
            moments=self.encoder.first_moments(observation),
            env_state=env_state,
            memory=self._lanes(self.encoder.blank()),
            hidden=self._lanes(self.network.blank()),
        )

    def update(
        self, training: Training, params: Any, hyper: Hyperparameters
    ) -> tuple[Training, Metrics]:
        """One update: `num_steps` steps of every lane, then the epochs over them. Both `params` and
        `hyper` may be a `Curriculum`."""
        share = training.update.astype(jnp.float32) / params_at(hyper, jnp.float32(0)).updates
        params = params_at(params, share)
        hyper = jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), params_at(hyper, share))
        hidden = training.hidden
        training, last_value, data, totals, moments = self._collect(training, params, hyper)
        advantage = _advantages(data, last_value, hyper)
        training, losses = self._learn(training, hidden, data, advantage, hyper)
        training = training._replace(moments=moments, update=training.update + jnp.int32(1))
        return training, Metrics(totals, *losses)

    def agent(self, training: Training) -> Agent:
        """The policy as it stands, of one agent."""
        return Agent(self.encoder, self.network, training.parameters, training.moments)

    def untrained(self, key: jax.Array) -> Agent:
        """The policy of a network drawn with `key` (consumed), with a normaliser that has seen
        nothing."""
        parameters = initial_parameters(self.network, key, self.encoder.num_inputs)
        zeros = jnp.zeros(self.encoder.num_features, jnp.float32)
        moments = Moments(jnp.zeros((), jnp.float32), zeros, jnp.ones_like(zeros))
        return Agent(self.encoder, self.network, parameters, moments)

    def _lanes(self, tree: Any) -> Any:
        n = self.batch.num_envs
        return self.batch.shard(jax.tree.map(lambda x: jnp.broadcast_to(x, (n, *x.shape)), tree))

    def _collect(
        self, training: Training, params: Any, hyper: Hyperparameters
    ) -> tuple[Training, jax.Array, _Data, Totals, Moments]:
        """Steps every lane; also the values after the last step and the new normaliser."""
        encode = jax.vmap(self.encoder.encode, in_axes=(None, 0, 0))
        parameters, moments = training.parameters, training.moments
        n = self.batch.num_envs

        def keep(done: jax.Array, tree: Any, blank: Any) -> Any:
            return jax.tree.map(
                lambda x, b: jnp.where(done.reshape(n, *(1,) * b.ndim), b[None], x), tree, blank
            )

        def one(carry: Any, key: jax.Array) -> tuple[Any, _Data]:
            env_state, memory, hidden, start, totals, shift, square = carry
            act_key, step_key = jax.random.split(key)
            inputs, memory, features = encode(moments, memory, env_state.observation)
            distribution, value, hidden = forward(self.network, parameters, hidden, inputs)
            action = distribution.sample(act_key)
            before = env_state.observation
            _, env_state, reward, terminated, truncated, info = self.batch.step(
                step_key, env_state, self.encoder.allowed(action), params
            )
            memory = jax.vmap(self.encoder.remember)(memory, action)
            # An episode that ran out of time is not over: its last observation has a value.
            cut = truncated & ~terminated

            def beyond() -> jax.Array:
                final, _, _ = encode(moments, memory, info["final_observation"])
                return forward(self.network, parameters, hidden, final)[1]

            ahead = jax.lax.cond(jnp.any(cut), beyond, lambda: jnp.zeros_like(value))
            kept = hyper.gamma * hyper.ahead
            paid = reward + kept * jnp.where(cut, ahead, jnp.zeros_like(ahead))
            done = terminated | truncated
            data = _Data(inputs, start, action, distribution.log_prob(action), value, paid, done)
            totals = ended_episodes.add(
                totals, Transition(before, action, reward, terminated, truncated, info)
            )
            difference = features - moments.mean[None]
            carry = (
                env_state,
                keep(done, memory, self.encoder.blank()),
                keep(done, hidden, self.network.blank()),
                done,
                totals,
                shift + difference.mean(0),
                square + jnp.square(difference).mean(0),
            )
            return carry, data

        steps = self.shapes.num_steps
        key, run_key = jax.random.split(training.key)
        zeros = jnp.zeros_like(moments.mean)
        fresh = jnp.zeros(n, bool)
        begin = (
            training.env_state,
            training.memory,
            training.hidden,
            fresh,
            ended_episodes.start(),
            zeros,
            zeros,
        )
        carry, data = jax.lax.scan(one, begin, jax.random.split(run_key, steps))
        env_state, memory, hidden, _, totals, shift, square = carry
        inputs, _, _ = encode(moments, memory, env_state.observation)
        _, last_value, _ = forward(self.network, parameters, hidden, inputs)
        training = training._replace(key=key, env_state=env_state, memory=memory, hidden=hidden)
        per_step = jnp.float32(1.0 / steps)
        moments = moments.merge(jnp.float32(steps * n), shift * per_step, square * per_step)
        return training, last_value, data, totals, moments

    def _learn(
        self,
        training: Training,
        hidden: Any,
        data: _Data,
        advantage: jax.Array,
        hyper: Hyperparameters,
    ) -> tuple[Training, tuple[jax.Array, ...]]:
        """The epochs; minibatches are whole sequences of some lanes."""
        shapes = self.shapes
        target = advantage + data.value
        share = jnp.minimum(training.update.astype(jnp.float32) / hyper.updates, 1.0)
        rate = hyper.learning_rate * (1.0 - hyper.anneal * share)

        def loss(parameters: Any, hidden: Any, part: Any) -> tuple[jax.Array, tuple]:
            data, advantage, target = part
            distribution, value = unroll(self.network, parameters, hidden, data.inputs, data.start)
            log_ratio = distribution.log_prob(data.action) - data.log_prob
            ratio = jnp.exp(log_ratio)
            advantage = (advantage - advantage.mean()) / (advantage.std() + jnp.float32(1e-8))
            clipped = jnp.clip(ratio, 1.0 - hyper.clip, 1.0 + hyper.clip)
            policy = -jnp.minimum(ratio * advantage, clipped * advantage).mean()
            error = 0.5 * jnp.square(value - target).mean()
            entropy = distribution.entropy().mean()
            kl = (ratio - 1.0 - log_ratio).mean()
            total = policy + hyper.value * error - hyper.entropy * entropy
            return total, (policy, error, entropy, kl)

        def step(carry: tuple[Any, Any], index: jax.Array) -> tuple[tuple[Any, Any], tuple]:
            parameters, optimiser = carry
            part = jax.tree.map(lambda x: x[:, index], (data, advantage, target))
            own = jax.tree.map(lambda x: x[index], hidden)
            (_, report), gradient = jax.value_and_grad(loss, has_aux=True)(parameters, own, part)
            norm = optax.tree.norm(gradient)
            scale = jnp.minimum(1.0, hyper.max_grad_norm / (norm + jnp.float32(1e-8)))
            gradient = jax.tree.map(lambda g: g * scale, gradient)
            with jax.numpy_dtype_promotion("standard"):  # optax mixes float and int32
                change, optimiser = _scale_by_adam.update(gradient, optimiser)
            parameters = jax.tree.map(lambda p, c: p - rate * c, parameters, change)
            return (parameters, optimiser), (*report, norm)

        key, shuffle_key = jax.random.split(training.key)
        orders = jax.vmap(lambda k: jax.random.permutation(k, shapes.num_envs))(
            jax.random.split(shuffle_key, shapes.num_epochs)
        )
        parts = orders.reshape(shapes.num_epochs * shapes.num_minibatches, -1)
        (parameters, optimiser), losses = jax.lax.scan(
            step, (training.parameters, training.optimiser), parts
        )
        training = training._replace(key=key, parameters=parameters, optimiser=optimiser)
        return training, tuple(x.mean() for x in losses)


def ppo(env: Any, params: Any, shapes: Shapes | None = None, mesh: Mesh | None = None) -> PPO:
    """PPO on a task, whose spaces under `params` (concrete) fix the network.

    Where a task has several agents they share it, and each is a lane. With a `mesh` of one axis the
    lanes are shared out among its devices, as in a `Batch`; the training is the same, to rounding.

    Raises:
      ValidationError: an action space that cannot be learned.
    """
    shapes = shapes or Shapes()
    agents = env.num_agents
    seen, acts = env.observation_space(params), env.action_space(params)
    stack = shapes.stack if shapes.memory == "stack" else 1
    if agents:
        seen, acts = of_one(seen), of_one(acts)
    encoder = encoder_for(seen, acts, stack, shapes.floor)
    network: Network = FeedForward(encoder.actions, encoder.discrete, shapes.hidden)
    if shapes.memory in CELLS:
        network = Recurrent(
            encoder.actions, encoder.discrete, shapes.hidden, shapes.units, shapes.memory
        )
    if not agents:
        return PPO(Batch(env, shapes.num_envs, mesh=mesh), shapes, encoder, network)
    require(
        shapes.num_envs % agents == 0, "num_envs", shapes.num_envs, f"a multiple of {agents} agents"
    )
    lanes = PerAgent(Batch(env, shapes.num_envs // agents, mesh=mesh), agents)
    return PPO(lanes, shapes, encoder, network)


def train(
    algorithm: PPO, key: jax.Array, params: Any, hyper: Hyperparameters, updates: int
) -> tuple[Training, Metrics]:
    """A whole training, pure: `vmap` it over keys or over hyperparameters.

    Args:
      algorithm: from `ppo`.
      key: typed key, consumed.
      params: of the task.
      hyper: the numbers, or a `Curriculum` of them; `hyper.updates` sets where the learning rate
        ends.
      updates: how many updates to run, static.

    Returns:
      The training's end, and `Metrics` whose leaves lead with `updates`.
    """
    start = algorithm.init(key, params)
    return continue_training(algorithm, start, params, hyper, updates)


def continue_training(
    algorithm: PPO, training: Training, params: Any, hyper: Hyperparameters, updates: int
) -> tuple[Training, Metrics]:
    """`updates` (static) more updates of a training; pure."""

    def one(training: Training, _: None) -> tuple[Training, Metrics]:
        return algorithm.update(training, params, hyper)

    return jax.lax.scan(one, training, None, updates)


def _advantages(data: _Data, last_value: jax.Array, hyper: Hyperparameters) -> jax.Array:
    """float32[T, N]: generalised advantage estimates; an episode's end cuts them off."""

    def one(
        carry: tuple[jax.Array, jax.Array], step: _Data
    ) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
        advantage, next_value = carry
        alive = (~step.done).astype(jnp.float32)
        delta = step.reward + hyper.gamma * next_value * alive - step.value
        advantage = delta + hyper.gamma * hyper.gae_lambda * alive * advantage
        return (advantage, step.value), advantage

    start = (jnp.zeros_like(last_value), last_value)
    return jax.lax.scan(one, start, data, reverse=True)[1]
