"""tests/adapters/test_gymnax_training: trainers that expect five values train on our tasks."""

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


@pytest.mark.slow
def test_rejax_trains_through_gymnax_register():
    rejax = pytest.importorskip("rejax")
    ppo = rejax.PPO.create(
        env=ID,
        env_params=CHOICES,
        agent_kwargs={"hidden_layer_sizes": (8,)},
        total_timesteps=1024,
        eval_freq=512,
        num_envs=8,
        num_steps=16,
        num_minibatches=2,
        num_epochs=1,
        learning_rate=0.01,
        skip_initial_evaluation=True,
    )
    start = ppo.init_state(jax.random.key(0))
    trained, (lengths, returns) = jax.jit(ppo.train)(train_state=start)
    assert returns.shape == (2, 128)
    assert ((returns == 0.0) | (returns == 1.0)).all()
    assert returns.any()
    assert ((lengths >= 1) & (lengths <= 16)).all()
    # An episode that found nothing ran to its limit.
    assert (lengths[returns == 0.0] == 16).all()
    before, after = (jax.tree.leaves(s.actor_ts.params) for s in (start, trained))
    assert any(not np.allclose(b, a) for b, a in zip(before, after, strict=True))
    assert all(np.isfinite(a).all() for a in after)


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
