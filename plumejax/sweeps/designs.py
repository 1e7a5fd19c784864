"""sweeps/designs: which values are tried together: a grid, a list, a random or a Sobol design."""

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from plumejax.base.errors import ValidationError, require


class Design(NamedTuple):
    """The cells of a sweep, in the order of `numpy.ndindex(shape)`, the last axis fastest.

    Attributes:
      shape: cells along each axis.
      axes: of each axis its name and the columns that it spans.
      columns: by name, the value of every cell: arrays leading with the number of cells.
    """

    shape: tuple[int, ...]
    axes: tuple[tuple[str, tuple[str, ...]], ...]
    columns: dict[str, np.ndarray]

    @property
    def size(self) -> int:
        """How many cells."""
        return math.prod(self.shape)

    def along(self, column: str) -> np.ndarray:
        """The values of a column along its axis."""
        axis = next(i for i, (_, names) in enumerate(self.axes) if column in names)
        values = self.columns[column]
        values = values.reshape(*self.shape, *values.shape[1:])
        for other in reversed(range(len(self.shape))):
            if other != axis:
                values = values.take(0, other)
        return values


def grid(axes: Mapping[str, Any]) -> Design:
    """Every combination: `{name: values}`, each an axis of its own.

    Raises:
      ValidationError: no axis, an empty one, one of values of different kinds or shapes, NaN.
    """
    require(axes, "axes", axes, "at least one, as in {'plume.sigma': [6, 12, 24]}")
    values = {name: _values(name, given) for name, given in axes.items()}
    for name, along in values.items():
        require(len(np.unique(along, axis=0)) == len(along), name, axes[name], "all different")
    shape = tuple(len(x) for x in values.values())
    places = np.indices(shape).reshape(len(shape), -1)
    columns = {name: x[at] for (name, x), at in zip(values.items(), places, strict=True)}
    return Design(shape, tuple((name, (name,)) for name in values), columns)


def crossed(design: Design, name: str, values: np.ndarray) -> Design:
    """Every cell of a design with every one of `values`, which are the last axis."""
    columns = {key: np.repeat(column, len(values), 0) for key, column in design.columns.items()}
    columns[name] = np.tile(values, design.size)
    return Design((*design.shape, len(values)), (*design.axes, (name, (name,))), columns)


def listed(columns: Mapping[str, Any]) -> Design:
    """Cells one by one: `{name: the value of each cell}`, all of one length; one axis, "cell".

    Raises `ValidationError` as `grid` does, and for columns of different lengths.
    """
    require(columns, "columns", columns, "at least one")
    values = {name: _values(name, given) for name, given in columns.items()}
    lengths = {name: len(x) for name, x in values.items()}
    require(len(set(lengths.values())) == 1, "columns: lengths", lengths, "all the same")
    count = next(iter(lengths.values()))
    return Design((count,), (("cell", tuple(values)),), values)


def random(
    ranges: Mapping[str, tuple[float, float]], count: int, seed: int = 0, log: Iterable[str] = ()
) -> Design:
    """`count` cells drawn uniformly from `{name: (low, high)}`; a list of cells, see `listed`.

    Args:
      ranges: of each number, low < high.
      count: cells.
      seed: of NumPy's default generator.
      log: names that are drawn uniformly in their logarithm.
    """
    _require_ranges(ranges, count, seed, log)
    return _within(ranges, np.random.default_rng(seed).random((count, len(ranges))), log)


def sobol(
    ranges: Mapping[str, tuple[float, float]], count: int, seed: int = 0, log: Iterable[str] = ()
) -> Design:
    """As `random`, but of a scrambled Sobol sequence (SciPy's), which fills the space evenly;
    `count` is a power of 2."""
    from scipy.stats import qmc

    _require_ranges(ranges, count, seed, log)
    require(count & (count - 1) == 0, "count", count, "a power of 2, for a Sobol design")
    return _within(ranges, qmc.Sobol(len(ranges), seed=seed).random(count), log)


def _require_ranges(ranges: Mapping[str, Any], count: int, seed: int, log: Iterable[str]) -> None:
    require(ranges, "ranges", ranges, "at least one, as in {'plume.sigma': (6, 24)}")
    require(isinstance(count, int) and count > 0, "count", count, "an int > 0")
    require(isinstance(seed, int) and seed >= 0, "seed", seed, "an int >= 0")
    require(not isinstance(log, str), "log", log, "a list of names")
    for name, pair in ranges.items():
        try:
            ends = np.asarray(pair, float)
        except (TypeError, ValueError):
            ends = np.zeros(0)
        good = ends.shape == (2,) and bool(np.all(np.isfinite(ends))) and ends[0] < ends[1]
        require(good, name, pair, "(low, high), finite and low < high")
        require(name not in log or ends[0] > 0, name, pair, "above 0, to be drawn by its logarithm")
    for name in log:
        require(name in ranges, "log", name, f"one of {', '.join(ranges)}")


def _within(ranges: Mapping[str, Any], unit: np.ndarray, log: Iterable[str]) -> Design:
    columns = {}
    for (name, (low, high)), part in zip(ranges.items(), unit.T, strict=True):
        if name in log:
            columns[name] = np.exp(np.log(low) + part * (np.log(high) - np.log(low)))
        else:
            columns[name] = low + part * (high - low)
    return listed(columns)


def _values(name: str, given: Any) -> np.ndarray:
    """The values of a column as an array, or text as an array of text."""
    try:
        values = np.asarray(list(given))
    except (TypeError, ValueError):
        raise ValidationError(
            f"{name} = {given!r} is not allowed: it must be a list of values of one shape"
        ) from None
    require(values.ndim > 0 and len(values), name, given, "at least one value")
    require(values.dtype.kind in "biufU", name, given, "numbers, or names of policies")
    if values.dtype.kind == "f":
        require(np.all(np.isfinite(values)), name, given, "finite")
    return values
