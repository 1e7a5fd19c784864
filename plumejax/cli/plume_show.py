"""cli/plume_show: `plumejax plume show NAME`, a picture or a GIF of a plume."""

from pathlib import Path
from typing import Any

import jax
import numpy as np
import tyro
from rich.console import Console

from plumejax.base.errors import require
from plumejax.cli.plume_named import Film, Live, bar, find, lasting, require_out, teller
from plumejax.viewing.plumes import save_frame, save_gif


def plume_show(
    name: tyro.conf.Positional[str],
    *,
    out: Path = Path("plume.png"),
    frame: int | None = None,
    seconds: float | None = None,
    frames: int = 60,
    every: int = 1,
    fps: int = 12,
    plume: int = 0,
    cells: int = 240,
    decades: float = 4.0,
    seed: int = 0,
    set: tuple[str, ...] = (),
) -> int:
    """Draw a frame of a plume as a PNG, or several as a GIF.

    The scale is logarithmic; the star is the source, the arrow the mean wind over the picture. A
    named plume has been filled by its wind before frame 0.

    Args:
        name: of a plume (a wrong one lists them), or a movie's directory.
        out: the picture, *.png or *.gif.
        frame: which, or the first of a GIF.
        seconds: the same in seconds.
        frames: of a GIF.
        every: frames from one picture of a GIF to the next.
        fps: pictures a second of the GIF.
        plume: which plume of a bank; of a named plume, that of the bank of the same seed.
        cells: along the longer side of the picture of a named plume.
        decades: of concentration on the scale.
        seed: of a named plume.
        set: numbers of a named plume, as in --set plume.radius=0.1.
    """
    require_out(out, ".png", ".gif")
    for option, value in (("--frames", frames), ("--every", every), ("--cells", cells)):
        require(value > 0, option, value, "> 0")
    require(1 <= fps <= 50, "--fps", fps, "1 to 50")
    require(decades > 0, "--decades", decades, "> 0")
    require(0 <= seed < 2**31, "--seed", seed, "0 <= seed < 2**31")
    require(frame is None or seconds is None, "--seconds", seconds, "left out beside --frame")
    subject = find(name, set)
    first = frame or 0
    if seconds is not None:
        first = round(seconds / subject.seconds)
    count, every = (frames, every) if out.suffix == ".gif" else (1, 1)
    _require_there(subject, plume, first + (count - 1) * every)
    console = Console()
    with bar(console) as shown:
        fields, winds = subject.pictures(
            jax.random.key(seed),
            plume,
            cells,
            subject.warmup + first,
            count,
            every,
            teller(shown, "pictures"),
        )
        titles = [_title(subject, first + t * every) for t in range(count)]
        about: dict[str, Any] = {
            "sources": subject.sources,
            "unit": subject.unit,
            "length": subject.length,
            "time": subject.time,
            "decades": decades,
        }
        box = (subject.low, subject.high)
        shown.add_task("drawing", total=None)
        if out.suffix == ".gif":
            save_gif(out, titles, fields, *box, winds, fps, **about)
        else:
            save_frame(out, titles[0], fields[0], *box, wind=winds[0], **about)
    empty = "; there is nothing in it" if not np.any(fields) else ""
    console.print(f"{out}: {titles[0]}{empty}", highlight=False, soft_wrap=True)
    return 0


def _require_there(subject: Live | Film, plume: int, frame: int) -> None:
    most = subject.plumes
    require(plume >= 0 and (not most or plume < most), "--plume", plume, f"0 to {most - 1}")
    last = subject.frames - 1
    there = frame >= 0 and (not subject.frames or frame <= last)
    require(there, "--frame", frame, f"0 to {last}, the last of a GIF too" if last > 0 else ">= 0")


def _title(subject: Live | Film, frame: int) -> str:
    return f"{subject.name} after {lasting(subject, frame)}"
