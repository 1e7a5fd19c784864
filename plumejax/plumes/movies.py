"""plumes/movies: a recording on disk in one form: frames, wind, and what they mean beside them.

A movie is a directory: `frames.npy`, perhaps `wind.npy`, and `movie.json`. It is written as
`NAME.part`, which takes its name when it is whole, and read memory-mapped.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from plumejax.base.errors import ValidationError, require
from plumejax.base.files import write_whole
from plumejax.plumes.recorded import RecordedParams, RecordedPlume

FRAMES, WIND, META, PROGRESS = "frames.npy", "wind.npy", "movie.json", "progress.json"
DTYPES = ("uint8", "float16", "float32")


@dataclass(frozen=True)
class MovieMeta:
    """What the numbers of a movie mean.

    Attributes:
      title: what it is, in words.
      unit: of the concentration.
      length: the unit of lengths.
      spacing: lengths from one cell to the next, along x and along y.
      origin: x and y of the centre of cell (0, 0), in lengths.
      frames_per_second: of the frames.
      sources: x and y of each source, in lengths.
      coding, scale, offset: concentration = `max(0, scale (raw - offset))` if "linear",
        `scale expm1(offset raw)` if "log", which gives eight bits a wide range.
      noise_floor: concentrations below it were stored as 0.
      wind_per_second: frames a second of the wind; 0 where there is none.
      wind_start: frame of the wind that belongs to frame 0, not always whole.
      licence, doi, sha256: of the file it was made from.
      made_from: file, roles of its axes, crop, background and all else that it was made with.
    """

    title: str = ""
    unit: str = "arbitrary units"
    length: str = "m"
    spacing: tuple[float, float] = (1.0, 1.0)
    origin: tuple[float, float] = (0.0, 0.0)
    frames_per_second: float = 1.0
    sources: tuple[tuple[float, float], ...] = ()
    coding: Literal["linear", "log"] = "linear"
    scale: float = 1.0
    offset: float = 0.0
    noise_floor: float = 0.0
    wind_per_second: float = 0.0
    wind_start: float = 0.0
    licence: str = ""
    doi: str = ""
    sha256: str = ""
    made_from: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require(self.coding in ("linear", "log"), "coding", self.coding, '"linear" or "log"')
        positive = ("frames_per_second", "scale") + (("offset",) if self.coding == "log" else ())
        for name in positive:
            value = getattr(self, name)
            require(np.isfinite(value) and value > 0, name, value, "finite and > 0")
        good = len(self.spacing) == 2 and np.all(np.isfinite(self.spacing))
        require(good and min(self.spacing) > 0, "spacing", self.spacing, "two lengths > 0")
        require(np.shape(self.origin) == (2,), "origin", self.origin, "x and y")
        pairs = all(np.shape(source) == (2,) for source in self.sources)
        require(pairs, "sources", self.sources, "x and y of each")


@dataclass(frozen=True)
class Movie:
    """A recording, or a bank of several, P by T frames of H by W cells.

    Attributes:
      frames: uint8, float16 or float32[P, T, H, W], raw, indexed [y, x], y upwards.
      wind: float16[P, T', 2, H, W], velocity of the air along x and y in lengths a second, or None.
      meta: what they mean.
    """

    frames: np.ndarray
    wind: np.ndarray | None
    meta: MovieMeta


class MovieWriter:
    """Writes a movie block by block, resumably; `with` closes it when nothing has gone wrong.

    The same call on the same path goes on with what an interruption has left.

    Args:
      path: directory of the finished movie, not there yet.
      shape: P, T, H, W.
      dtype: of the frames, one of `DTYPES`.
      meta: what they mean.
      wind_shape: P, T', 2, H, W, if there is wind; its frames are written with `write_wind`, or,
        where T' is T, with `write`.

    Attributes:
      done: frames of each of the P movies that are whole; a movie's frames are written in order.
      wind_done: the same of the wind.

    Raises:
      ValidationError: `path` exists, or `path.part` is of another movie; the message says what
        differs.
    """

    def __init__(
        self,
        path: str | Path,
        shape: Sequence[int],
        dtype: Any,
        meta: MovieMeta,
        wind_shape: Sequence[int] | None = None,
    ) -> None:
        self.path = Path(path)
        self.part = self.path.with_name(f"{self.path.name}.part")
        dtype = np.dtype(dtype)
        require(not self.path.exists(), "path", str(self.path), "of a movie that is not there yet")
        require(len(shape) == 4 and min(shape) > 0, "shape", tuple(shape), "P, T, H, W, all > 0")
        require(dtype.name in DTYPES, "dtype", dtype.name, f"one of {', '.join(DTYPES)}")
        if wind_shape is not None:
            expected = (shape[0], wind_shape[1], 2, *shape[2:])
            require(tuple(wind_shape) == expected, "wind_shape", tuple(wind_shape), f"{expected}")
        self._plan = json.loads(
            json.dumps({
                "shape": list(shape),
                "dtype": dtype.name,
                "wind_shape": wind_shape and list(wind_shape),
                "meta": asdict(meta),
            })
        )  # fmt: skip
        self._arrays = {FRAMES: (tuple(shape), dtype)}
        if wind_shape is not None:
            self._arrays[WIND] = (tuple(wind_shape), np.dtype(np.float16))
        if (self.part / PROGRESS).is_file():
            self._resume()
        else:
            self._begin()

    @property
    def done(self) -> list[int]:
        return self._done[FRAMES]

    @property
    def wind_done(self) -> list[int]:
        return self._done.get(WIND, [])

    def write(self, p: int, t: int, frames: np.ndarray, wind: np.ndarray | None = None) -> None:
        """Write frames [n, H, W], and wind [n, 2, H, W] with them, of movie `p` from frame `t`."""
        self._put(FRAMES, p, t, frames)
        if wind is not None:
            self._put(WIND, p, t, wind)
        self._note()

    def write_wind(self, p: int, t: int, wind: np.ndarray) -> None:
        """Write wind [n, 2, H, W] of movie `p` from its wind's frame `t`."""
        self._put(WIND, p, t, wind)
        self._note()

    def close(self) -> None:
        """Give the finished movie its name. Raises `ValidationError` if frames are missing."""
        for name, done in self._done.items():
            wanted = self._arrays[name][0][1]
            require(min(done) == wanted, f"{name}: frames written", done, f"{wanted} of each")
        self._maps.clear()
        write_whole(self.part / META, json.dumps(self._plan["meta"], indent=2) + "\n")
        os.replace(self.part, self.path)
        for name in (PROGRESS, f".{PROGRESS}.part"):
            (self.path / name).unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if kind is None:
            self.close()
        self._maps.clear()

    def _begin(self) -> None:
        left = self.part.exists() and any(self.part.iterdir())
        # Only an interruption within this method leaves files without a record of the plan.
        ours = {FRAMES, WIND, f".{PROGRESS}.part"}
        known = left and {file.name for file in self.part.iterdir()} <= ours
        require(not left or known, "path", str(self.part), "free, or left by an earlier writing")
        self.part.mkdir(parents=True, exist_ok=True)
        self._done = {name: [0] * shape[0] for name, (shape, _) in self._arrays.items()}
        self._maps = {
            name: np.lib.format.open_memmap(self.part / name, "w+", dtype, shape)
            for name, (shape, dtype) in self._arrays.items()
        }
        self._note()

    def _resume(self) -> None:
        stored = json.loads((self.part / PROGRESS).read_text())
        self._done = stored.pop("done")
        differing = sorted(_differences(stored, self._plan))
        if differing:
            raise ValidationError(
                f"{self.part} is an unfinished movie of another kind: {'; '.join(differing)}."
                " Go on with the same file and choices, or remove it"
            )
        self._maps = {
            name: np.lib.format.open_memmap(self.part / name, "r+") for name in self._arrays
        }

    def _put(self, name: str, p: int, t: int, block: np.ndarray) -> None:
        require(name in self._arrays, "wind", "given", "left out: the movie has no wind_shape")
        shape, dtype = self._arrays[name]
        require(0 <= p < shape[0], "p", p, f"0 <= p < {shape[0]}")
        done = self._done[name]
        fits = block.dtype == dtype and block.shape[1:] == shape[2:]
        given = f"{block.dtype}{list(block.shape)}"
        require(fits, "block", given, f"{dtype}[n, {', '.join(map(str, shape[2:]))}]")
        require(0 <= t <= done[p], "t", t, f"at most {done[p]}, the frames of movie {p} so far")
        require(t + len(block) <= shape[1], "t + n", t + len(block), f"at most {shape[1]}")
        self._maps[name][p, t : t + len(block)] = block
        done[p] = max(done[p], t + len(block))

    def _note(self) -> None:
        """The frames reach the disk before the record that they have."""
        for each in self._maps.values():
            each.flush()
        write_whole(self.part / PROGRESS, json.dumps({**self._plan, "done": self._done}))


def open_movie(path: str | Path) -> Movie:
    """The movie in directory `path`, its arrays memory-mapped.

    Raises:
      ValidationError: no movie is there, it is unfinished, or its parts do not fit each other.
    """
    path = Path(path)
    require((path / META).is_file(), "movie", str(path), f"a directory that holds {META}")
    try:
        meta = _meta_from_json((path / META).read_text())
        frames = np.load(path / FRAMES, mmap_mode="r", allow_pickle=False)
        there = (path / WIND).is_file()
        wind = np.load(path / WIND, mmap_mode="r", allow_pickle=False) if there else None
    except ValidationError as error:
        raise ValidationError(f"{path / META}: {error}") from error
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise ValidationError(f"{path} is no movie that can be read: {error}") from error
    good = frames.ndim == 4 and frames.dtype.name in DTYPES
    given = f"{frames.dtype}{list(frames.shape)}"
    require(good, f"{path / FRAMES}", given, f"{' or '.join(DTYPES)}[P, T, H, W]")
    if wind is not None:
        expected = (len(frames), *wind.shape[1:2], 2, *frames.shape[2:])
        require(wind.shape == expected, f"{path / WIND}: shape", wind.shape, f"{expected}")
    return Movie(frames, wind, meta)


def movie_plume(movie: Movie, **static: Any) -> tuple[RecordedPlume, RecordedParams]:
    """`(plume, params)` that play a movie; the frames stay memory-mapped until JAX is given them.

    Put the params on the device once, `jax.device_put(params)`, before many calls with them.
    Where static `time` is not "frame", set `frames_per_step` to frames a second times the seconds
    of a step; it is 1 as it comes.

    Args:
      movie: from `open_movie`, with at least one source.
      **static: choices of `RecordedPlume`.
    """
    num_movies, num_frames, height, width = movie.frames.shape
    meta = movie.meta
    require(len(meta.sources) > 0, "sources", meta.sources, "at least one, to be searched for")
    wind_frames = 0 if movie.wind is None else movie.wind.shape[1]
    sources = np.asarray(meta.sources, np.float32)
    plume = RecordedPlume(
        num_frames,
        (width, height),
        **{
            "num_movies": num_movies,
            "coding": meta.coding,
            "wind_frames": wind_frames,
            "unit": meta.unit,
            **static,
        },
    )
    params = plume.default_params().replace(
        # As plain views: JAX takes no subclass of ndarray.
        frames=np.asarray(movie.frames).reshape(-1, height, width),
        source=sources[0] if len(sources) == 1 else sources,
        origin=np.asarray(meta.origin, np.float32),
        spacing=np.asarray(meta.spacing, np.float32),
        scale=np.float32(meta.scale),
        offset=np.float32(meta.offset),
        axis=np.float32(sources[0, 1]),
    )
    if movie.wind is not None and plume.wind_frames:
        params = params.replace(
            wind=np.asarray(movie.wind).reshape(-1, 2, height, width),
            wind_start=np.float32(meta.wind_start),
            wind_rate=np.float32(meta.wind_per_second / meta.frames_per_second),
        )
    return plume, params


def encode(concentration: np.ndarray, dtype: Any, meta: MovieMeta) -> np.ndarray:
    """The raw numbers of concentrations >= 0, rounded and clipped to what `dtype` holds."""
    raw = np.asarray(concentration, np.float32)
    raw = np.where(raw < np.float32(meta.noise_floor), np.float32(0), raw)
    scale, offset = np.float32(meta.scale), np.float32(meta.offset)
    raw = np.log1p(raw / scale) / offset if meta.coding == "log" else raw / scale + offset
    dtype = np.dtype(dtype)
    if dtype.kind == "u":
        return np.clip(np.rint(raw), 0, np.iinfo(dtype).max).astype(dtype)
    return np.minimum(raw, np.finfo(dtype).max).astype(dtype)


def decode(raw: np.ndarray, meta: MovieMeta) -> np.ndarray:
    """float32: the concentrations of raw numbers."""
    raw = np.asarray(raw).astype(np.float32)
    scale, offset = np.float32(meta.scale), np.float32(meta.offset)
    if meta.coding == "log":
        return scale * np.expm1(offset * raw)
    return np.maximum(scale * (raw - offset), np.float32(0))


def log_coding(peak: float, smallest: float) -> dict[str, Any]:
    """`coding`, `scale` and `offset` with which uint8 reaches from `smallest` to `peak`.

    Steps are even below `smallest` and of an even ratio above it.
    """
    require(0 < smallest < peak, "smallest, peak", (smallest, peak), "0 < smallest < peak")
    return {
        "coding": "log",
        "scale": float(smallest),
        "offset": float(np.log1p(peak / smallest) / 255),
    }


def _meta_from_json(text: str) -> MovieMeta:
    stored = json.loads(text)
    known = {each.name for each in fields(MovieMeta)}
    require(set(stored) <= known, "names", sorted(set(stored) - known), f"among {sorted(known)}")
    stored["spacing"] = tuple(stored["spacing"])
    stored["origin"] = tuple(stored["origin"])
    stored["sources"] = tuple(tuple(source) for source in stored["sources"])
    return MovieMeta(**stored)


def _differences(old: Any, new: Any, name: str = "") -> list[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        return [
            line
            for key in {*old, *new}
            for line in _differences(old.get(key), new.get(key), f"{name}.{key}" if name else key)
        ]
    return [] if old == new else [f"{name} was {old!r} and is {new!r}"]
