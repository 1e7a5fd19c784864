"""tests/sweeps/conftest: a small sweep, made and played once."""

import numpy as np
import pytest

import plumejax


@pytest.fixture(scope="package")
def small():
    """Makes a sweep of a small task: 16 x 16 cells, 8 steps."""
    return _small


@pytest.fixture(scope="package")
def sweep():
    return _small({"plume.sigma": np.geomspace(1, 16, 3), "ending.radius": [1.5, 3.0]})


@pytest.fixture(scope="package")
def played(sweep):
    return run(sweep)


@pytest.fixture(scope="package", name="run")
def run_fixture():
    """Runs a sweep without a bar."""
    return run


def run(sweep, store=None, **more):
    return sweep.run(store, progress=lambda ended: None, **more)


def _small(axes, **more):
    given = {
        "policy": "gradient",
        "episodes": 24,
        "seed": 5,
        "static": {"grid_size": (16, 16)},
        "overrides": {"max_steps": 8, "plume.source": [8, 8]},
        **more,
    }
    return plumejax.Sweep("PlumeSearchLocal-v0", axes, **given)
