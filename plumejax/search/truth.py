"""search/truth: a sensor that sees what is, for agents that need not search."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from plumejax.base.errors import require
from plumejax.plumes.interface import Air
from plumejax.search.environment import PlumeSearch
from plumejax.search.rewards import InformationGain
from plumejax.search.sensors import NoParams
from plumejax.search.state import Agent, Params, Scene


class World(struct.PyTreeNode):
    """What there is to know of a search, but for where the odour is.

    Attributes:
      agent: the searcher, with what its motion keeps.
      sources: float32[S, d], where the sources are.
      air: the `Air` where the agent stands, one probe.
    """

    agent: Agent
    sources: jax.Array
    air: Air


@dataclass(frozen=True, eq=False)
class Worlds:
    """The space of a `World`: all finite trees of arrays of these shapes and dtypes.

    Attributes:
      like: a tree with a shape and a dtype at each leaf.
    """

    like: Any

    def sample(self, key: jax.Array) -> Any:
        """Normal numbers, fair flags: worlds in form, not what a search comes to."""
        leaves, form = jax.tree.flatten(self.like)
        keys = jax.random.split(key, len(leaves))
        return jax.tree.unflatten(form, map(_drawn, keys, leaves))

    def contains(self, x: Any) -> jax.Array:
        leaves = [jnp.asarray(leaf) for leaf in jax.tree.leaves(x)]
        form: Any = jax.tree.structure(x)
        kinds = [_kind(leaf) for leaf in jax.tree.leaves(self.like)]
        if form != jax.tree.structure(self.like) or list(map(_kind, leaves)) != kinds:
            return jnp.asarray(False)
        return jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in leaves]))


def _kind(leaf: Any) -> tuple[Any, Any]:
    return leaf.shape, leaf.dtype


def _drawn(key: jax.Array, like: Any) -> jax.Array:
    return jax.random.normal(key, like.shape, jnp.float32).astype(like.dtype)


@dataclass(frozen=True)
class Truth:
    """Observes the `World`: of a perfect agent's search, see `told`.

    Attributes:
      search: the search that it observes; its sensor plays no part.
    """

    search: PlumeSearch

    @property
    def random_step(self) -> bool:
        """As of the search's own sensor: what draws decides how keys are split, and an episode
        should begin where the search's own begins under the same key."""
        return getattr(self.search.sensor, "random_step", True)

    def default_params(self) -> NoParams:
        return NoParams()

    def start(self, params: Params) -> tuple[()]:
        return ()

    def probes(self, agent: Agent, params: Params) -> jax.Array:
        return agent.position[None]

    def observe(
        self, key: jax.Array, state: tuple[()], scene: Scene, params: Params
    ) -> tuple[World, tuple[()]]:
        return World(scene.agent, scene.sources, scene.air), state

    def space(self, params: Params) -> Worlds:
        told_so = replace(self.search, sensor=self)
        return Worlds(jax.eval_shape(told_so.reset_env, jax.random.key(0), params).observation)


def told(env: PlumeSearch, params: Params) -> tuple[PlumeSearch, Params]:
    """The same search with the sensor `Truth`, so that a policy on observations sees everything.

    Motion, plume, ending and reward are the same; a reward that reads the air reads it where the
    agent stands.

    Raises `ValidationError` if `env` is no search of one agent whose numbers are the same in every
    episode, and for a reward that reads the sensor.
    """
    allowed = "a search of one agent, without numbers drawn at each reset"
    require(isinstance(env, PlumeSearch), "env", type(env).__name__, allowed)
    reading = [reward for reward in _parts(env.reward) if isinstance(reward, InformationGain)]
    allowed = "one that does not read the sensor's belief, which Truth does not keep"
    require(not reading, "reward", env.reward, allowed)
    sensor = Truth(env)
    return replace(env, sensor=sensor), params.replace(sensor=sensor.default_params())


def _parts(reward: Any) -> Iterator[Any]:
    """The reward and all that it is made of."""
    yield reward
    for _, part in getattr(reward, "parts", ()):
        yield from _parts(part)
    if hasattr(reward, "of"):
        yield from _parts(reward.of)
