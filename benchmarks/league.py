"""benchmarks/league: `python -m benchmarks.league [NAMES...]`: the leagues whose tables are in
benchmarks/league: searches by hits in still air and in wind, and trackers of three plumes.

Each is one `plumejax league`; what is played already is not played again.
"""

import sys
from pathlib import Path
from typing import Any

import tyro

from plumejax.cli.league import league

HERE = Path(__file__).parent / "league"

BELIEVERS = (
    "infotaxis",
    "k-step-infotaxis",
    "space-aware-infotaxis",
    "space-aware-infotaxis:shift=0.5",
    "greedy-belief",
    "mean-distance",
    "voting",
    "most-likely-state",
    "p-over-d",
    "thompson",
    "qmdp",
)

LEAGUES: dict[str, dict[str, Any]] = {
    "isotropic": {
        "tasks": ("Olfactory-Isotropic-1D-v0", "Olfactory-Isotropic-19x19-v0"),
        "policies": (
            *("perfect", "random", "gradient", *BELIEVERS),
            # It takes the source for one that emits a tenth, or ten times as much.
            *("infotaxis:rate=0.2", "infotaxis:rate=10"),
        ),
        "set": ("max_steps=600",),
    },
    "windy": {
        "tasks": ("Olfactory-Windy-Medium-v0",),
        "policies": (
            *("perfect", "random", "run-and-tumble", "cast-and-surge", "surge-spiral"),
            *(name for name in BELIEVERS if name != "k-step-infotaxis"),
            *("infotaxis:rate=0.25", "infotaxis:rate=25"),
        ),
        "set": ("max_steps=600",),
    },
    "trackers": {
        # A smooth plume, an intermittent one in wind, and packets whose source walks.
        "tasks": ("PlumeSearchLocal-v0", "FiniteMemory-Cosh-v0", "MovingSource-v0"),
        "policies": (
            *("perfect", "random", "gradient", "run-and-tumble", "e-coli", "dung-beetle"),
            *("cast-and-surge", "cast-and-surge:cast=2", "moth-zigzag", "surge-spiral"),
            *("surge-spiral:gap=3", "circling", "backtracking"),
        ),
        "set": ("max_steps=1000",),
    },
}


def main(names: tyro.conf.Positional[tuple[str, ...]] = (), *, episodes: int = 10_000) -> None:
    """Play leagues and write their tables and pictures.

    Args:
      names: of the leagues; by default all.
      episodes: of each policy on each task.
    """
    unknown = [name for name in names if name not in LEAGUES]
    if unknown:
        sys.exit(f"there is no league {', '.join(unknown)}; there are {', '.join(LEAGUES)}")
    for name in names or LEAGUES:
        chosen = dict(LEAGUES[name])
        league(chosen.pop("tasks"), out=HERE / name, episodes=episodes, **chosen)


if __name__ == "__main__":
    tyro.cli(main)
