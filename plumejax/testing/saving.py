"""testing/saving: states on disk, by Orbax, that go on where they were."""

import tempfile
from pathlib import Path
from typing import Any

import chex
import jax

from plumejax.base.batch import Batch
from plumejax.base.environment import Environment
from plumejax.base.rollout import Carry
from plumejax.testing.episodes import Episode, Outcome, before, episode
from plumejax.testing.forms import equal, stack
from plumejax.testing.transformations import LANES


def check_saved(
    env: Environment, params: Any, key: chex.PRNGKey, *, run: Episode | None = None
) -> None:
    """A state, and the carry of a `Batch`, with the keys to go on with, come back from a folder
    (`plumejax.learning.checkpoints`) as they were, and go on exactly alike."""
    from plumejax.learning.checkpoints import restore_tree, save_tree

    run = run or episode(env, params, key, LANES)
    carry = Carry(jax.numpy.int32(LANES), before(run, LANES), (), ())
    kept = {"state": run.state, "key": run.keys[0], "carry": carry, "carry_key": key}
    with tempfile.TemporaryDirectory() as folder:
        save_tree(Path(folder) / "kept", kept)
        read = restore_tree(Path(folder) / "kept", jax.eval_shape(lambda: kept))
    equal(_bits(read), _bits(kept), "what was saved and what was restored")
    step = Outcome(*env.step(read["key"], read["state"], run.actions[0], params))
    equal(step, run.steps[0], "a step of the restored state and of the state")
    batch, actions = Batch(env, LANES), stack(run.actions[:LANES])
    went, goes = (
        batch.step(each["carry_key"], each["carry"].state, actions, params) for each in (kept, read)
    )
    equal(Outcome(*goes), Outcome(*went), "a step of the restored batch and of the batch")


def _bits(tree: Any) -> Any:
    """Keys as the numbers that they are."""
    is_key = lambda x: jax.numpy.issubdtype(x.dtype, jax.dtypes.prng_key)  # noqa: E731
    return jax.tree.map(lambda x: jax.random.key_data(x) if is_key(x) else x, tree)
