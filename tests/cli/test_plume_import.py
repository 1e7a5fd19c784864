"""tests/cli/test_plume_import: recordings imported and listed on the command line."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
import tyro
from matplotlib.image import imread

from plumejax.base.errors import ValidationError
from plumejax.cli import plume_datasets as listing
from plumejax.cli.plume_import import plume_import, survey
from plumejax.plumes.datasets import DATASETS
from plumejax.plumes.movies import open_movie

T, H, W = 9, 6, 20
GAS = np.zeros((T, H, W), np.float32)
GAS[::3, 2] = 1.0  # there a third of the time
GAS[4, 2, 5] = 3.0


def _run(*arguments):
    return tyro.cli(plume_import, args=[str(each) for each in arguments])


@pytest.fixture
def npy(tmp_path):
    np.save(tmp_path / "gas.npy", GAS)
    return tmp_path / "gas.npy"


def test_import_leaves_a_movie_a_picture_and_a_summary(npy, tmp_path, capsys):
    out = tmp_path / "movie"
    choices = ("--mm-per-pixel", 2, 3, "--fps", 15, "--source", 0, 2, "--unit", "ppm")
    assert _run(npy, "--out", out, *choices) == 0
    movie = open_movie(out)
    np.testing.assert_array_equal(movie.frames[0], GAS)
    assert movie.meta.spacing == (2.0, 3.0)
    assert len(movie.meta.sha256) == 64
    assert imread(out / "picture.png").std() > 0.05  # not an empty sheet
    shown = capsys.readouterr().out
    for part in ("9 of 20 x 6 cells, float16", "15 frames a second, 0.6 s", "up to 3 ppm"):
        assert part in shown
    assert "0.44, 0.33, 0.33" in shown  # with the fourth frame at the first quarter
    with pytest.raises(ValidationError, match="--out"):
        _run(npy, "--out", out)


def test_missing_numbers_are_counted(tmp_path, capsys):
    gas = GAS.copy()
    gas[1:4, 3, 7] = np.nan
    np.save(tmp_path / "gas.npy", gas)
    background = ["--background", "mean", "--background-frames", "0", "9"]
    out = tmp_path / "movie"
    assert _run(tmp_path / "gas.npy", "--out", out, *background) == 0
    assert "3 numbers were missing (NaN) and read 0" in capsys.readouterr().out
    assert np.isfinite(open_movie(out).frames).all()


def test_survey_is_that_of_the_whole_movie(npy, tmp_path, monkeypatch):
    _run(npy, "--out", tmp_path / "movie")
    found = survey(open_movie(tmp_path / "movie"))
    np.testing.assert_allclose(found["mean"], GAS.mean(0), rtol=1e-6)
    np.testing.assert_allclose(found["intermittency"], (GAS > 0).mean(0))
    assert (found["peak"], found["frame"]) == (3.0, 0)


def test_a_dataset_is_checked_and_its_recipe_used(tmp_path, monkeypatch, capsys):
    h5py = pytest.importorskip("h5py")
    file = tmp_path / "file.h5"
    with h5py.File(file, "w") as stored:
        stored["dataset2"] = np.zeros((3, 10, 120), np.float32)
    with pytest.raises(ValidationError, match="is damaged"):
        _run(file, "--out", tmp_path / "movie", "--dataset", "connor-2018")
    assert not list(tmp_path.glob("movie*"))
    known = replace(DATASETS["connor-2018"], md5=None)
    monkeypatch.setitem(DATASETS, "connor-2018", known)
    _run(file, "--out", tmp_path / "movie", "--dataset", "connor-2018", "--downsample", "2", "2")
    movie = open_movie(tmp_path / "movie")
    assert movie.frames.shape == (1, 3, 60, 5)
    assert (movie.meta.doi, movie.meta.frames_per_second) == ("10.5061/dryad.g27mq71", 15.0)
    with pytest.raises(ValidationError, match="no dataset"):
        _run(file, "--out", tmp_path / "other", "--dataset", "nobody-1999")
    with pytest.raises(ValidationError, match="no movie"):
        _run(file, "--out", tmp_path / "other", "--dataset", "nag-2025")
    with pytest.raises(ValidationError, match="--format"):
        _run(file, "--out", tmp_path / "other", "--dataset", "boie-2018")


def test_filaments_are_imported(recording, tmp_path, capsys):
    choices = ("--format", "filaments", "--source", 0.9, 0.7, 0.5, "--frames", 1, 6, 1)
    assert _run(recording, "--out", tmp_path / "movie", *choices) == 0
    assert open_movie(tmp_path / "movie").frames.shape == (1, 5, 6, 8)
    with pytest.raises(ValidationError, match="downsample"):
        _run(recording, "--out", tmp_path / "other", *choices, "--downsample", 2, 2)


def test_ctrl_c_keeps_what_is_done_and_the_same_command_goes_on(tmp_path, interruptible):
    rng = np.random.default_rng(0)
    file, out = tmp_path / "long.npy", tmp_path / "movie"
    frames = np.lib.format.open_memmap(file, "w+", np.float32, (400, 80, 100))
    frames[:] = rng.uniform(0, 1, (400, 80, 100))
    frames.flush()
    script = (
        "import sys, time, tyro\n"
        "from plumejax.plumes import importing\n"
        "from plumejax.cli.plume_import import plume_import\n"
        "importing._BLOCK_NUMBERS = 80 * 100 * 4\n"
        "encode = importing.encode\n"
        "def slow(*each):\n"
        "    time.sleep(0.02)\n"
        "    return encode(*each)\n"
        "importing.encode = slow\n"
        "sys.exit(tyro.cli(plume_import))\n"
    )
    command = [sys.executable, "-c", script, str(file), "--out", str(out)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    record = tmp_path / "movie.part" / "progress.json"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (record.is_file() and _done(record) >= 8):
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130, output
    assert "the same command goes on" in output
    assert not out.exists()
    assert 0 < _done(record) < 400
    assert _run(file, "--out", out) == 0
    np.testing.assert_array_equal(open_movie(out).frames[0], frames.astype(np.float16))


def _done(record):
    import json

    return json.loads(record.read_text())["done"]["frames.npy"][0]


def test_the_registry_is_listed_and_told(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    assert tyro.cli(listing.plume_datasets, args=[]) == 0
    shown = capsys.readouterr().out
    for id, dataset in DATASETS.items():
        assert id in shown
        assert dataset.doi in shown
    assert tyro.cli(listing.plume_datasets, args=["demir-2020"]) == 0
    shown = capsys.readouterr().out
    for part in ("https://doi.org/10.5061/dryad.4j0zpc87z", "6f87df24e4a5146c49c56979aca0fd78",
                 "none found published", "0.154 x 0.154 mm", "89.94 frames a second",
                 "--dataset demir-2020"):  # fmt: skip
        assert part in shown
    with pytest.raises(ValidationError, match="no dataset"):
        tyro.cli(listing.plume_datasets, args=["nobody-1999"])
