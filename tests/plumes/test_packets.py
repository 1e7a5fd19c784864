"""tests/plumes/test_packets: the packets' spread, counts, mass, gradients, sources and limits."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plumejax.base.errors import ValidationError
from plumejax.plumes import noise
from plumejax.plumes.flow import FourierFlow
from plumejax.plumes.packets import (
    OrnsteinUhlenbeckCrosswind,
    PacketPlume,
    RenewalCrosswind,
    TelegraphCrosswind,
    WhiteCrosswind,
)
from plumejax.plumes.sources import Drift

LASTING = (OrnsteinUhlenbeckCrosswind(), TelegraphCrosswind(), RenewalCrosswind())
STEPS, PACKETS = 40, 40_000
# Not optimised: that compiles twice as fast, for what runs only a few times.
QUICK = {"xla_backend_optimization_level": 0}
WIDE = {"low": np.full(2, -1e5, np.float32), "high": np.full(2, 1e5, np.float32)}


def spread(time, speed, age):
    """<y^2> of a velocity of variance speed^2 and correlation e^(-t / time)."""
    return 2 * time * speed**2 * (age - time * -np.expm1(-age / time))


@pytest.fixture(scope="module", params=[*LASTING, WhiteCrosswind()], ids=lambda p: type(p).__name__)
def paths(request):
    """`(process, params, run)`; `run(key, dt, steps)`: states [2, N] at both ends, paths [N]."""
    process = request.param
    params = process.default_params()

    @jax.jit
    def run(key, dt, steps):
        start = process.stationary(noise.words(jax.random.fold_in(key, 0), 1, PACKETS)[0])

        def step(index, carry):
            state, y = carry
            words = noise.words(jax.random.fold_in(key, index), process.num_words, PACKETS)
            state, moved = process.advance(words, state, dt, params)
            return state, y + moved

        end, y = jax.lax.fori_loop(1, 1 + steps, step, (start, jnp.zeros_like(start)))
        return jnp.stack([start, end]), y

    return process, params, run


# The second is half of the first. The third is beyond what the switching processes take.
@pytest.mark.parametrize("dt", [0.2, 0.1, 3.0])
def test_packets_spread_as_theory_says_whatever_the_step(paths, dt):
    process, params, run = paths
    if dt > 1 and isinstance(process, TelegraphCrosswind | RenewalCrosswind):
        with pytest.raises(ValidationError, match=r"plume\.dt"):
            process.validate(params, np.float32(dt))
        return
    (start, end), y = (np.asarray(x, float) for x in run(jax.random.key(3), np.float32(dt), STEPS))
    age = STEPS * dt
    if isinstance(process, WhiteCrosswind):
        want = 2 * params.diffusivity * age
    else:
        want = spread(2.0, 45.0, age)
        both = start * end
        error = 4 * both.std() / np.sqrt(PACKETS)
        assert abs(both.mean() - np.exp(-age / 2)) < error
        assert abs(np.square(end).mean() - 1) < 4 * np.sqrt(2 / PACKETS)
    error = 4 * np.square(y).std() / np.sqrt(PACKETS)
    assert error < 0.05 * want
    assert abs(np.square(y).mean() - want) < error
    assert abs(y.mean()) < 4 * np.sqrt(want / PACKETS)


def test_one_short_step_has_the_joint_law_of_velocity_and_displacement(paths):
    process, params, run = paths
    dt, decayed = 0.02, -np.expm1(-0.01)
    (start, end), y = (np.asarray(x, float) for x in run(jax.random.key(1), np.float32(dt), 1))
    if isinstance(process, WhiteCrosswind):
        assert abs(np.square(y).mean() / (2 * 1000 * dt) - 1) < 4 * np.sqrt(2 / PACKETS)
        return
    y = y / params.speed
    # Against going straight on, which says nearly all: what is left is all scatter.
    beyond = y - start * dt
    square, product = np.square(beyond), (end - start) * beyond
    want = spread(2.0, 1.0, dt) - 4 * dt * decayed + dt**2
    assert abs(square.mean() - want) < 4 * square.std() / np.sqrt(PACKETS)
    assert abs(product.mean() - dt * decayed) < 4 * product.std() / np.sqrt(PACKETS)


def test_velocities_are_those_of_their_law(paths):
    process, _, run = paths
    (_, end), y = (np.asarray(x, float) for x in run(jax.random.key(5), np.float32(0.2), STEPS))
    if isinstance(process, TelegraphCrosswind):
        assert set(np.unique(end)) == {-1.0, 1.0}
        assert np.abs(y).max() <= 45.0 * 8.0 * (1 + 1e-5)  # never faster than v
    else:
        normal = y / y.std() if isinstance(process, WhiteCrosswind) else end
        assert abs(np.mean(normal**4) - 3) < 4 * np.sqrt(96 / PACKETS)


DRIFTS = np.asarray([[0, 0], [5, 0], [-10, 0]], np.float32)
PLACES = np.asarray([[0, 0], [0, 1e4], [0, -1e4]], np.float32)


@pytest.fixture(scope="module")
def lanes():
    """Of 300 plumes of three sources that drift, in a wide box: `(plume, params, state)` at 3 s."""
    plume = PacketPlume(capacity=160, num_sources=3, source_motion=Drift())
    params = plume.default_params().replace(dt=np.float32(0.05), source=PLACES, **WIDE)
    params = params.replace(source_motion=params.source_motion.replace(velocity=DRIFTS))
    plume.validate(params)
    run = jax.jit(jax.vmap(lambda key: _after(plume, params, key, 60)), compiler_options=QUICK)
    return plume, params, run(jax.random.split(jax.random.key(0), 300))


def _after(plume, params, key, steps):
    """The state `steps` on."""
    first, key = jax.random.split(key)
    step = lambda state, key: (plume.advance(key, state, params), None)  # noqa: E731
    return jax.lax.scan(step, plume.start(first, params), jax.random.split(key, steps))[0]


def test_the_count_is_poisson(lanes):
    _, _, state = lanes
    counts = np.asarray(state.particles.alive).sum(axis=1).astype(float)
    np.testing.assert_array_equal(counts, state.particles.born)  # none has left, none was refused
    assert abs(counts.mean() - 90) < 4 * np.sqrt(90 / 300)
    assert abs(counts.var(ddof=1) - 90) < 4 * np.sqrt((2 * 90**2 + 90) / 300)


def test_packets_of_a_plume_move_and_spread_by_age(lanes):
    plume, params, state = lanes
    alive = np.asarray(state.particles.alive)
    age = np.asarray(state.particles.age, float)[alive]
    x, y = np.asarray(state.particles.position, float).transpose(1, 0, 2)[:, alive]
    which = np.select([np.abs(y) < 5e3, y > 0], [0, 1], 2)
    # Of each source alike, and born where it was then.
    counts = np.bincount(which, minlength=3)
    assert (np.abs(counts - 300 * 30) < 4 * np.sqrt(300 * 30)).all()
    np.testing.assert_allclose(x - 150 * age, DRIFTS[which, 0] * (3.0 - age), atol=2e-3)
    ends = plume.sources(jax.tree.map(lambda s: s[0], state), params)
    np.testing.assert_allclose(ends, PLACES + 3 * DRIFTS, rtol=1e-5, atol=1e-4)
    moved = age > 0.01
    square = (y - PLACES[which, 1])[moved] ** 2 / spread(2.0, 45.0, age[moved])
    assert abs(square.mean() - 1) < 4 * square.std() / np.sqrt(moved.sum())
    # The newborn start from the stationary law as well.
    fresh = np.asarray(state.crosswind)[alive][age < 0.2]
    assert abs(np.square(fresh).mean() - 1) < 4 * np.sqrt(2 / len(fresh))


def test_mass_and_radius(lanes):
    plume, params, state = lanes
    one = jax.tree.map(lambda x: x[0], state)
    # Packets a known way apart, of known age; the last is not alive.
    position = one.particles.position.at[:, :3].set(
        jnp.asarray([[0, 40, 20], [0, 10, 0]], jnp.float32)
    )
    particles = one.particles.replace(
        position=position,
        age=one.particles.age.at[:3].set(jnp.asarray([0.0, 2.0, 1.0], jnp.float32)),
        alive=jnp.zeros_like(one.particles.alive).at[:2].set(True),
    )
    one = one.replace(particles=particles)
    grid = np.stack(np.meshgrid(np.arange(-60, 100, 2.0), np.arange(-60, 70, 2.0)), -1)
    sample = jax.jit(plume.sample)
    field = sample(one, grid.reshape(-1, 2).astype(np.float32), params)
    mass = 4.0 * float(np.sum(field.concentration, dtype=float))
    assert mass == pytest.approx(2 * 1074.7, rel=1e-5)
    at = sample(one, np.asarray([[0, 7], [40, 10]], np.float32), params).concentration
    near = 1074.7 / (16 * np.pi) * np.exp(-49 / 16)
    squares = 16 + 4 * 10 * 2.0
    far = 1074.7 / (squares * np.pi)
    cross = 1074.7 / (squares * np.pi) * np.exp(-(40**2 + 3**2) / squares)
    np.testing.assert_allclose(at, [near + cross, far], rtol=1e-5)
    assert near == pytest.approx(1.0, rel=2e-3)  # the published choice of the amount


@pytest.fixture(scope="module")
def smell():
    """`(smell, numbers)`: concentration at three places after 1.5 s, and gradients by `numbers`."""
    plume = PacketPlume(capacity=32)
    base = plume.default_params().replace(dt=np.float32(0.05))
    places = np.asarray([[60, 5], [100, -12], [20, 2]], np.float32)

    def smell(numbers):
        params = base.replace(
            source=numbers["source"],
            wind=base.wind.replace(velocity=numbers["wind"]),
            diffusivity=numbers["diffusivity"],
            crosswind=base.crosswind.replace(speed=numbers["speed"], time=numbers["time"]),
            rate=numbers["rate"],
        )
        state = _after(plume, params, jax.random.key(4), 30)
        return jnp.sum(plume.sample(state, places + numbers["shift"], params).concentration)

    numbers = {
        "source": np.asarray([0, 0], np.float32),
        "wind": np.asarray([100, 0], np.float32),
        "diffusivity": np.float32(60),
        "speed": np.float32(12),
        "time": np.float32(1),
        "shift": np.zeros((1, 2), np.float32),
        "rate": np.float32(10),
    }
    return jax.jit(jax.value_and_grad(smell), compiler_options=QUICK), numbers


def test_gradients_are_those_of_finite_differences(smell):
    smell, numbers = smell
    value, gradient = smell(numbers)
    assert value > 0
    steps = {"diffusivity": 1.0, "time": 0.02}
    for name in numbers.keys() - {"rate"}:
        step = np.float32(steps.get(name, 0.2))
        got, scale = np.asarray(gradient[name]), np.abs(gradient[name]).max()
        assert scale > 0
        for index in np.ndindex(np.shape(numbers[name])):
            ends = []
            for sign in (1, -1):
                moved = np.array(numbers[name])
                moved[index] += sign * step
                ends.append(float(smell(numbers | {name: moved})[0]))
            assert abs((ends[0] - ends[1]) / (2 * step) - got[index]) < 5e-3 * scale


def test_nothing_blows_up_without_wind_emission_or_packets(smell):
    smell, numbers = smell
    none, flat = smell(numbers | {"rate": np.float32(0)})
    assert none == 0
    assert not any(np.any(leaf) for leaf in flat.values())
    still = {"wind": np.zeros(2, np.float32), "shift": np.asarray([[-20, 0]], np.float32)}
    still |= {"diffusivity": np.float32(0), "speed": np.float32(0)}
    value, gradient = smell(numbers | still)
    assert value > 0
    assert all(np.isfinite(leaf).all() for leaf in gradient.values())


def test_any_wind_carries_packets_and_is_felt():
    """With steps before the start, and three steps within a step."""
    plume = PacketPlume(capacity=16, wind=FourierFlow(), substeps=3, warmup=7)
    params = plume.default_params()
    params = params.replace(crosswind=params.crosswind.replace(speed=np.float32(0)))
    params = params.replace(wind=params.wind.replace(time=np.float32(1e9)))  # frozen
    places = np.asarray([[1, 2], [3, 4]], np.float32)

    @partial(jax.jit, compiler_options=QUICK)
    def run(keys):
        state = plume.start(keys[0], params)
        after = plume.advance(keys[1], state, params)
        position = state.particles.position
        for _ in range(3):
            position = position + params.dt * plume.wind.at(state.wind, position, params.wind)
        wind = plume.wind.at(state.wind, places.T, params.wind).T
        air = plume.sample(state, places, params)
        return state.particles, after.particles, position, wind, air.wind

    before, after, position, wind, felt = run(jax.random.split(jax.random.key(3)))
    assert 0 < before.born < 20
    assert float(after.age[0]) == pytest.approx(float(before.age[0]) + 3 / 60, rel=1e-4)
    both = np.asarray(before.alive & after.alive)
    assert both.any()
    np.testing.assert_allclose(after.position[:, both], position[:, both], atol=1e-4)
    np.testing.assert_allclose(felt, wind, rtol=1e-6)


def test_thinning_takes_packets_away(lanes):
    plume, params, state = lanes

    @jax.jit
    def compare(one):
        half = plume.thin(one, np.float32(0.5), jnp.uint32(7))
        places = one.particles.position.T
        airs = [plume.sample(s, places, params).concentration for s in (one, half)]
        return one.particles.alive, half.particles.alive, *airs

    whole, kept, thick, thin = compare(jax.tree.map(lambda x: x[1], state))
    assert (np.asarray(whole) >= np.asarray(kept)).all()
    assert 0 < kept.sum() < whole.sum()
    assert (thin <= thick).all()


def test_numbers_stay_float32_with_x64_on():
    plume = PacketPlume(capacity=8, warmup=1)
    params = plume.default_params()
    with jax.enable_x64(True):
        state = jax.eval_shape(plume.start, jax.random.key(0), params)
        state = jax.eval_shape(plume.advance, jax.random.key(0), state, params)
        air = jax.eval_shape(plume.sample, state, jnp.zeros((3, 2), jnp.float32), params)
    wide = {np.dtype("float64"), np.dtype("int64")}
    assert not {leaf.dtype for leaf in jax.tree.leaves((state, air))} & wide


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, 0.0) for name in ("radius", "dt")),
        *((name, -1.0) for name in ("diffusivity", "amount", "rate")),
        *(("rate", 1e4), ("amount", np.inf)),
        *(("source", [0.0, 1e4]), ("source", [0.0, np.nan])),
    ],
)
def test_a_bad_number_is_refused(name, value):
    plume = PacketPlume()
    params = plume.default_params()
    plume.validate(params)
    with pytest.raises(ValidationError, match=f"plume.{name}"):
        plume.validate(params.replace(**{name: np.asarray(value, np.float32)}))


@pytest.mark.parametrize("name", ["speed", "time"])
def test_a_bad_crosswind_is_refused(name):
    for process in LASTING:
        params = process.default_params().replace(**{name: np.float32(-1.0)})
        with pytest.raises(ValidationError, match=f"plume.crosswind.{name}"):
            process.validate(params, np.float32(0.01))
    with pytest.raises(ValidationError, match=r"plume\.crosswind\.diffusivity"):
        WhiteCrosswind().validate(WhiteCrosswind().default_params().replace(diffusivity=-1.0), 1.0)
