"""tests/plumes/test_bank: reading a bank equals running the plume live with the same keys."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plumejax
from plumejax.base.batch import Batch
from plumejax.base.errors import ValidationError
from plumejax.plumes import bank as banks
from plumejax.plumes.bank import Bank, Plan, make_bank, roll, starts_within, write_bank
from plumejax.plumes.filaments import FilamentPlume
from plumejax.plumes.gaussian import GaussianPlume
from plumejax.plumes.grids import grid_over
from plumejax.plumes.interface import Air
from plumejax.plumes.movies import decode, movie_plume, open_movie
from plumejax.plumes.wind import OrnsteinUhlenbeck
from plumejax.search.starts import Fixed

P, T, EVERY, WARMUP, LANES = 3, 24, 2, 40, 32
WIDTH, HEIGHT = 16, 12
PLUME = FilamentPlume(capacity=64, wind=OrnsteinUhlenbeck())
KEY = jax.random.key(7)


def numbers(plume=PLUME):
    """Lengths are cells of a 16 x 12 grid."""
    params = plume.default_params()
    wind = params.wind.replace(
        velocity=np.float32([2.0, 0.3]), spread=np.float32([0.4, 0.8]), time=np.float32(1.0)
    )
    return params.replace(
        wind=wind,
        source=np.float32([2.0, 5.0, 0.0]),
        radius=np.float32(0.7),
        diffusivity=np.float32(0.2),
        growth=np.float32(0.1),
        rate=np.float32(8.0),
        amount=np.float32(30.0),
        low=np.float32([-0.5, -0.5]),
        high=np.float32([15.5, 11.5]),
        dt=np.float32(0.1),
    )


@pytest.fixture(scope="module")
def frames():
    return roll(PLUME, numbers(), KEY, P, T, EVERY, WARMUP)


@pytest.fixture(scope="module")
def live():
    """`live(p, t)`: the state of plume p at frame t, advanced by hand with the keys as written."""
    advance, start = jax.jit(PLUME.advance), jax.jit(PLUME.start)
    params = numbers()

    def of(p):
        own = jax.random.fold_in(KEY, p)
        state = start(jax.random.fold_in(own, 0), params)
        yield state
        for n in range(1, WARMUP + T * EVERY):
            state = advance(jax.random.fold_in(own, n), state, params)
            yield state

    states = [list(of(p))[WARMUP::EVERY] for p in range(P)]
    return lambda p, t: states[p][t]


@pytest.fixture(scope="module")
def bank(frames):
    """`bank(**static)`: `(bank, params)` of the frames."""

    def of(**static):
        bank = Bank(PLUME, P, T, **static)
        params = bank.default_params().replace(frames=frames, plume=numbers())
        return bank, params.replace(axis=np.float32(5.0))

    return of


def test_a_bank_holds_exactly_what_the_plume_does_with_the_same_keys(frames, live):
    for p in range(P):
        for t in range(T):
            stored = jax.tree.map(lambda x, i=p * T + t: x[i], frames)
            for a, b in zip(jax.tree.leaves(stored), jax.tree.leaves(live(p, t)), strict=True):
                np.testing.assert_array_equal(a, b)
    assert int(frames.particles.alive.sum(-1).min()) > 10  # a plume, not an empty box


def search(plume, params):
    env, task = plumejax.make(
        "PlumeSearchLocal-v0",
        grid_size=(WIDTH, HEIGHT),
        plume=plume,
        start=Fixed(),
        overrides={"start.position": [6.0, 5.0], "ending.radius": 0.1, "max_steps": 30},
    )
    task = task.replace(plume=params)
    task = task.replace(sensor=task.sensor.replace(saturation=np.float32(1e9)))
    env.validate(task)
    return env, task


def played(plume, params, steps):
    """States of `steps` steps of every lane of a `Batch`, leading with steps, lanes."""
    env, task = search(plume, params)
    batch = Batch(env, LANES)
    _, state = batch.reset(jax.random.key(3), task)
    states = [state]
    for t in range(steps):
        actions = jnp.full((LANES,), t % 4, jnp.int32)
        state = batch.step(jax.random.key(t), state, actions, task)[1]
        states.append(state)
    return jax.tree.map(lambda *x: np.stack(x), *states)


def test_every_episode_of_a_batch_smells_the_live_plume(bank, live):
    plume, params = bank(mirrored=True, thinned=True)
    states = played(plume, params.replace(keep=np.float32(0.5)), 6)
    reading = states.plume.playing
    assert set(np.unique(reading.movie)) == set(range(P))
    assert set(np.unique(reading.mirrored)) == {False, True}
    assert len(np.unique(reading.phase[0])) > T // 3  # phases of their own

    @jax.jit
    def sample(state, salt, position):
        thinned = PLUME.thin(state, np.float32(0.5), salt)
        return PLUME.sample(thinned, position[None], numbers())

    smelt = []
    for lane in range(LANES):
        for t in range(7):
            state = live(reading.movie[t, lane], reading.phase[t, lane])
            x, y = states.agent.position[t, lane]
            y = 10 - y if reading.mirrored[t, lane] else y
            air = sample(state, states.plume.salt[t, lane], np.float32([x, y]))
            smelt.append(float(air.concentration[0]))
            expected = pytest.approx(smelt[-1], rel=2e-5, abs=1e-6)
            assert states.observation[t, lane, 0] == expected
    assert np.median(smelt) > 1e-5
    # One frame a step, the same plume, mirror and puffs for all of an episode.
    np.testing.assert_array_equal(reading.phase[1:], (reading.phase[:-1] + 1) % T)
    assert (reading.movie == reading.movie[0]).all()
    assert (states.plume.salt == states.plume.salt[0]).all()
    assert len(np.unique(states.plume.salt[0])) == LANES


def test_a_mirrored_episode_is_the_mirror_image(bank):
    plume, params = bank(mirrored=True)
    state = jax.jit(plume.start)(jax.random.key(0), params)
    params = params.replace(axis=np.float32(6.0))

    @jax.jit
    def image(flip, at):
        state_ = state.replace(playing=state.playing.replace(mirrored=flip))
        return plume.sample(state_, at, params), plume.sources(state_, params)

    at = np.float32([[4.0, 5.5], [7.0, 3.0], [3.0, 6.0]])
    plain, sources = image(np.bool_(False), at)
    flipped, sources_flipped = image(np.bool_(True), np.float32([0, 12]) + at * [[1, -1]])
    assert float(plain.concentration.max()) > 0
    np.testing.assert_allclose(plain.concentration, flipped.concentration, rtol=1e-6)
    np.testing.assert_array_equal(np.asarray(plain.wind) * [1, -1], flipped.wind)
    assert np.abs(plain.wind[:, 1]).max() > 0
    np.testing.assert_array_equal(sources[0], [2, 5, 0])
    np.testing.assert_array_equal(sources_flipped[0], [2, 7, 0])


def test_thinning_keeps_its_fraction(bank):
    plume, params = bank(thinned=True)
    keys = jax.random.split(jax.random.key(1), 400)

    @jax.jit
    def alive(keys, keep):
        states = jax.vmap(plume.start, (0, None))(keys, params)
        frames = jax.vmap(plume.frame, (0, None))(states, params.replace(keep=keep))
        return frames.particles.alive.sum(1, dtype=jnp.float32).mean()

    shares = [float(alive(keys, np.float32(keep))) for keep in (0.0, 0.4, 1.0)]
    assert shares[0] == 0
    # 400 draws among some 40 puffs: the standard error of their share is 0.004.
    assert shares[1] / shares[2] == pytest.approx(0.4, abs=0.02)


def test_episodes_start_so_that_they_fit_and_end_as_asked(bank):
    keys = jax.random.split(jax.random.key(2), 500)
    plume, params = bank(ends="clamp")
    params = params.replace(start_frames=starts_within(T, 20))
    states = jax.vmap(plume.start, (0, None))(keys, params)
    assert set(np.unique(states.playing.phase)) == set(range(T - 20))
    last = states.replace(playing=states.playing.replace(phase=jnp.full(500, T - 1)))
    stays = jax.vmap(plume.advance, (0, 0, None))(keys, last, params)
    assert (stays.playing.phase == T - 1).all()
    plume, params = bank(ends="loop")
    again = jax.vmap(plume.advance, (0, 0, None))(keys, last, params)
    assert (again.playing.phase == 0).all()
    with pytest.raises(ValidationError, match="steps"):
        starts_within(T, T)


def test_a_bank_and_a_movie_are_played_alike_by_the_same_key(bank, rastered):
    plume, params = bank(mirrored=True)
    movie, movie_params = movie_plume(open_movie(rastered["float32"]), mirrored=True)
    keys = jax.random.split(jax.random.key(5), 50)
    a = jax.vmap(plume.start, (0, None))(keys, params).playing
    b = jax.vmap(movie.start, (0, None))(keys, movie_params)
    jax.tree.map(np.testing.assert_array_equal, a, b)


def test_make_bank_rolls_out_and_places_axis_and_margin(frames):
    plume, params = make_bank(PLUME, numbers(), KEY, P, T, EVERY, WARMUP, margin=4, mirrored=True)
    jax.tree.map(np.testing.assert_array_equal, params.frames, frames)
    np.testing.assert_array_equal(params.start_frames, [0, T - 5])
    assert float(params.axis) == 5
    assert plume.unit == PLUME.unit
    plume.validate(params)


def test_lanes_share_the_bank():
    """A step of a thousand lanes needs memory for their own numbers, not for a bank each."""
    lanes = 1024
    recorded = GaussianPlume((WIDTH, HEIGHT))
    held = make_bank(recorded, recorded.default_params(), KEY, 4, 8000)
    env, task = search(*held)
    batch = Batch(env, lanes)
    shapes = jax.eval_shape(batch.reset, KEY, task)[1]
    actions = jax.ShapeDtypeStruct((lanes,), jnp.int32)
    compiled = batch.step.lower(batch, KEY, shapes, actions, task).compile()
    size = sum(x.nbytes for x in jax.tree.leaves(task.plume.frames))
    own = sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(shapes))
    used = compiled.memory_analysis()
    assert used.argument_size_in_bytes < size + 2 * own + 10_000
    assert used.temp_size_in_bytes < 20 * own < lanes * size / 50
    assert f"[{lanes},32000" not in compiled.as_text()


PLAN = Plan(
    grid=grid_over((-0.5, -0.5), (15.5, 11.5), (WIDTH, HEIGHT)),
    num_plumes=P,
    num_frames=T,
    every=EVERY,
    warmup=WARMUP,
    peak=200.0,
    smallest=1e-4,
    wind=True,
)
# What a number read differs by at most, of itself and of `smallest`: half a step of the coding.
STEP = np.log1p(PLAN.peak / PLAN.smallest) / 255
ROUNDING = {
    "uint8": (np.expm1(STEP / 2) + 1e-4, PLAN.smallest * np.expm1(STEP / 2) + 1e-6),
    "float16": (2**-11 + 1e-5, 1e-6),
    "float32": (2e-5, 1e-6),
}


@pytest.fixture(scope="module")
def rastered(tmp_path_factory):
    """Paths of a raster bank in each coding, written in several blocks."""
    folder = tmp_path_factory.mktemp("bank")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(banks, "_BLOCK_NUMBERS", WIDTH * HEIGHT * 7)
        for dtype in ROUNDING:
            plan = replace(PLAN, dtype=dtype)
            write_bank(folder / dtype, PLUME, numbers(), KEY, plan, {"frames_per_second": 5.0})
    return {dtype: folder / dtype for dtype in ROUNDING}


@pytest.fixture(scope="module")
def smell(live):
    """`smell(p, t, positions float32[n, 2])`: the live concentrations."""
    sample = jax.jit(lambda state, at: PLUME.sample(state, at, numbers()).concentration)
    return lambda p, t, at: np.asarray(sample(live(p, t), at))


@pytest.mark.parametrize("dtype", ROUNDING)
def test_a_raster_bank_holds_the_live_plume_to_its_rounding(rastered, smell, dtype):
    movie = open_movie(rastered[dtype])
    assert movie.frames.shape == (P, T, HEIGHT, WIDTH)
    assert movie.frames.dtype == dtype
    y, x = np.mgrid[:HEIGHT, :WIDTH].astype(np.float32)
    cells = np.stack([x.ravel(), y.ravel()], axis=-1)
    relative, absolute = ROUNDING[dtype]
    for p in range(P):
        for t in range(0, T, 5):
            gas = decode(movie.frames[p, t], movie.meta).ravel()
            expected = smell(p, t, cells)
            assert 0.1 < expected.max() < PLAN.peak
            np.testing.assert_allclose(gas, expected, rtol=relative, atol=absolute)


def test_every_episode_of_a_batch_on_a_raster_bank_smells_the_live_plume(rastered, smell):
    plume, params = movie_plume(open_movie(rastered["uint8"]))
    assert plume.unit == PLUME.unit
    states = played(plume, params, 6)
    relative, absolute = ROUNDING["uint8"]
    smelt = np.zeros((7, LANES))
    for t, lane in np.ndindex(smelt.shape):
        at = np.asarray(states.agent.position[t, lane])[None]
        smelt[t, lane] = smell(states.plume.movie[t, lane], states.plume.phase[t, lane], at)[0]
    np.testing.assert_allclose(states.observation[..., 0], smelt, rtol=relative, atol=absolute)
    assert np.median(smelt) > 1e-4


def test_a_raster_bank_holds_the_wind_and_the_source(rastered, live):
    movie = open_movie(rastered["uint8"])
    assert movie.wind.shape == (P, T, 2, HEIGHT, WIDTH)
    assert movie.meta.wind_per_second == movie.meta.frames_per_second == 5
    assert movie.meta.sources == ((2.0, 5.0),)
    for p, t in ((0, 0), (2, T - 1)):
        at = jnp.asarray([[3.0, 4.0]])
        wind = PLUME.sample(live(p, t), at, numbers()).wind[0]
        np.testing.assert_allclose(movie.wind[p, t, :, 4, 3], wind, rtol=1e-3)


def test_an_interrupted_bank_goes_on_to_where_it_would_have_ended(rastered, tmp_path, monkeypatch):
    monkeypatch.setattr(banks, "_BLOCK_NUMBERS", WIDTH * HEIGHT * 7)
    told = []

    def stop_in_the_second_plume(done, total):
        told.append((done, total))
        if done > T + 8:
            raise KeyboardInterrupt

    path = tmp_path / "bank"
    arguments = (path, PLUME, numbers(), KEY, PLAN, {"frames_per_second": 5.0})
    with pytest.raises(KeyboardInterrupt):
        write_bank(*arguments, stop_in_the_second_plume)
    assert not path.exists()
    monkeypatch.setattr(banks, "_BLOCK_NUMBERS", WIDTH * HEIGHT * 5)
    with pytest.raises(ValidationError, match="another kind"):
        write_bank(*arguments[:-2], replace(PLAN, smallest=1e-3), arguments[-1])
    again = []
    write_bank(*arguments, lambda done, total: again.append(done))
    assert again[0] == told[-1][0] > T  # nothing is done twice
    assert again[-1] == told[-1][1] == P * T
    for name in ("frames.npy", "wind.npy", "movie.json"):
        assert (path / name).read_bytes() == (rastered["uint8"] / name).read_bytes()
    assert not path.with_name("bank.part").exists()


def test_what_cannot_be_is_refused(tmp_path, bank):
    gaussian = GaussianPlume((8, 8))
    with pytest.raises(ValidationError, match="thin"):
        Bank(gaussian, 1, 4, thinned=True)
    for field in ({"num_frames": 0}, {"num_plumes": 0}, {"ends": "stop"}):
        with pytest.raises(ValidationError, match=next(iter(field))):
            Bank(**{"plume": gaussian, "num_plumes": 1, "num_frames": 4, **field})
    plume, params = bank()
    for name, value in (("keep", np.float32(1.5)), ("start_frames", np.int32([0, T]))):
        with pytest.raises(ValidationError, match=f"plume.{name}"):
            plume.validate(params.replace(**{name: value}))
    fewer = jax.tree.map(lambda x: x[:-1], params.frames)
    with pytest.raises(ValidationError, match=f"{P * T} states"):
        plume.validate(params.replace(frames=fewer))
    for numbers_ in ({"peak": 0.0}, {"every": 0}, {"num_frames": 0}):
        with pytest.raises(ValidationError, match=next(iter(numbers_))):
            replace(PLAN, **numbers_)
    with pytest.raises(ValidationError, match="sources"):
        write_bank(tmp_path / "moving", Leaving(), (), KEY, PLAN)
    assert not (tmp_path / "moving").exists()


class Leaving(GaussianPlume):
    """A plume whose source moves on."""

    def default_params(self):
        return ()

    def start(self, key, params):
        return jnp.asarray([2.0, 5.0])

    def advance(self, key, state, params):
        return state + np.float32(0.1)

    def sample(self, state, positions, params):
        return Air(jnp.ones(len(positions)), jnp.zeros_like(positions))
