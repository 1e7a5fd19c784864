"""arms/phase_machine: phases gone through one after another, on signals or by a time limit."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.base.errors import require


class PhaseState(struct.PyTreeNode):
    """Where a controller stands.

    Attributes:
      index: int32[], number of its phase.
      steps: int32[], steps since that began.
      finished: bool[], the last phase is complete.
    """

    index: jax.Array
    steps: jax.Array
    finished: jax.Array


class Signals(NamedTuple):
    """What was seen in a step, bool[] each.

    Attributes:
      phase_complete: the phase did what it is there for.
      task_success: the whole task is done.
      collision: something is in the way: no phase ends now.
    """

    phase_complete: Any = False
    task_success: Any = False
    collision: Any = False


def first_phase() -> PhaseState:
    """The start of the first phase."""
    return PhaseState(jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32), jnp.zeros((), bool))


def next_phase(state: PhaseState, signals: Signals, timeouts: Any) -> PhaseState:
    """Where the controller stands after one more step; pure.

    A phase ends when it is complete, when the task is, or when it has lasted for its timeout,
    unless something collides. The last one does not end but is finished.

    Args:
      timeouts: int32[P], steps that each phase may take; 0 is no limit.
    """
    timeouts = jnp.asarray(timeouts, jnp.int32)
    steps = state.steps + jnp.int32(1)
    limit = timeouts[state.index]
    late = (limit > 0) & (steps >= limit)
    ends = (jnp.asarray(signals.phase_complete) | jnp.asarray(signals.task_success) | late) & (
        ~jnp.asarray(signals.collision)
    )
    last = state.index == len(timeouts) - 1
    return PhaseState(
        index=state.index + (ends & ~last).astype(jnp.int32),
        steps=jnp.where(ends, jnp.zeros_like(steps), steps),
        finished=state.finished | (ends & last),
    )


class PhaseMachine:
    """`next_phase` for scripts on the host, phases by name.

    Args:
      phases: their names, at least one, distinct.
      timeouts: steps that a phase may take, by name; by default, and 0, no limit.

    Raises:
      ValidationError (a ValueError): no phases, or a timeout of no phase or below 0.
    """

    def __init__(self, phases: Sequence[str], timeouts: Mapping[str, int] | None = None) -> None:
        self.phases = tuple(phases)
        distinct = len(self.phases) > 0 and len(set(self.phases)) == len(self.phases)
        require(distinct, "phases", self.phases, "one name or more, all distinct")
        timeouts = dict(timeouts or {})
        for name, steps in timeouts.items():
            require(name in self.phases, "timeouts", name, f"one of the phases {self.phases}")
            whole = isinstance(steps, int | np.integer) and not isinstance(steps, bool)
            require(whole and steps >= 0, f"timeouts[{name!r}]", steps, "an int >= 0")
        self._timeouts = np.asarray([timeouts.get(name, 0) for name in self.phases], np.int32)
        self.reset()

    def reset(self) -> None:
        """Go back to the first phase."""
        self._state = first_phase()
        self._history = [self.phases[0]]

    def step(self, signals: Mapping[str, bool]) -> str:
        """The phase after a step in which `signals` (names of `Signals`; others are not looked at)
        were seen."""
        known = {name: bool(signals.get(name, False)) for name in Signals._fields}
        before = self._state.index
        self._state = jax.device_get(next_phase(self._state, Signals(**known), self._timeouts))
        if self._state.index != before:
            self._history.append(self.current)
        return self.current

    @property
    def current(self) -> str:
        """The phase it is in."""
        return self.phases[int(self._state.index)]

    @property
    def steps_in_phase(self) -> int:
        """Steps since that began."""
        return int(self._state.steps)

    @property
    def history(self) -> tuple[str, ...]:
        """The phases so far, in order."""
        return tuple(self._history)

    @property
    def is_terminal(self) -> bool:
        """Whether the last phase is complete."""
        return bool(self._state.finished)


def phase_signals_from_state(observation: Any, info: Mapping[str, Any]) -> dict[str, bool]:
    """Signals for `PhaseMachine.step` from what `step` returned: `phase_complete`, `task_success`,
    `collision` (these arms have none), and `timeout_imminent`, whether the last step is done."""
    late = "max_steps" in info and info.get("step_count", 0) >= info["max_steps"]
    names = ("phase_complete", "task_success", "collision")
    return {**{name: bool(info.get(name, False)) for name in names}, "timeout_imminent": bool(late)}
