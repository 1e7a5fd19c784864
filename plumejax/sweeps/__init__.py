"""sweeps: how something depends on numbers: many values in one compiled call, kept as they end."""

from plumejax.sweeps.designs import Design, grid, listed, random, sobol
from plumejax.sweeps.sweep import Sweep

__all__ = ["Design", "Sweep", "grid", "listed", "random", "sobol"]
