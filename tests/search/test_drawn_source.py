"""tests/search/test_drawn_source: the source moves to where it is drawn, and the plume with it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plumejax
from plumejax.base.errors import ComponentError, ValidationError
from plumejax.plumes.encounters import EncounterPlume
from plumejax.plumes.filaments import TrackingPlume
from plumejax.plumes.gaussian import GaussianPlume
from plumejax.plumes.sources import Drift
from plumejax.search.drawn_source import DrawnSource, with_source
from plumejax.search.starts import Fixed, Uniform

GRID = (16, 12)


def make(start, **overrides):
    box = {"start.low": (2, 3), "start.high": (13, 9), "ending.radius": 2.0, "plume.sigma": 3.0}
    return plumejax.make(
        "PlumeSearchLocal-v0", grid_size=GRID, start=start, overrides={**box, **overrides}
    )


def resets(env, params, n=4000):
    def reset(key):
        _, state = env.reset(key, params)
        source = env.plume.sources(state.plume, params.plume)[0]
        return source, state.agent.position, state.observation[0]

    keys = jax.random.split(jax.random.key(0), n)
    return (np.asarray(x, np.float64) for x in jax.jit(jax.vmap(reset))(keys))


def test_sources_are_uniform_over_whole_cells_and_agents_start_away_from_theirs():
    env, params = make(DrawnSource(Uniform(), whole=True))
    source, position, seen = resets(env, params)
    cells, counts = np.unique(source, axis=0, return_counts=True)
    assert len(cells) == 12 * 7
    assert cells.min(axis=0).tolist() == [2, 3]
    assert cells.max(axis=0).tolist() == [13, 9]
    expected = counts.mean()
    assert ((counts - expected) ** 2 / expected).sum() < 83 + 4 * np.sqrt(2 * 83)
    distance = np.hypot(*(position - source).T)
    assert distance.min() > 2
    np.testing.assert_allclose(seen, np.exp(-(distance**2) / 18), rtol=1e-4)


def test_sources_are_uniform_in_the_box_and_stay_for_the_episode():
    env, params = make(DrawnSource(Uniform()))
    source, *_ = resets(env, params)
    for axis, (low, high) in enumerate(((2, 13), (3, 9))):
        along = (source[:, axis] - low) / (high - low)
        assert along.min() >= 0
        assert along.max() <= 1
        # The standard errors of mean and variance of a uniform number.
        assert abs(along.mean() - 1 / 2) < 4 * np.sqrt(1 / 12 / len(along))
        assert abs(along.var() - 1 / 12) < 4 * np.sqrt(1 / 180 / len(along))
    _, state = env.reset(jax.random.key(0), params)
    _, after, *_ = env.step(jax.random.key(1), state, 0, params)
    np.testing.assert_array_equal(state.plume, after.plume)


@pytest.mark.parametrize(
    "plume",
    [EncounterPlume(), GaussianPlume(GRID, source_motion=Drift()), TrackingPlume(warmup=20)],
    ids=lambda plume: type(plume).__name__,
)
def test_the_air_moves_with_the_source(plume):
    params = plume.default_params()
    state = plume.start(jax.random.key(0), params)
    before = plume.sources(state, params)[0]
    places = before[None] + jnp.asarray([[0.0, 1.0], [0.05, 0.0], [3.0, 2.0]], jnp.float32)
    moved = with_source(state, before + 1.0)
    assert jax.tree.structure(moved) == jax.tree.structure(state)
    np.testing.assert_array_equal(plume.sources(moved, params), before[None] + 1.0)
    air = plume.sample(state, places, params).concentration
    there = plume.sample(moved, places + 1.0, params).concentration
    assert np.any(air > 0)
    np.testing.assert_allclose(air, there, rtol=1e-4)


def test_a_height_that_is_not_drawn_stays():
    state = jnp.asarray([1.0, 2.0, 3.0], jnp.float32)
    moved = with_source(state, jnp.asarray([5.0, 6.0], jnp.float32))
    np.testing.assert_array_equal(moved, [5, 6, 3])


def test_other_plumes_are_refused():
    for state in ((), jnp.zeros((2, 2), jnp.float32)):
        with pytest.raises(ComponentError, match="has no one source"):
            with_source(state, jnp.zeros(2, jnp.float32))


@pytest.mark.parametrize(
    ("start", "overrides", "message"),
    [
        (DrawnSource(Uniform()), {"start.low": (14, 3)}, "start.low .* not above start.high"),
        (
            DrawnSource(Uniform(), whole=True),
            {"start.low": (2.3, 3), "start.high": (2.7, 9)},
            "with a cell between",
        ),
        (DrawnSource(Fixed()), {"start.of.heading": -1.0}, r"start\.of\.heading = -1.0"),
        (DrawnSource(Fixed()), {"start.of.position": (16, 0)}, r"start\.of\.position"),
        # Only a source near the middle bars every cell.
        (
            DrawnSource(Uniform()),
            {"start.high": (8, 6), "ending.radius": 11.0},
            "no cell is left to start from",
        ),
    ],
)
def test_bad_numbers_are_refused(start, overrides, message):
    with pytest.raises(ValidationError, match=message):
        make(start, **overrides)
