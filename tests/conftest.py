"""tests/conftest: strict JAX modes for every test, and what they share."""

import gc
import json
import os
import shutil
import signal
import tempfile
from pathlib import Path

# Most of the suite's time goes into machine code that runs once or twice. The programs are the
# same without LLVM's optimisation and with XLA's plain emitters, and compile in less than half the
# time; `XLA_FLAGS= python -m pytest` tests them as users compile them.
FAST_COMPILING = "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"
os.environ.setdefault("XLA_FLAGS", FAST_COMPILING)
if "PYTEST_XDIST_WORKER" not in os.environ:
    # What one process of the run has compiled the others load, those that tests start too.
    _compiled = tempfile.TemporaryDirectory(prefix="plumejax-compiled-")
    os.environ["JAX_COMPILATION_CACHE_DIR"] = _compiled.name
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"
os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
os.environ.setdefault("MPLBACKEND", "Agg")

import hypothesis
import jax
import numpy as np
import pytest

import plumejax

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")

# An example that compiles takes long, and what takes long says nothing of what is right.
hypothesis.settings.register_profile("plumejax", deadline=None)
hypothesis.settings.load_profile("plumejax")


@pytest.fixture(scope="module", autouse=True)
def room_for_programs():
    """A compiled program maps memory in pieces, of which Linux gives a process 65,530: one that has
    compiled many lets go of them between two files, and loads what it needs again from the disk."""
    yield
    maps = Path("/proc/self/maps")
    if maps.exists() and maps.read_text().count("\n") > MOST_MAPS:
        jax.clear_caches()
        gc.collect()


MOST_MAPS = 30_000


@pytest.fixture(scope="session")
def local():
    """`(env, params)` of the local task on a small grid; shared, so that it compiles once."""
    return plumejax.make("PlumeSearchLocal-v0", grid_size=(16, 12), overrides=SMALL)


@pytest.fixture(scope="session")
def full():
    """`(env, params)` of the full-field task on the same small grid."""
    return plumejax.make("PlumeSearch-v0", grid_size=(16, 12), overrides=SMALL)


@pytest.fixture
def interruptible():
    """Ctrl-C reaches what a test starts, even where the tests run in the background.

    A shell lets its background jobs ignore it, and they hand that on.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """A Chromium without a window, that notes what a page complains of."""
    webdriver = pytest.importorskip("selenium.webdriver")
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (chromium and driver):
        pytest.skip("there is no chromium, or no chromedriver, to show a page in")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    switches = "headless disable-gpu disable-quic no-first-run disable-background-networking"
    for switch in (*switches.split(), "disable-component-update", "disable-sync"):
        options.add_argument(f"--{switch}")
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('chromium')}")
    service = webdriver.chrome.service.Service(driver)
    shown = webdriver.Chrome(options=options, service=service)
    yield shown
    shown.quit()


SMALL = {"plume.sigma": 3.0, "ending.radius": 2.0, "max_steps": 40}

RECORDED_SOURCE = (0.9, 0.7, 0.5)
"""Where the source of a made-up recording is, x, y, z in m."""

NEAR = {"ending.radius": 1.0, "start.min_distance": 2.0}
"""For the made-up room, which is smaller than the 3 m that `Recorded-v0` keeps from the source."""


@pytest.fixture(scope="session")
def write_recording():
    """The function that writes a made-up filament recording into a folder."""
    return _write_recording


@pytest.fixture(scope="session")
def recording(tmp_path_factory):
    """Path of a made-up filament recording."""
    return _write_recording(tmp_path_factory.mktemp("recording"))


@pytest.fixture(scope="session")
def recorded_choices(recording):
    """The choices and the numbers that make `Recorded-v0` of it: `(static, overrides)`."""
    return {"data": recording, "source": RECORDED_SOURCE, "frames": (1, 5)}, NEAR


def _write_recording(
    folder, *, frames=6, name="made_up", seed=0, arrays=None, occupancy=None, header=None
):
    """Write a recording of a 1.6 x 1.2 x 1.0 m room in cells of 0.2 m; its path."""
    rng = np.random.default_rng(seed)
    counts = np.arange(1, frames + 1) * 3
    n = int(counts.sum())
    filaments = np.column_stack(
        [np.asarray(RECORDED_SOURCE) + rng.normal(0, 0.25, (n, 3)), rng.uniform(10.0, 40.0, n)]
    ).astype(np.float32)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    cells = np.zeros((5, 8, 6), np.uint8)  # z, x, y
    cells[:, 0] = 1
    cells[2, 4, 5] = 2
    path = folder / f"{name}.npz"
    np.savez(path, **({"filaments": filaments, "offsets": offsets} | (arrays or {})))
    np.savez(folder / f"{name}_occupancy.npz", occupancy=cells if occupancy is None else occupancy)
    place = {
        "env_min": [0.0, 0.0, 0.0],
        "env_max": [1.6, 1.2, 1.0],
        "num_cells": [8, 6, 5],
        "cell_size": 0.2,
    }
    (folder / f"{name}_occupancy.txt").write_text(json.dumps(place | (header or {})))
    return path
