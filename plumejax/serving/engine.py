"""serving/engine: what an engine is, which sessions run on, and that of environments as objects."""

import asyncio
import copy
import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, Protocol

from plumejax.serving.environment import Action, HostEnvironment, Observation, State
from plumejax.serving.refusals import RefusedError

_STRICT = json.JSONEncoder(allow_nan=False, separators=(",", ":"))
"""Raises `ValueError` for a number that is not finite."""


class Outcome(NamedTuple):
    """What a transition came to.

    Attributes:
      body: JSON, `{"observation", "reward", "done", "metadata"}`.
      state: of the episode after it.
    """

    body: bytes
    state: State


class Engine(Protocol):
    """Runs episodes at places 0 to `capacity` - 1; of each place, one call at a time.

    Attributes:
      name, about: of the task.
      action, observation, state: its models.
      capacity: places.
    """

    name: str
    about: str
    action: type[Action]
    observation: type[Observation]
    state: type[State]
    capacity: int

    @property
    def healthy(self) -> bool:
        """Whether it can go on."""

    async def start(self) -> None:
        """Compile what is needed."""

    async def stop(self) -> None:
        """Finish what runs, and let go of the thread."""

    async def open(self, place: int, num_envs: int) -> None:
        """Make a free place ready; `num_envs` is the number of lanes of a batch."""

    def release(self, place: int) -> None:
        """Forget what is there."""

    async def reset(self, place: int, seed: int | None, state: State) -> Outcome:
        """Begin the episode that `state` names; if that fails, the old one goes on."""

    async def step(self, place: int, action: Any, state: State, deadline: float) -> Outcome:
        """One step on from `state`. Raises `RefusedError`, and then nothing has changed.

        Args:
          place, action, state: of which episode.
          deadline: on the clock of the engine; what still waits then is not begun.
        """


class HostEngine:
    """Runs a `HostEnvironment` at each place, on one thread.

    A transition is made on a deep copy, which takes the place of the environment once its
    observation is JSON.
    """

    def __init__(
        self,
        factory: Callable[[], HostEnvironment],
        capacity: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        example = factory()
        self.name = type(example).__name__
        self.about = (type(example).__doc__ or self.name).partition("\n")[0]
        self.action, self.observation = example.action, example.observation
        self.state, self.capacity = type(example.state), capacity
        self.healthy = True
        self._factory, self._clock = factory, clock
        self._places: dict[int, HostEnvironment] = {}
        self._ended: set[int] = set()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="engine")

    async def start(self) -> None:
        pass

    async def stop(self) -> None:
        self._thread.shutdown(wait=True)

    async def open(self, place: int, num_envs: int) -> None:
        self._places[place] = await self._run(self._factory)

    def release(self, place: int) -> None:
        self._places.pop(place, None)
        self._ended.discard(place)

    async def reset(self, place: int, seed: int | None, state: State) -> Outcome:
        return await self._run(
            self._transition, place, lambda env: env.reset(seed=seed, episode_id=state.episode_id)
        )

    async def step(self, place: int, action: Any, state: State, deadline: float) -> Outcome:
        if place in self._ended:
            raise episode_done()

        def step(env: HostEnvironment) -> Any:
            require_time(self._clock, deadline)
            return env.step(action)

        return await self._run(self._transition, place, step)

    async def _run(self, work: Callable[..., Any], *arguments: Any) -> Any:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, _contained, work, *arguments)

    def _transition(self, place: int, change: Callable[[HostEnvironment], Any]) -> Outcome:
        env = copy.deepcopy(self._places[place])
        observation = change(env).model_dump(mode="json")
        reward, done = observation.pop("reward"), observation.pop("done")
        answer = reply(observation, reward, done, observation["metadata"])
        outcome = Outcome(_STRICT.encode(answer).encode(), env.state)
        self._places[place] = env
        (self._ended.add if done else self._ended.discard)(place)
        return outcome


def _contained(work: Callable[..., Any], *arguments: Any) -> Any:
    """`work(*arguments)`. What would end more than itself is an error as others are: a future takes
    no `StopIteration`, so who waits would wait for ever; the others would end the server."""
    try:
        return work(*arguments)
    except (StopIteration, SystemExit, KeyboardInterrupt) as error:
        raise RuntimeError(f"{type(error).__name__} in the environment") from error


def reply(
    observation: dict[str, Any], reward: Any, done: Any, metadata: dict[str, Any]
) -> dict[str, Any]:
    """What the body of an `Outcome` says.

    The metadata are beside the observation and in it: one client reads them there, one here.
    """
    return {
        "observation": {**observation, "metadata": metadata},
        "reward": reward,
        "done": done,
        "metadata": metadata,
    }


def episode_done() -> RefusedError:
    return RefusedError(409, "EPISODE_DONE", "the episode has ended; reset to begin another one")


def require_time(clock: Callable[[], float], deadline: float) -> None:
    """Raise `RefusedError` past the deadline."""
    if clock() > deadline:
        raise RefusedError(
            504, "TIMEOUT", "not begun within timeout_s, and given up: no step was made"
        )
