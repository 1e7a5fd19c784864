"""benchmarks/openenv_peer: a task under the server of the public `openenv` package.

Run by `benchmarks.serving` with the Python of an environment of its own: as its user would write
it, one compiled step of one episode, an instance for each socket.
"""

import sys
from typing import Any
from uuid import uuid4

import uvicorn
from openenv.core.env_server import create_fastapi_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, Observation, State


class EchoAction(Action):
    message: str


class EchoObservation(Observation):
    echoed_message: str
    message_length: int


class Echo(Environment):
    """As `plumejax.serving.Echo`."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        super().__init__()
        self._state = State()

    def reset(self, seed: int | None = None, episode_id: str | None = None) -> Any:
        self._state = State(episode_id=episode_id or str(uuid4()), step_count=0)
        return EchoObservation(
            echoed_message="Echo environment ready!", message_length=0, reward=0.0
        )

    def step(self, action: Any, timeout_s: float | None = None) -> Any:
        self._state.step_count += 1
        length, metadata = len(action.message), {"step": self._state.step_count}
        return EchoObservation(
            echoed_message=action.message,
            message_length=length,
            reward=0.1 * length,
            metadata=metadata,
        )

    @property
    def state(self) -> State:
        return self._state


class ChoiceAction(Action):
    value: int


class ValueObservation(Observation):
    value: list[float]


def plume_environment(task: str) -> type[Environment]:
    """The environment of a task with a choice of actions and a vector to observe."""
    import jax
    import numpy as np

    import plumejax

    env, params = plumejax.make(task)
    reset, step = jax.jit(env.reset), jax.jit(env.step)

    class Plume(Environment):
        SUPPORTS_CONCURRENT_SESSIONS = True

        def __init__(self) -> None:
            super().__init__()
            self._state = State()

        def reset(self, seed: int | None = None, episode_id: str | None = None) -> Any:
            self._state = State(episode_id=episode_id or str(uuid4()), step_count=0)
            self._key = jax.random.key(np.uint32(0 if seed is None else seed))
            observation, self._episode = reset(self._key, params)
            return ValueObservation(value=np.asarray(observation).tolist(), reward=0.0)

        def step(self, action: Any, timeout_s: float | None = None) -> Any:
            choice = np.int32(action.value)
            # The key is that of the episode: this task draws nothing in a step.
            observation, self._episode, *seen = step(self._key, self._episode, choice, params)
            observation, (reward, terminated, truncated, info) = jax.device_get((observation, seen))
            self._state.step_count += 1
            return ValueObservation(
                value=observation.tolist(),
                reward=float(reward),
                done=bool(terminated or truncated),
                metadata={name: value.tolist() for name, value in info.items()},
            )

        @property
        def state(self) -> State:
            return self._state

    first = Plume()
    first.reset(seed=0)
    first.step(ChoiceAction(value=0))
    return Plume


def main(task: str, port: str, sockets: str) -> None:
    """Serve it for so many sockets at most."""
    models = (EchoAction, EchoObservation)
    environment: type[Environment] = Echo
    if task != "Echo":
        models, environment = (ChoiceAction, ValueObservation), plume_environment(task)
    app = create_fastapi_app(environment, *models, max_concurrent_envs=int(sockets))
    uvicorn.run(app, host="127.0.0.1", port=int(port), log_level="warning")


if __name__ == "__main__":
    main(*sys.argv[1:])
