"""serving/echo: Echo, which says what it is told: the smallest environment there is."""

from typing import Any

from pydantic import Field

from plumejax.serving.environment import (
    Action,
    HostEnvironment,
    Observation,
    State,
    Transform,
    new_state,
)


class EchoAction(Action):
    """What to say."""

    message: str = Field(strict=True)


class EchoObservation(Observation):
    """What was said, and how many characters that is."""

    echoed_message: str
    message_length: int


class Echo(HostEnvironment):
    """Repeats each message and pays 0.1 a character; never ends."""

    action = EchoAction
    observation = EchoObservation

    def __init__(self, transform: Transform | None = None) -> None:
        super().__init__(transform)
        self._state = State()

    def reset(self, seed: int | None = None, episode_id: str | None = None) -> Any:
        self._state = new_state(episode_id)
        first = EchoObservation(
            echoed_message="Echo environment ready!", message_length=0, reward=0.0
        )
        return self.transform(first)

    def step(self, action: EchoAction) -> Any:
        count = self._state.step_count + 1
        self._state = self._state.model_copy(update={"step_count": count})
        length = len(action.message)
        observation = EchoObservation(
            echoed_message=action.message,
            message_length=length,
            reward=0.1 * length,
            metadata={"step": count},
        )
        return self.transform(observation)

    @property
    def state(self) -> State:
        return self._state.model_copy()
