"""search/fly_tasks: walking flies in a Gaussian, in a steady plume and among packets, by name.

Lengths are mm, times seconds, the wind blows along +x. The odour comes first in an observation,
the wind last: ahead of the fly and to its left, mm/s.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from plumejax.base.registry import Task, register
from plumejax.plumes.gaussian import GaussianPlume, WindGaussianPlume
from plumejax.plumes.packets import PacketPlume
from plumejax.search.arena import OpenBox
from plumejax.search.bouts import Saccades
from plumejax.search.composed import Stack
from plumejax.search.endings import GoalDisc
from plumejax.search.environment import PlumeSearch
from plumejax.search.hits import Threshold
from plumejax.search.numbered import Numbered, numbered, numbered_search
from plumejax.search.sensors import LocalConcentration
from plumejax.search.start_regions import UniformBox
from plumejax.search.state import Params
from plumejax.search.walking import TurnAndSpeed, TurnAndSpeedParams
from plumejax.search.whiffs import TimeSinceWhiff
from plumejax.search.wind_sensors import AmbientWind

SAMPLE = 0.02
"""s, a sample of the fly of Alvarez-Salvado et al. 2018."""


def fly_gaussian(**static: Any) -> tuple[PlumeSearch, Params]:
    """`(env, params)` of the arena of Alvarez-Salvado et al. 2018 (eLife 7: e37815): a Gaussian of
    50 mm, 1 at its source, in still air; found within 20 mm, in 300 s of 50 samples a second.

    Starts are uniform in 200 x 200 mm about the source, any heading, and not in the goal disc, as
    everywhere here. The published start has 3.14 % of the flies there and counts them as found, so
    its success p is (p - 0.0314) / 0.9686 here: 0.234, 0.443, 0.545 after 60, 180, 300 s.

    The action is (turn, speed), float32[2]: up to half a circle either way a sample, and up to 8.7
    mm/s, the most that the fly model walks. The observation, float32[3], is the concentration in
    [0, 1], then the wind, which is 0.

    There are no walls for a fly to meet: the box is 1.5 m wide (ours), and in 300 s none of 20 000
    flies of the model came farther from its middle than 600 mm.

    Args:
      **static: components, as in `plume_search`.
    """
    half = 750
    plume = GaussianPlume((2 * half + 1, 2 * half + 1))
    source = np.full(2, half, np.float32)
    return _fly(
        plume=(plume, plume.default_params().replace(sigma=np.float32(50.0), source=source)),
        start=_anywhere(source - np.float32(100.0), source + np.float32(100.0)),
        arena=_box(source - np.float32(half), source + np.float32(half)),
        static=static,
    )


def fly_gaussian_wind(**static: Any) -> tuple[PlumeSearch, Params]:
    """`fly_gaussian` in wind: the time-averaged plume of a source in 120 mm/s, Gaussian across.

    Ours but for what they share. It spreads by 100 mm^2/s, is 1 at 10 mm downwind of the source
    and falls as the root of the distance. The fly starts anywhere in the box of 600 x 300 mm, whose
    walls stop it, at any heading.

    Args:
      **static: components, as in `plume_search`.
    """
    plume = WindGaussianPlume(dimensions=2)
    numbers = plume.default_params().replace(
        velocity=np.asarray([120.0, 0.0], np.float32),
        diffusivity=np.float32(100.0),
        radius=np.float32(10.0),
        # Of 1 at 10 mm downwind: 2 pi D / (e^6 K0(6)).
        rate=np.float32(1252.0),
    )
    low, high = np.asarray([-100.0, -150.0], np.float32), np.asarray([500.0, 150.0], np.float32)
    return _fly(
        plume=(plume, numbers),
        start=_anywhere(low, high),
        arena=_box(low, high),
        static=static,
    )


def _fly(
    *, plume: Numbered, start: Numbered, arena: Numbered, static: Mapping[str, Any]
) -> tuple[PlumeSearch, Params]:
    """What the tasks of the fly model share: its nose, its legs, the goal and the time."""
    sensor = Stack((("odour", LocalConcentration()), ("wind", AmbientWind())))
    legs = TurnAndSpeedParams(
        turn_range=np.float32(360.0 / SAMPLE), max_speed=np.float32(8.7), drift=np.float32(0.0)
    )
    parts = {
        "plume": plume,
        "sensor": (sensor, _with_wind(sensor)),
        "motion": (TurnAndSpeed(feels_air=False), legs),
        "ending": _goal(20.0),
        "start": start,
        "arena": arena,
    }
    return numbered_search(parts, round(300 / SAMPLE), static, dt=SAMPLE)


def fly_packets(**static: Any) -> tuple[PlumeSearch, Params]:
    """`(env, params)` of a fly that walks among packets of odour, as in Jayaram et al. 2022.

    Theirs: packets whose velocity across the wind is an Ornstein-Uhlenbeck process
    (`PacketPlume`'s numbers), a fly of 10.1 mm/s that turns by 30 +- 8 degrees (`Saccades`), the
    refractory time of 0.085 s. Ours: all that follows.

    The observation, float32[4], is whether the concentration is 1 or more, the seconds since the
    last whiff (10 at most), and the wind. A start is uniform in a box from 200 to 400 mm downwind,
    75 mm to either side, any heading: there is odour for 0.11 of the time, 0.07 to 0.18. Found
    within 20 mm, in 180 s; the walls of the box, 650 x 300 mm, stop the fly.

    The plume has blown for 5 s at the start, longer than the wind takes from end to end.

    Args:
      **static: components, as in `plume_search`; `warmup` and `capacity` of the plume.
    """
    own = {str(name): static.pop(name) for name in ("capacity", "warmup") if name in static}
    plume = PacketPlume(**{"warmup": 300, **own})
    numbers = plume.default_params()
    nose = LocalConcentration()
    sensor = Stack(
        (("odour", Threshold(nose)), ("whiff", TimeSinceWhiff(nose)), ("wind", AmbientWind()))
    )
    level, smells = np.float32(1.0), nose.default_params().replace(saturation=np.float32(2.0))
    senses = _with_wind(sensor)
    senses = {
        **senses,
        "odour": senses["odour"].replace(of=smells, low=level, high=level),
        "whiff": senses["whiff"].replace(of=smells, threshold=level),
    }
    motion = Saccades()
    parts = {
        "plume": (plume, numbers),
        "sensor": (sensor, senses),
        "motion": (motion, motion.default_params()),
        "ending": _goal(20.0),
        "start": _anywhere([200.0, -75.0], [400.0, 75.0]),
        "arena": _box([-50.0, -150.0], [600.0, 150.0]),
    }
    return numbered_search(parts, 180 * 60, static)


def _with_wind(sensor: Stack) -> dict[str, Any]:
    """The numbers of a sensor whose wind goes up to 500 mm/s."""
    numbers = sensor.default_params()
    return {**numbers, "wind": numbers["wind"].replace(limit=np.float32(500.0))}


def _goal(radius: float) -> Numbered:
    return numbered(GoalDisc(), {"radius": radius})


def _anywhere(low: Any, high: Any) -> Numbered:
    return numbered(UniformBox(), {"low": low, "high": high})


def _box(low: Any, high: Any) -> Numbered:
    return numbered(OpenBox(), {"low": low, "high": high})


for _task in (
    Task(
        "Fly-Gaussian-v0",
        fly_gaussian,
        "a walking fly in a Gaussian in still air, 300 s, found within 20 mm",
        source="Alvarez-Salvado et al. 2018, eLife 7: e37815",
        difficulty="medium",
    ),
    Task(
        "Fly-GaussianWind-v0",
        fly_gaussian_wind,
        "a walking fly in a steady plume in wind, 300 s, found within 20 mm",
        source="after Alvarez-Salvado et al. 2018, eLife 7: e37815",
        difficulty="medium",
    ),
    Task(
        "Fly-Packets-v0",
        fly_packets,
        "a walking fly among packets of odour in wind, 180 s, found within 20 mm",
        source="Jayaram et al. 2022; Kadakia et al. 2022, Nature 611: 754",
        difficulty="medium",
    ),
):
    register(_task)
