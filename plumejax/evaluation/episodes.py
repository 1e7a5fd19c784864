"""evaluation/episodes: a policy on fresh episodes, each played once to its own end."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from plumejax.base import lifecycle
from plumejax.base.compiling import jit_by_class
from plumejax.base.environment import Environment
from plumejax.base.errors import ValidationError, require
from plumejax.base.rollout import Policy
from plumejax.evaluation import lanes as side_by_side
from plumejax.evaluation.lanes import LANES
from plumejax.evaluation.tracks import Track, follow, track_from


class Outcomes(NamedTuple):
    """How episodes ended, arrays leading with the number of episodes.

    Attributes:
      found: bool[n], the source was found.
      failed: bool[n], the episode ended otherwise before its time was over.
      steps: int32[n], length of the episode; -1 if the task refused an action, with which an
        episode would stand still for ever.
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


class Numbers(NamedTuple):
    """Of an `Episode`: who plays, the key of all episodes, and the params."""

    policy: Policy
    key: jax.Array
    params: Any


class Lane(NamedTuple):
    """An episode that is being played; `key` is that of its steps, `refused` whether an action was
    refused."""

    state: Any
    memory: Any
    key: jax.Array
    track: Track | None
    refused: jax.Array


@dataclass(frozen=True)
class Episode:
    """A policy's episode in `env`, as a `lanes.Game` with `Numbers`."""

    env: Environment

    def begin(self, numbers: Numbers, number: jax.Array) -> Lane:
        policy, key, params = numbers
        reset_key, init_key, run_key = jax.random.split(jax.random.fold_in(key, number), 3)
        _, state = self.env.reset(reset_key, params)
        track = track_from(self.env, state, params)
        return Lane(state, policy.init(init_key), run_key, track, jnp.zeros((), bool))

    def step(self, numbers: Numbers, lane: Lane) -> Lane:
        policy, _, params = numbers
        # An ended episode counts no more steps, so its keys repeat; it uses none. Each key is
        # derived by itself: one that is not used costs nothing.
        now = 2 * lane.state.step_count.astype(jnp.uint32)
        act_key, step_key = (jax.random.fold_in(lane.key, now + i) for i in (0, 1))
        action, memory = policy.act(act_key, lane.memory, lane.state.observation)
        _, state, _, _, _, _ = self.env.step(step_key, lane.state, action, params)
        track = follow(self.env, lane.track, lane.state, action, state, params)
        stands = state.step_count == lane.state.step_count
        refused = lane.refused | (stands & ~self.over(numbers, lane))
        return Lane(state, memory, lane.key, track, refused)

    def over(self, numbers: Numbers, lane: Lane) -> jax.Array:
        return ~lifecycle.is_ready(lane.state.lifecycle) | lane.refused

    def view(self, lane: Lane) -> Outcomes:
        state = lane.state
        over = state.lifecycle == lifecycle.Lifecycle.TERMINATED
        found = getattr(state, "found", over)
        failed, plume = over & ~found, _realisation(getattr(state, "plume", None))
        # That of several agents is the sum of theirs.
        reward = jnp.sum(state.total_reward)
        steps = jnp.where(lane.refused, jnp.int32(-1), state.step_count)
        return Outcomes(found, failed, steps, reward, plume, lane.track)


def require_plays(policy: Policy, env: Environment, params: Any) -> None:
    """Raise `ValidationError` unless the policy can be shown the observations of a task and gives
    actions of its form; nothing is computed."""
    seen, acts = env.observation_space(params), env.action_space(params)

    def one(key: jax.Array) -> Any:
        return policy.act(key, policy.init(key), seen.sample(key))[0], acts.sample(key)

    try:
        given, wanted = jax.eval_shape(one, jax.random.key(0))
        forms = [[x.shape for x in jax.tree.leaves(tree)] for tree in (given, wanted)]
        good = forms[0] == forms[1]
    except (TypeError, ValueError, AttributeError):
        good = False
    fits = f"one that observes {seen} and gives actions in {acts}"
    require(good, "policy", type(policy).__name__, fits)


@jit_by_class(static=("env", "episodes"))
def play(env: Environment, policy: Policy, key: jax.Array, params: Any, episodes: int) -> Outcomes:
    """`Outcomes` of `episodes` (static) fresh episodes, side by side till the last has ended; pure.

    Each counts once, however long it is: to stop while some are going on would favour the short
    ones. Episode i depends on `fold_in(key, i)` only, not on how many are played, so policies that
    are given one key play the same episodes.
    """
    game, numbers = Episode(env), Numbers(policy, key, params)
    table = side_by_side.begin(game, numbers, jnp.arange(episodes, dtype=jnp.uint32))
    return jax.vmap(game.view)(side_by_side.play_out(game, numbers, table))


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

    The memory is that of `lanes` episodes, and some bytes for each outcome.

    Args:
      first: number of the first episode; `first=n` goes on where n episodes ended.
      lanes: episodes played side by side.
      progress: is told how many more have ended, now and then.

    Raises:
      ValidationError: the task refused an action of the policy.
    """
    game, numbers = Episode(env), Numbers(policy, key, params)
    parts = side_by_side.stream(
        game, numbers, episodes, first=first, lanes=lanes, progress=progress
    )
    outcomes = in_order(parts)
    refused = int(np.sum(outcomes.steps < 0))
    if refused:
        raise ValidationError(
            f"in {refused} of {episodes} episodes {type(policy).__name__} gave an action that the"
            f" task refuses: it must be a member of {env.action_space(params)}"
        )
    return outcomes


def in_order(parts: Iterable[tuple[np.ndarray, Any]]) -> Any:
    """What `lanes.stream` gives, as one tree whose leaves lead with the games by their number."""
    which, views = zip(*parts, strict=True)
    order = np.argsort(np.concatenate(which))
    return jax.tree.map(lambda *x: np.concatenate(x)[order], *views)


@jit_by_class(static=("env", "episodes", "steps"))
def trace(
    env: Environment, policy: Policy, key: jax.Array, params: Any, episodes: int, steps: int
) -> tuple[Outcomes, Lane]:
    """`(outcomes, lanes)` of the same episodes as `play`, each `Lane` kept at every step.

    Leaves of `lanes` lead with `[steps + 1, episodes]`, the first at the start; an episode that
    ended stays as it was. The state's observation is left out (None), and the key.
    """
    game, numbers = Episode(env), Numbers(policy, key, params)
    table = side_by_side.begin(game, numbers, jnp.arange(episodes, dtype=jnp.uint32))

    def kept(table: Lane) -> Lane:
        state = table.state.replace(observation=None)
        return table._replace(state=state, key=None)  # type: ignore[arg-type]

    def one(table: Lane, _: None) -> tuple[Lane, Lane]:
        after = side_by_side.step(game, numbers, table)
        return after, kept(after)

    start = kept(table)
    table, rest = jax.lax.scan(one, table, None, steps)
    lanes = jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), start, rest)
    return jax.vmap(game.view)(table), lanes


def _realisation(plume: Any) -> Any:
    """int32[]: which plume of a bank or recording was played; None if there is no choice."""
    playing = getattr(plume, "playing", plume)
    movie = getattr(playing, "movie", ())
    return None if isinstance(movie, tuple) else movie
