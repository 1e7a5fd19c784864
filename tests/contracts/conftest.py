"""contracts/conftest: environments on one small grid, so that all of them share a compilation."""

import pytest

from plumejax.adapters.gymnasium import PlumeSearchEnv


@pytest.fixture(scope="session")
def make_env():
    """`make_env(**arguments)`: 16 x 12 cells, source at (8, 6), goal radius 2, 40 steps."""

    def make(**arguments):
        small = {"grid_size": (16, 12), "goal_radius": 2.0, "max_steps": 40}
        return PlumeSearchEnv(**{**small, **arguments})

    return make
