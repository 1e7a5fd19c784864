"""benchmarks/report: targets, the one table, and the JSON of a run."""

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal, NamedTuple

import jax
from rich import box
from rich.markup import escape
from rich.table import Table

from benchmarks.measure import Row
from plumejax.learning.runs import write_whole

PACKAGES = (
    *("plumejax", "jax", "jaxlib", "numpy", "gymnasium", "gymnax", "flax", "optax"),
    *("plume-nav-sim", "navix", "pompy", "olfactory-navigation"),
)


class Ratio(NamedTuple):
    """`of` : `to`, keys of rows, per wall second or CPU-second; at least `target`."""

    label: str
    of: str
    to: str
    per: Literal["wall", "cpu"]
    target: float


class Limit(NamedTuple):
    """The seconds of the row `of` are below `target`."""

    label: str
    of: str
    target: float


class Rate(NamedTuple):
    """The steps a CPU-second of the row `of` are at least `target`."""

    label: str
    of: str
    target: float


class Verdict(NamedTuple):
    """What was asked and what was reached; None if it was not measured."""

    label: str
    sign: str
    target: float
    reached: float | None

    @property
    def met(self) -> bool | None:
        if self.reached is None:
            return None
        return self.reached >= self.target if self.sign == ">=" else self.reached < self.target


RATIOS = (
    Ratio("local task : CartPole, 4096 lanes", "local/4096", "cartpole/4096", "wall", 5),
    Ratio("local task : its bare arithmetic", "local/4096", "bare/4096", "wall", 0.6),
    Ratio("local task : plume_nav_sim, per CPU-second", "local/4096", "peer", "cpu", 200),
    Ratio("vector, 1024 : peer's SyncVectorEnv, 16", "vector/1024", "peer-vector/16", "wall", 50),
    Ratio("single environment : plume_nav_sim", "single", "peer", "wall", 0.3),
    Ratio("PPO : PureJaxRL-style PPO", "ppo/1", "ppo-cartpole/normalised", "wall", 0.9),
)
LIMITS = (
    Limit("seconds to import, beyond jax", "import", 1.5),
    Limit("seconds of the first compilation", "first", 3.0),
)
RATES = (
    Rate("infotaxis a CPU-second, 19 x 19 cells", "infotaxis/19x19", 100_000),
    Rate("infotaxis a CPU-second, 81 x 41 cells in wind", "infotaxis/81x41", 10_000),
    Rate("steps of two arms a CPU-second", "two-arm-flat/1024", 500_000),
    Rate("the same with a picture", "two-arm-pictures/256", 60_000),
)


def verdicts(rows: Sequence[Row]) -> list[Verdict]:
    """Every target beside what these rows reached: ratios are of medians."""
    by_key = {row.key: row for row in rows}
    found = []
    for ratio in RATIOS:
        of, to = (
            getattr(by_key[key], ratio.per) if key in by_key else None
            for key in (ratio.of, ratio.to)
        )
        reached = of.median / to.median if of and to else None
        found.append(Verdict(ratio.label, ">=", ratio.target, reached))
    for limit in LIMITS:
        seconds = by_key[limit.of].seconds if limit.of in by_key else None
        found.append(Verdict(limit.label, "<", limit.target, seconds.median if seconds else None))
    for rate in RATES:
        cpu = by_key[rate.of].cpu if rate.of in by_key else None
        found.append(Verdict(rate.label, ">=", rate.target, cpu.median if cpu else None))
    return found


def table(rows: Sequence[Row], title: str, targets: Sequence[Verdict] = ()) -> Table:
    """The one table: rows by kind, then the targets."""
    out = Table(
        "what", title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0)
    )
    out.caption = "medians of steps a second; bytes a lane: state + temporaries"
    for name in ("lanes", "steps/s", "least, most", "per CPU-s", "compile s", "bytes"):
        out.add_column(name, justify="right", no_wrap=name != "compile s")
    kinds = list(dict.fromkeys(kind(row.key) for row in rows))
    for one in kinds:
        for row in sorted((r for r in rows if kind(r.key) == one), key=_place):
            out.add_row(*_cells(row))
    if targets:
        out.add_section()
        out.add_row("[bold]targets", "", "[bold]reached", "[bold]target")
    for verdict in targets:
        colour = {None: "dim", True: "green", False: "red"}[verdict.met]
        reached = "-" if verdict.reached is None else f"{verdict.reached:.3g}"
        target = f"{verdict.sign} {verdict.target:g}"
        out.add_row(verdict.label, "", f"[{colour}]{reached}", target)
    return out


def kind(key: str) -> str:
    """The first part of a row's key."""
    return key.rpartition("/")[0] or key


def _place(row: Row) -> tuple[int, int]:
    return row.lanes, row.size or 0


def _cells(row: Row) -> list[str]:
    label = escape(row.label)
    if row.note:
        return [f"{label}\n[yellow]{escape(row.note)}", f"{row.lanes}"]
    if row.seconds:
        middle, low, high = (f"{x:.2f}" for x in row.seconds)
        return [label, "", f"{middle} s", f"{low}, {high}"]
    assert row.wall is not None
    assert row.cpu is not None
    seconds = row.facts.get("compile_seconds")
    sizes = [row.facts[name] for name in ("state_bytes", "temporary_bytes") if name in row.facts]
    return [
        label,
        f"{row.lanes}",
        brief(row.wall.median),
        f"{brief(row.wall.low)}, {brief(row.wall.high)}",
        brief(row.cpu.median),
        "" if seconds is None else f"{seconds:.1f}",
        " + ".join(brief(size) for size in sizes),
    ]


def brief(x: float) -> str:
    """Three figures: 512, 4.21 k, 17.4 M."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if x >= size:
            return f"{x / size:.3g} {unit}"
    return f"{x:.3g}"


def document(
    rows: Sequence[Row], left_out: Sequence[str], targets: Sequence[Verdict] = ()
) -> dict[str, Any]:
    """All of a run, for JSON."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "versions": {name: _version(name) for name in PACKAGES},
        "left_out": list(left_out),
        "rows": [_plain(row) for row in rows],
        "targets": [{**v._asdict(), "met": v.met} for v in targets],
    }


def _plain(row: Row) -> dict[str, Any]:
    spreads = {"wall": row.wall, "cpu": row.cpu, "seconds": row.seconds}
    named = {name: s and s._asdict() for name, s in spreads.items()}
    return {name: value for name, value in {**asdict(row), **named}.items() if value is not None}


def write(path: Path, content: dict[str, Any]) -> None:
    """Write it whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(content, indent=1) + "\n")


def machine() -> dict[str, Any]:
    """What the numbers depend on: processor, cores that may be used, memory, system."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return {
        "cpu": _cpu_model(),
        "cores": cores,
        "memory_gib": round(memory, 1),
        "platform": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "jax_device": jax.devices()[0].device_kind,
    }


def _cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
