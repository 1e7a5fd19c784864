"""viewing/plots: figures of results, numbers against numbers; each takes matplotlib's Axes and
gives them back. What happened where is drawn by viewing/searches, plumes by viewing/plumes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import EngFormatter, FormatStrFormatter, LogLocator, NullFormatter

from plumejax.viewing.figures import COLOURS


def arrival_curves(axes: Axes, laws: Any, horizon: int) -> Axes:
    """Share of searchers that have arrived, against steps on a logarithmic scale; bands of 95 %.

    Args:
      axes: to draw on.
      laws: by name, `evaluation.statistics.Arrivals`; the first is drawn on top.
      horizon: steps, where the curves end.
    """
    styles = ("-", "--", "-.", ":")
    for i, (name, law) in enumerate(laws.items()):
        colour = COLOURS[i % len(COLOURS)]
        times = np.concatenate([[1], law.times, [horizon]])
        cdf = np.concatenate([[0], law.cdf, law.cdf[-1:] if len(law.cdf) else [0]])
        error = 1.96 * np.concatenate([[0], law.error, law.error[-1:] if len(law.error) else [0]])
        axes.step(
            times,
            cdf,
            where="post",
            label=name,
            color=colour,
            linestyle=styles[(i + i // len(COLOURS)) % len(styles)],
            zorder=3 + len(laws) - i,
        )
        axes.fill_between(times, cdf - error, cdf + error, step="post", alpha=0.2, color=colour)
    arrived = [law.times[0] for law in laws.values() if len(law.times)]
    first = max(1.0, min(arrived, default=1) / 2)
    axes.set(xscale="log", xlim=(first, horizon), ylim=(0, 1))
    axes.set(xlabel="steps", ylabel="share arrived")
    axes.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1.01, 1.0))
    return axes


def learning_curves(
    axes: Axes,
    steps: Sequence[Any],
    values: Sequence[Any],
    label: str,
    name: str = "",
    colour: str = COLOURS[0],
) -> Axes:
    """A measure of some trainings, one a seed, against their steps: each thin, their median bold,
    from the least to the greatest shaded.

    Seeds may be of different lengths; median and range are those of the seeds that got so far.
    Several groups of seeds may be drawn on one Axes, each with a name and a colour.

    Args:
      axes: to draw on.
      steps: of each seed int[n], environment steps, rising.
      values: of each seed float[n], NaN where there is none.
      label: of the measure, with its unit.
      name: what the seeds have in common, for the legend.
      colour: of theirs.
    """
    known = [np.isfinite(np.asarray(each, float)) for each in values]
    seeds = [
        (np.asarray(x)[there], np.asarray(y, float)[there])
        for x, y, there in zip(steps, values, known, strict=True)
        if there.any()
    ]
    axes.set(xlabel="environment steps", ylabel=label)
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    if not seeds:
        return axes
    at = np.unique(np.concatenate([x for x, _ in seeds]))
    table = np.stack([np.interp(at, x, y, left=np.nan, right=np.nan) for x, y in seeds])
    if len(seeds) > 1:
        for x, y in seeds:
            axes.plot(x, y, color=colour, lw=0.6, alpha=0.5)
        low, high = np.nanmin(table, axis=0), np.nanmax(table, axis=0)
        axes.fill_between(at, low, high, color=colour, alpha=0.15, lw=0)
    about = [name] * bool(name) + [f"median of {len(seeds)} seeds"] * (len(seeds) > 1)
    axes.plot(at, np.nanmedian(table, axis=0), color=colour, lw=2, label=", ".join(about))
    axes.set_xlim(0, 1.02 * axes.dataLim.x1)
    if about:
        axes.legend(frameon=False, fontsize="small")
    return axes


def league_chart(axes: Axes, rows: Sequence[Any]) -> Axes:
    """The success of each policy on a task, its Wilson interval of 95 %, and how long it searches.

    To the right stands the restricted mean of the arrival time, steps; where the perfect agent
    played too, a diamond marks the normalised time, fewest steps over those taken.

    Args:
      axes: to draw on, some 0.25 inches high for each row.
      rows: `evaluation.league.Row` of one task, in the order of `evaluation.league.rows`, the best
        first.
    """
    at = range(len(rows))
    played = [i for i, row in enumerate(rows) if row.summary is not None]
    summaries = [rows[i].summary for i in played]
    success = np.asarray([s.success for s in summaries])
    interval = np.asarray([(s.success_low, s.success_high) for s in summaries]).reshape(-1, 2).T
    error = np.abs(interval - success)
    axes.barh(
        played,
        success,
        height=0.7,
        xerr=error,
        error_kw={"lw": 1.2, "capsize": 2.5, "zorder": 5},
        color=COLOURS[4],
        label="success, interval of 95 %",
    )
    timed = [i for i in played if np.isfinite(rows[i].normalised_time.value)]
    if timed:
        times = [rows[i].normalised_time.value for i in timed]
        label = "fewest steps over those taken, mean"
        style: dict[str, Any] = {"color": "white", "mec": "black", "ms": 4.5, "zorder": 4}
        axes.plot(times, timed, "D", label=label, clip_on=False, **style)
    for i in sorted(set(at) - set(played)):
        axes.text(0.01, i, "does not fit", va="center", color="0.4", style="italic", size="small")
    axes.set_yticks(at, [row.policy for row in rows])
    axes.set(xlim=(0, 1), ylim=(len(rows) - 0.4, -0.6), xlabel="share of the episodes")
    arrival = axes.secondary_yaxis("right")
    arrival.set_yticks(played, [f"{s.restricted_mean:.1f}" for s in summaries])
    for axis in (axes.yaxis, arrival.yaxis):
        axis.set_tick_params(length=0, pad=7)
    axes.annotate(
        "restricted mean\n(steps)",
        xy=(1, 1),
        xycoords="axes fraction",
        xytext=(7, 6),
        textcoords="offset points",
        size="small",
    )
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), frameon=False, fontsize="small")
    return axes


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
