"""serving/batches: BatchEngine, sessions of many episodes each, which a request steps together."""

import asyncio
import math
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from pydantic_core import to_json

from plumejax.adapters.packing import Packed, pack
from plumejax.base.batch import Batch
from plumejax.serving import models
from plumejax.serving.engine import Outcome, reply, require_time
from plumejax.serving.environment import State
from plumejax.serving.lanes import Code, LaneEngine, is_finite, new_seed, on_host
from plumejax.serving.refusals import RefusedError


class Episodes(struct.PyTreeNode):
    """Those of a session.

    Attributes:
      state: of a `Batch`.
      seed: uint32[], of the reset: with `key = jax.random.key(seed)` that is `Batch.reset(fold_in(
        key, 0), params)`, and the t-th step after it `Batch.step(fold_in(key, t), ...)`.
      steps: uint32[], since then.
    """

    state: Any
    seed: Any
    steps: Any


class Programs(NamedTuple):
    """`reset(seed, params)` and `step(episodes, action, params)`, compiled."""

    reset: Any
    step: Any


@partial(jax.jit, static_argnames="batch")
def reset_batch(batch: Batch, seed: Any, params: Any) -> tuple[Episodes, Packed]:
    """`(episodes, pack((code, observation)))`."""
    key = jax.random.fold_in(jax.random.key(seed), 0)
    observation, state = batch.reset(key, params)
    code = jnp.where(is_finite((observation, state.total_reward)), 0, int(Code.NOT_FINITE))
    return Episodes(state, seed, jnp.uint32(0)), pack((code, observation))


@partial(jax.jit, static_argnames="batch", donate_argnames="episodes")
def step_batch(
    batch: Batch, episodes: Episodes, action: Any, params: Any
) -> tuple[Episodes, Packed]:
    """`(episodes, pack((code, observation, reward, terminated, truncated, info)))`.

    If a number is not finite, the episodes stay as they were.
    """
    steps = episodes.steps + jnp.uint32(1)
    key = jax.random.fold_in(jax.random.key(episodes.seed), steps)
    observation, state, *rest = batch.step(key, episodes.state, action, params)
    fine = is_finite((observation, *rest))
    code = jnp.where(fine, 0, int(Code.NOT_FINITE))
    new = Episodes(state, episodes.seed, steps)
    return jax.tree.map(partial(jnp.where, fine), new, episodes), pack((code, observation, *rest))


class BatchEngine:
    """Runs a `Batch` at each place, on the thread of the `LaneEngine` of the same task.

    Each number of lanes has programs of its own, compiled when the first session asks for it.
    """

    def __init__(self, lanes: LaneEngine, capacity: int) -> None:
        self.name, self.about, self.capacity = lanes.name, lanes.about, capacity
        self.action, self.observation = models.stacked_models(lanes.name, lanes.env, lanes.params)
        self.state = State
        self.healthy = True
        self._of = lanes
        self._space = lanes.env.action_space(lanes.params)
        self._programs: dict[int, Programs] = {}
        self._sizes: dict[int, int] = {}
        self._episodes: dict[int, Episodes] = {}

    @property
    def action_bytes(self) -> int:
        """Of a lane's action, written as float64 in base64, at most."""
        numbers = jax.tree.leaves(jax.eval_shape(self._space.sample, jax.random.key(0)))
        return 11 * sum(math.prod(each.shape) for each in numbers)

    async def start(self) -> None:
        pass

    async def stop(self) -> None:
        pass

    async def open(self, place: int, num_envs: int) -> None:
        if num_envs not in self._programs:
            # Not on the thread of the engine: it goes on meanwhile.
            self._programs[num_envs] = await asyncio.to_thread(self._compile, num_envs)
        self._sizes[place] = num_envs

    def release(self, place: int) -> None:
        self._episodes.pop(place, None)
        del self._sizes[place]
        for size in set(self._programs) - set(self._sizes.values()):
            del self._programs[size]

    async def reset(self, place: int, seed: int | None, state: State) -> Outcome:
        seed = new_seed() if seed is None else seed
        code, observation = await self._of.run(self._reset, place, seed)
        _require_finite(code)
        n = self._sizes[place]
        nothing, no = np.zeros(n, np.float32), np.zeros(n, bool)
        return _outcome(observation, nothing, no, {"seed": seed}, state)

    async def step(self, place: int, action: Any, state: State, deadline: float) -> Outcome:
        try:
            given = models.lanes_member(self._space, action, self._sizes[place])
        except ValueError as error:
            raise RefusedError(422, "VALIDATION_ERROR", f"action: {error}") from None
        code, observation, reward, terminated, truncated, info = await self._of.run(
            self._step, place, given, deadline
        )
        _require_finite(code)
        metadata = models.packed({**info, "terminated": terminated, "truncated": truncated})
        after = state.model_copy(update={"step_count": state.step_count + 1})
        return _outcome(observation, reward, terminated | truncated, metadata, after)

    def _compile(self, num_envs: int) -> Programs:
        batch, params = Batch(self._of.env, num_envs), self._of.params
        seed = np.uint32(0)
        reset = reset_batch.lower(batch, seed, params).compile()
        episodes, _ = jax.eval_shape(partial(reset_batch, batch), seed, params)
        action = jax.tree.map(
            lambda x: jax.ShapeDtypeStruct((num_envs, *x.shape), x.dtype),
            jax.eval_shape(self._space.sample, jax.random.key(0)),
        )
        return Programs(reset, step_batch.lower(batch, episodes, action, params).compile())

    # What follows runs on the thread.

    def _reset(self, place: int, seed: int) -> Any:
        program = self._programs[self._sizes[place]].reset
        episodes, packed = program(np.uint32(seed), self._of.params)
        seen = on_host(packed)
        if seen[0] == Code.FINE:
            self._episodes[place] = episodes
        return seen

    def _step(self, place: int, action: Any, deadline: float) -> Any:
        require_time(self._of.clock, deadline)
        program = self._programs[self._sizes[place]].step
        self._episodes[place], packed = program(self._episodes[place], action, self._of.params)
        return on_host(packed)


def _require_finite(code: Any) -> None:
    if code != Code.FINE:
        raise FloatingPointError("a transition gave a number that is not finite; it was not made")


def _outcome(
    observation: Any, reward: Any, done: Any, metadata: dict[str, Any], state: State
) -> Outcome:
    seen = models.packed(models.observed(observation))
    answer = reply(seen, models.packed(reward), models.packed(done), metadata)
    return Outcome(to_json(answer), state)
