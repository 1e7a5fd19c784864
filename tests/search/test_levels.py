"""tests/search/test_levels: harder levels have rarer odour, farther away."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plumejax
from plumejax.search.sensors import LocalConcentration

OPTIMISED = {"xla_backend_optimization_level": 3, "xla_cpu_use_fusion_emitters": True}
LEVELS = ("Easy", "Medium", "Hard")


def test_the_levels_of_the_local_search_grow_and_detect_more_rarely():
    made = [plumejax.make(f"PlumeSearchLocal-{level}-v0") for level in LEVELS]
    assert [env.arena.grid_size for env, _ in made] == [(32, 32), (64, 64), (128, 128)]
    np.testing.assert_allclose([params.sensor.probability for _, params in made], [1.0, 0.3, 0.1])


def test_a_component_that_is_given_keeps_its_numbers():
    env, params = plumejax.make("PlumeSearchLocal-Hard-v0", sensor=LocalConcentration())
    assert env.sensor == LocalConcentration()
    assert not hasattr(params.sensor, "probability")


@pytest.mark.long
@pytest.mark.parametrize(("level", "published"), [("Easy", 0.41), ("Medium", 0.08), ("Hard", 0.05)])
def test_the_intermittency_of_a_level_is_the_one_that_its_line_states(level, published):
    task = plumejax.registered_tasks()[f"PlumeTracking-Farrell-{level}-v0"]
    assert f"intermittency {published}" in task.summary
    env, params = plumejax.make(task.id)
    keys = jax.random.split(jax.random.key(0), 32)
    floor = params.sensor["odour"].floor

    @partial(jax.jit, compiler_options=OPTIMISED)
    @jax.vmap
    def share(key):
        plume_key, place_key = jax.random.split(key)
        state = env.plume.start(plume_key, params.plume)
        where = jax.random.uniform(place_key, (512, 2), jnp.float32)
        own = params.start
        places = jnp.asarray(own.low)[None] + where * jnp.asarray(own.high - own.low)[None]
        return jnp.mean(env.plume.sample(state, places, params.plume).concentration > floor)

    shares = np.asarray(share(keys))
    error = shares.std() / np.sqrt(len(shares))
    # Half a unit of the last digit of what is stated.
    assert abs(shares.mean() - published) < 3 * error + 0.005
