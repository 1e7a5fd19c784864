"""benchmarks/peers: the cases of other simulators, each used as its own documentation uses it."""

import contextlib
import io
from functools import partial
from typing import Any

import jax
import numpy as np

from benchmarks.measure import Case, Prepared, loop, randint_actions, random_actions, start
from benchmarks.measure import steps_of_a_scan as steps_of
from benchmarks.ours import STEP, step_single, step_vector

PUFFS = 100


def cartpole(lanes: int) -> Case:
    label = f"gymnax CartPole-v1, vmap of its step: {STEP}"
    prepare = partial(_cartpole, lanes, random_actions)
    return Case(f"cartpole/{lanes}", label, lanes, prepare, "gymnax CartPole-v1")


def cartpole_by_randint(lanes: int) -> Case:
    label = "gymnax CartPole-v1: the same, actions by jax.random.randint"
    prepare = partial(_cartpole, lanes, randint_actions)
    return Case(f"cartpole-randint/{lanes}", label, lanes, prepare)


def _cartpole(lanes: int, draw: Any) -> Prepared:
    import gymnax

    env, params = gymnax.make("CartPole-v1")

    def step(key: jax.Array, carry: Any, params: Any) -> Any:
        act, key = jax.random.split(key)
        action = draw(act, lanes, env.num_actions)
        keys = jax.random.split(key, lanes)
        return jax.vmap(env.step, in_axes=(0, 0, 0, None))(keys, carry[1], action, params)[:2]

    reset = jax.vmap(env.reset, in_axes=(0, None))
    carry = start(reset, jax.random.split(jax.random.key(0), lanes), params)
    return loop(step, carry, lanes, steps_of(lanes, 2**19), params)


def navix(lanes: int) -> Case:
    label = f"navix Navix-Empty-5x5-v0, vmap of its step: {STEP}"
    return Case(f"navix/{lanes}", label, lanes, partial(_navix, lanes), "navix Empty-5x5")


def _navix(lanes: int) -> Prepared:
    with _silent():
        import navix

        env = navix.make("Navix-Empty-5x5-v0")

    def step(key: jax.Array, timestep: Any) -> Any:
        action = random_actions(key, lanes, len(env.action_set))
        return jax.vmap(env.step)(timestep, action)

    timestep = start(jax.vmap(env.reset), jax.random.split(jax.random.key(0), lanes))
    return loop(step, timestep, lanes, steps_of(lanes, 2**13))


def plume_nav_sim() -> Case:
    label = "plume_nav_sim, the same local task, Python loop with resets"
    return Case("peer", label, 1, _plume_nav_sim)


def _plume_nav_sim() -> Prepared:
    env = _peer_env()
    env.reset(seed=0)
    return Prepared(partial(step_single, env, _random(512)))


def plume_nav_sim_vector(lanes: int = 16) -> Case:
    label = "plume_nav_sim in Gymnasium's SyncVectorEnv: a step of one lane"
    return Case(f"peer-vector/{lanes}", label, lanes, partial(_plume_nav_sim_vector, lanes))


def _plume_nav_sim_vector(lanes: int) -> Prepared:
    from gymnasium.vector import SyncVectorEnv

    envs = SyncVectorEnv([_peer_env] * lanes)
    envs.reset(seed=0)
    return Prepared(partial(step_vector, envs, _random((32, lanes))))


def _peer_env() -> Any:
    from plume_nav_sim.envs.factory import create_component_environment

    return create_component_environment(
        grid_size=(128, 128),
        goal_location=(64, 64),
        plume_sigma=12.0,
        goal_radius=5.0,
        max_steps=1000,
        warn_deprecated=False,
    )


def pompy() -> Case:
    label = f"pompy: wind and a plume of {PUFFS} puffs advanced by 0.01 s, no agent"
    return Case("pompy", label, 1, _pompy)


def _pompy() -> Prepared:
    from pompy import models

    rng = np.random.RandomState(0)
    region = models.Rectangle(0.0, 100.0, -25.0, 25.0)
    wind = models.WindModel(region, 21, 11, rng=rng)
    plume = models.PlumeModel(
        region, (5.0, 0.0, 0.0), wind, init_num_puffs=PUFFS, max_num_puffs=PUFFS, rng=rng
    )

    def once() -> int:
        for _ in range(10):
            wind.update(0.01)
            plume.update(0.01)
        return 10

    return Prepared(once)


def olfactory_navigation(lanes: int = 1024) -> Case:
    label = (
        "olfactory-navigation Environment, NumPy: move, reading, source check and restart of one"
        " agent (its own run_test needs CuPy)"
    )
    return Case(f"olfactory/{lanes}", label, lanes, partial(_olfactory_navigation, lanes))


def _olfactory_navigation(lanes: int) -> Prepared:
    with _silent():  # it prints that it found no GPU
        from olfactory_navigation import Environment

    rng = np.random.default_rng(0)
    moves = np.array([[-1, 0], [0, 1], [1, 0], [0, -1]])
    offset = np.arange(128) - 64
    field = np.exp(-(offset[:, None] ** 2 + offset[None] ** 2) / (2 * 12.0**2))
    environment = Environment(field[None], [64, 64], source_radius=5.0)
    position = environment.random_start_points(lanes, rng)

    def once() -> int:
        nonlocal position
        for time in range(20):
            position = environment.move(position, moves[rng.integers(4, size=lanes)])
            environment.get_observation(position, time=time)
            found = environment.source_reached(position)
            if found.any():
                position[found] = environment.random_start_points(int(found.sum()), rng)
        return 20 * lanes

    return Prepared(once)


def _random(shape: Any) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 4, shape)


@contextlib.contextmanager
def _silent() -> Any:
    with contextlib.redirect_stdout(io.StringIO()):
        yield
