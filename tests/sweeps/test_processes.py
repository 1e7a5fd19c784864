"""tests/sweeps/test_processes: a sweep that two processes of one program share out."""

import os
import socket
import subprocess
import sys

import numpy as np
import pytest

from plumejax.sweeps.store import load

PROGRAM = """
import sys
import jax
import numpy as np
place, address, out, store = sys.argv[1:]
jax.distributed.initialize(coordinator_address=address, num_processes=2, process_id=int(place))
import plumejax
from plumejax.sweeps import sweep as module
module.EPISODES = 24
sweep = plumejax.Sweep(
    "PlumeSearchLocal-v0",
    {"plume.sigma": np.geomspace(1, 16, 3), "ending.radius": [1.5, 3.0]},
    policy="gradient",
    episodes=24,
    seed=5,
    static={"grid_size": (16, 16)},
    overrides={"max_steps": 8, "plume.source": [8, 8]},
)
told = []
data = sweep.run(store, progress=told.append)
np.savez(out, told=sum(told), **{name: x.values for name, x in data.data_vars.items()})
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@pytest.mark.slow
def test_two_processes_come_to_what_one_does_and_go_on_with_what_is_there(
    tmp_path, sweep, played, monkeypatch
):
    store, done = tmp_path / "shared.zarr", []

    class StopError(Exception):
        pass

    def stop(ended):
        done.append(ended)
        if sum(done) > 24:
            raise StopError

    monkeypatch.setattr("plumejax.sweeps.sweep.EPISODES", 24)
    with pytest.raises(StopError):
        sweep.run(store, progress=stop)
    there = int(load(store).done.sum())
    assert 0 < there < 6
    address, flags = f"127.0.0.1:{free_port()}", "--xla_force_host_platform_device_count=2"
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags}
    outs = [tmp_path / f"{i}.npz" for i in range(2)]
    running = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(i), address, str(out), str(store)],
            env=environment,
        )
        for i, out in enumerate(outs)
    ]
    try:
        assert [process.wait(timeout=240) for process in running] == [0, 0]
    finally:
        for process in running:
            process.kill()
    results = [dict(np.load(out)) for out in outs]
    told = [int(each.pop("told")) for each in results]
    # Both have played, and nothing twice.
    assert all(told)
    assert sum(told) == 24 * (6 - there)
    kept = load(store)
    for result in results:
        assert set(result) == set(played.data_vars)
        for name, values in result.items():
            np.testing.assert_allclose(values, played[name], rtol=1e-6, err_msg=name)
            np.testing.assert_array_equal(values, kept[name])
