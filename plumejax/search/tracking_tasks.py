"""search/tracking_tasks: plume tracking as published, in code and in paper, by name.

Singh, van Breugel, Rao, Brunton 2023 (Nature Machine Intelligence 5: 58). Code and paper differ;
each has its own ids. The tracking plume is nearly continuous on its axis (intermittency 1.00 beyond
2 m), so each task is also there in the filaments of Farrell et al. 2002.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from plumejax.base.registry import Task, register
from plumejax.plumes import catalogue
from plumejax.search.arena import OpenBox
from plumejax.search.composed import Stack
from plumejax.search.endings import LeftPlume
from plumejax.search.environment import PlumeSearch
from plumejax.search.sensors import LocalConcentration, LogConcentration
from plumejax.search.start_in_plume import PlumeQuantiles
from plumejax.search.start_regions import UniformBox
from plumejax.search.state import Params
from plumejax.search.tasks import plume_search
from plumejax.search.tracking import TrackingCode, TrackingPaper
from plumejax.search.walking import (
    TurnAndSpeed,
    tracking_code,
    tracking_paper,
    tracking_walking,
)
from plumejax.search.wind_sensors import ApparentWind

BLOWN = {"tracking-code-switch-once": 58.0, "tracking-paper-switch-once": 58.0}
"""Seconds that a plume has blown when an episode starts, by name; others a minute. The wind that
turns once does so after a minute: here 2 s into the episode, at the earlier of the published times.
"""


@dataclass(frozen=True)
class Edition:
    """What code and paper have each of their own.

    Attributes:
      reward, start: the components.
      motion: numbers of `TurnAndSpeed`.
      starts: numbers of the start that are not its defaults.
      max_steps: steps after which an episode is truncated.
    """

    reward: Any
    start: Any
    motion: Any
    starts: tuple[tuple[str, tuple[float, float]], ...] = ()
    max_steps: int = 300


_NEAR = (("low", (1.0, -0.5)), ("high", (3.0, 0.5)))
"""Starts of the code, x and y in m from the source."""

CODE = Edition(TrackingCode(), UniformBox(), tracking_code, _NEAR)
PAPER = Edition(TrackingPaper(), PlumeQuantiles(), tracking_paper)
_NEARER = (("low", (0.5, -0.25)), ("high", (1.5, 0.25)))
"""Starts on foot, ours: from the code's nobody walks to the source in its 300 steps of 2 mm."""

WALKING = Edition(TrackingCode(), UniformBox(), tracking_walking, _NEARER, max_steps=1500)


def plume_tracking(name: str, edition: Edition, /, **static: Any) -> tuple[PlumeSearch, Params]:
    """`(env, params)` of plume tracking: found within 0.2 m, lost 2 m from the nearest puff, 300
    steps of 0.04 s.

    The observation, float32[3], is the wind minus the own velocity through the air, ahead and to
    the left, m/s, and the odour in [0, 1]; of filaments on a logarithmic scale, whose 1 is the
    middle of a newborn one and whose floor is a 10 000th of that.

    A start blows the plume for a minute (`BLOWN`). The code blows it for up to half a minute more,
    drawn, by which a plume does not change: its puffs leave it after less than a minute, so that it
    is as random already. Only where the wind turns once would that draw the moment, too.

    That minute costs more than an episode: train on a `Bank` of it, given as `plume` (its numbers
    then go into `params.plume`), or with a `Pool` of starts.

    Args:
      name: of a plume of `plumejax.plumes.catalogue` that has puffs.
      edition: `CODE`, `PAPER` or `WALKING`.
      **static: components, as in `plume_search`; `warmup` and the other choices of the plume.
    """
    step = 4  # advances of the plume's 0.01 s
    own = {str(key): static.pop(key) for key in ("capacity", "warmup") if key in static}
    choices: dict[str, Any] = {
        "substeps": step,
        "warmup": round(BLOWN.get(name, 60.0) / (step * 0.01)),
        **own,
    }
    model, numbers = catalogue.make(name, **choices)
    parts = {
        "plume": model,
        "sensor": Stack((("wind", ApparentWind(own="air")), ("odour", _nose(name)))),
        "motion": TurnAndSpeed(),
        "reward": edition.reward,
        "ending": LeftPlume(),
        "start": edition.start,
        "arena": OpenBox(2),
        **static,
    }
    env, params = plume_search(**parts)
    if env.plume == model:
        params = params.replace(plume=numbers)
    params = params.replace(max_steps=np.int32(edition.max_steps), dt=np.float32(step * 0.01))
    if name.startswith("farrell") and "sensor" not in static:
        middle = np.float32(numbers.amount / np.sqrt(8 * np.pi**3) / numbers.radius**3)
        odour = params.sensor["odour"].replace(saturation=middle, floor=1e-4 * middle)
        params = params.replace(sensor={**params.sensor, "odour": odour})
        if hasattr(params.reward, "threshold"):
            params = params.replace(reward=params.reward.replace(threshold=1e-4 * middle))
    if env.motion == TurnAndSpeed():
        params = params.replace(motion=edition.motion())
    if env.start == edition.start:
        values = {key: np.asarray(pair, np.float32) for key, pair in edition.starts}
        source = np.asarray(numbers.source, np.float32)[..., :2]
        params = params.replace(
            start=params.start.replace(**{key: x + source for key, x in values.items()})
        )
    if env.arena == OpenBox(2):
        # Far enough that an agent is lost before it is at the wall.
        low, high = np.asarray(numbers.low) - 4, np.asarray(numbers.high) + 4
        params = params.replace(
            arena=params.arena.replace(low=low.astype(np.float32), high=high.astype(np.float32))
        )
    return env, params


def _nose(name: str) -> Any:
    return LogConcentration() if name.startswith("farrell") else LocalConcentration()


def _tracking(name: str, edition: Edition) -> Any:
    return lambda **static: plume_tracking(name, edition, **static)


_SOURCE = "Singh et al. 2023, Nat. Mach. Intell. 5: 58"
_WINDS = {
    "Constant": ("", "constant wind", "easy"),
    "Sparse": ("-sparse", "sparse plume, constant wind", "medium"),
    "SwitchOnce": ("-switch-once", "the wind turns by 45 degrees once", "medium"),
    "SwitchMany": ("-switch-many", "the wind turns every 3 s", "hard"),
}

for _name, _edition in (("Code", CODE), ("Paper", PAPER)):
    for _wind, (_suffix, _what, _difficulty) in _WINDS.items():
        register(
            Task(
                f"PlumeTracking-{_name}-{_wind}-v0",
                _tracking(f"tracking-{_name.lower()}{_suffix}", _edition),
                f"plume tracking as in the {_name.lower()}: {_what}",
                source=_SOURCE,
                difficulty=_difficulty,
                version=2 if "Switch" in _wind else 1,
            )
        )
for _name, _preset, _what, _difficulty in (
    ("FarrellStraight", "farrell-straight", "a constant wind", "medium"),
    ("Farrell", "farrell", "a wind that wanders", "hard"),
):
    register(
        Task(
            f"PlumeTracking-{_name}-v0",
            _tracking(_preset, CODE),
            f"plume tracking as in the code, in filaments and {_what}",
            source=f"{_SOURCE}; Farrell et al. 2002",
            difficulty=_difficulty,
        )
    )
register(
    Task(
        "PlumeTracking-Walking-v0",
        _tracking("tracking-code", WALKING),
        "plume tracking on foot: 0.05 m/s, no drift, from 0.5 to 1.5 m, 60 s",
        version=2,
        source=f"{_SOURCE}; starts and time are plumejax's",
        difficulty="hard",
    )
)
