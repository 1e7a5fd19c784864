"""search/tasks: the named searches, and how one is composed from defaults."""

from pathlib import Path
from typing import Any

import numpy as np

from plumejax.base import paths
from plumejax.base.errors import require
from plumejax.base.registry import Task, factory, register
from plumejax.plumes.filament_recordings import FilamentRecording, read_filaments
from plumejax.plumes.gaussian import GaussianPlume
from plumejax.plumes.recorded import RecordedPlume
from plumejax.search.arena import MaskedGrid, OpenGrid
from plumejax.search.endings import GoalDisc
from plumejax.search.environment import PlumeSearch
from plumejax.search.motion import NINE, Moves, Oriented, RunAndTumble
from plumejax.search.rewards import Sparse, StepPenalty
from plumejax.search.sensors import FullField, LocalConcentration
from plumejax.search.starts import Uniform
from plumejax.search.state import Params


@factory
def plume_search(
    *,
    grid_size: tuple[int, int] = (128, 128),
    plume: Any = None,
    sensor: Any = None,
    motion: Any = None,
    reward: Any = None,
    ending: Any = None,
    start: Any = None,
    arena: Any = None,
) -> tuple[PlumeSearch, Params]:
    """`(env, params)` of a search on a grid; what is not given is that of `PlumeSearch-v0`.

    Args:
      grid_size: width and height in cells.
      plume, sensor, motion, reward, ending, start, arena: the components; any object with the
        methods of its kind (`plumejax.search.components`).

    Raises:
      ValidationError: a grid that is not two ints > 0.
      ComponentError: a component without the methods of its kind.
    """
    grid_size = _grid(grid_size)
    env = PlumeSearch(
        plume=GaussianPlume(grid_size) if plume is None else plume,
        sensor=FullField(grid_size) if sensor is None else sensor,
        motion=Moves() if motion is None else motion,
        reward=Sparse() if reward is None else reward,
        ending=GoalDisc() if ending is None else ending,
        start=Uniform() if start is None else start,
        arena=OpenGrid(grid_size) if arena is None else arena,
    )
    return env, env.default_params()


def plume_search_local(**static: Any) -> tuple[PlumeSearch, Params]:
    """`plume_search` with the concentration where the agent stands as the one observation."""
    return plume_search(**{"sensor": LocalConcentration(), **static})


def recorded(
    *,
    data: str | Path,
    source: tuple[float, float, float] | None = None,
    frames: tuple[int, int] = (200, 499),
    **static: Any,
) -> tuple[PlumeSearch, Params]:
    """`(env, params)` of a search in recorded gas: the slice of a room at the source's height.

    A step is a frame and a move a cell; lengths are in cells of the recording. Found within 1 m in
    at most 600 steps, starts uniform over free cells at least 3 m away (GSL-Bench's radius and
    time, at its half second a frame).

    Args:
      data: path of a filament recording (`plumejax.plumes.filament_recordings.read_filaments`).
      source: x, y, z in m; may be left out for the recordings that we know.
      frames: first and last frame of the loop.
      **static: components, as in `plume_search`.

    Raises:
      ValidationError: data that are missing or do not fit; frames that are not there.
    """
    recording = read_filaments(data, source)
    pictures = recording.slice(loop(recording, frames))
    grid_size = recording.grid_size
    parts = {
        "plume": RecordedPlume(len(pictures), grid_size, unit="ppm"),
        "sensor": LocalConcentration(),
        "arena": MaskedGrid(grid_size),
        **static,
    }
    env, params = plume_search(grid_size=grid_size, **parts)
    metre = 1.0 / recording.cell_size
    numbers = {
        "max_steps": 600,
        "plume.frames": pictures,
        "plume.source": recording.source_cell(),
        "sensor.saturation": max(float(pictures.max()), np.finfo(np.float32).tiny),
        "ending.radius": 1.0 * metre,
        "start.min_distance": 3.0 * metre,
        "arena.free": recording.free(),
    }
    # A component that was given may have other numbers than ours.
    known = paths.leaves(params)
    return env, paths.override(params, {k: v for k, v in numbers.items() if k in known})


def loop(recording: FilamentRecording, frames: Any) -> range:
    """The frames from the first to the last of `frames`, which have to be there."""
    last = len(recording.offsets) - 2
    pair = isinstance(frames, tuple | list) and [type(n) for n in frames] == [int, int]
    fits = pair and 0 <= frames[0] <= frames[1] <= last
    require(fits, "frames", frames, f"(first, last) with 0 <= first <= last <= {last}")
    return range(frames[0], frames[1] + 1)


def _grid(grid_size: Any) -> tuple[int, int]:
    try:
        good = len(grid_size) == 2 and all(
            not isinstance(n, bool) and int(n) == n and n > 0 for n in grid_size
        )
    except (TypeError, ValueError):
        good = False
    require(good, "grid_size", grid_size, "(width, height), two ints > 0")
    return int(grid_size[0]), int(grid_size[1])


def variant(make: Any, **parts: Any) -> Any:
    """A factory like `make` that has other components where none are given."""

    def composed(**static: Any) -> tuple[PlumeSearch, Params]:
        return make(**{**parts, **static})

    return composed


_OURS = "the contract of plumejax"
_PEER = "plume_nav_sim 0.1.0"

for _task in (
    Task(
        "PlumeSearch-v0",
        plume_search,
        "128 x 128 grid, Gaussian plume, four moves, the whole field observed, sparse reward",
        version=2,
        source=_PEER,
        difficulty="easy",
    ),
    Task(
        "PlumeSearchLocal-v0",
        plume_search_local,
        "the same, observing only the concentration where the agent stands",
        version=2,
        source=_PEER,
        difficulty="medium",
    ),
    Task(
        "PlumeSearchLocalNine-v0",
        variant(plume_search_local, motion=Moves(NINE)),
        "the same in eight directions, and staying",
        source=_OURS,
        difficulty="medium",
    ),
    Task(
        "PlumeSearchLocalOriented-v0",
        variant(plume_search_local, motion=Oriented()),
        "the same, going ahead and turning left or right",
        source=_PEER,
        difficulty="medium",
    ),
    Task(
        "PlumeSearchLocalRunTumble-v0",
        variant(plume_search_local, motion=RunAndTumble()),
        "the same, running on or tumbling into a drawn direction",
        source=_PEER,
        difficulty="medium",
    ),
    Task(
        "PlumeSearchLocalStepPenalty-v0",
        variant(plume_search_local, reward=StepPenalty()),
        "the same, every step costing a hundredth",
        source=_PEER,
        difficulty="medium",
    ),
    Task(
        "Recorded-v0",
        recorded,
        "gas recorded in a warehouse, a slice at the source's height; needs data=PATH",
        version=2,
        needs=("data",),
        source="GSL-Bench, Erwich et al. 2024",
        difficulty="hard",
    ),
):
    register(_task)
