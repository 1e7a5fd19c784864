"""cli/plot: `plumejax plot`, a picture of a sweep's store."""

import json
from pathlib import Path
from typing import Any

import tyro
from rich.console import Console

from plumejax.base.errors import require
from plumejax.cli.plume_named import require_out


def plot(
    store: tyro.conf.Positional[Path],
    *,
    value: str = "success",
    x: str | None = None,
    y: str | None = None,
    at: tuple[str, ...] = (),
    out: Path | None = None,
) -> int:
    """Draw a measure of a sweep: curves with intervals of 95 %, maps, a panel for each slice.

    Of a sweep that is still being played, what there is.

    Args:
        store: a directory *.zarr that `plumejax sweep` wrote.
        value: what is measured: success, median_steps, restricted_mean, mean_return, ...
        x: the axis to the right; by default the first of the sweep.
        y: the second axis, as curves if it has up to 6 values, else as a map.
        at: slices, as in --at sensor.threshold=1e-3: the nearest value of an axis.
        out: the picture, *.png, *.pdf or *.svg; by default beside the store, named by the value and
            the slices.
    """
    from plumejax.sweeps.store import load
    from plumejax.viewing.figures import save
    from plumejax.viewing.sweeps import figure

    require_out(out, ".png", ".pdf", ".svg")
    data = load(store)
    require(bool(data.done.any()), str(store), "no cell that has been played", "played in part")
    drawn = figure(data, value, x, y, dict(_slice(each) for each in at))
    named = "-".join([store.stem, value, *(each.replace("/", "_") for each in at)])
    picture = store.with_name(f"{named}.png") if out is None else out
    save(drawn, picture)
    console = Console()
    played, cells = int(data.done.sum()), data.done.size
    if played < cells:
        console.print(f"{played} of {cells} cells have been played", highlight=False)
    console.print(str(picture), highlight=False, soft_wrap=True)
    return 0


def _slice(setting: str) -> tuple[str, Any]:
    name, _, value = setting.partition("=")
    require(name and value, "--at", setting, "AXIS=VALUE, as in plume.sigma=8")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value
