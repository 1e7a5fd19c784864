"""tests/plumes/test_gaussian: the closed forms written out again, and what has to hold of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import k0e

from plumejax.base.errors import ValidationError
from plumejax.plumes.gaussian import (
    AnisotropicGaussianPlume,
    GaussianPlume,
    WindGaussianPlume,
)
from plumejax.plumes.sources import Drift, RunAndTumble

ROUND, LONG = GaussianPlume((64, 48)), AnisotropicGaussianPlume((64, 48))
FLAT, DEEP = WindGaussianPlume(2), WindGaussianPlume(3)
GRID = np.stack([x.ravel() for x in np.meshgrid(np.arange(64.0), np.arange(48.0))], -1).astype("f")


def read(plume, params, places):
    """float32[n]: the concentration at `places` when an episode starts."""
    state = plume.start(jax.random.key(0), params)
    return np.asarray(SAMPLE(plume, state, np.asarray(places, np.float32), params).concentration)


SAMPLE = jax.jit(lambda plume, *args: plume.sample(*args), static_argnums=0)


# The formulas as they are printed, in float64: of numbers by name, and places float[n, d].


def round_form(n, places):
    return np.exp(-np.sum((places - n["source"]) ** 2, axis=1) / (2 * n["sigma"] ** 2))


def long_form(n, places):
    turned = np.exp(-1j * np.deg2rad(n["angle"])) * ((places - n["source"]) @ [1, 1j])
    return np.exp(-((turned.real / n["sigma"][0]) ** 2 + (turned.imag / n["sigma"][1]) ** 2) / 2)


def decay_constant(n):
    wind, level = n["velocity"], n["diffusivity"]
    return np.sqrt(wind @ wind / (4 * level**2) + n["decay"] / level)


def flat_form(n, places):
    away, level = places - n["source"], n["diffusivity"]
    kr = decay_constant(n) * np.maximum(np.linalg.norm(away, axis=1), n["radius"])
    power = away @ n["velocity"] / (2 * level) - kr
    return n["rate"] / (2 * np.pi * level) * np.exp(power) * k0e(kr)


def deep_form(n, places):
    total, level, vertical = 0.0, n["diffusivity"], n["vertical"]
    for sign, weight in ((1, 1), (-1, n["reflection"])):
        away = places - n["source"] * [1, 1, sign]
        stretched = away * [1, 1, np.sqrt(level / vertical)]
        r = np.maximum(np.linalg.norm(stretched, axis=1), n["radius"])
        power = away[:, :2] @ n["velocity"] / (2 * level) - decay_constant(n) * r
        total += weight * np.exp(power) / (4 * np.pi * np.sqrt(level * vertical) * r)
    return n["rate"] * total


def numbers(plume, **given):
    """`(params, numbers)`: the default numbers, but for those given, and the same in float64."""
    params = plume.default_params()
    params = params.replace(**{name: np.asarray(x, np.float32) for name, x in given.items()})
    plume.validate(params)
    names = [name for name in params.__dataclass_fields__ if name != "source_motion"]
    return params, {name: np.asarray(getattr(params, name), np.float64) for name in names}


IN_WIND = {"diffusivity": 0.3, "decay": 0.02, "rate": 2.0, "radius": 0.1}
OVER_GROUND = IN_WIND | {"vertical": 0.1, "reflection": 0.8, "source": [1.0, -2.0, 1.5]}
FORMS = [
    (ROUND, round_form, {"sigma": 7}),
    (LONG, long_form, {"sigma": [14, 6], "angle": 30}),
    (FLAT, flat_form, IN_WIND | {"velocity": [0.3, 0.1]}),
    (FLAT, flat_form, IN_WIND | {"velocity": [0.0, 0.0]}),
    (DEEP, deep_form, OVER_GROUND | {"velocity": [0.5, 0.0]}),
    (DEEP, deep_form, OVER_GROUND | {"velocity": [-0.3, 0.4]}),
    (DEEP, deep_form, OVER_GROUND | {"velocity": [0.0, 0.0]}),
]


def around(params, spread=4.0):
    """float32[40, d]: places around the source, above the ground, and the source itself."""
    source = params.source
    places = source + np.random.default_rng(0).normal(0, spread, (40, len(source)))
    places[0], places[:, 2:] = source, np.abs(places[:, 2:])
    return places.astype(np.float32)


@pytest.mark.parametrize(("plume", "form", "given"), FORMS)
def test_the_plume_is_its_formula(plume, form, given):
    params, exact = numbers(plume, **given)
    places = around(params)
    np.testing.assert_allclose(read(plume, params, places), form(exact, places), rtol=2e-5)


@pytest.mark.parametrize(("plume", "form", "given"), FORMS)
def test_gradients_are_the_slopes_of_the_formula(plume, form, given):
    """By every number and by the place, also at the source, beside float64 differences."""
    params, exact = numbers(plume, **given)
    places = around(params)
    values = form(exact, places)
    slopes, by_place = SLOPES(plume, params, places)
    # In still air the concentration has a kink as a function of the wind.
    still = not np.any(exact.get("velocity", 1))
    for name in (set(exact) | {"place"}) - ({"velocity"} if still else set()):
        here = name == "place"
        number = np.zeros(places.shape[1]) if here else exact[name]
        got = np.asarray(by_place if here else getattr(slopes, name), float)
        for index in np.ndindex(number.shape):
            step = np.zeros(number.shape)
            step[index] = h = 1e-5 * max(np.abs(number).max(), 0.1)
            moved = [
                form(exact, places + sign * step)
                if here
                else form(exact | {name: number + sign * step}, places)
                for sign in (1, -1)
            ]
            slope = (moved[0] - moved[1]) / (2 * h)
            close = 1e-4 * np.abs(slope) + 1e-5 * values / max(np.abs(number).max(), 1)
            assert np.all(np.abs(got[:, *index] - slope) < close), (name, index)


def slopes_at(plume, params, places):
    """Gradients of the concentration at each of float32[n, d]: by the numbers, and by the place."""

    def at(params, place):
        state = plume.start(jax.random.key(0), params)
        return plume.sample(state, place[None], params).concentration[0]

    return jax.vmap(jax.grad(at, argnums=(0, 1)), in_axes=(None, 0))(params, places)


SLOPES = jax.jit(slopes_at, static_argnums=0)


@pytest.mark.parametrize("plume", [FLAT, DEEP])
@pytest.mark.parametrize("speed", [0.0, 1e-18, 1e-9])
def test_gradients_at_a_tiny_source_in_hardly_any_wind_are_finite(plume, speed):
    for diffusivity in (1e-5, 0.05, 100.0):
        params, _ = numbers(
            plume, velocity=[speed, 0], radius=1e-7, decay=0.1, diffusivity=diffusivity
        )
        places = around(params)
        places[1] = params.source + np.float32(1e-6)
        for leaf in jax.tree.leaves(SLOPES(plume, params, places)):
            assert np.all(np.isfinite(leaf))


def test_equal_widths_make_a_round_gaussian():
    turned, _ = numbers(LONG, sigma=[7, 7], angle=77)
    params, _ = numbers(ROUND, sigma=7)
    np.testing.assert_allclose(read(LONG, turned, GRID), read(ROUND, params, GRID), rtol=1e-4)


@settings(max_examples=20)
@given(
    sigma=st.tuples(st.floats(0.5, 30, width=32), st.floats(0.5, 30, width=32)),
    angle=st.floats(-360, 360, width=32),
    offset=st.tuples(st.integers(-15, 15), st.integers(-15, 15)),
)
def test_peak_symmetry_and_decay(sigma, angle, offset):
    """1 at the source, the same on opposite sides, less and less along any ray."""
    params = LONG.default_params().replace(
        sigma=np.asarray(sigma, np.float32), angle=np.float32(angle)
    )
    rays = np.asarray([32, 24]) + np.outer(np.linspace(-1, 1, 41), offset)
    got = read(LONG, params, rays)
    assert got[20] == 1
    np.testing.assert_allclose(got, got[::-1], rtol=2e-4, atol=1e-30)
    assert np.all(np.diff(got[20:]) <= 0)


def test_outside_the_grid_there_is_nothing():
    edge = [[-0.5, 3], [63.49, 3], [-0.51, 3], [63.5, 3], [3, 48]]
    for plume in (ROUND, LONG):
        params = plume.default_params().replace(sigma=np.float32(50.0) * np.ones((), np.float32))
        if plume is LONG:
            params = params.replace(sigma=np.float32([50, 50]))
        assert list(read(plume, params, edge) > 0) == [True, True, False, False, False]


def test_the_wind_is_reported():
    params, _ = numbers(DEEP, velocity=[-0.3, 0.4])
    for plume, own in ((DEEP, params), (FLAT, numbers(FLAT, velocity=[-0.3, 0.4])[0])):
        air = SAMPLE(plume, plume.start(jax.random.key(0), own), around(own), own)
        expected = np.asarray([-0.3, 0.4, 0.0], np.float32)[: plume.dimensions]
        np.testing.assert_array_equal(air.wind, np.tile(expected, (40, 1)))


@pytest.mark.parametrize("plume", [FLAT, DEEP])
def test_what_is_emitted_goes_downwind(plume):
    """Over a line or plane across the wind, `u C - D dC/dx` sums to the rate."""
    params = plume.default_params().replace(diffusivity=np.float32(0.2), vertical=np.float32(0.1))
    y = np.linspace(-15, 15, 301)
    z = np.linspace(0, 12, 121)
    across = np.stack([a.ravel() for a in np.meshgrid(y, z)], -1) if plume is DEEP else y[:, None]
    h = 0.02

    def plane(x):
        return read(plume, params, np.column_stack([np.full(len(across), x), across])).astype(float)

    for x in (2.0, 9.0):
        flux = 0.5 * plane(x) - 0.2 * (plane(x + h) - plane(x - h)) / (2 * h)
        if plume is DEEP:
            flux = np.trapezoid(flux.reshape(121, 301), z, axis=0)
        assert abs(np.trapezoid(flux, y) - 1) < 2e-3


def test_the_ground_gives_all_back():
    """No flux through z = 0: the concentration is level there, and twice that without a ground."""
    params = DEEP.default_params()
    places = [[4.0, 0.2, z] for z in (0.0, 1e-3, 0.1)]
    ground, near, above = read(DEEP, params, places)
    assert abs(near - ground) < 1e-5 * ground < abs(above - ground)
    free = read(DEEP, params.replace(reflection=np.float32(0)), places)
    np.testing.assert_allclose(ground, 2 * free[0], rtol=1e-6)


def test_still_air_is_the_limit_of_little_wind():
    places = np.asarray([[3.0, 0.0, 1.0], [0.0, -2.0, 2.0], [-1.0, 1.0, 0.5], [0.0, 0.0, 1.0]])
    params = DEEP.default_params().replace(reflection=np.float32(0))
    still = read(DEEP, params.replace(velocity=np.zeros(2, np.float32)), places)
    r = np.maximum(np.linalg.norm(places - [0, 0, 1], axis=1), 0.05)
    np.testing.assert_allclose(still, 1 / (4 * np.pi * 0.05 * r), rtol=1e-5)
    for speed in (1e-6, 1e-12, 1e-25):
        little = params.replace(velocity=np.asarray([0.0, speed], np.float32))
        np.testing.assert_allclose(read(DEEP, little, places), still, rtol=2e-4)


def test_far_downwind_the_formula_does_not_cancel_itself():
    """300 m on, `u x / 2 D` and `k r` are 150000 each, and it is their difference that counts."""
    params, exact = numbers(DEEP, velocity=[3, 4], diffusivity=0.005, vertical=0.002)
    aside = np.random.default_rng(0).normal(0, 1, 20)
    places = np.outer(np.linspace(100, 300, 20), [0.6, 0.8]) + np.outer(aside, [0.8, -0.6])
    places = np.column_stack([places, np.linspace(0, 3, 20)]).astype(np.float32)
    # The sum of a large and a small power is right to what the place itself is rounded to.
    np.testing.assert_allclose(read(DEEP, params, places), deep_form(exact, places), rtol=1e-3)
    east, exact = numbers(DEEP, velocity=[5, 0], diffusivity=0.005, vertical=0.002)
    places = np.column_stack([np.linspace(100, 300, 20), aside, places[:, 2]]).astype(np.float32)
    np.testing.assert_allclose(read(DEEP, east, places), deep_form(exact, places), rtol=2e-5)


def test_two_coordinates_are_read_at_the_height():
    params = DEEP.default_params().replace(height=np.float32(0.4))
    flat, full = read(DEEP, params, [[2.0, 0.1]]), read(DEEP, params, [[2.0, 0.1, 0.4]])
    np.testing.assert_array_equal(flat, full)


def test_sources_in_wind_add_up_and_move():
    two = WindGaussianPlume(num_sources=2, source_motion=Drift())
    sources = np.asarray([[0, 0, 1], [2, -1, 0.5]], np.float32)
    places = sources[0] + np.asarray([[1, 0, 0], [4, -1, 1], [-1, 2, 0]], np.float32)
    apart = [read(DEEP, DEEP.default_params().replace(source=s), places) for s in sources]
    params = two.default_params().replace(source=sources)
    velocity = np.asarray([[0, 0, 0], [0.5, 1, 0]], np.float32)
    params = params.replace(source_motion=params.source_motion.replace(velocity=velocity))
    two.validate(params)
    np.testing.assert_allclose(read(two, params, places), sum(apart), rtol=1e-5)
    state = two.advance(jax.random.key(0), two.start(jax.random.key(0), params), params)
    np.testing.assert_array_equal(two.sources(state, params), sources + velocity)


@pytest.mark.parametrize("kind", [GaussianPlume, AnisotropicGaussianPlume])
def test_sources_add_up_and_move(kind):
    one, two = kind((64, 48)), kind((64, 48), num_sources=2, source_motion=Drift())
    sources = np.asarray([[20, 20], [40, 30]], np.float32)
    apart = [read(one, one.default_params().replace(source=s), GRID) for s in sources]
    params = two.default_params().replace(source=sources)
    velocity = np.asarray([[1, 0], [0, 0.5]], np.float32)
    params = params.replace(source_motion=params.source_motion.replace(velocity=velocity))
    two.validate(params)
    np.testing.assert_allclose(read(two, params, GRID), sum(apart), rtol=1e-5)
    state = two.advance(jax.random.key(0), two.start(jax.random.key(0), params), params)
    np.testing.assert_array_equal(two.sources(state, params), sources + velocity)
    assert not two.random_step
    assert kind(source_motion=RunAndTumble()).random_step


@pytest.mark.parametrize(
    ("plume", "changes", "field"),
    [
        (ROUND, {"sigma": np.float32(0)}, "plume.sigma"),
        (LONG, {"sigma": np.float32([3, -1])}, "plume.sigma"),
        (LONG, {"source": np.float32([99, 0])}, "plume.source"),
        (LONG, {"source": np.float32([[9, 0]])[0][:1]}, "plume.source.shape"),
        (DEEP, {"diffusivity": np.float32(0)}, "plume.diffusivity"),
        (DEEP, {"source": np.float32([0, 0, -1])}, "plume.source"),
        (DEEP, {"reflection": np.float32(2)}, "plume.reflection"),
        (DEEP, {"rate": np.float32(-1)}, "plume.rate"),
        (FLAT, {"velocity": np.zeros(2, np.float32)}, "plume.decay"),
        (WindGaussianPlume(4), {}, "dimensions"),
    ],
)
def test_bad_numbers_are_refused(plume, changes, field):
    params = plume.default_params().replace(**changes)
    with pytest.raises(ValidationError, match=field):
        plume.validate(params)


def test_no_emission_is_clean_air():
    params = DEEP.default_params().replace(rate=np.float32(0))
    DEEP.validate(params)
    assert np.all(read(DEEP, params, [[0.0, 0.0, 1.0], [3.0, 0.0, 1.0]]) == 0)


def test_the_plume_of_the_default_tasks_costs_what_it_did():
    """Whether sources could be several or move leaves nothing in the step of one that stays."""
    plume = GaussianPlume()
    assert not plume.random_start
    assert not plume.random_step
    state = plume.start(jax.random.key(0), plume.default_params())
    assert isinstance(state, jax.Array)
    assert state.shape == (2,)
    assert plume.advance(jax.random.key(0), state, plume.default_params()) is state
    assert jnp.array_equal(plume.sources(state, plume.default_params()), state[None])
