"""benchmarks/speed: steps a second of one task, batched, in a vector and in a single environment.

    python -m benchmarks.speed

Random actions, auto-reset on, medians of several runs on this machine. The comparison with other
simulators is a benchmark of its own.
"""

import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

import plumejax
from plumejax.base.batch import Batch

TASK, REPEATS = "PlumeSearchLocal-v0", 5


def main() -> None:
    """Print the table."""
    table = Table("what", "lanes", "steps/s")
    for lanes in (1, 64, 1024, 4096, 16384):
        table.add_row("Batch, one compiled scan", str(lanes), f"{batch_rate(lanes):,.0f}")
    for lanes in (16, 1024):
        rate = vector_rate(lanes)
        table.add_row("PlumeSearchVectorEnv, NumPy in and out", str(lanes), f"{rate:,.0f}")
    table.add_row("PlumeSearchEnv, Python loop", "1", f"{single_rate():,.0f}")
    Console().print(f"{TASK} on {jax.devices()[0].device_kind}, median of {REPEATS}")
    Console().print(table)


def batch_rate(lanes: int) -> float:
    """Steps a second of `Batch` in a scan."""
    env, params = plumejax.make(TASK)
    batch = Batch(env, lanes, final_observation=False)
    steps = max(200, 2_000_000 // lanes)

    @partial(jax.jit, donate_argnums=0)
    def run(state: Any, key: jax.Array) -> Any:
        def one(state: Any, key: jax.Array) -> tuple[Any, None]:
            act, step = jax.random.split(key)
            action = jax.random.randint(act, (lanes,), 0, 4, np.int32)
            return batch.step(step, state, action, params)[1], None

        return jax.lax.scan(one, state, jax.random.split(key, steps))[0]

    state = run(batch.reset(jax.random.key(0), params)[1], jax.random.key(1))

    def once(i: int) -> int:
        nonlocal state
        state = jax.block_until_ready(run(state, jax.random.key(i)))
        return steps * lanes

    return _rate(once)


def vector_rate(lanes: int) -> float:
    """Steps a second of the native Gymnasium vector environment."""
    import gymnasium

    envs = gymnasium.make_vec(f"plumejax/{TASK}", num_envs=lanes)
    envs.reset(seed=0)
    actions = np.random.default_rng(0).integers(0, 4, (64, lanes))

    def once(i: int) -> int:
        for action in actions:
            envs.step(action)
        return actions.size

    once(0)
    return _rate(once)


def single_rate() -> float:
    """Steps a second of the single Gymnasium environment in a Python loop."""
    env = plumejax.PlumeSearchEnv(config={"task": TASK})
    env.reset(seed=0)
    actions = np.random.default_rng(0).integers(0, 4, 1000)

    def once(i: int) -> int:
        for action in actions:
            if any(env.step(action)[2:4]):
                env.reset()
        return actions.size

    once(0)
    return _rate(once)


def _rate(once: Callable[[int], int]) -> float:
    rates = []
    for i in range(REPEATS):
        began = time.perf_counter()
        steps = once(i)
        rates.append(steps / (time.perf_counter() - began))
    return median(rates)


if __name__ == "__main__":
    main()
