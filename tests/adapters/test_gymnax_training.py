"""tests/adapters/test_gymnax_training: the scan of a trainer that expects five values."""

import gymnax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import struct

from plumejax.adapters.gymnax import FIVE_VALUES, register_all

ID = "PlumeSearchLocal-v0" + FIVE_VALUES
CHOICES = {
    "grid_size": (8, 8),
    "overrides": {"plume.sigma": 3.0, "ending.radius": 1.0, "max_steps": 16},
}


@pytest.fixture(autouse=True)
def _lax():
    """The trainers promote dtypes freely."""
    register_all()
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


@struct.dataclass
class Logged:
    """What a five-valued log wrapper keeps beside the state."""

    state: object
    reward: jax.Array
    length: jax.Array


def test_a_trainer_in_one_scan_sums_up_every_episode():
    """The bookkeeping of purejaxrl: `vmap` over environments, `scan` over steps, `info` stacked."""
    env, params = gymnax.make(ID, **CHOICES)
    lanes, steps = 4, 50

    def step(logged, given):
        key, action = given
        keys = jax.random.split(key, lanes)
        observation, state, reward, done, info = jax.vmap(env.step, in_axes=(0, 0, 0, None))(
            keys, logged.state, action, params
        )
        total, length = logged.reward + reward, logged.length + 1
        row = {**info, "observation": observation, "done": done, "return": total, "length": length}
        return Logged(state, total * (1 - done), length * (1 - done)), row

    @jax.jit
    def train(key):
        reset_key, action_key, step_key = jax.random.split(key, 3)
        _, state = jax.vmap(env.reset, in_axes=(0, None))(
            jax.random.split(reset_key, lanes), params
        )
        actions = jax.random.randint(action_key, (steps, lanes), 0, env.num_actions)
        start = Logged(state, jnp.zeros(lanes), jnp.zeros(lanes, jnp.int32))
        return jax.lax.scan(step, start, (jax.random.split(step_key, steps), actions))

    logged, rows = train(jax.random.key(0))
    done = np.asarray(rows["done"])
    assert done.sum() >= lanes * (steps // 16)
    assert rows["terminated"].any()
    assert rows["truncated"].any()
    np.testing.assert_array_equal(done, rows["terminated"] | rows["truncated"])
    # The trainer's own sums are the task's.
    np.testing.assert_array_equal(rows["length"], rows["step_count"])
    np.testing.assert_allclose(rows["return"], rows["total_reward"])
    np.testing.assert_array_equal(rows["return"][done], rows["found"][done].astype(np.float32))
    np.testing.assert_array_equal(logged.length, logged.state.step_count)
