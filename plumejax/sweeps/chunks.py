"""sweeps/chunks: a sweep in parts, each a pure function of the sweep and of which part it is."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from plumejax.base.errors import PlumeError
from plumejax.evaluation import lanes as side_by_side
from plumejax.evaluation.episodes import Outcomes, in_order
from plumejax.evaluation.statistics import Summary, summarise
from plumejax.evaluation.trials import evaluation_key
from plumejax.sweeps.cells import Cells, Table, differing, tabulated
from plumejax.sweeps.units import unit

LANES = 8192
"""Episodes side by side, at most: what a step costs besides its lanes is shared by as many."""

FEWEST, CACHE = 256, 2**24
"""On a CPU no more than so many if they take more bytes than this: a step reads them all."""

SHARE = 0.5
"""Of the memory that is free, what the lanes of a sweep may take."""

MEASURES = {each.name: unit(each.name) for each in fields(Summary) if each.name != "episodes"}
"""What is kept of each cell, the fields of `evaluation.statistics.Summary`, with their units."""

Told = Callable[[int], None]


class Cell(NamedTuple):
    """One cell: its number, what is played, and its seed if that is swept."""

    number: int
    policy: Any
    params: Any
    seed: int | None


class Chunk(NamedTuple):
    """Cells `first` to `first + cells - 1`, which are of run `block`; the program has room for
    `room` of them."""

    block: int
    first: int
    cells: int
    room: int


def chunks(blocks: tuple[int, ...], most: int) -> Iterator[Chunk]:
    """The chunks of runs of cells, of up to `most` each; those of a run are about equally long."""
    first = 0
    for block, size in enumerate(blocks):
        room = -(-size // -(-size // most))
        for start in range(0, size, room):
            yield Chunk(block, first + start, min(room, size - start), room)
        first += size


def measured(
    env: Any,
    cells: Sequence[Cell],
    seed: int,
    episodes: int,
    which: tuple[int, ...] | None = None,
    told: Told = lambda ended: None,
) -> dict[str, np.ndarray]:
    """`{measure: float64[cells]}` of cells of one program, `episodes` fresh ones each.

    Where the device runs out of memory half as many lanes are tried, down to one.

    Args:
      env: the task.
      cells: what is played; a cell without a seed has `seed`.
      which: of the leaves of their `(policy, params)` those that differ; by default it is seen.
      told: hears how many more episodes have ended.
    """
    numbers = [(cell.policy, cell.params) for cell in cells]
    which = differing(numbers) if which is None else which
    shared, varied = tabulated(numbers, which)
    seeds = np.asarray([seed if cell.seed is None else cell.seed for cell in cells], np.uint32)
    keys = _keys(seeds, np.asarray([cell.number for cell in cells], np.uint32))
    table = Table(shared, varied, keys, np.uint32(episodes))
    game, count = Cells(env, which), len(cells) * episodes
    lanes = fitting(game, table, min(cached(game, table), count))
    while True:
        try:
            parts = side_by_side.stream(game, table, count, lanes=lanes, progress=told)
            return _measures(cells, in_order(parts), episodes)
        except jax.errors.JaxRuntimeError as error:
            if not out_of_memory(error) or lanes == 1:
                raise
            lanes //= 2


def out_of_memory(error: Exception) -> bool:
    """Whether a device had too little memory."""
    return "RESOURCE_EXHAUSTED" in str(error)


@jax.jit
def _keys(seeds: jax.Array, numbers: jax.Array) -> jax.Array:
    """Of the cells, typed keys."""

    def one(seed: jax.Array, number: jax.Array) -> jax.Array:
        return jax.random.fold_in(evaluation_key(seed), number)

    return jax.vmap(one)(seeds, numbers)


def _measures(cells: Sequence[Cell], outcomes: Outcomes, episodes: int) -> dict[str, np.ndarray]:
    by_cell = jax.tree.map(lambda x: x.reshape(len(cells), episodes, *x.shape[1:]), outcomes)
    refused = np.sum(by_cell.steps < 0, axis=1)
    if refused.any():
        cell = int(np.argmax(refused))
        raise PlumeError(
            f"cell {cells[cell].number}: in {refused[cell]} of {episodes} episodes the policy gave"
            " an action that the task refuses"
        )
    radii = [getattr(getattr(cell.params, "ending", None), "radius", 0.0) for cell in cells]
    summary = vars(summarise(by_cell, np.asarray(radii, float)))
    return {name: np.asarray(summary[name], np.float64) for name in MEASURES}


def cached(game: Cells, table: Table) -> int:
    """How many lanes suit the caches of a CPU, a power of 2; elsewhere as many as there may be."""
    if jax.default_backend() != "cpu":
        return LANES
    lane = jax.eval_shape(game.begin, table, jnp.uint32(0))
    size = sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(lane))
    lanes = LANES
    while lanes > FEWEST and lanes * size > CACHE:
        lanes //= 2
    return lanes


def fitting(game: Cells, table: Table, lanes: int) -> int:
    """How many lanes, at most `lanes`, fit `SHARE` of the memory that is free: the compiled program
    says what it needs."""
    free = free_bytes()
    while lanes > 1 and needed_bytes(game, table, lanes) > SHARE * free:
        lanes //= 2
    return lanes


def needed_bytes(game: Cells, table: Table, lanes: int) -> int:
    """What a step of so many lanes takes, arguments aside that are there already."""
    leaves, structure = jax.tree.flatten(table)
    forms = tuple((np.shape(leaf), jax.dtypes.result_type(leaf)) for leaf in leaves)
    return _needed_bytes(game, lanes, structure, forms)


@lru_cache
def _needed_bytes(game: Cells, lanes: int, structure: Any, forms: Any) -> int:
    table = jax.tree.unflatten(structure, [jax.ShapeDtypeStruct(*form) for form in forms])

    def start(table: Table) -> Any:
        return side_by_side.begin(game, table, jnp.zeros(lanes, jnp.uint32))

    begun = jax.eval_shape(start, table)
    step = jax.jit(lambda table, begun: side_by_side.step(game, table, begun))
    analysis = step.lower(table, begun).compile().memory_analysis()
    if analysis is None:
        return 0
    return int(analysis.temp_size_in_bytes + 2 * analysis.output_size_in_bytes)


def free_bytes() -> float:
    """Of the first device, or of the machine where that keeps no count."""
    stats = jax.local_devices()[0].memory_stats()
    if stats and "bytes_limit" in stats:
        return stats["bytes_limit"] - stats["bytes_in_use"]
    return float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
