"""tests/test_notebooks: every notebook runs to its last cell, and what it says holds.

A reader's program is a new one, so each runs in a kernel of its own.
"""

import json
import os
from pathlib import Path

import nbclient
import nbformat
import pytest

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"

HOLDS = {
    "source_by_gradient": """
assert np.linalg.norm(found["source"] - truth.source[:2]) < 0.15
assert abs(np.exp(found["log_diffusivity"]) / truth.diffusivity - 1) < 0.05
# The descent ends where the sensors' own error of 3 % is.
assert losses[-1] < 2 * 0.03**2 < losses[0] / 100
""",
    "sweep_of_fly_gains": """
assert all(np.all(data.done == 1) and data.success.shape == (64, 64) for data in found.values())
# Whoever heeds no odour finds less than the best, four standard errors and more.
for field in smooth.values():
    assert field.max() - field[0, 0] > 4 * np.sqrt(0.25 / 200)
""",
    "sweep_of_memory_and_wind": """
assert np.all(data.done == 1)
# Where the wind turns every few seconds the longest memory is worse than the shortest.
turning = data.success.sel({"plume.wind.interval": slice(0.5, 4)}).mean("plume.wind.interval")
assert turning[0] - turning[-1] > 4 * np.sqrt(2 * 0.25 / (64 * 4))
""",
}
"""What is run after the last cell, by notebook."""

LONG = {"sweep_of_fly_gains", "sweep_of_memory_and_wind"}


def names():
    return sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb"))


@pytest.mark.parametrize(
    "name", [pytest.param(x, marks=[pytest.mark.slow] if x in LONG else []) for x in names()]
)
def test_it_runs_and_what_it_says_holds(name):
    notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell(HOLDS[name]))
    client = nbclient.NotebookClient(notebook, timeout=500, kernel_name="python3")
    # Compiled as a reader's, not as this suite's.
    environment = {name: x for name, x in os.environ.items() if name != "XLA_FLAGS"}
    client.execute(env={**environment, "MPLBACKEND": "module://matplotlib_inline.backend_inline"})
    printed = [x for cell in notebook.cells for x in cell.get("outputs", ())]
    assert "image/png" in {kind for x in printed for kind in x.get("data", ())}


@pytest.mark.parametrize("name", names())
def test_it_is_kept_without_what_it_printed(name):
    text = (NOTEBOOKS / f"{name}.ipynb").read_text()
    nbformat.validate(nbformat.reads(text, as_version=4))
    code = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
