"""plumes/readers: arrays of frames in the files that their authors wrote, read block by block."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from plumejax.base.errors import ValidationError, require
from plumejax.base.extras import need
from plumejax.base.files import UNREADABLE

Format = Literal["hdf5", "matlab", "video", "numpy", "zarr", "netcdf"]

SUFFIXES: dict[str, Format] = {
    ".h5": "hdf5", ".hdf5": "hdf5", ".nwb": "hdf5", ".mat": "matlab", ".avi": "video",
    ".mp4": "video", ".mov": "video", ".mkv": "video", ".npy": "numpy", ".npz": "numpy",
    ".zarr": "zarr", ".nc": "netcdf", ".nc4": "netcdf",
}  # fmt: skip

USUAL_AXES = {"hdf5": "t,x,y", "matlab": "y,x,t", "video": "t,-y,x"}
"""Roles of the axes where nothing is said; "t,y,x" for the other formats."""


@dataclass(frozen=True)
class Stored:
    """An open recording; rows run along y and columns along x, as stored.

    Attributes:
      shape: frames, height, width.
      dtype: of its numbers.
      flip: whether y, and whether x, falls from pixel to pixel.
      chunk: frames that the file keeps together.
      read: (first, end, step, rows, columns) -> [n, h, w].
    """

    shape: tuple[int, int, int]
    dtype: np.dtype
    flip: tuple[bool, bool]
    chunk: int
    read: Callable[[int, int, int, slice, slice], np.ndarray]


@contextmanager
def open_stored(
    path: Path, kind: Format | None = None, variable: str = "", axes: str = ""
) -> Iterator[Stored]:
    """The recording in a file, closed at the end.

    Frames are read where they lie, but an .npz, which is held in memory.

    Args:
      path: of the file, or of the folder of a Zarr store.
      kind: of the file; by default by its name.
      variable: the array's name in the file, as "/dataset2"; by default the only one with three
        axes (of HDF5, `dataset2` if there is one).
      axes: the role of each axis of the array in the order of the file (for "matlab", of MATLAB):
        "t", "x" (downwind) and "y"; "-x" or "-y" if it falls; a number takes that index of an axis.
        By default the names of the dimensions in the file, or else `USUAL_AXES`.

    Raises:
      ValidationError: no such file, or it is not of that kind, or has no such array or axes.
      PlumeError: the package that reads it is not installed.
    """
    require(path.exists(), "file", str(path), "an existing file")
    kind = kind or SUFFIXES.get(path.suffix.lower())
    require(kind, "format", path.suffix, f"given, or one of {', '.join(SUFFIXES)} as the suffix")
    with _OPENERS[str(kind)](path, variable, axes) as stored:
        yield stored


def parse_axes(axes: str) -> tuple[str, ...]:
    """("t", "x", "-y") of "t,x,-y". Raises `ValidationError` for anything else."""
    roles = tuple(role.strip() for role in axes.split(","))
    named = sorted(role.lstrip("-") for role in roles if not role.isdigit())
    good = named == ["t", "x", "y"] and "-t" not in roles
    require(good, "axes", axes, 't, x and y once each, as in "t,x,-y" or "t,0,y,x"')
    return roles


def _from_array(array: Any, roles: tuple[str, ...]) -> Stored:
    """Of anything that has a shape and a dtype and is read by slices."""
    require(hasattr(array, "dtype"), "variable", str(array), "an array, not a group of them")
    given = f"{array.dtype}{list(array.shape)}"
    fits = len(array.shape) == len(roles) and all(
        int(role) < n for role, n in zip(roles, array.shape, strict=True) if role.isdigit()
    )
    require(fits, "axes", ",".join(roles), f"those of {given}")
    order = [next(i for i, role in enumerate(roles) if role.lstrip("-") == name) for name in "tyx"]
    dtype = np.dtype(array.dtype)
    require(dtype.kind in "uifb", "dtype", dtype.name, "of numbers")
    chunks = getattr(array, "chunks", None)
    kept = [i for i, role in enumerate(roles) if not role.isdigit()]

    def read(first: int, end: int, step: int, rows: slice, columns: slice) -> np.ndarray:
        slices = dict(zip(order, (slice(first, end), rows, columns), strict=True))
        where = (slices[i] if i in slices else int(role) for i, role in enumerate(roles))
        block = np.asarray(array[tuple(where)])
        return block.transpose([kept.index(i) for i in order])[::step]

    return Stored(
        shape=(array.shape[order[0]], array.shape[order[1]], array.shape[order[2]]),
        dtype=dtype,
        flip=(roles[order[1]] == "-y", roles[order[2]] == "-x"),
        chunk=chunks[order[0]] if isinstance(chunks, tuple) and chunks else 1,
        read=read,
    )


@contextmanager
def _open_hdf5(path: Path, variable: str, axes: str) -> Iterator[Stored]:
    with _h5_dataset(path, variable, "dataset2") as array:
        yield _from_array(array, parse_axes(axes or USUAL_AXES["hdf5"]))


@contextmanager
def _open_matlab(path: Path, variable: str, axes: str) -> Iterator[Stored]:
    with _h5_dataset(path, variable, "") as array:
        # MATLAB counts its axes the other way round than the file does.
        yield _from_array(array, parse_axes(axes or USUAL_AXES["matlab"])[::-1])


@contextmanager
def _h5_dataset(path: Path, variable: str, usual: str) -> Iterator[Any]:
    h5py = need("h5py", "data")
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        hint = " (MATLAB writes it with save -v7.3)" if path.suffix == ".mat" else ""
        raise ValidationError(f"{path.name} is no HDF5 file{hint}: {error}") from error
    with file:
        found: dict[str, Any] = {}

        def note(name: str, node: Any) -> None:
            # What MATLAB and NWB keep for themselves has no three axes of more than one entry.
            if isinstance(node, h5py.Dataset) and sum(n > 1 for n in node.shape) >= 3:
                found[name] = node

        file.visititems(note)
        yield _choose(path, found, variable, usual, file)


def _choose(path: Path, found: dict[str, Any], variable: str, usual: str, group: Any) -> Any:
    """The array that is asked for, the usual one, or the only one that fits."""
    name = variable.strip("/")
    if name:
        try:
            return group[name]
        except KeyError:
            name = ""
    elif usual in found:
        return found[usual]
    elif len(found) == 1:
        return next(iter(found.values()))
    shapes = ", ".join(f"{name} {list(each.shape)}" for name, each in found.items()) or "none"
    raise ValidationError(
        f"variable = {variable!r} is not allowed: it must be one of those in {path.name}: {shapes}"
    )


@contextmanager
def _open_numpy(path: Path, variable: str, axes: str) -> Iterator[Stored]:
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
        if not isinstance(array, np.ndarray):
            with array as archive:
                array = {name: archive[name] for name in archive.files}
    except UNREADABLE as error:
        # Their words are of pickled objects, whatever is wrong.
        raise ValidationError(f"{path.name} is not a whole NumPy file of numbers") from error
    if isinstance(array, dict):
        found = array
        array = _choose(path, {k: v for k, v in found.items() if v.ndim >= 3}, variable, "", found)
    yield _from_array(array, parse_axes(axes or "t,y,x"))


@contextmanager
def _open_zarr(path: Path, variable: str, axes: str) -> Iterator[Stored]:
    zarr = need("zarr", "data")
    try:
        node = zarr.open(path, mode="r")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValidationError(f"{path.name} is no Zarr store: {error}") from error
    if isinstance(node, zarr.Group):
        found = {name: each for name, each in node.arrays() if len(each.shape) >= 3}
        node = _choose(path, found, variable, "", node)
    names = getattr(node.metadata, "dimension_names", None) or node.attrs.get("_ARRAY_DIMENSIONS")
    yield _from_array(node, parse_axes(axes or _roles_of(names)))


@contextmanager
def _open_netcdf(path: Path, variable: str, axes: str) -> Iterator[Stored]:
    xarray = need("xarray", "data")
    need("h5netcdf", "data")
    try:
        dataset = xarray.open_dataset(path, decode_times=False)
    except (OSError, ValueError) as error:
        raise ValidationError(f"{path.name} is no NetCDF file of version 4") from error
    with dataset:
        found = {str(k): v for k, v in dataset.data_vars.items() if v.ndim >= 3}
        array = _choose(path, found, variable, "", dataset)
        yield _from_array(array, parse_axes(axes or _roles_of(array.dims)))


def _roles_of(names: Sequence[str] | None) -> str:
    """ "t,y,x" of what the dimensions are called in the file."""
    known = {"t": "t", "time": "t", "frame": "t", "frames": "t", "x": "x", "y": "y"}
    roles = [known.get(str(name).lower(), "") for name in names or ()]
    return ",".join(roles) if sorted(roles) == ["t", "x", "y"] else "t,y,x"


@contextmanager
def _open_video(path: Path, variable: str, axes: str) -> Iterator[Stored]:
    ffmpeg = need("imageio_ffmpeg", "view")
    try:
        frames, _ = ffmpeg.count_frames_and_secs(str(path))
        player = _Video(ffmpeg, path)
    except (OSError, RuntimeError, StopIteration) as error:
        raise ValidationError(f"{path.name} is no video that ffmpeg reads: {error}") from error
    roles = parse_axes(axes or USUAL_AXES["video"])
    allowed = '"t,-y,x" with any signs, or "t,x,y" for one that is stored turned'
    require(len(roles) == 3 and roles[0] == "t", "axes", axes, allowed)
    turned = roles[1].endswith("x")

    def read(first: int, end: int, step: int, rows: slice, columns: slice) -> np.ndarray:
        pictures = player.read(first, end)[::step]
        pictures = pictures.transpose(0, 2, 1) if turned else pictures
        return pictures[:, rows, columns]

    height, width = player.size[::-1] if turned else player.size
    try:
        yield Stored(
            shape=(frames, height, width),
            dtype=np.dtype(np.uint8),
            flip=("-y" in roles, "-x" in roles),
            chunk=1,
            read=read,
        )
    finally:
        player.close()


class _Video:
    """Grey frames of a video, read onwards; what lies behind is reached from the beginning."""

    def __init__(self, ffmpeg: Any, path: Path) -> None:
        self._open = partial(ffmpeg.read_frames, str(path), pix_fmt="gray", bits_per_pixel=8)
        self._begin()

    def _begin(self) -> None:
        self._frames = self._open()
        width, height = next(self._frames)["size"]
        self.size = (height, width)
        self._next = 0

    def read(self, first: int, end: int) -> np.ndarray:
        """uint8[n, height, width]."""
        if first < self._next:
            self.close()
            self._begin()
        while self._next < first:
            self._take()
        return np.stack([self._take() for _ in range(end - first)])

    def _take(self) -> np.ndarray:
        try:
            frame = np.frombuffer(next(self._frames), np.uint8).reshape(self.size)
        except (StopIteration, ValueError) as error:
            raise ValidationError(f"the video ends after {self._next} frames") from error
        self._next += 1
        return frame

    def close(self) -> None:
        self._frames.close()


_OPENERS: dict[str, Any] = {
    "hdf5": _open_hdf5,
    "matlab": _open_matlab,
    "video": _open_video,
    "numpy": _open_numpy,
    "zarr": _open_zarr,
    "netcdf": _open_netcdf,
}
