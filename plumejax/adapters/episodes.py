"""adapters/episodes: what the single and the vector Gymnasium environment share."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache, cached_property, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.utils import seeding

from plumejax.adapters.packing import Arrays, Layout, Packed, pack, unpack
from plumejax.adapters.spaces import same_space, to_gymnasium
from plumejax.base.errors import (
    ComponentError,
    RenderingError,
    StateError,
    ValidationError,
    require,
)
from plumejax.base.lifecycle import Lifecycle
from plumejax.base.randomised import Randomised, corners, distributions, override
from plumejax.search.environment import PlumeSearch, distance_to_source
from plumejax.search.starts import Fixed, FixedParams
from plumejax.search.state import Params, SearchState
from plumejax.viewing.frames import TRAIL, Camera, camera, frame


class EnvironmentState(StrEnum):
    """Where an environment stands; its int32 codes are `plumejax.base.lifecycle.Lifecycle`."""

    CREATED = "created"
    READY = "ready"
    TERMINATED = "terminated"
    TRUNCATED = "truncated"
    CLOSED = "closed"


@dataclass(frozen=True)
class AgentState:
    """The agent, seen from the host.

    Attributes:
      position: x and y, cells.
      orientation: degrees counter-clockwise from +x, in [0, 360).
      step_count: steps of this episode so far.
      total_reward: sum of its rewards.
      goal_reached: whether the source was found.
    """

    position: tuple[int, int]
    orientation: float
    step_count: int
    total_reward: float
    goal_reached: bool


class Seen(NamedTuple):
    """What the host sees of an episode.

    With many episodes `observation` leads with their number n, the last axis of the others.

    Attributes:
      whole: int32[11] or int32[11, n], the whole numbers of a `View`, in its order.
      real: float32[5] or float32[5, n], the other numbers of a `View`.
      observation: the observation.
    """

    whole: Any
    real: Any
    observation: Any


LANES = Seen(whole=-1, real=-1, observation=0)
"""The `out_axes` of a `vmap` of `observe`: NumPy reads rows fastest."""


class View(NamedTuple):
    """The numbers of an episode on the host, or an array of each for many episodes.

    The source is the first one, the goal the nearest one.
    """

    lifecycle: Any
    step_count: Any
    found: Any
    terminated: Any
    truncated: Any
    x: Any
    y: Any
    source_x: Any
    source_y: Any
    goal_x: Any
    goal_y: Any
    total_reward: Any
    heading: Any
    distance: Any
    concentration: Any
    reward: Any


class Carried(NamedTuple):
    """What a compiled step takes and gives, packed.

    Attributes:
      now: what the next step begins with.
      last: what the step left, if a reset in the same step hides it; else None.
      seed: uint32[], of the reset.
      calls: uint32[], steps since then.
      state: the state but for its observation, which is `now`'s.
    """

    now: Seen
    last: Seen | None
    seed: Any
    calls: Any
    state: SearchState


@dataclass(frozen=True, eq=False)
class Program:
    """What a step is compiled for.

    A static argument is hashed and compared at each call, so there is one `Program` for equal
    attributes, by `program`, and it is compared by identity.

    Attributes:
      env: an environment, or a `Batch` of it.
      carried, params: layouts of a `Carried` and of the params.
    """

    env: Any
    carried: Layout
    params: Layout

    @cached_property
    def now(self) -> Layout:
        """Of `Carried.now`."""
        return self.carried.member(0)

    @cached_property
    def last(self) -> Layout:
        """Of `Carried.last`."""
        return self.carried.member(1)

    @cached_property
    def observation(self) -> Layout:
        """Of `Carried.now.observation`."""
        return self.now.member(2)

    def __reduce__(self) -> tuple[Any, ...]:
        return program, (self.env, self.carried, self.params)


@cache
def program(env: Any, carried: Layout, params: Layout) -> Program:
    """The `Program` with these attributes."""
    return Program(env, carried, params)


def observe(
    env: PlumeSearch,
    state: SearchState,
    params: Params,
    reward: jax.Array,
    terminated: jax.Array,
    truncated: jax.Array,
) -> Seen:
    """One episode after a step with that reward and these flags; pure."""
    params = env.episode_params(state, params)
    position = state.agent.position
    sources = env.plume.sources(state.plume, params.plume)
    shared = min(len(position), sources.shape[-1])  # one may have a height, the other none
    away = sources[:, :shared] - position[None, :shared]
    nearest = jnp.argmin(jnp.sum(jnp.square(away), axis=-1))
    air = env.plume.sample(state.plume, position[None], params.plume)
    whole = [state.lifecycle, state.step_count, state.found, terminated, truncated]
    cells = jnp.round(jnp.concatenate([position[:2], sources[0, :2], sources[nearest, :2]]))
    real = [
        state.total_reward,
        state.agent.heading,
        distance_to_source(position, sources),
        air.concentration[0],
        reward,
    ]
    return Seen(
        whole=jnp.concatenate([jnp.stack([_int(n) for n in whole]), _int(cells)]),
        real=jnp.stack([n.astype(jnp.float32) for n in real]),
        observation=state.observation,
    )


def begin(now: Seen, last: Seen | None, seed: jax.Array, state: SearchState) -> Packed:
    """What a reset with that seed gives the first step; pure."""
    return pack(Carried(now, last, seed, jnp.uint32(0), state.replace(observation=None)))


def resume(
    program: Program, carried: Arrays, params: Arrays
) -> tuple[jax.Array, SearchState, Params]:
    """`(key, state, params)` of the next step; pure."""
    before: Carried = unpack(carried, program.carried)
    key = jax.random.fold_in(jax.random.key(before.seed), before.calls + jnp.uint32(1))
    state = before.state.replace(observation=before.now.observation)
    return key, state, unpack(params, program.params)


def carry_on(
    program: Program, carried: Arrays, now: Seen, last: Seen | None, state: SearchState
) -> Arrays:
    """What the step after `carried` gives the one after it; pure.

    Raises `ComponentError` if it has another layout.
    """
    before: Carried = unpack(carried, program.carried)
    calls = before.calls + jnp.uint32(1)
    after = pack(Carried(now, last, before.seed, calls, state.replace(observation=None)))
    if after.layout != program.carried:
        raise ComponentError(
            f"a step of {program.env!r} changes the shape or dtype of a part of the state or of the"
            f" observation: {after.layout.places} is not {program.carried.places}"
        )
    return after.arrays


@partial(jax.jit, static_argnames="program")
def state_of(program: Program, carried: Arrays) -> SearchState:
    """The state that is carried."""
    before: Carried = unpack(carried, program.carried)
    return before.state.replace(observation=before.now.observation)


def to_host(tree: Any) -> Any:
    """`tree` as NumPy arrays of its own, which a caller may write into; a whole number, of a
    `Discrete`, as the np.int64 that Gymnasium has it in."""
    # The common case first: it saves a single environment some microseconds a step.
    if type(tree) is np.ndarray and tree.ndim:
        return tree.copy()
    return jax.tree.map(_own, tree)


def _own(leaf: Any) -> Any:
    array = np.array(leaf)
    return np.int64(array) if array.ndim == 0 and array.dtype.kind in "iu" else array


class Plan(NamedTuple):
    """How a reset begins: `env.reset(..., start_params)`, then steps under `params`."""

    env: PlumeSearch
    start_params: Params
    params: Params


def plan(env: PlumeSearch, params: Params, options: Any, observation_space: Any) -> Plan:
    """The `Plan` of `reset(options=...)`.

    Args:
      env, params: the environment's own.
      options: None, or a dict with any of `start` (x, y), `source` (x, y) and `params`, numbers by
        dotted path.
      observation_space: that of `env`, which the options must leave as it is.

    Raises `ValidationError` for another key, path or value.
    """
    require(options is None or isinstance(options, dict), "options", options, "None or a dict")
    options = options or {}
    known = ("start", "source", "params")
    for key in options:
        require(key in known, "options key", key, f"one of {known}")
    numbers = options.get("params") or {}
    require(isinstance(numbers, Mapping), "options['params']", numbers, "a dict {path: value}")
    if options.get("source") is not None:
        numbers = {**numbers, "plume.source": options["source"]}
    if numbers:
        params = override(params, numbers)
        drawn = distributions(params)
        require(
            isinstance(env, Randomised) or not drawn,
            "options['params']",
            drawn,
            "numbers: this environment was made to draw none",
        )
        env.validate(params)
        same = same_space(to_gymnasium(env.observation_space(params)), observation_space)
        require(
            same,
            "options['params']",
            numbers,
            "without effect on the observation space, which is fixed",
        )
        params = jax.device_put(params)
    if options.get("start") is None:
        return Plan(env, params, params)
    bound = [path for path in distributions(params) if path.startswith("start.")]
    require(not bound, "options['start']", bound, "left out where numbers of the start are drawn")
    position = _start(options["start"], env, params)
    # Another kind of start is another environment to reset (compiled once), but not to step.
    start = FixedParams(position, np.float32(getattr(params.start, "heading", 0.0)))
    return Plan(_started(env, Fixed()), replace(params, start=start), params)


def _started(env: Any, start: Any) -> Any:
    """`env` with another start."""
    if isinstance(env, Randomised):
        return replace(env, env=_started(env.env, start))
    return replace(env, start=start)


def _start(start: Any, env: PlumeSearch, params: Params) -> np.ndarray:
    try:
        position = np.asarray(start, np.float32)
    except (TypeError, ValueError):
        raise ValidationError(f"options['start'] = {start!r} is no position (x, y)") from None
    whole = position.shape == (2,) and np.array_equal(position, np.round(position))
    require(
        whole and all(env.arena.inside(position[None], corner)[0] for corner in corners(params)),
        "options['start']",
        start,
        f"(x, y), whole numbers in the arena {env.arena}",
    )
    return position


def require_seed(seed: Any) -> None:
    """Raise `ValidationError` unless `seed` is None or an int in [0, 2^31)."""
    whole = isinstance(seed, int | np.integer) and not isinstance(seed, bool)
    good = seed is None or (whole and 0 <= seed < 2**31)
    require(good, "seed", seed, "None or an int, 0 <= seed < 2**31")


def seeded(seed: int | None, env: Any) -> tuple[int, np.random.Generator, int | None]:
    """`(seed, np_random, np_random_seed)`: the seed to use, and the stream of `env` after it.

    `env` is any Gymnasium environment; it is left as it is, so that a reset can still fail.
    """
    if seed is None:
        random = copy.deepcopy(env.np_random)
        return int(random.integers(2**31)), random, env.np_random_seed
    return int(seed), *seeding.np_random(int(seed))


def require_render_mode(render_mode: Any, modes: list[str]) -> None:
    """Raise `ValidationError` unless `render_mode` is None or one of `modes`."""
    allowed = f"None or one of {modes}"
    require(render_mode is None or render_mode in modes, "render_mode", render_mode, allowed)


def require_renderable(render_mode: str | None, mode: str | None) -> None:
    """Raise unless a picture can be asked for as `mode` where `render_mode` was chosen."""
    require(
        mode in (None, render_mode), "mode", mode, f"render_mode as constructed, {render_mode!r}"
    )
    if render_mode is None:
        raise RenderingError(
            "render() with render_mode = None: choose one when the environment is made, such as"
            " render_mode='rgb_array'"
        )


def not_reset(what: str) -> StateError:
    """The error of an operation that needs an episode, before the first reset."""
    return StateError(f"{what}() before the first reset(): call reset() first")


def closed(what: str) -> StateError:
    """The error of an operation on a closed environment."""
    return StateError(f"{what}() after close(): make a new environment")


STATES = {
    Lifecycle.CREATED: EnvironmentState.CREATED,
    Lifecycle.READY: EnvironmentState.READY,
    Lifecycle.TERMINATED: EnvironmentState.TERMINATED,
    Lifecycle.TRUNCATED: EnvironmentState.TRUNCATED,
    Lifecycle.CLOSED: EnvironmentState.CLOSED,
}
"""The member of `EnvironmentState` that stands for each code."""


def no_trail() -> np.ndarray:
    """float32[TRAIL, 2] of an agent that has been nowhere yet."""
    return np.full((TRAIL, 2), np.nan, np.float32)


def longer(trail: np.ndarray, state: SearchState) -> np.ndarray:
    """The trail with where the agent is now, without what was longest ago."""
    here = np.zeros((1, 2), np.float32)
    position = np.asarray(state.agent.position)[:2]
    here[0, : len(position)] = position
    return np.concatenate([trail[1:], here])


def picture(
    env: PlumeSearch, state: SearchState, params: Params, trail: np.ndarray | None = None
) -> np.ndarray:
    """uint8[H, W, 3]: the episode as it stands. Raises `RenderingError` if there is no size."""
    taken = camera(env, env.episode_params(state, params))
    return np.asarray(frame(taken, state, params, trail))


def pictures(env: PlumeSearch, state: SearchState, params: Params) -> tuple[np.ndarray, ...]:
    """A `picture` of each of many episodes; leaves of `state` lead with their number."""
    first = jax.tree.map(lambda x: x[0], state)
    taken = camera(env, env.episode_params(first, params))
    return tuple(np.asarray(_frames(taken, state, params)))


@partial(jax.jit, static_argnames="taken")
def _frames(taken: Camera, states: SearchState, params: Params) -> jax.Array:
    # One after another: a large plume is sampled at every pixel.
    return jax.lax.map(lambda state: frame(taken, state, params), states)


def _int(number: jax.Array) -> jax.Array:
    return number.astype(jnp.int32)
