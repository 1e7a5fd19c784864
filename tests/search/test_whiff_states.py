"""tests/search/test_whiff_states: few states of how often odour came and how strong it was."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plumejax.base.errors import ValidationError
from plumejax.search.whiff_states import WhiffStates
from plumejax.search.whiffs import WhiffFeatures

EDGES = np.asarray([0.25, 0.5], np.float32), np.asarray([2.0], np.float32)


@pytest.fixture(scope="module")
def states(sensing, unsaturated):
    """`(sensor, params)`: 3 x 2 states of a window of 5 steps that cannot change."""
    nose, smells = unsaturated
    sensor = WhiffStates(WhiffFeatures(nose, length=5), num_intensities=2)
    of = sensor.of.default_params().replace(
        of=smells, window=np.int32(5), shortest=np.int32(5), floor=np.float32(0.1)
    )
    return sensor, sensing(sensor, of=of, intermittency=EDGES[0], intensity=EDGES[1])


def states_of(states, readings):
    sensor, params = states

    @jax.jit
    def run(features):
        return jax.vmap(lambda f: sensor.respond(None, f, (), params)[0])(features)

    def remember(state, reading):
        seen, state = sensor.of.respond(None, reading[None], state, inner)
        return state, seen

    inner = params.replace(sensor=params.sensor.of)
    air = jnp.asarray(readings, jnp.float32)
    features = jax.lax.scan(remember, sensor.of.start(inner), air)[1]
    return features, np.asarray(run(features))


def test_a_state_is_a_bin_of_how_often_and_a_bin_of_how_strong(states):
    # One whiff in five steps is 0.2 of them, two are 0.4, three 0.6; 2.0 is on its edge.
    readings = [0, 1, 1, 1, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 2, 0]
    features, numbers = states_of(states, readings)
    np.testing.assert_allclose(features[:5, 2], [0, 0.2, 0.4, 0.6, 0.6], atol=1e-6)
    # Whiffs leave the window again; 4 is strong, so is 2 by itself.
    expected = [0, 1, 3, 5, 5, 5, 3, 1, 0, 2, 2, 2, 2, 2, 0, 2, 2]
    np.testing.assert_array_equal(numbers, expected)


def test_every_state_is_in_the_space_and_reached(states):
    sensor, params = states
    space = sensor.space(params)
    assert space.n == 7
    often, strong = np.meshgrid([0.0, 0.2, 0.3, 1.0], [0.5, 3.0])
    grid = np.stack([often * 0, often, often, strong], axis=-1).reshape(-1, 4).astype(np.float32)
    numbers = jax.vmap(lambda f: sensor.respond(None, f, (), params)[0])(jnp.asarray(grid))
    assert numbers.dtype == jnp.int32
    assert set(np.asarray(numbers).tolist()) == set(range(7))


def test_the_published_bins_are_the_default(unsaturated):
    sensor = WhiffStates(WhiffFeatures(unsaturated[0]))
    own = sensor.default_params()
    assert sensor.space(None).n == 16
    np.testing.assert_allclose(own.intermittency, [0.33, 0.66])
    assert (own.of.window, own.of.shortest, own.of.fraction) == (10, 5, 0.5)


@pytest.mark.parametrize(
    ("name", "edges"),
    [
        ("intermittency", [0.5, 0.25]),
        ("intermittency", [0.5, 1.5]),
        ("intermittency", [0.5]),
        ("intensity", [0.0]),
        ("intensity", [np.nan]),
    ],
)
def test_edges_that_make_no_bins_are_refused(states, name, edges):
    sensor, params = states
    bad = params.sensor.replace(**{name: np.asarray(edges, np.float32)})
    with pytest.raises(ValidationError, match=f"sensor.{name}"):
        sensor.validate(params.replace(sensor=bad))


def test_what_the_window_refuses_is_named(states):
    sensor, params = states
    bad = params.sensor.replace(of=params.sensor.of.replace(window=np.int32(9)))
    with pytest.raises(ValidationError, match=r"sensor\.of\.window"):
        sensor.validate(params.replace(sensor=bad))
    with pytest.raises(ValidationError, match="a WhiffFeatures"):
        WhiffStates(sensor.of.of).validate(params.replace(sensor=bad))
