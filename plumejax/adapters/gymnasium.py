"""adapters/gymnasium: PlumeSearchEnv, one search as a Gymnasium environment."""

import warnings
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from struct import Struct
from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np

from plumejax.adapters import episodes
from plumejax.adapters.captures import Recorder
from plumejax.adapters.config import EnvironmentConfig, compose
from plumejax.adapters.episodes import AgentState, EnvironmentState, Program, View
from plumejax.adapters.packing import Arrays, Packed, pack, unpack
from plumejax.adapters.spaces import is_member, to_gymnasium
from plumejax.base.errors import StateError, ValidationError
from plumejax.base.lifecycle import Lifecycle
from plumejax.base.randomised import corners
from plumejax.search.environment import PlumeSearch
from plumejax.search.state import Params, SearchState
from plumejax.viewing.window import Window

__all__ = ["AgentState", "EnvironmentConfig", "EnvironmentState", "PlumeEnv", "PlumeSearchEnv"]


class _Episode(NamedTuple):
    """All that a step changes, replaced as a whole, so that a step happens fully or not at all.

    Attributes:
      seed: of the reset.
      params, numbers: of the steps; packed.
      program: of the steps.
      carried: a packed `Carried`.
      observation, view: what the host has read of it.
      trail: float32[TRAIL, 2], where the agent was, if pictures are made.
    """

    seed: int
    params: Params
    numbers: Arrays
    program: Program
    carried: Arrays
    observation: Any
    view: View
    trail: Any = None


class PlumeSearchEnv(gymnasium.Env):
    """The search for an odour source, one episode at a time, with NumPy in and out.

    `PlumeSearchEnv()` is `plumejax.make("PlumeSearch-v0")`. The functional core reproduces an
    episode: with `key = jax.random.key(info["seed"])`, a reset is `core.reset(fold_in(key, 0),
    params)` and step t = 1, 2, ... is `core.step(fold_in(key, t), state, action, params)`.

    Args:
      plume_model, reward_fn, observation_model, action_processor: components, any objects with the
        methods of `Plume`, `Reward`, `Sensor`, `Motion`; they win over `config`.
      config: an `EnvironmentConfig`, or a mapping of its fields; it wins over the plain arguments.
      grid_size: width and height, cells.
      source_location: x and y, cells.
      max_steps: steps after which an episode is truncated.
      goal_radius: cells.
      render_mode: None, "rgb_array" or "human".
      capture: folder for a table *.parquet of every step (`adapters/captures`), which pandas reads
        and `plumejax replay` plays again; whole after `close`. Needs the extra `data`.
      strict: whether a step after the end raises `StateError`; else it changes nothing and warns
        once an episode.
      task: a registered id, where `config` names none.

    Raises:
      ValidationError: a value that is not allowed.
      ComponentError: a component that lacks a method.
    """

    metadata: dict[str, Any] = {"render_modes": ["human", "rgb_array"], "render_fps": 30}

    def __init__(
        self,
        *,
        plume_model: Any = None,
        reward_fn: Any = None,
        observation_model: Any = None,
        action_processor: Any = None,
        config: EnvironmentConfig | Mapping[str, Any] | None = None,
        grid_size: tuple[int, int] | None = None,
        source_location: tuple[int, int] | None = None,
        max_steps: int | None = None,
        goal_radius: float | None = None,
        render_mode: str | None = None,
        strict: bool = False,
        task: str | None = None,
        capture: str | Path | None = None,
    ) -> None:
        # Its own: Gymnasium's vector environments write into it.
        self.metadata = dict(self.metadata)
        episodes.require_render_mode(render_mode, self.metadata["render_modes"])
        made: dict[str, Any] = {
            "task": task,
            "plume_model": plume_model,
            "reward_fn": reward_fn,
            "observation_model": observation_model,
            "action_processor": action_processor,
            "config": config,
            "grid_size": grid_size,
            "source_location": source_location,
            "max_steps": max_steps,
            "goal_radius": goal_radius,
        }
        self._core, params = compose(**made)
        self.action_space = to_gymnasium(self._core.action_space(params))
        self.observation_space = to_gymnasium(self._core.observation_space(params))
        self.render_mode = render_mode
        self._strict = strict
        # On the device once, not at every step.
        self._params: Params = jax.device_put(params)
        self._numbers: Packed = _pack(self._params)
        self._actions = _on_device(self.action_space, self._core.motion)
        self._episode: _Episode | None = None
        self._episodes = 0
        self._closed = False
        self._warned = False
        self._window: Window | None = None
        self._recorder = None if capture is None else Recorder(capture, made, self._params)

    # ---- the Gymnasium interface ----

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode: `(observation, info)`.

        Args:
          seed: 0 <= seed < 2^31; the same seed begins the same episode. None draws one from the
            environment's own stream; `info["seed"]` has it.
          options: for this episode only: `start` (x, y), `source` (x, y), and `params`, numbers by
            dotted path.

        Raises:
          StateError: after `close`.
          ValidationError: a seed or option that is not allowed; then nothing has changed.
        """
        if self._closed:
            raise episodes.closed("reset")
        episodes.require_seed(seed)
        plan = episodes.plan(self._core, self._params, options, self.observation_space)
        # The stream moves on only once the reset has succeeded.
        drawn, random, random_seed = episodes.seeded(seed, self)
        packed = _reset(plan.env, np.uint32(drawn), plan.start_params)
        numbers = self._numbers if plan.params is self._params else _pack(plan.params)
        program = episodes.program(self._core, packed.layout, numbers.layout)
        episode = _Episode(
            drawn,
            plan.params,
            numbers.arrays,
            program,
            packed.arrays,
            *_read(program, packed.arrays),
        )
        episode = self._followed(episode, episodes.no_trail())
        self._show(episode)
        if self._recorder is not None:
            self._recorder.begin(drawn, options, _state(episode))
        self._np_random, self._np_random_seed = random, random_seed
        self._episode, self._warned = episode, False
        self._episodes += 1
        info = {"episode": self._episodes, "episode_count": self._episodes, **self._info(episode)}
        return episodes.to_host(episode.observation), info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One step on: `(observation, reward, terminated, truncated, info)`.

        After the end of an episode nothing changes: the last observation again, reward 0 and the
        same flags, with one warning an episode.

        Raises:
          StateError: before the first `reset`, after `close`, and if `strict` after the end.
          ValidationError: an action that is not allowed; then nothing has changed.
        """
        episode = self._current("step")
        action = self._action(action)
        if episode.view.lifecycle != Lifecycle.READY:
            self._forgive()
            view = episode.view._replace(reward=0.0)
        else:
            carried = _step(episode.program, episode.carried, action, episode.numbers)
            observation, view = _read(episode.program, carried)
            trail = episode.trail
            episode = _Episode(*episode[:4], carried, observation, view)
            episode = self._followed(episode, trail)
            self._show(episode)
            if self._recorder is not None:
                self._recorder.step(action, _state(episode))
            self._episode = episode
        info = self._info(episode)
        info["distance_to_goal"] = view.distance
        info["concentration_at_agent"] = view.concentration
        return (
            episodes.to_host(episode.observation),
            view.reward,
            bool(view.terminated),
            bool(view.truncated),
            info,
        )

    def render(self, mode: str | None = None) -> np.ndarray | None:
        """The episode as uint8[H, W, 3] if `render_mode` is "rgb_array"; shown if "human".

        Row 0 is the largest y. A `mode`, if given, must be the `render_mode`.

        Raises:
          StateError: before the first `reset` and after `close`.
          ValidationError: another mode.
          RenderingError: without a render mode, or if nothing can be shown.
        """
        episode = self._current("render")
        episodes.require_renderable(self.render_mode, mode)
        if self.render_mode == "human":
            self._show(episode)
            return None
        return self._picture(episode)

    def close(self) -> None:
        """Release the episode and the window; safe to call again, never raises."""
        self._closed = True
        self._episode = None
        window, self._window = self._window, None
        if window is not None:
            window.close()
        if self._recorder is not None:
            try:
                self._recorder.close()
            except OSError as error:
                warnings.warn(f"{self._recorder.path} is not whole: {error}", stacklevel=2)

    # ---- what can be read ----

    @property
    def state(self) -> EnvironmentState:
        """Where the environment stands."""
        if self._closed:
            return EnvironmentState.CLOSED
        if self._episode is None:
            return EnvironmentState.CREATED
        return episodes.STATES[Lifecycle(self._episode.view.lifecycle)]

    @property
    def agent_state(self) -> AgentState | None:
        """The agent; None before the first reset and after close."""
        if self._episode is None:
            return None
        view = self._episode.view
        return AgentState(
            position=(view.x, view.y),
            orientation=view.heading,
            step_count=view.step_count,
            total_reward=view.total_reward,
            goal_reached=bool(view.found),
        )

    @property
    def episode_count(self) -> int:
        """Episodes begun so far."""
        return self._episodes

    @property
    def step_count(self) -> int:
        """Steps of this episode so far; 0 without one."""
        return 0 if self._episode is None else self._episode.view.step_count

    @property
    def seed(self) -> int | None:
        """The seed of this episode; None without one."""
        return None if self._episode is None else self._episode.seed

    @property
    def max_steps(self) -> int:
        """Steps after which this episode is truncated; before the first, the most it may be."""
        episode = self._episode
        if episode is None:
            return int(list(corners(self._params))[-1].max_steps)
        state = _state(episode)
        return int(self._core.episode_params(state, episode.params).max_steps)

    @property
    def core(self) -> PlumeSearch:
        """The functional environment."""
        return self._core

    @property
    def params(self) -> Params:
        """Its numbers, as this episode has them."""
        return self._params if self._episode is None else self._episode.params

    @property
    def functional_state(self) -> SearchState:
        """The state of this episode, as the functional environment has it.

        Raises `StateError` before the first reset and after close.
        """
        return _state(self._current("functional_state"))

    @property
    def plume_model(self) -> Any:
        """The plume."""
        return self._core.plume

    @property
    def reward_fn(self) -> Any:
        """The reward."""
        return self._core.reward

    @property
    def observation_model(self) -> Any:
        """The sensor."""
        return self._core.sensor

    @property
    def action_processor(self) -> Any:
        """The motion."""
        return self._core.motion

    # The names that the state machine's contract writes.
    _state = state
    _agent_state = agent_state
    _episode_count = episode_count
    _step_count = step_count
    _seed = seed
    _max_steps = max_steps
    _plume = plume_model
    _reward_fn = reward_fn
    _obs_model = observation_model
    _action_proc = action_processor

    # ---- inside ----

    def _current(self, what: str) -> _Episode:
        if self._closed:
            raise episodes.closed(what)
        if self._episode is None:
            raise episodes.not_reset(what)
        return self._episode

    def _action(self, action: Any) -> Any:
        """`action` as the core takes it. Raises `ValidationError`."""
        # Not every key that is equal to a whole number is one: a bool and a float are not.
        if type(action) in (int, np.int64) and action in self._actions:
            return self._actions[action]
        if isinstance(action, jax.Array):
            action = np.asarray(action)
        validate = getattr(self._core.motion, "validate_action", None)
        space = self.action_space
        if not (is_member(space, action) if validate is None else validate(action)):
            raise ValidationError(f"action = {action!r} is not allowed: it must be in {space}")
        discrete = isinstance(space, gymnasium.spaces.Discrete)
        return np.asarray(action, np.int32 if discrete else space.dtype)

    def _forgive(self) -> None:
        """Let a step after the end pass, saying so once an episode; not if `strict`."""
        if self._strict:
            raise StateError("step() after the end of the episode: call reset() first")
        if not self._warned:
            warnings.warn(
                "step() after the end of the episode changes nothing; call reset() first",
                stacklevel=3,
            )
            self._warned = True

    def _info(self, episode: _Episode) -> dict[str, Any]:
        view = episode.view
        return {
            "seed": episode.seed,
            "step_count": view.step_count,
            "total_reward": view.total_reward,
            "goal_reached": bool(view.found),
            "agent_xy": (view.x, view.y),
            "source_location": (view.source_x, view.source_y),
            "goal_location": (view.goal_x, view.goal_y),
        }

    def _show(self, episode: _Episode) -> None:
        """In human mode, show the episode."""
        if self.render_mode == "human":
            if self._window is None:
                self._window = Window("plumejax", self.metadata["render_fps"])
            self._window.show(self._picture(episode))

    def _followed(self, episode: _Episode, trail: Any) -> _Episode:
        """With where the agent is at the end of its trail, if pictures are made."""
        if self.render_mode is None:
            return episode
        return episode._replace(trail=episodes.longer(trail, _state(episode)))

    def _picture(self, episode: _Episode) -> np.ndarray:
        return episodes.picture(self._core, _state(episode), episode.params, episode.trail)

    def __getstate__(self) -> dict[str, Any]:
        # A copy opens a window of its own, and captures from its next reset on.
        recorder = None if self._recorder is None else self._recorder.fresh()
        return {**self.__dict__, "_window": None, "_recorder": recorder}


PlumeEnv = PlumeSearchEnv
"""The name that the living contract uses."""


_pack = jax.jit(pack)

_VIEW = Struct("=11i5f")
"""A `View` as a packed `Carried` begins with it."""


@partial(jax.jit, static_argnames="env")
def _reset(env: PlumeSearch, seed: jax.Array, params: Params) -> Packed:
    key = jax.random.fold_in(jax.random.key(seed), 0)
    _, state = env.reset(key, params)
    no = jnp.asarray(False)
    now = episodes.observe(env, state, params, jnp.zeros((), jnp.float32), no, no)
    return episodes.begin(now, None, seed, state)


@partial(jax.jit, static_argnums=0)
def _step(program: Program, carried: Arrays, action: Any, numbers: Arrays) -> Arrays:
    env = program.env
    key, state, params = episodes.resume(program, carried, numbers)
    _, state, *outcome, _ = env.step(key, state, action, params)
    now = episodes.observe(env, state, params, *outcome)
    return episodes.carry_on(program, carried, now, None, state)


def _state(episode: _Episode) -> SearchState:
    return episodes.state_of(episode.program, episode.carried)


def _read(program: Program, carried: Arrays) -> tuple[Any, View]:
    """`(observation, view)` of what is carried, for the host."""
    bits = np.asarray(carried[0])
    return unpack((bits, *carried[1:]), program.observation), View(*_VIEW.unpack_from(bits.data))


def _on_device(space: gymnasium.Space, motion: Any) -> dict[int, jax.Array]:
    """The actions of a discrete space on the device, where a step takes them soonest.

    None if the motion has the last word about its actions.
    """
    if not isinstance(space, gymnasium.spaces.Discrete) or hasattr(motion, "validate_action"):
        return {}
    numbers = range(int(space.start), int(space.start) + min(int(space.n), 64))
    return {number: jax.device_put(np.int32(number)) for number in numbers}
