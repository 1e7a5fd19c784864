"""arms/controllers: written by hand, they finish every episode: policies, and on the host."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.arms.environment import TwoArm
from plumejax.arms.phase_machine import PhaseMachine, PhaseState, Signals, first_phase, next_phase
from plumejax.arms.state import ArmsParams
from plumejax.base.errors import require


class Scripted(struct.PyTreeNode):
    """Sends both arms to the waypoints of the phase: pure, its memory a `PhaseState`.

    It sees the observation of both arms and nothing else.

    Attributes:
      task: the `TaskSpec`, static.
      view: of the observation, static.
      timeouts: int32[P], steps after which it goes on to the next phase all the same; 0 is never.
    """

    task: Any = struct.field(pytree_node=False)
    view: Any = struct.field(pytree_node=False)
    timeouts: Any

    def init(self, key: jax.Array) -> PhaseState:
        """The first phase; nothing is drawn."""
        return first_phase()

    def act(
        self, key: jax.Array, carry: PhaseState, observation: Any
    ) -> tuple[jax.Array, PhaseState]:
        """`(float[2, 4], carry)`; nothing is drawn."""
        seen = self.view.named(self.task, observation)
        carry = next_phase(carry, Signals(seen["phase"][0] > carry.index), self.timeouts)
        return self.task.scripted_action(seen, carry.index), carry


def scripted(env: TwoArm, params: ArmsParams) -> Scripted:
    """Both arms by hand-written waypoints: finishes every episode of the two-arm tasks.

    Raises:
      ValidationError: the task is not a two-arm one.
    """
    two_arm = hasattr(getattr(env, "task", None), "scripted_action")
    require(two_arm, "env", env, "a two-arm task")
    return Scripted(env.task, env.view, np.zeros(len(env.task.phases()), np.int32))


def waypoint_library(task: Any, cfg: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """float[2, 3] by phase: where the controller of `task` sends the grippers.

    Args:
      task: a `TaskSpec`.
      cfg: `arms`, float[2, 3], where the grippers are, and of each object and goal of the task, by
        name, float[3], where that is.

    Raises:
      ValidationError: something is missing, or no place.
    """
    arms = _place("arms", cfg, (2, 3))
    objects, goal = np.zeros((2, 3)), np.zeros((3, 3))
    for names, places in ((task.objects, objects), (task.goals, goal)):
        for i, name in enumerate(names):
            places[i] = _place(name, cfg, (3,))
    seen = {
        "robot_state": {"position": jnp.asarray(arms, float)},
        "objects": jnp.asarray(objects, float)[None],
        "goal": jnp.asarray(goal, float)[None],
    }
    return dict(zip(task.phases(), np.asarray(task.waypoints(seen)[0]), strict=True))


def _place(name: str, cfg: Mapping[str, Any], shape: tuple[int, ...]) -> np.ndarray:
    require(name in cfg, "cfg", list(cfg), f"with {name!r}")
    try:
        place = np.asarray(cfg[name], float)
    except (TypeError, ValueError):
        place = np.asarray(np.nan)
    fits = place.shape == shape and bool(np.all(np.isfinite(place)))
    require(fits, f"cfg[{name!r}]", cfg[name], f"numbers of shape {shape}")
    return place


def script_on_host(
    task: Any,
) -> Callable[[Any, PhaseMachine, Sequence[Mapping[str, Any]]], list[np.ndarray]]:
    """`scripted_policy(env, phase_machine, observations) -> actions` for a task, on the host.

    The observations are two dicts as `adapters/two_arm` gives them; the phase is the machine's.
    """
    act = jax.jit(task.scripted_action)

    def scripted_policy(
        env: Any, phase_machine: PhaseMachine, observations: Sequence[Mapping[str, Any]]
    ) -> list[np.ndarray]:
        first = observations[0]
        objects, goal = np.zeros((2, 3)), np.zeros((3, 3))
        objects[: len(task.objects)] = [first["objects"][name] for name in task.objects]
        goal[: len(task.goals)] = [first["metadata"]["goals"][name] for name in task.goals]
        here = np.stack([each["robot_state"]["position"] for each in observations])
        seen = {
            "robot_state": {"position": jnp.asarray(here, float)},
            "objects": jnp.asarray(objects, float)[None],
            "goal": jnp.asarray(goal, float)[None],
        }
        phase = jnp.asarray(phase_machine.phases.index(phase_machine.current), jnp.int32)
        return list(np.asarray(act(seen, phase)))

    return scripted_policy


POLICIES: dict[str, Callable[..., Any]] = {"scripted": scripted}
