"""viewing/searches: what searchers did where: paths, encounters, beliefs; each function takes
matplotlib's Axes and gives them back."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.patheffects import Normal, Stroke
from matplotlib.ticker import MaxNLocator

from plumejax.base.errors import require
from plumejax.viewing.figures import COLOURS, SOURCE

FOUND, LOST = "#56B4E9", "#D55E00"
"""Colours of paths by their outcome."""


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
    _colour_bar(axes, picture, f"concentration ({unit})")
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
    axes.plot(*disc, color=SOURCE, lw=1.5, label=f"goal, radius {radius:g} {length}")
    axes.plot(*source, "*", color=SOURCE, mec="black", ms=10)
    axes.set(xlabel=f"x ({length})", ylabel=f"y ({length})", xlim=extent[:2], ylim=extent[2:])
    return _legend_below(axes)


def encounter_map(
    axes: Axes,
    positions: Any,
    hits: Any,
    extent: tuple[float, float, float, float],
    source: Any,
    cells: tuple[int, int],
    length: str = "cells",
    least: int = 1,
) -> Axes:
    """Where odour was met: of the visits to each cell the share with a hit; blank where nobody was.

    Args:
      axes: to draw on.
      positions: float[..., 2], places of all visits, lengths; those outside `extent` do not count.
        Leave out what follows the end of an episode.
      hits: bool[...], whether odour was met there.
      extent: x from and to, y from and to, lengths.
      source: float[2] or float[3], lengths; its height is not drawn.
      cells: how many along x and y.
      length: the unit of length.
      least: visits; a cell of fewer is blank too.
    """
    places = np.reshape(positions, (-1, 2))
    hits = np.ravel(hits).astype(bool)
    grid: dict[str, Any] = {"bins": cells, "range": (extent[:2], extent[2:])}
    visits, x, y = np.histogram2d(*places.T, **grid)
    met, _, _ = np.histogram2d(*places[hits].T, **grid)
    share = np.where(visits >= least, met / np.maximum(visits, 1), np.nan)
    picture = axes.pcolormesh(x, y, share.T, cmap="cividis", vmin=0)
    _colour_bar(axes, picture, "share of visits with a hit")
    _star(axes, source)
    axes.set(xlabel=f"x ({length})", ylabel=f"y ({length})", aspect="equal")
    return _legend_below(axes)


def belief_map(
    axes: Axes,
    belief: Any,
    way: Any,
    source: Any = None,
    floor: float = 1e-6,
    length: str = "cells",
) -> Axes:
    """How probable it is that the source is in each cell, and where the agent went; the entropy of
    the belief, bits, is the title.

    Args:
      axes: to draw on.
      belief: float[nx, ny] or float[nx, ny, nz], indexed by place; of three dimensions the sum over
        the height is drawn, and the entropy is that of the whole.
      way: float[t, 2] or float[t, 3], the agent's places so far, the last where it is; cells.
      source: float[2] or float[3], cells, if it is to be shown.
      floor: the probability at which the logarithmic scale begins; what is less is drawn as that.
      length: the unit of length; a cell is 1.

    Raises `ValidationError` for a belief of other dimensions.
    """
    belief, way = np.asarray(belief, float), np.asarray(way, float)
    require(belief.ndim in (2, 3), "belief", belief.shape, "of 2 or 3 dimensions")
    seen = belief[belief > 0]
    bits = -np.sum(seen * np.log2(seen)) + 0.0  # no -0.00
    plane = belief if belief.ndim == 2 else belief.sum(axis=2)
    width, height = plane.shape
    extent = (-0.5, width - 0.5, -0.5, height - 0.5)
    picture = axes.imshow(
        np.maximum(plane.T, floor),
        origin="lower",
        extent=extent,
        cmap="cividis",
        norm=LogNorm(floor, max(float(plane.max()), 10 * floor)),
    )
    share = "probability of the source" + (" (all heights)" if belief.ndim == 3 else "")
    _colour_bar(axes, picture, share)
    outlined = [Stroke(linewidth=3, foreground="black"), Normal()]
    axes.plot(*way[:, :2].T, color="white", lw=1.4, path_effects=outlined, label="way so far")
    axes.plot(*way[-1, :2], "o", color=FOUND, mec="black", ms=7, label="agent", ls="")
    if source is not None:
        _star(axes, source)
    axes.set(xlabel=f"x ({length})", ylabel=f"y ({length})", xlim=extent[:2], ylim=extent[2:])
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator("auto", integer=True))
    axes.set_title(f"entropy {bits:.2f} bits")
    return _legend_below(axes)


ARM_COLOURS, OBJECTS = COLOURS[:2], COLOURS[2]


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
                view.plot(way[:, 0], way[:, across], style, color=OBJECTS, lw=1, alpha=0.6)
                view.plot(way[-1, 0], way[-1, across], "s", color=OBJECTS, ms=4)
        view.set(xlim=(low[0], high[0]), ylim=(low[across], high[across]), xlabel="x, m")
        view.set_ylabel(name)
        view.set_aspect("equal")
    for label, colour in zip(("arm 0", "arm 1", "objects"), (*ARM_COLOURS, OBJECTS), strict=True):
        axes[0].plot([], [], color=colour, label=label)
    axes[0].plot([], [], ":", color="grey", label="not done")
    axes[0].legend(loc="lower right", fontsize=8)
    return axes


def _star(axes: Axes, source: Any) -> None:
    axes.plot(*np.asarray(source)[:2], "*", color=SOURCE, mec="black", ms=12, ls="", label="source")


def _colour_bar(axes: Axes, picture: Any, label: str) -> None:
    """As high as the axes, whose shape is that of what is shown."""
    axes.figure.colorbar(picture, cax=axes.inset_axes((1.02, 0, 0.03, 1)), label=label)


def _legend_below(axes: Axes) -> Axes:
    """The pad, in sizes of the font, leaves room for the label of the axis."""
    place: dict[str, Any] = {"bbox_to_anchor": (0.5, 0), "borderaxespad": 3.6}
    axes.legend(loc="upper center", **place, ncols=3, frameon=False)
    return axes
