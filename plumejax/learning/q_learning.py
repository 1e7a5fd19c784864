"""learning/q_learning: tabular Q-learning over few olfactory states, and what to do in the void.

After Rando et al. 2025 (eLife 13: RP102906, "Q-learning with temporal memory to navigate
turbulence"): the observation is one of few states (`search.whiff_states`, or `clock_states`, whose
only state is the time since the last whiff), of which 0 is the void, where nothing was smelled for
long. Elsewhere a table is learned; in the void a recovery acts, or what is learned there too.

Each lane of a `Batch` is one learner with a table of its own, so many seeds are trained at once, in
one scan, without a stop.
"""

from functools import partial
from typing import Any, Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.base.batch import Batch
from plumejax.base.errors import require
from plumejax.base.spaces import Discrete
from plumejax.search.environment import PlumeSearch
from plumejax.search.motion import AxisMoves, Moves, WindRelative

Recovery = Literal["learned", "random", "backtrack", "cast_and_surge", "circling"]
"""What acts in the void, t steps after it began:

- learned: the table, one row for each of the first steps in the void, the last for all later ones;
- random: any of the four moves, Brownian;
- backtrack: the moves since the start or the last void, undone one by one; then random;
- cast_and_surge: 1, 2, 3, ... moves across the wind, to the left and to the right in turn, and one
  move upwind after each run;
- circling: a square spiral, runs of 1, 1, 2, 2, 3, 3, ... moves: up the wind, to the left, down the
  wind, to the right.

The last two are ours in their lengths. The first has 1 row unless more are asked for.
"""

VOID = 0
"""The observation that says that nothing was smelled for long."""

REMEMBERED = 128
"""How many moves a backtracking agent can undo."""


class Compass(NamedTuple):
    """Which action moves where: against the wind, with it, and to the left and the right of who
    looks against it."""

    upwind: int
    downwind: int
    left: int
    right: int


class Recall(NamedTuple):
    """What an agent with a table remembers.

    Attributes:
      void: int32[], for how many steps it has been in the void.
      path: int32[REMEMBERED], moves that lead here, the newest first, -1 beyond the first.
    """

    void: jax.Array
    path: jax.Array


class QTable(struct.PyTreeNode):
    """A policy that takes the action of the highest value; in the void, its recovery acts.

    Attributes:
      values: float32[S + K - 1, A], by row and action: a row for each observation 0..S-1, and of
        the void K - 1 more, for the second, third, ... step in it.
      num_states: S, static.
      recovery: static.
      compass: static.
    """

    values: jax.Array
    num_states: int = struct.field(pytree_node=False)
    recovery: Recovery = struct.field(pytree_node=False)
    compass: Compass = struct.field(pytree_node=False)

    def init(self, key: jax.Array) -> Recall:
        """Nothing behind it; nothing is drawn."""
        return Recall(jnp.zeros((), jnp.int32), jnp.full(REMEMBERED, -1, jnp.int32))

    def act(
        self, key: jax.Array, carry: Recall, observation: jax.Array
    ) -> tuple[jax.Array, Recall]:
        """`(action, carry)`, the first of equals; the key is consumed."""
        values = self.values[self.row(carry, observation)]
        best = jnp.argmax(values).astype(jnp.int32)
        return self.choose(key, carry, observation, best)

    def row(self, carry: Recall, observation: jax.Array) -> jax.Array:
        """int32[]: the row of the table that an observation is judged by."""
        last = jnp.int32(self.values.shape[-2] - self.num_states)
        later = jnp.minimum(carry.void, last)
        first = jnp.asarray(observation, jnp.int32)
        deep = (first == VOID) & (later > 0)
        return jnp.where(deep, jnp.int32(self.num_states - 1) + later, first)

    def recovers(self, observation: jax.Array) -> jax.Array:
        """bool[]: whether the recovery acts, and not the table."""
        return (observation == VOID) & (self.recovery != "learned")

    def choose(
        self, key: jax.Array, carry: Recall, observation: jax.Array, action: jax.Array
    ) -> tuple[jax.Array, Recall]:
        """`(action, carry)`: `action`, or what the recovery does instead; the key is consumed."""
        void = observation == VOID
        if self.recovery != "learned":
            recovered = _recover(self.recovery, self.compass, key, carry)
            action = jnp.where(void, recovered, action)
        back = jnp.concatenate([carry.path[1:], jnp.full(1, -1, jnp.int32)])
        further = jnp.concatenate([action[None], carry.path[:-1]])
        path = jnp.where(void, back, further)
        return action, Recall(jnp.where(void, carry.void + 1, jnp.int32(0)), path)


def _recover(recovery: Recovery, compass: Compass, key: jax.Array, carry: Recall) -> jax.Array:
    """int32[]: the recovery's move in the void; the key is consumed."""
    up, down, left, right = (jnp.int32(action) for action in compass)
    drawn = jnp.asarray(compass, jnp.int32)[jax.random.randint(key, (), 0, 4, jnp.int32)]
    t = carry.void.astype(jnp.float32)
    if recovery == "cast_and_surge":
        # Run k and its move upwind take k + 1 steps, those before it (k - 1) (k + 2) / 2.
        k = jnp.floor((jnp.sqrt(9 + 8 * t) - 1) / 2).astype(jnp.int32)
        within = carry.void - (k - 1) * (k + 2) // 2
        return jnp.where(within == k, up, jnp.where(k % 2 == 1, left, right))
    if recovery == "circling":
        # Run r has r // 2 + 1 moves, those before it floor((r + 1)^2 / 4).
        run = jnp.floor(jnp.sqrt(1 + 4 * t)).astype(jnp.int32) - 1
        side = jnp.where(run % 4 == 1, left, right)
        return jnp.where(run % 2 == 1, side, jnp.where(run % 4 == 0, up, down))
    if recovery == "backtrack":
        last = carry.path[0]
        undone = jnp.where(last == up, down, jnp.where(last == down, up, last))
        undone = jnp.where(last == left, right, jnp.where(last == right, left, undone))
        return jnp.where(last < 0, drawn, undone)
    return drawn


def compass(env: PlumeSearch) -> Compass:
    """The `Compass` of a task on the plane whose wind blows along +x, or whose moves go by the
    wind.

    Raises `ValidationError` for a motion without moves in these four directions.
    """
    motion = env.motion
    flat = isinstance(motion, AxisMoves) and motion.dimensions == 2
    if isinstance(motion, WindRelative) or flat:
        return Compass(0, 1, 2, 3)
    ways = motion.directions if isinstance(motion, Moves) else ()
    needed = ((-1, 0), (1, 0), (0, -1), (0, 1))
    good = set(needed) <= set(ways)
    require(good, "motion", motion, "Moves in four directions, AxisMoves(2) or WindRelative")
    return Compass(*(ways.index(way) for way in needed))


def table(
    env: PlumeSearch,
    params: Any,
    *,
    recovery: Recovery = "learned",
    void_states: int = 1,
    value: float = 0.0,
) -> QTable:
    """The table of an agent that has learned nothing.

    Args:
      env, params: the task, whose observation is one of few states, 0 the void.
      recovery: what acts in the void.
      void_states: K, for how many steps in the void a learned recovery has a row each.
      value: of every action.

    Raises:
      ValidationError: another observation or motion, or an argument that is not allowed.
    """
    space = env.observation_space(params)
    require(isinstance(space, Discrete), "sensor", env.sensor, "one of few states: Discrete")
    require(recovery in get_args(Recovery), "recovery", recovery, str(get_args(Recovery)))
    good = isinstance(void_states, int) and void_states >= 1
    good = good and (recovery == "learned" or void_states == 1)
    require(good, "void_states", void_states, ">= 1, and 1 unless the recovery is learned")
    shape = (space.n + void_states - 1, env.num_actions)
    values = jnp.full(shape, value, jnp.float32)
    return QTable(values, num_states=space.n, recovery=recovery, compass=compass(env))


class Numbers(struct.PyTreeNode):
    """Numbers of the learning.

    Attributes:
      gamma: float32[], the discount a step.
      alpha: float32[], the part of the error that is corrected.
      epsilon: float32[], how often an action is drawn at random in the first episode.
      decay: float32[]; in episode n, counted from 0, that is `epsilon / (1 + decay n)`.
    """

    gamma: Any = np.float32(0.95)
    alpha: Any = np.float32(0.5)
    epsilon: Any = np.float32(0.8)
    decay: Any = np.float32(1e-3)


PUBLISHED = Numbers()
"""Those of Rando et al. 2025."""


class Training(NamedTuple):
    """Where a training stands; leaves but `step` lead with the number of learners.

    Attributes:
      step: int32[], of every learner so far; it numbers the keys.
      state: of the environments.
      policy: the `QTable`s.
      memory: theirs.
      episodes: int32[n], ended so far.
      found: int32[n], of them, that found the source.
      steps: int32[n], of the episodes that ended.
    """

    step: jax.Array
    state: Any
    policy: QTable
    memory: Recall
    episodes: jax.Array
    found: jax.Array
    steps: jax.Array


def begin(batch: Batch, policy: QTable, key: jax.Array, params: Any) -> Training:
    """A training of `batch.num_envs` learners that each start with the table of `policy`."""
    _, state = batch.reset(key, params)
    n = batch.num_envs
    policy = jax.tree.map(lambda x: jnp.repeat(jnp.asarray(x)[None], n, axis=0), policy)
    none = jnp.zeros(n, jnp.int32)
    memory = jax.vmap(type(policy).init, (0, None))(policy, key)
    return Training(jnp.int32(0), state, policy, memory, none, none, none)


def train(
    batch: Batch,
    training: Training,
    key: jax.Array,
    params: Any,
    steps: int,
    numbers: Numbers = PUBLISHED,
) -> Training:
    """The training after `steps` (static) further steps of every learner.

    Where the recovery acts there is nothing to choose: all values of the void's row are then that
    of the recovery, learned as those of actions are. An episode that is cut off at its limit is
    learned on as if it went on.

    With the same key, `steps` steps and then `further` ones are exactly `steps + further` at once.

    Args:
      batch: the lanes, one a learner; it keeps final observations.
      training: from `begin`, or an earlier `train`.
      key: typed key; another than that of `begin`.
      params: of the environment, as `batch.params_axes` says.
      steps: of each learner.
      numbers: of the learning.
    """
    require(batch.final_observation, "final_observation", False, "True: it is learned on")
    return _train(batch, training, key, params, steps, numbers)


@partial(jax.jit, static_argnames=("batch", "steps"))
def _train(
    batch: Batch, training: Training, key: jax.Array, params: Any, steps: int, numbers: Numbers
) -> Training:
    def one(at: Training, _: None) -> tuple[Training, None]:
        return _advance(batch, numbers, key, params, at), None

    return jax.lax.scan(one, training, None, steps)[0]


def _advance(batch: Batch, numbers: Numbers, key: jax.Array, params: Any, at: Training) -> Training:
    """One step of every learner."""
    n, policy = batch.num_envs, at.policy
    act_key, init_key, step_key = jax.random.split(jax.random.fold_in(key, at.step), 3)
    now = at.state.observation
    epsilon = numbers.epsilon / (1 + numbers.decay * at.episodes.astype(jnp.float32))
    keys = jax.random.split(act_key, n)
    action, memory = jax.vmap(_explore)(policy, keys, at.memory, now, epsilon)
    _, state, reward, terminated, truncated, info = batch.step(step_key, at.state, action, params)
    then = info["final_observation"]
    learn = jax.vmap(partial(_learn, numbers))
    values = learn(policy, at.memory, now, action, reward, terminated, memory, then)
    done = terminated | truncated
    blank = jax.vmap(type(policy).init, (0, None))(policy, init_key)
    memory = jax.tree.map(lambda b, m: jnp.where(_like(done, m), b, m), blank, memory)
    ended = done.astype(jnp.int32)
    found = info.get("found", terminated)
    return Training(
        step=at.step + 1,
        state=state,
        policy=policy.replace(values=values),
        memory=memory,
        episodes=at.episodes + ended,
        found=at.found + ended * found.astype(jnp.int32),
        steps=at.steps + ended * info["step_count"],
    )


def _explore(
    policy: QTable, key: jax.Array, carry: Recall, observation: jax.Array, epsilon: jax.Array
) -> tuple[jax.Array, Recall]:
    """`(action, carry)`, the action drawn with probability `epsilon`; the key is consumed."""
    coin_key, action_key, recovery_key = jax.random.split(key, 3)
    values = policy.values[policy.row(carry, observation)]
    drawn = jax.random.randint(action_key, (), 0, values.size, jnp.int32)
    greedy = jnp.argmax(values).astype(jnp.int32)
    explores = jax.random.uniform(coin_key, (), jnp.float32) < epsilon
    action = jnp.where(explores, drawn, greedy)
    return policy.choose(recovery_key, carry, observation, action)


def _learn(
    numbers: Numbers,
    policy: QTable,
    carry: Recall,
    now: jax.Array,
    action: jax.Array,
    reward: jax.Array,
    terminated: jax.Array,
    after: Recall,
    then: jax.Array,
) -> jax.Array:
    """float32[rows, A]: the values after `now`, `action`, `reward`, `then`."""
    row = policy.row(carry, now)
    ahead = jnp.max(policy.values[policy.row(after, then)])
    target = reward + numbers.gamma * jnp.where(terminated, jnp.zeros_like(ahead), ahead)
    old = policy.values[row]
    taken = jnp.arange(old.size, dtype=jnp.int32) == action
    taken |= policy.recovers(now)
    new = jnp.where(taken, old + numbers.alpha * (target - old), old)
    return policy.values.at[row].set(new)


def learned(training: Training, learner: int) -> QTable:
    """The policy of one learner."""
    return jax.tree.map(lambda x: x[learner], training.policy)


def _like(done: jax.Array, x: jax.Array) -> jax.Array:
    return done.reshape(done.shape + (1,) * (x.ndim - 1))
