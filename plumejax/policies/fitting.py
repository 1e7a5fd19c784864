"""policies/fitting: which body a policy has on a task, and what it needs of motion and sensor."""

from typing import Any

import numpy as np

from plumejax.base.errors import require
from plumejax.policies.body import Stepper, Turner, Walker
from plumejax.policies.reader import Reader, smelling
from plumejax.search.bouts import Declare, Saccades, SniffOrMove
from plumejax.search.environment import PlumeSearch
from plumejax.search.motion import AxisMoves, Moves, Oriented, RunAndTumble, WindRelative
from plumejax.search.state import Params
from plumejax.search.walking import TurnAndSpeed, Unicycle
from plumejax.search.wind_sensors import ApparentWind

MOTIONS = (TurnAndSpeed, Saccades, Unicycle, Oriented, RunAndTumble, Moves, AxisMoves, WindRelative)
"""Motions that there are bodies for; also inside `SniffOrMove` and `Declare`, whose last action a
body never takes."""

STEERED = tuple(motion for motion in MOTIONS if motion is not RunAndTumble)
"""Those that can be given a direction."""

EGOCENTRIC = (TurnAndSpeed, Saccades, Unicycle, Oriented)
"""Those that turn the agent."""


def body(
    env: PlumeSearch,
    params: Params,
    *,
    motions: tuple[type, ...] = MOTIONS,
    wind: bool = False,
    downwind: float = 0.0,
) -> Any:
    """The `Body` for the motion of a task.

    Args:
      env, params: the task, of one set of numbers.
      motions: kinds of motion that the policy can act through.
      wind: whether the policy needs to know the wind.
      downwind: degrees from +x, where the air goes to: used if no sensor feels it.

    Raises:
      ValidationError: another motion, or a sensor that tells too little.
    """
    read = smelling(env, params)
    motion, numbers = env.motion, params.motion
    while isinstance(motion, SniffOrMove | Declare):
        motion, numbers = motion.of, numbers.of
    names = ", ".join(kind.__name__ for kind in motions)
    require(isinstance(motion, motions), "env.motion", env.motion, f"one of {names}")
    if isinstance(motion, WindRelative):
        # Its frame is that of the wind, which blows backwards in it.
        read, downwind = Reader(nose=read.nose, antennae=read.antennae), 180.0
    shared: dict[str, Any] = {
        "reader": read,
        "dt": np.float32(params.dt),
        "downwind": np.float32(downwind),
        "drift": np.float32(getattr(numbers, "drift", 0.0)),
    }
    if wind:
        _require_wind(env, read, motion, float(shared["drift"]))
    if isinstance(motion, TurnAndSpeed):
        fastest, turns = np.float32(numbers.max_speed), np.float32(numbers.turn_range)
        return Walker(**shared, fastest=fastest, turn_range=turns)
    if isinstance(motion, Saccades | Unicycle):
        stand = 3 if isinstance(motion, Saccades) else 0
        return Turner(
            **shared,
            fastest=np.float32(numbers.speed),
            actions=(0, 1, 2, stand),
            walks_on=stand == 3,
            step=np.float32(numbers.turn),
        )
    shared["fastest"] = np.float32(numbers.step / params.dt)
    if isinstance(motion, Oriented):
        return Turner(**shared, actions=(0, 1, 2, 0), walks_on=False, step=np.float32(90.0))
    if isinstance(motion, RunAndTumble):
        # What is no tumble is so little that it is none to see.
        return Turner(**shared, actions=(0, 1, 1, 0), walks_on=True, step=np.float32(20.0))
    return Stepper(**shared, directions=_directions(motion))


def body_and_speed(
    env: PlumeSearch, params: Params, speed: float, **wanted: Any
) -> tuple[Any, np.float32]:
    """`(body, speed)`: the body of a task, and `speed` of its fastest, lengths a second.

    Raises `ValidationError` for a speed that is not in (0, 1], and what `body` raises.
    """
    require(0 < speed <= 1, "speed", speed, "a part of the motion's fastest, in (0, 1]")
    of = body(env, params, **wanted)
    return of, np.float32(speed) * of.fastest


def legs(env: PlumeSearch, params: Params, fastest: float, mm: float, **wanted: Any) -> Any:
    """The `Body` of a task for an animal that is as fast as `fastest` mm/s.

    Raises `ValidationError` if the motion is slower, and what `body` raises.

    Args:
      env, params: the task.
      fastest: mm/s.
      mm: lengths of the plume in a mm.
      **wanted: as in `body`.
    """
    require(mm > 0, "mm", mm, "> 0 lengths of the plume")
    of = body(env, params, **wanted)
    fast = float(of.fastest) >= fastest * mm * (1 - 1e-5)
    allowed = f">= {fastest * mm:g}, {fastest:g} mm/s"
    require(fast, "the motion's fastest", float(of.fastest), allowed)
    return of


def _directions(motion: Any) -> tuple[tuple[int, int], ...]:
    if isinstance(motion, WindRelative):
        return ((1, 0), (-1, 0), (0, 1), (0, -1))
    if isinstance(motion, AxisMoves):
        require(motion.dimensions == 2, "env.motion.dimensions", motion.dimensions, "2")
        return ((-1, 0), (1, 0), (0, -1), (0, 1))
    return motion.directions


def _require_wind(env: PlumeSearch, read: Reader, motion: Any, drift: float) -> None:
    """Raise `ValidationError` unless the wind can be had in the frame of the heading."""
    steps = isinstance(motion, Moves | AxisMoves | WindRelative)
    vane, told = read.vane, read.compass is not None
    if vane is None:
        require(steps or told, "env.sensor", env.sensor, "one with AmbientWind, or with Heading")
        return
    knows = (vane.sensor.egocentric != steps) or told or (steps and not vane.sensor.egocentric)
    require(knows, "env.sensor", env.sensor, "one with AmbientWind in its frame, or with Heading")
    if isinstance(vane.sensor, ApparentWind):
        feels = not steps and (vane.sensor.own == "air" or drift < 1)
        require(feels, "env.sensor", env.sensor, "one with AmbientWind: it could feel no wind")
