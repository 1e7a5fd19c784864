"""search/team: Team, several agents in one search, and what they see of one another."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.base.agents import stacked
from plumejax.base.environment import Environment
from plumejax.base.errors import require
from plumejax.base.spaces import Box
from plumejax.search.environment import PlumeSearch, distance_to_source
from plumejax.search.headings import direction
from plumejax.search.state import Agent, Params, Scene, SearchState


class TeamState(SearchState):
    """The state of A agents in one episode.

    The leaves of `observation`, `agent`, `sensor`, `air`, `found`, `failed` and `total_reward` lead
    with A; there is one `plume`.

    Attributes:
      arrival: int32[A], the step at which an agent found a source, -1 if it has not.
    """

    arrival: jax.Array


@dataclass(frozen=True)
class Team(Environment):
    """A agents that search one plume, each as `search` has one search.

    Actions, observations and rewards lead with A. The plume is advanced once a step, and the air
    sampled once for the probes of all. An agent that has found the source, or failed, stays where
    it is with its last observation, and is paid 0. `info` is that of a single search, of the team
    as a whole: `total_reward` the sum, `found` whether enough have found it (`until`), `failed`
    whether the episode ended without that, `distance` of the nearest agent; with `arrival` of each
    (as in `TeamState`) and `first`, int32[], the agent that was first to arrive (of several at
    once the lowest number; -1 if none has).

    Every agent has a place of its own from the start. Where a start draws the source, one source
    holds for all; if it draws the source together with the place, the whole team begins there.

    Attributes:
      search: the search of one agent, whose params are the team's, too.
      num_agents: A > 0.
      until: the episode terminates when the "first" agent finds the source, or when "all" have
        found it or failed (as it does, either way, when none is left to search).
    """

    search: PlumeSearch
    num_agents: int = 2
    until: str = "all"

    def __post_init__(self) -> None:
        require(isinstance(self.search, PlumeSearch), "search", self.search, "a PlumeSearch")
        whole = isinstance(self.num_agents, int) and not isinstance(self.num_agents, bool)
        require(whole and self.num_agents > 0, "num_agents", self.num_agents, "an int > 0")
        require(self.until in ("first", "all"), "until", self.until, "'first' or 'all'")

    @property
    def random_step(self) -> bool:
        return self.search.random_step

    def default_params(self) -> Params:
        return self.search.default_params()

    def action_space(self, params: Any) -> Any:
        return stacked(self.search.action_space(params), self.num_agents)

    def observation_space(self, params: Params) -> Any:
        return stacked(self.search.observation_space(params), self.num_agents)

    def validate(self, params: Params) -> None:
        self.search.validate(params)

    def info(self, state: TeamState, params: Params) -> dict[str, jax.Array]:
        arrived = state.arrival >= 0
        found = jnp.any(arrived) if self.until == "first" else jnp.all(arrived)
        none_left = jnp.all(state.found | state.failed)
        sources = self.search.plume.sources(state.plume, params.plume)
        distance = jax.vmap(lambda position: distance_to_source(position, sources))
        # Those that have not arrived come after all that have.
        never = jnp.int32(np.iinfo(np.int32).max)
        first = jnp.argmin(jnp.where(arrived, state.arrival, never)).astype(jnp.int32)
        return {
            "step_count": state.step_count,
            "total_reward": jnp.sum(state.total_reward),
            "found": found,
            "failed": none_left & ~found,
            "distance": jnp.min(distance(state.agent.position)),
            "arrival": state.arrival,
            "first": jnp.where(jnp.any(arrived), first, jnp.int32(-1)),
        }

    def broken(self, state: TeamState, params: Params) -> dict[str, jax.Array]:
        inside = self.search.in_arena(state.agent.position, params)
        return {"an agent is outside the arena": ~jnp.all(inside)}

    def reset_env(self, key: jax.Array, params: Params) -> TeamState:
        state = self._together.reset_env(key, params)
        nobody = jnp.zeros(self.num_agents, bool)
        one = {name: getattr(state, name) for name in SearchState.__dataclass_fields__}
        team = {
            "total_reward": jnp.zeros(self.num_agents, jnp.float32),
            "found": nobody,
            "failed": nobody,
            "arrival": jnp.full(self.num_agents, -1, jnp.int32),
        }
        return TeamState(**{**one, **team})

    def step_env(
        self, key: jax.Array, state: TeamState, action: Any, params: Params
    ) -> tuple[TeamState, jax.Array, jax.Array]:
        active = ~(state.found | state.failed)
        turn = _Turn(action, active)
        new: Any
        new, reward, _ = self._together.step_env(key, state, turn, params)
        per_agent = ("observation", "agent", "sensor", "air", "found", "failed")
        frozen = {
            name: _where(active, getattr(new, name), getattr(state, name)) for name in per_agent
        }
        arrives = active & new.found
        arrival = jnp.where(arrives, state.step_count, state.arrival)
        new = new.replace(**frozen, arrival=arrival)
        over = jnp.all(new.found | new.failed)
        if self.until == "first":
            over |= jnp.any(new.found)
        return new, jnp.where(active, reward, jnp.zeros_like(reward)), over

    @property
    def _together(self) -> PlumeSearch:
        """`search` with components that act for all agents; what it has of one, leads with A."""
        one, n = self.search, self.num_agents
        return _Together(
            plume=one.plume,
            sensor=_Sensors(one.sensor, n),
            motion=_Motions(one.motion, n),
            reward=_Rewards(one.reward, n),
            ending=_Endings(one.ending, n),
            start=_Starts(one.start, n),
            arena=one.arena,
        )


class NeighboursParams(struct.PyTreeNode):
    """Numbers of a `Neighbours` sensor.

    Attributes:
      radius: float32[], lengths of the plume, > 0; who is as near as this is a neighbour.
      trust: float32[], in [0, 1], the weight of the neighbours against the own heading.
    """

    radius: Any
    trust: Any


@dataclass(frozen=True)
class Neighbours:
    """Where to go by the neighbours' headings, float32[2], a vector [x, y] of at most length 1.

    `(1 - trust) own + trust mean`: `own` is (cos, sin) of the agent's heading, `mean` the direction
    of the sum of the headings of the other agents within `radius`, 0 without any. So a trust of 1
    (the default) tells the mean heading of the neighbours and nothing else, and a policy that has a
    direction of its own may blend that in with `follow`.

    The blend of private and public information of Durve, Piro, Cencini, Biferale and Celani,
    "Collective olfactory search in a turbulent environment", Phys. Rev. E 102, 012402 (2020), whose
    beta is `trust`. They find that an optimal blend lies between the two; the default numbers are
    ours. A single search has no neighbours.
    """

    random_step = False

    def default_params(self) -> NeighboursParams:
        return NeighboursParams(radius=np.float32(10.0), trust=np.float32(1.0))

    def start(self, params: Params) -> tuple[()]:
        return ()

    def probes(self, agent: Agent, params: Params) -> jax.Array:
        return agent.position[None][:0]

    def observe(
        self, key: jax.Array, state: tuple[()], scene: Scene, params: Params
    ) -> tuple[jax.Array, tuple[()]]:
        own = direction(scene.agent.heading)
        mean = jnp.zeros_like(own)
        if scene.team is not None:
            offset = scene.team.position - scene.agent.position[None]
            near = jnp.sum(jnp.square(offset), axis=-1) <= jnp.square(params.sensor.radius)
            headings = jax.vmap(direction)(scene.team.heading)
            mean = _unit(jnp.sum(jnp.where(near[:, None], headings, 0.0), axis=0))
        return follow(own, mean, params.sensor.trust), state

    def space(self, params: Params) -> Box:
        # A unit vector may be longer than 1 by a rounding, which `observe` cuts off.
        return Box(-1.0, 1.0, (2,))

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` if a number is not allowed."""
        radius, trust = np.asarray(params.sensor.radius), np.asarray(params.sensor.trust)
        require(np.all(radius > 0), "sensor.radius", radius, "> 0")
        require(np.all((trust >= 0) & (trust <= 1)), "sensor.trust", trust, "in [0, 1]")


def follow(own: jax.Array, others: jax.Array, trust: Any) -> jax.Array:
    """float32[2]: `(1 - trust) own + trust others`, two directions [x, y], each coordinate within
    [-1, 1]."""
    trust = jnp.asarray(trust, own.dtype)
    return jnp.clip((1 - trust) * own + trust * others, -1.0, 1.0)


def _unit(vector: jax.Array) -> jax.Array:
    """The direction of float32[2]; 0 of what is 0 but for rounding. Has a gradient everywhere."""
    square = jnp.sum(jnp.square(vector))
    some = square > 1e-10
    return jnp.where(some, vector / jnp.sqrt(jnp.where(some, square, 1.0)), 0.0)


class _Turn(struct.PyTreeNode):
    """What the agents do in a step: `action` of each, and who is `active`, bool[A]."""

    action: Any
    active: jax.Array


class _Together(PlumeSearch):
    """A `PlumeSearch` whose components act for all agents."""

    def _felt(self, agent: Agent, plume_state: Any, params: Params) -> Any:
        if not self.motion.feels_air:
            return None
        air = self.plume.sample(plume_state, agent.position, params.plume)
        return jax.tree.map(lambda x: x[:, None], air)


@dataclass(frozen=True)
class _Each:
    """A component for A agents; it reads the params of `of`, the component for one."""

    of: Any
    num_agents: int

    @property
    def random_step(self) -> bool:
        return getattr(self.of, "random_step", True)

    def default_params(self) -> Any:
        return self.of.default_params()

    def keys(self, key: jax.Array) -> tuple[jax.Array, int | None]:
        """`(keys, axis)`: one for each agent, or the one for all if none is looked at."""
        if not self.random_step:
            return key, None
        return jax.random.split(key, self.num_agents), 0

    def own(self, scene: Scene) -> dict[str, Any]:
        """What differs between the scenes of the agents, leading with A."""
        n = self.num_agents
        turn = scene.action
        # Row i: the others in order, beginning after i.
        others = (np.arange(n)[:, None] + np.arange(1, n)[None]) % n
        return {
            "agent": scene.agent,
            "previous": scene.previous,
            "action": None if turn is None else turn.action,
            "air": jax.tree.map(lambda x: x.reshape(n, len(x) // n, *x.shape[1:]), scene.air),
            "sensor": scene.sensor,
            "previous_sensor": scene.previous_sensor,
            "found": jnp.broadcast_to(scene.found, (n,)),
            "failed": jnp.broadcast_to(scene.failed, (n,)),
            "team": jax.tree.map(lambda x: x[others], scene.agent),
        }


@dataclass(frozen=True)
class _Sensors(_Each):
    def start(self, params: Params) -> Any:
        return _repeat(self.of.start(params), self.num_agents)

    def probes(self, agents: Agent, params: Params) -> jax.Array:
        each = jax.vmap(lambda agent: self.of.probes(agent, params))(agents)
        return each.reshape(-1, each.shape[-1])

    def observe(self, key: jax.Array, state: Any, scene: Scene, params: Params) -> tuple[Any, Any]:
        keys, axis = self.keys(key)

        def one(key: jax.Array, state: Any, own: dict[str, Any]) -> tuple[Any, Any]:
            return self.of.observe(key, state, scene.replace(**own), params)

        return jax.vmap(one, (axis, 0, 0))(keys, state, self.own(scene))

    def space(self, params: Params) -> Any:
        return stacked(self.of.space(params), self.num_agents)


@dataclass(frozen=True)
class _Motions(_Each):
    @property
    def feels_air(self) -> bool:
        return getattr(self.of, "feels_air", False)

    def begin(self, agents: Agent, params: Params) -> Agent:
        if not hasattr(self.of, "begin"):
            return agents
        return jax.vmap(lambda agent: self.of.begin(agent, params))(agents)

    def move(
        self, key: jax.Array, agents: Agent, turn: _Turn, air: Any, arena: Any, params: Params
    ) -> Agent:
        keys, axis = self.keys(key)

        def one(key: jax.Array, agent: Agent, action: Any, air: Any) -> Agent:
            return self.of.move(key, agent, action, air, arena, params)

        moved = jax.vmap(one, (axis, 0, 0, 0))(keys, agents, turn.action, air)
        return _where(turn.active, moved, agents)

    def space(self, params: Params) -> Any:
        return stacked(self.of.space(params), self.num_agents)

    def mask(self, agents: Agent, arena: Any, params: Params) -> jax.Array:
        return jax.vmap(lambda agent: self.of.mask(agent, arena, params))(agents)


@dataclass(frozen=True)
class _Rewards(_Each):
    def reward(self, scene: Scene, params: Params) -> jax.Array:
        return jax.vmap(lambda own: self.of.reward(scene.replace(**own), params))(self.own(scene))


@dataclass(frozen=True)
class _Endings(_Each):
    def ended(self, scene: Scene, params: Params) -> tuple[jax.Array, jax.Array]:
        return jax.vmap(lambda own: self.of.ended(scene.replace(**own), params))(self.own(scene))


@dataclass(frozen=True)
class _Starts(_Each):
    def place(
        self, key: jax.Array, plume: Any, plume_state: Any, arena: Any, params: Params
    ) -> tuple[Any, Agent, Any]:
        keys = jax.random.split(key, self.num_agents)
        start, own, before = self.of, params, plume_state
        plume_state, agent, first = start.place(keys[0], plume, before, arena, own)
        if _changed(before, plume_state) and first is None and hasattr(start, "of"):
            # It drew the source, and then the place by another start, as the others do.
            start, own = start.of, own.replace(start=own.start.of)
        elif _changed(before, plume_state) or first is not None:
            # It drew both together: no other place would be true to the draw.
            return plume_state, _repeat(agent, self.num_agents), first

        def place_one(key: jax.Array) -> Agent:
            return start.place(key, plume, plume_state, arena, own)[1]

        rest = jax.vmap(place_one)(keys[1:])
        agents = jax.tree.map(lambda x, xs: jnp.concatenate([x[None], xs]), agent, rest)
        return plume_state, agents, None


def _changed(before: Any, after: Any) -> bool:
    """Whether a start gave the plume another state: it hands on what it leaves alone."""
    leaves = zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True)
    return any(x is not y for x, y in leaves)


def _repeat(tree: Any, n: int) -> Any:
    return jax.tree.map(lambda x: jnp.broadcast_to(x, (n, *jnp.shape(x))), tree)


def _where(active: jax.Array, new: Any, old: Any) -> Any:
    """`new` of the agents that are active, `old` of the others; leaves lead with A."""

    def choose(x: jax.Array, y: jax.Array) -> jax.Array:
        return jnp.where(active.reshape(-1, *(1,) * (x.ndim - 1)), x, y)

    return jax.tree.map(choose, new, old)
