"""sweeps/chunks: a sweep in parts, each a pure function of the sweep and of which part it is."""

import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, fields
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
from plumejax.sweeps.cells import Cells, Table, tabulated

EPISODES = 2**15
"""Of a chunk, about: what is lost of a sweep that is stopped."""

LANES = 2048
"""Episodes side by side, at most."""

SHARE = 0.5
"""Of the memory that is free, what the lanes of a sweep may take."""

MEASURES = tuple(field.name for field in fields(Summary) if field.name != "episodes")
"""What is kept of each cell: the fields of `evaluation.statistics.Summary`."""

Told = Callable[[int], None]


class Chunk(NamedTuple):
    """Cells `first` to `first + cells - 1`, which are of run `block`; the program has room for
    `room` of them."""

    block: int
    first: int
    cells: int
    room: int


def chunks(blocks: tuple[int, ...], episodes: int) -> Iterator[Chunk]:
    """The chunks of runs of cells, each of one policy; those of a run are about equally long."""
    most, first = max(1, EPISODES // episodes), 0
    for block, size in enumerate(blocks):
        room = -(-size // -(-size // most))
        for start in range(0, size, room):
            yield Chunk(block, first + start, min(room, size - start), room)
        first += size


def play_chunk(sweep: Any, chunk: Chunk, told: Told = lambda ended: None) -> dict[str, np.ndarray]:
    """`{measure: float64[cells]}` of a chunk's cells.

    Where the device runs out of memory half as many lanes are tried, down to one.
    """
    env, cells = sweep.cells(range(chunk.first, chunk.first + chunk.cells))
    numbers = [(cell.policy, cell.params) for cell in cells]
    # Room that is left over plays the last cell again, so that one program serves all chunks.
    spare = chunk.room - chunk.cells
    which = sweep.differing[chunk.block]
    shared, varied = tabulated([*numbers, *numbers[-1:] * spare], which)
    every = [*cells, *cells[-1:] * spare]
    seeds = np.asarray(
        [sweep.seed if cell.seed is None else cell.seed for cell in every], np.uint32
    )
    keys = _keys(seeds, np.asarray([cell.number for cell in every], np.uint32))
    table = Table(shared, varied, keys, np.uint32(sweep.episodes))
    game, count = Cells(env, which), chunk.room * sweep.episodes
    lanes = fitting(game, table, min(LANES, count))
    while True:
        try:
            parts = side_by_side.stream(game, table, count, lanes=lanes, progress=told)
            outcomes = in_order(parts)
            break
        except jax.errors.JaxRuntimeError as error:
            if "RESOURCE_EXHAUSTED" not in str(error) or lanes == 1:
                raise
            lanes //= 2
    return _measures(sweep, cells, outcomes)


@jax.jit
def _keys(seeds: jax.Array, numbers: jax.Array) -> jax.Array:
    """Of the cells, typed keys."""

    def one(seed: jax.Array, number: jax.Array) -> jax.Array:
        return jax.random.fold_in(evaluation_key(seed), number)

    return jax.vmap(one)(seeds, numbers)


def _measures(sweep: Any, cells: list[Any], outcomes: Outcomes) -> dict[str, np.ndarray]:
    rows = []
    for i, cell in enumerate(cells):
        part = slice(i * sweep.episodes, (i + 1) * sweep.episodes)
        own = jax.tree.map(lambda x, part=part: x[part], outcomes)
        refused = int(np.sum(own.steps < 0))
        if refused:
            raise PlumeError(
                f"cell {cell.number}: in {refused} of {sweep.episodes} episodes the policy gave an"
                " action that the task refuses"
            )
        radius = getattr(getattr(cell.params, "ending", None), "radius", 0.0)
        rows.append(asdict(summarise(own, float(radius))))
    return {name: np.asarray([row[name] for row in rows], np.float64) for name in MEASURES}


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
