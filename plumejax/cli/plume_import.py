"""cli/plume_import: `plumejax plume import FILE`, a recording made into a movie."""

import textwrap
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import tyro
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from plumejax.base.errors import require
from plumejax.plumes import datasets
from plumejax.plumes.importing import Recipe, WindRecipe, import_filaments, import_movie
from plumejax.plumes.movies import Movie, decode, open_movie

PICTURE = "picture.png"


def plume_import(
    file: tyro.conf.Positional[Path],
    *,
    out: Path,
    dataset: str | None = None,
    format: Literal["hdf5", "matlab", "video", "numpy", "zarr", "netcdf", "filaments"]
    | None = None,
    variable: str | None = None,
    axes: str | None = None,
    mm_per_pixel: tuple[float, float] | None = None,
    length: str | None = None,
    fps: float | None = None,
    source: tuple[float, ...] | None = None,
    frames: tuple[int, int, int] | None = None,
    crop: tuple[int, int, int, int] | None = None,
    downsample: tuple[int, int] | None = None,
    coordinates: Path | None = None,
    background: str | None = None,
    background_frames: tuple[int, int] | None = None,
    intensity: float | None = None,
    noise_floor: float | None = None,
    unit: str | None = None,
    dtype: Literal["uint8", "float16", "float32"] | None = None,
    coding: Literal["linear", "log"] | None = None,
    peak: float | None = None,
    smallest: float | None = None,
    wind_files: tuple[Path, Path] | None = None,
    wind_variables: tuple[str, str] = ("", ""),
    wind_speed: tuple[float, float] = (1.0, 1.0),
    wind_fps: float | None = None,
    wind_start: float = 0.0,
) -> int:
    """Make a movie of a recording: a directory that `plumejax.plumes.movies.open_movie` opens.

    Nothing is in memory whole. Ctrl-C keeps what is done; the same command goes on with it. At the
    end there is a summary, and a picture of a frame and the mean in the directory. Pixels count
    from 0 as the file stores them.

    Args:
        file: the recording; of filaments, the .npz or the folder of iteration_*.npy.
        out: directory of the movie, new.
        dataset: id of a public recording, one of `plumejax plume datasets`: the file is checked,
            and imported as the registry says; other choices here go before it.
        format: of the file; by default by its name.
        variable: the array's name in the file; by default the only one with three axes.
        axes: role of each axis in the order of the file, as t,x,-y: a minus if it falls from pixel
            to pixel.
        mm_per_pixel: along x and along y; without it lengths are pixels.
        length: the unit of lengths, if neither.
        fps: frames a second.
        source: x and y of its pixel; of filaments, x y z in m.
        frames: first, end (not included, 0 is the last), step.
        crop: first and end pixel along x, first and end along y.
        downsample: pixels along x and along y whose mean a cell is.
        coordinates: file with X and Y, the places of pixels that are not evenly spaced.
        background: what is subtracted: mean, a percentile, or a .npy file of one frame.
        background_frames: first and end frame of the mean or percentile.
        intensity: concentration of one unit of the file.
        noise_floor: concentrations below it are 0.
        unit: of concentration.
        dtype: of the movie.
        coding: of uint8: even steps, or even ratios above --smallest.
        peak: the highest concentration that uint8 holds.
        smallest: see --coding.
        wind_files: of the wind along x and along y, on the same grid.
        wind_variables: their arrays' names.
        wind_speed: lengths a second of one unit of the files.
        wind_fps: frames a second of the wind; by default those of the frames.
        wind_start: frame of the wind that belongs to frame 0.
    """
    require(file.exists(), "FILE", str(file), "an existing file")
    require(not out.exists(), "--out", str(out), "new: a movie is written once")
    given = {
        "format": format,
        "variable": variable,
        "axes": axes,
        "mm_per_pixel": mm_per_pixel,
        "length": length,
        "frames_per_second": fps,
        "source": source,
        "frames": frames,
        "crop": crop,
        "downsample": downsample,
        "coordinates": coordinates and str(coordinates),
        "background": background,
        "background_frames": background_frames,
        "intensity": intensity,
        "noise_floor": noise_floor,
        "unit": unit,
        "dtype": dtype,
        "coding": coding,
        "peak": peak,
        "smallest": smallest,
    }
    choices = {name: value for name, value in given.items() if value is not None}
    wind = None
    if wind_files is not None:
        paths = (str(wind_files[0]), str(wind_files[1]))
        wind = WindRecipe(paths, wind_variables, wind_speed, wind_fps, wind_start)
    console = Console()
    try:
        _import(console, file, out, dataset, choices, wind)
    except KeyboardInterrupt:
        console.print(
            "interrupted; the same command goes on with what is done",
            highlight=False,
            soft_wrap=True,
        )
        return 130
    movie = open_movie(out)
    with console.status("looking at it"):
        found = survey(movie)
        draw(out / PICTURE, movie, found)
    console.print(summary(out, movie, found))
    console.print(f"{out / PICTURE}: a frame, and the mean", highlight=False, soft_wrap=True)
    return 0


def _import(
    console: Console,
    file: Path,
    out: Path,
    dataset: str | None,
    choices: dict[str, Any],
    wind: WindRecipe | None,
) -> None:
    columns = (BarColumn(), TextColumn("{task.percentage:3.0f}%"), TextColumn("{task.description}"))
    with Progress(*columns, TimeRemainingColumn(), console=console) as shown:
        recipe, about = _recipe(file, dataset, choices, _bar(shown, "bytes checked"))
        if recipe is None:
            filaments = _filament_choices(choices)
            require(wind is None, "--wind-files", wind and wind.files, "left out: filaments")
            import_filaments(
                file, out, **filaments, about=about, progress=_bar(shown, "frames made")
            )
        else:
            missing = import_movie(file, out, recipe, wind, about, _bar(shown, "frames made"))
            if missing:
                console.print(f"{missing} numbers were missing (NaN) and read 0", highlight=False)


def _recipe(
    file: Path, dataset: str | None, choices: dict[str, Any], progress: Callable[[int, int], None]
) -> tuple[Recipe | None, dict[str, Any]]:
    """(recipe, or None for filaments; what is known of the file)."""
    about: dict[str, Any] = {}
    base: Recipe | str | None = Recipe()
    if dataset is None:
        about["sha256"] = datasets.checksums(file, progress)[1]
        folder = file.is_dir() and any(file.glob("iteration_*_fil.npy"))
        base = datasets.FILAMENTS if folder else base
    else:
        known = datasets.find(dataset)
        recipe = known.recipe
        movie = recipe != datasets.POINTS
        require(movie, "--dataset", dataset, f"a movie: {' '.join(known.notes)}")
        allowed = f"with --format: {' '.join(known.notes)}"
        require(recipe is not None or "format" in choices, "--dataset", dataset, allowed)
        base = recipe if recipe is not None else base
        verified = datasets.verify(file, dataset, progress)
        about = {
            "title": f"{known.id}: {known.title}",
            "licence": known.licence,
            "doi": known.doi,
            "sha256": verified.sha256,
        }
    if choices.get("format", base) == datasets.FILAMENTS:
        return None, about
    source = choices.get("source", (0.0, 0.0))
    require(len(source) == 2, "--source", source, "x and y of a pixel")
    return replace(base if isinstance(base, Recipe) else Recipe(), **choices), about


def _filament_choices(choices: dict[str, Any]) -> dict[str, Any]:
    known = {"format", "source", "frames", "frames_per_second"}
    more = sorted(set(choices) - known)
    require(not more, "choices", more, f"among {sorted(known)}, for filaments")
    source, frames = choices.get("source"), choices.get("frames")
    require(source is None or len(source) == 3, "--source", source, "x, y and z in m")
    if frames is not None:
        good = frames[2] == 1 and frames[1] > frames[0]
        require(good, "--frames", frames, "first, end and a step of 1, for filaments")
    return {
        "source": source,
        "frames": frames and (frames[0], frames[1] - 1),
        "frames_per_second": choices.get("frames_per_second", 2.0),
    }


def _bar(shown: Progress, description: str) -> Callable[[int, int], None]:
    """What shows a bar of its own from the first time that it is told of progress."""
    bars: list[Any] = []

    def progress(done: int, total: int) -> None:
        if not bars:
            bars.append(shown.add_task(description, total=total))
        shown.update(bars[0], completed=done, total=total)

    return progress


def survey(movie: Movie) -> dict[str, Any]:
    """What the first movie of a file holds, read block by block.

    Its keys: `mean` float32[H, W]; `peak` float; `threshold`, the noise floor or a thousandth of
    the peak; `intermittency` float32[H, W], the share of frames above it; `frame`, int, that of the
    most gas.
    """
    length, height, width = movie.frames.shape[1:]
    step = max(1, 2**23 // (height * width))
    blocks = [range(t, min(t + step, length)) for t in range(0, length, step)]

    def frames(block: range) -> np.ndarray:
        return decode(movie.frames[0, block.start : block.stop], movie.meta)

    total, masses, peak = np.zeros((height, width)), [], 0.0
    for block in blocks:
        gas = frames(block)
        total += gas.sum(0, dtype=np.float64)
        masses.extend(gas.sum((1, 2), dtype=np.float64))
        peak = max(peak, float(gas.max()))
    threshold = movie.meta.noise_floor or 1e-3 * peak
    above = np.zeros((height, width), np.int64)
    for block in blocks:
        above += (frames(block) > threshold).sum(0)
    return {
        "mean": (total / length).astype(np.float32),
        "peak": peak,
        "threshold": threshold,
        "intermittency": (above / length).astype(np.float32),
        "frame": int(np.argmax(masses)),
    }


def summary(path: Path, movie: Movie, found: dict[str, Any]) -> Table:
    """A movie in a few lines."""
    meta = movie.meta
    _, length, height, width = movie.frames.shape
    extent = " x ".join(f"{n * s:.4g}" for n, s in zip((width, height), meta.spacing, strict=True))
    shown = Table(title=str(path), show_header=False, box=None, title_justify="left")
    shown.add_row("frames", f"{length} of {width} x {height} cells, {movie.frames.dtype}")
    seconds = length / meta.frames_per_second
    shown.add_row("time", f"{meta.frames_per_second:g} frames a second, {seconds:.4g} s")
    shown.add_row("extent", f"{extent} {meta.length}, a cell {meta.spacing[0]:.4g} along x")
    size = movie.frames.nbytes + (0 if movie.wind is None else movie.wind.nbytes)
    shown.add_row("size", f"{size / 1e6:,.1f} MB")
    if movie.wind is not None:
        shown.add_row("wind", f"{movie.wind.shape[1]} frames, {meta.wind_per_second:g} a second")
    shown.add_row("concentration", f"up to {found['peak']:.4g} {meta.unit}")
    shown.add_row("source", ", ".join(f"({x:g}, {y:g})" for x, y in meta.sources) or "unknown")
    row = _row_of_the_source(movie, found)
    places = [width // 4, width // 2, 3 * width // 4]
    shares = ", ".join(f"{found['intermittency'][row, x]:.2f}" for x in places)
    shown.add_row(
        "intermittency", f"{shares} at 1/4, 1/2, 3/4 of its row (above {found['threshold']:.3g})"
    )
    return shown


def _row_of_the_source(movie: Movie, found: dict[str, Any]) -> int:
    """The row of the source, or that of the most gas if nobody knows it."""
    if not movie.meta.sources:
        return int(np.argmax(found["mean"].sum(1)))
    row = (movie.meta.sources[0][1] - movie.meta.origin[1]) / movie.meta.spacing[1]
    return int(np.clip(np.rint(row), 0, movie.frames.shape[2] - 1))


def draw(path: Path, movie: Movie, found: dict[str, Any]) -> None:
    """Draw the frame of the most gas and the mean into the PNG `path`, y upwards."""
    from matplotlib.figure import Figure

    from plumejax.viewing.figures import save

    meta = movie.meta
    height, width = found["mean"].shape
    (x, y), (dx, dy) = meta.origin, meta.spacing
    extent = (x - dx / 2, x + dx * (width - 0.5), y - dy / 2, y + dy * (height - 0.5))
    frame = decode(movie.frames[0, found["frame"]], meta)
    wide = width * dx >= 1.5 * height * dy
    figure = Figure(figsize=(7.5, 8.0) if wide else (10.5, 5.0), layout="constrained")
    axes = figure.subplots(*((2, 1) if wide else (1, 2)), sharex=True, sharey=True)
    seconds = found["frame"] / meta.frames_per_second
    pictures = ((f"the frame of the most gas, at {seconds:.4g} s", frame), ("mean", found["mean"]))
    for ax, (title, picture) in zip(axes, pictures, strict=True):
        image = ax.imshow(
            np.sqrt(picture), origin="lower", extent=extent, cmap="viridis", aspect="equal", vmin=0
        )
        bar = figure.colorbar(image, ax=ax, shrink=0.8, label=meta.unit)
        bar.ax.yaxis.set_major_formatter(lambda root, _: f"{root**2:.3g}")
        for sx, sy in meta.sources:
            ax.plot(sx, sy, "o", mfc="none", mec="tab:red", ms=9, label="source")
        ax.set_title(title, loc="left", fontsize=10)
        ax.set_xlabel(f"x ({meta.length})")
    axes[0].set_ylabel(f"y ({meta.length})")
    figure.suptitle(textwrap.fill(meta.title, 80), fontsize=11)
    save(figure, path)
