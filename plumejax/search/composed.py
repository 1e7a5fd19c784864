"""search/composed: several sensors as one, as one array or by name."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from plumejax.base.errors import require
from plumejax.base.spaces import Box, Dict
from plumejax.search.components import hit, require_component, validate_part
from plumejax.search.state import Agent, Params, Scene


@dataclass(frozen=True)
class Named:
    """The observations of several sensors by name, as a dict; so are their numbers and states.

    Attributes:
      parts: (name, sensor) of each.
    """

    parts: tuple[tuple[str, Any], ...]

    def __post_init__(self) -> None:
        names = [name for name, _ in self.parts]
        good = len(names) > 0 and len(set(names)) == len(names)
        good = good and all(isinstance(name, str) and name.isidentifier() for name in names)
        require(good, "parts", names, "one sensor or more, each by a name of its own")
        for _, sensor in self.parts:
            require_component("sensor", sensor)

    @property
    def random_step(self) -> bool:
        return any(_draws(sensor) for _, sensor in self.parts)

    def default_params(self) -> dict[str, Any]:
        return {name: sensor.default_params() for name, sensor in self.parts}

    def start(self, params: Params) -> dict[str, Any]:
        return {name: sensor.start(_of(name, params)) for name, sensor in self.parts}

    def probes(self, agent: Agent, params: Params) -> jax.Array:
        return jnp.concatenate(self._probes(agent, params))

    def observe(
        self, key: jax.Array, state: dict[str, Any], scene: Scene, params: Params
    ) -> tuple[Any, dict[str, Any]]:
        counts = [len(each) for each in self._probes(scene.agent, params)]
        drawing = sum(_draws(sensor) for _, sensor in self.parts)
        keys = list(jax.random.split(key, drawing)) if drawing > 1 else [key]
        seen, kept, first = {}, {}, 0
        for (name, sensor), count in zip(self.parts, counts, strict=True):
            own_key = keys.pop() if _draws(sensor) else key
            air = jax.tree.map(lambda x, a=first, n=count: x[a : a + n], scene.air)
            # Inside a wrapper `scene.sensor` is the wrapper's; while observing it is the state.
            own = scene.replace(air=air, sensor=state[name], previous_sensor=state[name])
            seen[name], kept[name] = sensor.observe(own_key, state[name], own, _of(name, params))
            first += count
        return seen, kept

    def space(self, params: Params) -> Any:
        return Dict({name: sensor.space(_of(name, params)) for name, sensor in self.parts})

    def hit(self, observation: Any, params: Params) -> jax.Array | None:
        """bool[]: whether the first part that tells of hits does; None if none ever tells."""
        told = (hit(part, observation[name], _of(name, params)) for name, part in self.parts)
        return next((each for each in told if each is not None), None)

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` if a part refuses its numbers."""
        for name, sensor in self.parts:
            validate_part("sensor", name, sensor, _of(name, params))

    def _probes(self, agent: Agent, params: Params) -> list[jax.Array]:
        return [sensor.probes(agent, _of(name, params)) for name, sensor in self.parts]


@dataclass(frozen=True)
class Stack(Named):
    """The observations of several sensors end to end, float32[k], in the order of the parts."""

    def observe(
        self, key: jax.Array, state: dict[str, Any], scene: Scene, params: Params
    ) -> tuple[jax.Array, dict[str, Any]]:
        seen, kept = super().observe(key, state, scene, params)
        flat = [jnp.ravel(seen[name]).astype(jnp.float32) for name, _ in self.parts]
        return jnp.concatenate(flat), kept

    def space(self, params: Params) -> Box:
        each = super().space(params).spaces.values()
        low = jnp.concatenate([_flat(box.low, box.shape, jnp.min) for box in each])
        high = jnp.concatenate([_flat(box.high, box.shape, jnp.max) for box in each])
        return Box(low, high, low.shape)

    def hit(self, observation: Any, params: Params) -> jax.Array | None:
        shapes = {name: box.shape for name, box in super().space(params).spaces.items()}
        ends = np.cumsum([np.prod(shape, dtype=int) for shape in shapes.values()])
        each = zip(shapes.items(), jnp.split(observation, ends[:-1]), strict=True)
        return super().hit({name: x.reshape(shape) for (name, shape), x in each}, params)

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` if a part refuses its numbers, or observes no array."""
        super().validate(params)
        for name, space in super().space(params).spaces.items():
            require(isinstance(space, Box), f"parts: {name}", space, "a sensor that gives a Box")


def _of(name: str, params: Params) -> Params:
    """The params as the part called `name` reads them."""
    return params.replace(sensor=params.sensor[name])


def _flat(bound: Any, shape: tuple[int, ...], widest: Any) -> jax.Array:
    """float32[k]: the bound of each number of a box; of a sweep, with more axes, the widest."""
    bound = jnp.asarray(bound, jnp.float32)
    while not _broadcasts(bound.shape, shape):
        bound = widest(bound, axis=0)
    return jnp.ravel(jnp.broadcast_to(bound, shape))


def _broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    pairs = zip(reversed(shape), reversed(to), strict=False)
    return len(shape) <= len(to) and all(size in (1, other) for size, other in pairs)


def _draws(sensor: Any) -> bool:
    return getattr(sensor, "random_step", True)
