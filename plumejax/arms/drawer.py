"""arms/drawer: two arms pull a drawer open by its two handles and hold it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.arms.control import toward
from plumejax.arms.geometry import length, nearness, unit
from plumejax.arms.state import ArmsState, Scene, real
from plumejax.arms.tasks import Grip, drawn_in, require_lengths, slots


class DrawerParams(struct.PyTreeNode):
    """Numbers of `Drawer`, in m but for those of grippers and the steps.

    Attributes:
      handles: float[2, 3], of the shut drawer, left and right.
      jitter: float[], by which x and y are drawn around that, of the right one the other way.
      arm_offset: float[3], where the arms begin, from their handles.
      most: float[], how far the drawer opens.
      radius: float[], of a handle.
      grasp_threshold: float[], how near a gripper takes hold, if more than 1.5 radii.
      release_above: float[], in [0, 1], a gripper more open than this lets go.
      scale: float[], distance over which nearness falls from 1 to 0.
      reached: float[], distance within which that phase ends.
      pulled: float[], how far open that phase ends, and `kept_open`, float[], how far it is held.
      hold_steps: int32[], for how long.
      open: float[], in [0, 1], least opening of the grippers at the end.
    """

    handles: Any
    jitter: Any
    arm_offset: Any
    most: Any
    radius: Any
    grasp_threshold: Any
    release_above: Any
    scale: Any
    reached: Any
    pulled: Any
    kept_open: Any
    hold_steps: Any
    open: Any


@dataclass(frozen=True)
class Drawer:
    """Both arms grasp their handles, pull the drawer open, hold it open, and let go.

    Goals are the handles of the shut drawer. It is as far open as the handles are on average, which
    then are where that puts them: one handle alone opens it by halves. A phase pays each arm, and
    ends:

    - reach_handles: 1 less its distance over `scale`; both within `reached`
    - grasp: 1 if it holds its own handle; both do
    - pull: how far it is open, over `most`; at `pulled`, both holding
    - hold: how far it is open, in m; after `hold_steps` steps on end at `kept_open`, both holding
    - release: its opening; both `open`, neither holding its own handle, at `kept_open`
    """

    name = "drawer"
    objects = ("drawer_left", "drawer_right")
    goals = ("left", "right")

    def phases(self) -> tuple[str, ...]:
        return ("reach_handles", "grasp", "pull", "hold", "release")

    def default_params(self) -> DrawerParams:
        dtype = real().type
        return DrawerParams(
            handles=np.asarray([[-0.14, -0.12, 0.1], [0.14, -0.12, 0.1]], dtype),
            jitter=dtype(0.01),
            arm_offset=np.asarray([0.0, 0.04, 0.16], dtype),
            most=dtype(0.25),
            radius=dtype(0.035),
            grasp_threshold=dtype(0.06),
            release_above=dtype(0.9),
            scale=dtype(0.35),
            reached=dtype(0.12),
            pulled=dtype(0.18),
            kept_open=dtype(0.2),
            hold_steps=np.int32(5),
            open=dtype(0.9),
        )

    def validate(self, params: DrawerParams) -> None:
        require_lengths("drawer", params, ("scale", "most", "radius", "pulled"))

    def build_scene(self, params: DrawerParams) -> Scene:
        return self._scene(jnp.asarray(params.handles), params)

    def reset(self, key: jax.Array, params: DrawerParams) -> Scene:
        offset = drawn_in(key, -params.jitter, params.jitter)
        offset = jnp.concatenate([offset, jnp.zeros_like(offset[:1])])
        return self._scene(params.handles + jnp.stack([offset, -offset]), params)

    def _scene(self, handles: jax.Array, params: DrawerParams) -> Scene:
        return Scene(
            arm_position=handles + params.arm_offset[None],
            object_position=handles,
            goal=jnp.concatenate([handles, jnp.zeros_like(handles[:1])]),
            task=jnp.int32(0),
        )

    def grip(self, state: ArmsState, params: DrawerParams) -> Grip:
        near = jnp.maximum(params.grasp_threshold, 1.5 * params.radius)
        return Grip(near, jnp.asarray(params.release_above), slots(self))

    def reward(self, state: ArmsState, params: DrawerParams) -> tuple[ArmsState, jax.Array]:
        away = length(state.arm_position - state.object_position)
        shut = state.goal[:2]
        pulled = jnp.mean(state.object_position[:, 1] - shut[:, 1])
        extension = jnp.clip(pulled, 0.0, params.most)
        handles = shut.at[:, 1].add(extension)
        own = jnp.diagonal(state.held)
        both = jnp.all(own)
        wide = extension >= params.kept_open
        kept = (state.phase == 3) & wide & both
        hold_count = jnp.where(kept, state.hold_count + 1, jnp.int32(0))
        paid = [
            nearness(away, params.scale),
            own.astype(away.dtype),
            jnp.full_like(away, jnp.clip(extension / params.most, 0.0, 1.2)),
            jnp.full_like(away, extension),
            unit(state.gripper),
        ]
        ends = [
            jnp.all(away < params.reached),
            both,
            both & (extension >= params.pulled),
            hold_count >= params.hold_steps,
            (jnp.min(state.gripper) >= params.open) & ~jnp.any(own) & wide,
        ]
        state = state.replace(
            object_position=handles,
            extension=extension,
            hold_count=hold_count,
            phase_complete=jnp.stack(ends)[state.phase],
        )
        return state, jnp.stack(paid)[state.phase]

    def progress(self, state: ArmsState, params: DrawerParams) -> jax.Array:
        away = length(state.arm_position - state.object_position)
        own = jnp.diagonal(state.held)
        holds = jnp.mean(own.astype(away.dtype))
        wide = (state.extension >= params.kept_open).astype(away.dtype)
        kept = state.hold_count.astype(away.dtype) / jnp.asarray(params.hold_steps, away.dtype)
        parts = [
            jnp.mean(nearness(away, params.scale, params.reached)),
            (jnp.mean(nearness(away, params.scale)) + holds) / 2,
            # With one hand it is half as far: this phase ends with both.
            holds * unit(state.extension / params.pulled),
            (holds * unit(state.extension / params.kept_open) + kept) / 2,
            wide * (1 - holds + jnp.mean(state.gripper)) / 2,
        ]
        return jnp.stack(parts)[state.phase]

    def success(self, state: ArmsState, params: DrawerParams) -> jax.Array:
        return state.phase_complete & (state.phase == 4)

    def waypoints(self, seen: Mapping[str, Any]) -> tuple[jax.Array, jax.Array]:
        here, handles = seen["robot_state"]["position"], seen["objects"][0]
        pulled = seen["goal"][0, :2].at[:, 1].add(0.22)
        places = [handles, handles, pulled, pulled, here]
        grippers = jnp.asarray([[1, 1], [0, 0], [0, 0], [0, 0], [1, 1]], here.dtype)
        return jnp.stack(places), grippers

    def scripted_action(self, seen: Mapping[str, Any], phase: jax.Array) -> jax.Array:
        places, grippers = self.waypoints(seen)
        return toward(seen["robot_state"]["position"], places[phase], grippers[phase], 0.05)

    def info(self, state: ArmsState, params: DrawerParams) -> dict[str, jax.Array]:
        away = length(state.arm_position - state.object_position)
        return {
            "distance_left": away[0],
            "distance_right": away[1],
            "drawer_extension": state.extension,
        }
