"""search/recorded_tasks: a drone in recorded gas, in three dimensions, by name."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from flax import struct

from plumejax.base.errors import require
from plumejax.base.registry import Task, register
from plumejax.plumes.filament_recordings import FilamentRecording, read_filaments
from plumejax.plumes.recorded_filaments import played
from plumejax.search.arena import ObstacleBox
from plumejax.search.composed import Stack
from plumejax.search.endings import GoalDisc
from plumejax.search.environment import PlumeSearch
from plumejax.search.numbered import Numbered, numbered, numbered_search
from plumejax.search.own_motion import OwnVelocity
from plumejax.search.sensors import LogConcentration, Position
from plumejax.search.start_regions import UniformBox
from plumejax.search.state import Params
from plumejax.search.tasks import loop
from plumejax.search.walking import Velocity

FRAME = 0.5
"""s, from one frame of the recording to the next."""


class FarBoxParams(struct.PyTreeNode):
    """Numbers of a `FarBox`.

    Attributes:
      low, high: float32[d], lengths of the plume.
      heading: float32[], degrees, in [0, 360); unused where any heading is drawn.
      min_distance: float32[], lengths from every source, >= 0.
    """

    low: Any
    high: Any
    heading: Any
    min_distance: Any


@dataclass(frozen=True)
class FarBox(UniformBox):
    """Uniform over those places of a box that are far enough from the source.

    Attributes: those of `Region`.
    """

    def default_params(self) -> Any:
        own = super().default_params()
        return FarBoxParams(own.low, own.high, own.heading, min_distance=np.float32(0.0))

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` if a number is not allowed."""
        super().validate(params)
        least = params.start.min_distance
        require(np.all(np.asarray(least) >= 0), "start.min_distance", least, ">= 0 lengths")


def recorded_drone(
    *,
    data: str | Path,
    source: tuple[float, float, float] | None = None,
    frames: tuple[int, int] = (200, 499),
    **static: Any,
) -> tuple[PlumeSearch, Params]:
    """`(env, params)` of a drone's search in recorded gas: found within 1 m of the source, in
    at most 600 steps of half a second (the radius, time and frames of `Recorded-v0`).

    The drone is ours: an action, float32[3] in [-1, 1], pushes along x, y and z by up to 1 m/s^2; a
    drag of 1/s holds back, so it flies at up to 1 m/s along each axis. The room's edges and
    obstacles are walls, at which a move ends. The observation, float32[7], is the concentration on
    a logarithmic scale (1 at 10 ppm, the middle of a newborn filament; linear well below 0.01 ppm),
    the own velocity in m/s, and the position in m. Starts are uniform over free air at least 3 m
    from the source, at rest.

    The filaments themselves are played, 9 and 12 MB for the 300 frames of the two warehouses,
    where frames of the room in cells of 0.2 m would be 285 MB. There is no wind in the recording.
    Gas is rare: in `warehouse_simple_004` three starts in four smell none at first.

    Args:
      data: path of a filament recording (`plumejax.plumes.filament_recordings.read_filaments`).
      source: x, y, z in m; may be left out for the recordings that we know.
      frames: first and last frame of the loop.
      **static: components, as in `plume_search`.

    Raises:
      ValidationError: data that are missing or do not fit; frames that are not there.
    """
    recording = read_filaments(data, source)
    arena = _room(recording)
    low, high = _corners(arena)
    sensor = Stack(
        (("odour", LogConcentration()), ("velocity", OwnVelocity(3)), ("place", Position(3)))
    )
    parts = {
        "plume": played(recording, loop(recording, frames)),
        "sensor": numbered(
            sensor,
            {
                "odour.saturation": 10.0,
                "odour.floor": 0.01,
                "velocity.limit": 2.0,
                "place.low": low,
                "place.high": high,
            },
        ),
        "motion": numbered(Velocity(3), {"max_speed": 2.0}),
        "ending": numbered(GoalDisc(), {"radius": 1.0}),
        "start": numbered(FarBox(3), {"low": low, "high": high, "min_distance": 3.0}),
        "arena": arena,
    }
    return numbered_search(parts, 600, static, dt=FRAME)


def _room(recording: FilamentRecording) -> Numbered:
    """The room's cells, those that gas is free to be in."""
    free = (recording.occupancy == 0).transpose(0, 2, 1)
    size = recording.cell_size
    numbers = {
        "free": free,
        "origin": np.asarray(recording.origin, np.float32) + np.float32(size / 2),
        "spacing": np.full(3, size, np.float32),
    }
    # Points of a way lie less than a cell apart at 2 m/s.
    return numbered(ObstacleBox(free.shape[::-1], samples=_samples(2.0 * FRAME, size)), numbers)


def _samples(way: float, cell: float) -> int:
    return int(np.ceil(way / cell))


def _corners(arena: Numbered) -> tuple[np.ndarray, np.ndarray]:
    """float32[3] each: the corners of the room."""
    box, own = arena
    low = own.origin - own.spacing / 2
    return low, low + own.spacing * np.asarray(box.cells, np.float32)


register(
    Task(
        "Recorded-Drone-v0",
        recorded_drone,
        "a drone in gas recorded in a warehouse, in three dimensions; needs data=PATH",
        needs=("data",),
        source="GSL-Bench, Erwich et al. 2024; the drone is plumejax's",
        difficulty="hard",
    )
)
