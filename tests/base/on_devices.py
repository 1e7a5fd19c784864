"""tests/base/on_devices: a Batch over a mesh is the Batch on one device; test_devices runs these.

Every process makes the whole result on its own default device, and compares it with the shards
that it can see of the result over the mesh.
"""

import os
import re
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import struct

import plumejax
from plumejax.base.batch import Batch
from plumejax.base.errors import ValidationError
from plumejax.base.rollout import rollout
from plumejax.learning.ppo import PPO, Hyperparameters, Shapes, ppo
from plumejax.search.motion import RunAndTumble

EACH = 4
"""Lanes of a device."""


class Wanderer(struct.PyTreeNode):
    """Draws its action, and remembers how many it has drawn, from a number drawn at the start."""

    def init(self, key):
        return jax.random.bits(key) & jnp.uint32(1023)

    def act(self, key, carry, observation):
        return jax.random.randint(key, (), 0, 2, jnp.int32), carry + jnp.uint32(1)


@pytest.fixture(scope="session")
def mesh():
    """Of every device there is, of all processes."""
    if "PROCESS" in os.environ:
        jax.distributed.initialize(
            coordinator_address=os.environ["COORDINATOR"],
            num_processes=2,
            process_id=int(os.environ["PROCESS"]),
        )
        assert jax.process_count() == 2
    assert jax.device_count() >= 4
    return jax.make_mesh((jax.device_count(),), ("lanes",))


@pytest.fixture(scope="session")
def task(mesh):
    """`(env, params)` whose steps draw random numbers."""
    overrides = {"plume.sigma": 3.0, "ending.radius": 1.0, "max_steps": 7}
    return plumejax.make(
        "PlumeSearchLocal-v0", grid_size=(16, 12), motion=RunAndTumble(), overrides=overrides
    )


@pytest.fixture(scope="session")
def own(mesh, task):
    """Params of each lane: on device 0 no episode ends in time, on 1 all at once, then some."""
    _, params = task
    n = EACH * mesh.size
    limits = 2 + np.arange(n, dtype=np.int32) % 5
    limits[:EACH], limits[EACH : 2 * EACH] = 1000, 3
    shared = jax.tree.map(lambda _: None, params)
    axes = shared.replace(plume=shared.plume.replace(source=1), max_steps=0)
    source = np.stack([np.arange(n) % 16, np.full(n, 6)]).astype(np.float32)
    return params.replace(plume=params.plume.replace(source=source), max_steps=limits), axes


@pytest.fixture(scope="session")
def alone(mesh, task, own):
    """Every lane on one device."""
    return Batch(task[0], EACH * mesh.size, params_axes=own[1])


@pytest.fixture(scope="session")
def batch(mesh, alone):
    return replace(alone, mesh=mesh)


@pytest.fixture(scope="session")
def step(batch, own):
    """The compiled step."""
    key = jax.random.key(0)
    _, state = batch.reset(key, own[0])
    action = np.zeros(batch.num_envs, np.int32)
    return Batch.step.lower(batch, key, state, action, own[0]).compile()


def assert_same(over_mesh, expected, rtol=1e-6):
    """The shards seen here equal `expected`: bit for bit, floats to rounding."""

    def same(got, want):
        want = np.asarray(want)
        assert got.shape == want.shape
        for shard in got.addressable_shards:
            if np.issubdtype(want.dtype, np.floating):
                np.testing.assert_allclose(shard.data, want[shard.index], rtol=rtol, atol=rtol)
            else:
                np.testing.assert_array_equal(shard.data, want[shard.index])

    jax.tree.map(same, over_mesh, expected)


def assert_sharded(lanes, devices):
    """Every device holds its lanes and no others."""
    for leaf in jax.tree.leaves(lanes):
        assert leaf.sharding.num_devices == devices
        assert leaf.sharding.shard_shape(leaf.shape) == (EACH, *leaf.shape[1:])


def test_a_reset_is_that_of_one_device(batch, alone, own):
    params, _ = own
    over_mesh = batch.reset(jax.random.key(1), params)
    assert_same(over_mesh, alone.reset(jax.random.key(1), params))
    assert_sharded(over_mesh, batch.mesh.size)


def test_steps_and_resets_are_those_of_one_device(batch, alone, own, step):
    params, _ = own
    _, state = batch.reset(jax.random.key(1), params)
    _, expected = alone.reset(jax.random.key(1), params)
    rng = np.random.default_rng(0)
    ended = []
    for t in range(12):
        key = jax.random.key(t)
        action = rng.integers(0, 2, batch.num_envs, np.int32)
        over_mesh = step(key, state, action, params)
        one_device = alone.step(key, expected, action, params)
        assert_same(over_mesh, one_device)
        assert_sharded(over_mesh, batch.mesh.size)
        state, expected = over_mesh[1], one_device[1]
        ended.append(np.reshape(one_device[3] | one_device[4], (-1, EACH)).sum(1))
    ended = np.stack(ended)  # [steps, devices]
    # Devices have been seen with every number of lanes to reset, at the same step too.
    assert set(np.unique(ended)) == set(range(EACH + 1))
    assert ((ended == 0).any(1) & (ended == EACH).any(1)).any()


def test_a_step_communicates_nothing(step):
    assert collectives(step.as_text()) == []


def test_a_rollout_is_that_of_one_device(batch, alone, own):
    params, _ = own
    go = partial(rollout, policy=Wanderer(), key=jax.random.key(2), params=params, steps=5)
    over_mesh, total = go(batch, init=go(batch)[0])
    one_device, expected = go(alone, init=go(alone)[0])
    assert expected.episodes > 0
    assert_same((over_mesh, total), (one_device, expected))
    assert_sharded((over_mesh.state, over_mesh.memory), batch.mesh.size)
    assert all(leaf.is_fully_replicated for leaf in jax.tree.leaves(total))


@pytest.mark.skipif("PROCESS" in os.environ, reason="compiles for long; one process shows it")
def test_training_is_that_of_one_device(task, mesh, batch, alone, own):
    env, params = task
    n = batch.num_envs
    shapes = Shapes(n, num_steps=4, num_minibatches=2, num_epochs=1, hidden=(8,))
    algorithm = ppo(env, params, shapes, mesh=mesh)
    assert algorithm.batch == Batch(env, n, mesh=mesh)
    update = jax.jit(PPO.update, static_argnums=0)
    results = []
    for lanes in (batch, alone):
        one = replace(algorithm, batch=lanes)
        training = one.init(jax.random.key(3), own[0])
        results.append(update(one, training, own[0], Hyperparameters()))
    training, _ = results[0]
    assert_sharded((training.env_state, training.memory), batch.mesh.size)
    # Means over lanes are summed in another order.
    results = [(t._replace(key=()), m) for t, m in results]
    assert_same(*results, rtol=1e-4)


def test_equal_batches_are_equal(batch, alone):
    assert batch == replace(batch)
    assert hash(batch) == hash(replace(batch))
    assert batch != alone


def test_the_mesh_is_checked(mesh, task):
    env, _ = task
    with pytest.raises(ValidationError, match="multiple of"):
        Batch(env, mesh.size + 1, mesh=mesh)
    square = jax.sharding.Mesh(mesh.devices.reshape(2, -1), ("a", "b"))
    with pytest.raises(ValidationError, match="one axis"):
        Batch(env, mesh.size, mesh=square)


def collectives(text):
    """The instructions of a compiled program that exchange data between devices."""
    names = "all-reduce|all-gather|all-to-all|collective|reduce-scatter|send|recv"
    return re.findall(rf"\b(?:{names})[\w-]*\(", text)
