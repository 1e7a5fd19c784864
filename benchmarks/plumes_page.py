"""benchmarks/plumes_page: the validation page and its pictures, from the JSON of a run."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.plots import Style
from benchmarks.plumes_checks import SIGMAS
from benchmarks.plumes_profiles import FIELD, SUBJECTS, TRANSECT
from benchmarks.report import brief

STYLES = {
    "straight": Style("#0072B2", "o"),
    "meandering": Style("#D55E00", "s"),
    "tracking": Style("#000000", "x", "--"),
    "sparse": Style("#7F7F7F", "v", "--"),
    "packets": Style("#009E73", "^"),
    "tracers": Style("#CC79A7", "D"),
    "turbulence": Style("#E69F00", "P"),
}
"""Colours are told apart by the colour-blind (Okabe and Ito 2008)."""

SHOWN = {
    "straight": 15,
    "meandering": 5,
    "packets": 240,
    "tracers": 10,
    "sparse": 2,
    "turbulence": 6,
}
"""Whose blanks are drawn, and at which distance."""

NOTES = {
    "straight": (
        "Puffs come one by one, so blanks are exponential: the Hill exponent only tells how steep"
        " that is beyond tau. The design pages' 0.31 at 5 m and 0.12 at 25 m are means of 10 to 40"
        " s after an empty start (met above), when the plume has not yet come to 25 m for half of"
        " the time; these are of a plume that stands."
    ),
    "meandering": (
        "Blanks are of two kinds, gaps between puffs and the plume's swinging away with the wind,"
        " whose noise has a period of 31 s; over both, the Hill exponent at 5 to 10 m is near the"
        " 1.5 to 1.6 of the design pages, but no one power law holds, as the picture shows. Their"
        " intermittency of 0.06 to 0.01 is of 10 to 40 s after an empty start."
    ),
    "tracking": "Nearly continuous on its axis: a search in it is no search in a dilute plume.",
}
"""What to know of a plume's numbers."""

TURBULENCE = (
    "two-dimensional turbulence",
    "m",
    "0.02 of the source, as in the design pages' trial",
    "6 dt",
)


def page(content: dict[str, Any]) -> str:
    """The page, Markdown."""
    place = content["machine"]
    blocks = [
        "# Plumes, validated",
        f"`python -m benchmarks.plumes_validation`, {content['date'][:10]}, {place['cpu']},"
        f" {place['cores']} cores, jax {content['versions']['jax']}, numpy"
        f" {content['versions']['numpy']}. Keys are fixed: the same machine gives the same numbers,"
        " but for the times.",
        *_checks(content["checks"]),
        *_turbulence(content["turbulence"]),
        *_profiles(content["profiles"]),
        *_speed(content["rows"], content["targets"]),
    ]
    return "\n\n".join(blocks) + "\n"


def _checks(checks: dict[str, list[dict[str, Any]]]) -> Iterable[str]:
    if not checks:
        return
    every = [check for some in checks.values() for check in some]
    met = sum(check["met"] for check in every)
    by_chance = sum(check["error"] > 0 for check in every) * 0.0027
    yield "## Closed forms and published values"
    yield (
        f"{met} of {len(every)} are met. A number with a standard error has to lie within"
        f" {SIGMAS:g} of them, plus what its table says for rounding and for a step that is not"
        f" small; by chance {by_chance:.1f} of these would not."
    )
    for model, some in checks.items():
        yield f"### {model}"
        rows = [
            (
                check["what"],
                _number(check["expected"]),
                _number(check["measured"]),
                f"{check['error']:.1g}" if check["error"] else "",
                f"{check['slack']:.1g}" if check["slack"] else "",
                _deviation(check),
                "met" if check["met"] else "**not met**",
            )
            for check in some
        ]
        head = (
            "what",
            "expected",
            "measured",
            "standard error",
            "allowed besides",
            "errors off",
            "",
        )
        yield table(head, rows)


def _deviation(check: dict[str, Any]) -> str:
    if not check["error"]:
        return ""
    return f"{(check['measured'] - check['expected']) / check['error']:+.1f}"


def _number(x: float) -> str:
    if 0 < abs(x) < 1e-3:
        return f"{x:.1e}"
    return f"{x:.5g}"


def _turbulence(found: dict[str, Any]) -> Iterable[str]:
    if not found:
        return
    yield "## Turbulence"
    yield (
        "Two-dimensional turbulence is not a boundary layer. One trial of the design pages at"
        " u' / U = 0.26 (Re_f about 680, Sc 1) had an on-axis intermittency of 0.73 to 0.81 falling"
        " to 0.2 at the edge, and a coefficient of variation of 1.1 on the axis and 4 at the edge."
        f" Here, with the same threshold, {TRANSECT:g} m behind the source:"
    )
    yield table(("number", "value"), [(k, _number(v)) for k, v in found["facts"].items()])
    head = ("m off the axis", "intermittency", "standard error", "coefficient of variation")
    every = [[*(f"{x:.2f}" for x in row)] for row in found["across"][::2]]
    yield table(head, every)


def _profiles(profiles: dict[str, list[dict[str, Any]]]) -> Iterable[str]:
    if not profiles:
        return
    yield "## Whiffs and blanks on the axis"
    yield (
        "Intermittency is the share of the time above the threshold, its error that among"
        " independent plumes. The blanks' exponent is given twice, both by maximum likelihood for"
        " blanks longer than tau: of a power law alone (Hill), and of a power law with an"
        " exponential cut-off T. A dilute plume has 3/2 (Celani, Villermaux, Vergassola 2014); a"
        " plume of puffs that come independently has exponential blanks, exponent 0."
    )
    yield "![blanks and intermittency](results/plumes_statistics.png)"
    yield "In the open field (Yee et al. 1993; Mylne and Mason 1991):"
    yield table(tuple(FIELD), list(zip(*(map(str, x) for x in FIELD.values()), strict=True)))
    for name, stations in profiles.items():
        label, length, rule, shortest = _about(name)
        yield f"### {label}"
        yield " ".join([f"Threshold {rule}; tau = {shortest}.", *filter(None, [NOTES.get(name)])])
        head = (
            *(f"distance, {length}", "intermittency", "mean whiff, s", "mean blank, s"),
            *("std / mean of C", "blanks", "Hill exponent", "exponent", "T, s"),
        )
        yield table(head, [_station(s) for s in stations])


def _about(name: str) -> tuple[str, str, str, str]:
    if name == "turbulence":
        return TURBULENCE
    subject = SUBJECTS[name]
    return subject.label, subject.length, subject.rule, f"{subject.shortest:g} s"


def _station(s: dict[str, Any]) -> tuple[str, ...]:
    return (
        f"{s['distance']:g}",
        _with_error(s["intermittency"], s["error"]),
        _or_none(s["whiff"], ".3f"),
        _or_none(s["blank"], ".3g"),
        f"{s['variation']:.2f}",
        str(s["blanks"]),
        _with_error(s["hill"], s["hill_error"]),
        _with_error(s["exponent"], s["exponent_error"]),
        _or_none(s["cutoff"], ".3g"),
    )


def _with_error(x: float | None, error: float | None) -> str:
    """Nothing where nothing was found, or nothing that its error lets stand."""
    return "" if x is None or error is None or error > 1 else f"{x:.3f} ± {error:.3f}"


def _or_none(x: float | None, form: str) -> str:
    return "" if x is None else format(x, form)


def _speed(rows: Sequence[dict[str, Any]], targets: Sequence[dict[str, Any]]) -> Iterable[str]:
    if not rows:
        return
    yield "## Speed"
    yield (
        "All in turns in one process on one core; medians, least and most of the samples. A"
        " puff-step is a living puff moved by one dt (wind, births and ends included). The search"
        " is `PlumeSearchLocal-v0` with random actions; live, a lane that ends takes a ready start."
        " plumetracknets' 86 steps a second of one core is the published code's own figure as the"
        " design pages have it, not measured here."
    )
    cells = []
    for row in rows:
        if row.get("note"):
            cells.append((row["label"], str(row["lanes"]), row["note"], ""))
            continue
        cpu = row["cpu"]
        span = f"{brief(cpu['low'])} to {brief(cpu['high'])}"
        cells.append((row["label"], str(row["lanes"]), brief(cpu["median"]), span))
    yield table(("what", "lanes", "per CPU-second", "least to most"), cells)
    verdict = {True: "met", False: "**not met**", None: "not measured"}
    yield table(
        ("ratio per CPU-second", "target", "reached", ""),
        [
            (
                target["label"],
                f"{target['sign']} {target['target']:g}",
                "" if target["reached"] is None else f"{target['reached']:.3g}",
                verdict[target["met"]],
            )
            for target in targets
        ],
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def pictures(content: dict[str, Any]) -> dict[str, Figure]:
    """By file name."""
    found = {}
    if content["profiles"]:
        found["plumes_statistics.png"] = statistics_picture(content["profiles"])
    if content["turbulence"]:
        found["plumes_turbulence.png"] = turbulence_picture(content["turbulence"])
    return found


def statistics_picture(profiles: dict[str, list[dict[str, Any]]]) -> Figure:
    """Blank durations with a line of slope -3/2, and intermittency against distance."""
    figure = Figure(figsize=(12.5, 4.6), layout="constrained")
    blanks, shares = figure.subplots(1, 2)
    for name, stations in profiles.items():
        style, (label, length, *_) = STYLES[name], _about(name)
        look = {"ls": style.dashes, "color": style.colour, "marker": style.marker, "ms": 4}
        for one in stations:
            if one["distance"] == SHOWN.get(name) and one["density"]:
                away = f"{label}, {SHOWN[name]} {length}"
                blanks.plot(*np.asarray(one["density"]).T, **look, label=away)
        share, error = (np.asarray([s[k] for s in stations]) for k in ("intermittency", "error"))
        distance = np.asarray([s["distance"] for s in stations])
        distance = distance / 1000 if length == "mm" else distance
        shares.errorbar(distance, share, error, **look, label=label)
    t = np.asarray([0.1, 30.0])
    blanks.plot(t, 0.5 * t**-1.5, ":", color="#555555", label="slope -3/2")
    blanks.set(xscale="log", yscale="log", xlabel="blank, s", ylabel="probability density, 1/s")
    field = (FIELD["distance, m"], FIELD["intermittency"])
    shares.plot(*field, "*", color="#555555", ms=9, label="open field (Yee; Mylne and Mason)")
    shares.set(xscale="log", xlabel="distance, m", ylabel="intermittency on the axis")
    shares.set_ylim(0, 1.05)
    for axes in (blanks, shares):
        _tidy(axes)
    shares.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.01, 1))
    return figure


def turbulence_picture(found: dict[str, Any]) -> Figure:
    """Intermittency and variation across the plume."""
    figure = Figure(figsize=(8, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    offset, share, error, variation = np.asarray(found["across"]).T
    style = STYLES["turbulence"]
    left.errorbar(offset, share, error, color=style.colour, marker=style.marker, ms=4, label="here")
    left.axhspan(0.73, 0.81, color="#0072B2", alpha=0.2, lw=0, label="trial, on the axis")
    left.axhline(0.2, color="#0072B2", ls=":", label="trial, at the edge")
    left.set(ylabel="intermittency", xlabel="m off the axis", ylim=(0, 1))
    right.plot(offset, variation, color=style.colour, marker=style.marker, ms=4, label="here")
    for level, name in ((1.1, "trial, on the axis"), (4.0, "trial, at the edge")):
        right.axhline(level, color="#0072B2", ls="-" if level < 2 else ":", label=name)
    right.set(ylabel="coefficient of variation", xlabel="m off the axis")
    for axes in (left, right):
        _tidy(axes)
    return figure


def _tidy(axes: Axes) -> None:
    axes.grid(True, which="major", alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8)
