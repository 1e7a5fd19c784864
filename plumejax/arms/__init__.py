"""arms: two cooperating arms, a kinematic coordination benchmark without contact or mass."""

from plumejax.arms.control import (
    clamp_action,
    ee_pose_from_state,
    gripper_command,
    plan_rendezvous,
    solve_ik,
)
from plumejax.arms.controllers import Scripted, script_on_host, scripted, waypoint_library
from plumejax.arms.environment import ACTION_SIZE, TwoArm
from plumejax.arms.named_tasks import state_from, two_arm
from plumejax.arms.phase_machine import (
    PhaseMachine,
    PhaseState,
    Signals,
    first_phase,
    next_phase,
    phase_signals_from_state,
)
from plumejax.arms.state import ARMS, ArmsParams, ArmsState
from plumejax.arms.tasks import (
    TaskMetadata,
    TaskSpec,
    deregister_task,
    get_task,
    iter_registered_tasks,
    register_task,
)

__all__ = [
    "ACTION_SIZE",
    "ARMS",
    "ArmsParams",
    "ArmsState",
    "PhaseMachine",
    "PhaseState",
    "Scripted",
    "Signals",
    "TaskMetadata",
    "TaskSpec",
    "TwoArm",
    "clamp_action",
    "deregister_task",
    "ee_pose_from_state",
    "first_phase",
    "get_task",
    "gripper_command",
    "iter_registered_tasks",
    "next_phase",
    "phase_signals_from_state",
    "plan_rendezvous",
    "register_task",
    "script_on_host",
    "scripted",
    "solve_ik",
    "state_from",
    "two_arm",
    "waypoint_library",
]
