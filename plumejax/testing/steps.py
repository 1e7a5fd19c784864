"""testing/steps: many random steps, every rule checked inside the compiled step and counted."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, reduce
from operator import and_
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
from flax import struct

from plumejax.base import lifecycle
from plumejax.base.batch import Batch
from plumejax.base.environment import Environment
from plumejax.base.lifecycle import Lifecycle
from plumejax.base.rollout import Carry, Transition, rollout
from plumejax.testing.forms import RTOL, is_float, require_that

CHUNK = 25
"""Steps of every lane between two looks at the clock."""


class Count(NamedTuple):
    """What `check_steps` has seen.

    Attributes:
      steps: of all lanes.
      episodes: that ended.
      broken: how often each rule was broken, by its name, which says what was wrong.
    """

    steps: int
    episodes: int
    broken: dict[str, int]


def check_steps(
    env: Environment,
    params: Any,
    key: chex.PRNGKey,
    steps: int = 10_000,
    *,
    lanes: int = 64,
    starts: int | None = None,
    progress: Callable[[Count], None] = lambda count: None,
) -> Count:
    """At least `steps` random steps of a `Batch`, in none of which a rule is broken.

    The rules: every number of observation, reward, state and info is finite; the observation is in
    its space, and that of the state; `step_count` grows by one and starts at 0; `truncated` is
    `step_count >= max_steps`; the lifecycle fits the flags; `total_reward` is the sum of rewards;
    and the task's own, `env.broken`. Raises `AssertionError` with the names of those that were
    broken, and how often.

    Args:
      env: the environment.
      params: its numbers.
      key: typed key, consumed.
      steps: of all lanes together; rounded up to whole chunks of `CHUNK` steps a lane.
      lanes: episodes side by side.
      starts: how many starts all episodes begin from, where starts are costly; by default every
        episode has a start of its own. Episodes from one start part by their actions.
      progress: called with what was seen so far after each chunk.
    """
    watched = _Watched(Batch(env, lanes), starts)
    if not steps:
        return Count(0, 0, {})
    of_a_step: Any = partial(_rules, env, params)
    rules = tuple(jax.eval_shape(of_a_step, *_shapes_of(env, key, params)))
    actor = _Anyhow(env.action_space(params))
    sums, count = _Sums(rules), Count(0, 0, {})
    begin_key, run_key = jax.random.split(key)
    state = _begin(env, params, begin_key, lanes, starts)
    carry = Carry(jnp.int32(0), state, (), sums.start())
    play: Any = rollout  # which steps whatever has the methods of a `Batch`
    run = partial(play, watched, actor, run_key, params, CHUNK, reduction=sums)
    while count.steps < steps:
        carry, total = run(init=carry)
        seen = {name: int(n) for name, n in zip(rules, total[1], strict=True)}
        broken = {name: n for name, n in seen.items() if n}
        count = Count(count.steps + CHUNK * lanes, int(total[0]), broken)
        progress(count)
        shown = ", ".join(f"{name} ({n} times)" for name, n in broken.items())
        require_that(not broken, f"in {count.steps} random steps: {shown}")
    return count


@dataclass(frozen=True)
class _Watched:
    """`batch`, in whose info stands which rules a step broke: `broken`, bool[rules, lanes].

    Where `starts` is a number, all episodes begin from so many stored ones.
    """

    batch: Batch
    starts: int | None

    @property
    def num_envs(self) -> int:
        return self.batch.num_envs

    def shard(self, lanes: Any) -> Any:
        return lanes

    def step(self, key: jax.Array, state: "_Lanes", action: Any, params: Any) -> Any:
        env = self.batch.env
        observation, after, *outcome, info = self.batch.advance(key, state.lanes, action, params)
        rules: Any = jax.vmap(partial(_rules, env, params))
        broken = rules(state.lanes, after, observation, *outcome, info)
        done = outcome[1] | outcome[2]
        lanes = self._begin(key, done, after, state.ready, params)
        begun = jax.vmap(partial(_rules_of_a_start, env, params))(lanes)
        for name, flags in begun.items():
            broken[name] |= flags & done
        info = {**info, "broken": jnp.stack(list(broken.values()))}
        return lanes.observation, _Lanes(lanes, state.ready), *outcome, info

    def _begin(self, key: jax.Array, done: jax.Array, lanes: Any, ready: Any, params: Any) -> Any:
        """The lanes, those that are done begun anew."""
        if self.starts is None:
            return self.batch.reset_where(key, done, lanes, params)[1]
        numbers = jnp.arange(self.num_envs, dtype=jnp.int32)
        # Another start than the last time, without a draw.
        place = (numbers + lanes.step_count) % jnp.int32(self.starts)

        def begin(lane: jax.Array, ready: jax.Array) -> jax.Array:
            return jnp.where(done.reshape(-1, *(1,) * (lane.ndim - 1)), ready[place], lane)

        return jax.tree.map(begin, lanes, ready)


class _Lanes(struct.PyTreeNode):
    """The state of `_Watched`: the lanes, and the starts, `()` if they are not stored."""

    lanes: Any
    ready: Any

    @property
    def observation(self) -> Any:
        return self.lanes.observation


def _begin(env: Environment, params: Any, key: chex.PRNGKey, lanes: int, starts: Any) -> _Lanes:
    """Every lane at a start, of its own or of `starts`."""
    _, made = Batch(env, lanes if starts is None else starts).reset(key, params)
    if starts is None:
        return _Lanes(made, ())
    place = jnp.arange(lanes, dtype=jnp.int32) % jnp.int32(starts)
    return _Lanes(jax.tree.map(lambda x: x[place], made), made)


class _Anyhow(struct.PyTreeNode):
    """A policy that draws every action from the space."""

    space: Any = struct.field(pytree_node=False)

    def init(self, key: jax.Array) -> tuple[()]:
        return ()

    def act(self, key: jax.Array, carry: tuple[()], observation: Any) -> tuple[Any, tuple[()]]:
        return self.space.sample(key), carry


NOT_FINITE = "a number is not finite"
NOT_IN_SPACE = "the observation is not in its space"
NOT_COUNTED = "step_count is not one more, or not 0 at the start"
NOT_LIVED = "the lifecycle does not fit the flags"
NOT_SUMMED = "total_reward is not the sum of the rewards"


def _rules(
    env: Environment,
    params: Any,
    before: Any,
    after: Any,
    observation: Any,
    reward: jax.Array,
    terminated: jax.Array,
    truncated: jax.Array,
    info: Any,
) -> dict[str, jax.Array]:
    """bool[] by name: which rules a step of one lane broke."""
    own = env.episode_params(after, params)
    total = before.total_reward + reward
    error = jnp.abs(after.total_reward - total) > RTOL * (1 + jnp.abs(total))
    return {
        NOT_FINITE: ~_all_finite((observation, reward, after, info)),
        NOT_IN_SPACE: ~env.observation_space(params).contains(observation),
        NOT_COUNTED: after.step_count != before.step_count + 1,
        NOT_LIVED: after.lifecycle != lifecycle.after_step(terminated, truncated),
        NOT_SUMMED: jnp.any(error),
        "truncated is not step_count >= max_steps": truncated
        != (after.step_count >= own.max_steps),
        "the observation is not the state's": ~_all_same(after.observation, observation),
        **env.broken(after, own),
    }


def _rules_of_a_start(env: Environment, params: Any, state: Any) -> dict[str, jax.Array]:
    """bool[] by name: which rules the state of a start breaks."""
    return {
        NOT_FINITE: ~_all_finite(state),
        NOT_IN_SPACE: ~env.observation_space(params).contains(state.observation),
        NOT_COUNTED: state.step_count != 0,
        NOT_LIVED: state.lifecycle != lifecycle.code(Lifecycle.READY),
        NOT_SUMMED: jnp.any(state.total_reward != 0),
        **env.broken(state, env.episode_params(state, params)),
    }


def _shapes_of(env: Environment, key: chex.PRNGKey, params: Any) -> tuple[Any, ...]:
    """What `_rules` looks at of a step, in form."""
    _, before = jax.eval_shape(env.reset, key, params)
    action = jax.eval_shape(env.action_space(params).sample, key)
    observation, after, *outcome = jax.eval_shape(env.step, key, before, action, params)
    return before, after, observation, *outcome


class _Sums(NamedTuple):
    """A `Reduction`, equal for equal rules: episodes that ended, int32[], and how often each rule
    was broken, int32[rules]."""

    rules: tuple[str, ...]

    def start(self) -> tuple[jax.Array, jax.Array]:
        return jnp.int32(0), jnp.zeros(len(self.rules), jnp.int32)

    def add(self, total: tuple[jax.Array, jax.Array], step: Transition) -> Any:
        done = step.terminated | step.truncated
        ended = total[0] + jnp.sum(done, dtype=jnp.int32)
        return ended, total[1] + jnp.sum(step.info["broken"], axis=1, dtype=jnp.int32)


def _all_finite(tree: Any) -> jax.Array:
    floats = [x for x in jax.tree.leaves(tree) if is_float(x)]
    return reduce(and_, [jnp.all(jnp.isfinite(x)) for x in floats], jnp.asarray(True))


def _all_same(a: Any, b: Any) -> jax.Array:
    pairs = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    return reduce(and_, [jnp.all(x == y) for x, y in pairs], jnp.asarray(True))
