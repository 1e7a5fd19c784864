"""tests/search/test_finite_memory_tasks: searches by hits alone are the published ones."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plumejax
from plumejax.base.errors import ValidationError
from plumejax.plumes.encounters import Cosh, EncounterPlume
from plumejax.plumes.gaussian import GaussianPlume
from plumejax.search.finite_memory_tasks import GAMMA, hit_map, start_map
from plumejax.search.hit_row import HitRow
from plumejax.search.sensors import SourceVector
from plumejax.search.starts import Uniform

MANY = 20_000
IDS = ("FiniteMemory-Cosh-v0", "FiniteMemory-Bessel-v0")
SOURCE = (5, 46)


@pytest.fixture(scope="module", params=IDS)
def task(request):
    return plumejax.make(request.param)


@pytest.fixture(scope="module")
def cosh():
    return plumejax.make("FiniteMemory-Cosh-v0")


def test_the_task_is_the_published_one(task):
    # Verano, Panizon, Celani 2023 by the design notes: 92 x 131 cells, within 1.1 cells.
    env, params = task
    assert env.plume.grid_size == (131, 92)
    assert params.ending.radius == np.float32(1.1)
    assert params.start.x == 130
    np.testing.assert_array_equal(params.plume.source, SOURCE)
    assert env.observation_space(params).shape == (1,)
    assert env.action_space(params).n == 4
    assert GAMMA ** int(params.max_steps) < 0.01


def test_the_cosh_map_is_the_published_law(cosh):
    y, x = np.indices((92, 131)) - np.asarray(SOURCE[::-1])[:, None, None]
    downwind = x > 0
    law = np.where(downwind, np.cosh(np.clip(y / (0.2 * np.where(downwind, x, 1)), -40, 40)), 1)
    np.testing.assert_allclose(hit_map(*cosh), np.where(downwind, law**-2, 0), atol=1e-5)


def test_the_bessel_map_is_that_of_hits_without_wind():
    hits = np.asarray(hit_map(*plumejax.make("FiniteMemory-Bessel-v0")))
    # K0(0.02) and K0(2.5), Abramowitz and Stegun: 1 and 125 cells away, at L = 50 and I = 2.
    for cell, bessel in (((46, 6), 4.0284573), ((47, 5), 4.0284573), ((46, 130), 0.0623476)):
        assert hits[cell] == pytest.approx(-np.expm1(-2 / np.log(100) * bessel), rel=1e-5)
    assert hits[46, 5] == 0


def test_starts_are_drawn_as_their_map_says_and_first_hits_as_any_other(task):
    env, params = task
    keys = jax.random.split(jax.random.key(0), MANY)
    first, state = jax.jit(jax.vmap(env.reset, in_axes=(0, None)))(keys, params)
    starts, hits = (np.asarray(x, float) for x in (start_map(env, params), hit_map(env, params)))
    assert starts.sum() == pytest.approx(1, abs=1e-5)
    np.testing.assert_allclose(starts[:, 130], hits[:, 130] / hits[:, 130].sum(), rtol=1e-5)
    x, y = np.asarray(state.agent.position).T
    assert np.all(x == 130)
    # Chi-squared within four standard deviations.
    expected = starts[:, 130] * MANY
    counts = np.bincount(y.astype(int), minlength=92)
    chi = np.sum((counts - expected) ** 2 / expected)
    assert expected.min() > 5
    assert abs(chi - 91) < 4 * np.sqrt(2 * 91)
    hit = np.sum(starts * hits)
    assert set(np.unique(first)) == {0, 1}
    assert abs(np.mean(first) - hit) < 4 * np.sqrt(hit * (1 - hit) / MANY)


def test_the_source_is_found_beside_it_but_not_diagonally(cosh):
    env, params = cosh
    _, state = env.reset(jax.random.key(0), params)
    # From two cells to the right of, and above, the source, a move to the left.
    for offset, ends in (((2, 0), True), ((2, 1), False), ((3, 0), False)):
        place = jnp.asarray(SOURCE, jnp.float32) + jnp.asarray(offset, jnp.float32)
        there = state.replace(agent=state.agent.replace(position=place))
        _, _, reward, found, *_ = env.step(jax.random.key(1), there, jnp.int32(0), params)
        assert (bool(found), float(reward)) == (ends, float(ends))


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (3.0, r"start\.x = 3.0 is not allowed.*row with hits"),  # upwind of the source
        (5.0, r"start\.x = 5.0 is not allowed.*row with hits"),
        (130.5, r"start\.x.*0\.\.130"),
        (131.0, r"start\.x.*0\.\.130"),
        (-1.0, r"start\.x.*0\.\.130"),
    ],
)
def test_a_row_without_hits_or_off_the_grid_is_refused(x, message):
    with pytest.raises(ValidationError, match=message):
        plumejax.make("FiniteMemory-Cosh-v0", overrides={"start.x": x})


def test_no_start_is_in_the_goal_disc():
    overrides = {"start.x": 6.0}
    starts = start_map(*plumejax.make("FiniteMemory-Bessel-v0", overrides=overrides))
    assert starts[46, 6] == 0
    assert np.all(np.delete(np.asarray(starts[:, 6]), 46) > 0)


def test_a_sweep_over_rows_is_allowed_and_checked(cosh):
    env, params = cosh
    rows = params.start.replace(x=np.asarray([100.0, 130.0], np.float32))
    env.validate(params.replace(start=rows))
    rows = params.start.replace(x=np.asarray([100.0, 131.0], np.float32))
    with pytest.raises(ValidationError, match=r"start\.x"):
        env.validate(params.replace(start=rows))


def test_parts_can_be_replaced():
    plume = EncounterPlume(Cosh(), (41, 31))
    env, params = plumejax.make("FiniteMemory-Cosh-v0", plume=plume)
    assert env.start == HitRow(plume)
    assert params.start.x == 40
    np.testing.assert_array_equal(params.plume.source, [20, 15])
    assert hit_map(env, params).shape == (31, 41)
    env, params = plumejax.make("FiniteMemory-Cosh-v0", sensor=SourceVector(), start=Uniform())
    assert params.ending.radius == np.float32(1.1)
    with pytest.raises(ValidationError, match="a HitRow"):
        start_map(env, params)
    with pytest.raises(ValidationError, match="a plume of encounters"):
        plumejax.make("FiniteMemory-Cosh-v0", plume=GaussianPlume())
    with pytest.raises(ValidationError, match="grid_size"):
        HitRow(EncounterPlume(grid_size=(9, 9, 9)))
