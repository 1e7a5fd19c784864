"""arms/state: the pytrees of the two-arm tasks: an episode's state, its numbers, a scene."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.base.environment import EnvParams, EnvState

ARMS = 2

OBJECTS = 2
"""Slots; a task with one object leaves the second at 0."""


def real() -> np.dtype:
    """The dtype of every number: float64 where x64 is on, else float32."""
    return np.dtype(jax.dtypes.canonicalize_dtype(float))


class ArmsParams(EnvParams):
    """Every number of a two-arm task.

    Attributes:
      max_steps: int32[], steps after which an episode is truncated.
      workspace_low, workspace_high: float[3], m, corners of the box that the grippers stay in.
      action_limit: float[], m, along each axis in a step.
      dt: float[], s, what one step takes; velocities follow from it.
      close_below: float[], in [0, 1], a gripper more closed than this takes hold.
      fall: float[], m, by which an object that nobody holds falls in a step.
      surface: float[], m, height down to which it falls.
      task: the numbers of the task itself; a dict by name where several are mixed.
      reward: those of the reward.
    """

    workspace_low: Any
    workspace_high: Any
    action_limit: Any
    dt: Any
    close_below: Any
    fall: Any
    surface: Any
    task: Any
    reward: Any


class Scene(struct.PyTreeNode):
    """Where an episode begins.

    Attributes:
      arm_position: float[2, 3], m.
      object_position: float[2, 3], m, of the two slots.
      goal: float[3, 3], m, places that the task is about; what they are its docstring says.
      task: int32[], which of several mixed tasks it is.
    """

    arm_position: jax.Array
    object_position: jax.Array
    goal: jax.Array
    task: jax.Array


class ArmsState(EnvState):
    """The state of an episode.

    Attributes:
      arm_position: float[2, 3], m, of each gripper.
      arm_velocity: float[2, 3], m/s, as it really moved.
      gripper: float[2], 1 open, 0 closed.
      object_position: float[2, 3], m.
      held: bool[2, 2], of each object by each arm.
      goal: float[3, 3], m.
      extension: float[], m, by how much the drawer is open.
      hold_count: int32[], steps that it has been held open.
      phase: int32[], the phase that the next step belongs to.
      previous_phase: int32[], the one that the last step belonged to.
      phase_complete: bool[], whether the last step completed it.
      success: bool[], whether the task is done.
      progress: float[], in [0, 1], the farthest that the task has been in this episode.
      task: int32[], which of several mixed tasks it is.
    """

    arm_position: jax.Array
    arm_velocity: jax.Array
    gripper: jax.Array
    object_position: jax.Array
    held: jax.Array
    goal: jax.Array
    extension: jax.Array
    hold_count: jax.Array
    phase: jax.Array
    previous_phase: jax.Array
    phase_complete: jax.Array
    success: jax.Array
    progress: jax.Array
    task: jax.Array


def at_rest(scene: Scene) -> ArmsState:
    """The state of a READY episode in which nothing has moved yet, not observed."""
    dtype = scene.goal.dtype
    no = jnp.zeros((), bool)
    return ArmsState(
        lifecycle=jnp.ones((), jnp.int32),
        step_count=jnp.zeros((), jnp.int32),
        total_reward=jnp.zeros(ARMS, dtype),
        observation=None,
        arm_position=scene.arm_position,
        arm_velocity=jnp.zeros((ARMS, 3), dtype),
        gripper=jnp.ones(ARMS, dtype),
        object_position=scene.object_position,
        held=jnp.zeros((OBJECTS, ARMS), bool),
        goal=scene.goal,
        extension=jnp.zeros((), dtype),
        hold_count=jnp.zeros((), jnp.int32),
        phase=jnp.zeros((), jnp.int32),
        previous_phase=jnp.zeros((), jnp.int32),
        phase_complete=no,
        success=no,
        progress=jnp.zeros((), dtype),
        task=scene.task,
    )
