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
    "fly_against_data": """
# The ten numbers of the published model, within 3 standard errors.
ours = [off[label, name] for label, name in off if name == "Álvarez-Salvado"]
assert len(ours) == 10 and np.max(np.abs(ours)) < 3
# Demir's fly hardly goes upwind; Jayaram's does, and goes on after the pulse.
during, after = "upwind, 30 to 40 s, mm/s", "upwind, 40 to 45 s, mm/s"
assert abs(table[during, "Demir"][1]) < 1 and abs(table[after, "Demir"][1]) < 1
assert abs(table[during, "Jayaram"][1] - 5.64) < 1 and table[after, "Jayaram"][1] > 6
# Twenty bins of rates, and four constants.
every = np.concatenate(list(misses.values()))
assert len(every) > 18 and np.max(np.abs(every)) < 3.5
assert all(abs(ours - value) < 3 * error for value, ours, error in constants.values())
""",
    "infotaxis_and_its_beliefs": """
assert entropy[0] - entropy[-1] > 3 and entropy[second] < entropy[second - 1] - 0.3
# The hits told all on balance, and many a step without one raises the entropy.
assert with_hit.sum() < -5 and without.sum() > 0 and np.mean(without > 0) > 0.3
assert abs(belief.sum((1, 2)) - 1).max() < 1e-4 and belief[-1][tuple(source.astype(int))] > 1e-3
assert all(np.all(played.found) for played in outcomes.values())
assert difference.value > 3 * difference.error
""",
    "quickstart": """
assert climbed.success_low > 0.95 and wandered.success_high < 0.2
assert Lifecycle(state.lifecycle) == Lifecycle.TERMINATED and state.found
assert again.step_count == state.step_count and more == 0
assert np.array_equal(again.agent.position, state.agent.position)
assert before.success_high < 0.2 and after.success_low > 0.95
# Gymnasium's is the same task.
observation, info = gym_env.reset(seed=7)
key = jax.random.fold_in(jax.random.key(info["seed"]), 0)
np.testing.assert_allclose(observation, env.reset(key, params)[0], rtol=1e-6)
""",
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
    "train_and_inspect_a_tracker": """
# The GRU learns the search, and better than the network without a memory.
assert success["gru"] > 0.8
assert success["gru"] - success["none"] > 4 * np.sqrt(2 * 0.25 / fresh)
assert curves["gru"][-1] > curves["gru"][0] + 0.4
# Most of the tracker's episodes find the source, and it is out of odour for long enough to tell.
assert all(each.found.mean() > 0.6 for each in data.values())
assert len(y) > 300 and y.max() > 0.5
# The hidden state tells the time since the last whiff, and better than what was shown.
assert fits["hidden state"][0] > 0.7
assert gain[0] > 0
assert np.mean((guesses["hidden state"] - y)[y > 0.7]) < 0
""",
    "write_a_component": """
assert "not in Box(low=0.0, high=1.0" in caught
assert single.observation_space.contains(observation)
assert score.success_low > 0.95 and counts[0] > 0.95 * episodes
# The more scatter the fewer find, but for chance.
chance = np.sqrt(2 * 0.25 * episodes)
assert counts[0] - counts[-1] > 10 * chance and np.all(np.diff(counts) < 2 * chance)
""",
    "your_own_recording": """
# What went in comes out, but for the noise and its floor.
assert np.array_equal(movie.meta.sources, [(18, 150)])
assert abs(seen - gas[:, ::-1]).max() < 0.3
# The farther away, the longer the blanks.
near, far = blanks[0], blanks[-1]
error = np.hypot(near.std() / np.sqrt(len(near)), far.std() / np.sqrt(len(far)))
assert far.mean() - near.mean() > 4 * error
assert scores["cast and surge"].success_low > 0.9
assert max(scores[x].success_high for x in ("random steps", "gradient following")) < 0.1
# The command does the same.
from plumejax.cli import main

command = (
    "plume import plume.npy --out again --axes t,-y,x --mm-per-pixel 6 6 --fps 20 --source 3 24"
    " --background mean --background-frames 0 40 --frames 40 0 1 --intensity 0.01"
    " --noise-floor 0.1 --unit ppm"
)
words = [str(folder / x) if x in ("plume.npy", "again") else x for x in command.split()]
assert main(words) == 0
again = open_movie(folder / "again")
assert np.array_equal(again.frames, movie.frames) and again.meta.sources == movie.meta.sources
""",
}
"""What is run after the last cell, by notebook."""

LONG = {
    "fly_against_data",
    "infotaxis_and_its_beliefs",
    "quickstart",
    "sweep_of_fly_gains",
    "sweep_of_memory_and_wind",
    "train_and_inspect_a_tracker",
    "write_a_component",
    "your_own_recording",
}


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
