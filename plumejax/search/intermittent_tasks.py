"""search/intermittent_tasks: searches in odour that comes in whiffs, by name: with few states, with
a nose at two heights, and for a source that moves.

The wind blows along +x. Agents make four moves, up, right, down and left, of one length.
"""

from typing import Any

import numpy as np

from plumejax.base.registry import Task, register
from plumejax.plumes.ground import FilamentsOverGround
from plumejax.plumes.packets import PacketPlume
from plumejax.plumes.sources import RunAndTumble
from plumejax.plumes.wind import OrnsteinUhlenbeck
from plumejax.search.arena import OpenBox
from plumejax.search.bouts import SniffOrMove
from plumejax.search.composed import Stack
from plumejax.search.endings import GoalDisc
from plumejax.search.environment import PlumeSearch
from plumejax.search.hits import Threshold
from plumejax.search.motion import Moves
from plumejax.search.numbered import Numbered, numbered, numbered_search
from plumejax.search.rewards import StepPenalty
from plumejax.search.sensors import LastAction, LocalConcentration
from plumejax.search.start_in_plume import OnHit
from plumejax.search.start_regions import UniformBox
from plumejax.search.state import Params
from plumejax.search.whiff_states import WhiffStates
from plumejax.search.whiffs import WhiffFeatures

WHIFF = 0.5
"""Odour above this, amount a mm^2, is a whiff; the middle of a newborn packet is 21."""

SNIFF = 0.02
"""The same of `alternation`, whose newborn filament is 1 in its middle."""


def whiff_states(**static: Any) -> tuple[PlumeSearch, Params]:
    """`(env, params)` of the search by olfactory states of Rando et al. 2025: found within 20 mm,
    +1 for that, -0.001 for every other step, 1000 steps of 0.05 s.

    Theirs: the states, 3 x 5 and the void (`WhiffStates`, with their adaptive window of 10 steps at
    the start), and the reward. Ours: the plume, and so the whiff's threshold and the edges of
    intensity: the 25th, 50th, 80th and 99th percentile, as theirs are, of 8000 noses that stand
    still, uniform over 0 to 600 mm downwind and 100 mm to either side.

    The plume is the packets of Kadakia et al. 2022, twice as many, straying half as far. A step of
    it costs a tenth of one of the tracers in a random flow (`TracerPlume`), whose odour would hang
    together in threads, and a third of one of 512 filaments. At x = 100, 300, 500 mm on the axis
    there is odour for 0.69, 0.51, 0.48 of the time.

    A move is 5 mm, two thirds of the wind's way in a step. The start is on a whiff, 250 to 550 mm
    downwind. The walls of the box, 650 x 300 mm, stop the agent.

    Args:
      **static: components, as in `plume_search`; `warmup` and `capacity` of the plume.
    """
    features = WhiffFeatures(LocalConcentration())
    sensor = numbered(
        WhiffStates(features),
        {
            "intensity": [1.15, 1.55, 2.44, 9.41],
            "of.floor": WHIFF,
            "of.of.saturation": 50.0,
        },
    )
    parts = {
        "plume": packets(_own(static)),
        "sensor": sensor,
        "motion": numbered(Moves(), {"step": 5.0}),
        "reward": numbered(StepPenalty(), {"penalty": 0.001}),
        "ending": numbered(GoalDisc(), {"radius": 20.0}),
        "start": numbered(
            OnHit(), {"low": [250.0, -75.0], "high": [550.0, 75.0], "threshold": WHIFF}
        ),
        "arena": numbered(OpenBox(), {"low": [-50.0, -150.0], "high": [600.0, 150.0]}),
    }
    return numbered_search(parts, 1000, static)


def moving_source(**static: Any) -> tuple[PlumeSearch, Params]:
    """`(env, params)` of the search for a source that walks; all of it is ours.

    The source runs at 30 mm/s and turns anew once in 2 s, in a box of 300 x 200 mm at the upwind
    end; it is found within 20 mm of where it is now, in 1000 steps of 0.05 s. Its packets are those
    of `whiff_states`, and so are moves (100 mm/s, in steps of 5 mm) and walls. The observation is
    the concentration, float32[1]; the start is uniform in a box, 100 to 250 mm downwind of the
    source's, where there is odour for 0.29 of the time, 0.20 to 0.35.

    Args:
      **static: components, as in `plume_search`; `warmup` and `capacity` of the plume.
    """
    walk = {"speed": 30.0, "tumble_rate": 0.5, "low": [0.0, -100.0], "high": [300.0, 100.0]}
    numbers = {"source": [150.0, 0.0], **{f"source_motion.{name}": x for name, x in walk.items()}}
    parts = {
        "plume": packets({"source_motion": RunAndTumble(), **_own(static)}, numbers),
        "sensor": numbered(LocalConcentration(), {"saturation": 25.0}),
        "motion": numbered(Moves(), {"step": 5.0}),
        "ending": numbered(GoalDisc(), {"radius": 20.0}),
        "start": numbered(UniformBox(), {"low": [400.0, -75.0], "high": [550.0, 75.0]}),
        "arena": numbered(OpenBox(), {"low": [-50.0, -150.0], "high": [600.0, 150.0]}),
    }
    return numbered_search(parts, 1000, static)


def packets(choices: dict[str, Any], numbers: Any = ()) -> Numbered:
    """Packets in 150 mm/s of wind, 20 a second, that stray by 25 mm/s; one step is 0.05 s.

    Twice as many packets as Kadakia et al. 2022 have, straying half as far. They have blown for 5 s
    at the start, longer than the wind takes from end to end.
    """
    plume = PacketPlume(**{"capacity": 128, "warmup": 100, **choices})
    ours = {"rate": 20.0, "crosswind.speed": 25.0, "dt": 0.05}
    return numbered(plume, {**ours, **dict(numbers)})


def alternation(**static: Any) -> tuple[PlumeSearch, Params]:
    """`(env, params)` of a search with the nose at the ground or, standing, in the air, after
    Rigolli et al. 2022 (eLife 11: e76989): found within 2 m, in 400 steps of 0.5 s.

    Theirs: a move at the ground or a sniff in the air in each step, and that odour in the air gets
    farther than at the ground. The plume and all numbers, the two heights too, are ours.

    The five actions are four moves of 1 m, then the sniff. The observation, float32[6], is whether
    there is odour at the nose, then the last action, one-hot. The nose is at z = 0 or 1 m; the
    source, at 0.3 m, in 1 m/s of wind that swings, lets off filaments that are gone where they come
    to the ground (`FilamentsOverGround`).

    There is odour at the ground and in the air, on the axis, for 0.95 and 0.78 of the time at 2 m,
    0.67 and 0.66 at 4 m, 0.34 and 0.50 at 8 m, and where searches start, uniform in 20 to 30 m
    downwind, 3 m to either side, for 0.05 (0.03 to 0.09) and 0.18 (0.13 to 0.25): there a sniff
    smells odour three times as often as a step at the ground does.

    Args:
      **static: components, as in `plume_search`; `warmup` and `capacity` of the plume.
    """
    motion = SniffOrMove(Moves())
    plume = FilamentsOverGround(
        **{
            "capacity": 512,
            "wind": OrnsteinUhlenbeck(),
            "substeps": 2,
            "warmup": 90,
            **_own(static),
        }
    )
    radius = 0.2
    numbers = {
        "source": [0.0, 0.0, 0.3],
        "wind.velocity": [1.0, 0.0],
        "wind.spread": [0.0, 0.2],
        "radius": radius,
        "growth": 0.0015,
        "diffusivity": 0.02,
        "rate": 12.0,
        "initial": 0,
        # Of 1 in the middle of a newborn filament.
        "amount": (2 * np.pi) ** 1.5 * radius**3,
        "low": [-2.0, -12.5],
        "high": [40.0, 12.5],
        "dt": 0.25,
    }
    sensor = Stack((("odour", Threshold(LocalConcentration())), ("action", LastAction(5))))
    parts = {
        "plume": numbered(plume, numbers),
        "sensor": numbered(sensor, {"odour.low": SNIFF, "odour.high": SNIFF}),
        "motion": numbered(motion, {"low": 0.0, "high": 1.0}),
        "ending": numbered(GoalDisc(), {"radius": 2.0}),
        "start": numbered(UniformBox(), {"low": [20.0, -3.0], "high": [30.0, 3.0]}),
        "arena": numbered(OpenBox(), {"low": [-2.0, -12.5], "high": [40.0, 12.5]}),
    }
    return numbered_search(parts, 400, static)


def _own(static: dict[str, Any]) -> dict[str, Any]:
    """The plume's own choices, taken out of `static`."""
    return {name: static.pop(name) for name in ("capacity", "warmup") if name in static}


for _task in (
    Task(
        "WhiffStates-v0",
        whiff_states,
        "packets of odour, 16 states of how often and how strong whiffs are",
        source="Rando et al. 2025, eLife, article 102906; the plume is plumejax's",
        difficulty="medium",
    ),
    Task(
        "Alternation-v0",
        alternation,
        "move with the nose at the ground, or stand and sniff in the air",
        source="after Rigolli et al. 2022, eLife 11: e76989",
        difficulty="hard",
    ),
    Task(
        "MovingSource-v0",
        moving_source,
        "packets of odour from a source that walks",
        source="plumejax",
        difficulty="hard",
    ),
):
    register(_task)
