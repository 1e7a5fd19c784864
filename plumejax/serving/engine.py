"""serving/engine: what sessions run on: lanes of a task in one compiled step, batches, or objects.

Each engine gives `reset`, `step`, `open` and `release` of numbered places to `serving/sessions`.
"""

import asyncio
import copy
import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.adapters.packing import Packed, pack, unpack
from plumejax.base import lifecycle
from plumejax.base.batch import Batch
from plumejax.serving import models
from plumejax.serving.environment import Action, HostEnvironment, Observation, State
from plumejax.serving.refusals import Refused, broken

NOT_FINITE = 5
"""Beside the codes of `Environment.check`: the step would have given a number that JSON has not."""


class Outcome(NamedTuple):
    """What a transition came to, whole before it was made.

    Attributes:
      body: JSON of `{"observation", "reward", "done", "metadata"}`.
      state: of the episode after it.
    """

    body: bytes
    state: State


class Engine(Protocol):
    """Runs episodes at places 0 to `capacity` - 1; of one place, one call at a time."""

    name: str
    about: str
    action: type[Action]
    observation: type[Observation]
    state: type[State]
    capacity: int

    async def start(self) -> None:
        """Compile all that is needed."""

    async def stop(self) -> None:
        """Finish, and let go of the thread."""

    async def open(self, place: int, num_envs: int) -> None:
        """Make ready a place that is free."""

    def release(self, place: int) -> None:
        """Forget what is at that place."""

    async def reset(self, place: int, seed: int, state: State) -> Outcome:
        """Begin the episode that `state` names."""

    async def step(self, place: int, action: Action, state: State, deadline: float) -> Outcome:
        """One step on from `state`. Raises `Refused`, and then nothing has changed.

        Args:
          place, action, state: of which episode.
          deadline: on the clock of `time.monotonic`; past it, what still waits is not begun.
        """


class Lanes(struct.PyTreeNode):
    """Episodes side by side: all that a step changes.

    Attributes:
      state: of the environment, leaves lead with the number of lanes.
      seed: uint32[lanes], of their last resets; with `key = jax.random.key(seed)` a reset is
        `env.reset(fold_in(key, 0), params)` and step t = 1, 2, ... `env.step(fold_in(key, t), ...)`,
        as in the Gymnasium adapter.
    """

    state: Any
    seed: Any


class Seen(NamedTuple):
    """What the host reads of a lane after a step.

    Attributes:
      code: int32[], of `Environment.check`, or `NOT_FINITE`; nothing was changed unless it is 0.
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


@partial(jax.jit, static_argnames=("env", "lanes"))
def fresh_lanes(env: Any, lanes: int, params: Any) -> Lanes:
    """Lanes that wait for their first reset."""
    _, state = env.reset(jax.random.key(0), params)
    state = jax.tree.map(lambda x: jnp.broadcast_to(x, (lanes, *jnp.shape(x))), state)
    return Lanes(lifecycle.created(state), jnp.zeros(lanes, jnp.uint32))


@partial(jax.jit, static_argnames="env", donate_argnames="lanes")
def reset_lane(
    env: Any, lanes: Lanes, place: jax.Array, seed: jax.Array, params: Any
) -> tuple[Lanes, Packed]:
    """The lane at `place`, int32[], begun anew from `seed`, uint32[]; the others are left alone.

    It is always one lane that begins, so what it begins with does not depend on how many begin.
    """
    observation, state = env.reset(jax.random.fold_in(jax.random.key(seed), 0), params)
    zero = jnp.zeros_like(state.total_reward)
    no = jnp.asarray(False)
    info = env.info(state, env.episode_params(state, params))
    seen = _seen(jnp.int32(0), zero, no, no, state.step_count, observation, info)
    new = Lanes(state, jnp.asarray(seed, jnp.uint32))

    def put(old: jax.Array, one: jax.Array) -> jax.Array:
        return old.at[place].set(jnp.where(seen.code == 0, one, old[place]))

    return jax.tree.map(put, lanes, new), pack(seen)


@partial(jax.jit, static_argnames="env", donate_argnames="lanes")
def step_lanes(
    env: Any, lanes: Lanes, active: jax.Array, actions: Any, params: Any
) -> tuple[Lanes, Packed]:
    """One step of the lanes in `active`, bool[lanes]; what is seen leads with the lanes.

    A lane that is not active, whose step `env.check` forbids or gives a number that is not finite,
    stays as it was.
    """

    def one(lane: Lanes, active: jax.Array, action: Any) -> tuple[Lanes, Seen]:
        state = lane.state
        key = jax.random.fold_in(
            jax.random.key(lane.seed), (state.step_count + 1).astype(jnp.uint32)
        )
        code = env.check(state, action, params)
        observation, new, reward, *flags, info = env.step(key, state, action, params)
        seen = _seen(code, reward, *flags, new.step_count, observation, info)
        keep = active & (seen.code == 0)
        return lane.replace(state=jax.tree.map(partial(jnp.where, keep), new, state)), seen

    lanes, seen = jax.vmap(one)(lanes, active, actions)
    return lanes, pack(seen)


def _seen(
    code: jax.Array,
    reward: jax.Array,
    terminated: jax.Array,
    truncated: jax.Array,
    step_count: jax.Array,
    observation: Any,
    info: Any,
) -> Seen:
    rewards = None if reward.ndim == 0 else reward
    seen = Seen(
        code, jnp.sum(reward), rewards, terminated, truncated, step_count, observation, info
    )
    return seen._replace(code=jnp.where((code == 0) & ~_finite(seen), jnp.int32(NOT_FINITE), code))


def _finite(tree: Any) -> jax.Array:
    """bool[]: whether every number in it is."""
    floats = [x for x in jax.tree.leaves(tree) if jnp.issubdtype(jnp.result_type(x), jnp.floating)]
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(x)) for x in floats]))


@dataclass(eq=False)
class Job:
    """A step that waits for the next batch."""

    place: int
    action: Any
    deadline: float
    done: asyncio.Future


@dataclass(eq=False)
class LaneEngine:
    """A task of arrays: a session is a lane, and all lanes step in one compiled program.

    One thread owns the lanes and is alone in running programs. What waits when it is free it takes
    as one batch, of one shape always, so a session's numbers do not depend on its company.

    Attributes:
      name, about: of the task.
      env, params: the task.
      capacity: lanes.
      clock: s, that deadlines are on.
    """

    name: str
    about: str
    env: Any
    params: Any
    capacity: int
    clock: Callable[[], float] = time.monotonic
    state: type[State] = State
    action: type[Action] = field(init=False)
    observation: type[Observation] = field(init=False)
    _lanes: Any = field(init=False, default=None)
    _waiting: list[Job] = field(init=False, default_factory=list)
    _busy: bool = field(init=False, default=False)
    _background: set = field(init=False, default_factory=set)

    def __post_init__(self) -> None:
        self.action, self.observation = models.task_models(self.name, self.env, self.params)
        self._space = self.env.action_space(self.params)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="engine")
        self._actions = jax.tree.map(self._many, self._space.sample(jax.random.key(0)))

    def _many(self, one: Any) -> np.ndarray:
        return np.zeros((self.capacity, *one.shape), one.dtype)

    async def start(self) -> None:
        await self.run(self._warm)

    async def stop(self) -> None:
        self._thread.shutdown(wait=True)

    async def run(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """`work(*arguments)` on the thread of this engine."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)

    async def open(self, place: int, num_envs: int) -> None:
        pass

    def release(self, place: int) -> None:
        # Its lane is begun anew before it can be stepped or seen.
        pass

    async def reset(self, place: int, seed: int, state: State) -> Outcome:
        seen: Seen = await self.run(self._reset, place, seed)
        return self._outcome(seen, state, {"seed": seed})

    async def step(self, place: int, action: Action, state: State, deadline: float) -> Outcome:
        given = models.member(self._space, action)
        job = Job(place, given, deadline, asyncio.get_running_loop().create_future())
        self._waiting.append(job)
        if not self._busy:
            self._busy = True
            task = asyncio.create_task(self._step_all())
            self._background.add(task)
            task.add_done_callback(self._background.discard)
        return self._outcome(await job.done, state, {})

    def _outcome(self, seen: Seen, state: State, metadata: dict[str, Any]) -> Outcome:
        code = int(seen.code)
        refuse(code)
        body = wire(seen, metadata, models.encoded)
        return Outcome(body, state.model_copy(update={"step_count": int(seen.step_count)}))

    async def _step_all(self) -> None:
        """Step what waits, batch after batch, until nothing does."""
        # Those that have arrived already come into the first batch.
        await asyncio.sleep(0)
        while self._waiting:
            jobs, self._waiting = self._waiting, []
            jobs = [job for job in jobs if not self._too_late(job)]
            try:
                seen = await self.run(self._step, jobs) if jobs else []
            except Exception as error:
                seen = [error] * len(jobs)
            for job, each in zip(jobs, seen, strict=True):
                if job.done.done():
                    continue
                if isinstance(each, Exception):
                    job.done.set_exception(each)
                else:
                    job.done.set_result(each)
        self._busy = False

    def _too_late(self, job: Job) -> bool:
        if self.clock() <= job.deadline:
            return False
        job.done.set_exception(Refused(504, "TIMEOUT", "not begun within timeout_s; nothing done"))
        return True

    # What follows runs on the thread.

    def _warm(self) -> None:
        self.params = jax.device_put(self.params)
        self._lanes = fresh_lanes(self.env, self.capacity, self.params)
        nobody: list[Job] = []
        # Twice: what a program gives is the next one's argument.
        for _ in range(2):
            self._reset(0, 0)
            self._step(nobody)
        self._lanes = fresh_lanes(self.env, self.capacity, self.params)

    def _reset(self, place: int, seed: int) -> Seen:
        self._lanes, seen = reset_lane(
            self.env, self._lanes, np.int32(place), np.uint32(seed), self.params
        )
        return unpack(jax.device_get(seen.arrays), seen.layout)

    def _step(self, jobs: list[Job]) -> list[Seen]:
        active = np.zeros(self.capacity, bool)
        for job in jobs:
            active[job.place] = True
            jax.tree.map(partial(_put, job.place), self._actions, job.action)
        self._lanes, packed = step_lanes(
            self.env, self._lanes, active, jax.tree.map(np.copy, self._actions), self.params
        )
        seen = unpack(jax.device_get(packed.arrays), packed.layout)
        return [jax.tree.map(lambda x, p=job.place: x[p], seen) for job in jobs]


def _put(place: int, all_: np.ndarray, one: np.ndarray) -> None:
    all_[place] = one


def refuse(code: int) -> None:
    """Raise what a code of a step says, if it is one of a step that was none."""
    if code == lifecycle_code("NOT_RESET"):
        raise Refused(409, "NOT_RESET", "reset first")
    if code == lifecycle_code("EPISODE_DONE"):
        raise Refused(409, "EPISODE_DONE", "the episode has ended; reset to begin another")
    if code == NOT_FINITE:
        raise broken("a step gave a number that is not finite")


def lifecycle_code(name: str) -> int:
    """Of `Environment.check`."""
    return {"NOT_RESET": 1, "EPISODE_DONE": 2, "CLOSED": 3, "BAD_ACTION": 4}[name]
