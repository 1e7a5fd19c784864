"""tests/cli/test_sweep: sweeps from files, pictures of stores."""

import json
import re

import numpy as np
import pytest

from plumejax.base.errors import ValidationError
from plumejax.cli import main
from plumejax.cli.sweep import read
from plumejax.sweeps.store import load

FILE = """
task = "PlumeSearchLocal-v0"
policy = "gradient"
episodes = 8
[static]
grid_size = [16, 16]
[overrides]
max_steps = 8
plume.source = [8, 8]
[axes]
plume.sigma = {geom = [1, 16, 3]}
"ending.radius" = [1.5, 3.0]
"""


def test_a_file_is_swept_drawn_and_gone_on_with(tmp_path, capsys):
    file = tmp_path / "wide.toml"
    file.write_text(FILE)
    assert main(["sweep", str(file)]) == 0
    said = capsys.readouterr().out
    assert "6 cells of 8 episodes" in said
    assert "success from" in said
    assert (tmp_path / "wide.png").is_file()
    data = load(tmp_path / "wide.zarr")
    np.testing.assert_allclose(data["plume.sigma"], [1, 4, 16])
    assert main(["sweep", str(file)]) == 0
    picture = tmp_path / "steps.pdf"
    arguments = ["--value", "median_steps", "--at", "ending.radius=2.9", "--out", str(picture)]
    assert main(["plot", str(tmp_path / "wide.zarr"), *arguments]) == 0
    assert picture.read_bytes().startswith(b"%PDF")
    assert main(["report", str(tmp_path / "wide.zarr"), "--episodes", "3"]) == 0
    text = (tmp_path / "wide.html").read_text()
    told = re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1]
    best, middle, worst = json.loads(told)["episodes"]
    assert "6 of 6 cells" in text
    assert best["radius"] >= worst["radius"]
    assert {each["steps"] <= 8 for each in (best, middle, worst)} == {True}
    file.write_text(FILE.replace("episodes = 8", "episodes = 9"))
    assert main(["sweep", str(file)]) == 2
    assert "holds another sweep: its episodes is 8, not 9" in capsys.readouterr().err


def test_a_file_may_ask_for_a_drawn_design(tmp_path):
    file = tmp_path / "drawn.toml"
    file.write_text(
        'task = "PlumeSearchLocal-v0"\ndesign = "sobol"\ncells = 4\nlog = ["plume.sigma"]\n'
        "[ranges]\nplume.sigma = [1, 16]\n"
    )
    design = read(file)["axes"]
    assert design.shape == (4,)
    assert np.all((design.columns["plume.sigma"] >= 1) & (design.columns["plume.sigma"] <= 16))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("task =", "cannot be read"),
        ('policy = "random"', "task = None"),
        ('task = "x"', r"axes = \{\} .* a table of axes or ranges"),
        ('task = "x"\nepisode = 3', "no entry 'episode'. Did you mean 'episodes'"),
        (
            'task = "x"\ncells = 4\n[axes]\na = [1]',
            r"entries = \['cells'\] .* with a table of ranges",
        ),
        ('task = "x"\n[axes]\na = {geom = [0, 1, 3]}', "axes: a = .* low > 0"),
        ('task = "x"\n[axes]\na = 3', "axes: a = 3 .* a list"),
        ('task = "x"\ndesign = "lhs"\n[ranges]\na = [1, 2]', "design = 'lhs'"),
    ],
)
def test_what_a_file_may_not_say_is_named(tmp_path, text, message):
    file = tmp_path / "bad.toml"
    file.write_text(text)
    with pytest.raises(ValidationError, match=message):
        read(file)


TRAININGS = """
task = "PlumeSearchLocal-v0"
episodes = 8
[overrides]
max_steps = 100
ending.radius = 30
[training]
seeds = 2
steps = 100
shapes = {num_envs = 4, num_steps = 4, hidden = [4]}
[axes]
entropy = [0.001, 0.1]
"""


def test_a_file_may_ask_for_trainings(tmp_path, capsys):
    file = tmp_path / "trained.toml"
    file.write_text(TRAININGS)
    assert main(["sweep", str(file)]) == 0
    said = capsys.readouterr().out
    assert "4 cells of 8 episodes" in said
    assert re.search(r"best by the median of its 2 seeds: entropy=0\.\d+\n  success median", said)
    assert load(tmp_path / "trained.zarr").success.dims == ("entropy", "seed")
    assert (tmp_path / "trained.png").is_file()
    file.write_text(TRAININGS.replace("seeds = 2", "seed = 2"))
    assert main(["sweep", str(file)]) == 2
    assert "training: no entry 'seed'. Did you mean 'seeds'" in capsys.readouterr().err
