"""tests/cli/test_plume: the verbs of `plumejax plume`, on small plumes."""

import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from matplotlib.image import imread

from plumejax.base.errors import ValidationError
from plumejax.cli import main
from plumejax.cli.plume_named import meanings
from plumejax.plumes.catalogue import PRESETS, make
from plumejax.plumes.movies import decode, movie_plume, open_movie
from plumejax.plumes.sources import Drift, RunAndTumble
from plumejax.plumes.wind import Constant, Meander

PACKETS = "packets-ou"
SMALL = ["--plumes", "2", "--frames", "12", "--every", "3", "--grid", "20", "10", "--seed", "4"]


@pytest.fixture(scope="module")
def bank(tmp_path_factory):
    """The directory of a small raster bank."""
    out = tmp_path_factory.mktemp("plume") / "bank"
    assert main(["plume", "generate", PACKETS, "--out", str(out), "--wind", *SMALL]) == 0
    return out


def test_generate_writes_a_bank_that_plays(bank):
    movie = open_movie(bank)
    assert movie.frames.shape == (2, 12, 10, 20)
    assert movie.frames.dtype == np.uint8
    gas = decode(movie.frames, movie.meta)
    # Packets come by, and pass: another plume and another frame have other gas.
    assert gas.max() > 0.5
    assert (gas[0] != gas[1]).any()
    assert (gas[:, 0] != gas[:, 1]).any()
    meta = movie.meta
    assert meta.frames_per_second == pytest.approx(20)  # 60 a second, every third
    assert meta.spacing == pytest.approx((31, 30))
    assert meta.origin == pytest.approx((-20 + 15.5, -150 + 15))
    assert (meta.length, meta.sources) == ("mm", ((0.0, 0.0),))
    assert meta.made_from["plume"] == PACKETS
    assert meta.made_from["seed"] == 4
    np.testing.assert_allclose(movie.wind[:, :, 0], 150, rtol=1e-3)
    plume, params = movie_plume(movie, mirrored=True)
    plume.validate(params)


def test_the_same_command_gives_the_same_bank_and_another_seed_another(bank, tmp_path):
    for seed, same in (("4", True), ("5", False)):
        out = tmp_path / seed
        arguments = ["plume", "generate", PACKETS, "--out", str(out), "--wind", *SMALL[:-1], seed]
        assert main(arguments) == 0
        frames = (out / "frames.npy").read_bytes() == (bank / "frames.npy").read_bytes()
        assert frames == same


@pytest.mark.parametrize("name", [PACKETS, "bank"])
def test_describe_prints_and_writes_what_it_found(name, bank, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    out, picture = tmp_path / "found.json", tmp_path / "found.png"
    arguments = ["--distances", "50", "200", "--out", str(out), "--picture", str(picture)]
    if name == "bank":
        arguments = ["plume", "describe", str(bank), "--threshold", "0.1", *arguments]
    else:
        arguments = ["plume", "describe", name, "--steps", "1200", "--threshold", "0.1", *arguments]
        arguments += ["--set", "plume.rate=20"]
    assert main(arguments) == 0
    shown = capsys.readouterr().out
    report = json.loads(out.read_text())
    assert [each["distance"] for each in report["stations"]] == [50, 200]
    near = report["stations"][0]
    assert 0 < near["intermittency"] < 1
    assert f"{near['intermittency']:.3f}" in shown
    assert near["peak_to_mean"] > 1
    assert imread(picture).std() > 0.05
    if name == "bank":
        assert (report["plumes"], report["steps"]) == (2, 12)
        # The cell that (200, 0) lies in: column (200 + 4.5) / 31, row 15 / 30 + 4, of every frame.
        movie = open_movie(bank)
        gas = decode(movie.frames[:, :, 4, 7], movie.meta)
        there = report["stations"][1]
        assert there["intermittency"] == pytest.approx((gas > 0.1).mean())
        assert there["mean"] == pytest.approx(gas.mean(), rel=1e-5)
        return
    # The numbers with what they are, and the ratios, of a plume that is rolled out.
    assert report["numbers"]["plume.rate"] == 20
    assert "puffs a second and source" in shown
    assert report["dimensionless"]["Pe"] == pytest.approx(150 * 600 / 10)
    assert report["dimensionless"]["u' / U"] == pytest.approx(0, abs=1e-6)
    assert near["whiffs"] > 20
    assert near["mean"] > report["stations"][1]["mean"]


def test_show_draws_the_plume(bank, tmp_path):
    from PIL import Image

    for arguments in (
        [PACKETS, "--seconds", "2", "--cells", "60"],
        [str(bank), "--frame", "3", "--plume", "1"],
    ):
        out = tmp_path / "plume.png"
        assert main(["plume", "show", *arguments, "--out", str(out)]) == 0
        picture = imread(out)
        # Gas, white air around it, the orange star and the blue arrow.
        assert (picture[..., :3].min(-1) == 1).mean() > 0.3
        for colour in ((0xE6, 0x9F, 0x00), (0x00, 0x72, 0xB2)):
            near = np.abs(picture[..., :3] - np.asarray(colour) / 255).max(-1) < 0.02
            assert near.sum() > 20
    gif = tmp_path / "plume.gif"
    arguments = ["plume", "show", str(bank), "--frames", "4", "--every", "2", "--out", str(gif)]
    assert main(arguments) == 0
    with Image.open(gif) as animation:
        assert animation.n_frames == 4
    assert {path.name for path in tmp_path.iterdir()} == {"plume.png", "plume.gif"}


def test_help_and_datasets(capsys):
    for arguments, shown in ((["plume", "--help"], "describe"), (["--help"], "plumejax plume")):
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        assert stop.value.code == 0
        assert shown in " ".join(capsys.readouterr().out.split())
    assert main(["plume", "datasets"]) == 0
    assert "dryad" in capsys.readouterr().out


def test_static_choices_replace_those_of_a_preset():
    for name, choice in (
        ("isotropic-53x53", {"num_sources": 2, "source_motion": Drift()}),
        ("windy-low-detections", {"num_sources": 2}),
        ("cosh", {"source_motion": RunAndTumble()}),
        ("tracking-code-switch-many", {"wind": Constant()}),
        ("farrell-straight", {"wind": Meander()}),
        ("packets-white", {"capacity": 8}),
    ):
        plume, params = make(name, **choice)
        assert {key: getattr(plume, key) for key in choice} == choice
        plume.validate(params)
    with pytest.raises(ValidationError, match="has no static choice speed; it has law, grid_size"):
        make("cosh", speed=3)


def test_a_movie_of_two_frames_is_described(tmp_path, capsys):
    out = str(tmp_path / "still")
    small = ["--plumes", "1", "--frames", "2", "--grid", "20", "20", "--out", out]
    assert main(["plume", "generate", "gaussian", *small]) == 0
    assert main(["plume", "describe", out]) == 0
    assert "nan" not in capsys.readouterr().out


@pytest.mark.parametrize("name", PRESETS)
def test_every_number_of_a_preset_is_explained(name):
    _, params = make(name)
    words = meanings(params)
    assert words
    assert all(words.values()), [path for path, what in words.items() if not what]


BAD = {
    "name": (["describe", "farell"], "farrell"),
    "path": (["describe", PACKETS, "--set", "plume.rat=1"], "Did you mean"),
    "number": (["show", PACKETS, "--set", "plume.radius=-1"], "plume.radius"),
    "steps": (["describe", PACKETS, "--steps", "0"], "--steps"),
    "distance": (["describe", PACKETS, "--distances", "-1"], "--distances"),
    "json": (["describe", PACKETS, "--out", "found.txt"], "*.json"),
    "picture": (["show", PACKETS, "--out", "plume.jpg"], "*.png"),
    "folder": (["show", PACKETS, "--out", "nowhere/plume.png"], "nowhere"),
    "both": (["show", PACKETS, "--frame", "1", "--seconds", "2"], "--seconds"),
    "plumes": (["generate", PACKETS, "--out", "bank", "--plumes", "0"], "--plumes"),
    "grid": (["generate", PACKETS, "--out", "bank", "--grid", "0", "5"], "grid"),
    "spacing": (["generate", PACKETS, "--out", "bank", "--spacing", "0", "1"], "--spacing"),
    "box": (["generate", PACKETS, "--out", "bank", "--high", "-100", "0"], "low"),
    "peak": (["generate", PACKETS, "--out", "bank", "--peak", "-1"], "peak"),
    "smallest": (
        ["generate", PACKETS, "--out", "bank", "--peak", "1", "--smallest", "2"],
        "smallest",
    ),
    "there": (["generate", PACKETS, "--out", "."], "--out"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_clear_error_and_leaves_nothing(case, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments, message = BAD[case]
    assert main(["plume", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error:")
    assert message in error
    assert not list(tmp_path.iterdir())


def test_a_movie_has_so_many_frames_and_is_no_plume_to_roll_out(bank, capsys, tmp_path):
    for arguments, message in (
        (["show", str(bank), "--frame", "12", "--out", str(tmp_path / "a.png")], "0 to 11"),
        (["show", str(bank), "--plume", "2", "--out", str(tmp_path / "a.png")], "--plume"),
        (["describe", str(bank), "--steps", "13"], "--steps"),
        (["describe", str(bank), "--distances", "5000"], "distances"),
        (["describe", str(bank), "--set", "plume.rate=1"], "--set"),
        (["generate", str(bank), "--out", str(tmp_path / "again")], "movie already"),
    ):
        assert main(["plume", *arguments]) == 2
        assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_an_interrupted_bank_goes_on_with_the_same_command(tmp_path, interruptible):
    out, whole = tmp_path / "bank", tmp_path / "whole"
    more = ["--plumes", "3", "--frames", "4000", "--every", "3", "--peak", "30"]
    more += ["--grid", "60", "30"]
    command = [sys.executable, "-m", "plumejax", "plume", "generate", PACKETS]
    process = subprocess.Popen(
        [*command, "--out", str(out), *more], stdout=subprocess.PIPE, text=True
    )
    progress = tmp_path / "bank.part" / "progress.json"

    def done():
        return sum(json.loads(progress.read_text())["done"]["frames.npy"])

    while process.poll() is None and not (progress.is_file() and done()):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    shown, _ = process.communicate()
    assert process.returncode == 130, shown
    assert "same command" in shown
    assert not out.exists()
    assert 0 < done() < 12_000
    for path in (out, whole):
        assert main(["plume", "generate", PACKETS, "--out", str(path), *more]) == 0
    for name in ("frames.npy", "movie.json"):
        assert (out / name).read_bytes() == (whole / name).read_bytes()
    assert {path.name for path in tmp_path.iterdir()} == {"bank", "whole"}
