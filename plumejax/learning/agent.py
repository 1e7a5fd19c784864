"""learning/agent: a trained network as a policy: a pytree with `init` and `act`."""

from typing import Any

import jax
from flax import struct

from plumejax.base.agents import Shared
from plumejax.base.errors import require
from plumejax.learning.encoding import Encoder, Memory, Moments
from plumejax.learning.networks import Distribution, Network, forward


class Agent(struct.PyTreeNode):
    """A policy that draws its actions from the network's distribution.

    Attributes:
      encoder, network: static.
      parameters: of the network.
      moments: the observation normaliser.
    """

    encoder: Encoder = struct.field(pytree_node=False)
    network: Network = struct.field(pytree_node=False)
    parameters: Any
    moments: Moments

    def init(self, key: jax.Array) -> tuple[Memory, Any]:
        """A blank memory; nothing is drawn."""
        return self.encoder.blank(), self.network.blank()

    def act(
        self, key: jax.Array, carry: tuple[Memory, Any], observation: Any
    ) -> tuple[jax.Array, tuple[Memory, Any]]:
        """`(action, carry)`; the key is consumed."""
        memory, hidden = carry
        inputs, memory, _ = self.encoder.encode(self.moments, memory, observation)
        distribution, _, hidden = forward(self.network, self.parameters, hidden, inputs)
        action = self._choose(key, distribution)
        memory = self.encoder.remember(memory, action)
        return self.encoder.allowed(action), (memory, hidden)

    def _choose(self, key: jax.Array, distribution: Distribution) -> jax.Array:
        return distribution.sample(key)


class Deterministic(Agent):
    """The same, but that it takes the likeliest action each time."""

    def _choose(self, key: jax.Array, distribution: Distribution) -> jax.Array:
        return distribution.mode()


def deterministic(agent: Any) -> Any:
    """An `Agent`, or one `Shared` by several, without chance.

    Raises `ValidationError` for another policy.
    """
    if isinstance(agent, Shared):
        return agent.replace(policy=deterministic(agent.policy))
    require(isinstance(agent, Agent), "agent", agent, "a trained one, from load_agent")
    return Deterministic(agent.encoder, agent.network, agent.parameters, agent.moments)
