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
"""Plumes rolled out for a training on puffs, and as many again of others."""

MOST_BYTES = 4e9
"""That the odour of all tapes takes; a device keeps a copy."""

STRIDE = 2
"""Steps from a frame of a tape to the next."""

SIDE = 7.0
"""How far to either side of the source a tape reaches, in lengths of the plume."""


def on_tapes(
    env: Any, params: Any, plumes: list[Any], cassette: Cassette, seed: int, told: Told
) -> tuple[Any, Any]:
    """A plume task on a tape of each of the numbers `plumes`; starts are all along the plume."""
    fresh, steps = replace(env.plume, warmup=0), int(params.max_steps)
    key = jax.random.fold_in(jax.random.key(seed), 2**31 - 2)
    tape, rolled = make_tape(fresh, plumes, key, cassette, margin=steps, progress=told)
    start = PlumeQuantiles()
    params = params.replace(plume=rolled, start=start.default_params())
    return replace(env, plume=tape, start=start), params


def _cassette(
    env: Any, params: Any, seconds_more: float, warmup: float, downwind: float, cell: float
) -> Cassette:
    """Tapes `seconds_more` longer than an episode, after `warmup` seconds, of the region as far
    as `downwind` lengths from the source."""
    plume, numbers, dt = env.plume, params.plume, float(params.dt)
    low, high = np.asarray(numbers.low, float), np.asarray(numbers.high, float)
    source = np.asarray(numbers.source, float)[:2]
    low = np.maximum(low, source - np.asarray([2.0, SIDE]))
    high = np.minimum(high, source + np.asarray([downwind, SIDE]))
    floor = _floor(params)
    return Cassette(
        num_frames=(int(params.max_steps) + round(seconds_more / dt)) // STRIDE,
        every=STRIDE,
        warmup=round(warmup / dt) // STRIDE,
        low=tuple(low.tolist()),
        high=tuple(high.tolist()),
        cell=cell,
        wind_cell=1.0 if isinstance(plume.wind, FarrellWind) else None,
        smallest=floor,
        peak=1e4 * floor,
    )


def _fitting(tapes: int, cassette: Cassette) -> int:
    """As many pairs of tapes, up to `tapes`, as `MOST_BYTES` hold."""
    each = cassette.num_frames * float(np.prod(cassette.grid(cassette.cell).size))
    return max(1, min(tapes, int(MOST_BYTES / (2 * each))))


def _reached(env: Any, params: Any, part: float) -> float:
    """How far from the source, upwind all the way, an agent can start that is to be there in a part
    of the time; in lengths of the plume."""
    wind = np.asarray(env.plume.wind.mean(params.plume.wind))
    speed = float(params.motion.max_speed - params.motion.drift * np.hypot(*wind))
    return speed * part * float(params.max_steps) * float(params.dt)


def _percent(params: Any, distance: float) -> float:
    """Per cent of the puffs along x that are as near to the source."""
    way = float(params.plume.high[0] - params.plume.source[0])
    return 100 * distance / way


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


def tracking(
    env: Any, params: Any, seed: int, told: Told, tapes: int = TAPES, seconds_more: float = 31.0
) -> tuple[Any, Any]:
    """Plume tracking on tapes, among easier and harder relatives of the task.

    Of the tapes a quarter blow in a wind that does not turn, every second of these with 40 % of the
    puffs. In a second set puffs grow half as fast; it comes in after a quarter of the training, and
    half of the episodes play it from the middle on. Episodes start all along the plume, as far as
    the source can be reached. Of long episodes there are fewer tapes. The reward is the published
    code's, times `PAID`.
    """
    dt = float(params.dt)
    cassette = _cassette(env, params, seconds_more, env.plume.warmup * dt, 20.0, 0.05)
    tapes = _fitting(tapes, cassette)
    plumes = _relatives(env.plume, params.plume, tapes)
    plumes += [each.replace(growth=each.growth * np.float32(0.5)) for each in plumes]
    highest = np.clip(_percent(params, _reached(env, params, 1.0)), 10.0, 97.0)
    reward = TrackingCode()
    own = params.reward if isinstance(env.reward, TrackingCode) else reward.default_params()
    paid = ("found", "step", "off_plume", "per_metre", "lost")
    own = own.replace(**{name: np.float32(getattr(own, name) * PAID) for name in paid})
    env, params = on_tapes(env, params, plumes, cassette, seed, told)
    start = params.start.replace(lowest=np.float32(5.0), highest=np.float32(highest))
    env, params = replace(env, reward=reward), params.replace(reward=own, start=start)
    first, then = np.repeat([1.0, 0.0], tapes), np.ones(2 * tapes)
    return env, curriculum(params, [0.25, 0.5], {"plume.shares": np.stack([first, then])})


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


def filaments(
    env: Any, params: Any, seed: int, told: Told, tapes: int = 2 * TAPES, seconds_more: float = 12.0
) -> tuple[Any, Any]:
    """Filaments to be tracked: on tapes, all of which but a quarter blow in winds of their own,
    paid for coming nearer wherever that is.

    The published reward takes more for a search between whiffs than for getting lost beside the
    source, and pays nothing for coming nearer there: a search is not worth its while. Starts are
    where the source can be reached in a third of the time, and up to a metre beside the puffs.
    """
    far = _reached(env, params, 0.3)
    cassette = _cassette(env, params, seconds_more, 30.0, 3.0 * far, 0.1)
    plumes = _relatives(env.plume, params.plume, 2 * _fitting(tapes, cassette))
    highest = np.clip(_percent(params, far), 4.0, 97.0)
    env, params = on_tapes(env, params, plumes, cassette, seed, told)
    start = params.start.replace(
        lowest=np.float32(2.0), highest=np.float32(highest), scatter=np.float32(1.0)
    )
    reward = rewards.Progress()
    own = reward.default_params().replace(
        goal=np.float32(3.0), penalty=np.float32(0.002), per_cell=np.float32(2.0)
    )
    return replace(env, reward=reward), params.replace(reward=own, start=start)


FILAMENTS = TRACKING._replace(
    prepare=filaments,
    shapes=replace(TRACKING.shapes, num_envs=512, num_steps=64),
    hyperparameters=Hyperparameters(
        learning_rate=1e-3, gamma=0.99, gae_lambda=0.98, entropy=0.006, ahead=0.0
    ),
)
"""Filaments to be tracked: whiffs are rare, time is short, and beyond it nothing counts."""
