"""learning/recipes: how an agent learns each kind of task: on what, with which numbers."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import numpy as np

from plumejax.arms import named_tasks as arms
from plumejax.arms.environment import TwoArm
from plumejax.learning.curricula import curriculum
from plumejax.learning.ppo import Hyperparameters, Shapes
from plumejax.plumes.filaments import FarrellWind, FilamentPlume, TrackingPlume
from plumejax.plumes.tapes import Cassette, make_tape
from plumejax.plumes.wind import SwitchMany
from plumejax.search import rewards
from plumejax.search.beliefs import BeliefAround
from plumejax.search.endings import LeftPlume
from plumejax.search.start_in_plume import PlumeQuantiles
from plumejax.search.tracking import TrackingCode

Told = Callable[[int, int], None]


class Recipe(NamedTuple):
    """How a task is learned.

    Attributes:
      prepare: `prepare(env, params, seed, told) -> (env, params)`: what the training plays, from
        the task as defined; the params may be a `Curriculum`. `told` hears of parts done and all.
      shapes, hyperparameters, steps: where nothing else is said.
      plumes: rolled out for an evaluation and shared by its episodes; 0: each has its own.
    """

    prepare: Callable[[Any, Any, int, Told], tuple[Any, Any]]
    shapes: Shapes = Shapes()
    hyperparameters: Hyperparameters = Hyperparameters()
    steps: int = 1_500_000
    plumes: int = 0


def recipe(env: Any) -> Recipe:
    """That of a task."""
    if isinstance(env, TwoArm):
        return ARMS
    if isinstance(env.sensor, BeliefAround):
        return BELIEF
    if not isinstance(env.ending, LeftPlume):
        return SEARCH
    if isinstance(env.plume, FilamentPlume):
        return FILAMENTS
    return TRACKING if isinstance(env.plume, TrackingPlume) else SEARCH


SEARCH = Recipe(lambda env, params, seed, told: rewards.with_progress_reward(env, params))
"""Searches: paid for progress."""

ARMS = Recipe(lambda env, params, seed, told: arms.with_progress_reward(env, params))
"""Two arms: paid for progress."""


def on_time(env: Any, params: Any, seed: int, told: Told) -> tuple[Any, Any]:
    """A search for which each step that has not found costs the same, cut off after four walks
    along all sides of the grid."""
    reward = rewards.StepPenalty()
    numbers = reward.default_params().replace(goal=np.float32(0.0), penalty=np.float32(0.05))
    limit = np.minimum(params.max_steps, 4 * sum(env.sensor.grid_size)).astype(np.int32)
    return replace(env, reward=reward), params.replace(reward=numbers, max_steps=limit)


BELIEF = Recipe(
    on_time,
    Shapes(
        num_envs=512,
        num_steps=32,
        memory="none",
        hidden=(128, 128),
        floor=1e-4,
    ),
    Hyperparameters(learning_rate=1e-3, gamma=0.998, entropy=0.005),
    6_000_000,
)
"""The belief is all there is to know: no memory, and time is what counts."""


TAPES = 48
"""Plumes rolled out for a training on puffs, and as many again whose puffs grow half as fast."""

SECONDS_MORE = 31.0
"""That a tape is longer than an episode."""

MOST_BYTES = 4e9
"""That the odour of all tapes takes; a device keeps a copy."""

STRIDE = 2
"""Steps from a frame of a tape to the next."""


def on_tapes(
    env: Any,
    params: Any,
    seed: int,
    told: Told,
    floor: float,
    tapes: int = TAPES,
    seconds_more: float = SECONDS_MORE,
) -> tuple[Any, Any]:
    """Plume tracking on tapes, which tell concentrations from `floor` on, among easier and harder
    relatives of the task.

    Of the tapes a quarter blow in a wind that does not turn, every second of these with 40 % of the
    puffs. In a second set puffs grow half as fast; it comes in after a quarter of the training, and
    half of the episodes play it from the middle on. Episodes start all along the plume, as far as
    the source can be reached. Of long episodes there are fewer tapes, as many as `MOST_BYTES` hold.
    """
    plume, numbers = env.plume, params.plume
    steps, dt = int(params.max_steps), float(params.dt)
    tracking = isinstance(plume, TrackingPlume)
    low, high = _region(plume, numbers)
    cassette = Cassette(
        num_frames=(steps + round(seconds_more / dt)) // STRIDE,
        every=STRIDE,
        warmup=plume.warmup // STRIDE,
        low=low,
        high=high,
        cell=0.05 if tracking else 0.1,
        wind_cell=1.0 if isinstance(plume.wind, FarrellWind) else None,
        smallest=floor,
        peak=1e4 * floor,
    )
    tape_bytes = cassette.num_frames * float(np.prod(cassette.grid(cassette.cell).size))
    tapes = max(1, min(tapes, int(MOST_BYTES / (2 * tape_bytes))))
    variants = _relatives(plume, numbers, tapes)
    slow = [each.replace(growth=each.growth * np.float32(0.5)) for each in variants]
    fresh = replace(plume, warmup=0)
    key = jax.random.fold_in(jax.random.key(seed), 2**31 - 2)
    tape, rolled = make_tape(fresh, [*variants, *slow], key, cassette, margin=steps, progress=told)
    start = PlumeQuantiles()
    params = params.replace(
        plume=rolled,
        start=start.default_params().replace(
            lowest=np.float32(5.0), highest=_farthest(env, params)
        ),
    )
    first, then = np.repeat([1.0, 0.0], tapes), np.ones(2 * tapes)
    stages = {"plume.shares": np.stack([first, then])}
    return replace(env, plume=tape, start=start), curriculum(params, [0.25, 0.5], stages)


def _region(plume: Any, params: Any) -> tuple[tuple[float, float], tuple[float, float]]:
    """Where the odour is looked up: the plume's region, as far as an agent can make use of it."""
    low, high = np.asarray(params.low, float), np.asarray(params.high, float)
    source = np.asarray(params.source, float)[:2]
    low = np.maximum(low, source - np.asarray([2.0, 7.0]))
    high = np.minimum(high, source + np.asarray([20.0, 7.0]))
    return tuple(low.tolist()), tuple(high.tolist())


def _farthest(env: Any, params: Any) -> np.float32:
    """Per cent of the puffs along x, from whose places the source can be reached in time."""
    wind = np.asarray(env.plume.wind.mean(params.plume.wind))
    speed = float(params.motion.max_speed - params.motion.drift * np.hypot(*wind))
    reach = speed * float(params.max_steps) * float(params.dt)
    way = float(params.plume.high[0] - params.plume.source[0])
    return np.float32(np.clip(100 * reach / way, 10.0, 97.0))


def _floor(params: Any) -> float:
    """The concentration that counts as off the plume, where the coding of a tape begins: the code's
    threshold, which the paper's reward has no number for."""
    threshold = getattr(params.reward, "threshold", TrackingCode().default_params().threshold)
    return float(threshold)


def _relatives(plume: Any, params: Any, count: int) -> list[Any]:
    """The numbers of `count` plumes: the task's own, but that every fourth blows in a wind that
    does not turn, and every second of these has 40 % of the puffs."""
    steady, thin = params, params
    wind = params.wind
    if isinstance(plume.wind, SwitchMany):
        steady = params.replace(wind=wind.replace(spread=np.float32(0.0)))
    elif isinstance(plume.wind, FarrellWind):
        steady = params.replace(wind=wind.replace(gain=np.float32(0.0)))
    thin = steady.replace(rate=np.float32(0.4 * steady.rate))
    return [(params, (steady, thin)[(i // 4) % 2])[i % 4 == 0] for i in range(count)]


PAID = 0.05
"""Of the published reward, whose 101 is more than a value learns well."""


def tracking(env: Any, params: Any, seed: int, told: Told, **sizes: Any) -> tuple[Any, Any]:
    """`on_tapes`, paid by the published code's reward times `PAID`."""
    reward = TrackingCode()
    own = params.reward if isinstance(env.reward, TrackingCode) else reward.default_params()
    paid = ("found", "step", "off_plume", "per_metre", "lost")
    own = own.replace(**{name: np.float32(getattr(own, name) * PAID) for name in paid})
    floor = _floor(params)
    env, params = replace(env, reward=reward), params.replace(reward=own)
    return on_tapes(env, params, seed, told, floor, **sizes)


TRACKING = Recipe(
    tracking,
    Shapes(
        num_envs=256,
        num_steps=128,
        num_minibatches=4,
        num_epochs=2,
        memory="gru",
        floor=1e-5,
    ),
    Hyperparameters(learning_rate=1e-3, gamma=0.995, entropy=0.02),
    20_000_000,
    plumes=16,
)
"""Plumes of puffs to be tracked: on tapes, with a recurrent network."""


def filaments(env: Any, params: Any, seed: int, told: Told, **sizes: Any) -> tuple[Any, Any]:
    """`on_tapes`, paid for coming nearer wherever that is.

    The published reward takes more for a search between whiffs than for getting lost beside the
    source, and pays nothing for coming nearer there: by it nobody learns to search.
    """
    reward = rewards.Progress()
    own = reward.default_params().replace(
        goal=np.float32(5.0), penalty=np.float32(0.002), per_cell=np.float32(0.25)
    )
    floor = _floor(params)
    env, params = replace(env, reward=reward), params.replace(reward=own)
    return on_tapes(env, params, seed, told, floor, **sizes)


FILAMENTS = TRACKING._replace(prepare=filaments)
"""Filaments to be tracked: where whiffs are rare."""
