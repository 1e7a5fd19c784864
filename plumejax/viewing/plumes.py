"""viewing/plumes: pictures of a plume: a frame, a GIF, and its statistics along the axis."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.animation import PillowWriter
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from plumejax.viewing.figures import COLOURS, SOURCE, save


def plume_frame(
    axes: Axes,
    field: Any,
    low: Any,
    high: Any,
    sources: Any = (),
    wind: Any = (0.0, 0.0),
    unit: str = "arbitrary units",
    length: str = "m",
    time: str = "s",
    peak: float | None = None,
    decades: float = 4.0,
) -> Axes:
    """One picture of a plume, on a logarithmic scale; white is below it.

    Args:
      axes: to draw on.
      field: float[H, W], concentration indexed [y, x].
      low, high: float[2], corners of the picture.
      sources: float[S, 2], drawn as stars where they are on the picture.
      wind: float[2], drawn as an arrow with its speed unless it is 0.
      unit, length, time: units.
      peak: upper end of the scale; by default the largest concentration.
      decades: that the scale spans.
    """
    field = np.asarray(field, float)
    top = max(float(field.max()) if peak is None else peak, 1e-30)
    least = top * 10**-decades
    extent = (low[0], high[0], low[1], high[1])
    picture = axes.imshow(
        np.ma.masked_less(field, least),
        origin="lower",
        extent=extent,
        cmap="magma_r",
        norm=LogNorm(least, top),
        interpolation="nearest",
    )
    tall = (high[1] - low[1]) / (high[0] - low[0])
    axes.figure.colorbar(
        picture, ax=axes, label=f"concentration ({unit})", fraction=0.047 * min(tall, 1.0), pad=0.02
    )
    for x, y in np.asarray(sources, float).reshape(-1, 2):
        axes.plot(x, y, "*", color=SOURCE, mec="black", mew=0.7, ms=13, clip_on=False)
    _wind_arrow(axes, np.asarray(wind, float), length, time)
    axes.set(xlim=extent[:2], ylim=extent[2:], xlabel=f"x ({length})", ylabel=f"y ({length})")
    return axes


def _wind_arrow(axes: Axes, wind: np.ndarray, length: str, time: str) -> None:
    """An arrow of fixed size in the lower left corner, and the speed beside it."""
    speed = float(np.hypot(*wind))
    if speed == 0:
        return
    middle, half = np.asarray([26.0, 26.0]), 16 * wind / speed
    axes.annotate(
        "",
        xy=tuple(middle + half),
        xytext=tuple(middle - half),
        xycoords="axes points",
        textcoords="axes points",
        arrowprops={"arrowstyle": "-|>", "color": "#0072B2", "lw": 2, "shrinkA": 0, "shrinkB": 0},
    )
    axes.annotate(
        f"{speed:.3g} {length}/{time}",
        xy=(50, 26),
        xycoords="axes points",
        va="center",
        fontsize=9,
        color="#0072B2",
    )


def durations(axes: Axes, samples: Sequence[Any], labels: Sequence[str], time: str = "s") -> Axes:
    """The share of durations that are longer, of each of `samples` float[n] with ten or more.

    The dotted line is that of `p(t) ~ t^(-3/2)`.
    """
    drawn = [(np.sort(x), label) for x, label in zip(samples, labels, strict=True) if len(x) > 9]
    for i, (x, label) in enumerate(drawn):
        longer = 1 - np.arange(len(x)) / len(x)
        axes.plot(x, longer, color=COLOURS[i % len(COLOURS)], lw=1.5, label=label)
    if drawn:
        shortest = min(x[0] for x, _ in drawn)
        longest = max(x[-1] for x, _ in drawn)
        t = np.asarray([shortest, longest])
        axes.plot(t, np.sqrt(shortest / t), "k:", lw=1, label="$t^{-1/2}$")
        axes.legend(frameon=False, fontsize=8)
        axes.set(xscale="log", yscale="log")
    axes.set(xlabel=f"duration ({time})", ylabel="share that is longer")
    return axes


def profile(axes: Axes, distances: Any, intermittency: Any, length: str = "m") -> Axes:
    """Intermittency against the distance from the source."""
    axes.plot(distances, intermittency, "o-", color=COLOURS[0], ms=5)
    axes.set(xlabel=f"distance from the source ({length})", ylabel="intermittency")
    axes.set_ylim(0, 1.02)
    return axes


def figure_size(low: Any, high: Any) -> tuple[float, float]:
    """Inches for one picture of a box, with room for its labels."""
    width, height = np.subtract(high, low)[:2]
    wide = 8.0 if width >= height else max(8.0 * width / height, 3.5)
    return wide, float(np.clip((wide - 1.8) * height / width + 1.2, 2.6, 9.0))


def save_frame(path: Path, title: str, field: Any, low: Any, high: Any, **about: Any) -> None:
    """Draw one picture into the PNG `path`; arguments as of `plume_frame`."""
    figure = Figure(figsize=figure_size(low, high), layout="constrained")
    plume_frame(figure.subplots(), field, low, high, **about).set_title(title, fontsize=10)
    save(figure, path)


def save_gif(
    path: Path,
    titles: Sequence[str],
    fields: Any,
    low: Any,
    high: Any,
    winds: Any,
    frames_per_second: int,
    **about: Any,
) -> None:
    """Draw float[T, H, W] pictures into the GIF `path`, all on one scale.

    Args:
      path: of the GIF.
      titles: of each picture.
      fields: float[T, H, W].
      low, high: corners.
      winds: float[T, 2].
      frames_per_second: of the GIF, a whole number.
      **about: as of `plume_frame`.
    """
    figure = Figure(figsize=figure_size(low, high), layout="constrained")
    beside = path.with_name(f".{path.name}.part.gif")
    writer = PillowWriter(fps=frames_per_second)
    peak = float(np.max(fields))
    with writer.saving(figure, str(beside), dpi=80):
        for title, field, wind in zip(titles, fields, winds, strict=True):
            figure.clear()
            axes = figure.subplots()
            plume_frame(axes, field, low, high, wind=wind, peak=peak, **about)
            axes.set_title(title, fontsize=10)
            writer.grab_frame()
    beside.replace(path)
