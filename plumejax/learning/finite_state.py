"""learning/finite_state: searchers of few memory states: exact value, exact gradient, training.

A finite-state controller has M memory states and draws an action and its next memory state from
`pi(action, next | memory, hit)`, the softmax of a table of logits, float[M, 2, A, M] (Verano,
Panizon, Celani 2023, PNAS 120: e2304230120). Each step costs `1 - gamma` and time is discounted by
`gamma`, so what a search costs is `1 - E[gamma^T]`, T the steps until it finds. It begins in memory
state 0 with the hit of the cell where it starts.

On a map of hit probabilities the cost to come, by cell s and memory m, solves a linear system,

    V(s, m) = 1 - gamma + gamma sum_{hit} p(hit|s) sum_{a, n} pi(a, n|m, hit) V(s after a, n),

with V = 0 where the source is found; its transpose gives the discounted visits. One sparse
factorisation serves both, and from both comes the gradient. All of it is exact, float64 on the
host, plain arrays in and out; only the policy `FiniteStateController` is for `jit`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
import scipy.sparse.linalg
from flax import struct

from plumejax.base.errors import require
from plumejax.search.endings import GoalDisc
from plumejax.search.environment import PlumeSearch
from plumejax.search.finite_memory_tasks import GAMMA, hit_map, start_map
from plumejax.search.motion import AxisMoves, Moves
from plumejax.search.state import Agent, Params

MOST = 30.0
"""How far below its row's largest a logit may fall in training: what is 1e13 times less likely
never happens, but its logit could not come back from afar."""


PAIRS = 10
"""How many steps a training remembers to tell the curvature from."""


class FiniteStateController(struct.PyTreeNode):
    """A policy with a memory of M states, for observations float32[1], 1 for a hit and 0 for none.

    Attributes:
      logits: float32[M, 2, A, M], of (action, next memory) by memory and hit.
    """

    logits: jax.Array

    def init(self, key: jax.Array) -> jax.Array:
        """int32[]: memory state 0; nothing is drawn."""
        return jnp.zeros((), jnp.int32)

    def act(
        self, key: jax.Array, carry: jax.Array, observation: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """`(action, next memory)`, int32[] each, by inversion of one uniform number."""
        logits = jnp.asarray(self.logits)
        memories = logits.shape[0]
        row = 2 * carry + (observation[0] > 0.5).astype(jnp.int32)
        below = jnp.cumsum(jax.nn.softmax(logits.reshape(2 * memories, -1)), axis=-1)
        # Sums of comparisons: a table is looked up one lane at a time.
        mine = jnp.arange(2 * memories, dtype=jnp.int32) == row
        below = jnp.sum(jnp.where(mine[:, None], below, 0.0), axis=0)
        uniform = jax.random.uniform(key, (), below.dtype)
        chosen = jnp.sum(uniform >= below[:-1], dtype=jnp.int32)
        return chosen // memories, chosen % memories


class Problem(NamedTuple):
    """A search by hits alone on a grid of h x w cells, indexed [y, x]; of float64 and int64.

    Attributes:
      hit: float[h, w], the probability of a hit in each cell.
      start: float[h, w], that of a start; sums to 1, 0 where found.
      found: bool[h, w], where a search ends.
      after: int[A, h, w], the cell that each of A actions leads to, `y w + x`.
      gamma: the discount a step, below 1.
    """

    hit: np.ndarray
    start: np.ndarray
    found: np.ndarray
    after: np.ndarray
    gamma: float


def problem(env: PlumeSearch, params: Params, *, gamma: float = GAMMA) -> Problem:
    """What is to be solved of a task `FiniteMemory-*`, or of another by hits on a grid that starts
    in a `HitRow`.

    Raises:
      ValidationError: moves or ending are not those of a grid, or gamma is not in (0, 1).
    """
    require(0 < gamma < 1, "gamma", gamma, "in (0, 1)")
    require(isinstance(env.motion, AxisMoves | Moves), "motion", env.motion, "AxisMoves or Moves")
    require(isinstance(env.ending, GoalDisc), "ending", env.ending, "a GoalDisc")
    hit = np.asarray(hit_map(env, params), np.float64)
    start = np.asarray(start_map(env, params), np.float64)
    height, width = hit.shape
    y, x = np.divmod(np.arange(hit.size), width)
    cells = np.stack([x, y], axis=-1).astype(np.float32)
    source = np.asarray(params.plume.source, np.float64)
    radius = float(params.ending.radius)
    found = np.linalg.norm(cells - source, axis=-1) <= radius

    def moved(action: jax.Array, cell: jax.Array) -> jax.Array:
        agent = Agent(cell, jnp.zeros((), jnp.float32))
        return env.motion.move(jax.random.key(0), agent, action, None, env.arena, params).position

    each = jax.vmap(jax.vmap(moved, (None, 0)), (0, None))
    actions = jnp.arange(env.num_actions, dtype=jnp.int32)
    x, y = np.moveaxis(np.asarray(each(actions, jnp.asarray(cells))), -1, 0)
    after = (np.rint(y) * width + np.rint(x)).astype(np.int64)
    return Problem(
        hit=hit,
        start=start / start.sum(),
        found=found.reshape(hit.shape),
        after=after.reshape(-1, height, width),
        gamma=gamma,
    )


def halved(problem: Problem) -> Problem:
    """Nearly the same search in a quarter of its size: cells twice as wide, steps twice as long.

    A controller that is good there is a good start here, and is found for a tenth of the work.
    A wider cell is found if a cell of it is; its hits are those of the one with even indices.
    """
    height, width = ((n + 1) // 2 for n in problem.hit.shape)
    odd = [(0, n % 2) for n in problem.hit.shape]

    def wider(x: np.ndarray) -> np.ndarray:
        return np.pad(x, odd).reshape(height, 2, width, 2)

    found = np.any(wider(problem.found), axis=(1, 3))
    start = np.where(found, 0.0, wider(problem.start).sum(axis=(1, 3)))
    flat = problem.after.reshape(len(problem.after), -1)
    twice = np.take_along_axis(flat, flat, axis=1).reshape(problem.after.shape)
    y, x = np.divmod(twice[:, ::2, ::2], problem.hit.shape[1])
    return Problem(
        hit=problem.hit[::2, ::2],
        start=start / start.sum(),
        found=found,
        after=y // 2 * width + x // 2,
        gamma=problem.gamma**2,
    )


class Solution(NamedTuple):
    """What a controller costs and why, exactly.

    Attributes:
      value: float, `1 - E[gamma^T]`, in [0, 1]; less is better.
      gradient: float[M, 2, A, M], of the value by the logits.
      natural: float[M, 2, A, M], the natural gradient (`solve`).
      uses: float[M, 2], the expected discounted number of uses of each row, (memory, hit).
      cost: float[M, h, w], V, the cost to come by memory and cell.
      visits: float[M, h, w], the expected discounted number of steps begun there.
    """

    value: float
    gradient: np.ndarray
    natural: np.ndarray
    uses: np.ndarray
    cost: np.ndarray
    visits: np.ndarray


def solve(problem: Problem, logits: np.ndarray) -> Solution:
    """The `Solution` of the controller with `logits`, float[M, 2, A, M].

    The natural gradient is by the metric of Kakade 2001: the Fisher information of each row (memory
    and hit) of the softmax table, weighed by the discounted number of times it is used. For such
    tables its inverse has a closed form, by which the natural gradient is what a choice costs more
    than the mean choice of its row, averaged over the visits to the row; 0 in rows never used.
    """
    memories, _, actions, _ = logits.shape
    policy = softmax(logits)
    free = ~problem.found.ravel()
    hits = np.stack([1 - problem.hit.ravel(), problem.hit.ravel()])
    factors = _factorised(problem, policy)

    cost = np.zeros((memories, free.size))
    unit = np.full(free.sum() * memories, 1 - problem.gamma)
    cost[:, free] = factors.solve(unit).reshape(-1, memories).T
    starts = np.zeros((free.sum(), memories))
    starts[:, 0] = problem.start.ravel()[free]
    visits = np.zeros_like(cost)
    visits[:, free] = factors.solve(starts.ravel(), "T").reshape(-1, memories).T

    # used[m, y, s]: the visits with hit y; then[n, a, s]: the cost to come after a and n.
    used = visits[:, None] * hits
    then = cost[:, problem.after.reshape(actions, -1)]
    choices = problem.gamma * np.einsum("mys,nas->myan", used, then, optimize=True)
    uses = np.sum(used, axis=-1)
    gradient = policy * (choices - np.sum(policy * choices, axis=(2, 3), keepdims=True))
    shape = (memories, *problem.hit.shape)
    return Solution(
        value=float(problem.start.ravel() @ cost[0]),
        gradient=gradient,
        natural=_by_fisher(policy, uses, gradient),
        uses=uses,
        cost=cost.reshape(shape),
        visits=visits.reshape(shape),
    )


def softmax(logits: np.ndarray) -> np.ndarray:
    """float[M, 2, A, M]: the probabilities pi of (action, next memory), each row summing to 1."""
    weights = np.exp(logits - logits.max(axis=(2, 3), keepdims=True))
    return weights / weights.sum(axis=(2, 3), keepdims=True)


def _factorised(problem: Problem, policy: np.ndarray) -> Any:
    """The factors of `1 - gamma P` over cells that are free, in order, the memory running fastest.

    P is substochastic, so the matrix is diagonally dominant by rows and needs no pivots; cells are
    ordered by minimum degree, which keeps the factors as sparse as those of a plane grid can be.
    """
    memories, _, actions, _ = policy.shape
    free = ~problem.found.ravel()
    number = np.cumsum(free) - 1
    cells = np.flatnonzero(free)
    memory = np.arange(memories)
    hit = problem.hit.ravel()
    entries: list[tuple[np.ndarray, ...]] = []
    for action, after in enumerate(problem.after.reshape(actions, -1)):
        here = cells[free[after[cells]]]
        there = number[after[here]]
        # [cells, memory, next memory]
        weight = np.einsum("ys,myn->smn", np.stack([1 - hit, hit])[:, here], policy[:, :, action])
        row = (number[here, None] * memories + memory)[:, :, None]
        column = (there[:, None] * memories + memory)[:, None, :]
        entries.append(tuple(x.ravel() for x in np.broadcast_arrays(row, column, weight)))
    size = cells.size * memories
    rows, columns, weights = map(np.concatenate, zip(*entries, strict=True))
    moves = scipy.sparse.csc_array((weights, (rows, columns)), shape=(size, size))
    system = scipy.sparse.eye_array(size, format="csc") - problem.gamma * moves
    return scipy.sparse.linalg.splu(
        system,
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )


class Training(NamedTuple):
    """Where a training stands: plain arrays, to go on from.

    Attributes:
      logits: float64[M, 2, A, M].
      value: float64[], there.
      gradient: float64[M, 2, A, M], there.
      uses: float64[M, 2], there.
      moves, bends: float64[k, M, 2, A, M], k <= `PAIRS`: the last steps, and what each changed in
        the gradient of the logarithm of the value, the newest last.
      reach: float64[], how far a step may go: by how much the logit changes that changes most.
      iterations: int64[], factorisations so far.
    """

    logits: np.ndarray
    value: Any
    gradient: np.ndarray
    uses: np.ndarray
    moves: np.ndarray
    bends: np.ndarray
    reach: Any
    iterations: Any


def begin(problem: Problem, logits: np.ndarray) -> Training:
    """A training that starts from `logits`, float[M, 2, A, M]."""
    logits = np.asarray(logits, np.float64)
    at = solve(problem, logits)
    none = np.zeros((0, *logits.shape))
    return Training(logits, at.value, at.gradient, at.uses, none, none, 1.0, 1)


def train(
    problem: Problem,
    training: Training,
    iterations: int,
    *,
    tolerance: float = 1e-6,
    progress: Callable[[Training], None] | None = None,
) -> Training:
    """The training after at most so many further iterations.

    It goes down the natural gradient of the logarithm of the value, bent by what the last steps
    told of its curvature (L-BFGS, Nocedal 1980, from the inverse of the Fisher metric instead of a
    multiple of the identity). A step that lowers the value is taken; one that does not is tried
    again a fourth as long. It draws nothing, so it is a function of its arguments, and two calls
    are the same as one of both together.

    Args:
      problem: the search.
      training: from `begin`, or an earlier `train`.
      iterations: factorisations.
      tolerance: it stops where steps of the plain natural gradient have to be shorter than this.
      progress: called after each iteration.
    """
    for _ in range(iterations):
        if training.reach < tolerance:
            break
        training = _iterate(problem, training, tolerance)
        if progress is not None:
            progress(training)
    return training


def _iterate(problem: Problem, training: Training, tolerance: float) -> Training:
    downhill = _direction(training)
    longest = np.max(np.abs(downhill)) or 1.0
    # Where nothing is known of the curvature, the step is as long as it may be.
    scale = min(training.reach / longest, 1.0 if len(training.moves) else np.inf)
    logits = training.logits + scale * downhill
    logits = np.maximum(logits, logits.max(axis=(2, 3), keepdims=True) - MOST)
    at = solve(problem, logits)
    count = training.iterations + 1
    if at.value < training.value:
        reach = min(max(training.reach, 2 * scale * longest), MOST)
        move = logits - training.logits
        bend = at.gradient / at.value - training.gradient / training.value
        moves, bends = training.moves, training.bends
        if np.sum(move * bend) > 1e-6 * np.linalg.norm(move) * np.linalg.norm(bend):
            moves = np.concatenate([moves, move[None]])[-PAIRS:]
            bends = np.concatenate([bends, bend[None]])[-PAIRS:]
        new = (logits, at.value, at.gradient, at.uses, moves, bends, reach, count)
        return Training(*new)
    reach = scale * longest / 4
    if reach < tolerance and len(training.moves):
        # What is remembered of the curvature misleads.
        return training._replace(
            moves=training.moves[:0], bends=training.bends[:0], reach=0.1, iterations=count
        )
    return training._replace(reach=reach, iterations=count)


def _direction(training: Training) -> np.ndarray:
    """float64[M, 2, A, M]: where to go from here; downhill."""
    gradient = training.gradient / training.value
    policy = softmax(training.logits)
    pairs = [(m, b, np.sum(m * b)) for m, b in zip(training.moves, training.bends, strict=True)]
    uphill, parts = gradient, []
    for move, bend, product in reversed(pairs):
        parts.append(np.sum(move * uphill) / product)
        uphill = uphill - parts[-1] * bend
    uphill = _by_fisher(policy, training.uses, uphill)
    if pairs:
        _, bend, product = pairs[-1]
        uphill = uphill * product / np.sum(bend * _by_fisher(policy, training.uses, bend))
    for (move, bend, product), part in zip(pairs, reversed(parts), strict=True):
        uphill = uphill + move * (part - np.sum(bend * uphill) / product)
    if pairs and not np.sum(uphill * gradient) > 0:
        uphill = _by_fisher(policy, training.uses, gradient)
    return -uphill


def _by_fisher(policy: np.ndarray, uses: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """float64[M, 2, A, M]: the inverse of the Fisher metric on a gradient; 0 in unused rows."""
    information = policy * uses[:, :, None, None]
    natural = np.divide(gradient, information, out=np.zeros_like(gradient), where=information > 0)
    return natural - np.sum(policy * natural, axis=(2, 3), keepdims=True)


def random_logits(key: jax.Array, memories: int, actions: int = 4, spread: float = 1.0) -> Any:
    """float64[M, 2, A, M], normal of standard deviation `spread`; the key is consumed."""
    drawn = jax.random.normal(key, (memories, 2, actions, memories), jnp.float32)
    return spread * np.asarray(drawn, np.float64)


def split(logits: np.ndarray, memory: int) -> np.ndarray:
    """float[M + 1, 2, A, M + 1]: one state more, a twin of `memory`; the value stays.

    The twin chooses as `memory` does, and half of what led there leads to the twin.
    """
    log_half = np.log(0.5)
    grown = np.concatenate([logits, logits[memory : memory + 1]], axis=0)
    grown = np.concatenate([grown, grown[..., memory : memory + 1]], axis=-1)
    grown[..., [memory, -1]] += log_half
    return grown


def disturbed(key: jax.Array, logits: np.ndarray, part: float = 0.1) -> np.ndarray:
    """float[M, 2, A, M]: the logits of a mixture of the policy, and `part` of a random one.

    It tells twins apart, also where the policy has become certain; the key is consumed.
    """
    memories, _, actions, _ = logits.shape
    other = softmax(random_logits(key, memories, actions, 2.0))
    return np.log((1 - part) * softmax(logits) + part * other)
