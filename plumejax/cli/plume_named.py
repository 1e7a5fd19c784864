"""cli/plume_named: the plume that a verb is given: a name of the catalogue, or a movie."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from plumejax.base import paths
from plumejax.base.errors import ValidationError, require
from plumejax.learning.runs import parse_settings
from plumejax.plumes import rolling
from plumejax.plumes.bank import pictures
from plumejax.plumes.catalogue import PRESETS
from plumejax.plumes.grids import Grid, grid_over
from plumejax.plumes.movies import META, Movie, decode, open_movie
from plumejax.plumes.statistics import crossing, mean_wind, step_seconds

Tell = Callable[[int, int], None]
"""What is told of the work: done, in all."""

_STRETCH = 500


@dataclass(frozen=True)
class Named:
    """What both kinds know of themselves.

    Attributes:
      name, about: what it is.
      unit, length, time: of concentration, lengths and times ("step" where it knows no seconds).
      seconds: of one frame, which is one advance, or one picture of a movie.
      low, high: corners of the box that is looked at.
      sources: float64[S, 2]; S is 0 if nobody knows.
      axis: float64[2], of length 1, downwind.
      plumes, frames: how many there are; 0: as many as are wanted.
      warmup: frames that fill it.
    """

    name: str
    about: str
    unit: str
    length: str
    time: str
    seconds: float
    low: tuple[float, float]
    high: tuple[float, float]
    sources: np.ndarray
    axis: np.ndarray
    plumes: int
    frames: int
    warmup: int

    def on_axis(self, distances: Any) -> np.ndarray:
        """float32[n, 2]: places `distances` float[n] downwind of the first source."""
        along = np.asarray(distances, np.float64)[:, None] * self.axis
        return (self.sources[0] + along).astype(np.float32)


@dataclass(frozen=True)
class Live(Named):
    """A plume of the catalogue, rolled out as it is looked at.

    Attributes:
      plume, params: it.
      settings: the numbers that were set, by path.
    """

    plume: Any
    params: Any
    settings: dict[str, Any]

    def series(
        self, key: jax.Array, p: int, places: np.ndarray, first: int, steps: int, tell: Tell
    ) -> tuple[np.ndarray, np.ndarray]:
        """Concentration float32[T, n] and wind float32[T, n, 2] at `places` from frame `first`."""
        own, params = jax.random.fold_in(key, p), jax.device_put(self.params)
        state = rolling.begin(self.plume, own, params)
        state = rolling.skip(self.plume, own, 0, first, state, params)
        found = []
        for done in range(0, steps, _STRETCH):
            state, air = rolling.follow(
                self.plume, own, first + done, _STRETCH, state, places, params
            )
            found.append(jax.device_get(air))
            tell(min(done + _STRETCH, steps), steps)
        concentration = np.concatenate([air.concentration for air in found])[:steps]
        return concentration, np.concatenate([air.wind for air in found])[:steps, :, :2]

    def pictures(
        self, key: jax.Array, p: int, cells: int, first: int, frames: int, every: int, tell: Tell
    ) -> tuple[np.ndarray, np.ndarray]:
        """Fields float32[T, H, W], `every` frames apart, and each one's mean wind float32[T, 2]."""
        own, params = jax.random.fold_in(key, p), jax.device_put(self.params)
        grid = square_cells(self.low, self.high, cells)
        state = rolling.begin(self.plume, own, params)
        state = rolling.skip(self.plume, own, 0, first, state, params)
        fields, winds = [], []
        for t in range(frames):
            done = first + t * every
            state, air, _ = pictures(self.plume, own, done, every, 1, state, params, grid)
            fields.append(np.asarray(air.concentration)[0])
            winds.append(np.asarray(air.wind)[0].mean((1, 2)))
            tell(t + 1, frames)
        return np.stack(fields), np.stack(winds)


@dataclass(frozen=True)
class Film(Named):
    """A movie on disk: an imported recording, or a raster bank. It is read where it is looked at.

    Attributes:
      movie: it.
    """

    movie: Movie

    def series(
        self, key: jax.Array, p: int, places: np.ndarray, first: int, steps: int, tell: Tell
    ) -> tuple[np.ndarray, np.ndarray]:
        """As of `Live`; of the cells that `places` lie in."""
        meta = self.movie.meta
        column, row = np.rint((places - np.asarray(meta.origin)) / np.asarray(meta.spacing)).T
        width, height = self.movie.frames.shape[3], self.movie.frames.shape[2]
        inside = np.all((column >= 0) & (column < width) & (row >= 0) & (row < height))
        require(inside, "distances", places.tolist(), "places on the pictures")
        rows, columns = row.astype(int), column.astype(int)
        # In two steps: at once, NumPy would put the places before the times.
        raw = self.movie.frames[p, first : first + steps][:, rows, columns]
        tell(steps, steps)
        wind = np.zeros((steps, len(places), 2), np.float32)
        if self.movie.wind is not None:
            read = [self._wind(p, first + t)[:, rows, columns].T for t in range(steps)]
            wind = np.stack(read).astype(np.float32)
        return decode(raw, meta), wind

    def pictures(
        self, key: jax.Array, p: int, cells: int, first: int, frames: int, every: int, tell: Tell
    ) -> tuple[np.ndarray, np.ndarray]:
        """As of `Live`, in the cells of the movie."""
        fields, winds = [], []
        for t in range(frames):
            fields.append(decode(self.movie.frames[p, first + t * every], self.movie.meta))
            wind = None if self.movie.wind is None else self._wind(p, first + t * every)
            winds.append(np.zeros(2) if wind is None else wind.mean((1, 2), dtype=np.float32))
            tell(t + 1, frames)
        return np.stack(fields), np.stack(winds)

    def _wind(self, p: int, frame: int) -> np.ndarray:
        """float16[2, H, W], of the moment of a frame; before the first and after the last these."""
        assert self.movie.wind is not None
        meta = self.movie.meta
        at = int(meta.wind_start + frame * meta.wind_per_second / meta.frames_per_second)
        return self.movie.wind[p, min(max(at, 0), self.movie.wind.shape[1] - 1)]


def find(name: str, settings: tuple[str, ...]) -> Live | Film:
    """The plume called `name`, with numbers set as in `plume.radius=0.1`, or the movie at `name`.

    Raises `ValidationError` for a name that is neither, for a path that names no number, and for
    numbers that are not allowed.
    """
    if name in PRESETS:
        return _live(name, parse_settings(settings))
    known = (Path(name) / META).is_file()
    allowed = f"a movie's directory, or one of {', '.join(PRESETS)}"
    require(known, "NAME", name, allowed)
    require(not settings, "--set", settings, "left out: a movie is as it is")
    return _film(name)


def _live(name: str, settings: dict[str, Any]) -> Live:
    preset = PRESETS[name]
    plume, params = preset.make()
    params = paths.override({"plume": params}, settings)["plume"]
    if hasattr(plume, "validate"):
        plume.validate(params)
    state = rolling.begin(plume, jax.random.key(0), params)
    wind = mean_wind(plume, params)
    speed = np.hypot(*wind)
    return Live(
        name=name,
        about=preset.about,
        unit=getattr(plume, "unit", "arbitrary units"),
        length=preset.length,
        time=preset.time,
        seconds=step_seconds(plume, params),
        low=preset.low,
        high=preset.high,
        sources=np.asarray(plume.sources(state, params), np.float64)[:, :2],
        axis=wind / speed if speed else np.asarray([1.0, 0.0]),
        plumes=0,
        frames=0,
        warmup=crossing(plume, params),
        plume=plume,
        params=params,
        settings=settings,
    )


def _film(name: str) -> Film:
    movie = open_movie(name)
    meta = movie.meta
    plumes, frames, height, width = movie.frames.shape
    (x, y), (dx, dy) = meta.origin, meta.spacing
    return Film(
        name=Path(name).name,
        about=meta.title,
        unit=meta.unit,
        length=meta.length,
        time="s",
        seconds=1 / meta.frames_per_second,
        low=(x - dx / 2, y - dy / 2),
        high=(x + (width - 0.5) * dx, y + (height - 0.5) * dy),
        sources=np.asarray(meta.sources, np.float64).reshape(-1, 2),
        axis=np.asarray([1.0, 0.0]),
        plumes=plumes,
        frames=frames,
        warmup=0,
        movie=movie,
    )


def square_cells(low: Any, high: Any, cells: int) -> Grid:
    """About square cells over a box, `cells` along its longer side."""
    sides = np.subtract(high, low)
    width, height = np.maximum(np.rint(cells * sides / sides.max()), 1).astype(int)
    return grid_over(low, high, (int(width), int(height)))


def lasting(subject: Named, frames: int) -> str:
    """How long so many frames take, in words."""
    return f"{frames} steps" if subject.time == "step" else f"{frames * subject.seconds:.4g} s"


def meanings(params: Any, prefix: str = "plume") -> dict[str, str]:
    """What each number is, with its unit, by path: as the docstrings of its class say."""
    found = {}
    entries: dict[str, str] = {}
    for kind in reversed(type(params).__mro__):
        entries.update(_attributes(kind.__doc__ or ""))
    for name in getattr(params, "__dataclass_fields__", {}):
        value, path = getattr(params, name), f"{prefix}.{name}"
        found[path] = entries.get(name, "")
        found.update(meanings(value, path))
    return found


_DTYPES = r"^(?:(?:or )?\w+\[[^]]*\](?: of several)?,? ?)+"
"""What an entry begins with: `float32[2], or float32[S, 2] of several, `."""


def _attributes(docstring: str) -> dict[str, str]:
    """The `Attributes` of a docstring, `name, name: what`, by name, without their dtypes."""
    _, _, listed = docstring.partition("Attributes:")
    entries: dict[str, str] = {}
    for names, what in re.findall(r"(?m)^ +(\w+(?:, \w+)*): (.*(?:\n {8,}.*)*)", listed):
        words = re.sub(_DTYPES, "", " ".join(what.split())).lstrip("; ")
        entries.update(dict.fromkeys(names.split(", "), words))
    return entries


def bar(console: Console) -> Progress:
    """A progress bar as all of these verbs have it."""
    columns = (BarColumn(), TextColumn("{task.percentage:3.0f}%"), TextColumn("{task.description}"))
    return Progress(*columns, TimeRemainingColumn(), console=console, transient=True)


def teller(shown: Progress, description: str) -> Tell:
    """What moves a bar of its own on."""
    task = shown.add_task(description, total=None)
    return lambda done, total: shown.update(task, completed=done, total=total)


def require_out(out: Path | None, *endings: str) -> None:
    """Raise `ValidationError` unless `out` is None or ends as one of `endings`, in a folder."""
    if out is None:
        return
    require(out.suffix in endings, "--out", str(out), f"a file named *{' or *'.join(endings)}")
    if not out.parent.is_dir():
        raise ValidationError(f"--out = {str(out)!r} is not allowed: there is no {out.parent}")
