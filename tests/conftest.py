"""tests/conftest: strict JAX modes for every test, and the few tasks that they share."""

import os

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
os.environ.setdefault("MPLBACKEND", "Agg")

import jax
import pytest

import plumejax

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")


@pytest.fixture(scope="session")
def local():
    """`(env, params)` of the local task on a small grid; shared, so that it compiles once."""
    return plumejax.make("PlumeSearchLocal-v0", grid_size=(16, 12), overrides=SMALL)


@pytest.fixture(scope="session")
def full():
    """`(env, params)` of the full-field task on the same small grid."""
    return plumejax.make("PlumeSearch-v0", grid_size=(16, 12), overrides=SMALL)


SMALL = {"plume.sigma": 3.0, "ending.radius": 2.0, "max_steps": 40}
