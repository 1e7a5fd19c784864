"""arms/environment: TwoArm, two grippers that move, take hold and let go; the rules of a step."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from plumejax.arms.state import ARMS, ArmsParams, ArmsState, at_rest, real
from plumejax.base.environment import Environment
from plumejax.base.errors import require
from plumejax.base.spaces import Box

ACTION_SIZE = 4


@dataclass(frozen=True, eq=False)
class Finite(Box):
    """A `Box` to sample from, that has every finite number for a member: what is outside is
    clipped by the task."""

    def contains(self, x: Any) -> jax.Array:
        x = jnp.asarray(x)
        if x.shape != tuple(self.shape) or not jnp.issubdtype(x.dtype, jnp.floating):
            return jnp.asarray(False)
        return jnp.all(jnp.isfinite(x))


@dataclass(frozen=True)
class TwoArm(Environment):
    """A kinematic coordination benchmark: two grippers in a box, without joints, contact or mass.

    An action is float[2, 4], for each arm a translation, m, and how open its gripper is to be, 1
    open, 0 closed; finite numbers out of bounds are clipped. A step, in this order: the arms move
    within the workspace; a gripper more closed than `close_below` takes hold of an object within
    the attach radius of where that was, one more open than the task's threshold lets go; an object
    that is held is where its holders are on average, any other falls; the phase pays; and if it is
    complete and the episode goes on, the next one begins. An episode terminates when the task is
    done. Nothing is drawn but the scene.

    Attributes:
      task: a `TaskSpec`.
      view: what is observed, `views.Flat` or `views.Named`.
      reward: what is paid, `rewards.ByPhase` or `rewards.Progress`.
    """

    task: Any
    view: Any
    reward: Any

    @property
    def random_step(self) -> bool:
        return False

    @property
    def num_agents(self) -> int:
        return ARMS

    def default_params(self) -> ArmsParams:
        dtype = real().type
        return ArmsParams(
            max_steps=np.int32(200),
            workspace_low=np.asarray([-0.6, -0.5, 0.0], dtype),
            workspace_high=np.asarray([0.6, 0.5, 0.55], dtype),
            action_limit=dtype(0.08),
            dt=dtype(0.05),
            close_below=dtype(0.25),
            fall=dtype(0.015),
            surface=dtype(0.05),
            task=self.task.default_params(),
            reward=self.reward.default_params(),
        )

    def action_space(self, params: ArmsParams) -> Finite:
        dtype = np.dtype(params.dt.dtype)
        limit = jnp.asarray(params.action_limit, dtype)
        none, one = jnp.zeros_like(limit), jnp.ones_like(limit)
        low, high = jnp.stack([-limit] * 3 + [none]), jnp.stack([limit] * 3 + [one])
        return Finite(low, high, (ARMS, ACTION_SIZE), dtype)

    def observation_space(self, params: ArmsParams) -> Any:
        return self.view.space(self.task, params)

    def validate(self, params: ArmsParams) -> None:
        super().validate(params)
        low, high = np.asarray(params.workspace_low), np.asarray(params.workspace_high)
        require(np.all(low < high), "workspace_high", high, f"> workspace_low, {low}")
        for name in ("action_limit", "dt"):
            value = getattr(params, name)
            require(np.all(np.asarray(value) > 0), name, value, "> 0")
        fall, surface = np.asarray(params.fall), np.asarray(params.surface)
        require(np.all(fall >= 0), "fall", fall, ">= 0")
        inside = np.all((surface >= low[..., 2]) & (surface <= high[..., 2]))
        require(inside, "surface", surface, f"in the workspace, {low[..., 2]} to {high[..., 2]}")
        close = np.asarray(params.close_below)
        require(np.all((close >= 0) & (close <= 1)), "close_below", close, "in [0, 1]")
        self.task.validate(params.task)
        self.reward.validate(params.reward)

    def info(self, state: ArmsState, params: ArmsParams) -> dict[str, jax.Array]:
        """`total_reward` is that of both arms together."""
        return {
            "step_count": state.step_count,
            "total_reward": jnp.sum(state.total_reward),
            "found": state.success,
            "task_success": state.success,
            "phase": state.phase,
            "previous_phase": state.previous_phase,
            "phase_complete": state.phase_complete,
            "progress": state.progress,
            "held": state.held,
            "goal": state.goal,
            **self.task.info(state, params.task),
        }

    def broken(self, state: ArmsState, params: ArmsParams) -> dict[str, jax.Array]:
        low, high = params.workspace_low[None], params.workspace_high[None]
        inside = (state.arm_position >= low) & (state.arm_position <= high)
        return {
            "an arm is outside the workspace": ~jnp.all(inside),
            "a gripper is neither open nor closed nor between": jnp.any(
                (state.gripper < 0) | (state.gripper > 1)
            ),
            "there is no such phase": (state.phase < 0) | (state.phase >= len(self.task.phases())),
            "an object that is not there is held": jnp.any(
                state.held & ~self.task.grip(state, params.task).exists[:, None]
            ),
        }

    def reset_env(self, key: jax.Array, params: ArmsParams) -> ArmsState:
        return self.observed(at_rest(self.task.reset(key, params.task)), params)

    def observed(self, state: ArmsState, params: ArmsParams) -> ArmsState:
        """The state with the observation of it."""
        return state.replace(observation=self.view.observe(self.task, state, params))

    def step_env(
        self, key: jax.Array, state: ArmsState, action: Any, params: ArmsParams
    ) -> tuple[ArmsState, jax.Array, jax.Array]:
        new = _hold(self.task, _move(state, action, params), params)
        new, by_phase = self.task.reward(new, params.task)
        done = self.task.success(new, params.task)
        reached = jnp.where(
            new.phase_complete,
            jnp.ones_like(new.progress),
            self.task.progress(new, params.task),
        )
        so_far = (state.phase.astype(reached.dtype) + reached) / len(self.task.phases())
        goes_on = new.phase_complete & ~done & (state.step_count < params.max_steps)
        new = new.replace(
            success=done,
            progress=jnp.maximum(state.progress, so_far),
            previous_phase=state.phase,
            phase=state.phase + goes_on.astype(jnp.int32),
        )
        paid = self.reward.pay(state, new, by_phase, params.reward)
        return self.observed(new, params), paid, done


def _move(state: ArmsState, action: jax.Array, params: ArmsParams) -> ArmsState:
    """The arms moved and the grippers set."""
    old = state.arm_position
    action = jnp.asarray(action)
    if action.shape != (ARMS, ACTION_SIZE):  # no member of the space: the step changes nothing
        return state
    action = action.astype(old.dtype)
    step = jnp.clip(action[:, :3], -params.action_limit, params.action_limit)
    new = jnp.clip(old + step, params.workspace_low[None], params.workspace_high[None])
    return state.replace(
        arm_position=new,
        arm_velocity=(new - old) / params.dt,
        gripper=jnp.clip(action[:, 3], 0.0, 1.0),
    )


def _hold(task: Any, state: ArmsState, params: ArmsParams) -> ArmsState:
    """Who holds what, and where that is now."""
    grip = task.grip(state, params.task)
    objects, arms, gripper = state.object_position, state.arm_position, state.gripper
    # [objects, arms, 3]
    offset = arms[None] - objects[:, None]
    # Squares are compared: near enough is near enough, and roots are slow.
    near = jnp.sum(jnp.square(offset), axis=-1) <= jnp.square(grip.attach_radius)
    takes = near & (gripper < params.close_below)[None]
    lets_go = (gripper > grip.release_above)[None]
    held = (takes | (state.held & ~lets_go)) & grip.exists[:, None]
    holders = held.astype(objects.dtype)
    count = jnp.sum(holders, axis=1)
    middle = jnp.sum(holders[:, :, None] * arms[None], axis=1) / jnp.maximum(count, 1)[:, None]
    fallen = objects.at[:, 2].set(jnp.maximum(params.surface, objects[:, 2] - params.fall))
    free = jnp.where(grip.exists[:, None], fallen, objects)
    return state.replace(held=held, object_position=jnp.where((count > 0)[:, None], middle, free))
