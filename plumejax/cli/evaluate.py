"""cli/evaluate: `plumejax evaluate RUN_DIR`, a trained agent on fresh episodes."""

from dataclasses import replace
from pathlib import Path

import jax
import tyro
from rich.console import Console

from plumejax.base.errors import require
from plumejax.cli.runs import CHECKPOINTS, make_task, make_training, read_config
from plumejax.cli.scoring import report
from plumejax.learning.checkpoints import require_same, restore


def evaluate(
    run_dir: tyro.conf.Positional[Path],
    *,
    episodes: int = 1000,
    seed: int | None = None,
    data: Path | None = None,
) -> int:
    """Evaluate the newest checkpoint of a run beside its baselines.

    Writes evaluation.json and trajectories.png into the run directory.

    Args:
        run_dir: what `plumejax train` wrote.
        episodes: fresh episodes of each policy.
        seed: of the episodes; by default that of the run.
        data: another recording to evaluate on, or where that of the run lies now.
    """
    require(episodes > 0, "--episodes", episodes, "> 0")
    console = Console()
    config = read_config(run_dir)
    if data is not None:
        config = replace(config, data=str(data))
    algorithm, training_params = make_training(config)
    env, params = make_task(config)
    like = jax.eval_shape(algorithm.init, jax.random.key(0), training_params)
    training, saved = restore(run_dir / CHECKPOINTS, like, config.task)
    if data is None:
        require_same(saved, training_params)
    seed = config.seed if seed is None else seed
    report(console, run_dir, env, params, algorithm.agent(training), config.task, seed, episodes)
    return 0
