"""arms/views: what arms observe: named parts, or one array for learners; pictures on request."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from plumejax.arms.camera import SIZE, picture
from plumejax.arms.state import ARMS, OBJECTS, ArmsParams, ArmsState
from plumejax.arms.tasks import parts
from plumejax.base.spaces import Box, Dict, MultiDiscrete

WIDTHS = {
    "position": 3,
    "velocity": 3,
    "gripper": 1,
    "peer_position": 3,
    "peer_velocity": 3,
    "peer_gripper": 1,
    "objects": 3 * OBJECTS,
    "held": OBJECTS,
    "peer_held": OBJECTS,
    "goal": 9,
    "extension": 1,
    "hold_count": 1,
    "progress": 1,
}
"""What a `Flat` observation begins with, and how many numbers each is."""

WAYS = {"to_peer": 3, "to_objects": 3 * OBJECTS, "to_goal": 9}
"""What follows, m, from the own gripper; then phase, task and which arm it is, one of so many
numbers 1."""


@dataclass(frozen=True)
class Named:
    """A dict, of which each leaf leads with the two arms.

    `agent_id`, `phase`, `task` int32[2]; `robot_state` and `peer_state`, dicts of `position`
    float[2, 3], `velocity` float[2, 3], `gripper` float[2, 1]; `objects` float[2, 2, 3]; `held` and
    `peer_held` float[2, 2], 1 where the arm, or the other one, holds an object; `goal`
    float[2, 3, 3]; `extension`, `progress` float[2, 1]; `hold_count` float[2, 1]; with `pictures`
    `rgb` uint8[2, 48, 48, 3]. Both arms see everything.

    Attributes:
      pictures: whether `rgb` is there.
    """

    pictures: bool = False

    def observe(self, task: Any, state: ArmsState, params: ArmsParams) -> dict[str, Any]:
        seen = _seen(state)
        if self.pictures:
            exists = task.grip(state, params.task).exists
            seen["rgb"] = _twice(picture(state, exists, params))
        return seen

    def space(self, task: Any, params: ArmsParams) -> Dict:
        low, high, fast = _bounds(params)
        dtype = np.dtype(params.dt.dtype)

        def box(low: Any, high: Any, *shape: int) -> Box:
            return Box(low, high, (ARMS, *shape), dtype)

        arm = {
            "position": box(low, high, 3),
            "velocity": box(-fast, fast, 3),
            "gripper": box(0.0, 1.0, 1),
        }
        spaces: dict[str, Any] = {
            "agent_id": MultiDiscrete((ARMS,) * ARMS),
            "phase": MultiDiscrete((len(task.phases()),) * ARMS),
            "task": MultiDiscrete((len(parts(task)),) * ARMS),
            "robot_state": Dict(arm),
            "peer_state": Dict(arm),
            "objects": box(jnp.minimum(low, 0), jnp.maximum(high, 0), OBJECTS, 3),
            "held": box(0.0, 1.0, OBJECTS),
            "peer_held": box(0.0, 1.0, OBJECTS),
            "goal": box(jnp.minimum(low, 0), jnp.maximum(high, 0), 3, 3),
            "extension": box(0.0, high[1] - low[1], 1),
            "hold_count": box(0.0, jnp.asarray(params.max_steps).astype(dtype), 1),
            "progress": box(0.0, 1.0, 1),
        }
        if self.pictures:
            spaces["rgb"] = Box(0, 255, (ARMS, SIZE, SIZE, 3), np.uint8)
        return Dict(spaces)

    def named(self, task: Any, observation: Any) -> Mapping[str, Any]:
        """The observation by name, for scripted policies."""
        return observation


@dataclass(frozen=True)
class Flat:
    """One array, float[2, N], a row for each arm: `WIDTHS`, `WAYS`, phase, task, and which arm.

    It says where things are and, again, the way there, which is what a learner has to find out.
    """

    def observe(self, task: Any, state: ArmsState, params: ArmsParams) -> jax.Array:
        seen = _seen(state)
        own, peer = seen["robot_state"], seen["peer_state"]
        each = [
            *(own[name] for name in ("position", "velocity", "gripper")),
            *(peer[name] for name in ("position", "velocity", "gripper")),
            *(seen[name] for name in list(WIDTHS)[6:]),
        ]
        here, dtype = own["position"], own["position"].dtype
        each.append(peer["position"] - here)
        each += [seen[name] - here[:, None] for name in ("objects", "goal")]
        for name, n in _one_of(task).items():
            each.append(jax.nn.one_hot(seen[name], n, dtype=dtype))
        return jnp.concatenate([x.reshape(ARMS, -1) for x in each], axis=1)

    def space(self, task: Any, params: ArmsParams) -> Box:
        named = Named().space(task, params).spaces
        own = named["robot_state"].spaces
        boxes = [*own.values(), *own.values(), *(named[name] for name in list(WIDTHS)[6:])]
        low, high, _ = _bounds(params)
        # Slots without an object, and goals that a task does not have, are at 0.
        reach = jnp.tile(jnp.maximum(high, 0) - jnp.minimum(low, 0), sum(WAYS.values()) // 3)
        boxes.append(Box(-reach, reach, (ARMS, *reach.shape), own["position"].dtype))
        ones = sum(_one_of(task).values())
        low, high = (
            jnp.concatenate(
                [
                    *(
                        jnp.broadcast_to(
                            jnp.asarray(getattr(box, end), box.dtype), box.shape[1:]
                        ).reshape(-1)
                        for box in boxes
                    ),
                    jnp.full(ones, value, params.dt.dtype),
                ]
            )
            for end, value in (("low", 0.0), ("high", 1.0))
        )
        return Box(low, high, (ARMS, len(low)), np.dtype(params.dt.dtype))

    def named(self, task: Any, observation: jax.Array) -> dict[str, Any]:
        """The observation as `Named` gives it."""
        widths = {**WIDTHS, **WAYS, **_one_of(task)}
        ends = np.cumsum(list(widths.values()))[:-1]
        x = dict(zip(widths, jnp.split(observation, ends, axis=1), strict=True))
        for name in _one_of(task):
            x[name] = jnp.argmax(x[name], axis=1).astype(jnp.int32)
        state = ("position", "velocity", "gripper")
        return {
            **{name: x[name] for name in ("agent_id", "phase", "task")},
            "robot_state": {name: x[name] for name in state},
            "peer_state": {name: x[f"peer_{name}"] for name in state},
            "objects": x["objects"].reshape(ARMS, OBJECTS, 3),
            "goal": x["goal"].reshape(ARMS, 3, 3),
            **{name: x[name] for name in ("held", "peer_held", "extension")},
            **{name: x[name] for name in ("hold_count", "progress")},
        }


def _seen(state: ArmsState) -> dict[str, Any]:
    """A `Named` observation without a picture."""
    dtype = state.arm_position.dtype
    own = {
        "position": state.arm_position,
        "velocity": state.arm_velocity,
        "gripper": state.gripper[:, None],
    }
    held = state.held.T.astype(dtype)
    return {
        "agent_id": jnp.arange(ARMS, dtype=jnp.int32),
        "phase": _twice(state.phase),
        "task": _twice(state.task),
        "robot_state": own,
        "peer_state": {name: x[::-1] for name, x in own.items()},
        "objects": _twice(state.object_position),
        "held": held,
        "peer_held": held[::-1],
        "goal": _twice(state.goal),
        "extension": _twice(state.extension[None]),
        "hold_count": _twice(state.hold_count.astype(dtype)[None]),
        "progress": _twice(state.progress[None]),
    }


def _one_of(task: Any) -> dict[str, int]:
    return {"phase": len(task.phases()), "task": len(parts(task)), "agent_id": ARMS}


def _twice(x: jax.Array) -> jax.Array:
    return jnp.broadcast_to(x[None], (ARMS, *x.shape))


def _bounds(params: ArmsParams) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The lowest and highest place, float[3] each, and the fastest velocity, float[3]."""
    low, high = jnp.asarray(params.workspace_low), jnp.asarray(params.workspace_high)
    # A velocity is a difference of rounded places over dt.
    fast = params.action_limit / params.dt * (1 + 1e-4) + 1e-4
    return low, high, fast
