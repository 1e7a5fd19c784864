"""cli/replay: `plumejax record` and `plumejax replay`, an episode in a file."""

from pathlib import Path
from typing import Any

import numpy as np
import tyro
from rich.console import Console

from plumejax.adapters.captures import replay_captured
from plumejax.base.errors import require
from plumejax.base.tables import is_table, read_episode
from plumejax.evaluation.captures import read_captured
from plumejax.evaluation.replays import Difference, load_episode, record, replay, save_episode
from plumejax.evaluation.trials import Trial, parse_arguments
from plumejax.learning.runs import parse_settings


def record_episode(
    task: tyro.conf.Positional[str],
    *,
    policy: str,
    out: Path,
    number: int = 0,
    policy_args: tuple[str, ...] = (),
    seed: int = 0,
    set: tuple[str, ...] = (),
    plumes: int = 0,
    data: Path | None = None,
) -> int:
    """Play one episode and keep it: its task, numbers, keys, actions and every state.

    It is the episode that `plumejax evaluate` with the same options plays as that number.

    Args:
        task: its id.
        policy: its name, a run directory, or the file of an agent or a learned table (*.npz).
        out: the file, *.npz.
        number: of the episode.
        policy_args: numbers of the policy, as in --policy-args gamma=0.9.
        seed: of the episodes.
        set: numbers of the task, as in --set plume.sigma=8.
        plumes: realisations of a changing plume, of which it has one.
        data: a recording, for a task that plays one.
    """
    require(out.suffix == ".npz", "--out", str(out), "a name that ends in .npz")
    require(0 <= seed < 2**31, "--seed", seed, "0 <= seed < 2**31")
    trial = Trial(
        task=task,
        policy=policy,
        seed=seed,
        arguments=parse_arguments(policy_args, "--policy-args"),
        overrides=parse_settings(set),
        static={} if data is None else {"data": str(data)},
        plumes=plumes,
    )
    episode = record(trial, number)
    save_episode(out, episode)
    steps = len(episode.actions)
    Console().print(f"{out}: episode {number}, {steps} steps", highlight=False, soft_wrap=True)
    return 0


def replay_episode(
    file: tyro.conf.Positional[Path], *, number: int | None = None, rtol: float = 1e-5
) -> int:
    """Play a recorded episode again and say whether it comes to the same states, or else where it
    parts; the exit code is then 1.

    Args:
        file: what `plumejax record` wrote, or a table *.parquet of `--capture`.
        number: of an episode in a table; by default 0.
        rtol: by which floats may differ, of the largest of their kind.
    """
    require(0 <= rtol < 1, "--rtol", rtol, "0 <= rtol < 1")
    require(number is None or is_table(file), "--number", number, "left out: it has one episode")
    console = Console()
    steps, found, about = _compared(file, number or 0, rtol)
    if found is None:
        told = f"{file}: {steps} steps come to the same states"
        console.print(told, highlight=False, soft_wrap=True)
        return 0
    was, now = (np.ravel(x) for x in (found.recorded, found.now))
    if was.shape == now.shape:
        farthest = np.argmax(np.abs(was.astype(float) - now.astype(float)))
        was, now = was[farthest], now[farthest]
    console.print(
        f"{file}: parts after step {found.step} of {steps}, in {found.name}:"
        f" recorded {was}, now {now}; recorded with {about['versions']}",
        highlight=False,
        soft_wrap=True,
        markup=False,
    )
    return 1


def _compared(
    file: Path, number: int, rtol: float
) -> tuple[int, Difference | None, dict[str, Any]]:
    """How many steps an episode has, where it parts, and what it is of."""
    if not is_table(file):
        episode = load_episode(file)
        return len(episode.actions), replay(episode, rtol), episode.header
    about, columns = read_episode(file, number)
    if "adapter" in about:
        found = replay_captured(file, number, rtol)
    else:
        found = replay(read_captured(file, number), rtol)
    return len(columns["action"]), found, about
