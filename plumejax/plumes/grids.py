"""plumes/grids: the cells of a picture of a plume."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from plumejax.base.errors import require


@dataclass(frozen=True)
class Grid:
    """The cells of a picture of a plume.

    Attributes:
      size: width and height in cells.
      spacing: lengths from one cell to the next, along x and along y.
      origin: x and y of the centre of cell (0, 0), in lengths.
    """

    size: tuple[int, int]
    spacing: tuple[float, float]
    origin: tuple[float, float]

    def __post_init__(self) -> None:
        require(min(self.size) > 0, "grid", self.size, "> 0 cells each way")
        require(min(self.spacing) > 0, "spacing", self.spacing, "> 0 lengths a cell")


def grid_over(low: Any, high: Any, size: tuple[int, int]) -> Grid:
    """The grid of `size` (width, height) whose cells fill the box `low`..`high`, float[2]."""
    low, high = (np.asarray(x, np.float64)[:2] for x in (low, high))
    require(np.all(low < high), "low", low, f"below high, {high.tolist()}")
    require(min(size) > 0, "grid", size, "> 0 cells each way")
    spacing = (high - low) / np.asarray(size)
    origin = low + spacing / 2
    return Grid(size, (float(spacing[0]), float(spacing[1])), (float(origin[0]), float(origin[1])))
