"""benchmarks/bare: the arithmetic of PlumeSearchLocal-v0's step by hand, as a roofline.

Only what the task's numbers need: a move on the grid, the Gaussian, the goal disc, the counts, and
a lane that ended put back to a start. No lifecycle, no components, no check of actions, no state
that a user could read. It draws as many random bits as `Batch` does: a chunk of starts a step, four
candidates and a spare word each. Ended lanes share those starts, which `Batch` never lets them do.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

STARTS = 64
"""As many as `Batch` resets at a time with 4096 lanes."""

SIZE, SOURCE, SIGMA, RADIUS, LIMIT = 128, 64.0, 12.0, 5.0, 1000


class Lanes(NamedTuple):
    """Every leaf leads with the lanes."""

    x: Any
    y: Any
    steps: Any
    total: Any
    concentration: Any


def start(lanes: int, key: jax.Array) -> Lanes:
    """Lanes at random cells."""
    x, y = _cells(jax.random.bits(key, (lanes,), jnp.uint32))
    steps, total, concentration = (jnp.zeros(lanes, d) for d in (jnp.int32, *[jnp.float32] * 2))
    return Lanes(x, y, steps, total, concentration)


def step(state: Lanes, key: jax.Array, action: jax.Array) -> tuple[Lanes, jax.Array, jax.Array]:
    """`(state, reward, done)` one step on; `action` int32[lanes] in 0..3."""
    east, north = _sign(action, 1, 3), _sign(action, 0, 2)
    x = jnp.clip(state.x + east, 0.0, SIZE - 1.0)
    y = jnp.clip(state.y + north, 0.0, SIZE - 1.0)
    squared = jnp.square(x - SOURCE) + jnp.square(y - SOURCE)
    concentration = jnp.exp(squared * (-0.5 / SIGMA**2))
    found = jnp.sqrt(squared) <= RADIUS
    steps = state.steps + 1
    done = found | (steps >= LIMIT)
    reward = found.astype(jnp.float32)
    total = state.total + reward
    fresh_x, fresh_y = _starts(key)
    # Concatenated, not tiled: XLA makes vector instructions of it.
    copies = -(-len(x) // STARTS)
    fresh_x, fresh_y = (jnp.concatenate([a] * copies)[: len(x)] for a in (fresh_x, fresh_y))
    again = Lanes(fresh_x, fresh_y, jnp.int32(0), jnp.float32(0.0), jnp.float32(0.0))
    state = Lanes(x, y, steps, total, concentration)
    return jax.tree.map(lambda a, b: jnp.where(done, a, b), again, state), reward, done


def _starts(key: jax.Array) -> tuple[jax.Array, jax.Array]:
    *words, _ = jax.random.bits(key, (5, STARTS), jnp.uint32)
    cells = [_cells(word) for word in words]
    far = [jnp.square(x - SOURCE) + jnp.square(y - SOURCE) > RADIUS**2 for x, y in cells]
    x, y = cells[-1]
    for (cell_x, cell_y), good in zip(cells[:-1], far[:-1], strict=True):
        x, y = jnp.where(good, cell_x, x), jnp.where(good, cell_y, y)
    return x, y


def _cells(word: jax.Array) -> tuple[jax.Array, jax.Array]:
    cell = (word % jnp.uint32(SIZE * SIZE)).astype(jnp.int32)
    return (cell % SIZE).astype(jnp.float32), (cell // SIZE).astype(jnp.float32)


def _sign(action: jax.Array, plus: int, minus: int) -> jax.Array:
    return (action == plus).astype(jnp.float32) - (action == minus).astype(jnp.float32)
