"""benchmarks/plots: how the cost grows, with the batch and with the plume, from a run's JSON.

python -m benchmarks.plots [benchmarks/results/speed.json]
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import tyro
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plumejax.viewing.figures import save


class Style(NamedTuple):
    """Of a line; colours are told apart by the colour-blind (Okabe and Ito 2008)."""

    colour: str
    marker: str
    dashes: str = "-"


BATCH = {
    "PlumeSearchLocal-v0, bare arithmetic": Style("#000000", "x", "--"),
    "PlumeSearchLocal-v0": Style("#0072B2", "o"),
    "Recorded-v0": Style("#009E73", "s"),
    "PlumeSearch-v0": Style("#D55E00", "^"),
    "gymnax CartPole-v1": Style("#CC79A7", "D", ":"),
    "navix Empty-5x5": Style("#7F7F7F", "v", ":"),
}
CELLS = {"local sensor": BATCH["PlumeSearchLocal-v0"], "whole field": BATCH["PlumeSearch-v0"]}
FILAMENTS = {"recorded, local sensor": BATCH["Recorded-v0"]}


def main(results: Path = Path(__file__).parent / "results" / "speed.json", /) -> None:
    """Draw a run's two plots beside its JSON.

    Args:
      results: what `python -m benchmarks` wrote.
    """
    for path in draw(json.loads(results.read_text())["rows"], results.parent):
        print(path)


def draw(rows: Sequence[dict[str, Any]], folder: Path) -> list[Path]:
    """Write the two plots of these rows; their paths."""
    pictures = {"speed_batch.png": batch_plot(rows), "speed_plume.png": plume_plot(rows)}
    for name, picture in pictures.items():
        save(picture, folder / name)
    return [folder / name for name in pictures]


def batch_plot(rows: Sequence[dict[str, Any]]) -> Figure:
    """Steps a second against lanes."""
    figure = Figure(figsize=(7.5, 5), layout="constrained")
    axes = figure.subplots()
    _lines(axes, [row for row in rows if "size" not in row], "lanes", BATCH)
    axes.set_xscale("log", base=2)
    lanes = sorted({int(x) for line in axes.lines for x in line.get_xdata()})
    axes.set_xticks(lanes, [f"{n:,}" for n in lanes])
    axes.set(xlabel="lanes (episodes side by side)", ylabel="steps of one lane per second")
    if axes.lines:
        axes.legend(frameon=False, ncols=2, loc="upper left", fontsize=9)
        axes.set_ylim(top=axes.get_ylim()[1] * 6)  # room for the legend
    return figure


def plume_plot(rows: Sequence[dict[str, Any]]) -> Figure:
    """Steps a second against cells of the grid, and against filaments of a recording."""
    figure = Figure(figsize=(9, 4), layout="constrained")
    cells, filaments = figure.subplots(1, 2, sharey=True)
    sized = [row for row in rows if "size" in row]
    _lines(cells, sized, "size", CELLS)
    cells.set_xscale("log")
    cells.set(xlabel="cells of the grid", ylabel="steps of one lane per second")
    cells.set_title("Gaussian plume", loc="left", fontsize=10)
    _lines(filaments, sized, "size", FILAMENTS)
    filaments.set_xscale("log")
    filaments.set(xlabel="filaments in a frame")
    filaments.set_title("recorded gas, 77 x 77 cells", loc="left", fontsize=10)
    for axes in (cells, filaments):
        if axes.lines:
            axes.legend(frameon=False, loc="best", fontsize=9)
    return figure


def _lines(
    axes: Axes, rows: Sequence[dict[str, Any]], across: str, styles: dict[str, Style]
) -> None:
    """One line a series: medians, with a band from the least sample to the greatest."""
    for series, style in styles.items():
        points = sorted(
            (row[across], *(row["wall"][name] for name in ("median", "low", "high")), row["lanes"])
            for row in rows
            if row["series"] == series and "wall" in row
        )
        if not points:
            continue
        x, middle, low, high, lanes = zip(*points, strict=True)
        label = series if across == "lanes" else f"{series}, {lanes[0]} lanes"
        axes.plot(
            x, middle, style.dashes, color=style.colour, marker=style.marker, ms=5, label=label
        )
        axes.fill_between(x, low, high, color=style.colour, alpha=0.15, lw=0)
    axes.set_yscale("log")
    axes.grid(True, which="major", alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    tyro.cli(main)
