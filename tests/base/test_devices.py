"""tests/base/test_devices: on_devices with many devices in one process, and in two."""

import os
import socket
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import pytest

LIMIT = 240
"""Seconds that the processes get, on a busy machine too."""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def start(devices, output, **variables):
    """A process with so many CPU devices that runs the tests of on_devices."""
    # Unoptimised code compiles sooner, and must give the same all the more.
    flags = f"--xla_force_host_platform_device_count={devices} --xla_backend_optimization_level=0"
    env = os.environ | {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags} | variables
    tests = str(Path(__file__).with_name("on_devices.py"))
    command = [sys.executable, "-m", "pytest", "-x", "-n", "0", "--durations", "3", tests]
    return subprocess.Popen(command, env=env, stdout=output, stderr=subprocess.STDOUT)


def run(*starts):
    """Run `starts`, each a function of a file for the output, side by side; none may fail."""
    with tempfile.TemporaryFile("w+") as output:
        running = [each(output) for each in starts]
        try:
            codes = finish(running)
        finally:
            for process in running:
                process.kill()
                process.wait()
        output.seek(0)
        assert codes == [0] * len(running), output.read()


def finish(running):
    """Exit codes once all have ended, or one has failed (the others may wait for it), or LIMIT."""
    deadline = time.monotonic() + LIMIT
    while time.monotonic() < deadline:
        codes = [process.poll() for process in running]
        if None not in codes or any(codes):
            return codes
        time.sleep(0.1)
    return [process.poll() for process in running]


@pytest.mark.slow
def test_a_batch_over_eight_devices_is_the_batch_on_one():
    run(partial(start, 8))


@pytest.mark.slow
def test_a_batch_over_two_processes_is_the_batch_on_one():
    cluster = {"COORDINATOR": f"127.0.0.1:{free_port()}"}
    run(*[partial(start, 2, PROCESS=str(i), **cluster) for i in range(2)])
