"""tests/search/test_composed: sensors put together, inside wrappers and wrappers inside them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plumejax
from plumejax.base.errors import ValidationError
from plumejax.base.spaces import Box
from plumejax.plumes.gaussian import WindGaussianPlume
from plumejax.search.antennae import OdourMotion, bilateral
from plumejax.search.components import hit
from plumejax.search.composed import Named, Stack, _flat
from plumejax.search.filters import LowPass
from plumejax.search.hits import PoissonHits, Threshold
from plumejax.search.sensors import Heading, LocalConcentration, LocalPatch, Position
from plumejax.search.wind_sensors import AmbientWind, ApparentWind

PARTS = (
    ("nose", LocalConcentration()),
    ("wind", ApparentWind()),
    ("tips", OdourMotion()),
)


def episode(sensor, overrides=None, key=0):
    """float[4, k]: what `sensor` observes at reset and in three moves, checked by its space."""
    env, params = plumejax.make(
        "PlumeSearchLocal-v0",
        grid_size=(16, 12),
        plume=WindGaussianPlume(),
        sensor=sensor,
        overrides=overrides,
    )

    @jax.jit
    def play(key, params):
        first, state = env.reset(key, params)

        def step(state, action):
            seen, state, *_ = env.step(key, state, action, params)
            return state, seen

        _, seen = jax.lax.scan(step, state, jnp.asarray([0, 1, 2], jnp.int32))
        return jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), first, seen)

    seen = play(jax.random.key(key), params)
    space = env.observation_space(params)
    assert np.all(jax.vmap(space.contains)(seen))
    return jax.tree.map(np.asarray, seen)


def test_a_wrapper_round_a_stack_is_a_stack_of_wrappers():
    outside = episode(LowPass(Stack(PARTS)))
    inside = episode(Stack(tuple((name, LowPass(sensor)) for name, sensor in PARTS)))
    np.testing.assert_array_equal(outside, inside)
    assert outside.shape == (4, 1 + 2 + 1)
    assert np.ptp(outside, axis=0).min() > 0


def test_stacks_and_names_nest():
    nested = Named(
        (("two", Stack((("flat", Stack(PARTS)), ("head", Heading())))), ("p", Position()))
    )
    seen = episode(nested)
    np.testing.assert_array_equal(seen["two"][:, :4], episode(Stack(PARTS)))
    np.testing.assert_allclose(seen["two"][:, 4:] ** 2 @ np.ones(2), 1, rtol=1e-6)
    assert seen["p"].shape == (4, 2)


def test_of_several_sensors_the_first_that_tells_of_hits_does():
    parts = (
        ("place", Position()),
        ("nose", Threshold(LocalConcentration())),
        ("count", PoissonHits(LocalConcentration(), 4)),
    )

    def told(sensor, seen):
        _, params = plumejax.make("PlumeSearchLocal-v0", sensor=sensor)
        return hit(sensor, seen, params)

    assert told(Stack(parts), jnp.asarray([3, 4, 1, 0]))
    assert not told(Stack(parts), jnp.asarray([3, 4, 0, 2]))
    assert told(Stack(parts[::2]), jnp.asarray([3, 4, 2]))
    nested = Named((("rest", Stack(parts[:1])), ("both", Stack(parts[1:]))))
    assert told(nested, {"rest": jnp.asarray([3, 4]), "both": jnp.asarray([1, 0])})
    assert told(Stack(parts[:1]), jnp.asarray([3, 4])) is None
    assert told(LocalConcentration(), jnp.asarray([1])) is None


def test_only_parts_that_draw_share_the_key():
    wind = AmbientWind(noisy=True)
    alone = episode(wind, {"sensor.spread": 1.0})
    beside = Stack((("nose", LocalConcentration()), ("wind", wind)))
    np.testing.assert_array_equal(episode(beside, {"sensor.wind.spread": 1.0})[:, 1:], alone)
    two = episode(
        Stack((("a", wind), ("b", wind))), {"sensor.a.spread": 1.0, "sensor.b.spread": 1.0}
    )
    assert np.all(two[:, :2] != two[:, 2:])
    assert beside.random_step
    assert not Stack(PARTS).random_step


def test_a_stack_is_bounded_as_its_parts_are(local):
    sensor = Stack((("place", Position()), ("patch", LocalPatch(3)), ("head", Heading())))
    params = local[1].replace(sensor=sensor.default_params())
    space = sensor.space(params)
    assert isinstance(space, Box)
    np.testing.assert_array_equal(space.low, [0] * 2 + [0] * 9 + [-1] * 2)
    np.testing.assert_array_equal(space.high, [127] * 2 + [1] * 9 + [1] * 2)


@pytest.mark.parametrize(
    ("bound", "shape", "flat"),
    [
        (2.0, (3,), [2, 2, 2]),
        ([1.0, 2.0, 3.0], (2, 3), [1, 2, 3, 1, 2, 3]),
        ([2.0, 5.0, 4.0], (2,), [5, 5]),
        ([[1.0, 7.0], [6.0, 2.0], [3.0, 3.0]], (2,), [6, 7]),
    ],
)
def test_a_bound_of_a_sweep_is_the_widest(bound, shape, flat):
    np.testing.assert_array_equal(_flat(bound, shape, jnp.max), flat)


def test_a_sweep_over_a_wrapped_stack_is_validated_whole(local):
    sensor = LowPass(Stack((*PARTS, ("place", Position()), ("pair", bilateral()))))
    own = jax.tree.map(lambda x: np.stack([x] * 5), sensor.default_params())
    sensor.validate(local[1].replace(sensor=own))
    own.of["pair"] = own.of["pair"].replace(reach=np.float32([1, 1, -1, 1, 1]))
    with pytest.raises(ValidationError, match=r"sensor\.of\.pair\.reach"):
        sensor.validate(local[1].replace(sensor=own))
