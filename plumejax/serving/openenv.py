"""serving/openenv: tasks as environments of the public package `openenv`, to be published so."""

from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from plumejax.base import registry
from plumejax.base.errors import require
from plumejax.base.extras import need
from plumejax.serving import lanes, models
from plumejax.serving.environment import new_state
from plumejax.serving.refusals import RefusedError
from plumejax.version import __version__

need("openenv", "openenv")

from openenv.core.env_server.interfaces import Environment, Transform  # noqa: E402
from openenv.core.env_server.types import (  # noqa: E402
    Action,
    EnvironmentMetadata,
    Observation,
    State,
)


class Task(NamedTuple):
    """What a `TaskEnvironment` plays.

    Attributes:
      name, about: of the task.
      env, params: the task.
      action, observation: its models.
    """

    name: str
    about: str
    env: Any
    params: Any
    action: type[Action]
    observation: type[Observation]


class TaskEnvironment(Environment[Action, Observation, State]):
    """Episodes of a task, one at a time. Those of equal tasks share a compilation and no more.

    Args:
      task: that it plays.
      transform: of every observation.
    """

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, task: Task, transform: Transform | None = None) -> None:
        super().__init__(transform)
        self._task, self._state = task, State()
        self._lanes: Any = None

    def reset(
        self, seed: int | None = None, episode_id: str | None = None, **options: Any
    ) -> Observation:
        """Begin an episode; without a seed another one each time, which the metadata tell."""
        seed = lanes.new_seed() if seed is None else seed
        require(0 <= seed < 2**31, "seed", seed, "0 to 2**31 - 1")
        env, params = self._task.env, self._task.params
        if self._lanes is None:
            self._lanes = lanes.fresh_lanes(env, 1, params)
        place = np.int32(0), np.uint32(seed)
        self._lanes, packed = lanes.reset_lane(env, self._lanes, *place, params)
        seen = jax.tree.map(models.encoded, lanes.on_host(packed))
        told = lanes.told(seen, {"seed": seed})
        self._state = State(**new_state(episode_id).model_dump())
        return self._observed(told)

    def step(self, action: Action, timeout_s: float | None = None, **options: Any) -> Observation:
        """One step, which is not interrupted. Raises `RefusedError` before a reset and after the
        end, and then nothing has changed."""
        if self._lanes is None:
            raise RefusedError(409, "NOT_RESET", "reset first")
        env, params = self._task.env, self._task.params
        member = models.member(env.action_space(params), action)
        actions = jax.tree.map(lambda x: x[None], member)
        self._lanes, packed = lanes.step_lanes(env, self._lanes, np.ones(1, bool), actions, params)
        seen = jax.tree.map(lambda x: models.encoded(x[0]), lanes.on_host(packed))
        told = lanes.told(seen, {})
        self._state = self._state.model_copy(update={"step_count": seen.step_count})
        return self._observed(told)

    @property
    def state(self) -> State:
        """A copy of where the episode stands."""
        return self._state.model_copy()

    def get_metadata(self) -> EnvironmentMetadata:
        """What the task is."""
        return EnvironmentMetadata(
            name=self._task.name, description=self._task.about, version=__version__
        )

    def _observed(self, told: lanes.Told) -> Observation:
        beside = {"reward": told.reward, "done": told.done, "metadata": told.metadata}
        observation = self._task.observation.model_validate({**told.observation, **beside})
        return self._apply_transform(observation)


def openenv_task(name: str, **options: Any) -> tuple[partial, type[Action], type[Observation]]:
    """`(factory, action, observation)` of a task, what the package's `create_app` takes first.

    Args:
      name: its id.
      options: as of `plumejax.make`.

    Raises:
      ValidationError: no such task, or a bad number.
    """
    about = registry.find(name).summary
    env, params = registry.make(name, **options)
    action, observation = models.task_models(name, env, params, (Action, Observation))
    task = Task(name, about, env, jax.device_put(params), action, observation)
    return partial(TaskEnvironment, task), action, observation
