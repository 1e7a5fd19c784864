"""cli/sweep: `plumejax sweep`, a sweep that a file describes."""

import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal

import numpy as np
import tyro
from rich.console import Console

from plumejax.base.errors import ValidationError, near, require


def sweep(
    file: tyro.conf.Positional[Path],
    *,
    out: Path | None = None,
    executor: Literal["local", "ray"] = "local",
) -> int:
    """Play a task, or train on it, over many values of numbers, and keep what comes of it in a Zarr
    store.

    The file (TOML) has what `plumejax.Sweep` takes: task, policy, episodes, seed, plumes, tables
    arguments, overrides and static, and a table of axes, each a list of values or
    {geom = [low, high, count]} or {linear = [low, high, count]}; or, in place of the axes, a table
    of ranges (path = [low, high]) with design = "sobol" or "random", cells, and log, a list of
    paths. With a table training (seeds, steps, hyperparameters, shapes, at_once) the axes are
    hyperparameters of PPO, each setting is trained with every seed, and the best is shown. Ctrl-C
    stops it; the same command goes on with what is missing.

    Args:
        file: what is swept.
        out: the store, *.zarr; by default beside the file, with its name.
        executor: who plays: the devices of this process, or the workers of a Ray cluster (extra
            `ray`), that of the environment variable RAY_ADDRESS or one on this machine.
    """
    from plumejax.cli.cores import a_core_each
    from plumejax.viewing.figures import save
    from plumejax.viewing.sweeps import figure

    require(file.is_file(), "FILE", str(file), "a file (TOML) that says what is swept")
    store = file.with_suffix(".zarr") if out is None else out
    require(store.suffix == ".zarr", "--out", str(store), "a name that ends in .zarr")
    described = read(file)
    a_core_each()
    console = Console()
    what = made(described)
    cells = f"{what.design.size} cells of {what.episodes} episodes"
    console.print(f"{what.task}: {cells}; store {store}", highlight=False, soft_wrap=True)
    try:
        data = what.run(store, executor=executor)
    except KeyboardInterrupt:
        console.print(f"{store} has what is finished; the same command goes on from there")
        raise
    picture = store.with_suffix(".png")
    try:
        save(figure(data), picture)
    except ValidationError as error:
        console.print(f"no picture: {error}; see plumejax plot", highlight=False, soft_wrap=True)
    else:
        console.print(str(picture), highlight=False, soft_wrap=True)
    low, high = float(data.success.min()), float(data.success.max())
    console.print(f"success from {low:.3f} to {high:.3f}", highlight=False)
    if TRAINING in described:
        _show_best(console, what, data)
    return 0


TRAINING = "training"
"""The table of a file that asks for trainings."""


def made(described: dict[str, Any]) -> Any:
    """The `Sweep` or `TrainingSweep` of what a file says."""
    from plumejax.sweeps.sweep import Sweep
    from plumejax.sweeps.trainings import TrainingSweep

    if TRAINING not in described:
        return Sweep(**described)
    rest = {name: x for name, x in described.items() if name != TRAINING}
    return TrainingSweep(**rest, **described[TRAINING])


def _show_best(console: Console, what: Any, data: Any) -> None:
    from plumejax.sweeps.trainings import best

    found = best(data)
    setting = " ".join(f"{name}={value:g}" for name, value in found.setting.items())
    spread = f"median {found.median:.3f}, from {found.least:.3f} to {found.greatest:.3f}"
    console.print(
        f"best by the median of its {what.seeds} seeds: {setting}\n  success {spread}",
        highlight=False,
        soft_wrap=True,
    )


def read(file: Path) -> dict[str, Any]:
    """What a file says, as arguments of `Sweep`.

    Raises `ValidationError` for one that cannot be read, or says what is not known.
    """
    from plumejax.sweeps.designs import random, sobol
    from plumejax.sweeps.sweep import Sweep
    from plumejax.sweeps.trainings import TrainingSweep

    try:
        said = tomllib.loads(file.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ValidationError(f"{file} cannot be read: {error}") from None
    known = [field.name for field in fields(Sweep)]
    drawn = ("ranges", "design", "cells", "log")
    if TRAINING in said:
        require(isinstance(said[TRAINING], dict), f"{file}: training", said[TRAINING], "a table")
        usual = ("task", "axes", "seed", "episodes", "overrides", "data")
        own = [x.name for x in fields(TrainingSweep) if x.name not in usual]
        _require_known(f"{file}: training", said[TRAINING], own)
        known = [*usual, TRAINING]
    _require_known(str(file), said, [*known, *drawn])
    require("task" in said, f"{file}: task", None, "given, the id of a task")
    if "overrides" in said:
        said["overrides"] = _flat(said["overrides"])
    if "ranges" in said:
        require("axes" not in said, f"{file}: axes", "given", "left out beside ranges")
        ways = {"sobol": sobol, "random": random}
        way, cells, log = (said.pop(x, None) for x in ("design", "cells", "log"))
        require(way in ways, f"{file}: design", way, '"sobol" or "random"')
        require(type(cells) is int, f"{file}: cells", cells, "an int > 0")
        ranges = said.pop("ranges")
        require(isinstance(ranges, dict), f"{file}: ranges", ranges, "a table")
        seed = int(said.get("seed", 0))
        said["axes"] = ways[way](_flat(ranges), cells, seed, log or ())
    else:
        extra = [name for name in drawn if name in said]
        require(not extra, f"{file}: entries", extra, "given with a table of ranges")
        axes = said.get("axes", {})
        require(isinstance(axes, dict) and axes, f"{file}: axes", axes, "a table of axes or ranges")
        said["axes"] = {name: _values(name, given) for name, given in _flat(axes).items()}
    return said


def _require_known(where: str, said: dict[str, Any], known: list[str]) -> None:
    for name in said:
        if name not in known:
            names = ", ".join(known)
            raise ValidationError(f"{where}: no entry {name!r}.{near(name, known)} Known: {names}")


_SPACINGS: dict[str, Any] = {"geom": np.geomspace, "linear": np.linspace}


def _values(name: str, given: Any) -> Any:
    if not isinstance(given, dict):
        require(isinstance(given, list), f"axes: {name}", given, "a list, or {geom = [...]}")
        return given
    (way, ends), *more = given.items()
    good = way in _SPACINGS and not more and isinstance(ends, list) and len(ends) == 3
    good = good and all(type(x) in (int, float) for x in ends) and type(ends[2]) is int
    good = good and ends[2] > 0 and (way != "geom" or (ends[0] > 0 and ends[1] > 0))
    require(good, f"axes: {name}", given, "{geom = [low, high, count]}, low > 0, or {linear = ...}")
    return _SPACINGS[way](*ends)


def _flat(table: dict[str, Any], before: str = "") -> dict[str, Any]:
    """Nested tables by dotted path, as those who write plume.rate without quotes mean it."""
    found: dict[str, Any] = {}
    for name, value in table.items():
        path = f"{before}{name}"
        if isinstance(value, dict) and not set(value) & set(_SPACINGS):
            found |= _flat(value, f"{path}.")
        else:
            found[path] = value
    return found
