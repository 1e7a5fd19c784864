"""tests/interop/conftest: the search that the trainers of others are given."""

import pytest

from plumejax.search.composed import Stack
from plumejax.search.filters import Difference
from plumejax.search.sensors import LastAction, LogConcentration


@pytest.fixture(scope="session")
def search():
    """`{"static": ..., "overrides": ...}` of a small local search.

    A network without memory can follow a gradient only if it is shown the change since the last
    step and what that step was.
    """
    odour = LogConcentration()
    sensor = Stack((("odour", odour), ("change", Difference(odour)), ("action", LastAction(4))))
    return {
        "static": {"grid_size": (16, 16), "sensor": sensor},
        "overrides": {"plume.sigma": 5.0, "ending.radius": 1.0, "max_steps": 40},
    }
