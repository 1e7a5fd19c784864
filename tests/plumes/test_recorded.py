"""tests/plumes/test_recorded: the player of movies: where, when, which, and how it decodes."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import jaxprs_in_params

import plumejax
from plumejax.base.errors import ValidationError
from plumejax.plumes.recorded import Playing, RecordedPlume

GOLDEN = Path(__file__).parents[1] / "golden" / "recorded_episodes.json"
W, H, T = 6, 5, 4
PLAIN = RecordedPlume(T, (W, H))
SMOOTH = RecordedPlume(T, (W, H), space="linear", time="linear")
PLACE = {"origin": np.asarray([-3.0, 10.0], np.float32), "spacing": np.asarray([0.5, 2.0], "f4")}


def _with(plume, **numbers):
    """The plume's params with some numbers, and the source in the middle of the grid."""
    params = plume.default_params().replace(**numbers)
    middle = params.origin + params.spacing * (np.asarray(plume.grid_size, np.float32) - 1) / 2
    return params.replace(source=middle, axis=middle[1])


def _state(phase, movie=(), mirrored=()):
    return Playing(phase=phase, movie=movie, mirrored=mirrored)


@partial(jax.jit, static_argnums=0)
def _sample(plume, state, positions, params):
    return plume.sample(state, positions, params)


def _states(plume, params, n=4000):
    keys = jax.random.split(jax.random.key(1), n)
    return jax.jit(jax.vmap(plume.start, in_axes=(0, None)))(keys, params)


def test_frames_play_in_a_loop_from_a_uniform_phase():
    plume = RecordedPlume(num_frames=4, grid_size=(3, 2))
    frames = np.arange(24, dtype=np.float32).reshape(4, 2, 3)
    params = plume.default_params().replace(frames=frames)
    phases = _states(plume, params).phase
    share = np.bincount(phases, minlength=4) / 4000
    # Four standard errors of a share of a quarter.
    assert np.all(np.abs(share - 0.25) < 4 * np.sqrt(0.25 * 0.75 / 4000))
    state, seen = _state(jnp.int32(2)), []
    for _ in range(6):
        state = plume.advance(jax.random.key(0), state, params)
        seen.append(int(state.phase))
    assert seen == [3, 0, 1, 2, 3, 0]
    positions = jnp.asarray([[0, 0], [2, 1], [1.4, 0.6], [3, 0], [-1, 1], [1, 2]], jnp.float32)
    air = _sample(plume, _state(jnp.int32(1)), positions, params)
    assert air.concentration.tolist() == [6.0, 11.0, 10.0, 0.0, 0.0, 0.0]
    assert not air.wind.any()


def test_an_episode_begins_between_its_first_and_last_start_frame():
    for plume in (PLAIN, replace(PLAIN, time="held")):
        params = plume.default_params().replace(start_frames=np.asarray([1, 2], np.int32))
        phases = np.asarray(_states(plume, params, 200).phase)
        assert set(phases.tolist()) == {1, 2}
        assert phases.dtype == (np.int32 if plume.time == "frame" else np.float32)
    assert PLAIN.default_params().start_frames.tolist() == [0, T - 1]
    assert replace(PLAIN, ends="clamp").default_params().start_frames.tolist() == [0, 0]


def _linear(x, y, t):
    """Linear in each of its three arguments, and what bilinear interpolation meets exactly."""
    return 40.0 + 2.0 * x + 0.5 * y + 3.0 * t - 0.25 * x * y + 0.125 * t * y


@pytest.fixture(scope="module")
def field():
    """Params of `SMOOTH` whose frames are `_linear` at the centres of cells of 0.5 by 2."""
    x, y = -3.0 + 0.5 * np.arange(W), 10.0 + 2.0 * np.arange(H)
    frames = _linear(x[None, None], y[None, :, None], np.arange(T)[:, None, None])
    return _with(SMOOTH, frames=frames.astype(np.float32), **PLACE)


def test_space_and_time_are_exact_on_linear_fields_and_their_gradients(field):
    rng = np.random.default_rng(0)
    positions = rng.uniform([-3.0, 10.0], [-0.5, 18.0], (64, 2)).astype(np.float32)

    @jax.jit
    def read(at, t):
        def total(at):
            gas = SMOOTH.sample(_state(t), at, field).concentration
            return gas.sum(), gas

        slope, gas = jax.grad(total, has_aux=True)(at)
        return gas, slope

    x, y = positions.T
    for t in (0.0, 0.25, 1.5, 3.0):
        gas, slope = read(positions, jnp.float32(t))
        np.testing.assert_allclose(gas, _linear(x, y, t), rtol=2e-6)
        want = np.stack([2.0 - 0.25 * y, 0.5 - 0.25 * x + 0.125 * t], axis=1)
        np.testing.assert_allclose(slope, want, atol=2e-4)


def test_nothing_is_read_outside_the_cells(field):
    inside = np.asarray([[-3.24, 9.1], [-0.26, 18.9], [-1.0, 14.0]], np.float32)
    outside = np.asarray([[-3.26, 14.0], [-0.24, 14.0], [-1.0, 8.9], [-1.0, 19.1]], np.float32)
    for plume in (SMOOTH, replace(SMOOTH, space="cell")):
        state = _state(jnp.float32(1.0))
        assert np.all(_sample(plume, state, inside, field).concentration > 0)
        assert not _sample(plume, state, outside, field).concentration.any()
    # Between the outer centres and the edge it is that of the centres.
    corner, centre = np.asarray([[-3.24, 9.1]], "f4"), np.asarray([[-3.0, 10.0]], "f4")
    np.testing.assert_array_equal(
        _sample(SMOOTH, state, corner, field).concentration,
        _sample(SMOOTH, state, centre, field).concentration,
    )


@pytest.mark.parametrize(
    ("time", "ends", "want"),
    [
        ("held", "loop", [0, 1, 2, 3, 3, 0, 1]),
        ("held", "clamp", [0, 1, 2, 3, 3, 3, 3]),
        ("linear", "loop", [0.75, 1.5, 2.25, 3.0, 0.75, 0.5, 1.25]),
        ("linear", "clamp", [0.75, 1.5, 2.25, 3.0, 3.0, 3.0, 3.0]),
    ],
)
def test_time_goes_on_by_frames_per_step(time, ends, want):
    plume = RecordedPlume(T, (1, 1), time=time, ends=ends)
    frames = np.arange(T, dtype=np.float32)[:, None, None]
    params = plume.default_params().replace(frames=frames, frames_per_step=np.float32(0.75))
    state, seen = _state(jnp.float32(0.0)), []
    for _ in range(7):
        state = plume.advance(jax.random.key(0), state, params)
        seen.append(float(_sample(plume, state, jnp.zeros((1, 2)), params).concentration[0]))
    # After frame 3 comes 0 again: at 3.75 a quarter of 3 is left, at 4.5 the phase is 0.5.
    np.testing.assert_allclose(seen, want)


def test_each_episode_plays_one_of_the_movies():
    plume = replace(PLAIN, num_movies=3, mirrored=True)
    frames = np.broadcast_to(np.arange(3 * T, dtype=np.float32)[:, None, None], (3 * T, H, W))
    params = plume.default_params().replace(frames=frames)
    states = _states(plume, params)
    # Movie, frame and mirror are drawn independently.
    which = (states.movie * T + states.phase) * 2 + states.mirrored.astype(jnp.int32)
    triples, share = np.bincount(which, minlength=6 * T) / 4000, 1 / (6 * T)
    assert np.all(np.abs(triples - share) < 4 * np.sqrt(share * (1 - share) / 4000))
    state = _state(jnp.int32(3), jnp.int32(1), jnp.asarray(False))
    at = np.zeros((1, 2), np.float32)
    assert _sample(plume, state, at, params).concentration[0] == 7
    state = plume.advance(jax.random.key(0), state, params)
    assert _sample(plume, state, at, params).concentration[0] == 4


def test_a_mirrored_episode_is_the_other_seen_in_a_mirror():
    plume = RecordedPlume(T, (W, H), space="linear", mirrored=True, wind_frames=1)
    rng = np.random.default_rng(1)
    params = _with(
        plume,
        frames=rng.uniform(0, 1, (T, H, W)).astype(np.float32),
        wind=rng.normal(0, 1, (1, 2, H, W)).astype(np.float16),
        **PLACE,
    )
    params = params.replace(source=np.asarray([-3.0, 12.0], np.float32), axis=np.float32(13.0))
    plain, mirrored = (_state(jnp.int32(2), (), jnp.asarray(m)) for m in (False, True))
    here = rng.uniform([-3.0, 10.0], [-0.5, 16.0], (32, 2)).astype(np.float32)
    there = here * np.asarray([1, -1], "f4") + np.asarray([0, 26], "f4")
    a, b = _sample(plume, plain, here, params), _sample(plume, mirrored, there, params)
    np.testing.assert_allclose(a.concentration, b.concentration, rtol=1e-5)
    np.testing.assert_allclose(np.asarray(a.wind) * [1, -1], b.wind, rtol=1e-4, atol=1e-5)
    assert plume.sources(plain, params).tolist() == [[-3.0, 12.0]]
    assert plume.sources(mirrored, params).tolist() == [[-3.0, 14.0]]


def test_several_sources_are_told():
    params = PLAIN.default_params().replace(source=np.asarray([[1, 2], [3, 4]], np.float32))
    assert PLAIN.sources(_state(jnp.int32(0)), params).tolist() == [[1, 2], [3, 4]]
    PLAIN.validate(params)


@pytest.mark.parametrize(
    ("coding", "dtype", "want"),
    [
        ("linear", "uint8", lambda raw: np.maximum(0, 0.5 * (raw - 10))),
        ("linear", "float16", lambda raw: np.maximum(0, 0.5 * (raw - 10))),
        ("log", "uint8", lambda raw: 0.5 * np.expm1(0.02 * raw)),
    ],
)
def test_raw_numbers_are_decoded_where_they_are_read_and_nowhere_else(coding, dtype, want):
    plume = replace(SMOOTH, coding=coding, num_frames=50)
    raw = np.random.default_rng(2).integers(0, 256, (50, H, W)).astype(dtype)
    offset = 0.02 if coding == "log" else 10.0
    params = _with(plume, frames=raw, scale=np.float32(0.5), offset=np.float32(offset), **PLACE)
    plume.validate(params)
    y, x = np.mgrid[:H, :W]
    centres = np.stack([x.ravel(), y.ravel()], 1) * params.spacing + params.origin
    air = _sample(plume, _state(jnp.float32(7.0)), centres.astype(np.float32), params)
    np.testing.assert_allclose(air.concentration, want(raw[7].astype(float)).ravel(), rtol=1e-5)

    def read(params):
        states = _state(jnp.zeros(8, jnp.float32))
        at = jnp.zeros((8, 1, 2), jnp.float32)
        return jax.vmap(plume.sample, in_axes=(0, 0, None))(states, at, params)

    jaxpr = jax.make_jaxpr(read)(params)
    shapes = [v.aval.size for eqn in _equations(jaxpr.jaxpr) for v in eqn.outvars]
    assert max(shapes) < raw.size  # no copy of the frames, decoded or one a lane


def _equations(jaxpr):
    for eqn in jaxpr.eqns:
        yield eqn
        for inner in jaxprs_in_params(eqn.params):
            yield from _equations(inner)


def test_wind_has_its_own_frames_and_an_offset():
    plume = replace(SMOOTH, wind_frames=3, num_movies=2)
    u = np.asarray([8.0, 8.0, 8.0, 1.0, 2.0, 4.0], np.float16)
    wind = np.stack([u, -u], axis=1)[..., None, None] * np.ones((1, 1, H, W), np.float16)
    half = {"wind_rate": np.float32(0.5), "wind_start": np.float32(-0.5)}
    params = _with(plume, wind=wind, **half, **PLACE)
    plume.validate(params)
    at = np.asarray([[-2.0, 12.0], [50.0, 50.0]], np.float32)
    # Frame 0 is before the wind's first, frame 1 its first, frame 3 its second.
    for frame, want in ((0.0, 1.0), (1.0, 1.0), (2.0, 1.5), (3.0, 2.0)):
        air = _sample(plume, _state(jnp.float32(frame), jnp.int32(1)), at, params)
        np.testing.assert_allclose(air.wind, [[want, -want]] * 2)
    held = replace(plume, time="held")
    for frame, want in ((2.0, 1.0), (3.5, 2.0)):
        air = _sample(held, _state(jnp.float32(frame), jnp.int32(1)), at, params)
        assert air.wind[0, 0] == want


def test_numbers_stay_float32_where_x64_is_on():
    with jax.enable_x64(True):
        params = _with(SMOOTH, frames=np.ones((T, H, W), np.float16), **PLACE)

        @jax.jit
        def play(key, params):
            state = SMOOTH.advance(key, SMOOTH.start(key, params), params)
            return state, SMOOTH.sample(state, jnp.zeros((1, 2), jnp.float32), params)

        state, air = play(jax.random.key(0), params)
        for number in (state.phase, air.concentration, air.wind):
            assert number.dtype == jnp.float32


def _bad(plume, **numbers):
    return plume, plume.default_params().replace(**numbers)


BAD = {
    "frames.shape": _bad(PLAIN, frames=np.zeros((T, W, H), np.float32)),
    "frames": _bad(PLAIN, frames=np.full((T, H, W), -1.0, np.float32)),
    "spacing": _bad(PLAIN, spacing=np.zeros(2, np.float32)),
    "source": _bad(PLAIN, source=np.asarray([W + 1.0, 0.0], np.float32)),
    "start_frames": _bad(PLAIN, start_frames=np.asarray([0, T], np.int32)),
    "frames_per_step": _bad(PLAIN, frames_per_step=np.float32(2.0)),
    "scale": _bad(PLAIN, scale=np.float32(0.0)),
    "offset": _bad(replace(PLAIN, coding="log"), offset=np.float32(0.0)),
    "wind.shape": _bad(replace(PLAIN, wind_frames=2), wind=np.zeros((1, 2, H, W), np.float16)),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_numbers_are_refused_by_name(name):
    plume, params = BAD[name]
    with pytest.raises(ValidationError, match=rf"^plume\.{name} = "):
        plume.validate(params)


def test_bad_choices_are_refused():
    for choice in ({"space": "cubic"}, {"num_frames": 0}, {"num_movies": 2**24}):
        with pytest.raises(ValidationError, match=next(iter(choice))):
            replace(PLAIN, **choice)


def test_a_nan_in_the_frames_is_refused():
    frames = np.zeros((T, H, W), np.float32)
    frames[1, 2, 3] = np.nan
    with pytest.raises(ValidationError, match=r"plume\.frames"):
        PLAIN.validate(PLAIN.default_params().replace(frames=frames))


def test_recorded_task_is_that_of_behaviour_version_2(recorded_choices):
    choices, near = recorded_choices
    env, params = plumejax.make("Recorded-v0", overrides=near, **choices)
    keys = jax.random.split(jax.random.key(7), 6)

    @jax.jit
    def play(keys):
        def step(states, t):
            each = jax.vmap(jax.random.fold_in, in_axes=(0, None))(keys, t)
            actions = jax.vmap(lambda key: jax.random.randint(key, (), 0, 4))(each)
            states = jax.vmap(env.step, in_axes=(0, 0, 0, None))(each, states, actions, params)[1]
            return states, (states.plume.phase, states.agent.position)

        _, states = jax.vmap(env.reset, in_axes=(0, None))(keys, params)
        first = (states.plume.phase, states.agent.position)
        return first, jax.lax.scan(step, states, jnp.arange(12))[1]

    golden = json.loads(GOLDEN.read_text())
    (phase, position), (phases, positions) = play(keys)
    assert phase.tolist() == golden["phase"]
    assert position.tolist() == golden["position"]
    assert phases[-1].tolist() == golden["last_phase"]
    assert positions[-1].tolist() == golden["last_position"]
