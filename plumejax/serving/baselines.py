"""serving/baselines: Baselines, policies that play in a session, an action at a time."""

from functools import cached_property
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import jax

from plumejax.arms.environment import TwoArm
from plumejax.base.compiling import jit_by_class
from plumejax.base.errors import PlumeError
from plumejax.base.randomised import Randomised
from plumejax.policies.catalogue import ANYWHERE, describe, policies, prepare
from plumejax.search.environment import PlumeSearch
from plumejax.serving.lanes import Lanes
from plumejax.serving.models import encoded, observed
from plumejax.serving.refusals import RefusedError
from plumejax.serving.sessions import Session

STREAM = 2**31 - 1
"""Folded into the key of an episode: its steps fold in their count, which is less."""


class Memory(NamedTuple):
    """What a policy has of an episode.

    Attributes:
      of: its name, the id of the episode, and the step that its action is for.
      action: that, as JSON has it.
      carry: of the policy, after it.
    """

    of: tuple[str, str | None, int]
    action: dict[str, Any]
    carry: Any


class Baselines:
    """The policies that fit a task, none of them learned, and what each session's one remembers.

    Attributes:
      env, params: the task.
    """

    def __init__(self, env: Any, params: Any) -> None:
        self.env, self.params = env, params
        self._memories: WeakKeyDictionary[Session, Memory] = WeakKeyDictionary()

    @cached_property
    def fitting(self) -> dict[str, Any]:
        """By name. Takes seconds where there are tables to make."""
        known = isinstance(self.env, PlumeSearch | TwoArm | Randomised)
        found = {}
        for name in policies() if known else ANYWHERE:
            try:
                _, _, found[name] = prepare(name, self.env, self.params)
            except PlumeError:
                continue
        return found

    def described(self) -> list[dict[str, str]]:
        """Name and one line of each."""
        return [{"name": name, "about": describe(name)} for name in self.fitting]

    def act(self, session: Session, name: str, lane: Lanes) -> dict[str, Any]:
        """The action of a policy in a session, in the form of its model; the first one compiles.

        A policy takes its last action to be the one that was made. If a step has been made without
        it, or it is another one, it begins afresh, and knows nothing of the episode so far. Its
        draws depend on the seed of the episode and the step alone.

        Args:
          session, lane: of the episode.
          name: of the policy. Raises `RefusedError` if none of that name fits.
        """
        policy = self.fitting.get(name)
        if policy is None:
            raise RefusedError(422, "NO_SUCH_BASELINE", "no policy of that name fits this task")
        state = lane.state
        of = name, session.state.episode_id, session.state.step_count
        memory = self._memories.get(session)
        if memory is not None and memory.of == of:
            return memory.action
        goes_on = memory is not None and memory.of == (*of[:2], of[2] - 1)
        carry = memory.carry if memory and goes_on else _begin(policy, lane.seed)
        action, carry = _act(policy, carry, lane.seed, state.step_count, state.observation)
        said = encoded(observed(jax.device_get(action)))
        self._memories[session] = Memory(of, said, carry)
        return said


@jit_by_class()
def _begin(policy: Any, seed: Any) -> Any:
    return policy.init(jax.random.fold_in(_stream(seed), 0))


@jit_by_class()
def _act(policy: Any, carry: Any, seed: Any, step_count: Any, observation: Any) -> Any:
    key = jax.random.fold_in(_stream(seed), step_count + 1)
    return policy.act(key, carry, observation)


def _stream(seed: Any) -> jax.Array:
    return jax.random.fold_in(jax.random.key(seed), STREAM)
