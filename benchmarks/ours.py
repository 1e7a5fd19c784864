"""benchmarks/ours: the cases of plumejax: tasks in a compiled loop, in Gymnasium, in start-up."""

import json
import os
import subprocess
import sys
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jax
import numpy as np

import plumejax
from benchmarks.measure import (
    Case,
    LeftOutError,
    Prepared,
    Row,
    loop,
    measure_seconds,
    randint_actions,
    random_actions,
    start,
)
from benchmarks.measure import steps_of_a_scan as steps_of
from plumejax.base.batch import Batch
from plumejax.base.environment import Environment
from plumejax.plumes.gaussian import GaussianPlume

LOCAL = "PlumeSearchLocal-v0"
SOURCE = (7.7, 7.7, 1.1)
"""Of the made-up recording, x, y, z in m."""

STEP = "random actions, auto-reset"


def local(lanes: int) -> Case:
    prepare = partial(_batch, lambda: plumejax.make(LOCAL), lanes, 2**19)
    return Case(f"local/{lanes}", f"{LOCAL}: {STEP}", lanes, prepare, LOCAL)


def local_by_randint(lanes: int) -> Case:
    label = f"{LOCAL}: the same, actions by jax.random.randint"
    make = partial(_batch, lambda: plumejax.make(LOCAL), lanes, 2**19, randint_actions)
    return Case(f"local-randint/{lanes}", label, lanes, make)


def full_field(lanes: int) -> Case:
    name = "PlumeSearch-v0"
    prepare = partial(_batch, lambda: plumejax.make(name), lanes, 2**11)
    return Case(f"full/{lanes}", f"{name} (whole field seen): {STEP}", lanes, prepare, name)


def recorded(lanes: int) -> Case:
    label = f"Recorded-v0 (300 frames): {STEP}"
    prepare = partial(_batch, _recorded_task, lanes, 2**19)
    return Case(f"recorded/{lanes}", label, lanes, prepare, "Recorded-v0")


def arithmetic(lanes: int) -> Case:
    label = f"{LOCAL}'s bare arithmetic, hand-written: {STEP}"
    prepare = partial(_bare, lanes)
    return Case(f"bare/{lanes}", label, lanes, prepare, f"{LOCAL}, bare arithmetic")


def two_arm(view: str, lanes: int) -> Case:
    """Of the cube's task; a step draws its actions."""
    seen = {"flat": "one array seen", "pictures": "a picture seen"}[view]
    label = f"TwoArm-Lift-v0 ({seen}): {STEP}"
    return Case(f"two-arm-{view}/{lanes}", label, lanes, partial(_two_arm, view, lanes))


def _two_arm(view: str, lanes: int) -> Prepared:
    env, params = plumejax.make("TwoArm-Lift-v0", view=view)
    batch = Batch(env, lanes, final_observation=False)
    space = env.action_space(params)
    low, high = np.asarray(space.low), np.asarray(space.high)

    def step(key: jax.Array, state: Any, params: Any) -> Any:
        act, key = jax.random.split(key)
        action = jax.random.uniform(act, (lanes, *space.shape), low.dtype, low, high)
        return batch.step(key, state, action, params)[1]

    state = start(batch.reset, jax.random.key(0), params)[1]
    return loop(step, state, lanes, steps_of(lanes, 2**18 if view == "flat" else 2**14), params)


def _batch(make: Any, lanes: int, budget: int, draw: Any = random_actions) -> Prepared:
    """A task in `Batch` under random actions; the state holds the observation, so it is made."""
    env, params = make()
    need = lanes * 4 * int(sum(np.prod(leaf.shape) for leaf in _observation(env, params)))
    if need > 2 * 2**30:
        raise LeftOutError(f"one copy of the observations takes {need / 2**30:.1f} GiB")
    batch = Batch(env, lanes, final_observation=False)
    num_actions = env.action_space(params).n

    def step(key: jax.Array, state: Any, params: Any) -> Any:
        act, key = jax.random.split(key)
        return batch.step(key, state, draw(act, lanes, num_actions), params)[1]

    state = start(batch.reset, jax.random.key(0), params)[1]
    return loop(step, state, lanes, steps_of(lanes, budget), params)


def _observation(env: Environment, params: Any) -> list[Any]:
    return jax.tree.leaves(jax.eval_shape(env.reset, jax.random.key(0), params)[0])


def _bare(lanes: int) -> Prepared:
    from benchmarks import bare

    def step(key: jax.Array, state: Any) -> Any:
        act, key = jax.random.split(key)
        return bare.step(state, key, random_actions(act, lanes, 4))[0]

    return loop(step, bare.start(lanes, jax.random.key(0)), lanes, steps_of(lanes, 2**19))


def _recorded_task() -> tuple[Any, Any]:
    return _make_recorded(300, 300)


@cache
def _make_recorded(num_frames: int, filaments: int) -> tuple[Any, Any]:
    """`Recorded-v0` on made-up gas with so many frames and filaments a frame."""
    with TemporaryDirectory() as folder:
        path = write_recording(Path(folder), num_frames, filaments)
        return plumejax.make("Recorded-v0", data=path, source=SOURCE, frames=(0, num_frames - 1))


def write_recording(folder: Path, num_frames: int, filaments: int) -> Path:
    """Write a recording of an empty room of 77 x 77 x 10 cells of 0.2 m; its path."""
    shape = (77, 77, 10)
    rng = np.random.default_rng(0)
    size = num_frames * filaments
    place = np.asarray(SOURCE) + rng.normal(0.0, [3.0, 3.0, 0.5], (size, 3))
    gas = np.column_stack([place, rng.uniform(10.0, 60.0, size)]).astype(np.float32)
    path = folder / "made_up.npz"
    np.savez(path, filaments=gas, offsets=np.arange(num_frames + 1) * filaments)
    rooms = folder / "made_up_occupancy.npz"
    np.savez(rooms, occupancy=np.zeros((shape[2], shape[0], shape[1]), np.uint8))
    header = {
        "env_min": [0.0, 0.0, 0.0],
        "env_max": [0.2 * n for n in shape],
        "num_cells": list(shape),
        "cell_size": 0.2,
    }
    rooms.with_suffix(".txt").write_text(json.dumps(header))
    return path


def local_by_cells(side: int, lanes: int = 1024) -> Case:
    """The local sensor over a Gaussian plume on a grid of `side` x `side` cells."""
    prepare = partial(_batch, partial(_sized, LOCAL, side), lanes, 2**18)
    label = f"{LOCAL} on {side} x {side} cells"
    return Case(f"cells/local/{side}", label, lanes, prepare, "local sensor", side**2)


def full_by_cells(side: int, lanes: int = 16) -> Case:
    """The whole field seen, on a grid of `side` x `side` cells."""
    prepare = partial(_batch, partial(_sized, "PlumeSearch-v0", side), lanes, 2**24 // side**2)
    label = f"PlumeSearch-v0 on {side} x {side} cells"
    return Case(f"cells/full/{side}", label, lanes, prepare, "whole field", side**2)


def recorded_by_filaments(filaments: int, lanes: int = 1024) -> Case:
    """Recorded gas of so many filaments a frame, 20 frames."""
    prepare = partial(_batch, partial(_make_recorded, 20, filaments), lanes, 2**18)
    label = f"Recorded-v0, {filaments} filaments a frame"
    key = f"filaments/{filaments}"
    return Case(key, label, lanes, prepare, "recorded, local sensor", filaments)


def _sized(name: str, side: int) -> tuple[Any, Any]:
    grid = (side, side)
    plume = GaussianPlume(grid)
    # The source, the width and the goal keep their share of the grid.
    overrides = {"plume.sigma": side * 12 / 128, "ending.radius": side * 5 / 128}
    return plumejax.make(name, grid_size=grid, plume=plume, overrides=overrides)


def vector(lanes: int) -> Case:
    label = f"PlumeSearchVectorEnv, {LOCAL}, NumPy in and out: a step of one lane"
    return Case(f"vector/{lanes}", label, lanes, partial(_vector, lanes))


def _vector(lanes: int) -> Prepared:
    import gymnasium

    envs = gymnasium.make_vec(f"plumejax/{LOCAL}", num_envs=lanes)
    envs.reset(seed=0)
    return Prepared(partial(step_vector, envs, _actions(lanes)))


def step_vector(envs: Any, actions: np.ndarray) -> int:
    """Step a Gymnasium vector environment through `actions` [steps, lanes]."""
    for action in actions:
        envs.step(action)
    return actions.size


def single() -> Case:
    label = f"PlumeSearchEnv, {LOCAL}, Python loop with resets"
    return Case("single", label, 1, _single)


def _single() -> Prepared:
    env = plumejax.PlumeSearchEnv(config={"task": LOCAL})
    env.reset(seed=0)
    return Prepared(partial(step_single, env, _actions(1)[:, 0]))


def step_single(env: Any, actions: np.ndarray) -> int:
    """Step one Gymnasium environment through `actions` [steps], reset where an episode ends."""
    for action in actions.tolist():
        _, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            env.reset()
    return actions.size


def _actions(lanes: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 4, (max(16, 512 // lanes), lanes))


IMPORT = """
import time, jax
began = time.perf_counter()
import plumejax
print(time.perf_counter() - began)
"""

FIRST_COMPILE = f"""
import time, jax, plumejax
env, params = plumejax.make("{LOCAL}")
key = jax.block_until_ready(jax.random.key(0))
began = time.perf_counter()
_, state = jax.jit(env.reset)(key, params)
jax.block_until_ready(jax.jit(env.step)(key, state, 0, params))
print(time.perf_counter() - began)
"""


def startup(repeats: int) -> list[Row]:
    """Seconds that a fresh process waits."""
    return [
        measure_seconds("import", "import plumejax, beyond jax", partial(_fresh, IMPORT), repeats),
        measure_seconds(
            "first", f"{LOCAL}: first reset and step", partial(_fresh, FIRST_COMPILE), repeats
        ),
    ]


def _fresh(program: str) -> float:
    """What `program` prints, run in a process of its own that finds no compilation cache."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "JAX_ENABLE_COMPILATION_CACHE": "false"},
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout.split()[-1])
