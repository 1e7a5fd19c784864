"""arms/lift: two arms lift a cube together, carry it to a place and let it go."""

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


class LiftParams(struct.PyTreeNode):
    """Numbers of `Lift`, in m but for the two of grippers.

    Attributes:
      arm_start: float[2, 3].
      cube_start: float[3].
      jitter: float[], by which its x and y are drawn around that.
      target_low, target_high: float[2], box that the target's x and y are drawn from.
      target_z: float[], the target's height.
      target_height: float[], to which the cube is lifted.
      radius: float[], of the cube.
      grasp_threshold: float[], how near a gripper takes hold, if more than 1.5 radii.
      release_above: float[], in [0, 1], a gripper more open than this lets go.
      scale: float[], distance over which nearness falls from 1 to 0.
      reached, grasped: float[], distances within which these phases end.
      lifted: float[], height at which that one ends.
      placed: float[], distance along the ground within which that one ends.
      landed: float[], height to which the cube has to fall.
      open: float[], in [0, 1], least opening of the grippers at the end.
    """

    arm_start: Any
    cube_start: Any
    jitter: Any
    target_low: Any
    target_high: Any
    target_z: Any
    target_height: Any
    radius: Any
    grasp_threshold: Any
    release_above: Any
    scale: Any
    reached: Any
    grasped: Any
    lifted: Any
    placed: Any
    landed: Any
    open: Any


@dataclass(frozen=True)
class Lift:
    """Both arms grasp a cube, lift it, carry it over a target and let it go.

    The goal is the target. A phase pays each arm, and ends:

    - reach: 1 less its distance over `scale`; both within `reached`
    - grasp: 1 if it holds; both hold, within `grasped`
    - lift: the height over `target_height`, at most 1.1; at `lifted`
    - place: 1 less the distance to the target along the ground over `scale`; within `placed`
    - release: its opening; both `open`, nobody holds, within `placed`, below `landed`
    """

    name = "lift"
    objects = ("cube",)
    goals = ("target",)

    def phases(self) -> tuple[str, ...]:
        return ("reach", "grasp", "lift", "place", "release")

    def default_params(self) -> LiftParams:
        dtype = real().type
        return LiftParams(
            arm_start=np.asarray([[-0.28, -0.05, 0.24], [0.28, -0.05, 0.24]], dtype),
            cube_start=np.asarray([0.0, -0.05, 0.08], dtype),
            jitter=dtype(0.05),
            target_low=np.asarray([-0.2, 0.15], dtype),
            target_high=np.asarray([0.2, 0.3], dtype),
            target_z=dtype(0.05),
            target_height=dtype(0.32),
            radius=dtype(0.055),
            grasp_threshold=dtype(0.07),
            release_above=dtype(0.85),
            scale=dtype(0.35),
            reached=dtype(0.12),
            grasped=dtype(0.1),
            lifted=dtype(0.31),
            placed=dtype(0.05),
            landed=dtype(0.07),
            open=dtype(0.85),
        )

    def validate(self, params: LiftParams) -> None:
        require_lengths("lift", params, ("scale", "target_height", "radius", "lifted"))

    def build_scene(self, params: LiftParams) -> Scene:
        middle = (params.target_low + params.target_high) / 2
        return self._scene(params.cube_start, middle, params)

    def reset(self, key: jax.Array, params: LiftParams) -> Scene:
        cube_key, target_key = jax.random.split(key)
        cube = drawn_in(cube_key, -params.jitter, params.jitter)
        cube = params.cube_start + jnp.concatenate([cube, jnp.zeros_like(cube[:1])])
        return self._scene(
            cube, drawn_in(target_key, params.target_low, params.target_high), params
        )

    def _scene(self, cube: jax.Array, target: jax.Array, params: LiftParams) -> Scene:
        nothing = jnp.zeros_like(jnp.asarray(cube))
        target = jnp.stack([target[0], target[1], params.target_z])
        return Scene(
            arm_position=jnp.asarray(params.arm_start),
            object_position=jnp.stack([cube, nothing]),
            goal=jnp.stack([target, nothing, nothing]),
            task=jnp.int32(0),
        )

    def grip(self, state: ArmsState, params: LiftParams) -> Grip:
        near = jnp.maximum(params.grasp_threshold, 1.5 * params.radius)
        return Grip(near, jnp.asarray(params.release_above), slots(self))

    def reward(self, state: ArmsState, params: LiftParams) -> tuple[ArmsState, jax.Array]:
        away, off, height = _measures(state)
        held, height_paid = state.held[0], jnp.clip(height / params.target_height, 0.0, 1.1)
        near = off <= params.placed
        let_go = (jnp.min(state.gripper) >= params.open) & ~jnp.any(held)
        paid = [
            nearness(away, params.scale),
            held.astype(away.dtype),
            jnp.full_like(away, height_paid),
            jnp.full_like(away, jnp.clip(1 - off / params.scale, 0.0, 1.2)),
            unit(state.gripper),
        ]
        ends = [
            jnp.all(away < params.reached),
            jnp.all(held) & jnp.all(away < params.grasped),
            height >= params.lifted,
            near,
            let_go & near & (height <= params.landed),
        ]
        complete = jnp.stack(ends)[state.phase]
        return state.replace(phase_complete=complete), jnp.stack(paid)[state.phase]

    def progress(self, state: ArmsState, params: LiftParams) -> jax.Array:
        away, off, height = _measures(state)
        close = jnp.mean(nearness(away, params.scale, params.reached))
        falls = nearness(height, params.target_height - params.landed, params.landed)
        parts = [
            close,
            (close + jnp.mean(state.held[0].astype(close.dtype))) / 2,
            unit(height / params.lifted),
            nearness(off, params.scale, params.placed),
            (jnp.mean(state.gripper) + falls) / 2 * (off <= params.placed).astype(off.dtype),
        ]
        return jnp.stack(parts)[state.phase]

    def success(self, state: ArmsState, params: LiftParams) -> jax.Array:
        return state.phase_complete & (state.phase == 4)

    def waypoints(self, seen: Mapping[str, Any]) -> tuple[jax.Array, jax.Array]:
        here = seen["robot_state"]["position"]
        cube, target = seen["objects"][0, 0], seen["goal"][0, 0]
        sides = jnp.asarray([[-1.0, 0.0, 0.0], [1.0, 0.0, 0.0]], cube.dtype)
        raised = cube.at[2].set(0.32)
        above = target.at[2].set(0.32)
        places = [
            cube[None] + 0.06 * sides,
            cube[None] + 0.03 * sides,
            jnp.stack([raised, raised]),
            jnp.stack([above, above]),
            here,
        ]
        grippers = jnp.asarray([[1, 1], [0, 0], [0, 0], [0, 0], [1, 1]], cube.dtype)
        return jnp.stack(places), grippers

    def scripted_action(self, seen: Mapping[str, Any], phase: jax.Array) -> jax.Array:
        places, grippers = self.waypoints(seen)
        return toward(seen["robot_state"]["position"], places[phase], grippers[phase], 0.06)

    def info(self, state: ArmsState, params: LiftParams) -> dict[str, jax.Array]:
        away, off, height = _measures(state)
        return {
            "distance_a": away[0],
            "distance_b": away[1],
            "object_height": height,
            "distance_to_target": off,
        }


def _measures(state: ArmsState) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Distance of each arm from the cube, float[2]; the cube's from the target along the ground;
    its height."""
    cube = state.object_position[0]
    away = length(state.arm_position - cube[None])
    return away, length(cube[:2] - state.goal[0, :2]), cube[2]
