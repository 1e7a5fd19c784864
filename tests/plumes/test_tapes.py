"""tests/plumes/test_tapes: what is looked up on a tape is what its plume would have said."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plumejax
from plumejax.base.batch import Batch
from plumejax.base.errors import ValidationError
from plumejax.plumes.bank import rasterise, roll
from plumejax.plumes.filaments import FarrellWind, FilamentPlume, TrackingPlume
from plumejax.plumes.grids import grid_over
from plumejax.plumes.tapes import NEAREST_STEP, Cassette, Tape, make_tape
from plumejax.plumes.wind import SwitchMany

KEY = jax.random.key(4)
PLUME = TrackingPlume(capacity=256, wind=SwitchMany(), substeps=4)
CASSETTE = Cassette(num_frames=8, every=2, warmup=60, low=(-1.0, -2.0), high=(5.0, 2.0))


@pytest.fixture(scope="module")
def numbers():
    params = PLUME.default_params()
    wind = params.wind.replace(direction=np.float32(10.0))
    return params.replace(rate=np.float32(20.0), wind=wind, source=np.float32([0.0, 0.25]))


@pytest.fixture(scope="module")
def tapes(numbers):
    steady = numbers.replace(wind=numbers.wind.replace(spread=np.float32(0.0)))
    return make_tape(PLUME, [numbers, steady], KEY, CASSETTE, margin=6)


@pytest.fixture(scope="module")
def states(numbers):
    """Those of the first tape."""
    own = jax.random.fold_in(KEY, 0)
    return roll(PLUME, numbers, own, 1, CASSETTE.num_frames, 2, 120)


def at(states, t):
    return jax.tree.map(lambda x: x[t], states)


def playing(tape, params, t, mirrored=False):
    state = tape.start(jax.random.key(0), params)
    return state.replace(phase=jnp.float32(t), movie=jnp.int32(0), mirrored=jnp.asarray(mirrored))


def living(states, t):
    puffs = jax.device_get(at(states, t).particles)
    return puffs.position[:, puffs.alive], puffs.age[puffs.alive]


@pytest.mark.parametrize("kind", ["squares", "filaments"])
def test_what_is_painted_is_what_is_sampled(kind, numbers, states):
    if kind == "squares":
        plume, params, state = PLUME, numbers, at(states, 3)
        grid, rounding = CASSETTE.grid(0.05), 1e-5
    else:
        plume = FilamentPlume(capacity=64)
        params = plume.default_params().replace(
            low=np.float32([0.0, -3.0]), high=np.float32([12.0, 3.0]), amount=np.float32(1.0)
        )
        state = plume.start(jax.random.key(0), params)
        for key in jax.random.split(jax.random.key(1), 3):
            state = jax.jit(lambda k, s: jax.lax.fori_loop(0, 100, lambda i, s: plume.advance(jax.random.fold_in(k, i), s, params), s))(key, state)  # fmt: skip  # noqa: E501
        grid, rounding = grid_over((4.0, -1.0), (9.0, 1.0), (50, 20)), 4e-4  # exp(-8) of a peak
    puffs = jax.device_get(state.particles)
    painted = plume.paint(puffs.position[:, puffs.alive], puffs.age[puffs.alive], grid, params)
    expected = np.asarray(rasterise(plume, state, params, grid).concentration)
    assert (expected > 0).sum() > 50
    np.testing.assert_allclose(painted, expected, rtol=1e-4, atol=rounding * expected.max())


def test_clean_air_is_painted_as_none(numbers):
    grid = CASSETTE.grid(0.05)
    assert not PLUME.paint(np.zeros((2, 0)), np.zeros(0), grid, numbers).any()


def test_odour_and_wind_of_a_tape_are_those_of_the_plume(tapes, numbers, states):
    tape, params = tapes
    grid = CASSETTE.grid(0.05)
    for t in (0, 5):
        x, y = (
            o + g * np.arange(n)
            for o, g, n in zip(grid.origin, grid.spacing, grid.size, strict=True)
        )
        places = jnp.asarray(np.stack(np.meshgrid(x, y), -1).reshape(-1, 2), jnp.float32)
        air = tape.sample(playing(tape, params, t + 0.5), places, params)
        expected = PLUME.sample(at(states, t), places, numbers)
        smells = np.asarray(expected.concentration) > 0
        assert smells.sum() > 50
        np.testing.assert_allclose(
            air.concentration, jnp.minimum(expected.concentration, 1.0), rtol=0.03
        )
        np.testing.assert_allclose(air.wind, expected.wind, rtol=1e-5, atol=1e-6)


def test_the_nearest_puff_is_as_far_as_a_cell_allows(tapes, numbers, states):
    tape, params = tapes
    rng = np.random.default_rng(0)
    places = rng.uniform((-2.0, -3.0), (5.0, 3.0), (200, 2)).astype(np.float32)
    state = playing(tape, params, 4)
    for place in places:
        told = float(tape.nearest(state, jnp.asarray(place), params))
        exact = float(PLUME.nearest(at(states, 4), jnp.asarray(place), numbers))
        inside = np.all((place > (-1.0, -2.0)) & (place < (5.0, 2.0)))
        # Half a diagonal of a cell at either end, and what the step rounds off.
        assert abs(told - exact) < 0.29 + NEAREST_STEP or not inside
        assert told < exact + 0.29 + NEAREST_STEP + (0.0 if inside else 3.0)


def test_puffs_of_a_tape_are_puffs(tapes, states):
    tape, params = tapes
    places = np.asarray(
        tape.puffs_along(playing(tape, params, 2), jnp.linspace(0.0, 100.0, 30), params)
    )
    assert np.all(np.diff(places[:, 0]) >= 0)
    puffs = living(states, 2)[0].T
    assert all(np.any(np.all(np.isclose(puffs, place), axis=1)) for place in places)


def test_a_mirrored_episode_is_the_mirror_image(tapes):
    tape, params = tapes
    places = jnp.asarray([[1.0, 0.5], [2.0, -0.25], [3.0, 1.0]], jnp.float32)
    flipped = places.at[:, 1].set(2 * 0.25 - places[:, 1])
    plain, mirrored = (playing(tape, params, 3, side) for side in (False, True))
    a, b = tape.sample(plain, places, params), tape.sample(mirrored, flipped, params)
    np.testing.assert_array_equal(a.concentration, b.concentration)
    np.testing.assert_array_equal(a.wind * jnp.asarray([[1.0, -1.0]]), b.wind)
    near = [tape.nearest(s, p[0], params) for s, p in ((plain, places), (mirrored, flipped))]
    assert near[0] == near[1]
    puffs = [tape.puffs_along(s, jnp.asarray([50.0]), params)[0] for s in (plain, mirrored)]
    np.testing.assert_allclose(puffs[0][1] - 0.25, 0.25 - puffs[1][1], atol=1e-6)


def test_plumes_are_drawn_by_their_shares_and_early_enough(tapes):
    tape, params = tapes
    keys = jax.random.split(jax.random.key(1), 2000)
    start = jax.jit(jax.vmap(tape.start, (0, None)))
    drawn = start(keys, params.replace(shares=jnp.asarray([1.0, 3.0], jnp.float32)))
    assert abs(float(drawn.movie.mean()) - 0.75) < 4 * np.sqrt(0.75 * 0.25 / 2000)
    assert abs(float(drawn.mirrored.mean()) - 0.5) < 4 * np.sqrt(0.25 / 2000)
    assert set(np.asarray(drawn.phase).tolist()) == set(range(8 - 3))
    only = start(keys, params.replace(shares=jnp.asarray([1.0, 0.0], jnp.float32)))
    assert not only.movie.any()


def test_a_search_plays_on_a_tape(tapes):
    tape, params = tapes
    env, own = plumejax.make("PlumeTracking-Code-SwitchMany-v0", plume=tape)
    own = own.replace(plume=params, max_steps=np.int32(6))
    env.validate(own)
    batch = Batch(env, 8)
    _, state = batch.reset(jax.random.key(0), own)
    for t in range(8):
        action = jnp.full((8, 2), 0.5, jnp.float32)
        observation, state, *_ = batch.step(jax.random.key(t + 1), state, action, own)
    assert np.all(np.isfinite(observation))
    assert np.any(observation[:, 0] != observation[0, 0])  # other winds


def test_a_wind_that_depends_on_the_place_is_looked_up_there():
    plume = FilamentPlume(capacity=64, wind=FarrellWind(spin_up=20))
    params = plume.default_params()
    cassette = Cassette(
        2, 1, 2, (0.0, -5.0), (20.0, 5.0), cell=0.5, wind_cell=1.0, smallest=1e5, peak=1e9
    )
    tape, rolled = make_tape(plume, [params], KEY, cassette, margin=1, mirrored=False)
    state = tape.start(KEY, rolled)
    states = roll(plume, params, jax.random.fold_in(KEY, 0), 1, 2, 1, 2)
    first = at(states, int(state.phase))
    places = jnp.asarray([[0.5, -4.5], [10.5, 0.5], [19.5, 4.5]], jnp.float32)
    expected = plume.wind.at(first.wind, places.T, params.wind).T
    np.testing.assert_allclose(tape.sample(state, places, rolled).wind, expected, rtol=1e-4)


def test_what_does_not_fit_is_refused(tapes, numbers):
    tape, params = tapes
    tape.validate(params)
    Tape(PLUME, tape.player).validate(tape.default_params())
    with pytest.raises(ValidationError, match=r"plume.shares .* one of them > 0"):
        tape.validate(params.replace(shares=np.zeros(2, np.float32)))
    with pytest.raises(ValidationError, match=r"plume.wind: shape .* 16 frames"):
        tape.validate(params.replace(wind=params.wind[:3]))
    with pytest.raises(ValidationError, match=r"params = 0 .* one tape or more"):
        make_tape(PLUME, [], KEY, CASSETTE, margin=1)
    with pytest.raises(ValidationError, match="steps"):
        make_tape(PLUME, [numbers], KEY, replace(CASSETTE, warmup=0), margin=99)
