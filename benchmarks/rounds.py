"""benchmarks/rounds: which cases are measured against each other, whole and quick."""

from typing import NamedTuple

from benchmarks import ours, peers, policies, trainers
from benchmarks.measure import Case

BATCHES = (1, 64, 1024, 4096, 16384)
SIDES = (16, 32, 64, 128, 256)
FILAMENTS = (1, 10, 100, 1000, 10000)


class Round(NamedTuple):
    """Cases timed in turns: how many samples of each, of how many seconds at least."""

    cases: list[Case]
    repeats: int
    seconds: float


def whole() -> list[Round]:
    """Everything. What a ratio compares is in one round."""
    by_randint = [ours.local_by_randint(4096), peers.cartpole_by_randint(4096)]
    rounds = [Round([*_compared(), *by_randint], 7, 0.4), Round(_trainers(), 7, 0.5)]
    rounds += [Round(_batch(lanes), 5, 0.3) for lanes in BATCHES]
    rounds += [
        Round([ours.vector(16), peers.pompy(), peers.olfactory_navigation()], 5, 0.3),
        Round([ours.local_by_cells(side) for side in SIDES], 5, 0.3),
        Round([ours.full_by_cells(side) for side in SIDES], 5, 0.3),
        Round([ours.recorded_by_filaments(n) for n in FILAMENTS], 5, 0.3),
        *(Round([case], 5, 0.3) for case in policies.cases()),
        Round(_arms(), 5, 0.3),
    ]
    return rounds


def quick() -> list[Round]:
    """What the targets compare but for training, in less than a minute on two cores."""
    return [Round(_compared(), 3, 0.15), Round([*policies.promised(), *_arms()], 3, 0.15)]


def _arms() -> list[Case]:
    return [ours.two_arm("flat", 1024), ours.two_arm("pictures", 256)]


def _compared() -> list[Case]:
    """What the ratios are made of, but for the trainers."""
    return [
        ours.local(4096),
        ours.arithmetic(4096),
        peers.cartpole(4096),
        peers.plume_nav_sim(),
        ours.single(),
        ours.vector(1024),
        peers.plume_nav_sim_vector(16),
    ]


def _trainers() -> list[Case]:
    return [
        trainers.ours(stack=1),
        trainers.purejaxrl_style(normalise=True),
        trainers.ours(stack=4),
        trainers.purejaxrl_style(normalise=False),
    ]


def _batch(lanes: int) -> list[Case]:
    everyone = [
        ours.local(lanes),
        ours.arithmetic(lanes),
        peers.cartpole(lanes),
        ours.full_field(lanes),
        ours.recorded(lanes),
        peers.navix(lanes),
    ]
    compared = {case.key for case in _compared()}
    return [case for case in everyone if case.key not in compared]
