"""tests/base/test_pool: ready starts, what they are, and what they cost in independence."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plumejax.base.batch import Batch
from plumejax.base.errors import ValidationError
from plumejax.base.pool import Pool
from plumejax.base.rollout import rollout

LANES, SIZE, REFRESH = 8, 12, 3


class Up:
    """Always goes up."""

    def init(self, key):
        return ()

    def act(self, key, carry, observation):
        return jnp.int32(0), carry


jax.tree_util.register_static(Up)


@pytest.fixture(scope="module")
def pool(local):
    return Pool(Batch(local[0], LANES), SIZE, REFRESH)


def starts_of(states):
    """The position of every start, as a set of pairs."""
    return {tuple(place) for place in np.asarray(states.agent.position).tolist()}


def test_a_step_is_the_batch_own_where_no_lane_ends(pool, local):
    _, params = local
    _, state = pool.reset(jax.random.key(0), params)
    action = jnp.zeros(LANES, jnp.int32)
    observation, after, reward, terminated, truncated, _ = pool.step(
        jax.random.key(1), state, action, params
    )
    alone = pool.batch.advance(jax.random.key(2), state.lanes, action, params)
    going = ~(terminated | truncated)
    assert going.any()
    pick = lambda tree: jax.tree.map(lambda x: x[going], tree)  # noqa: E731
    chex.assert_trees_all_close(pick((observation, after.lanes)), pick(alone[:2]), rtol=1e-6)
    np.testing.assert_array_equal(reward, alone[2])


@pytest.mark.parametrize("ended", range(LANES + 1))
def test_lanes_that_end_take_different_ready_starts(pool, local, ended):
    _, params = local
    _, state = pool.reset(jax.random.key(0), params)
    count = jnp.where(jnp.arange(LANES) < ended, params.max_steps - jnp.int32(1), jnp.int32(0))
    # Numbered, so that a start can be told from its like.
    ready = state.ready.replace(total_reward=jnp.arange(100, 100 + SIZE, dtype=jnp.float32))
    lanes = state.lanes.replace(step_count=count, total_reward=jnp.zeros(LANES))
    state = state.replace(lanes=lanes, ready=ready)
    action = jnp.zeros(LANES, jnp.int32)
    _, after, _, terminated, truncated, info = pool.step(jax.random.key(3), state, action, params)
    done = np.asarray(terminated | truncated)
    assert done.sum() >= ended
    taken = np.asarray(after.lanes.total_reward)[done] - 100
    assert len(set(taken.tolist())) == len(taken)
    np.testing.assert_array_equal(after.lanes.step_count[done], 0)
    np.testing.assert_array_equal(
        after.lanes.agent.position[done], ready.agent.position[taken.astype(int)]
    )
    assert (info["step_count"][:ended] == params.max_steps).all()


def test_the_oldest_starts_are_made_anew_in_turn(pool, local):
    _, params = local
    _, state = pool.reset(jax.random.key(0), params)
    state = state.replace(ready=state.ready.replace(total_reward=jnp.full(SIZE, -1.0)))
    action = jnp.zeros(LANES, jnp.int32)
    for step in range(1, SIZE // REFRESH + 1):
        state = pool.step(jax.random.key(step), state, action, params)[1]
        old = np.asarray(state.ready.total_reward) == -1.0
        np.testing.assert_array_equal(old, np.arange(SIZE) >= step * REFRESH)
    assert int(state.oldest) == 0


def test_it_rolls_out_like_a_batch(pool, local):
    _, params = local
    carry, totals = rollout(pool, Up(), jax.random.key(0), params, 200)
    assert totals.episodes > 0
    assert int(carry.step) == 200
    again = rollout(pool, Up(), jax.random.key(0), params, 200)[1]
    chex.assert_trees_all_equal(totals, again)


def test_its_starts_are_the_environments(pool, local):
    _, params = local
    # 40 refills: the places of a pool are those that resets give.
    places = set()
    for key in range(40):
        places |= starts_of(pool.reset(jax.random.key(key), params)[1].ready)
    resets = Batch(local[0], 2000).reset(jax.random.key(1), params)[1]
    assert places <= starts_of(resets)
    assert len(places) > 50


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"size": 0}, "size"),
        ({"size": 1.5}, "size"),
        ({"refresh": 0}, "refresh"),
        ({"refresh": 5}, "refresh"),
    ],
)
def test_bad_numbers_are_named(local, change, field):
    with pytest.raises(ValidationError, match=field):
        Pool(Batch(local[0], LANES), **{"size": SIZE, "refresh": REFRESH, **change})


def test_params_of_each_lane_are_refused(local):
    with pytest.raises(ValidationError, match="params_axes"):
        Pool(Batch(local[0], LANES, params_axes=0), SIZE)
