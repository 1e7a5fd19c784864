"""tests/test_notebooks: the code cells of each notebook run, and say what the saved outputs say."""

import contextlib
import io
import json
from pathlib import Path

import jax
import numpy as np
import pytest

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"


@pytest.fixture
def readers_modes():
    """A reader of a notebook has not chosen this suite's strict modes."""
    names = ("jax_numpy_rank_promotion", "jax_numpy_dtype_promotion")
    before = {name: getattr(jax.config, name) for name in names}
    for name, value in zip(names, ("allow", "standard"), strict=True):
        jax.config.update(name, value)
    yield
    for name, value in before.items():
        jax.config.update(name, value)


def run(name):
    """The names that the code cells of a notebook leave, and what they printed."""
    cells = json.loads((NOTEBOOKS / name).read_text())["cells"]
    names, said = {}, io.StringIO()
    with contextlib.redirect_stdout(said):
        for cell in cells:
            if cell["cell_type"] == "code":
                exec(compile("".join(cell["source"]), name, "exec"), names)
    return names, said.getvalue()


@pytest.mark.filterwarnings("ignore:FigureCanvasAgg is non-interactive")
def test_the_source_is_found_by_gradient_descent(readers_modes):
    names, said = run("source_by_gradient.ipynb")
    truth, found = names["truth"], names["found"]
    assert np.linalg.norm(found["source"] - truth.source[:2]) < 0.15
    assert abs(np.exp(found["log_diffusivity"]) / truth.diffusivity - 1) < 0.05
    # The descent ends where the sensors' own error of 3 % is.
    assert names["losses"][-1] < 2 * 0.03**2 < names["losses"][0] / 100
    assert said.count("true") == 3
    names["plt"].close("all")


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.name)
def test_saved_outputs_are_whole_and_name_no_machine(path):
    text = path.read_text()
    cells = json.loads(text)["cells"]
    kinds = [output["output_type"] for cell in cells for output in cell.get("outputs", [])]
    assert "error" not in kinds
    assert {"stream", "display_data"} <= set(kinds)
    assert not any(place in text for place in ("/home/", "/root/", "/work/", "/tmp/"))
    counts = [cell["execution_count"] for cell in cells if cell["cell_type"] == "code"]
    assert counts == list(range(1, len(counts) + 1))
