"""sweeps/processes: one program of several processes (`jax.distributed`) that share out a sweep."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np

from plumejax.sweeps.chunks import Chunk

Played = Iterator[tuple[Chunk, dict[str, np.ndarray]]]


def shared_out(
    pending: list[Chunk], names: Sequence[str], play: Callable[[list[Chunk]], Played]
) -> Played:
    """Every chunk and what was measured of it, the same in every process.

    In each round a process plays as many chunks as it has devices, and all tell each other.

    Args:
      pending: the chunks, the same in every process.
      names: of the measures.
      play: plays chunks in this process.
    """
    processes, own = jax.process_count(), jax.local_device_count()
    for start in range(0, len(pending), processes * own):
        group = pending[start : start + processes * own]
        mine = group[jax.process_index() :: processes]
        told = np.full((own, len(names), max(chunk.room for chunk in group)), np.nan)
        for chunk, measures in play(mine):
            place = mine.index(chunk)
            for i, name in enumerate(names):
                told[place, i, : chunk.cells] = measures[name]
        everyones = _gathered(told)
        for i, chunk in enumerate(group):
            values = everyones[i % processes, i // processes, :, : chunk.cells]
            yield chunk, dict(zip(names, values, strict=True))


def first_ones(values: np.ndarray) -> np.ndarray:
    """An array as process 0 has it, in every process."""
    from jax.experimental.multihost_utils import broadcast_one_to_all

    # As bytes: JAX would make floats of 64 bits shorter.
    raw = np.frombuffer(np.ascontiguousarray(values).tobytes(), np.uint8)
    return np.asarray(broadcast_one_to_all(raw)).view(values.dtype).reshape(values.shape)


def _gathered(values: np.ndarray) -> Any:
    """Arrays of one shape of all processes, float64[processes, ...]."""
    from jax.experimental.multihost_utils import process_allgather

    raw = np.frombuffer(np.ascontiguousarray(values).tobytes(), np.uint8)
    everyones = np.ascontiguousarray(process_allgather(raw)).reshape(-1, raw.size)
    return everyones.view(values.dtype).reshape(-1, *values.shape)
