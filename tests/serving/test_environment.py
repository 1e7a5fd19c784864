"""tests/serving/test_environment: the rules of the environment object and of its messages."""

import copy
import importlib.util
from uuid import UUID

import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plumejax.base.errors import PlumeError
from plumejax.serving import (
    Action,
    CompositeTransform,
    Echo,
    HostEnvironment,
    NullTransform,
    Observation,
    State,
    Transform,
)
from plumejax.serving.echo import EchoAction
from plumejax.serving.environment import refused


class Countdown(HostEnvironment):
    """Takes 1 or 2 off 5, as far as there is that much; every other action is refused."""

    class Take(Action):
        amount: int

    class Left(Observation):
        left: int
        taken: tuple[tuple[int, ...], ...] = ()

    action, observation = Take, Left

    def __init__(self, transform=None):
        super().__init__(transform)
        self._state, self._last = State(), None

    def reset(self, seed=None, episode_id=None):
        self._state = State(episode_id=episode_id or "five")
        self._last = self.Left(left=5, reward=0.0)
        return self.transform(self._last)

    def step(self, action):
        if not 0 < action.amount <= min(2, self._last.left):
            return self.transform(refused(self._last, "TOO_MUCH", "take 1 or 2 of what is left"))
        count = self._state.step_count + 1
        self._state = self._state.model_copy(update={"step_count": count})
        left = self._last.left - action.amount
        taken = (*self._last.taken, (action.amount,))
        reward = float(action.amount)
        self._last = self.Left(left=left, taken=taken, reward=reward, done=left == 0)
        return self.transform(self._last)

    @property
    def state(self):
        return self._state.model_copy()


class Noted(Transform):
    """Puts `name` and what it saw at the end of a list in the metadata."""

    def __init__(self, name):
        self.name = name

    def __call__(self, observation):
        notes = (*observation.metadata.get("notes", ()), self.name)
        metadata = {"notes": notes, "saw": (observation.reward, observation.done)}
        return observation.model_copy(update={"metadata": metadata})


@pytest.mark.parametrize("missing", ["reset", "step", "state"])
def test_an_environment_has_reset_step_and_state(missing):
    class Whole(Countdown):
        pass

    assert Whole()
    Part = type("Part", (Whole,), {missing: getattr(HostEnvironment, missing)})
    with pytest.raises(TypeError, match="abstract"):
        Part()
    with pytest.raises(AttributeError):
        Whole().state = State()


def test_the_fields_of_state_action_and_observation():
    assert State().model_dump() == {"episode_id": None, "step_count": 0}
    assert Action().model_dump() == {"metadata": {}}
    assert Observation().model_dump() == {"done": False, "reward": None, "metadata": {}}
    with pytest.raises(pydantic.ValidationError):
        State(steps=1)


def test_every_reset_is_a_new_episode():
    echo = Echo()
    assert echo.state == State()
    states = []
    for _ in range(1000):
        echo.reset()
        echo.step(EchoAction(message="a"))
        echo.reset()
        states.append(echo.state)
    assert len({UUID(state.episode_id).hex for state in states}) == 1000
    assert all(UUID(state.episode_id).version == 4 for state in states)
    assert {state.step_count for state in states} == {0}
    assert states[0] is not states[1]


def test_step_count_counts_transitions_and_nothing_else():
    echo = Echo()
    echo.reset()
    name = echo.state.episode_id
    for count in range(1, 6):
        echo.step(EchoAction(message="hm"))
        assert (echo.state, echo.state) == (State(episode_id=name, step_count=count),) * 2


def test_an_action_that_is_refused_is_no_transition():
    env = Countdown()
    env.reset()
    env.step(env.action(amount=2))
    before = copy.deepcopy(vars(env))
    observation = env.step(env.action(amount=3))
    assert observation.metadata["error"] == {
        "code": "TOO_MUCH",
        "message": "take 1 or 2 of what is left",
    }
    assert (observation.reward, observation.done, observation.left) == (None, False, 3)
    assert vars(env)["_state"] == before["_state"]
    assert vars(env)["_last"] == before["_last"]


def test_the_transform_comes_last_and_sees_reward_and_end():
    env = Countdown(CompositeTransform([Noted("first"), NullTransform(), Noted("second")]))
    assert env.reset().metadata["notes"] == ("first", "second")
    for amount in (2, 2, 1):
        observation = env.step(env.action(amount=amount))
    assert observation.metadata == {"notes": ("first", "second"), "saw": (1.0, True)}
    assert observation.done
    assert NullTransform()(observation) is observation


def test_echo_says_what_it_is_told():
    echo = Echo()
    first = echo.reset()
    assert first.model_dump() == {
        "echoed_message": "Echo environment ready!",
        "message_length": 0,
        "reward": 0.0,
        "done": False,
        "metadata": {},
    }
    observation = echo.step(EchoAction(message="Hello"))
    assert (observation.echoed_message, observation.message_length) == ("Hello", 5)
    assert (observation.reward, observation.done) == (0.5, False)
    assert observation.metadata == {"step": 1}


def test_messages_are_frozen_to_the_bottom():
    observation = Countdown.Left(left=1, taken=[[1]], metadata={"a": [{"b": [1]}]})
    with pytest.raises(pydantic.ValidationError, match="frozen"):
        observation.left = 2
    with pytest.raises(TypeError):
        observation.taken[0][0] = 2
    with pytest.raises(ValueError, match="immutable"):
        observation.metadata["a"] = 2
    with pytest.raises(TypeError):
        observation.metadata["a"][0] = 2
    with pytest.raises(ValueError, match="immutable"):
        observation.metadata["a"][0]["b"] = 2
    assert observation.model_dump(mode="json")["metadata"] == {"a": [{"b": [1]}]}
    assert Countdown.Left.model_validate_json(observation.model_dump_json()) == observation
    assert copy.deepcopy(observation) == observation


def test_the_state_handed_out_is_no_handle_on_the_environment():
    echo = Echo()
    echo.reset()
    handed = echo.state
    object.__setattr__(handed, "step_count", 99)
    handed.__dict__["episode_id"] = "mine"
    assert echo.state.step_count == 0
    assert echo.state.episode_id != "mine"


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 3), st.one_of(st.none(), st.integers(0, 3))), max_size=60))
def test_interleaved_instances_live_as_they_do_alone(moves):
    """I2: whatever the order, each instance does what it does alone."""

    def live(env, move):
        if move is None or env.state.episode_id is None:
            return env.reset()
        return env.step(env.action(amount=move))

    together, envs = {n: [] for n in range(4)}, [Countdown() for _ in range(4)]
    for n, move in moves:
        together[n].append(live(envs[n], move))
    for n in range(4):
        env = Countdown()
        assert [live(env, move) for m, move in moves if m == n] == together[n]
        assert env.state == envs[n].state


def test_the_adapter_says_which_extra_it_needs():
    if importlib.util.find_spec("openenv"):
        pytest.skip("openenv is installed here")
    with pytest.raises(PlumeError, match=r"plumejax\[openenv\]"):
        importlib.import_module("plumejax.serving.openenv")
