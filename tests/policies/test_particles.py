"""tests/policies/test_particles: a cloud on the cells of a grid is the belief; searches without."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plumejax
from plumejax.base.errors import ValidationError
from plumejax.evaluation.episodes import play
from plumejax.plumes.encounters import EncounterPlume, Isotropic, IsotropicParams
from plumejax.policies import bayesian
from plumejax.policies.particles import Cloud, particle_infotaxis, systematic
from plumejax.search.beliefs import Hits
from plumejax.search.composed import Stack
from plumejax.search.encounter_tasks import encounter_search, isotropic_search
from plumejax.search.sensors import Heading, Position
from plumejax.search.walking import TurnAndSpeed

KEY = jax.random.key(3)


@pytest.fixture(scope="module")
def grid():
    """A search on 11 x 11 cells, from the middle."""
    return isotropic_search(11, 2.5, 3.0, 2, 80)


def walk():
    """`(env, params)`: a walker anywhere in 11 x 11 cells that turns by up to 90 degrees a step."""
    plume = EncounterPlume(Isotropic(), (11, 11))
    law = IsotropicParams(np.float32(2.5), np.float32(3.0))
    parts = (("hits", Hits(plume, 5)), ("place", Position()), ("way", Heading()))
    env, params = encounter_search(
        plume,
        plume.default_params().replace(law=law),
        np.ones(4) / 4,
        np.asarray([5.0, 5.0]),
        80,
        sensor=Stack(parts),
        motion=TurnAndSpeed(feels_air=False),
    )
    motion = params.motion.replace(turn_range=np.float32(180.0), max_speed=np.float32(1.0))
    place = params.sensor["place"].replace(high=np.full(2, 10.0, np.float32))
    ending = params.ending.replace(radius=np.float32(1.0))
    sensor = {**params.sensor, "place": place}
    return env, params.replace(motion=motion, sensor=sensor, ending=ending)


@pytest.mark.slow
def test_one_particle_a_cell_gains_what_infotaxis_does(grid):
    env, params = grid
    informed = bayesian.infotaxis(env, params)
    own = particle_infotaxis(env, params, particles=121, fewest=0.0)
    cells = np.stack(np.unravel_index(np.arange(121), (11, 11)), axis=1).astype(np.float32)

    @jax.jit
    def both(own, informed):
        memory = informed.init(KEY)
        cloud = Cloud(jnp.asarray(cells), memory.belief.reshape(-1))
        for hits, place in ((1, (5, 5)), (0, (4, 5)), (2, (10, 3))):
            seen = jnp.asarray([hits, *place], jnp.float32)
            action, memory = informed.act(KEY, memory, seen)
            taken, cloud = own.act(KEY, cloud, seen)
        position = informed.place(seen)
        costs = informed.costs(memory.belief, position)
        there = informed.model.neighbours(position).astype(jnp.float32)
        gains = jax.vmap(own.filter.gain, (None, 0))(cloud, there)
        return memory.belief, cloud.weights, costs, gains, action, taken

    belief, weights, costs, gains, action, taken = both(own, informed)
    np.testing.assert_allclose(weights, belief.reshape(-1), atol=1e-6)
    np.testing.assert_allclose(gains, -costs, atol=3e-6)
    assert action == taken


def test_indices_are_drawn_by_weight():
    weights = jnp.asarray([0.0, 0.5, 0.3, 0.0, 0.2], jnp.float32)
    draws = jax.vmap(systematic, (0, None))(jax.random.split(KEY, 4000), weights)
    counts = np.stack([np.bincount(draw, minlength=5) for draw in np.asarray(draws)])
    # Of five, each is drawn N times its weight rounded up or down, that often on average.
    assert np.all(np.abs(counts - 5 * np.asarray(weights)) < 1)
    error = 4 * counts.std(axis=0) / np.sqrt(len(counts))
    assert np.all(np.abs(counts.mean(axis=0) - 5 * np.asarray(weights)) <= error + 1e-6)


@pytest.mark.slow
def test_few_that_count_are_drawn_anew_inside_the_box(grid):
    own = particle_infotaxis(*grid, particles=200, fewest=1.0).filter
    cloud = own.start(KEY)
    after = jax.jit(own.updated)(KEY, cloud, jnp.zeros(2), jnp.int32(2))
    np.testing.assert_array_equal(after.weights, np.full(200, 1 / 200, np.float32))
    assert np.all((after.places >= 0) & (after.places <= 10))
    assert np.linalg.norm(after.places, axis=1).mean() < np.linalg.norm(cloud.places, axis=1).mean()
    # No place explains a hit where the rate is 0: all stays.
    dark = own.replace(numbers=own.numbers.replace(rate=np.float32(0.0)))
    same = jax.jit(dark.replace(fewest=np.float32(0.0)).updated)(
        KEY, cloud, jnp.zeros(2), jnp.int32(2)
    )
    np.testing.assert_array_equal(same.weights, cloud.weights)


@pytest.mark.slow
@pytest.mark.parametrize("which", ["grid", "walk"])
def test_it_finds_the_source(which, grid):
    env, params = grid if which == "grid" else walk()
    policy = particle_infotaxis(env, params, particles=300)
    outcomes = play(env, policy, KEY, params, 40)
    assert outcomes.found.mean() > 0.9


def test_what_does_not_fit_is_refused(grid):
    env, params = grid
    for name, bad in (("particles", 0), ("turns", 1), ("fewest", 1.5), ("roughening", -1.0)):
        with pytest.raises(ValidationError, match=name):
            particle_infotaxis(env, params, **{name: bad})
    with pytest.raises(ValidationError, match=r"env\.sensor"):
        particle_infotaxis(*plumejax.make("PlumeSearchLocal-v0"))
    own_env, own = walk()
    drifts = own.replace(motion=own.motion.replace(drift=np.float32(1.0)))
    with pytest.raises(ValidationError, match=r"motion\.drift"):
        particle_infotaxis(own_env, drifts)
