"""viewing/plots: figures of results; each takes matplotlib's Axes and gives them back."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.ticker import FormatStrFormatter, LogLocator, NullFormatter
from matplotlib.transforms import offset_copy

FOUND, LOST = "#56B4E9", "#D55E00"
"""Colours of Okabe and Ito, told apart by colour-blind readers."""


def trajectories(
    axes: Axes,
    field: Any,
    positions: Any,
    lengths: Any,
    found: Any,
    source: Any,
    radius: float,
    free: Any = None,
    unit: str = "arbitrary units",
    extent: tuple[float, float, float, float] | None = None,
    length: str = "cells",
) -> Axes:
    """Paths of some episodes over the concentration, on a logarithmic scale of 8 decades.

    Args:
      axes: to draw on.
      field: float[H, W], concentration indexed [y, x].
      positions: float[T, n, 2], lengths, which on a grid are cells.
      lengths: int[n], steps of each episode.
      found: bool[n].
      source: float[2] or float[3], lengths; its height is not drawn.
      radius: of the goal disc, lengths.
      free: bool[H, W], cells that are not walls; by default all.
      unit: of the concentration.
      extent: x from and to, y from and to, of the field, lengths; by default a cell is 1.
      length: the unit of length.
    """
    field, positions = np.asarray(field, float), np.asarray(positions)
    top = max(field.max(), 1e-30)
    height, width = field.shape
    extent = extent or (-0.5, width - 0.5, -0.5, height - 0.5)
    picture = axes.imshow(
        np.maximum(field, top * 1e-8),
        origin="lower",
        cmap="Greys",
        norm=LogNorm(top * 1e-8, top),
        extent=extent,
    )
    axes.figure.colorbar(picture, ax=axes, label=f"concentration ({unit})", shrink=0.8)
    if free is not None:
        axes.contour(
            np.asarray(free, float),
            [0.5],
            extent=extent,
            origin="lower",
            colors="black",
            linewidths=1,
        )
    for i in range(positions.shape[1]):
        path = positions[: int(lengths[i]) + 1, i]
        colour = FOUND if found[i] else LOST
        axes.plot(*path.T, color=colour, lw=1.4)
        axes.plot(*path[0], "o", color=colour, mec="black", mew=0.5, ms=5)
    for colour, name in ((FOUND, "found"), (LOST, "not found")):
        count = int(np.sum(np.asarray(found) == (name == "found")))
        axes.plot([], [], color=colour, marker="o", label=f"{name} ({count})")
    angle = np.linspace(0, 2 * np.pi, 100)
    source = np.asarray(source)[:2]
    disc = source[:, None] + radius * np.stack([np.cos(angle), np.sin(angle)])
    axes.plot(*disc, color="#E69F00", lw=1.5, label=f"goal, radius {radius:g} {length}")
    axes.plot(*source, "*", color="#E69F00", mec="black", ms=10)
    axes.set(xlabel=f"x ({length})", ylabel=f"y ({length})", xlim=extent[:2], ylim=extent[2:])
    # Below the label of x, whatever the height of the axes.
    below = offset_copy(axes.transAxes, axes.figure, y=-34, units="points")
    axes.legend(
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        bbox_transform=below,
        ncols=3,
        frameon=False,
    )
    return axes


def arrival_curves(axes: Axes, laws: Any, horizon: int) -> Axes:
    """Share of searchers that have arrived, against steps on a logarithmic scale; bands of 95 %.

    Args:
      axes: to draw on.
      laws: by name, `evaluation.statistics.Arrivals`; the first is drawn on top.
      horizon: steps, where the curves end.
    """
    import matplotlib

    colours = matplotlib.colormaps["turbo"](np.linspace(0.05, 0.95, max(len(laws), 2)))
    styles = ("-", "--", "-.", ":")
    for i, (name, law) in enumerate(laws.items()):
        times = np.concatenate([[1], law.times, [horizon]])
        cdf = np.concatenate([[0], law.cdf, law.cdf[-1:] if len(law.cdf) else [0]])
        error = 1.96 * np.concatenate([[0], law.error, law.error[-1:] if len(law.error) else [0]])
        axes.step(
            times,
            cdf,
            where="post",
            label=name,
            color=colours[i],
            linestyle=styles[i % len(styles)],
            zorder=3 + len(laws) - i,
        )
        axes.fill_between(times, cdf - error, cdf + error, step="post", alpha=0.2, color=colours[i])
    arrived = [law.times[0] for law in laws.values() if len(law.times)]
    first = max(1.0, min(arrived, default=1) / 2)
    axes.set(xscale="log", xlim=(first, horizon), ylim=(0, 1))
    axes.set(xlabel="steps", ylabel="share arrived")
    axes.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1.01, 1.0))
    return axes


ARM_COLOURS = ("#0072B2", "#E69F00")


def arm_paths(axes: Any, states: Any, lengths: Any, found: Any, params: Any) -> Any:
    """Paths of two arms and their objects in some episodes, from above and from the front.

    Args:
      axes: two of them.
      states: of `arms/state`, leaves lead with [T, n].
      lengths: int[n], steps of each episode.
      found: bool[n], the task was done.
      params: of the task.
    """
    arms, objects = np.asarray(states.arm_position), np.asarray(states.object_position)
    there = np.any(objects != 0, axis=(0, 1, 3))
    low, high = np.asarray(params.workspace_low), np.asarray(params.workspace_high)
    for view, across, name in zip(axes, (1, 2), ("y, m (from above)", "z, m"), strict=True):
        for i, steps in enumerate(np.asarray(lengths)):
            style = "-" if found[i] else ":"
            for a, colour in enumerate(ARM_COLOURS):
                way = arms[: steps + 1, i, a]
                view.plot(way[:, 0], way[:, across], style, color=colour, lw=1, alpha=0.6)
            for o in np.flatnonzero(there):
                way = objects[: steps + 1, i, o]
                view.plot(way[:, 0], way[:, across], style, color="#009E73", lw=1, alpha=0.6)
                view.plot(way[-1, 0], way[-1, across], "s", color="#009E73", ms=4)
        view.set(xlim=(low[0], high[0]), ylim=(low[across], high[across]), xlabel="x, m")
        view.set_ylabel(name)
        view.set_aspect("equal")
    for label, colour in zip(("arm 0", "arm 1", "objects"), (*ARM_COLOURS, "#009E73"), strict=True):
        axes[0].plot([], [], color=colour, label=label)
    axes[0].plot([], [], ":", color="grey", label="not done")
    axes[0].legend(loc="lower right", fontsize=8)
    return axes


COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
"""Of Okabe and Ito."""


def is_geometric(values: Any) -> bool:
    """Whether a rising series of numbers is spaced more evenly by its logarithm, over a factor of 8
    or more: then an axis of it is logarithmic."""
    values = np.sort(np.asarray(values, float))
    if len(values) < 3 or values[0] <= 0 or values[-1] < 8 * values[0]:
        return False
    spread = [np.std(np.diff(x)) / np.ptp(x) for x in (values, np.log(values))]
    return bool(spread[1] < spread[0])


def value_map(
    axes: Axes,
    x: Any,
    y: Any,
    values: Any,
    labels: tuple[str, str, str],
    limits: tuple[float, float] | None = None,
) -> Axes:
    """A number over two others, each cell a patch around its values.

    Args:
      axes: to draw on.
      x, y: float[n], float[m], rising.
      values: float[m, n], NaN where there is none.
      labels: of x, y and the values, with units.
      limits: of the colours; by default those of the values.
    """
    low, high = limits or (None, None)
    mesh = axes.pcolormesh(
        _edges(x), _edges(y), np.asarray(values, float), cmap="cividis", vmin=low, vmax=high
    )
    axes.figure.colorbar(mesh, ax=axes, label=labels[2])
    axes.set(xlabel=labels[0], ylabel=labels[1])
    _scale(axes.xaxis, x)
    _scale(axes.yaxis, y)
    return axes


def value_curves(
    axes: Axes, x: Any, values: Any, bounds: Any, names: Any, labels: tuple[str, str]
) -> Axes:
    """A number against another, a curve for each name, with a band of its interval.

    Args:
      axes: to draw on.
      x: float[n], rising; or names, which are drawn side by side.
      values: float[k, n].
      bounds: `(low, high)`, float[k, n] each, or None.
      names: of the k curves; one that is empty is in no legend.
      labels: of x and the values, with units.
    """
    x = np.asarray(x)
    numbers = x.dtype.kind in "iuf"
    at = x.astype(float) if numbers else np.arange(len(x))
    for i, name in enumerate(names):
        colour = COLOURS[i % len(COLOURS)]
        axes.plot(at, values[i], "o-", ms=3.5, color=colour, label=name)
        if bounds is not None:
            axes.fill_between(at, bounds[0][i], bounds[1][i], color=colour, alpha=0.2, lw=0)
    axes.set(xlabel=labels[0], ylabel=labels[1])
    if not numbers:
        axes.set_xticks(at, x)
    else:
        _scale(axes.xaxis, x)
    if any(names):
        axes.legend(frameon=False, fontsize="small")
    return axes


def value_points(axes: Axes, x: Any, y: Any, values: Any, labels: tuple[str, str, str]) -> Axes:
    """A number at scattered places, float[n] each: coloured points; `labels` as in `value_map`."""
    points = axes.scatter(x, y, c=values, cmap="cividis", s=18, edgecolors="0.3", linewidths=0.3)
    axes.figure.colorbar(points, ax=axes, label=labels[2])
    axes.set(xlabel=labels[0], ylabel=labels[1])
    _scale(axes.xaxis, np.unique(x))
    _scale(axes.yaxis, np.unique(y))
    return axes


def _scale(axis: Any, values: Any) -> None:
    """A logarithmic axis for a geometric series, marked with plain numbers."""
    if is_geometric(values):
        (axis.axes.set_xscale if axis.axis_name == "x" else axis.axes.set_yscale)("log")
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(FormatStrFormatter("%g"))
        axis.set_minor_formatter(NullFormatter())


def _edges(centres: Any) -> np.ndarray:
    """Where the patches around rising numbers meet."""
    centres = np.asarray(centres, float)
    if len(centres) == 1:
        return centres[0] + np.asarray([-0.5, 0.5])
    at = np.log(centres) if is_geometric(centres) else centres
    middle = (at[1:] + at[:-1]) / 2
    edges = np.concatenate([[2 * at[0] - middle[0]], middle, [2 * at[-1] - middle[-1]]])
    return np.exp(edges) if is_geometric(centres) else edges
