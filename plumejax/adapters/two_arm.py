"""adapters/two_arm: the two-arm tasks on the host: the seed's class, and one agent that moves both
arms, for Gymnasium. PettingZoo's two agents are in `adapters/pettingzoo`."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np

from plumejax.adapters.episodes import (
    closed,
    not_reset,
    require_render_mode,
    require_renderable,
    require_seed,
    seeded,
)
from plumejax.adapters.spaces import to_gymnasium
from plumejax.arms.camera import picture
from plumejax.arms.environment import ACTION_SIZE, TwoArm
from plumejax.arms.named_tasks import two_arm
from plumejax.arms.state import ARMS, ArmsParams, ArmsState
from plumejax.arms.tasks import TaskMetadata, parts
from plumejax.base import lifecycle, registry
from plumejax.base.errors import ValidationError, require

SCALE = 8
"""How many pixels wide and high each pixel of the camera is shown."""


@dataclass(frozen=True)
class EnvironmentConfig:
    """What a `NewtonMAEnv` is made of.

    Attributes:
      task_name: "lift", "handoff", "drawer", or what `arms.register_task` was told.
      seed: of the scenes that are drawn, 0 <= seed < 2^31.
      max_steps: steps after which an episode ends, > 0.
    """

    task_name: str = "lift"
    seed: int = 0
    max_steps: int = 200

    def __post_init__(self) -> None:
        require(isinstance(self.task_name, str), "task_name", self.task_name, "a name")
        require(self.seed is not None, "seed", self.seed, "an int, 0 <= seed < 2**31")
        require_seed(self.seed)
        whole = isinstance(self.max_steps, int | np.integer) and not isinstance(
            self.max_steps, bool
        )
        require(whole and 0 < self.max_steps < 2**31, "max_steps", self.max_steps, "an int > 0")

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any]) -> "EnvironmentConfig":
        """The config with these fields, the others as by default. Raises `ValidationError`."""
        good = isinstance(mapping, Mapping)
        require(good, "config", mapping, "a dict or an EnvironmentConfig")
        known = [field.name for field in fields(cls)]
        for name in mapping:
            require(name in known, "config key", name, f"one of {', '.join(known)}")
        return cls(**mapping)


class NewtonMAEnv:
    """Two arms, each with an observation of its own; one `done` for both.

    A scene is drawn at each `reset`, from the config's seed and how many resets there were.
    A step after the end changes nothing and pays nothing, with one warning an episode.

    Args:
      config: an `EnvironmentConfig`, or a mapping of its fields.

    Raises:
      ValidationError (a ValueError): a bad config.
      KeyError: an unknown task.
    """

    def __init__(self, config: EnvironmentConfig | Mapping[str, Any] | None = None) -> None:
        if not isinstance(config, EnvironmentConfig):
            config = EnvironmentConfig.from_mapping({} if config is None else config)
        self.config = config
        self.core, params = two_arm(config.task_name, view="pictures")
        self.params = params.replace(max_steps=np.int32(config.max_steps))
        self._resets = 0
        self._state: ArmsState | None = None
        self._instruction: Any = None
        self._warned = self._closed = False

    @property
    def state(self) -> ArmsState:
        """The episode as it stands. Raises `StateError` before the first reset."""
        return self._ready("state")

    @property
    def phase(self) -> str:
        """Name of the phase that the next step belongs to."""
        state = self._ready("phase")
        return _names(self.core, state)[int(state.phase)]

    @property
    def metadata(self) -> TaskMetadata:
        """Phases, and by name goals, float[3] each, and thresholds of the task."""
        state = self._ready("metadata")
        task = parts(self.core.task)[int(state.task)]
        goal = np.asarray(state.goal)
        thresholds = {
            name: np.asarray(value).item()
            for name, value in vars(self.params.task).items()
            if np.ndim(value) == 0
        }
        goals = {name: goal[i].copy() for i, name in enumerate(task.goals)}
        return TaskMetadata(task.phases(), {"goals": goals, "thresholds": thresholds})

    def reset(self, instruction: Any) -> list[dict[str, Any]]:
        """The two observations of a fresh episode; `instruction` is handed on in each of them."""
        if self._closed:
            raise closed("reset")
        key = jax.random.fold_in(jax.random.key(self.config.seed), self._resets)
        _, self._state = self.core.reset(key, self.params)
        self._resets += 1
        self._instruction, self._warned = instruction, False
        return self._observations({"phase": self.phase})

    def step(
        self, actions: Sequence[Any]
    ) -> tuple[list[dict[str, Any]], list[float], bool, dict[str, Any]]:
        """`(observations, rewards, done, info)`.

        Args:
          actions: one an arm, each a vector of numbers: translation, m, and opening of the gripper.
            A short one is filled with zeros, which closes the gripper; what is beyond the fourth
            number is not looked at; numbers out of bounds are clipped.

        Raises:
          ValidationError (a ValueError): not two actions, an empty one, or one that is not finite.
          TypeError: an action that is no vector of numbers.
          StateError: before the first reset, after close.
        """
        if self._closed:
            raise closed("step")
        if self._state is None:
            raise not_reset("step")
        action = _actions(actions)
        before = self._state
        ended = not bool(lifecycle.is_ready(before.lifecycle))
        if ended and not self._warned:
            warnings.warn("step() after the end of the episode: call reset()", stacklevel=2)
            self._warned = True
        _, self._state, reward, terminated, truncated, info = self.core.step(
            jax.random.key(0), before, action, self.params
        )
        done = bool(terminated | truncated)
        told = self._info(info, done)
        return self._observations(told), [float(r) for r in reward], done, told

    def render(self, mode: str = "rgb_array") -> dict[str, np.ndarray]:
        """`{"agent_a": uint8[48, 48, 3], "agent_b": the same}`, from above."""
        require(mode == "rgb_array", "mode", mode, "'rgb_array'")
        image = np.asarray(self._ready("render").observation["rgb"][0])
        return {"agent_a": image, "agent_b": image.copy()}

    def close(self) -> None:
        """After this nothing but `close` works."""
        self._closed = True

    def _ready(self, what: str) -> ArmsState:
        if self._state is None:
            raise not_reset(what)
        return self._state

    def _info(self, info: Mapping[str, Any], done: bool) -> dict[str, Any]:
        info = jax.device_get(info)
        names = _names(self.core, self.state)
        task = parts(self.core.task)[int(self.state.task)]
        holders = zip(task.objects, info["held"], strict=False)
        numbers = self.core.task.info(self.state, self.params.task)
        return {
            "task": task.name,
            "step": int(info["step_count"]),
            "phase": names[int(info["phase"])],
            "previous_phase": names[int(info["previous_phase"])],
            "phase_complete": bool(info["phase_complete"]),
            "task_success": bool(info["task_success"]),
            "done": done,
            "attachments": {
                name: [agent for agent in range(ARMS) if by[agent]] for name, by in holders
            },
            **{name: float(value) for name, value in numbers.items()},
            "metadata": self._extras(),
        }

    def _extras(self) -> dict[str, Any]:
        metadata = self.metadata
        return {"phases": list(metadata.phases), **metadata.extras}

    def _observations(self, told: Mapping[str, Any]) -> list[dict[str, Any]]:
        seen = jax.device_get(self.state.observation)
        task = parts(self.core.task)[int(self.state.task)]
        extras = {**self._extras(), **{k: v for k, v in told.items() if k != "metadata"}}

        def arm(which: str, i: int) -> dict[str, Any]:
            of = seen[which]
            return {
                "position": of["position"][i].copy(),
                "velocity": of["velocity"][i].copy(),
                "gripper": float(of["gripper"][i, 0]),
            }

        return [
            {
                "agent_id": i,
                "task": task.name,
                "phase": self.phase,
                "instruction": self._instruction,
                "robot_state": arm("robot_state", i),
                "peer_state": arm("peer_state", i),
                "objects": {
                    name: seen["objects"][i, n].copy() for n, name in enumerate(task.objects)
                },
                "metadata": dict(extras),
                "rgb": seen["rgb"][i].copy(),
            }
            for i in range(ARMS)
        ]


class TwoArmEnv(gymnasium.Env[np.ndarray, np.ndarray]):
    """A two-arm task as one agent that moves both arms, for Gymnasium.

    An observation is float[2 N], both arms' `views.Flat` one after the other; an action float[8];
    the reward that of both arms on average.

    Args:
      task: id of a two-arm task.
      render_mode: None or "rgb_array".
      overrides, **static: as of `plumejax.make`.

    Raises:
      ValidationError: as `plumejax.make`.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 20}

    def __init__(
        self,
        task: str = "TwoArm-Lift-v0",
        *,
        render_mode: str | None = None,
        overrides: Mapping[str, Any] | None = None,
        **static: Any,
    ) -> None:
        require_render_mode(render_mode, self.metadata["render_modes"])
        self.render_mode = render_mode
        self.core, self.params = made(task, overrides, static)
        self.observation_space = _long(self.core.observation_space(self.params))
        self.action_space = _long(self.core.action_space(self.params))
        self._state: ArmsState | None = None
        self._closed = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """`(observation, info)` of a fresh episode; there are no options."""
        if self._closed:
            raise closed("reset")
        require_seed(seed)
        require(not options, "options", options, "None: there are none")
        used, self._np_random, self._np_random_seed = seeded(seed, self)
        observation, self._state = self.core.reset(jax.random.key(used), self.params)
        return np.asarray(observation).ravel(), {"seed": used}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """`(observation, reward, terminated, truncated, info)`; bounds are kept by clipping."""
        if self._closed:
            raise closed("step")
        if self._state is None:
            raise not_reset("step")
        given = finite_action("action", action, ARMS * ACTION_SIZE)
        observation, self._state, reward, terminated, truncated, info = self.core.step(
            jax.random.key(0), self._state, given.reshape(ARMS, ACTION_SIZE), self.params
        )
        told = {name: plain(value) for name, value in info.items()}
        paid = float(np.mean(reward))
        return np.asarray(observation).ravel(), paid, bool(terminated), bool(truncated), told

    def render(self) -> np.ndarray | None:
        """uint8[384, 384, 3], from above; None if no `render_mode` was chosen."""
        if self._state is None:
            raise not_reset("render")
        require_renderable(self.render_mode, None)
        return shown(self.core, self._state, self.params)

    def close(self) -> None:
        """After this nothing but `close` works."""
        self._closed = True


def made(
    task: str, overrides: Mapping[str, Any] | None, static: Mapping[str, Any]
) -> tuple[TwoArm, ArmsParams]:
    """`(env, params)` of a two-arm task with one array to observe."""
    env, params = registry.make(task, overrides=overrides, **static)
    if not isinstance(env, TwoArm):
        raise ValidationError(f"{task} is no two-arm task that draws nothing but its scene")
    require(hasattr(env.observation_space(params), "low"), "view", env.view, "'flat'")
    return env, params


def finite_action(what: str, action: Any, size: int) -> np.ndarray:
    """float[size]. Raises `ValidationError` for another shape or kind, or what is not finite."""
    given = np.asarray(action)
    good = given.shape == (size,) and given.dtype.kind == "f" and bool(np.all(np.isfinite(given)))
    require(good, what, action, f"{size} finite numbers")
    return given


def shown(env: TwoArm, state: ArmsState, params: ArmsParams) -> np.ndarray:
    """uint8[384, 384, 3]: what the camera sees, as large as people like it."""
    exists = env.task.grip(state, params.task).exists
    image = np.asarray(picture(state, exists, params))
    return image.repeat(SCALE, axis=0).repeat(SCALE, axis=1)


def plain(value: Any) -> Any:
    """A number of an `info` as Python has it, an array as NumPy does."""
    array = np.asarray(value)
    return array.item() if array.ndim == 0 else array


def _long(space: Any) -> gymnasium.spaces.Box:
    box: Any = to_gymnasium(space)
    return gymnasium.spaces.Box(box.low.ravel(), box.high.ravel(), dtype=box.dtype.type)


def _names(env: TwoArm, state: ArmsState) -> tuple[str, ...]:
    return tuple(parts(env.task)[int(state.task)].phases())


def _actions(actions: Sequence[Any]) -> jax.Array:
    """float[2, 4]; raises before anything has changed."""
    try:
        count = len(actions)
    except TypeError:
        raise TypeError(f"actions = {actions!r} must be a sequence of {ARMS}") from None
    require(count == ARMS, "actions", count, f"exactly {ARMS}, one for each agent")
    whole = np.zeros((ARMS, ACTION_SIZE))
    for i, action in enumerate(actions):
        try:
            given = np.asarray(action).ravel()
        except ValueError:  # ragged
            given = np.asarray(None)
        if given.dtype.kind not in "iuf":
            raise TypeError(f"action of agent {i} = {action!r} must be a vector of numbers")
        require(given.size > 0, f"action of agent {i}", action, "one number or more")
        require(bool(np.all(np.isfinite(given))), f"action of agent {i}", action, "finite")
        given = given[:ACTION_SIZE]
        whole[i, : len(given)] = given
    return jnp.asarray(whole, float)
