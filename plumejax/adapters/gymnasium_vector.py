"""adapters/gymnasium_vector: PlumeSearchVectorEnv, many searches as one Gymnasium vector env."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from plumejax.adapters import episodes
from plumejax.adapters.captures import LaneRecorder
from plumejax.adapters.config import EnvironmentConfig, compose
from plumejax.adapters.episodes import Program, Seen, View
from plumejax.adapters.packing import Arrays, Layout, Packed, pack, unpack
from plumejax.adapters.spaces import is_member, to_gymnasium
from plumejax.base.batch import Batch
from plumejax.base.errors import ValidationError, require
from plumejax.base.lifecycle import Lifecycle
from plumejax.search.environment import PlumeSearch
from plumejax.search.state import Params, SearchState


class _Lanes(NamedTuple):
    """All that a step changes, replaced as a whole, so that a step happens fully or not at all.

    Attributes:
      seed: of the last reset.
      params, numbers: of the steps; packed.
      program: of the steps.
      carried: a packed `Carried`, whose state's leaves lead with the number of lanes.
      ended: bool[num_envs], lanes that the next step resets (NEXT_STEP only).
      episodes: int64[num_envs], episodes begun in each lane.
    """

    seed: int
    params: Params
    numbers: Arrays
    program: Program
    carried: Arrays
    ended: np.ndarray
    episodes: np.ndarray


class PlumeSearchVectorEnv(gymnasium.vector.VectorEnv):
    """Many searches in one compiled step over `Batch`, with NumPy in and out.

    What it returns is what Gymnasium's `SyncVectorEnv` of `PlumeSearchEnv`s does, but for this:
    `info` pairs (`agent_xy`, ...) are int64[num_envs, 2]; a lane that is reset by a step reports
    `episode_count` and not `episode`, the name under which `RecordEpisodeStatistics` writes; and
    `info["seed"]` is the seed of the whole. The functional core reproduces it: with
    `key = jax.random.key(seed)`, a reset is `Batch.reset(fold_in(key, 0), params)`, and the t-th
    step after it is, under `fold_in(key, t)`, `Batch.step` (SAME_STEP), or `Batch.advance` and
    `Batch.reset_where` of the lanes that had ended before (NEXT_STEP).

    Args:
      num_envs: number of lanes.
      autoreset_mode: `AutoresetMode.NEXT_STEP` (the step after the end resets the lane, ignores its
        action, pays 0 and has no flag) or `SAME_STEP` (the step that ends an episode returns the
        next one's first observation, the last one as `info["final_obs"]`), or its value.
      strict: of no effect, since no step follows an end.
      capture: folder for a table of every step of every lane (`adapters/captures.LaneRecorder`).
      others: as of `PlumeSearchEnv`; `render_mode` is None or "rgb_array".

    Raises:
      ValidationError: a value that is not allowed.
      ComponentError: a component that lacks a method.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 30}

    def __init__(
        self,
        num_envs: int = 1,
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
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        capture: str | Path | None = None,
    ) -> None:
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
        core, params = compose(**made)
        self._core = core
        self._batch = Batch(core, num_envs)
        self._autoreset = _autoreset_mode(autoreset_mode)
        self.metadata = {**self.metadata, "autoreset_mode": self._autoreset}
        self.num_envs = num_envs
        self.render_mode = render_mode
        self.single_action_space = to_gymnasium(core.action_space(params))
        self.single_observation_space = to_gymnasium(core.observation_space(params))
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self._params: Params = jax.device_put(params)
        self._numbers: Packed = _pack(self._params)
        self._lanes: _Lanes | None = None
        made |= {"num_envs": num_envs, "autoreset_mode": self._autoreset.value}
        self._recorder = None if capture is None else LaneRecorder(capture, made, self._params)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode in every lane: `(observation, info)`, leading with `num_envs`.

        Args:
          seed: one int for all lanes, 0 <= seed < 2^31; None draws one from the own stream.
          options: as of `PlumeSearchEnv.reset`, the same for all lanes: `source` and `params` hold
            until the next `reset`, `start` for the first episode of each lane.

        Raises:
          StateError: after `close`.
          ValidationError: a seed or option that is not allowed; then nothing has changed.
        """
        if self.closed:
            raise episodes.closed("reset")
        episodes.require_seed(seed)
        plan = episodes.plan(self._core, self._params, options, self.single_observation_space)
        # The stream moves on only once the reset has succeeded.
        drawn, random, random_seed = episodes.seeded(seed, self)
        same_step = self._autoreset == AutoresetMode.SAME_STEP
        batch = Batch(plan.env, self.num_envs)
        packed = _reset(batch, same_step, np.uint32(drawn), plan.start_params)
        numbers = self._numbers if plan.params is self._params else _pack(plan.params)
        program = episodes.program(self._batch, packed.layout, numbers.layout)
        observation, view = _read(packed.arrays, program.now)
        begun = np.ones(self.num_envs, np.int64)
        if self._lanes is not None:
            begun += self._lanes.episodes
        nobody = np.zeros(self.num_envs, bool)
        self._np_random, self._np_random_seed = random, random_seed
        self._lanes = _Lanes(
            drawn, plan.params, numbers.arrays, program, packed.arrays, nobody, begun
        )
        if self._recorder is not None:
            self._recorder.begin(drawn, options, self.functional_state)
        everybody = ~nobody
        infos = _masked(_common(view, drawn), everybody)
        infos |= _masked({"episode": begun.copy(), "episode_count": begun.copy()}, everybody)
        return episodes.to_host(observation), infos

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """One step of every lane: `(observation, reward, terminated, truncated, info)`.

        Raises:
          StateError: before the first `reset` and after `close`.
          ValidationError: an action that is not allowed, naming its lane; nothing has changed.
        """
        lanes = self._current("step")
        actions = self._actions(actions, lanes.ended)
        same_step = self._autoreset == AutoresetMode.SAME_STEP
        step = _same_step if same_step else _next_step
        carried = step(lanes.program, lanes.carried, actions, lanes.numbers)
        observation, view = _read(carried, lanes.program.now)
        final, last = _read(carried, lanes.program.last) if same_step else (None, view)
        terminated, truncated = last.terminated.astype(bool), last.truncated.astype(bool)
        done = terminated | truncated
        reset = done if same_step else lanes.ended
        begun = lanes.episodes + reset
        infos = _final(last, final, done, lanes.seed) if same_step and done.any() else {}
        infos |= _masked(_common(view, lanes.seed), np.ones(self.num_envs, bool))
        infos |= _masked(_of_step(view), ~reset)
        infos |= _masked({"episode_count": begun.copy()}, reset)
        outcome = episodes.to_host(observation), last.reward, terminated, truncated, infos
        ended = np.zeros_like(done) if same_step else done
        self._lanes = lanes._replace(carried=carried, ended=ended, episodes=begun)
        if self._recorder is not None:
            self._recorder.step(actions, self.functional_state)
        return outcome

    def render(self) -> tuple[np.ndarray, ...]:
        """A picture uint8[H, W, 3] of every lane, as `PlumeSearchEnv.render` makes it.

        Raises:
          StateError: before the first `reset` and after `close`.
          RenderingError: without a render mode, or for an arena without a grid.
        """
        lanes = self._current("render")
        episodes.require_renderable(self.render_mode, None)
        return episodes.pictures(self._core, self.functional_state, lanes.params)

    def close_extras(self, **kwargs: Any) -> None:
        """Release the episodes."""
        self._lanes = None
        if self._recorder is not None:
            self._recorder.close()

    @property
    def core(self) -> PlumeSearch:
        """The functional environment of one lane."""
        return self._core

    @property
    def functional_state(self) -> SearchState:
        """The states of all lanes, as the functional environment has them; leaves lead with
        `num_envs`.

        Raises `StateError` before the first reset and after close.
        """
        lanes = self._current("functional_state")
        return episodes.state_of(lanes.program, lanes.carried)

    @property
    def params(self) -> Params:
        """Its numbers, as the lanes have them now."""
        return self._params if self._lanes is None else self._lanes.params

    def _current(self, what: str) -> _Lanes:
        if self.closed:
            raise episodes.closed(what)
        if self._lanes is None:
            raise episodes.not_reset(what)
        return self._lanes

    def _actions(self, actions: Any, ignored: np.ndarray) -> np.ndarray:
        """`actions` as the core takes them; a lane in `ignored` may hold any number."""
        space, n = self.single_action_space, self.num_envs
        discrete = isinstance(space, gymnasium.spaces.Discrete)
        dtype = np.int32 if discrete else space.dtype
        shape = space.shape or ()
        try:
            array = np.asarray(actions)
            fits = array.shape == (n, *shape)
        except ValueError:  # rows of different lengths
            fits = False
        require(fits, "actions", actions, f"{n} actions, one a lane, each in {space}")
        validate = getattr(self.core.motion, "validate_action", None)
        if validate is not None:
            good = np.asarray([bool(validate(action)) for action in array])
        elif isinstance(space, gymnasium.spaces.Discrete) and array.dtype.kind in "iu":
            good = (array >= 0) & (array < space.n)
        else:
            good = np.asarray([is_member(space, np.asarray(action)) for action in array])
        bad = np.flatnonzero(~(good | ignored))
        if bad.size:
            lane = int(bad[0])
            raise ValidationError(
                f"action of lane {lane} = {array[lane]!r} is not allowed: it must be in {space}"
            )
        return array.astype(dtype)


def _read(carried: Arrays, seen: Layout) -> tuple[Any, View]:
    """`(observation, view)` of one of the `Seen` that are carried; a row of its own a number."""
    now: Seen = unpack((np.asarray(carried[0]), *carried[1:]), seen)
    whole, real = np.asarray(now.whole), np.asarray(now.real)
    return now.observation, View(*whole.astype(np.int64), *real.astype(np.float64))


def _common(view: View, seed: int) -> dict[str, np.ndarray]:
    """The `info` that a reset and a step both give."""
    return {
        "seed": np.full(view.found.shape, seed, np.int64),
        "step_count": view.step_count,
        "total_reward": view.total_reward,
        "goal_reached": view.found.astype(bool),
        "agent_xy": np.stack([view.x, view.y], axis=-1),
        "source_location": np.stack([view.source_x, view.source_y], axis=-1),
        "goal_location": np.stack([view.goal_x, view.goal_y], axis=-1),
    }


def _of_step(view: View) -> dict[str, np.ndarray]:
    """The `info` that only a step gives."""
    return {
        "distance_to_goal": view.distance,
        "concentration_at_agent": view.concentration,
    }


def _final(view: View, observation: Any, done: np.ndarray, seed: int) -> dict[str, Any]:
    """`final_obs` and `final_info` of the lanes in `done`."""
    observation = jax.tree.map(np.asarray, observation)
    final_obs = np.full(done.shape, None, dtype=object)
    for lane in np.flatnonzero(done):
        final_obs[lane] = jax.tree.map(lambda x, lane=lane: x[lane].copy(), observation)
    final_info = _masked({**_common(view, seed), **_of_step(view)}, done)
    return _masked({"final_obs": final_obs, "final_info": final_info}, done)


def _masked(values: dict[str, Any], mask: np.ndarray) -> dict[str, Any]:
    """`values` as Gymnasium writes them: each with its mask, zero in lanes that lack it."""
    if not mask.any():
        return {}
    infos: dict[str, Any] = {}
    lacking = None if mask.all() else ~mask
    for key, value in values.items():
        if lacking is not None and isinstance(value, np.ndarray) and value.dtype != object:
            value[lacking] = 0
        infos[key], infos[f"_{key}"] = value, mask.copy()
    return infos


def _autoreset_mode(mode: Any) -> AutoresetMode:
    allowed = (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP)
    names = [m.value for m in allowed]
    require(
        mode in allowed or mode in names, "autoreset_mode", mode, f"one of {allowed} or {names}"
    )
    return AutoresetMode(mode)


_pack = jax.jit(pack)


@partial(jax.jit, static_argnames=("batch", "same_step"))
def _reset(batch: Batch, same_step: bool, seed: jax.Array, params: Params) -> Packed:
    key = jax.random.fold_in(jax.random.key(seed), 0)
    _, state = batch.reset(key, params)
    no = jnp.zeros(batch.num_envs, bool)
    now = _observe(batch, state, params, jnp.zeros(batch.num_envs, jnp.float32), no, no)
    return episodes.begin(now, now if same_step else None, seed, state)


@partial(jax.jit, static_argnums=0)
def _same_step(program: Program, carried: Arrays, action: Any, numbers: Arrays) -> Arrays:
    """What is carried on has the lanes as the step left them, and after the resets."""
    batch = program.env
    key, state, params = episodes.resume(program, carried, numbers)
    _, state, *outcome, _ = batch.advance(key, state, action, params)
    last = _observe(batch, state, params, *outcome)
    _, terminated, truncated = outcome
    _, state = batch.reset_where(key, terminated | truncated, state, params)
    now = _observe(batch, state, params, *outcome)
    return episodes.carry_on(program, carried, now, last, state)


@partial(jax.jit, static_argnums=0)
def _next_step(program: Program, carried: Arrays, action: Any, numbers: Arrays) -> Arrays:
    """A lane that had ended is reset instead of stepped."""
    batch = program.env
    key, state, params = episodes.resume(program, carried, numbers)
    ended = state.lifecycle != jnp.int32(int(Lifecycle.READY))
    # A step leaves an ended episode alone and pays nothing, so it need not be kept from it.
    _, state, reward, terminated, truncated, _ = batch.advance(key, state, action, params)
    _, state = batch.reset_where(key, ended, state, params)
    now = _observe(batch, state, params, reward, terminated & ~ended, truncated & ~ended)
    return episodes.carry_on(program, carried, now, None, state)


def _observe(batch: Batch, state: SearchState, params: Params, *outcome: jax.Array) -> Seen:
    """Every lane after `outcome`, its reward and two flags."""
    env: Any = batch.env

    def one(state: SearchState, *outcome: jax.Array) -> Seen:
        return episodes.observe(env, state, params, *outcome)

    return jax.vmap(one, out_axes=episodes.LANES)(state, *outcome)
