"""tests/serving/test_openenv: the public clients of OpenEnv, as they are, at our server; and a task
of ours as a package of theirs. Each of their versions in an environment of its own."""

import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import jax
import numpy as np
import pytest

pytestmark = pytest.mark.interop

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
EXAMPLE = ROOT / "notebooks" / "openenv_plume_search"

ENVIRONMENTS = "PLUMEJAX_OPENENV_ENVS"
"""Names a folder where the environments are kept; without it they are made anew."""

INSTALLED = {
    "openenv-core-0.1.1": ["openenv-core==0.1.1"],
    "openenv-0.10.0": ["-e", f"{ROOT}[openenv]"],
}

FAREWELL = 15
"""s, in which a server ends."""

ACTIONS = {"Echo": {"message": "hi"}, "PlumeSearchLocal-v0": {"value": 2}}


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    """`programs(name, program)`: the path of a program of an environment; skips without it."""
    kept = os.environ.get(ENVIRONMENTS)
    folder = Path(kept) if kept else tmp_path_factory.mktemp("openenv")

    @cache
    def failure(name):
        place = folder / name
        return "" if place.exists() else make_environment(place, INSTALLED[name])

    def program(name, program="python"):
        if why := failure(name):
            pytest.skip(f"{name} cannot be installed: {why}")
        return str(folder / name / "bin" / program)

    return program


def make_environment(place, packages):
    """Why it could not be made; empty if it is there."""
    subprocess.run([sys.executable, "-m", "venv", place], check=True)
    pip = [place / "bin" / "python", "-m", "pip", "install", "-q", *packages]
    done = subprocess.run(pip, capture_output=True, text=True, check=False)
    if not done.returncode:
        return ""
    shutil.rmtree(place)
    return done.stderr[-300:] or "pip failed"


@pytest.fixture(scope="module", params=ACTIONS)
def served(request, serve, local):
    """A server of either kind.

    The clients of 0.1.1 cannot seed a reset, so no search begins near its source.
    """
    env, params = local
    far = env, params.replace(start=params.start.replace(min_distance=np.float32(6.0)))
    with serve("Echo" if request.param == "Echo" else far, capacity=32) as served:
        served.action = json.dumps(ACTIONS[request.param])
        yield served


def said(*command):
    """What a program prints; its errors are the test's."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def test_the_http_client(programs, served):
    said(programs("openenv-core-0.1.1"), HERE / "play_openenv_http.py", served.url, served.action)


@pytest.mark.parametrize("what", ["episode", "sessions"])
def test_the_socket_client(programs, served, what):
    script = HERE / "play_openenv_socket.py"
    said(programs("openenv-0.10.0"), script, what, served.url, served.action)


def test_the_server_is_valid(programs, served):
    report = said(programs("openenv-0.10.0", "openenv"), "validate", "--url", served.url, "--json")
    assert json.loads(report)["passed"]


def test_the_example_is_a_package_of_openenv(programs):
    report = said(programs("openenv-0.10.0", "openenv"), "validate", EXAMPLE, "--json")
    statuses = {each["check_id"]: each["status"] for each in json.loads(report)["results"]}
    assert statuses["static.manifest"] == "pass"
    assert set(statuses.values()) == {"pass", "skip"}  # what needs Docker is skipped


@contextmanager
def example_served(python):
    """The URL of the example, served by the package's own server."""
    command = [python, "-m", "openenv_plume_search.server.app", "--port", "0"]
    with subprocess.Popen(
        command, cwd=EXAMPLE.parent, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            said = ""
            for line in process.stderr:
                said += line
                if found := re.search(r"running on (http://\S+)", line):
                    yield found[1]
                    return
            raise AssertionError(said)
        finally:
            process.terminate()
            process.communicate(timeout=FAREWELL)


def test_the_example_plays_the_episodes_of_our_server(programs, serve):
    python, action = programs("openenv-0.10.0"), json.dumps(ACTIONS["PlumeSearchLocal-v0"])
    played = [python, HERE / "play_openenv_socket.py", "episode"]
    with serve("PlumeSearchLocal-v0", capacity=2) as served:
        ours = json.loads(said(*played, served.url, action))
    with example_served(python) as url:
        theirs = json.loads(said(*played, url, action))
    assert jax.tree.structure(theirs) == jax.tree.structure(ours)
    for one, other in zip(jax.tree.leaves(theirs), jax.tree.leaves(ours), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)
