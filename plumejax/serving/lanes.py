"""serving/lanes: LaneEngine, sessions of a task as lanes of one compiled step."""

import asyncio
import secrets
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from pydantic_core import to_json

from plumejax.adapters.packing import Packed, pack, unpack
from plumejax.serving import models
from plumejax.serving.engine import Outcome, episode_done, reply, require_time
from plumejax.serving.environment import State
from plumejax.serving.refusals import RefusedError


class Code(IntEnum):
    """What became of a step: the codes of `Environment.check`, and one more."""

    FINE = 0
    NOT_RESET = 1
    EPISODE_DONE = 2
    CLOSED = 3
    BAD_ACTION = 4
    NOT_FINITE = 5


class Lanes(struct.PyTreeNode):
    """Episodes side by side: all that a step changes.

    Attributes:
      state: of the environment, leaves lead with the number of lanes.
      seed: uint32[lanes], of their last resets: with `key = jax.random.key(seed)` a reset is
        `env.reset(fold_in(key, 0), params)` and step t = 1, 2, ... is `env.step(fold_in(key, t),
        state, action, params)`, as in the Gymnasium adapter.
    """

    state: Any
    seed: Any


class Seen(NamedTuple):
    """What the host reads of a lane after a step or a reset; for `outcome` as JSON has it.

    Attributes:
      code: int32[], a `Code`; nothing was changed unless it is FINE.
      reward: float[], that of all agents together.
      rewards: float[A] of an environment of several agents, else None.
      terminated, truncated: bool[].
      step_count: int32[].
      observation, info: of the environment.
    """

    code: Any
    reward: Any
    rewards: Any
    terminated: Any
    truncated: Any
    step_count: Any
    observation: Any
    info: Any


def fresh_lanes(env: Any, lanes: int, params: Any) -> Lanes:
    """Lanes that wait for their first reset; zeros, and 0 is CREATED."""
    _, one = jax.eval_shape(env.reset, jax.random.key(0), params)
    state = jax.tree.map(lambda x: np.zeros((lanes, *x.shape), x.dtype), one)
    return jax.device_put(Lanes(state, np.zeros(lanes, np.uint32)))


@partial(jax.jit, static_argnames="env", donate_argnames="lanes")
def reset_lane(env: Any, lanes: Lanes, place: Any, seed: Any, params: Any) -> tuple[Lanes, Packed]:
    """The lane at `place`, int32[], begun anew from `seed`, uint32[]; the others as they were.

    One lane begins at a time, whoever else waits: a start may be costly, and its numbers must not
    depend on how many begin.
    """
    observation, state = env.reset(jax.random.fold_in(jax.random.key(seed), 0), params)
    info = env.info(state, env.episode_params(state, params))
    no, none = jnp.asarray(False), jnp.zeros_like(state.total_reward)
    seen = see(jnp.int32(0), none, no, no, state.step_count, observation, info)

    def put(old: jax.Array, one: jax.Array) -> jax.Array:
        return old.at[place].set(jnp.where(seen.code == 0, one, old[place]))

    return jax.tree.map(put, lanes, Lanes(state, seed)), pack(seen)


@partial(jax.jit, static_argnames="env", donate_argnames="lanes")
def step_lanes(
    env: Any, lanes: Lanes, active: Any, actions: Any, params: Any
) -> tuple[Lanes, Packed]:
    """One step of the lanes in `active`, bool[lanes]; what is seen leads with the lanes.

    A lane that is not active, or whose code is not FINE, stays as it was.
    """

    def one(lane: Lanes, active: jax.Array, action: Any) -> tuple[Lanes, Seen]:
        count = (lane.state.step_count + 1).astype(jnp.uint32)
        key = jax.random.fold_in(jax.random.key(lane.seed), count)
        code = env.check(lane.state, action, params)
        observation, state, reward, terminated, truncated, info = env.step(
            key, lane.state, action, params
        )
        seen = see(code, reward, terminated, truncated, state.step_count, observation, info)
        keep = active & (seen.code == 0)
        return lane.replace(state=jax.tree.map(partial(jnp.where, keep), state, lane.state)), seen

    lanes, seen = jax.vmap(one)(lanes, active, actions)
    return lanes, pack(seen)


@jax.jit
def lane_of(lanes: Lanes, place: Any) -> Lanes:
    """A copy of the lane at `place`, int32[]."""
    return jax.tree.map(lambda x: x[place], lanes)


def see(
    code: jax.Array,
    reward: jax.Array,
    terminated: jax.Array,
    truncated: jax.Array,
    step_count: jax.Array,
    observation: Any,
    info: Any,
) -> Seen:
    """A `Seen` of these; NOT_FINITE if one of the numbers is not."""
    rewards = None if reward.ndim == 0 else reward
    numbers = (rewards, terminated, truncated, step_count, observation, info)
    seen = Seen(code, jnp.sum(reward), *numbers)
    bad = (code == 0) & ~is_finite(seen)
    return seen._replace(code=jnp.where(bad, jnp.int32(Code.NOT_FINITE), code))


def is_finite(tree: Any) -> jax.Array:
    """bool[]: whether every number in it is."""
    floats = [x for x in jax.tree.leaves(tree) if jnp.issubdtype(x.dtype, jnp.floating)]
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(x)) for x in floats]))


@dataclass(eq=False)
class Job:
    """A step that waits for the next batch.

    Attributes:
      place, action: of which lane.
      deadline: of its beginning.
      seen: a future `Seen` as JSON has it.
    """

    place: int
    action: Any
    deadline: float
    seen: Any


class LaneEngine:
    """Runs a task of arrays, a lane at each place; `width` lanes side by side step in one program.

    One thread owns the lanes, and no other runs programs. What waits when it is free is its next
    batch. Every batch has the same shape, so the numbers of a session do not depend on its company.
    """

    def __init__(
        self,
        name: str,
        about: str,
        task: tuple[Any, Any],
        capacity: int,
        clock: Callable[[], float] = time.monotonic,
        width: int | None = None,
    ) -> None:
        self.name, self.about, self.capacity = name, about, capacity
        self._width = width or capacity
        self.env, self.params = task
        self.action, self.observation = models.task_models(name, *task)
        self.state = State
        self.clock = clock
        self._space = self.env.action_space(self.params)
        self._actions = jax.tree.map(
            lambda x: np.zeros((self._width, *x.shape), x.dtype),
            jax.eval_shape(self._space.sample, jax.random.key(0)),
        )
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="engine")
        self._slabs: list[Lanes] = []
        self._waiting: list[Job] = []
        self._stepping: asyncio.Task | None = None

    @property
    def healthy(self) -> bool:
        """False once a program has failed half way and taken the lanes with it."""
        return not any(x.is_deleted() for x in jax.tree.leaves(self._slabs))

    async def start(self) -> None:
        await self.run(self._warm)

    async def stop(self) -> None:
        self._thread.shutdown(wait=True)

    async def run(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """`work(*arguments)` on the thread of the engine."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)

    async def open(self, place: int, num_envs: int) -> None:
        pass

    def release(self, place: int) -> None:
        # A session is reset before it can step or see anything, and that writes its whole lane.
        pass

    async def reset(self, place: int, seed: int | None, state: State) -> Outcome:
        seed = new_seed() if seed is None else seed
        return outcome(await self.run(self._reset, place, seed), state, {"seed": seed})

    async def step(self, place: int, action: Any, state: State, deadline: float) -> Outcome:
        seen = asyncio.get_running_loop().create_future()
        self._waiting.append(Job(place, models.member(self._space, action), deadline, seen))
        if self._stepping is None:
            self._stepping = asyncio.create_task(self._step_all())
        return outcome(await seen, state, {})

    async def lane(self, place: int) -> Lanes:
        """A copy of the lane there, to be looked at on any thread."""
        return await self.run(self._lane, place)

    def fresh_lane(self) -> Lanes:
        """One that waits for its first reset."""
        return lane_of(fresh_lanes(self.env, self._width, self.params), np.int32(0))

    async def _step_all(self) -> None:
        """Step what waits, batch after batch, until nothing does."""
        # What has come in already is read first, and is of the first batch.
        await asyncio.sleep(0)
        while self._waiting:
            jobs = self._in_time(self._next())
            if not jobs:
                continue
            try:
                seen = await self.run(self._step, jobs)
            except Exception as error:
                for job in jobs:
                    if not job.seen.done():
                        job.seen.set_exception(error)
            else:
                for job, each in zip(jobs, seen, strict=True):
                    if not job.seen.done():
                        job.seen.set_result(each)
        self._stepping = None

    def _next(self) -> list[Job]:
        """Takes what waits of the slab of the first that does."""
        slab = self._waiting[0].place // self._width
        jobs = [job for job in self._waiting if job.place // self._width == slab]
        self._waiting = [job for job in self._waiting if job.place // self._width != slab]
        return jobs

    def _in_time(self, jobs: Sequence[Job]) -> list[Job]:
        """Those whose deadline is not past; the others are told."""
        kept = []
        for job in jobs:
            try:
                require_time(self.clock, job.deadline)
                kept.append(job)
            except RefusedError as refused:
                job.seen.set_exception(refused)
        return kept

    # What follows runs on the thread.

    def _warm(self) -> None:
        self.params = jax.device_put(self.params)
        self._slabs = [fresh_lanes(self.env, self._width, self.params)]
        # Twice: what a program gives is what the next one takes.
        for _ in range(2):
            self._reset(0, 0)
            self._step([Job(0, self._space.sample(jax.random.key(0)), 0.0, None)])
        slabs = -(-self.capacity // self._width)
        self._slabs = [fresh_lanes(self.env, self._width, self.params) for _ in range(slabs)]

    def _reset(self, place: int, seed: int) -> Seen:
        slab, place = divmod(place, self._width)
        lane = np.int32(place), np.uint32(seed)
        self._slabs[slab], packed = reset_lane(self.env, self._slabs[slab], *lane, self.params)
        return jax.tree.map(models.encoded, on_host(packed))

    def _lane(self, place: int) -> Lanes:
        slab, place = divmod(place, self._width)
        return lane_of(self._slabs[slab], np.int32(place))

    def _step(self, jobs: Sequence[Job]) -> list[Seen]:
        """Of jobs of one slab."""
        slab, places = jobs[0].place // self._width, [job.place % self._width for job in jobs]
        active = np.zeros(self._width, bool)
        active[places] = True
        for place, job in zip(places, jobs, strict=True):
            jax.tree.map(partial(_put, place), self._actions, job.action)
        lanes = self._slabs[slab], active, self._actions
        self._slabs[slab], packed = step_lanes(self.env, *lanes, self.params)
        leaves, structure = jax.tree.flatten(on_host(packed))
        columns = [models.encoded_rows(x[places]) for x in leaves]
        return [jax.tree.unflatten(structure, row) for row in zip(*columns, strict=True)]


def new_seed() -> int:
    """For an episode that comes with none."""
    return secrets.randbits(31)


def on_host(packed: Packed) -> Any:
    """The tree, in NumPy arrays."""
    return unpack(tuple(np.asarray(array) for array in packed.arrays), packed.layout)


def outcome(seen: Seen, state: State, metadata: dict[str, Any]) -> Outcome:
    """The outcome of a step on from `state`. Raises as `told` does."""
    after = State.model_construct(episode_id=state.episode_id, step_count=seen.step_count)
    return Outcome(to_json(reply(*told(seen, metadata))), after)


class Told(NamedTuple):
    """What a client is told of a reset or a step, as JSON has it."""

    observation: dict[str, Any]
    reward: float | None
    done: bool
    metadata: dict[str, Any]


def told(seen: Seen, metadata: dict[str, Any]) -> Told:
    """What is told of what was seen, as JSON has it; an action that was none is an error.

    Raises what another code says.
    """
    code = Code(seen.code)
    if code == Code.EPISODE_DONE:
        raise episode_done()
    if code in (Code.NOT_RESET, Code.CLOSED):
        raise RefusedError(409, "NOT_RESET", "reset first")
    if code == Code.NOT_FINITE:
        raise FloatingPointError("a transition gave a number that is not finite; it was not made")
    flags = {"terminated": seen.terminated, "truncated": seen.truncated}
    found = {**metadata, **seen.info, **flags}
    if seen.rewards is not None:
        found["rewards"] = seen.rewards
    reward = seen.reward
    if code == Code.BAD_ACTION:
        reward = None
        found["error"] = {"code": code.name, "message": "the action is not in the action space"}
    done = seen.terminated or seen.truncated
    return Told(models.observed(seen.observation), reward, done, found)


def _put(place: int, all_of_them: np.ndarray, one: np.ndarray) -> None:
    all_of_them[place] = one
