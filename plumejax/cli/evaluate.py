"""cli/evaluate: `plumejax evaluate RUN_DIR`, a trained agent on fresh episodes."""

from pathlib import Path

import tyro
from rich.console import Console

from plumejax.base.errors import require
from plumejax.cli.scoring import report
from plumejax.learning.runs import load_agent, read_config


def evaluate(
    run_dir: tyro.conf.Positional[Path],
    *,
    episodes: int = 1000,
    seed: int | None = None,
    data: Path | None = None,
) -> int:
    """Evaluate the newest checkpoint of a run beside its baselines.

    Writes evaluation.json and trajectories.png into the run directory; for a recording of another
    name than the run's, evaluation-NAME.json and trajectories-NAME.png.

    Args:
        run_dir: what `plumejax train` wrote.
        episodes: fresh episodes of each policy.
        seed: of the episodes; by default that of the run.
        data: another recording to evaluate on, or where that of the run lies now.
    """
    require(episodes > 0, "--episodes", episodes, "> 0")
    require(seed is None or 0 <= seed < 2**31, "--seed", seed, "0 <= seed < 2**31")
    config = read_config(run_dir)
    agent, env, params = load_agent(run_dir, data)
    seed = config.seed if seed is None else seed
    used = config.data if data is None else str(data)
    moved = data is None or config.data is None or data.stem == Path(config.data).stem
    of = "" if data is None or moved else data.stem
    report(Console(), run_dir, env, params, agent, config.task, seed, episodes, used, of)
    return 0
