"""arms/handoff: one arm fetches a baton and hands it to the other, which puts it down."""

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


class HandOffParams(struct.PyTreeNode):
    """Numbers of `HandOff`, in m but for the two of grippers.

    Attributes:
      source, handoff, target: float[3], where the baton lies, changes hands and belongs.
      jitter: float[], by which x and y of the source are drawn around that.
      arm_offset: float[2, 3], where the arms begin: from the source, and from the handoff.
      radius: float[], of the baton.
      grasp_threshold: float[], how near a gripper takes hold, if more than 1.5 radii.
      release_above: float[], in [0, 1], a gripper more open than this lets go.
      scale: float[], distance over which nearness falls from 1 to 0 while the arms reach.
      wait_scale, bring_scale: float[], the same of the second arm while the first one grasps, and
        of the baton from the handoff.
      reached, grasped, met, brought, placed: float[], distances within which phases end.
      landed: float[], height to which the baton has to fall.
      open: float[], in [0, 1], least opening of the grippers at the end.
    """

    source: Any
    handoff: Any
    target: Any
    jitter: Any
    arm_offset: Any
    radius: Any
    grasp_threshold: Any
    release_above: Any
    scale: Any
    wait_scale: Any
    bring_scale: Any
    reached: Any
    grasped: Any
    met: Any
    brought: Any
    placed: Any
    landed: Any
    open: Any


@dataclass(frozen=True)
class HandOff:
    """The first arm fetches a baton, the second takes it over, carries it to a target, lets it go.

    Goals are the source, the place of the handoff and the target. A phase pays the first arm, the
    second arm, and ends:

    - reach_source: 1 less its distance over `scale`, to the source, to the handoff; both within
      `reached`
    - grasp_source: 1 if it holds; 1 less its distance to the handoff over `wait_scale`; the first
      holds, within `grasped`
    - handover: 1 if both hold; they do, within `met` of the handoff
    - grasp_target: 1 less the baton's distance to the handoff over `bring_scale`; 1 if it holds;
      only the second holds, within `brought` of the target
    - release: its opening; both `open`, nobody holds, within `placed` of the target, below `landed`
    """

    name = "handoff"
    objects = ("baton",)
    goals = ("source", "handoff", "target")

    def phases(self) -> tuple[str, ...]:
        return ("reach_source", "grasp_source", "handover", "grasp_target", "release")

    def default_params(self) -> HandOffParams:
        dtype = real().type
        return HandOffParams(
            source=np.asarray([-0.38, -0.1, 0.08], dtype),
            handoff=np.asarray([0.0, 0.05, 0.2], dtype),
            target=np.asarray([0.35, 0.12, 0.08], dtype),
            jitter=dtype(0.02),
            arm_offset=np.asarray([[0.05, 0.0, 0.17], [0.05, 0.0, 0.08]], dtype),
            radius=dtype(0.04),
            grasp_threshold=dtype(0.06),
            release_above=dtype(0.88),
            scale=dtype(0.35),
            wait_scale=dtype(0.25),
            bring_scale=dtype(0.3),
            reached=dtype(0.12),
            grasped=dtype(0.1),
            met=dtype(0.08),
            brought=dtype(0.08),
            placed=dtype(0.05),
            landed=dtype(0.07),
            open=dtype(0.85),
        )

    def validate(self, params: HandOffParams) -> None:
        require_lengths("handoff", params, ("scale", "wait_scale", "bring_scale", "radius"))

    def build_scene(self, params: HandOffParams) -> Scene:
        return self._scene(jnp.asarray(params.source), params)

    def reset(self, key: jax.Array, params: HandOffParams) -> Scene:
        offset = drawn_in(key, -params.jitter, params.jitter)
        offset = jnp.concatenate([offset, jnp.zeros_like(offset[:1])])
        return self._scene(params.source + offset, params)

    def _scene(self, source: jax.Array, params: HandOffParams) -> Scene:
        handoff, target = jnp.asarray(params.handoff), jnp.asarray(params.target)
        return Scene(
            arm_position=jnp.stack([source, handoff]) + params.arm_offset,
            object_position=jnp.stack([source, jnp.zeros_like(source)]),
            goal=jnp.stack([source, handoff, target]),
            task=jnp.int32(0),
        )

    def grip(self, state: ArmsState, params: HandOffParams) -> Grip:
        near = jnp.maximum(params.grasp_threshold, 1.5 * params.radius)
        return Grip(near, jnp.asarray(params.release_above), slots(self))

    def reward(self, state: ArmsState, params: HandOffParams) -> tuple[ArmsState, jax.Array]:
        source, handoff, target, waits = _measures(state)
        held = state.held[0]
        holds = held.astype(source.dtype)
        both = jnp.min(holds)
        let_go = (jnp.min(state.gripper) >= params.open) & ~jnp.any(held)
        paid = [
            jnp.stack([nearness(source, params.scale), nearness(waits, params.scale)]),
            jnp.stack([holds[0], nearness(waits, params.wait_scale)]),
            jnp.stack([both, both]),
            jnp.stack([nearness(handoff, params.bring_scale), holds[1]]),
            unit(state.gripper),
        ]
        ends = [
            (source < params.reached) & (waits < params.reached),
            held[0] & (source < params.grasped),
            held[0] & held[1] & (handoff < params.met),
            held[1] & (target < params.brought) & ~held[0],
            let_go & (target < params.placed) & (state.object_position[0, 2] <= params.landed),
        ]
        complete = jnp.stack(ends)[state.phase]
        return state.replace(phase_complete=complete), jnp.stack(paid)[state.phase]

    def progress(self, state: ArmsState, params: HandOffParams) -> jax.Array:
        source, handoff, target, waits = _measures(state)
        holds = state.held[0].astype(source.dtype)
        reaches = nearness(source, params.scale, params.reached)
        waiting = nearness(waits, params.scale, params.reached)
        baton = state.object_position[0]
        second = length(state.arm_position[1] - baton)
        ground = length(baton[:2] - state.goal[2, :2])
        # From where the baton changes hands to where it belongs it is about half a metre.
        way = 2 * params.bring_scale
        meets = nearness(handoff, way, params.met)
        # Else the second arm would come to meet the first.
        stays = nearness(waits, params.scale, params.met)
        closes = nearness(second, params.reached) * (1 - state.gripper[1])
        lets = unit(state.gripper[0] / params.release_above)
        parts = [
            (reaches + waiting) / 2,
            (nearness(source, params.scale) + holds[0]) / 2,
            holds[0] * (1 + 3 * meets + stays + closes + holds[1]) / 7,
            holds[1] * (1 + 3 * nearness(target, way, params.brought) + lets + 1 - holds[0]) / 6,
            nearness(ground, params.brought, params.landed / 2) * (1 + jnp.mean(state.gripper)) / 2,
        ]
        return jnp.stack(parts)[state.phase]

    def success(self, state: ArmsState, params: HandOffParams) -> jax.Array:
        return state.phase_complete & (state.phase == 4)

    def waypoints(self, seen: Mapping[str, Any]) -> tuple[jax.Array, jax.Array]:
        first, second = seen["robot_state"]["position"]
        baton = seen["objects"][0, 0]
        _, handoff, target = seen["goal"][0]
        over = jnp.asarray([0.0, 0.0, 0.03], baton.dtype)
        there = length(baton[:2] - target[:2]) < 0.005
        places = [
            jnp.stack([baton + over, handoff]),
            jnp.stack([baton, handoff]),
            jnp.stack([handoff, handoff]),
            jnp.stack([first, target]),
            jnp.stack([first, jnp.where(there, second, target)]),
        ]
        takes = (length(second - baton) > 0.05).astype(baton.dtype)
        lets = there.astype(baton.dtype)
        one, none = jnp.ones_like(takes), jnp.zeros_like(takes)
        grippers = [(one, one), (none, one), (none, takes), (one, none), (one, lets)]
        return jnp.stack(places), jnp.stack([jnp.stack(pair) for pair in grippers])

    def scripted_action(self, seen: Mapping[str, Any], phase: jax.Array) -> jax.Array:
        places, grippers = self.waypoints(seen)
        return toward(seen["robot_state"]["position"], places[phase], grippers[phase], 0.06)

    def info(self, state: ArmsState, params: HandOffParams) -> dict[str, jax.Array]:
        source, handoff, target, _ = _measures(state)
        return {
            "distance_source": source,
            "distance_handoff": handoff,
            "distance_target": target,
        }


def _measures(state: ArmsState) -> tuple[jax.Array, ...]:
    """Distances: of the first arm from the source, of the baton from the handoff and the target, of
    the second arm from the handoff."""
    (first, second), baton = state.arm_position, state.object_position[0]
    source, handoff, target = state.goal
    return tuple(
        length(x) for x in (first - source, baton - handoff, baton - target, second - handoff)
    )
