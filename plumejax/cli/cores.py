"""cli/cores: a core for each of several programs, where JAX runs on a CPU."""

import os
from contextlib import suppress

import jax


def a_core_each(most: int | None = None) -> None:
    """Have JAX take each core for a device of its own, `most` at most, where it runs on a CPU and
    has not begun yet.

    A step is many small loops: threads that share one wait for each other.
    """
    flags = os.environ.get("XLA_FLAGS", "")
    if "xla_cpu_multi_thread_eigen" not in flags:
        os.environ["XLA_FLAGS"] = f"--xla_cpu_multi_thread_eigen=false {flags}"
    cores = os.cpu_count() or 1
    with suppress(RuntimeError):  # it has begun
        jax.config.update("jax_num_cpu_devices", max(1, min(cores, most or cores)))
