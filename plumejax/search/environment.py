"""search/environment: PlumeSearch, which composes seven components into a task."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from plumejax.base import lifecycle
from plumejax.base.environment import Environment
from plumejax.base.errors import require
from plumejax.base.lifecycle import Lifecycle
from plumejax.plumes.geometry import distance
from plumejax.plumes.interface import clock
from plumejax.search.components import METHODS, require_answers, require_component
from plumejax.search.state import Agent, Params, Scene, SearchState


@dataclass(frozen=True)
class PlumeSearch(Environment):
    """The search for an odour source.

    One step: the motion moves the agent, the plume advances, the air is sampled at the sensor's
    probes, the ending judges, the sensor observes, the reward pays.
    """

    plume: Any
    sensor: Any
    motion: Any
    reward: Any
    ending: Any
    start: Any
    arena: Any

    def __post_init__(self) -> None:
        for role in METHODS:
            require_component(role, getattr(self, role))
            require_answers(role, getattr(self, role), self.plume)

    @property
    def random_step(self) -> bool:
        return any(_is_random(c) for c in (self.plume, self.sensor, self.motion))

    @property
    def num_actions(self) -> int:
        """Of a discrete motion, the number of its actions."""
        return self.action_space(None).n

    def default_params(self, max_steps: int = 1000) -> Params:
        """The numbers that the components propose."""
        parts = {role: getattr(self, role).default_params() for role in METHODS}
        seconds = clock(self.plume, parts["plume"])
        dt = np.float32(1.0 if seconds is None else seconds)
        return Params(max_steps=np.int32(max_steps), dt=dt, **parts)

    def action_space(self, params: Any) -> Any:
        return self.motion.space(params)

    def observation_space(self, params: Params) -> Any:
        return self.sensor.space(params)

    def validate(self, params: Params) -> None:
        super().validate(params)
        sizes = {r: c.grid_size for r in METHODS if hasattr(c := getattr(self, r), "grid_size")}
        require(len(set(sizes.values())) <= 1, "grid_size", sizes, "the same for every component")
        require(np.all(np.asarray(params.dt) > 0), "dt", params.dt, "> 0 s")
        if hasattr(self.plume, "validate"):
            self.plume.validate(params.plume)
        seconds = clock(self.plume, params.plume)
        good = seconds is None or np.allclose(params.dt, seconds, rtol=1e-5)
        require(good, "dt", params.dt, f"{seconds} s, which one advance of the plume takes")
        for role in METHODS:
            component = getattr(self, role)
            if role != "plume" and hasattr(component, "validate"):
                component.validate(params)
        if hasattr(self.start, "validate_source"):
            self.start.validate_source(self.plume, params)
        if hasattr(self.start, "validate_place"):
            self.start.validate_place(self.arena, params)

    def info(self, state: SearchState, params: Params) -> dict[str, jax.Array]:
        return {
            **super().info(state, params),
            "found": state.found,
            "failed": state.failed,
            "distance": distance_to_source(
                state.agent.position, self.plume.sources(state.plume, params.plume)
            ),
        }

    def broken(self, state: SearchState, params: Params) -> dict[str, jax.Array]:
        """The agent is in its arena, the ending and the lifecycle agree, and what was found is
        within the radius of the ending, if that has one."""
        ended = state.lifecycle == lifecycle.code(Lifecycle.TERMINATED)
        rules = {
            "the agent is outside its arena": ~self.in_arena(state.agent.position[None], params)[0],
            "terminated is not found or failed": ended != (state.found | state.failed),
        }
        radius = getattr(params.ending, "radius", None)
        if radius is not None:
            sources = self.plume.sources(state.plume, params.plume)
            away = distance_to_source(state.agent.position, sources) > radius * np.float32(1.0001)
            rules["found, but not within the radius"] = state.found & away
        return rules

    def in_arena(self, positions: jax.Array, params: Params) -> jax.Array:
        """bool[n]: which of float32[n, d] are; of an arena on the ground the height is free."""
        sides = getattr(self.arena, "sides", None)
        dimensions = None if sides is None else len(sides(self.default_params()))
        return self.arena.inside(positions[:, :dimensions], params)

    def reset_env(self, key: jax.Array, params: Params) -> SearchState:
        plume_key, place_key, sensor_key = _keys(
            key, [getattr(self.plume, "random_start", True), True, _is_random(self.sensor)]
        )
        plume_state = self.plume.start(plume_key, params.plume)
        plume_state, agent, first = self.start.place(
            place_key, self.plume, plume_state, self.arena, params
        )
        if hasattr(self.motion, "begin"):
            agent = self.motion.begin(agent, params)
        no, zero = jnp.asarray(False), jnp.zeros((), jnp.int32)
        sensor_state = self.sensor.start(params)
        scene = self._scene(agent, agent, None, plume_state, sensor_state, zero, params)
        scene = scene.replace(first=first)
        observation, sensor_state = self.sensor.observe(sensor_key, sensor_state, scene, params)
        return SearchState(
            lifecycle=jnp.asarray(int(Lifecycle.READY), jnp.int32),
            step_count=zero,
            total_reward=jnp.zeros((), jnp.float32),
            observation=observation,
            agent=agent,
            plume=plume_state,
            sensor=sensor_state,
            air=self._felt(agent, plume_state, params),
            found=no,
            failed=no,
        )

    def step_env(
        self, key: jax.Array, state: SearchState, action: Any, params: Params
    ) -> tuple[SearchState, jax.Array, jax.Array]:
        random = [_is_random(c) for c in (self.motion, self.plume, self.sensor)]
        motion_key, plume_key, sensor_key = _keys(key, random)
        agent = self.motion.move(motion_key, state.agent, action, state.air, self.arena, params)
        # All that follows reads it: worked out once, not again in each of XLA's loops.
        agent = jax.lax.optimization_barrier(agent)
        plume_state = self.plume.advance(plume_key, state.plume, params.plume)
        scene = self._scene(
            agent, state.agent, action, plume_state, state.sensor, state.step_count, params
        )
        found, failed = self.ending.ended(scene, params)
        scene = scene.replace(found=found, failed=failed)
        observation, sensor_state = self.sensor.observe(sensor_key, state.sensor, scene, params)
        reward = self.reward.reward(scene.replace(sensor=sensor_state), params)
        state = state.replace(
            observation=observation,
            agent=agent,
            plume=plume_state,
            sensor=sensor_state,
            air=self._felt(agent, plume_state, params),
            found=found,
            failed=failed,
        )
        return state, reward, found | failed

    def _scene(
        self,
        agent: Agent,
        previous: Agent,
        action: Any,
        plume_state: Any,
        sensor_state: Any,
        step_count: jax.Array,
        params: Params,
    ) -> Scene:
        no = jnp.asarray(False)
        probes = self.sensor.probes(agent, params)
        return Scene(
            agent=agent,
            previous=previous,
            action=action,
            air=self.plume.sample(plume_state, probes, params.plume),
            plume_state=plume_state,
            sensor=sensor_state,
            previous_sensor=sensor_state,
            sources=self.plume.sources(plume_state, params.plume),
            found=no,
            failed=no,
            step_count=step_count,
            plume=self.plume,
        )

    def _felt(self, agent: Agent, plume_state: Any, params: Params) -> Any:
        if not getattr(self.motion, "feels_air", False):
            return None
        return self.plume.sample(plume_state, agent.position[None], params.plume)


def distance_to_source(position: jax.Array, sources: jax.Array) -> jax.Array:
    """float32[]: from float32[d] to the nearest of float32[S, d], in lengths of the plume.

    If one has a height and the other none, along the ground.
    """
    shared = min(position.shape[-1], sources.shape[-1])
    each = distance(sources[..., :shared], position[..., :shared])
    return each[0] if len(each) == 1 else jnp.min(each)


def _keys(key: jax.Array, random: list[bool]) -> list[jax.Array]:
    """A key for each part, split no finer than they draw: the others will not look at theirs."""
    keys = [key] if sum(random) < 2 else list(jax.random.split(key, sum(random)))
    return [keys.pop() if draws else key for draws in random]


def _is_random(component: Any) -> bool:
    return getattr(component, "random_step", True)
