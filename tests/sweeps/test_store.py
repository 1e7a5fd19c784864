"""tests/sweeps/test_store: what is finished is kept, whatever happens, and known for what it is."""

import json
import signal
import subprocess
import sys

import jax
import numpy as np
import pytest

from plumejax.base.errors import ValidationError
from plumejax.sweeps.store import Store, load, read_description

SETTINGS = """
sweep = plumejax.Sweep(
    "PlumeSearchLocal-v0",
    {"plume.sigma": np.geomspace(1, 16, 3), "ending.radius": [1.5, 3.0]},
    policy="gradient",
    episodes=24,
    seed=5,
    static={"grid_size": (16, 16)},
    overrides={"max_steps": 8, "plume.source": [8, 8]},
)
"""

KILLED = f"""
import os, signal, sys
import numpy as np
import plumejax
from plumejax.sweeps import store, sweep as module
{SETTINGS}
module.EPISODES = 24
write = store.Store.write
def and_die(self, chunk, measures):
    # In the midst of the third chunk: part of it is there, but not the mark that it is.
    if chunk.first == 2:
        self._group["success"][1, 0] = -1.0
        os.kill(os.getpid(), signal.SIGKILL)
    write(self, chunk, measures)
store.Store.write = and_die
sweep.run(sys.argv[1], progress=lambda ended: None)
"""


def test_a_killed_sweep_goes_on_and_comes_to_the_same(tmp_path, sweep, played, monkeypatch):
    path = tmp_path / "a.zarr"
    out = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert out.returncode == -signal.SIGKILL
    before = load(path)
    assert before.done.values.ravel().tolist() == [1, 1, 0, 0, 0, 0]
    assert before.success.values[1, 0] == -1
    assert np.isnan(before.success.values.ravel()[3:]).all()
    monkeypatch.setattr("plumejax.sweeps.sweep.EPISODES", 24)
    told = []
    after = sweep.run(path, progress=told.append)
    assert sum(told) == 4 * 24  # what was finished is not played again
    for name in played.data_vars:
        np.testing.assert_array_equal(after[name], played[name])
    again = sweep.run(path, progress=told.append)
    assert sum(told) == 4 * 24
    np.testing.assert_array_equal(again.success, played.success)


def test_the_store_is_what_the_run_gave_with_what_made_it(tmp_path, sweep, played, run):
    data = run(sweep, tmp_path / "b.zarr")
    assert data.equals(load(tmp_path / "b.zarr"))
    assert data.equals(played)
    about = json.loads(data.attrs["sweep"])
    assert about == json.loads(json.dumps(sweep.description))
    assert about["versions"]["jax"] == jax.__version__
    assert about["params"]["max_steps"] == 8
    assert about["params"]["plume.source"] == [8.0, 8.0]
    assert data["plume.sigma"].attrs == played["plume.sigma"].attrs


@pytest.mark.parametrize(
    ("axes", "more", "message"),
    [
        ({"plume.sigma": [1.0, 2.0]}, {"seed": 6}, "holds another sweep: its seed is 5, not 6"),
        ({"plume.sigma": [1.0, 3.0]}, {}, "its values is"),
        ({"plume.sigma": [1.0]}, {}, r"its shape is \[2\], not \[1\]"),
        ({"plume.sigma": [1.0, 2.0]}, {"policy": "random"}, "its policy is 'gradient'"),
    ],
)
def test_a_store_of_another_sweep_is_refused(tmp_path, small, axes, more, message):
    path = tmp_path / "c.zarr"
    Store(path, small({"plume.sigma": [1.0, 2.0]}))
    with pytest.raises(ValidationError, match=message):
        Store(path, small(axes, **more))
    assert read_description(path)["seed"] == 5


def test_what_is_no_store_is_refused(tmp_path, sweep):
    with pytest.raises(ValidationError, match=r"store = .*x.nc.* \.zarr"):
        Store(tmp_path / "x.nc", sweep)
    (tmp_path / "d.zarr").mkdir()
    for call in (lambda path: Store(path, sweep), load):
        with pytest.raises(ValidationError, match="holds no sweep of plumejax"):
            call(tmp_path / "d.zarr")
    with pytest.raises(ValidationError, match="holds no sweep of plumejax"):
        load(tmp_path / "nothing.zarr")


def test_values_of_several_numbers_and_names_are_kept(tmp_path, small, run):
    axes = {"policy": ["gradient", "random"], "plume.source": [[8, 8], [4, 12], [12, 4]]}
    data = run(small(axes), tmp_path / "e.zarr")
    assert data.success.dims == ("policy", "plume.source.number")
    np.testing.assert_array_equal(data["plume.source"], axes["plume.source"])
    assert data.policy.values.tolist() == axes["policy"]
