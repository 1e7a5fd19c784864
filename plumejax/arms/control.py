"""arms/control: pure helpers of a controller: reach a pose, meet at an object, bounded commands."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from plumejax.arms.geometry import length
from plumejax.base.errors import ValidationError

STRIDE = 0.05
"""m (or rad), the most that `solve_ik` goes along each axis in an iteration."""


def solve_ik(
    q_init: Any, target_pose: Any, limits: Any = None, max_iters: int = 100, atol: float = 1e-3
) -> jax.Array:
    """float[n]: `q_init` float[n], moved toward the first n numbers of `target_pose`, in steps of
    at most `STRIDE` along each axis.

    It stops where it is within `atol` (Euclidean) before a step, or after `max_iters` steps. The
    arms have no joints: what it solves for are the coordinates themselves.

    Args:
      limits: `(low, high)` of each coordinate, float[n, 2], kept after each step; None is none.

    Raises:
      ValidationError: `target_pose` is shorter than `q_init`, or `limits` are not n pairs.
    """
    q = jnp.asarray(q_init, float)
    target = jnp.asarray(target_pose, float)
    if q.ndim != 1 or target.ndim != 1 or len(target) < len(q):
        raise ValidationError(
            f"target_pose of shape {target.shape} does not fit q_init of shape {q.shape}: it must"
            " be a vector at least as long"
        )
    target = target[: len(q)]
    low, high = jnp.full_like(q, -jnp.inf), jnp.full_like(q, jnp.inf)
    if limits is not None:
        bounds = jnp.asarray(limits, float)
        if bounds.shape != (len(q), 2):
            raise ValidationError(f"limits of shape {bounds.shape} must be {(len(q), 2)}")
        low, high = bounds.T

    def going(carry: tuple[jax.Array, jax.Array]) -> jax.Array:
        count, q = carry
        return (count < max_iters) & (length(target - q) > atol)

    def one(carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        count, q = carry
        step = jnp.clip(target - q, -STRIDE, STRIDE)
        return count + jnp.int32(1), jnp.clip(q + step, low, high)

    return jax.lax.while_loop(going, one, (jnp.int32(0), q))[1]


def ee_pose_from_state(state: Any, agent_id: int) -> jax.Array:
    """float[7]: position x, y, z of a gripper, and a quaternion (0, 0, 0, 1), as arms do not turn.

    Args:
      state: an `ArmsState`; a mapping with `arms`, a sequence or mapping (`agent_0`, `agent_1`) of
        mappings with `position`; or an observation of an arm, with `robot_state`, and then
        `agent_id` is not looked at.
      agent_id: 0 or 1.

    Raises:
      KeyError: no pose in `state`.
    """
    position = _position(state, agent_id)
    if position is None:
        raise KeyError(f"no pose of agent {agent_id} in {type(state).__name__}")
    return _pose(jnp.asarray(position, float))


def _position(state: Any, agent_id: int) -> Any:
    if hasattr(state, "arm_position"):
        return state.arm_position[agent_id]
    if not isinstance(state, Mapping):
        return None
    if "robot_state" in state:
        return state["robot_state"].get("position")
    arms = state.get("arms")
    if isinstance(arms, Mapping):
        arm = arms.get(f"agent_{agent_id}", arms.get(agent_id))
    else:
        arm = arms[agent_id] if arms is not None and agent_id < len(arms) else None
    return None if arm is None else arm.get("position")


def plan_rendezvous(
    a: Any, b: Any, target: Any, offset: float = 0.08
) -> tuple[jax.Array, jax.Array]:
    """`(float[7], float[7])`: poses for two grippers on either side of an object.

    They lie `offset` m off `target` across the way that leads there from between `a` and `b`,
    float[3] each; on the way up if they are there already, and along x if the way is vertical.
    """
    a, b, target = (jnp.asarray(x, float)[:3] for x in (a, b, target))
    way = target - (a + b) / 2
    up = jnp.asarray([0.0, 0.0, 1.0], way.dtype)
    way = jnp.where(length(way) < 1e-6, up, way)
    across = jnp.stack([-way[1], way[0], jnp.zeros_like(way[0])])
    aside = length(across)
    along_x = jnp.asarray([1.0, 0.0, 0.0], way.dtype)
    some = aside > 1e-6
    across = jnp.where(some, across / jnp.where(some, aside, 1.0), along_x)
    return _pose(target - offset * across), _pose(target + offset * across)


def gripper_command(ratio: Any) -> jax.Array:
    """float[...], `ratio` within [0, 1]: 1 is open, 0 closed."""
    return jnp.clip(jnp.asarray(ratio, float), 0.0, 1.0)


def clamp_action(action: Any, max_norm: Any) -> jax.Array:
    """`action`, float[..., n >= 3], its first three numbers, the translation, scaled down to at
    most the Euclidean length `max_norm`, in m."""
    action = jnp.asarray(action, float)
    norm = length(action[..., :3])
    long = norm > max_norm
    scale = jnp.where(long, max_norm / jnp.where(long, norm, 1.0), 1.0)
    return jnp.concatenate([action[..., :3] * scale[..., None], action[..., 3:]], axis=-1)


def toward(position: jax.Array, target: jax.Array, gripper: jax.Array, stride: float) -> jax.Array:
    """float[..., 4]: the action that goes from `position` to `target`, float[..., 3], at most
    `stride` m of the way, and sets the gripper, float[...]."""
    whole = jnp.concatenate([target - position, gripper[..., None]], axis=-1)
    return clamp_action(whole, stride)


def _pose(position: jax.Array) -> jax.Array:
    still = jnp.asarray([0.0, 0.0, 0.0, 1.0], position.dtype)
    return jnp.concatenate([position, still])
