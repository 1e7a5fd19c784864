"""learning/networks: the actor-critics, feed-forward and recurrent."""

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from plumejax.learning.distributions import Categorical, Gaussian

Distribution = Categorical | Gaussian


def _dense(size: int, scale: float) -> nn.Dense:
    # Orthogonal matrices train no better here, and their decomposition takes seconds to compile.
    init = nn.initializers.variance_scaling(scale**2, "fan_in", "truncated_normal")
    return nn.Dense(size, kernel_init=init)


class _Head(nn.Module):
    """A perceptron to `outputs` numbers."""

    hidden: tuple[int, ...]
    outputs: int
    scale: float

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        for size in self.hidden:
            x = nn.tanh(_dense(size, 1.0)(x))
        return _dense(self.outputs, self.scale)(x)


class _ActorCritic(nn.Module):
    """An action distribution and a value from one vector of features.

    Means of a continuous action are in [-1, 1], its bounds as the network knows them.
    """

    actions: int
    discrete: bool
    hidden: tuple[int, ...]

    @nn.compact
    def __call__(self, x: jax.Array) -> tuple[Distribution, jax.Array]:
        outputs = self.actions if self.discrete else 2 * self.actions
        actor = _Head(self.hidden, outputs, 0.01, name="actor")(x)
        value = _Head(self.hidden, 1, 1.0, name="critic")(x)[..., 0]
        if self.discrete:
            return Categorical(actor), value
        mean, log_std = jnp.split(actor, 2, axis=-1)
        # A mean beyond the bounds is clipped whatever is drawn around it: nothing would be tried
        # there. And who is sure of what it has learned need not be where it has never been.
        return Gaussian(nn.tanh(mean), log_std - 0.5), value


class FeedForward(nn.Module):
    """Perceptrons for actor and critic; its memory is the encoder's stack, its state `()`.

    Attributes:
      actions: number of actions, or of components of a continuous one.
      discrete: whether actions are discrete.
      hidden: sizes of the hidden layers.
    """

    actions: int
    discrete: bool
    hidden: tuple[int, ...] = (64, 64)

    def setup(self) -> None:
        self.heads = _ActorCritic(self.actions, self.discrete, self.hidden)

    def blank(self) -> tuple[()]:
        """The state at the start of an episode."""
        return ()

    def __call__(self, state: tuple[()], x: jax.Array) -> tuple[Distribution, jax.Array, tuple[()]]:
        """`(distribution, value, state)` of inputs float32[..., F]."""
        return *self.heads(x), state

    def unroll(
        self, state: tuple[()], xs: jax.Array, starts: jax.Array
    ) -> tuple[Distribution, jax.Array]:
        """Distributions and values of inputs float32[T, N, F]."""
        return self.heads(xs)


CELLS: dict[str, Any] = {"gru": nn.GRUCell, "rnn": nn.SimpleCell, "lstm": nn.LSTMCell}
"""Recurrent layers by name: gated, plain with tanh, long short-term memory."""


class Recurrent(nn.Module):
    """A recurrent layer under perceptrons for actor and critic.

    Attributes:
      actions, discrete, hidden: as in `FeedForward`.
      size: units of the recurrent layer.
      cell: one of `CELLS`. The state is float32[..., size], of "lstm" two of these.
    """

    actions: int
    discrete: bool
    hidden: tuple[int, ...] = (64,)
    size: int = 64
    cell: str = "gru"

    def setup(self) -> None:
        self.inputs = _dense(self.size, 1.0)
        kernel = nn.initializers.lecun_normal()
        self.layer = CELLS[self.cell](self.size, recurrent_kernel_init=kernel)
        self.heads = _ActorCritic(self.actions, self.discrete, self.hidden)

    def blank(self) -> Any:
        """The state at the start of an episode."""
        zeros = jnp.zeros(self.size, jnp.float32)
        return (zeros, zeros) if self.cell == "lstm" else zeros

    def __call__(self, state: Any, x: jax.Array) -> tuple[Distribution, jax.Array, Any]:
        """`(distribution, value, state)` of a state and inputs float32[..., F]."""
        state, out = self.layer(state, nn.tanh(self.inputs(x)))
        return *self.heads(out), state

    def unroll(
        self, state: Any, xs: jax.Array, starts: jax.Array
    ) -> tuple[Distribution, jax.Array]:
        """Distributions and values of inputs float32[T, N, F] from states that lead with N.

        `starts` bool[T, N] marks the steps that begin an episode: there the state is blank.
        """

        def one(layer: Any, state: Any, inputs: tuple[jax.Array, jax.Array]) -> Any:
            x, start = inputs
            state = jax.tree.map(lambda s: jnp.where(start[:, None], 0.0, s), state)
            return layer(state, x)

        scan = nn.scan(one, variable_broadcast="params", split_rngs={"params": False})
        _, out = scan(self.layer, state, (nn.tanh(self.inputs(xs)), starts))
        return self.heads(out)


Network = FeedForward | Recurrent


def initial_parameters(network: Network, key: jax.Array, num_inputs: int) -> Any:
    """The network's parameters, drawn with `key` (consumed)."""
    return network.init(key, network.blank(), jnp.zeros(num_inputs, jnp.float32))


def forward(
    network: Network, parameters: Any, state: Any, inputs: jax.Array
) -> tuple[Distribution, jax.Array, Any]:
    """`(distribution, value, state)` of inputs float32[..., F]: one step of the network."""
    out: Any = network.apply(parameters, state, inputs)
    return out


def unroll(
    network: Network, parameters: Any, state: Any, inputs: jax.Array, starts: jax.Array
) -> tuple[Distribution, jax.Array]:
    """`(distribution, value)` of sequences float32[T, N, F]; see the network's `unroll`."""
    out: Any = network.apply(parameters, state, inputs, starts, method="unroll")
    return out
