"""cli/plume_describe: `plumejax plume describe NAME`, what a plume is and what one smells in it."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jax
import numpy as np
import tyro
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from plumejax.base import paths
from plumejax.base.errors import require
from plumejax.base.files import write_whole
from plumejax.cli.plume_named import (
    Film,
    Live,
    Named,
    bar,
    find,
    lasting,
    meanings,
    require_out,
    teller,
)
from plumejax.plumes import statistics
from plumejax.plumes.statistics import Durations, Summary, durations, summarise
from plumejax.plumes.turbulence import TurbulentPlume, report

_SHARES = (0.05, 0.1, 0.2, 0.4, 0.6, 0.8)
"""Where the plume is looked at by default, of the way from the source to the end of the box."""


def plume_describe(
    name: tyro.conf.Positional[str],
    *,
    set: tuple[str, ...] = (),
    distances: tuple[float, ...] = (),
    threshold: float | None = None,
    steps: int | None = None,
    plumes: int | None = None,
    warmup: int | None = None,
    seed: int = 0,
    out: Path | None = None,
    picture: Path | None = None,
) -> int:
    """Print what a plume is, its numbers, and the whiffs and blanks on its axis.

    Whiffs are times above the threshold, blanks those between. Both are fitted with
    p(t) ~ t^-a e^(-t/T) from tau on; a dilute plume has a = 3/2 (Celani, Villermaux, Vergassola
    2014). The axis runs from the first source along the mean wind, or along +x.

    Args:
        name: of a plume (a wrong one lists them), or a movie's directory.
        set: numbers of a named plume, as in --set plume.radius=0.1.
        distances: from the source, where to look.
        threshold: of a whiff; by default 1/1000 of the highest concentration, at the source too.
        steps: of the plume that are recorded; by default 20000, of a movie all.
        plumes: how many are recorded, each by itself; by default 1, of a bank all.
        warmup: steps before them; by default what the wind needs to fill the plume.
        seed: of a named plume.
        out: write all of it to this *.json.
        picture: draw durations and intermittency into this *.png.
    """
    require_out(out, ".json")
    require_out(picture, ".png")
    for option, value in (("--steps", steps), ("--plumes", plumes)):
        require(value is None or value > 0, option, value, "> 0")
    require(warmup is None or warmup >= 0, "--warmup", warmup, ">= 0")
    require(threshold is None or threshold >= 0, "--threshold", threshold, ">= 0")
    require(min(distances, default=1.0) > 0, "--distances", distances, "> 0")
    require(0 <= seed < 2**31, "--seed", seed, "0 <= seed < 2**31")
    subject = find(name, set)
    require(len(subject.sources), "NAME", name, "a movie whose source is known")
    first = subject.warmup if warmup is None else warmup
    plumes, steps = _extent(subject, plumes, steps, first)
    away = np.asarray(distances) if distances else _distances(subject)
    console = Console()
    console.print(_head(subject), highlight=False)
    if isinstance(subject, Live):
        console.print(_numbers(subject))
    gas, wind = _record(console, subject, jax.random.key(seed), away, first, steps, plumes)
    if threshold is None:
        threshold = 1e-3 * float(gas.max())
    stations = [gas[..., i + 1] for i in range(len(away))]
    found = [summarise(series, threshold, subject.seconds) for series in stations]
    ratios = _ratios(console, subject, jax.random.key(seed), wind)
    if ratios:
        console.print("\n[bold]dimensionless numbers[/]")
        console.print(_ratio_table(ratios))
    _show_stations(console, subject, away, found, threshold, steps, plumes)
    if out is not None:
        everything = {
            "name": subject.name,
            "about": subject.about,
            "units": [subject.unit, subject.length, subject.time],
            "numbers": _plain_numbers(subject),
            "dimensionless": ratios,
            "threshold": threshold,
            "seconds_a_step": subject.seconds,
            "steps": steps,
            "plumes": plumes,
            "warmup": first,
            "seed": seed,
            "stations": [
                {"distance": float(d), **asdict(each)} for d, each in zip(away, found, strict=True)
            ],
        }
        write_whole(out, json.dumps(_finite(everything), indent=2) + "\n")
        console.print(f"{out}: all of this", highlight=False, soft_wrap=True)
    if picture is not None:
        whole = [durations(series, threshold, subject.seconds) for series in stations]
        _draw(picture, subject, away, found, whole)
        console.print(f"{picture}: durations, intermittency", highlight=False, soft_wrap=True)
    return 0


def _extent(subject: Named, plumes: int | None, steps: int | None, first: int) -> tuple[int, int]:
    """How many plumes, and steps of each."""
    there = subject.frames - first if subject.frames else 0
    require(not subject.frames or there > 0, "--warmup", first, f"< {subject.frames}")
    plumes = plumes or subject.plumes or 1
    steps = steps or there or 20_000
    most = subject.plumes
    require(not most or plumes <= most, "--plumes", plumes, f"<= {most}, those of the bank")
    require(not there or steps <= there, "--steps", steps, f"<= {there}, those of the movie")
    return plumes, steps


def _distances(subject: Named) -> np.ndarray:
    """Some shares of the way from the source along the axis to the end of the box, two digits."""
    ways = [
        (edge - at) / step
        for low, high, at, step in zip(
            subject.low, subject.high, subject.sources[0], subject.axis, strict=True
        )
        for edge in (low, high)
        if step * (edge - at) > 0 and abs(step) > 1e-6
    ]
    reach = min(ways, default=1.0)
    return np.asarray([float(f"{share * reach:.2g}") for share in _SHARES])


def _record(
    console: Console,
    subject: Live | Film,
    key: jax.Array,
    away: np.ndarray,
    first: int,
    steps: int,
    plumes: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Concentration float32[T, P, 1 + n] at the source and on the axis, and the wind there."""
    places = subject.on_axis([0.0, *away])
    found = []
    with bar(console) as shown:
        for p in range(plumes):
            tell = teller(shown, f"plume {p}" if plumes > 1 else "rolling out")
            found.append(subject.series(key, p, places, first, steps, tell))
    gas, wind = (np.stack(each, axis=1) for each in zip(*found, strict=True))
    return gas, wind


def _head(subject: Named) -> str:
    (x0, y0), (x1, y1) = subject.low, subject.high
    at = ", ".join(f"({x:g}, {y:g})" for x, y in subject.sources)
    moment = (
        "no clock of its own" if subject.time == "step" else f"a step is {subject.seconds:.4g} s"
    )
    lines = (
        f"[bold]{subject.name}[/]: {subject.about}",
        f"x {x0:g} to {x1:g}, y {y0:g} to {y1:g} {subject.length}; source {at}; {moment};"
        f" concentration in {subject.unit}",
    )
    return "\n".join(lines)


def _numbers(subject: Live) -> Table:
    """Every number with what it is."""
    table = Table("number", "value", "what it is", box=None, header_style="bold")
    words = meanings(subject.params)
    for path, value in paths.leaves(subject.params, "plume").items():
        table.add_row(path, _short(value), words.get(path, ""))
    return table


def _short(value: Any) -> str:
    array = np.asarray(value)
    if array.size > 8:
        return f"{array.dtype}{list(array.shape)}"
    if array.ndim == 0:
        return f"{array.item():.6g}"
    return "[" + ", ".join(f"{x:.6g}" for x in array.ravel()) + "]"


def _plain_numbers(subject: Live | Film) -> dict[str, Any]:
    if isinstance(subject, Film):
        return {}
    leaves = paths.leaves(subject.params, "plume")
    return {path: np.asarray(value).tolist() for path, value in leaves.items()}


def _ratios(
    console: Console, subject: Live | Film, key: jax.Array, wind: np.ndarray
) -> dict[str, float]:
    """The dimensionless numbers, by name."""
    felt = statistics.turbulence_intensity(wind)
    ratios = {"u' / U": felt} if np.isfinite(felt) else {}
    if isinstance(subject, Film):
        return ratios
    if isinstance(subject.plume, TurbulentPlume):
        with console.status("measuring the energy of the eddies"):
            found = report(subject.plume, subject.params, key)
        return {name: x for name, x in found.items() if name not in ("u'", "steps", "stations")}
    return {**statistics.dimensionless(subject.plume, subject.params), **ratios}


def _ratio_table(ratios: dict[str, float]) -> Table:
    table = Table(box=None, show_header=False)
    for name, value in ratios.items():
        table.add_row(name, f"{value:.4g}")
    return table


def _show_stations(
    console: Console,
    subject: Named,
    away: np.ndarray,
    found: list[Summary],
    threshold: float,
    steps: int,
    plumes: int,
) -> None:
    time = subject.time
    of = f"{plumes} plumes of " if plumes > 1 else ""
    console.print(
        f"\n[bold]on the axis[/], {of}{lasting(subject, steps)}; whiffs are above {threshold:.3g}",
        highlight=False,
    )
    # Two tables, so that each fits a terminal of 80 columns.
    place = f"distance\n({subject.length})"
    whiffs = _columns(
        place,
        "mean",
        "std /\nmean",
        "peak /\nmean",
        "inter-\nmittency",
        f"whiffs\na {time}",
        f"whiff\n({time})",
        f"blank\n({time})",
    )
    laws = _columns(place, "a of whiffs", "a of blanks", f"T of blanks\n({time})")
    for distance, each in zip(away, found, strict=True):
        whiffs.add_row(
            f"{distance:g}",
            f"{each.mean:.3g}",
            _number(each.variation),
            _number(each.peak_to_mean),
            f"{each.intermittency:.3f}",
            _number(each.encounters),
            _number(each.whiff),
            _number(each.blank),
        )
        laws.add_row(
            f"{distance:g}",
            _with_error(each.whiff_law.exponent, each.whiff_law.error),
            _with_error(each.blank_law.exponent, each.blank_law.error),
            _number(each.blank_law.cutoff),
        )
    console.print(whiffs)
    console.print("")
    console.print(laws)
    tau = lasting(subject, 6) if time == "step" else f"{found[0].blank_law.shortest:.3g} s"
    console.print(
        f"a: p(t) ~ t^-a e^(-t/T) from tau = {tau} on, 3/2 in a dilute plume, whose mean then is"
        " sqrt(pi tau T) / 2",
        highlight=False,
    )


def _columns(*heads: str) -> Table:
    table = Table(box=None, header_style="bold")
    for head in heads:
        table.add_column(head, justify="right")
    return table


def _number(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.3g}"


def _with_error(value: float, error: float) -> str:
    return "-" if np.isnan(value) else f"{value:.2f} +- {error:.2f}"


def _finite(tree: Any) -> Any:
    """As JSON has it: None for what is no number or without bound."""
    if isinstance(tree, dict):
        return {name: _finite(value) for name, value in tree.items()}
    if isinstance(tree, list):
        return [_finite(value) for value in tree]
    return None if isinstance(tree, float) and not np.isfinite(tree) else tree


def _draw(
    path: Path, subject: Named, away: np.ndarray, found: list[Summary], whole: list[Durations]
) -> None:
    from plumejax.viewing import plumes as drawing
    from plumejax.viewing.figures import save

    figure = Figure(figsize=(12.0, 4.2), layout="constrained")
    whiffs, blanks, along = figure.subplots(1, 3)
    labels = [f"{distance:g} {subject.length}" for distance in away]
    drawing.durations(whiffs, [each.whiffs for each in whole], labels, subject.time)
    drawing.durations(blanks, [each.blanks for each in whole], labels, subject.time)
    whiffs.set_title("whiffs")
    blanks.set_title("blanks")
    drawing.profile(along, away, [each.intermittency for each in found], subject.length)
    figure.suptitle(f"{subject.name}: {subject.about}", fontsize=11)
    save(figure, path)
