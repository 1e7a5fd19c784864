"""plumes/importing: a recording made into a movie: oriented, cropped, downsampled, resumably."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from plumejax.base.errors import ValidationError, require
from plumejax.base.extras import need
from plumejax.plumes.filament_recordings import (
    FilamentRecording,
    read_filaments,
    read_raw_filaments,
)
from plumejax.plumes.movies import MovieMeta, MovieWriter, encode, log_coding
from plumejax.plumes.readers import Format, Stored, open_stored

Progress = Callable[[int, int], None]
"""What is told of the work: frames done, frames in all."""

_BLOCK_NUMBERS = 2**23


@dataclass(frozen=True)
class Recipe:
    """How a recording is stored and what is made of it.

    Everything about pixels (source, crop) counts them from 0 as the file stores them. In the movie,
    stored pixel 0 of an axis lies at length 0, or the last one if the axis runs the other way.

    Attributes:
      format, variable: of the array; these and `axes` as in `readers.open_stored`.
      axes: what each axis of the array is, as "t,x,-y".
      mm_per_pixel: along x and along y; None if unknown, and lengths are pixels.
      length: the unit of lengths, if it is neither.
      frames_per_second: of the recording.
      source: x and y of the source, pixels; None if unknown.
      frames: first frame, end (not included), step; an end of 0 is that of the recording.
      crop: first and end pixel along x, first and end along y; None is all.
      downsample: cells are means of so many pixels along x and y; what is left over is cut off.
      coordinates: lengths of the pixels along x and y if they are not evenly spaced: a file that
        holds two arrays, X and Y. The frames are made even by linear interpolation.
      background: subtracted from every frame: "mean" or a percentile (0 to 100) in time over
        `background_frames`, of each cell, or the path of a .npy file of one frame; "" for none.
      background_frames: first frame and end.
      intensity: concentration of one unit of the file, after the background.
      noise_floor: concentrations below it are 0.
      unit: of concentration.
      dtype: "float16", "float32", or "uint8" in 255 steps up to `peak`.
      coding: "linear", or "log" for uint8 with a wide range down to `smallest`.
      peak: the highest concentration that uint8 holds; by default that of an eight-bit file.
      smallest: where the log coding turns from even steps to even ratios; by default peak / 1000.
    """

    format: Format | None = None
    variable: str = ""
    axes: str = ""
    mm_per_pixel: tuple[float, float] | None = None
    length: str = ""
    frames_per_second: float = 1.0
    source: tuple[float, float] | None = None
    frames: tuple[int, int, int] = (0, 0, 1)
    crop: tuple[int, int, int, int] | None = None
    downsample: tuple[int, int] = (1, 1)
    coordinates: str = ""
    background: str = ""
    background_frames: tuple[int, int] = (0, 100)
    intensity: float = 1.0
    noise_floor: float = 0.0
    unit: str = "arbitrary units"
    dtype: Literal["uint8", "float16", "float32"] = "float16"
    coding: Literal["linear", "log"] = "linear"
    peak: float | None = None
    smallest: float | None = None


@dataclass(frozen=True)
class WindRecipe:
    """Recorded wind of the same grid, stored like the frames.

    Attributes:
      files: of the velocity along x and along y.
      variables: their names in the files.
      speed: lengths a second (of the movie's length) of one unit of the file, along x and along y;
        negative if it counts the other way.
      frames_per_second: of the wind; by default that of the frames.
      start: frame of the wind that belongs to frame 0 of the file of frames, perhaps < 0.
    """

    files: tuple[str, str]
    variables: tuple[str, str] = ("", "")
    speed: tuple[float, float] = (1.0, 1.0)
    frames_per_second: float | None = None
    start: float = 0.0


def import_movie(
    file: str | Path,
    out: str | Path,
    recipe: Recipe,
    wind: WindRecipe | None = None,
    about: dict[str, Any] | None = None,
    progress: Progress = lambda done, total: None,
) -> int:
    """Make the movie `out` of a recording; the same call goes on after an interruption.

    Returns how many of the numbers that it read were missing (NaN); they read 0.

    Some 100 MB of frames are in memory at a time, and the frames of a percentile's background,
    downsampled. The wind is kept whole, whatever `recipe.frames` says.

    Args:
      file: the recording.
      out: directory of the movie, not there yet.
      recipe: how it is stored and what is made of it.
      wind: the same of its wind.
      about: `title`, `licence`, `doi`, `sha256`, for `MovieMeta`.
      progress: told after each block.

    Raises:
      ValidationError: a file that is missing or is not what the recipe says; an unfinished movie of
        another file or recipe at `out`.
      PlumeError: a package of an extra is missing.
    """
    path = Path(file)
    with ExitStack() as stack:

        def opened(file: str | Path, variable: str) -> Stored:
            return stack.enter_context(
                open_stored(Path(file), recipe.format, variable, recipe.axes)
            )

        stored = opened(path, recipe.variable)
        view = _View(stored, recipe)
        named = zip(wind.files, wind.variables, strict=True) if wind else ()
        winds = [opened(*each) for each in named]
        wind_shape = _wind_shape(winds, view)
        meta = _describe(path, stored, view, recipe, wind, about or {})
        shape = (1, view.length, *view.size)
        with MovieWriter(out, shape, recipe.dtype, meta, wind_shape) as writer:
            total = view.length + (wind_shape[1] if wind_shape else 0)
            background = _background(view, recipe) if writer.done[0] < view.length else None
            view.missing = 0  # in frames for the background, which are read again
            for t, block in view.blocks(writer.done[0]):
                frames = _clean(block, background, recipe)
                writer.write(0, t, encode(frames, recipe.dtype, meta))
                progress(writer.done[0], total)
            if wind is not None:
                views = [_View(each, recipe, every_frame=True) for each in winds]
                for t, velocity in _velocities(views, wind, writer.wind_done[0]):
                    writer.write_wind(0, t, velocity)
                    progress(view.length + writer.wind_done[0], total)
    return view.missing


def import_filaments(
    file: str | Path,
    out: str | Path,
    source: tuple[float, float, float] | None = None,
    frames: tuple[int, int] | None = None,
    frames_per_second: float = 2.0,
    about: dict[str, Any] | None = None,
    progress: Progress = lambda done, total: None,
) -> None:
    """Make the movie `out` of a filament recording: the slice at the source's height, ppm, float32.

    Args:
      file: what `read_filaments` reads, or the folder that `read_raw_filaments` does.
      out: directory of the movie, not there yet.
      source: x, y, z in m; may be left out for the recordings that we know.
      frames: first and last frame; by default all.
      frames_per_second: of the recording.
      about: `title`, `licence`, `doi`, `sha256`, for `MovieMeta`.
      progress: told after each block.
    """
    path = Path(file)
    recording = read_raw_filaments(path) if path.is_dir() else read_filaments(path, source)
    last = len(recording.offsets) - 2
    first, last_asked = frames or (0, last)
    fits = 0 <= first <= last_asked <= last
    require(fits, "frames", frames, f"(first, last) with 0 <= first <= last <= {last}")
    width, height = recording.grid_size
    length = last_asked + 1 - first
    meta = _describe_filaments(path, recording, (first, last_asked), frames_per_second, about)
    with MovieWriter(out, (1, length, height, width), np.float32, meta) as writer:
        for t in range(writer.done[0], length, 20):
            block = range(first + t, first + min(t + 20, length))
            writer.write(0, t, recording.slice(block))
            progress(writer.done[0], length)


@dataclass(frozen=True)
class _Axis:
    """One axis of the stored frames, and the cells that are made of it.

    Attributes:
      places: float64[n], lengths of all its pixels as stored.
      kept: the pixels that become cells, as stored.
      falls: whether lengths fall from pixel to pixel.
      per_cell: pixels whose mean a cell is.
      even: float64[m], lengths of the kept pixels, made even, rising.
      gap: length from one of them to the next.
      spread: float32[m, m], which makes even frames of uneven ones, or None.
    """

    places: np.ndarray
    kept: slice
    falls: bool
    per_cell: int
    even: np.ndarray
    gap: float
    spread: np.ndarray | None

    @property
    def cells(self) -> int:
        return len(self.even) // self.per_cell

    @property
    def origin(self) -> float:
        return float(self.even[: self.per_cell].mean())

    @property
    def spacing(self) -> float:
        return self.per_cell * self.gap


def _axes(stored: Stored, recipe: Recipe) -> tuple[_Axis, _Axis]:
    """The axes along y and x. Raises `ValidationError` if crop or downsampling do not fit."""
    _, height, width = stored.shape
    x0, x1, y0, y1 = recipe.crop or (0, width, 0, height)
    fits = 0 <= x0 < x1 <= width and 0 <= y0 < y1 <= height
    require(fits, "crop", recipe.crop, f"within {width} by {height} pixels")
    across, up = recipe.downsample
    fits = 1 <= across <= x1 - x0 and 1 <= up <= y1 - y0
    require(fits, "downsample", recipe.downsample, f"1 to {x1 - x0} and 1 to {y1 - y0}")
    pixel = recipe.mm_per_pixel or (1.0, 1.0)
    require(min(pixel) > 0, "mm_per_pixel", pixel, "> 0 along x and along y")
    sizes, pixels = (height, width), pixel[::-1]
    kept = [
        slice(first, first + (end - first) // n * n)
        for first, end, n in ((y0, y1, up), (x0, x1, across))
    ]
    if recipe.coordinates:
        places = read_coordinates(Path(recipe.coordinates))[::-1]
        given = tuple(len(each) for each in places)
        require(given == sizes, "coordinates: Y and X", given, f"{sizes}, as the frames have")
        axes = [
            _uneven(*each) for each in zip(places, kept, stored.flip, (up, across), strict=True)
        ]
    else:
        axes = [
            _evenly(*each)
            for each in zip(sizes, pixels, kept, stored.flip, (up, across), strict=True)
        ]
    return axes[0], axes[1]


def _evenly(size: int, pixel: float, kept: slice, falls: bool, per_cell: int) -> _Axis:
    places = pixel * np.arange(size, dtype=np.float64)[:: -1 if falls else 1]
    return _Axis(places, kept, falls, per_cell, np.sort(places[kept]), pixel, None)


def _uneven(places: np.ndarray, kept: slice, falls: bool, per_cell: int) -> _Axis:
    steps = np.diff(places) * (-1 if falls else 1)
    signs = "that rise, or fall where axes has a minus, and more than one of them"
    require(len(steps) > 0 and np.all(steps > 0), "coordinates", f"{places[:3]} ...", signs)
    part = np.sort(places[kept])
    even = np.linspace(part[0], part[-1], len(part))
    gap = (part[-1] - part[0]) / (len(part) - 1) if len(part) > 1 else float(steps.mean())
    return _Axis(places, kept, falls, per_cell, even, float(gap), _interpolation(part, even))


def _interpolation(places: np.ndarray, even: np.ndarray) -> np.ndarray:
    """float32[m, n]: the values at `even` of values at `places`, both rising."""
    weights = [np.interp(even, places, unit) for unit in np.eye(len(places))]
    return np.stack(weights, axis=1).astype(np.float32)


class _View:
    """A recording cropped, oriented, made even, downsampled: float32 blocks [n, h, w]."""

    def __init__(self, stored: Stored, recipe: Recipe, every_frame: bool = False) -> None:
        frames = stored.shape[0]
        self.first, end, self.step = (0, 0, 1) if every_frame else recipe.frames
        require(frames > 0, "frames in the file", frames, "> 0")
        end = end or frames
        fits = 0 <= self.first < end <= frames and self.step >= 1
        require(fits, "frames", recipe.frames, f"(first, end, step) within 0 to {frames}")
        self.length = len(range(self.first, end, self.step))
        self.stored = stored
        self.missing = 0
        self.y, self.x = _axes(stored, recipe)
        self.size = (self.y.cells, self.x.cells)

    def blocks(self, done: int = 0) -> Iterator[tuple[int, np.ndarray]]:
        """(t, frames from t) from frame `done` of the movie on."""
        at_a_time = max(1, _BLOCK_NUMBERS // (len(self.y.even) * len(self.x.even)))
        kept = -(-self.stored.chunk // self.step)
        if kept > 1 and kept <= 8 * at_a_time:  # lest a chunk is unpacked again and again
            at_a_time = -(-at_a_time // kept) * kept
        for t in range(done, self.length, at_a_time):
            yield t, self.read(t, min(t + at_a_time, self.length))

    def read(self, first: int, end: int) -> np.ndarray:
        """float32[end - first, h, w]."""
        begin, last = (self.first + self.step * t for t in (first, end - 1))
        raw = self.stored.read(begin, last + 1, self.step, self.y.kept, self.x.kept)
        return self.arrange(raw)

    def arrange(self, raw: np.ndarray) -> np.ndarray:
        """float32[n, h, w] of stored pixels [n, H, W], those that are kept; NaN reads 0."""
        frames = raw.astype(np.float32)
        if raw.dtype.kind == "f":
            self.missing += int(np.count_nonzero(np.isnan(frames)))
            frames = np.nan_to_num(frames, copy=False)
        y, x = self.y, self.x
        frames = frames[:, :: -1 if y.falls else 1, :: -1 if x.falls else 1]
        if y.spread is not None and x.spread is not None:
            frames = y.spread @ frames @ x.spread.T
        rows = sum(
            (frames[:, i :: y.per_cell] for i in range(1, y.per_cell)), frames[:, :: y.per_cell]
        )
        cells = sum(
            (rows[:, :, i :: x.per_cell] for i in range(1, x.per_cell)), rows[:, :, :: x.per_cell]
        )
        return cells / np.float32(y.per_cell * x.per_cell)


def read_coordinates(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """(X, Y), float64[W] and float64[H], of a .npz or a MATLAB file of any version."""
    require(path.is_file(), "coordinates", str(path), "an existing file that holds X and Y")
    try:
        if path.suffix == ".npz":
            with np.load(path, allow_pickle=False) as archive:
                found = {name: archive[name] for name in archive.files}
        else:
            found = _read_mat(path)
    except (OSError, ValueError) as error:
        raise ValidationError(f"{path.name} cannot be read: {error}") from error
    names = {"X", "Y"} <= set(found)
    require(names, f"{path.name}: arrays", sorted(found), "X and Y among them")
    x, y = (np.asarray(found[name], np.float64).ravel() for name in ("X", "Y"))
    return x, y


def _read_mat(path: Path) -> dict[str, np.ndarray]:
    from scipy.io import loadmat

    try:
        return loadmat(path)
    except NotImplementedError:  # from version 7.3 on it is HDF5
        h5py = need("h5py", "data")
        with h5py.File(path, "r") as file:
            return {name: file[name][()] for name in file if isinstance(file[name], h5py.Dataset)}


def _describe(
    path: Path,
    stored: Stored,
    view: _View,
    recipe: Recipe,
    wind: WindRecipe | None,
    about: dict[str, Any],
) -> MovieMeta:
    rate = recipe.frames_per_second / recipe.frames[2]
    wind_rate = 0.0
    wind_start = 0.0
    if wind is not None:
        wind_rate = wind.frames_per_second or recipe.frames_per_second
        wind_start = wind.start + recipe.frames[0] * wind_rate / recipe.frames_per_second
    return MovieMeta(
        title=about.get("title", path.stem),
        unit=recipe.unit,
        length=recipe.length or ("mm" if recipe.mm_per_pixel else "pixels"),
        spacing=(view.x.spacing, view.y.spacing),
        origin=(view.x.origin, view.y.origin),
        frames_per_second=rate,
        sources=_source(view, recipe),
        noise_floor=recipe.noise_floor,
        wind_per_second=wind_rate,
        wind_start=wind_start,
        licence=about.get("licence", ""),
        doi=about.get("doi", ""),
        sha256=about.get("sha256", ""),
        made_from={
            "file": path.name,
            "bytes": _size(path),
            "stored": f"{stored.dtype}{list(stored.shape)}",
            "recipe": _plain(asdict(recipe)),
            "wind": wind and _plain(asdict(wind)),
        },
        **_coding(stored, recipe),
    )


def _coding(stored: Stored, recipe: Recipe) -> dict[str, Any]:
    if recipe.dtype != "uint8":
        require(recipe.coding == "linear", "coding", recipe.coding, '"linear" for floats')
        return {}
    peak = recipe.peak
    if peak is None and stored.dtype == np.uint8:
        peak = 255 * recipe.intensity
    if peak is None or not 0 < peak < np.inf:
        allowed = "> 0: the highest concentration that uint8 is to hold"
        raise ValidationError(f"peak = {peak!r} is not allowed: it must be {allowed}")
    if recipe.coding == "log":
        return log_coding(peak, recipe.smallest or peak / 1000)
    return {"scale": float(peak / 255)}


def _source(view: _View, recipe: Recipe) -> tuple[tuple[float, float], ...]:
    if recipe.source is None:
        return ()
    found = []
    for pixel, axis in zip(recipe.source, (view.x, view.y), strict=True):
        at = float(np.interp(pixel, np.arange(len(axis.places)), axis.places))
        cell = (at - axis.origin) / axis.spacing
        inside = 0 <= pixel <= len(axis.places) - 1 and -0.5 <= cell <= axis.cells - 0.5
        require(inside, "source", recipe.source, "x and y of a pixel that the crop keeps")
        found.append(at)
    return ((found[0], found[1]),)


def _describe_filaments(
    path: Path,
    recording: FilamentRecording,
    frames: tuple[int, int],
    rate: float,
    about: dict[str, Any] | None,
) -> MovieMeta:
    x, y = recording.origin[:2]
    half = recording.cell_size / 2
    return MovieMeta(
        **{
            "title": path.stem,
            "unit": "ppm",
            "length": "m",
            "spacing": (recording.cell_size, recording.cell_size),
            "origin": (x + half, y + half),
            "frames_per_second": rate,
            "sources": (tuple(recording.source[:2]),),
            "made_from": {
                "file": path.name,
                "bytes": _size(path),
                "frames": list(frames),
                "height_m": recording.source[2],
            },
            **(about or {}),
        }
    )


def _size(path: Path) -> int:
    files = [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]
    return sum(file.stat().st_size for file in files)


def _plain(tree: Any) -> Any:
    """As JSON has it."""
    if isinstance(tree, dict):
        return {name: _plain(value) for name, value in tree.items()}
    return [_plain(value) for value in tree] if isinstance(tree, tuple | list) else tree


def _background(view: _View, recipe: Recipe) -> np.ndarray | None:
    """float32[h, w]: what is subtracted."""
    if not recipe.background:
        return None
    if recipe.background.endswith(".npy"):
        path = Path(recipe.background)
        require(path.is_file(), "background", str(path), "an existing .npy file of one frame")
        frame = np.load(path, allow_pickle=False)
        shape = view.stored.shape[1:]
        require(frame.shape == shape, "background: shape", frame.shape, f"{shape}, as the frames")
        return view.arrange(frame[None, view.y.kept, view.x.kept])[0]
    first, end = recipe.background_frames
    whole = _View(view.stored, recipe, every_frame=True)
    fits = 0 <= first < end <= whole.length
    require(fits, "background_frames", (first, end), f"(first, end) within 0 to {whole.length}")
    blocks = (block[: end - t] for t, block in whole.blocks(first) if t < end)
    if recipe.background == "mean":
        total = sum(block.sum(0, dtype=np.float64) for block in blocks)
        return np.asarray(total / (end - first), np.float32)
    try:
        percentile = float(recipe.background)
    except ValueError:
        percentile = -1.0
    allowed = '"mean", a percentile from 0 to 100, or a .npy file'
    require(0 <= percentile <= 100, "background", recipe.background, allowed)
    return np.percentile(np.concatenate(list(blocks)), percentile, axis=0).astype(np.float32)


def _clean(block: np.ndarray, background: np.ndarray | None, recipe: Recipe) -> np.ndarray:
    """float32[n, h, w]: concentrations."""
    signal = block if background is None else block - background
    return np.maximum(signal * np.float32(recipe.intensity), np.float32(0))


def _wind_shape(winds: Sequence[Stored], view: _View) -> tuple[int, ...] | None:
    if not winds:
        return None
    for each in winds:
        fits = each.shape[1:] == view.stored.shape[1:] and each.shape[0] == winds[0].shape[0]
        shape = (winds[0].shape[0], *view.stored.shape[1:])
        require(fits, "wind: shape", each.shape, f"{shape}, both on the grid of the frames")
    return (1, winds[0].shape[0], 2, *view.size)


def _velocities(
    views: Sequence[_View], wind: WindRecipe, done: int
) -> Iterator[tuple[int, np.ndarray]]:
    """(t, float16[n, 2, h, w] from t)."""
    for (t, u), (_, v) in zip(*(view.blocks(done) for view in views), strict=True):
        velocity = [part * np.float32(s) for part, s in zip((u, v), wind.speed, strict=True)]
        yield t, np.stack(velocity, axis=1).astype(np.float16)
