"""serving/environment: HostEnvironment, an environment that is an object; frozen messages."""

import abc
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

from flax.core import FrozenDict
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    field_serializer,
    field_validator,
)


class Frozen(BaseModel):
    """A message that cannot change, nor can the containers in it: lists become tuples, dicts
    become read-only mappings, so declare `tuple` and `Mapping`. Other fields are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")

    @field_validator("*", mode="after")
    @classmethod
    def _freeze(cls, value: Any) -> Any:
        return frozen(value)

    @field_serializer("*", mode="wrap")
    def _thaw(self, value: Any, handler: SerializerFunctionWrapHandler) -> Any:
        return handler(_thawed(value))


NOTHING: Mapping[str, Any] = FrozenDict()


class Action(Frozen):
    """What an agent does.

    Attributes:
      metadata: the client's own notes; nothing depends on it.
    """

    metadata: Mapping[str, Any] = Field(default_factory=lambda: NOTHING)


class Observation(Frozen):
    """What an agent sees.

    Attributes:
      done: whether the episode has ended.
      reward: of the step; None where nothing was done that could be paid.
      metadata: diagnostic information.
    """

    done: bool = False
    reward: float | None = None
    metadata: Mapping[str, Any] = Field(default_factory=lambda: NOTHING)


class State(Frozen):
    """Where an episode stands.

    Attributes:
      episode_id: None before the first reset.
      step_count: transitions of this episode.
    """

    episode_id: str | None = None
    step_count: int = 0


class Transform(abc.ABC):
    """Makes another observation of an observation, which it cannot change."""

    @abc.abstractmethod
    def __call__(self, observation: Any) -> Any:
        """An observation."""


class NullTransform(Transform):
    """The identity."""

    def __call__(self, observation: Any) -> Any:
        return observation


class CompositeTransform(Transform):
    """Several, the first one first."""

    def __init__(self, transforms: Sequence[Transform]) -> None:
        self.transforms = tuple(transforms)

    def __call__(self, observation: Any) -> Any:
        for transform in self.transforms:
            observation = transform(observation)
        return observation


class HostEnvironment(abc.ABC):
    """An environment that is a Python object, such as one made of text; `Echo` is one.

    `step` checks the action, then changes the state, then works out reward, end and observation,
    then returns `self.transform(observation)`; of an action that it refuses it returns
    `refused(...)` and changes nothing. Everything that a step changes belongs to the object, never
    to its class. The server steps a deep copy and keeps that if all went well, so a transition is
    whole or never happened.

    Attributes:
      action, observation: its models.
      transform: applied to every observation that it returns.
    """

    action: type[Action] = Action
    observation: type[Observation] = Observation

    def __init__(self, transform: Transform | None = None) -> None:
        self.transform = NullTransform() if transform is None else transform

    @abc.abstractmethod
    def reset(self, seed: int | None = None, episode_id: str | None = None) -> Any:
        """The first observation of a new episode, whatever came before.

        Args:
          seed: of what is drawn, if anything is.
          episode_id: its name; by default a new UUID.
        """

    @abc.abstractmethod
    def step(self, action: Any) -> Any:
        """The observation after `action`."""

    @property
    @abc.abstractmethod
    def state(self) -> State:
        """A copy of where the episode stands."""


def new_state(episode_id: str | None = None) -> State:
    """That of a fresh episode, under a new UUID if it has no name."""
    return State(episode_id=episode_id or str(uuid4()))


def refused(observation: Any, code: str, message: str) -> Any:
    """`observation`, the last one, with why the action was no transition; it pays nothing."""
    error = {"code": code, "message": message}
    metadata: Mapping[str, Any] = FrozenDict({**observation.metadata, "error": error})
    return observation.model_copy(update={"reward": None, "metadata": metadata})


def frozen(value: Any) -> Any:
    """`value` with tuples for lists and read-only mappings for dicts, at any depth."""
    if isinstance(value, Mapping):
        return FrozenDict({key: frozen(each) for key, each in value.items()})
    if isinstance(value, list | tuple):
        return tuple(frozen(each) for each in value)
    return value


def _thawed(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _thawed(each) for key, each in value.items()}
    if isinstance(value, tuple):
        return tuple(_thawed(each) for each in value)
    return value
