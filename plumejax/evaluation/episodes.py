"""evaluation/episodes: a policy on fresh episodes, each played once to its own end."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from plumejax.base import lifecycle
from plumejax.base.environment import Environment
from plumejax.base.rollout import Policy
from plumejax.evaluation.tracks import Track, follow, track_from

LANES = 1024
"""Episodes that are played side by side."""


class Outcomes(NamedTuple):
    """How episodes ended, arrays leading with the number of episodes.

    Attributes:
      found: bool[n], the source was found.
      failed: bool[n], the episode ended otherwise before its time was over.
      steps: int32[n], length of the episode.
      reward: float32[n], its return.
      plume: int32[n], which of the plumes of a bank or recording it had; None if each has its own.
      track: the `Track` of the searcher, its leaves leading with n; None if there is none.
    """

    found: Any
    failed: Any
    steps: Any
    reward: Any
    plume: Any = None
    track: Track | None = None


class _Lane(NamedTuple):
    """An episode that is being played; `key` is that of its steps."""

    state: Any
    memory: Any
    key: jax.Array
    track: Track | None


@partial(jax.jit, static_argnames=("env", "episodes"))
def play(env: Environment, policy: Policy, key: jax.Array, params: Any, episodes: int) -> Outcomes:
    """`Outcomes` of `episodes` (static) fresh episodes, side by side till the last has ended; pure.

    Each counts once, however long it is: to stop while some are going on would favour the short
    ones. Episode i depends on `fold_in(key, i)` only, not on how many are played, so policies that
    are given one key play the same episodes.
    """
    table = _start(env, policy, key, params, jnp.arange(episodes, dtype=jnp.uint32))
    step = jax.vmap(partial(_step, env, policy, params))

    def going_on(table: _Lane) -> jax.Array:
        return jnp.any(lifecycle.is_ready(table.state.lifecycle))

    return _view(jax.lax.while_loop(going_on, step, table))


def stream(
    env: Environment,
    policy: Policy,
    key: jax.Array,
    params: Any,
    episodes: int,
    *,
    first: int = 0,
    lanes: int = LANES,
    progress: Callable[[int], None] = lambda ended: None,
) -> Outcomes:
    """`Outcomes`, NumPy arrays, of any number of the episodes of `play`.

    A lane whose episode has ended waits until half of them have, then the next episodes begin; the
    memory is that of `lanes` episodes, and some bytes for each outcome.

    Args:
      first: number of the first episode; `first=n` goes on where n episodes ended.
      lanes: episodes played side by side.
      progress: is told how many more have ended, now and then.
    """
    lanes = min(lanes, episodes)
    numbers = np.arange(first, first + lanes, dtype=np.uint32)
    table = _start(env, policy, key, params, numbers)
    waiting, ended, parts = first + lanes, 0, []
    playing = np.ones(lanes, bool)
    while playing.any():
        more = first + episodes - waiting
        enough = int(playing.sum()) if more == 0 else max(1, lanes // 2)
        table, over = _play_on(env, policy, params, table, playing, np.int32(enough))
        over = np.asarray(over) & playing
        parts.append((numbers[over], jax.tree.map(lambda x, o=over: x[o], _outcomes(table))))
        ended += int(over.sum())
        progress(int(over.sum()))
        places = np.flatnonzero(over)
        playing[places[more:]] = False
        begun = places[:more]
        if len(begun):
            numbers = numbers.copy()
            numbers[begun] = np.arange(waiting, waiting + len(begun))
            waiting += len(begun)
            which = np.zeros(lanes, bool)
            which[begun] = True
            table = _restart(env, policy, key, params, table, numbers, which)
    order = np.argsort(np.concatenate([each for each, _ in parts]))
    outcomes = jax.tree.map(lambda *x: np.concatenate(x)[order], *(part for _, part in parts))
    return Outcomes(*outcomes)


@partial(jax.jit, static_argnames=("env", "episodes", "steps"))
def trace(
    env: Environment, policy: Policy, key: jax.Array, params: Any, episodes: int, steps: int
) -> tuple[Outcomes, Any]:
    """`(outcomes, states)` of the same episodes as `play`, the states of every step kept.

    Leaves of `states` lead with `[steps + 1, episodes]`, the first at the start; an episode that
    ended stays where it was. The observation is left out (None).
    """
    table = _start(env, policy, key, params, jnp.arange(episodes, dtype=jnp.uint32))
    step = jax.vmap(partial(_step, env, policy, params))

    def one(table: _Lane, _: None) -> tuple[_Lane, Any]:
        after = step(table)
        return after, after.state.replace(observation=None)

    start = table.state.replace(observation=None)
    table, rest = jax.lax.scan(one, table, None, steps)
    states = jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), start, rest)
    return _view(table), states


@partial(jax.jit, static_argnames="env")
def _start(env: Environment, policy: Policy, key: jax.Array, params: Any, numbers: Any) -> _Lane:
    """Lanes at the start of the episodes `numbers`, uint32[n]."""

    def one(number: jax.Array) -> _Lane:
        reset_key, init_key, run_key = jax.random.split(jax.random.fold_in(key, number), 3)
        _, state = env.reset(reset_key, params)
        return _Lane(state, policy.init(init_key), run_key, track_from(env, state, params))

    return jax.vmap(one)(numbers)


@partial(jax.jit, static_argnames="env", donate_argnames="table")
def _restart(
    env: Environment,
    policy: Policy,
    key: jax.Array,
    params: Any,
    table: _Lane,
    numbers: jax.Array,
    which: jax.Array,
) -> _Lane:
    """The lanes; those of bool[n] `which` at the start of their episode `numbers`, uint32[n]."""
    fresh = _start(env, policy, key, params, numbers)

    def chosen(new: jax.Array, old: jax.Array) -> jax.Array:
        return jnp.where(jnp.expand_dims(which, tuple(range(1, new.ndim))), new, old)

    return jax.tree.map(chosen, fresh, table)


@partial(jax.jit, static_argnames="env", donate_argnames="table")
def _play_on(
    env: Environment,
    policy: Policy,
    params: Any,
    table: _Lane,
    playing: jax.Array,
    enough: jax.Array,
) -> tuple[_Lane, jax.Array]:
    """`(lanes, over)`: until `enough` of the lanes bool[n] `playing` are over, bool[n]."""
    step = jax.vmap(partial(_step, env, policy, params))

    def over(table: _Lane) -> jax.Array:
        return ~lifecycle.is_ready(table.state.lifecycle)

    def going_on(table: _Lane) -> jax.Array:
        return jnp.sum(over(table) & playing, dtype=jnp.int32) < enough

    table = jax.lax.while_loop(going_on, step, table)
    return table, over(table)


def _step(env: Environment, policy: Policy, params: Any, lane: _Lane) -> _Lane:
    # An ended episode counts no more steps, so its keys repeat; it uses none.
    now = lane.state.step_count.astype(jnp.uint32)
    act_key, step_key = jax.random.split(jax.random.fold_in(lane.key, now))
    action, memory = policy.act(act_key, lane.memory, lane.state.observation)
    _, state, _, _, _, _ = env.step(step_key, lane.state, action, params)
    track = follow(env, lane.track, lane.state, action, state, params)
    return _Lane(state, memory, lane.key, track)


def _view(table: _Lane) -> Outcomes:
    state = table.state
    over = state.lifecycle == lifecycle.Lifecycle.TERMINATED
    found = getattr(state, "found", over)
    failed, plume = over & ~found, _realisation(getattr(state, "plume", None))
    # That of several agents is the sum of theirs.
    reward = state.total_reward.reshape(len(found), -1).sum(axis=1)
    return Outcomes(found, failed, state.step_count, reward, plume, table.track)


def _realisation(plume: Any) -> Any:
    """int32[n]: which plume of a bank or recording was played; None if there is no choice."""
    playing = getattr(plume, "playing", plume)
    movie = getattr(playing, "movie", ())
    return None if isinstance(movie, tuple) else movie


def _outcomes(table: _Lane) -> Outcomes:
    return jax.device_get(_view(table))
