"""learning/encoding: what a network is shown: readings on a log scale, normalised, remembered."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.base.errors import ValidationError
from plumejax.base.spaces import Box, Dict, Discrete


class Moments(struct.PyTreeNode):
    """Running mean and variance of the numbers an agent has seen: its observation normaliser.

    Attributes:
      count: float32[], how many vectors.
      mean, variance: float32[F].
    """

    count: jax.Array
    mean: jax.Array
    variance: jax.Array

    def normalise(self, x: jax.Array) -> jax.Array:
        """float32[F], zero mean and unit variance, clipped to 10."""
        z = (x - self.mean) * jax.lax.rsqrt(self.variance + jnp.float32(1e-8))
        return jnp.clip(z, -10.0, 10.0)

    def merge(self, count: jax.Array, shift: jax.Array, square: jax.Array) -> "Moments":
        """With `count` more vectors, of mean difference and mean squared difference to `mean`."""
        total = self.count + count
        part = count / total
        variance = square - jnp.square(shift)
        return Moments(
            count=total,
            mean=self.mean + part * shift,
            variance=(1 - part) * self.variance
            + part * variance
            + part * (1 - part) * jnp.square(shift),
        )


class Memory(struct.PyTreeNode):
    """What an agent carries from step to step of one episode; all zero at its start.

    Attributes:
      reading: float32[R], the last readings on the log scale.
      action: float32[A], the last action (one-hot if discrete).
      recent: float32[stack, F + A], the last inputs, newest last.
      started: bool[], whether there was a step before.
    """

    reading: jax.Array
    action: jax.Array
    recent: jax.Array
    started: jax.Array


@dataclass(frozen=True)
class Encoder:
    """Turns observations into network inputs; static and hashable.

    A concentration says little on a linear scale and nothing of its gradient, so each number that
    is a reading (floating, bounded below by 0) enters as its logarithm and as the change of that
    since the last step. What was seen and done in the last `stack` steps is kept.

    Attributes:
      readings: for each run of the observation's numbers, whether they are readings; a leaf is one
        run, or several where its bounds differ.
      sizes: for each run, how many numbers it holds.
      actions: number of discrete actions, or of components of a continuous one.
      bounds: lowest and highest value of each component; None if actions are discrete.
      stack: how many steps are kept, >= 1.
      changes: whether the change of each reading is shown.
      floor: readings below it count as it, in the unit of the plume.
    """

    readings: tuple[bool, ...]
    sizes: tuple[int, ...]
    actions: int
    bounds: tuple[tuple[float, ...], tuple[float, ...]] | None
    stack: int
    changes: bool = True
    floor: float = 1e-15

    @property
    def discrete(self) -> bool:
        return self.bounds is None

    @property
    def num_readings(self) -> int:
        return sum(n for n, reading in zip(self.sizes, self.readings, strict=True) if reading)

    @property
    def num_changes(self) -> int:
        """R: the readings whose change is shown."""
        return self.num_readings if self.changes else 0

    @property
    def num_features(self) -> int:
        """F: the numbers that are normalised."""
        return sum(self.sizes) + self.num_changes

    @property
    def num_inputs(self) -> int:
        """How many numbers a network is shown a step."""
        return self.stack * (self.num_features + self.actions)

    def blank(self) -> Memory:
        """The memory at the start of an episode."""
        return Memory(
            reading=jnp.zeros(self.num_changes, jnp.float32),
            action=jnp.zeros(self.actions, jnp.float32),
            recent=jnp.zeros((self.stack, self.num_features + self.actions), jnp.float32),
            started=jnp.asarray(False),
        )

    def features(self, memory: Memory, observation: Any) -> tuple[jax.Array, jax.Array]:
        """`(features float32[F], readings float32[R])`, not normalised."""
        leaves = [jnp.ravel(leaf).astype(jnp.float32) for leaf in jax.tree.leaves(observation)]
        runs = jnp.split(jnp.concatenate(leaves), np.cumsum(self.sizes)[:-1])
        plain, read = [], []
        for run, reading in zip(runs, self.readings, strict=True):
            if reading:
                read.append(jnp.log(jnp.maximum(run, jnp.float32(self.floor))))
            else:
                plain.append(run)
        readings = jnp.concatenate(read) if read else jnp.zeros(0, jnp.float32)
        if not self.changes:
            return jnp.concatenate([*plain, readings]), jnp.zeros(0, jnp.float32)
        change = jnp.where(memory.started, readings - memory.reading, jnp.zeros_like(readings))
        return jnp.concatenate([*plain, readings, change]), readings

    def encode(
        self, moments: Moments, memory: Memory, observation: Any
    ) -> tuple[jax.Array, Memory, jax.Array]:
        """`(inputs float32[num_inputs], memory, features float32[F])` of one observation."""
        features, readings = self.features(memory, observation)
        now = jnp.concatenate([moments.normalise(features), memory.action])
        recent = jnp.concatenate([memory.recent[1:], now[None]])
        memory = memory.replace(reading=readings, recent=recent, started=jnp.asarray(True))
        return jnp.ravel(recent), memory, features

    def allowed(self, action: jax.Array) -> jax.Array:
        """The action that the task is given: of a continuous one, -1 and 1 are its bounds, and what
        is outside is clipped; a component without bounds is left as it is."""
        if self.bounds is None:
            return action
        low, high = np.asarray(self.bounds, np.float32)
        bounded = np.isfinite(low) & np.isfinite(high)
        with np.errstate(invalid="ignore"):
            middle = np.where(bounded, (low + high) / 2, np.float32(0))
            half = np.where(bounded, (high - low) / 2, np.float32(1))
        low, high, middle, half = (
            np.broadcast_to(x, action.shape) for x in (low, high, middle, half)
        )
        return jnp.clip(middle + half * action, low, high)

    def remember(self, memory: Memory, action: jax.Array) -> Memory:
        """The memory with `action` as the last one done."""
        if self.discrete:
            return memory.replace(action=jax.nn.one_hot(action, self.actions, dtype=jnp.float32))
        return memory.replace(action=jnp.ravel(action).astype(jnp.float32))

    def first_moments(self, observations: Any) -> Moments:
        """Moments to begin with, from observations leading with N: those at the start."""
        features, _ = jax.vmap(lambda o: self.features(self.blank(), o))(observations)
        # At the start nothing has changed yet: leave the scale of the changes at 1.
        n = self.num_features - self.num_changes
        return Moments(
            count=jnp.asarray(features.shape[0], jnp.float32),
            mean=features.mean(0).at[n:].set(0.0),
            variance=features.var(0).at[n:].set(1.0),
        )


MOST_REMEMBERED = 256
"""Numbers of an observation up to which its past is kept; a whole field is shown as it is now."""


def encoder_for(
    observation_space: Any, action_space: Any, stack: int, floor: float = 1e-15
) -> Encoder:
    """The encoder of a task's spaces (with concrete bounds).

    Raises:
      ValidationError: an action space that is neither Discrete nor a Box of one dimension.
    """
    runs = [run for leaf in _leaves(observation_space) for run in _runs(leaf)]
    sizes = tuple(size for size, _ in runs)
    small = sum(sizes) <= MOST_REMEMBERED
    if isinstance(action_space, Discrete):
        actions, bounds = action_space.n, None
    elif isinstance(action_space, Box) and len(action_space.shape) == 1:
        actions = action_space.shape[0]
        low, high = (
            tuple(np.broadcast_to(np.asarray(bound, float), action_space.shape).tolist())
            for bound in (action_space.low, action_space.high)
        )
        bounds = (low, high)
    else:
        raise ValidationError(
            f"action space = {action_space!r} cannot be learned: it must be Discrete, or a Box of"
            " one dimension"
        )
    return Encoder(
        readings=tuple(reading for _, reading in runs),
        sizes=sizes,
        actions=actions,
        bounds=bounds,
        stack=stack if small else 1,
        changes=small,
        floor=floor,
    )


def _leaves(space: Any) -> list[Any]:
    if isinstance(space, Dict):
        # jax flattens a dict by its sorted keys.
        return [leaf for name in sorted(space.spaces) for leaf in _leaves(space.spaces[name])]
    return [space]


def _runs(space: Any) -> list[tuple[int, bool]]:
    """`(size, whether they are readings)` of runs of numbers of a leaf."""
    count = int(np.prod(space.shape))
    if not (isinstance(space, Box) and np.issubdtype(np.dtype(space.dtype), np.floating)):
        return [(count, False)]
    reading = np.ravel(np.broadcast_to(np.asarray(space.low) == 0.0, space.shape))
    ends = [*np.flatnonzero(np.diff(reading)) + 1, count]
    return [
        (int(end - begin), bool(reading[begin]))
        for begin, end in zip([0, *ends], ends, strict=False)
        if end > begin
    ]
