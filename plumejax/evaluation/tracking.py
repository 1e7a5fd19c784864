"""evaluation/tracking: the published test of plume trackers: 240 fixed starts, exact sensing.

Singh, van Breugel, Rao, Brunton 2023 (Nature Machine Intelligence 5: 58): three distances, two
moments of the plume, five places across it, eight headings.
"""

from itertools import product
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from plumejax.base.compiling import jit_by_class
from plumejax.base.errors import require
from plumejax.base.registry import make
from plumejax.evaluation.episodes import Outcomes, play, require_plays
from plumejax.plumes import catalogue
from plumejax.plumes.bank import Bank, BankParams, roll, starts_within
from plumejax.search.listed_starts import Listed

VARIANTS = {
    "constant": "Constant",
    "sparse": "Sparse",
    "switch-once": "SwitchOnce",
    "switch-many": "SwitchMany",
}
"""The published conditions, and what the tasks call them."""

DISTANCES = (4.0, 6.0, 8.0)
HEADINGS = tuple(float(h) for h in np.arange(8) * 45.0)
STEPS_A_SECOND = 25


class Exam(NamedTuple):
    """The task on one plume that has been rolled out, and its starts.

    Attributes:
      env, params: of a `Bank` of one plume and `Listed` starts.
      puffs_in_reach: whether there were puffs within half a metre at each distance and moment, as
        bool[6]; where there were none, the five places are those of the last before it that had.
    """

    env: Any
    params: Any
    puffs_in_reach: np.ndarray


def exam(variant: str, key: jax.Array, *, edition: str = "Code", diffusion: float = 1.0) -> Exam:
    """The published test on the plume of `key` (typed, consumed).

    Args:
      variant: one of `VARIANTS`.
      key: of the plume; another key is another wind, where the wind is drawn.
      edition: "Code" or "Paper".
      diffusion: by which the growth of the puffs is multiplied; published are 1 and 0.5.
    """
    require(variant in VARIANTS, "variant", variant, f"one of {', '.join(VARIANTS)}")
    require(edition in ("Code", "Paper"), "edition", edition, "Code or Paper")
    require(0 <= diffusion < float("inf"), "diffusion", diffusion, "finite and >= 0")
    suffix = "" if variant == "constant" else f"-{variant}"
    plume, numbers = catalogue.make(f"tracking-{edition.lower()}{suffix}")
    # The sparse preset halves the growth already; here that is a choice of its own.
    growth = plume.default_params().growth * np.float32(diffusion)
    numbers = numbers.replace(growth=growth)
    first = 58 if variant == "switch-once" else 60
    task = f"PlumeTracking-{edition}-{VARIANTS[variant]}-v0"
    steps = int(make(task)[1].max_steps)
    count = STEPS_A_SECOND + steps + 1
    states = roll(plume, numbers, key, 1, count, 1, first * STEPS_A_SECOND)
    bank = Bank(plume, 1, count, ends="clamp")
    puffs = jax.device_get(states.particles)
    starts, reached = [], []
    places = np.zeros(5)
    for frame, x in product((0, STEPS_A_SECOND), DISTANCES):
        across, any_near = _across(puffs, frame, x, variant == "constant")
        places = across if any_near else places
        reached.append(any_near)
        starts += [(frame, x, y, heading) for y, heading in product(places, HEADINGS)]
    listed = Listed(len(starts))
    env, params = make(task, plume=bank, start=listed)
    frames, x, y, headings = np.asarray(starts, np.float32).T
    return Exam(
        env,
        params.replace(
            plume=BankParams(
                frames=states,
                plume=numbers,
                start_frames=starts_within(count, steps),
                axis=np.float32(0.0),
                keep=np.float32(1.0),
            ),
            start=listed.default_params().replace(
                frames=frames.astype(np.int32),
                positions=np.stack([x, y], axis=1),
                headings=headings,
            ),
        ),
        np.asarray(reached),
    )


def _across(puffs: Any, frame: int, x: float, constant: bool) -> tuple[np.ndarray, bool]:
    """Five y from the least to the greatest of the puffs within half a metre of x; of a constant
    wind those two, the middle, and half a metre outside either."""
    position, alive = puffs.position[frame], puffs.alive[frame]
    near = alive & (np.abs(position[0] - x) < 0.5)
    if not near.any():
        return np.zeros(5), False
    low, high = position[1, near].min(), position[1, near].max()
    if constant:
        return np.asarray([low - 0.5, low, (low + high) / 2, high, high + 0.5]), True
    return np.linspace(low, high, 5), True


@jit_by_class(static=("env", "count"))
def _sit(env: Any, policy: Any, key: jax.Array, params: Any, count: int) -> Outcomes:
    def one(which: jax.Array) -> Outcomes:
        own = params.replace(start=params.start.replace(which=which))
        outcome = play(env, policy, jax.random.fold_in(key, which), own, 1)
        return jax.tree.map(lambda x: x[0], outcome)

    return jax.vmap(one)(jnp.arange(count, dtype=jnp.int32))


def sit(policy: Any, exam: Exam, key: jax.Array) -> Outcomes:
    """`Outcomes` of the policy from each of the 240 starts, NumPy arrays; `key` is its own.

    Raises `ValidationError` for a policy that sees or does other things than this task's.
    """
    require_plays(policy, exam.env, exam.params)
    outcomes = _sit(exam.env, policy, key, jax.device_put(exam.params), exam.env.start.count)
    return jax.device_get(outcomes)
