"""viewing/sweeps: a sweep's dataset as a figure: curves, maps, or a panel for each slice."""

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plumejax.base.errors import ValidationError, near, require
from plumejax.viewing.plots import value_curves, value_map, value_points

ERRORS = {
    "mean_steps_found": "error_steps_found",
    "restricted_mean": "error_restricted_mean",
    "mean_return": "error_return",
    "hits": "error_hits",
}
"""Standard errors by what they are of; success has its Wilson interval."""

CURVES = 6
"""Values of an axis up to which each is a curve; of more a map is made."""

PANELS = 12
"""Slices that are shown side by side, at most."""


def figure(
    data: Any,
    value: str = "success",
    x: str | None = None,
    y: str | None = None,
    at: Mapping[str, Any] | None = None,
) -> Figure:
    """A figure of one measure of a sweep.

    Along x, and along y if there is one: as a family of curves where y has few values, else as a
    map; every other axis that is left makes panels. A design without axes is drawn as points. Where
    other axes vary and nothing else is said of seeds, it is their median and range.

    Args:
      data: the `xarray.Dataset` of a sweep.
      value: what is measured.
      x, y: names of axes; by default the first two with more than one value.
      at: `{axis: value}` of which the nearest slice is taken, a name that very one.

    Raises:
      ValidationError: no such measure or axis, or more slices than panels.
    """
    _require_known("value", value, list(data.data_vars))
    require(bool(data[value].notnull().any()), value, "NaN everywhere", "there in some cell")
    data = _sliced(data, dict(at or {}))
    seeds = data.sizes.get("seed", 1)
    pooled = seeds > 1 and "seed" not in (x, y) and seeds < data[value].size
    data = _over_seeds(data, value) if pooled else data
    if "cell" in data.dims:
        return _scattered(data, value, x, y)
    axes = [name for name in data[value].dims if data.sizes[name] > 1]
    for option, name in (("x", x), ("y", y)):
        if name is not None:
            _require_known(option, name, axes)
    require(x is None or x != y, "y", y, "another than x")
    require(axes, "axes", dict(data.sizes), "one of more than one value, for there to be a picture")
    numbers = [name for name in axes if _along(data, name).dtype.kind in "iuf"] or axes
    x = x or next((name for name in numbers if name != y), axes[0])
    y = y or next((name for name in axes if name != x), None)
    others = [name for name in axes if name not in (x, y)]
    slices = [dict(zip(others, x, strict=True)) for x in _places(data, others)]
    counts = {name: data.sizes[name] for name in others}
    require(len(slices) <= PANELS, "slices", counts, f"at most {PANELS}; choose with --at")
    limits = (float(data[value].min()), float(data[value].max()))
    columns = min(3, len(slices))
    rows = -(-len(slices) // columns)
    drawn = Figure(figsize=(4.6 * columns, 3.6 * rows), layout="constrained")
    about = [f"{name} = {_shown(data, name, 0)}" for name in at or {}]
    about += [f"median and range of {seeds} seeds"] if pooled else []
    if about:
        drawn.suptitle(", ".join(about), fontsize="medium")
    for axes_, where in zip(
        np.ravel(drawn.subplots(rows, columns, squeeze=False)),
        itertools.chain(slices, itertools.repeat(None)),
        strict=False,
    ):
        if where is None:
            axes_.set_axis_off()
            continue
        _panel(axes_, data.isel(where), value, x, y, limits)
        axes_.set_title(", ".join(f"{k} = {_shown(data, k, i)}" for k, i in where.items()))
    return drawn


def _panel(
    axes: Axes, data: Any, value: str, x: str, y: str | None, limits: tuple[float, float]
) -> None:
    data = data.squeeze([name for name in data[value].dims if name not in (x, y)])
    across = _along(data, x)
    kinds = {_along(data, name).dtype.kind for name in (x, y) if name is not None}
    if y is not None and data.sizes[y] > CURVES and kinds <= set("iuf"):
        order, upward = np.argsort(across), np.argsort(_along(data, y))
        field = data[value].transpose(y, x).values[upward][:, order]
        named = (label(data, x), label(data, y), label(data, value))
        value_map(axes, across[order], _along(data, y)[upward], field, named, limits)
        return
    order = np.argsort(across) if across.dtype.kind in "iuf" else np.arange(len(across))
    lines = data.expand_dims("one") if y is None else data
    first = "one" if y is None else y

    def of(name: str) -> np.ndarray:
        return lines[name].transpose(first, x).values[:, order]

    names = [""] if y is None else [f"{y} = {_shown(data, y, i)}" for i in range(data.sizes[y])]
    labels = (label(data, x), label(data, value))
    value_curves(axes, across[order], of(value), _bounds(value, of, data.data_vars), names, labels)


def _over_seeds(data: Any, value: str) -> Any:
    """One measure with its bounds, as median, least and greatest of the seeds."""
    one = data[value]
    parts = {value: one.median("seed"), f"{value}_low": one.min("seed")}
    found = data.drop_vars([*data.data_vars, "seed"])
    found = found.assign(parts | {f"{value}_high": one.max("seed")})
    found[value].attrs = one.attrs
    return found


def _bounds(value: str, of: Any, known: Any) -> Any:
    if f"{value}_low" in known:
        return of(f"{value}_low"), of(f"{value}_high")
    if ERRORS.get(value) in known:
        error = 1.96 * of(ERRORS[value])
        return of(value) - error, of(value) + error
    return None


def _scattered(data: Any, value: str, x: str | None, y: str | None) -> Figure:
    numbers = [k for k, c in data.coords.items() if c.dims == ("cell",) and c.dtype.kind in "iuf"]
    for option, name in (("x", x), ("y", y)):
        if name is not None:
            _require_known(option, name, numbers)
    require(numbers, "columns", list(data.coords), "at least one of numbers")
    x = x or next(name for name in numbers if name != y)
    y = y or next((name for name in numbers if name != x), None)
    drawn = Figure(figsize=(5.4, 3.8), layout="constrained")
    axes = drawn.subplots()
    if y is None:
        axes.plot(data[x], data[value], "o", ms=4)
        axes.set(xlabel=label(data, x), ylabel=label(data, value))
        return drawn
    labels = (label(data, x), label(data, y), label(data, value))
    value_points(axes, data[x].values, data[y].values, data[value].values, labels)
    return drawn


def label(data: Any, name: str) -> str:
    """What stands at an axis: the name, and the unit if there is one."""
    units = data[name].attrs.get("units", "") if name in data.variables else ""
    shown = name.replace("_", " ") if name in data.data_vars else name
    return f"{shown} ({units})" if units not in ("", "1") else shown


def _along(data: Any, name: str) -> np.ndarray:
    return data[name].values if name in data.coords else np.arange(data.sizes[name])


def _shown(data: Any, name: str, place: int) -> str:
    value = _along(data, name)[place]
    return str(value) if isinstance(value, str) else f"{value:g}"


def _places(data: Any, names: list[str]) -> Any:
    return itertools.product(*(range(data.sizes[name]) for name in names))


def _sliced(data: Any, at: dict[str, Any]) -> Any:
    for name, value in at.items():
        _require_known("at", name, list(data.dims))
        along = _along(data, name)
        if along.dtype.kind not in "iuf":
            require(value in along, f"at {name}", value, f"one of {', '.join(map(str, along))}")
            place = int(np.flatnonzero(along == value)[0])
        else:
            number = isinstance(value, int | float) and along.min() <= value <= along.max()
            allowed = f"a number from {along.min():g} to {along.max():g}"
            require(number, f"at {name}", value, allowed)
            place = int(np.argmin(np.abs(along - value)))
        data = data.isel({name: [place]})
    return data


def _require_known(option: str, name: str, known: list[str]) -> None:
    if name not in known:
        hint, names = near(name, known), ", ".join(known)
        raise ValidationError(f"{option} = {name!r}: there is none.{hint} Known: {names}")
