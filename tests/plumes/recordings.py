"""tests/plumes/recordings: a small made-up filament recording, and where the real ones would be."""

import json
from pathlib import Path

import numpy as np

REAL = Path(__file__).parents[3] / "shared" / "data" / "gaden" / "warehouse_empty_001.npz"
"""The GSL-Bench recording beside a checkout; tests on it skip where it is absent."""

SOURCE = (0.9, 0.7, 0.5)


def write(folder, *, frames=6, name="made_up", seed=0, arrays=None, occupancy=None, header=None):
    """Write a recording of a 1.6 x 1.2 x 1.0 m room in cells of 0.2 m; its path."""
    rng = np.random.default_rng(seed)
    counts = np.arange(1, frames + 1) * 3
    n = int(counts.sum())
    filaments = np.column_stack(
        [np.asarray(SOURCE) + rng.normal(0, 0.25, (n, 3)), rng.uniform(10.0, 40.0, n)]
    ).astype(np.float32)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    cells = np.zeros((5, 8, 6), np.uint8)  # z, x, y
    cells[:, 0] = 1
    cells[2, 4, 5] = 2
    path = folder / f"{name}.npz"
    np.savez(path, **({"filaments": filaments, "offsets": offsets} | (arrays or {})))
    np.savez(folder / f"{name}_occupancy.npz", occupancy=cells if occupancy is None else occupancy)
    place = {
        "env_min": [0.0, 0.0, 0.0],
        "env_max": [1.6, 1.2, 1.0],
        "num_cells": [8, 6, 5],
        "cell_size": 0.2,
    }
    (folder / f"{name}_occupancy.txt").write_text(json.dumps(place | (header or {})))
    return path
