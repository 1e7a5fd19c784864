"""sweeps/store: a sweep as labelled arrays, in memory or on disk, filled as its chunks end."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from plumejax.base.errors import ValidationError, require
from plumejax.base.extras import need
from plumejax.base.files import UNREADABLE
from plumejax.sweeps.chunks import Chunk

DONE = "done"
"""The array that says which cells have been played."""

MOST = 2**16
"""Cells of a piece of an array on disk, about."""


def blank(sweep: Any) -> Any:
    """The `xarray.Dataset` of a sweep of which nothing has been played: NaN everywhere."""
    xarray = need("xarray", "data")
    design = sweep.design
    coordinates: dict[str, Any] = {}
    dims = []
    for axis, names in design.axes:
        flat = all(design.columns[name].ndim == 1 for name in names)
        # A coordinate of several numbers cannot have the name of its axis.
        dims.append(axis if flat or axis not in names else f"{axis}.number")
        for name in names:
            values = design.along(name)
            more = tuple(f"{name}.{i}" for i in range(values.ndim - 1))
            coordinates[name] = ((dims[-1], *more), values, sweep.attributes(name))
    arrays = {
        name: (dims, np.full(design.shape, np.nan), {"units": unit})
        for name, unit in sweep.measures.items()
    }
    played = {DONE: (dims, np.zeros(design.shape, np.uint8), {"long_name": "played"})}
    about = {"sweep": json.dumps(sweep.description), "episodes": sweep.episodes}
    return xarray.Dataset({**arrays, **played}, coordinates, about)


class Memory:
    """Keeps a sweep in this process."""

    def __init__(self, sweep: Any) -> None:
        self.data = blank(sweep)

    def is_done(self, chunk: Chunk) -> bool:
        return False

    def write(self, chunk: Chunk, measures: dict[str, np.ndarray]) -> None:
        cells = slice(chunk.first, chunk.first + chunk.cells)
        for name, values in measures.items():
            self.data[name].values.reshape(-1)[cells] = values
        self.data[DONE].values.reshape(-1)[cells] = 1

    def read(self) -> Any:
        """The dataset."""
        return self.data


class Store:
    """Keeps a sweep in a Zarr group, which is a whole one whenever the process is killed.

    A cell is marked as played after all that was measured of it has been written. One process
    writes at a time.
    """

    def __init__(self, path: Path, sweep: Any) -> None:
        zarr = need("zarr", "data")
        require(path.suffix == ".zarr", "store", str(path), "a name that ends in .zarr")
        if path.exists():
            _require_same(read_description(path), sweep.description, path)
        else:
            _begin(path, sweep)
        self._path, self._shape = path, sweep.design.shape
        self._group = zarr.open_group(str(path), mode="r+")
        self._done = np.asarray(self._group[DONE][:]).reshape(-1) == 1

    def is_done(self, chunk: Chunk) -> bool:
        """Whether each of its cells has been played."""
        return bool(self._done[chunk.first : chunk.first + chunk.cells].all())

    def write(self, chunk: Chunk, measures: dict[str, np.ndarray]) -> None:
        """Keep what was measured of a chunk."""
        numbers = np.arange(chunk.first, chunk.first + chunk.cells)
        where = np.unravel_index(numbers, self._shape)
        for name, values in measures.items():
            self._group[name].set_coordinate_selection(where, values)
        self._group[DONE].set_coordinate_selection(where, np.ones(chunk.cells, np.uint8))
        self._done[numbers] = True

    def read(self) -> Any:
        """The dataset."""
        return load(self._path)


def load(path: str | Path) -> Any:
    """The `xarray.Dataset` of a store, in memory; NaN where nothing has been played yet.

    Raises `ValidationError` for a path that holds no sweep.
    """
    xarray = need("xarray", "data")
    need("zarr", "data")
    read_description(Path(path))
    return xarray.open_zarr(str(path), consolidated=False).load()


def read_description(path: Path) -> dict[str, Any]:
    """`Sweep.description` of a store. Raises `ValidationError` if there is none."""
    zarr = need("zarr", "data")
    try:
        return json.loads(zarr.open_group(str(path), mode="r").attrs["sweep"])
    except UNREADABLE as error:
        raise ValidationError(f"{path} holds no sweep of plumejax: {error}") from None


def _begin(path: Path, sweep: Any) -> None:
    beside = path.with_name(f".{path.stem}.part.zarr")
    shutil.rmtree(beside, ignore_errors=True)
    beside.parent.mkdir(parents=True, exist_ok=True)
    shape = sweep.design.shape
    rows = max(1, MOST // int(np.prod(shape[1:])))
    pieces = {"chunks": (min(rows, shape[0]), *shape[1:])}
    data = blank(sweep)
    data.to_zarr(
        beside,
        mode="w",
        zarr_format=2,  # strings have no stable form in 3
        consolidated=False,
        encoding=dict.fromkeys(data.data_vars, pieces),
    )
    os.replace(beside, path)


def _require_same(there: dict[str, Any], wanted: dict[str, Any], path: Path) -> None:
    wanted = json.loads(json.dumps(wanted))
    for name, value in wanted.items():
        if there.get(name) != value:
            was, now = there.get(name), value
            if isinstance(value, dict) and isinstance(was, dict):
                changed = [k for k in {**was, **value} if was.get(k) != value.get(k)]
                was, now = ({k: x.get(k) for k in changed} for x in (was, value))
            raise ValidationError(
                f"{path} holds another sweep: its {name} is {was!r}, not {now!r}; give another name"
            )
