"""arms/rewards: what a step of a two-arm task pays: what its phases pay, or progress."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.arms.state import ArmsState, real
from plumejax.base.errors import require


@dataclass(frozen=True)
class ByPhase:
    """What the phases of the task pay each arm: the reference rewards.

    They pay for stalling: who never finishes a phase that pays goes on being paid.
    """

    def default_params(self) -> tuple[()]:
        return ()

    def validate(self, params: tuple[()]) -> None:
        pass

    def pay(
        self, before: ArmsState, after: ArmsState, by_phase: jax.Array, params: tuple[()]
    ) -> jax.Array:
        """float[2]: what each arm is paid for the step between two states."""
        return by_phase


class ProgressParams(struct.PyTreeNode):
    """Numbers of `Progress`.

    Attributes:
      bonus: float[], >= 0, paid on success.
    """

    bonus: Any


@dataclass(frozen=True)
class Progress:
    """Both arms are paid what the task has come farther than ever before, and a bonus on success.

    A whole episode pays at most 1 without success, and 1 + `bonus` with it: no stall pays.
    """

    def default_params(self) -> ProgressParams:
        return ProgressParams(bonus=real().type(1.0))

    def validate(self, params: ProgressParams) -> None:
        """Raise `ValidationError` if a number is not allowed."""
        require(np.all(np.asarray(params.bonus) >= 0), "reward.bonus", params.bonus, ">= 0")

    def pay(
        self, before: ArmsState, after: ArmsState, by_phase: jax.Array, params: ProgressParams
    ) -> jax.Array:
        """float[2]: what each arm is paid for the step between two states."""
        bonus = jnp.where(after.success, params.bonus, jnp.zeros_like(params.bonus))
        return jnp.full_like(by_phase, after.progress - before.progress + bonus)
