"""sweeps: how something depends on numbers: many values in one compiled call, kept as they end."""

from plumejax.sweeps.designs import Design, grid, listed, random, sobol
from plumejax.sweeps.sweep import Sweep
from plumejax.sweeps.trainings import Best, TrainingSweep, best

__all__ = ["Best", "Design", "Sweep", "TrainingSweep", "best", "grid", "listed", "random", "sobol"]
