"""cli/plume_generate: `plumejax plume generate NAME`, plumes rolled out into a bank on disk."""

from pathlib import Path
from typing import Any, Literal

import jax
import numpy as np
import tyro
from rich.console import Console

from plumejax.base.errors import ValidationError, require
from plumejax.cli.plume_named import Live, bar, find, lasting, square_cells, teller
from plumejax.plumes.bank import Plan, highest, write_bank
from plumejax.plumes.grids import Grid, grid_over
from plumejax.version import __version__


def plume_generate(
    name: tyro.conf.Positional[str],
    *,
    out: Path,
    plumes: int = 10,
    frames: int = 500,
    every: int = 1,
    warmup: int | None = None,
    grid: tuple[int, int] | None = None,
    spacing: tuple[float, float] | None = None,
    low: tuple[float, float] | None = None,
    high: tuple[float, float] | None = None,
    dtype: Literal["uint8", "float16", "float32"] = "uint8",
    peak: float | None = None,
    smallest: float | None = None,
    wind: bool = False,
    seed: int = 0,
    set: tuple[str, ...] = (),
) -> int:
    """Roll plumes out into a movie that all episodes share, a bank.

    `plumejax.plumes.movies.open_movie` opens it, `movie_plume` plays it. Ctrl-C keeps what is done;
    the same command goes on with it.

    Args:
        name: of a plume (a wrong one lists them).
        out: directory of the bank, new.
        plumes: how many, each with random numbers of its own.
        frames: of each.
        every: steps of the plume from one frame to the next.
        warmup: steps before the first; by default what the wind needs to fill the plume.
        grid: width and height in cells; by default 200 along the longer side.
        spacing: lengths from cell to cell along x and y, instead of --high or of --grid.
        low: x and y of the lower left corner; by default that of a box worth looking at.
        high: x and y of the upper right corner.
        dtype: uint8 holds 255 steps of an even ratio, float16 three digits, float32 all.
        peak: the highest concentration held; by default twice the highest of the first frames.
        smallest: where uint8 begins to lose small ones; by default 1e-5 of the peak.
        wind: hold the wind too.
        seed: of the plumes.
        set: numbers of the plume, as in --set plume.radius=0.1.
    """
    require(not out.exists(), "--out", str(out), "new: a bank is written once")
    require(0 <= seed < 2**31, "--seed", seed, "0 <= seed < 2**31")
    counts = {"--plumes": plumes, "--frames": frames, "--every": every}
    for option, value in counts.items():
        require(value > 0, option, value, "> 0")
    require(warmup is None or warmup >= 0, "--warmup", warmup, ">= 0")
    subject = find(name, set)
    if not isinstance(subject, Live):
        raise ValidationError(f"NAME = {name!r} is not allowed: it is a movie already")
    console, key = Console(), jax.random.key(seed)
    cells = _cells(subject, grid, spacing, low, high)
    before = subject.warmup if warmup is None else warmup
    if peak is None:
        with console.status("looking for the highest concentration"):
            peak = _rounded(2 * highest(subject.plume, subject.params, key, cells, before, 50))
    plan = Plan(
        grid=cells,
        num_plumes=plumes,
        num_frames=frames,
        every=every,
        warmup=before,
        dtype=dtype,
        peak=peak,
        smallest=1e-5 * peak if smallest is None else smallest,
        wind=wind,
    )
    about: dict[str, Any] = {
        "title": f"{plumes} plumes: {subject.about}",
        "length": subject.length,
        "frames_per_second": 1 / (subject.seconds * every),
        "made_from": {
            "plume": name,
            "set": subject.settings,
            "seed": seed,
            "every": every,
            "warmup": before,
            "plumejax": __version__,
        },
    }
    try:
        with bar(console) as shown:
            tell = teller(shown, "frames")
            write_bank(out, subject.plume, subject.params, key, plan, about, tell)
    except KeyboardInterrupt:
        console.print(
            "interrupted; the same command goes on with what is done",
            highlight=False,
            soft_wrap=True,
        )
        return 130
    size = sum(file.stat().st_size for file in out.iterdir())
    width, height = cells.size
    console.print(
        f"{out}: {plumes} plumes of {frames} frames, {lasting(subject, frames * every)} each,"
        f" {width} x {height} cells, {dtype}, {size / 1e6:,.1f} MB",
        highlight=False,
        soft_wrap=True,
    )
    return 0


def _cells(
    subject: Live,
    grid: tuple[int, int] | None,
    spacing: tuple[float, float] | None,
    low: tuple[float, float] | None,
    high: tuple[float, float] | None,
) -> Grid:
    """The grid of the pictures: a corner and two of three, size, spacing and the other corner."""
    given = (grid, spacing, high)
    require(None in given, "--high", high, "left out beside --grid and --spacing")
    corner, across = subject.low if low is None else low, subject.high if high is None else high
    if spacing is None:
        if grid is None:
            return square_cells(corner, across, 200)
        return grid_over(corner, across, grid)
    require(min(spacing) > 0, "--spacing", spacing, "> 0 lengths")
    gaps = np.asarray(spacing)
    if grid is None:
        sides = np.maximum(np.rint(np.subtract(across, corner) / gaps), 1).astype(int)
        grid = (int(sides[0]), int(sides[1]))
    return grid_over(corner, np.asarray(corner) + gaps * np.asarray(grid), grid)


def _rounded(number: float) -> float:
    """To two digits, so that the last bits of another machine do not make another bank of it."""
    return float(f"{number:.2g}") if number > 0 else 1.0
