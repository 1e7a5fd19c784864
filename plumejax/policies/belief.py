"""policies/belief: what an agent knows of a search by hits, and where it believes the source is.

The belief is over the cells of the grid. All that Bayes' rule and a decision ask for is a function
of the displacement from the agent to the source, so it is read from one table over displacements:
of a likelihood the window that is the grid as the agent sees it; of expectations after each move
one matrix product, `Model.expected`, with the belief laid into a window that has the agent in its
middle. The tables are computed in float64, and kept in the dtype of the policy.
"""

from functools import reduce
from operator import add
from typing import Any

import jax
import jax.experimental
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.base.errors import require
from plumejax.plumes.encounters import EncounterPlume, displacement_likelihoods, spans
from plumejax.search.arena import OpenGrid
from plumejax.search.beliefs import Hits
from plumejax.search.composed import Stack
from plumejax.search.endings import goal_radius
from plumejax.search.environment import PlumeSearch
from plumejax.search.motion import AxisMoves
from plumejax.search.sensors import Position
from plumejax.search.state import Params

# Before JAX 0.8 it is `jax.experimental.enable_x64`.
_x64: Any = getattr(jax if hasattr(jax, "enable_x64") else jax.experimental, "enable_x64")  # noqa: B009


class Model(struct.PyTreeNode):
    """What the agent takes the world to be: a grid, moves along its axes, and the law of hits.

    A cell is int32[d]. Of 2d moves, number a goes along axis a//2, backwards if a is even, and one
    off the grid leaves the agent where it is.

    Attributes:
      grid_size: cells along each coordinate, static.
      likelihood: float[H, *spans], of each count by the source's cell minus the agent's, plus
        grid_size - 1; spans are 2 grid_size - 1. 0 in the agent's own cell.
    """

    grid_size: tuple[int, ...] = struct.field(pytree_node=False)
    likelihood: Any

    @property
    def categories(self) -> int:
        """H: counts are 0..H-1, of which the last means "or more"."""
        return self.likelihood.shape[0]

    @property
    def spans(self) -> tuple[int, ...]:
        return spans(self.grid_size)

    def uniform(self) -> jax.Array:
        """float[*grid]: the belief of who knows nothing."""
        return jnp.full(self.grid_size, 1.0 / np.prod(self.grid_size), self.likelihood.dtype)

    def joint(self, belief: jax.Array, position: jax.Array) -> jax.Array:
        """float[H, *grid]: how probable each count at `position` is together with each cell."""
        first = self._corner(position)
        sizes = (self.categories, *self.grid_size)
        first = (jnp.zeros_like(first[0]), *first)
        return belief[None] * jax.lax.dynamic_slice(self.likelihood, first, sizes)

    def updated(self, belief: jax.Array, position: jax.Array, hits: jax.Array) -> jax.Array:
        """float[*grid]: the belief after the source was not at `position`, but `hits`, int32[].

        A count that is impossible by all that is believed changes nothing.
        """
        first = (hits, *self._corner(position))
        likelihood = jax.lax.dynamic_slice(self.likelihood, first, (1, *self.grid_size))[0]
        joint = belief * likelihood
        total = jnp.sum(joint)
        return jnp.where(total > 0, joint / jnp.where(total > 0, total, 1.0), belief)

    def moved(self, position: jax.Array, action: jax.Array) -> jax.Array:
        """int32[d]: the cell that `action` leads to."""
        along = jnp.arange(len(self.grid_size), dtype=jnp.int32) == action // 2
        step = jnp.where(along, 2 * (action % 2) - 1, 0).astype(jnp.int32)
        return jnp.clip(position + step, 0, self._last())

    def neighbours(self, position: jax.Array) -> jax.Array:
        """int32[2d, d]: the cell that each move leads to."""
        actions = jnp.arange(2 * len(self.grid_size), dtype=jnp.int32)
        return jax.vmap(self.moved, (None, 0))(position, actions)

    def possible(self, position: jax.Array) -> jax.Array:
        """bool[2d]: which moves do not lead off the grid."""
        at_end = jnp.stack([position > 0, position < self._last()], axis=-1)
        return at_end.reshape(-1)

    def predict(
        self, belief: jax.Array, position: jax.Array, action: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """`(p_end, q)`: float[], that the source is where `action` leads; and float[H], how
        probable each count is there if it is not."""
        there = self.moved(position, action)
        each = self.joint(belief, there)
        joint = jnp.sum(each, axis=tuple(range(1, each.ndim)))
        total = jnp.sum(joint)
        # Where the source is for sure no count is to be expected: any law does.
        none = (jnp.arange(self.categories) == 0).astype(joint.dtype)
        q = jnp.where(total > 0, joint / jnp.where(total > 0, total, 1.0), none)
        p_end = belief[tuple(there)]
        return jnp.where(jnp.all(there == position), jnp.zeros_like(p_end), p_end), q

    def centred(self, belief: jax.Array, position: jax.Array) -> jax.Array:
        """float[*spans]: `belief` by displacement, `position` in the middle."""
        empty = jnp.zeros(self.spans, belief.dtype)
        return jax.lax.dynamic_update_slice(empty, belief, self._corner(position))

    def expected(self, belief: jax.Array, position: jax.Array, kernel: jax.Array) -> jax.Array:
        """float[M, C]: the sums over cells of `belief` times each column of `kernel`
        float[cells, M, C], which is by displacement (`after_moves`, `by_moves`)."""
        flat = self.centred(belief, position).reshape(-1)
        columns = kernel.reshape(len(flat), -1)
        sums = jnp.matmul(flat, columns, precision=jax.lax.Precision.HIGHEST)
        return sums.reshape(kernel.shape[1:])

    def beside(self, belief: jax.Array, position: jax.Array) -> jax.Array:
        """float[2d]: the belief where each move leads; 0 for one off the grid."""
        held = belief[tuple(self.neighbours(position).T)]
        return jnp.where(self.possible(position), held, 0.0)

    def distances(self, position: jax.Array) -> jax.Array:
        """int32[*grid]: moves from `position` to each cell."""
        cells = np.indices(self.grid_size, np.int32)
        return reduce(add, (jnp.abs(x - here) for x, here in zip(cells, position, strict=True)))

    def _corner(self, position: jax.Array) -> tuple[jax.Array, ...]:
        return tuple(self._last() - position)

    def _last(self) -> np.ndarray:
        return np.asarray(self.grid_size, np.int32) - np.int32(1)


def moves(dimensions: int) -> np.ndarray:
    """int32[2d, d]: each move, in the order of `AxisMoves`."""
    return np.stack([s * np.eye(dimensions, dtype=np.int32) for s in (-1, 1)], axis=1).reshape(
        -1, dimensions
    )


def moves_away(grid_size: tuple[int, ...]) -> np.ndarray:
    """float64[*spans]: how many moves it takes to go by each displacement."""
    middle = np.reshape(grid_size, (-1, *(1,) * len(grid_size))) - 1
    return np.abs(np.indices(spans(grid_size)) - middle).sum(axis=0).astype(np.float64)


def hit_table(plume: EncounterPlume, numbers: Any, categories: int) -> np.ndarray:
    """float64[H, *spans]: `Model.likelihood` of a plume with `numbers`."""
    with _x64(True):
        law = jax.tree.map(np.float64, numbers.law)
        return np.asarray(displacement_likelihoods(plume, numbers.replace(law=law), categories))


def after_moves(table: np.ndarray) -> np.ndarray:
    """float64[cells, 1 + 2d, C]: `table` float64[C, *spans] by the displacement before a move.

    First as it is, for a move that was barred, then for each move. Beyond its edges, where only a
    barred one leads, it goes on as at its edges.
    """
    dimensions = table.ndim - 1
    padded = np.pad(table, [(0, 0)] + [(1, 1)] * dimensions, mode="edge")
    stay = np.zeros((1, dimensions), np.int32)
    shifted = [
        padded[:, *(slice(1 - s, 1 - s + n) for s, n in zip(move, table.shape[1:], strict=True))]
        for move in np.concatenate([stay, moves(dimensions)])
    ]
    return np.stack(shifted).reshape(len(shifted), len(table), -1).transpose(2, 0, 1)


def by_moves(value: np.ndarray) -> np.ndarray:
    """float64[cells, 2d]: by how much each move changes `value` float64[*spans]."""
    after = after_moves(value[None])[..., 0]
    return after[:, 1:] - after[:, :1]


def believed_model(
    env: PlumeSearch,
    params: Params,
    *,
    wavelength: float | None = None,
    rate: float | None = None,
    speed: float | None = None,
    lifetime: float | None = None,
    width: float | None = None,
) -> Model:
    """The model of who is told the task, its table in float64, of NumPy.

    The numbers of the law are the world's unless others are given, and then the agent is wrong.

    Args:
      env, params: the task: hits and the position observed, `AxisMoves` on an `OpenGrid`.
      wavelength, rate: of an `Isotropic` law.
      rate, speed, lifetime: of a `Windy` one.
      width: of a `Cosh` one.

    Raises:
      ValidationError: a task of another kind; a number that the law does not have or allow.
    """
    hits = _require_search(env, params)
    given = {
        "wavelength": wavelength,
        "rate": rate,
        "speed": speed,
        "lifetime": lifetime,
        "width": width,
    }
    given = {name: np.float64(value) for name, value in given.items() if value is not None}
    law = params.plume.law
    for name, value in given.items():
        has = ", ".join(vars(law))
        require(hasattr(law, name), name, value, f"left out: the law has {has}")
    law = law.replace(**given)
    plume = EncounterPlume(hits.plume.law, hits.grid_size)
    plume.law.validate(law, len(hits.grid_size))
    table = hit_table(plume, params.plume.replace(law=law), hits.categories)
    return Model(hits.grid_size, table)


def _require_search(env: PlumeSearch, params: Params) -> Hits:
    """The task's sensor of hits; raises unless the task is one that a `Model` describes."""
    kinds = [type(part) for _, part in env.sensor.parts] if type(env.sensor) is Stack else []
    good = kinds == [Hits, Position]
    require(good, "env.sensor", env.sensor, "a Stack of Hits and Position, in that order")
    hits, place = (part for _, part in env.sensor.parts)
    size = hits.grid_size
    require(place.dimensions == len(size), "env.sensor", env.sensor, "of the whole position")
    arena = type(env.arena) is OpenGrid and env.arena.grid_size == size
    require(arena, "env.arena", env.arena, f"an OpenGrid of {size}")
    motion = type(env.motion) is AxisMoves and env.motion.dimensions == len(size)
    require(motion, "env.motion", env.motion, f"AxisMoves({len(size)})")
    step = params.motion.step
    require(np.all(np.asarray(step) == 1), "motion.step", step, "1 cell")
    radius = goal_radius(params.ending)
    found = radius is not None and np.all(np.asarray(radius) < 1)
    require(found, "ending.radius", radius, "< 1: the source's own cell")
    return hits
