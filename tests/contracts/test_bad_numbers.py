"""tests/contracts/test_bad_numbers: no bad number gets into an episode, in any named task.

Nothing here compiles: numbers are refused on the host.
"""

import re

import numpy as np
import pytest

import plumejax
from plumejax.base import paths
from plumejax.base.errors import ComponentError, ValidationError
from plumejax.base.randomised import IntegerRange, LogUniform, Normal, Uniform
from plumejax.plumes.bank import Bank
from plumejax.plumes.filaments import TrackingPlume
from plumejax.plumes.gaussian import GaussianPlume
from plumejax.plumes.sources import Drift
from plumejax.search import starts
from plumejax.search.arena import OpenBox
from plumejax.search.bouts import Declare
from plumejax.search.composed import Stack
from plumejax.search.drawn_source import DrawnSource
from plumejax.search.endings import AnyOf, GoalDisc, Never
from plumejax.search.filters import LowPass
from plumejax.search.motion import Moves
from plumejax.search.sensors import LocalConcentration
from plumejax.search.start_in_plume import OnHit, PlumeQuantiles
from plumejax.search.start_regions import DownwindCone, Ring, UniformBox
from plumejax.search.starts import Fixed, FixedList

INFINITE: dict[str, str] = {}
"""Numbers that may be infinite, by path, and why: none may."""


@pytest.fixture(scope="module")
def make(recorded_choices):
    """`make(id, overrides)`; what needs data gets a made-up recording."""
    choices, near = recorded_choices

    def make(task_id, overrides=None):
        if plumejax.registered_tasks()[task_id].needs:
            return plumejax.make(task_id, overrides={**near, **(overrides or {})}, **choices)
        return plumejax.make(task_id, overrides=overrides)

    return make


@pytest.fixture(
    scope="module", params=["one of a kind", pytest.param("all", marks=pytest.mark.slow)]
)
def numbers(recorded_choices, request):
    """`(id, env, params, path, number)`: every number of every task, or the first of each component
    and path."""
    found, seen = [], set()
    for task_id, task in plumejax.registered_tasks().items():
        env, params = task.factory(**(recorded_choices[0] if task.needs else {}))
        for path, number in paths.leaves(params).items():
            kind = path, getattr(env, path.split(".")[0], None)
            if request.param == "all" or kind not in seen:
                found.append((task_id, env, params, path, np.asarray(number)))
            seen.add(kind)
    return found


def refusal(refuses, *arguments):
    """The message with which `refuses(*arguments)` raises `ValidationError`."""
    with pytest.raises(ValidationError) as caught:
        refuses(*arguments)
    return str(caught.value)


def with_one(number, bad):
    """The number with `bad` in its last place."""
    array = np.array(number)
    array[(-1,) * array.ndim] = bad
    return array


def test_what_is_not_finite_is_refused(make, numbers):
    for task_id, env, params, path, number in numbers:
        if number.dtype.kind != "f" or not number.size or path in INFINITE:
            continue
        for bad in (np.nan, np.inf, -np.inf):
            given = with_one(number, bad)
            for message in (
                refusal(make, task_id, {path: given}),
                refusal(env.validate, paths.replace(params, path, given)),
            ):
                assert re.search(rf"{re.escape(path)} = \[?{bad}\]? .* finite", message), message


def test_another_shape_is_refused(make, numbers):
    for task_id, env, params, path, number in numbers:
        given = np.stack([number] * 3, axis=-1)
        assert path in refusal(make, task_id, {path: given})
        if given.shape[1:] != number.shape:  # else it is a sweep
            message = refusal(env.validate, paths.replace(params, path, given))
            assert f"{path}.shape = {given.shape}" in message
            assert str(number.shape) in message


def test_another_dtype_is_refused(make, numbers):
    for task_id, env, params, path, number in numbers:
        fraction = number + np.float32(0.5) if number.dtype.kind in "iu" else "wide"
        for bad in (None, fraction, number.astype(np.float32) if number.dtype == bool else "1"):
            assert path in refusal(make, task_id, {path: bad})
            assert path in refusal(env.validate, paths.replace(params, path, bad))


def test_numbers_of_another_task_are_refused(local):
    env, params = local
    other = plumejax.registered_tasks()["PlumeTracking-Paper-Constant-v0"].factory()[1]
    message = refusal(env.validate, other)
    assert re.search("not known .*plume.wind.velocity.* missing .*plume.sigma", message)
    assert "not known plume.sigmma" in refusal(
        env.validate, params.replace(plume={**vars(params.plume), "sigmma": 1.0})
    )


LOCAL, CODE, PAPER = (
    "PlumeSearchLocal-v0",
    "PlumeTracking-Code-Constant-v0",
    "PlumeTracking-Paper-Constant-v0",
)
HITS, WINDY = "Olfactory-Isotropic-19x19-v0", "Olfactory-Windy-Medium-v0"


def make_with(task_id, overrides, static):
    """`plumejax.make`, for `refusal`."""
    return plumejax.make(task_id, overrides=overrides, **static)


@pytest.mark.parametrize(
    ("task_id", "path", "value", "allowed"),
    [
        # an episode
        (LOCAL, "max_steps", 0, "> 0"),
        (LOCAL, "max_steps", -5, "> 0"),
        (LOCAL, "dt", 0.0, "> 0 s"),
        (CODE, "dt", 0.05, "which one advance of the plume takes"),
        # endings
        (LOCAL, "ending.radius", 0.0, "> 0 cells"),
        (LOCAL, "ending.radius", -5.0, "> 0 cells"),
        (CODE, "ending.radius", -0.2, "> 0 m"),
        (CODE, "ending.limit", 0.0, "> 0 m"),
        # plumes
        (LOCAL, "plume.sigma", 0.0, ">= 1e-6"),
        (LOCAL, "plume.sigma", -12.0, ">= 1e-6"),
        (LOCAL, "plume.source", (128, 5), r"inside the grid \(128, 128\)"),
        (LOCAL, "plume.source", (5, -1), r"inside the grid \(128, 128\)"),
        (HITS, "plume.source", (19, 0), r"inside the grid \(19, 19\)"),
        (HITS, "plume.law.rate", -1.0, ">= 0"),
        (HITS, "plume.law.wavelength", 0.5, ">= 1 cell"),
        (WINDY, "plume.law.lifetime", 0.0, "> 0"),
        (CODE, "plume.source", (-3, 0), r"in the box plume.low..plume.high, .*-2"),
        (CODE, "plume.radius", 0.0, "> 0"),
        (CODE, "plume.rate", -1.0, ">= 0"),
        (CODE, "plume.keep", 1.1, r"in \[0, 1\]"),
        (CODE, "plume.low", (11, 0), "below plume.high"),
        (CODE, "plume.diffusivity", -0.1, ">= 0"),
        (PAPER, "plume.rate", 0.0, "> 0, as starts are at puffs"),
        (PAPER, "plume.keep", 0.0, "> 0, as starts are at puffs"),
        ("PlumeTracking-Code-SwitchOnce-v0", "plume.wind.time", -1.0, ">= 0"),
        ("PlumeTracking-Code-SwitchMany-v0", "plume.wind.interval", 0.0, "> 0"),
        ("PlumeTracking-Code-SwitchMany-v0", "plume.wind.jitter", 1.0, r"in \[0, 1\)"),
        ("PlumeTracking-Farrell-v0", "plume.wind.low", (200, 0), "below plume.wind.high"),
        # sensors
        (LOCAL, "sensor.saturation", -1.0, "> 0"),
        (LOCAL, "sensor.saturation", 0.0, "> 0"),
        (CODE, "sensor.odour.saturation", -1.0, "> 0"),
        (CODE, "sensor.wind.tau", -1.0, ">= 0"),
        ("PlumeTracking-Farrell-v0", "sensor.odour.floor", 0.0, "> 0"),
        ("PlumeSearchLocal-Medium-v0", "sensor.probability", 1.5, r"in \[0, 1\]"),
        ("PlumeSearchLocal-Medium-v0", "sensor.probability", -0.1, r"in \[0, 1\]"),
        ("PlumeSearchLocal-Medium-v0", "sensor.of.saturation", 0.0, "> 0"),
        (HITS, "sensor.place.low", (18, 0), "below sensor.place.high"),
        ("PlumeSearch-FullyObserved-v0", "sensor.reach", 0.0, "> 0"),
        # motions and rewards
        (LOCAL, "motion.step", 1.5, "whole number of cells > 0"),
        (LOCAL, "motion.step", 0.0, "whole number of cells > 0"),
        (CODE, "motion.max_speed", 0.0, "> 0"),
        (CODE, "motion.drift", 1.5, r"in \[0, 1\]"),
        (CODE, "reward.step", -1.0, ">= 0"),
        ("PlumeSearchLocalStepPenalty-v0", "reward.penalty", -0.01, ">= 0"),
        # starts and arenas
        (LOCAL, "start.min_distance", -1.0, ">= 0"),
        (LOCAL, "start.heading", 360.0, r"in \[0, 360\)"),
        (HITS, "start.position", (19, 0), "a cell of the grid"),
        (WINDY, "start.counts", (0.5,), "a sum of 1"),
        (CODE, "start.low", (3.5, 0), "not above start.high"),
        (PAPER, "start.lowest", 81.0, "<= start.highest"),
        (PAPER, "start.scatter", -1.0, ">= 0"),
        (CODE, "arena.low", (15, 0), "arena.low"),
        # randomised numbers
        (LOCAL, "plume.sigma", Uniform(12.0, 4.0), r"<= plume.sigma.high = 4"),
        (LOCAL, "plume.sigma", Uniform(0.0, 4.0), ">= 1e-6"),
        (LOCAL, "plume.sigma", Uniform(1.0, np.inf), "finite"),
        (LOCAL, "plume.sigma", LogUniform(0.0, 4.0), "> 0"),
        (LOCAL, "plume.sigma", Normal(4.0, -1.0, 1.0, 9.0), "finite and >= 0"),
        (LOCAL, "plume.sigma", Normal(4.0, np.inf, 1.0, 9.0), "finite and >= 0"),
        (LOCAL, "plume.sigma", Normal(4.0, 1.0, 9.0, 1.0), "<= plume.sigma.high"),
        (LOCAL, "max_steps", IntegerRange(0, 9), "> 0"),
        (LOCAL, "max_steps", Uniform(1.0, 9.0), "cannot draw a number of dtype int32"),
        (LOCAL, "plume.source", Uniform((0, 0), (128, 9)), "inside the grid"),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused(task_id, path, value, allowed):
    message = refusal(make_with, task_id, {path: value}, {})
    assert path in message
    assert re.search(allowed, message), message


BANK = Bank(TrackingPlume(capacity=8), 1, 2)


@pytest.mark.parametrize(
    ("task_id", "static", "overrides", "allowed"),
    [
        # a region from which no episode can start
        (LOCAL, {}, {"start.min_distance": 200.0}, "no cell is left to start from"),
        (LOCAL, {}, {"ending.radius": 200.0}, "no cell is left to start from"),
        (LOCAL, {"arena": OpenBox()}, {}, r"^start = Uniform\(\) .* for grids"),
        (LOCAL, {"start": Fixed()}, {"start.position": (128, 0)}, "^start.position = .* stand"),
        (
            LOCAL,
            {"start": FixedList(2)},
            {"start.positions": ((0, 0), (0, 128))},
            r"^start.positions = \[\[0.0, 128.0\]\] .* stand",
        ),
        (CODE, {}, {"start.low": (30, 0), "start.high": (31, 1)}, "start.low = .30.0, 0.0.*arena"),
        (CODE, {}, {"ending.radius": 9.0}, "none of 4096 places .* ending.radius"),
        (
            CODE,
            {"start": Ring()},
            {"start.nearest": 90, "start.farthest": 91},
            "nearest = 90",
        ),
        (
            CODE,
            {"start": DownwindCone()},
            {"start.nearest": 16, "start.farthest": 17, "start.half_angle": 10},
            "start.half_angle = 10",
        ),
        (
            CODE,
            {"start": OnHit()},
            {"start.low": (20, 0), "start.high": (21, 1)},
            "low = .20",
        ),
        (PAPER, {}, {"ending.radius": 90.0}, "none of 4096 places of PlumeQuantiles"),
        (PAPER, {}, {"arena.low": (12, 6), "arena.high": (13, 7)}, "arena lets an agent stand"),
        (
            CODE,
            {"plume": BANK, "start": UniformBox()},
            {"start.low": (30, 0), "start.high": (31, 1)},
            "start.low = .30.0, 0.0.*arena",
        ),
        # a source that cannot be there, or be reached
        (CODE, {}, {"arena.low": (1, -5)}, "^plume.source = .* within ending.radius, 0.2"),
        (
            LOCAL,
            {"start": DrawnSource(starts.Uniform())},
            {"start.low": (-1, 0)},
            "^start.low: as a place of the source, plume.source = .* inside the grid",
        ),
        (
            LOCAL,
            {"start": DrawnSource(starts.Uniform())},
            {"start.of.min_distance": 200.0},
            "no cell is left",
        ),
        (
            LOCAL,
            {"plume": GaussianPlume(source_motion=Drift())},
            {"plume.source_motion.low": (70, 0)},
            "^plume.source = .* within plume.source_motion.low",
        ),
        # what a part refuses has its whole path
        (CODE, {"plume": BANK}, {"plume.plume.radius": 0.0}, "^plume.plume.radius = 0.0"),
        (
            LOCAL,
            {"sensor": Stack((("slow", LowPass(LocalConcentration())),))},
            {"sensor.slow.tau": -1.0},
            "^sensor.slow.tau = -1.0",
        ),
        (
            LOCAL,
            {"sensor": Stack((("slow", LowPass(LocalConcentration())),))},
            {"sensor.slow.of.saturation": 0.0},
            "^sensor.slow.of.saturation = 0.0",
        ),
        (LOCAL, {"motion": Declare(Moves())}, {"motion.of.step": 0.5}, "^motion.of.step = 0.5"),
        (
            LOCAL,
            {"ending": AnyOf((("goal", GoalDisc()), ("limit", Never())))},
            {"ending.goal.radius": 0.0},
            "^ending.goal.radius = 0.0",
        ),
    ],
    ids=str,
)
def test_what_does_not_fit_together_is_refused(task_id, static, overrides, allowed):
    message = refusal(make_with, task_id, overrides, static)
    assert re.search(allowed, message), message


def test_a_start_at_puffs_is_refused_where_there_are_none():
    with pytest.raises(ComponentError, match=r"start = PlumeQuantiles.* asks the plume for puffs"):
        plumejax.make(LOCAL, start=PlumeQuantiles())
