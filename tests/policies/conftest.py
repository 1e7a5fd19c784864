"""tests/policies/conftest: an arena for reactive policies, and ways to drive them without it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plumejax

DT = 0.02
"""s, a step of the arena."""

ANY_TURN = {"motion.turn_range": 360.0 / DT, "motion.max_speed": 30.0}


@pytest.fixture(scope="session")
def arena():
    """`(env, params)`: any turn, up to 30 mm/s; observed are the odour and the wind, float32[3]."""
    return plumejax.make("Fly-Gaussian-v0", overrides=ANY_TURN)


@pytest.fixture(scope="session")
def drive():
    return _drive


@pytest.fixture(scope="session")
def follow():
    return _follow


def _drive(policy, odours, lanes, key, keep, wind=(0.0, 100.0)):
    """`keep(action, memory)` of every lane and step, [lanes, steps], of one odour and wind for all.

    The wind, ahead and to the left, does not turn with the agent.
    """
    air = np.broadcast_to(np.asarray(wind, np.float32), (len(odours), 2))
    observations = np.concatenate([np.asarray(odours, np.float32)[:, None], air], axis=1)

    def one(key):
        first, rest = jax.random.split(key)

        def step(memory, at):
            key, observation = at
            action, memory = policy.act(key, memory, observation)
            return memory, keep(action, memory)

        keys = jax.random.split(rest, len(odours))
        return jax.lax.scan(step, policy.init(first), (keys, jnp.asarray(observations)))[1]

    kept = jax.jit(jax.vmap(one))(jax.random.split(key, lanes))
    return jax.tree.map(np.asarray, kept)


def _follow(policy, odours, heading=0.0, wind=(100.0, 0.0), drift=0.0, seed=0):
    """Places float[steps + 1, 2], mm, of an agent that turns and goes as the policy says, and the
    ways it heads, float[steps], degrees."""
    act = jax.jit(policy.act)
    first, *keys = jax.random.split(jax.random.key(seed), len(odours) + 1)
    memory, place = policy.init(first), np.zeros(2)
    places, headings = [place], []
    for key, odour in zip(keys, odours, strict=True):
        cos, sin = np.cos(np.deg2rad(heading)), np.sin(np.deg2rad(heading))
        felt = [cos * wind[0] + sin * wind[1], cos * wind[1] - sin * wind[0]]
        observation = jnp.asarray([odour, *felt], jnp.float32)
        action, memory = act(key, memory, observation)
        turn, speed = np.asarray(action, float)
        heading = heading + (turn - 0.5) * 360.0
        way = 30.0 * speed * np.asarray([np.cos(np.deg2rad(heading)), np.sin(np.deg2rad(heading))])
        place = place + (way + drift * np.asarray(wind)) * DT
        places.append(place)
        headings.append(heading)
    return np.stack(places), np.asarray(headings)
