"""cli/export_states: `plumejax export-states`: hidden states beside what was the case."""

from pathlib import Path

import jax
import tyro
from rich.console import Console

from plumejax.base.errors import require
from plumejax.evaluation.histories import histories
from plumejax.evaluation.results import write_dataset
from plumejax.evaluation.trials import evaluation_key, on_bank
from plumejax.learning.agent import deterministic
from plumejax.learning.recipes import recipe
from plumejax.learning.runs import load_agent


def export_states(
    run: tyro.conf.Positional[str],
    *,
    out: Path,
    episodes: int = 64,
    steps: int | None = None,
    seed: int = 0,
    likeliest: bool = False,
) -> int:
    """Play episodes of a trained agent and write every step of them, for analysis of its network.

    Observations, hidden states, actions, rewards, and position, heading, distance, concentration
    and wind at the agent, aligned in time: an xarray Dataset.

    Args:
        run: what `plumejax train` wrote, or the name of an agent that comes with the package.
        out: file to write, *.nc or *.zarr.
        episodes: how many.
        steps: the longest that is kept; by default the time limit of the task.
        seed: of the episodes.
        likeliest: take the likeliest action each time, rather than draw one.
    """
    require(out.suffix in (".nc", ".zarr"), "--out", str(out), "a file named *.nc or *.zarr")
    require(out.resolve().parent.is_dir(), "--out", str(out), "in a folder that is there")
    require(episodes > 0, "--episodes", episodes, "> 0")
    require(steps is None or steps > 0, "--steps", steps, "> 0")
    require(0 <= seed < 2**31, "--seed", seed, "0 <= seed < 2**31")
    console = Console()
    with console.status(f"playing {episodes} episodes"):
        agent, env, params = load_agent(run)
        env, params = on_bank(env, params, recipe(env).plumes, seed)
        agent = deterministic(agent) if likeliest else agent
        key = evaluation_key(seed)
        params = jax.device_put(params)
        data = histories(env, agent, key, params, episodes, steps or int(params.max_steps))
        write_dataset(out, data)
    console.print(f"{out}: {dict(data.sizes)}", highlight=False, soft_wrap=True)
    return 0
