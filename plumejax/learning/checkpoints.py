"""learning/checkpoints: a whole training on disk (Orbax), written atomically, restored exactly."""

import hashlib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp

from plumejax.base import paths
from plumejax.base.errors import ValidationError, require
from plumejax.learning.ppo import Training

_PACKAGES = ("plumejax", "jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "numpy")


def versions() -> dict[str, str]:
    """The versions that a result depends on, by package."""
    return {name: version(name) for name in _PACKAGES}


def describe(params: Any) -> dict[str, Any]:
    """The numbers of a task as JSON: small ones as they are, arrays as shape and sha256."""

    def one(value: Any) -> Any:
        array = np.asarray(value)
        if array.size <= 64:
            return array.tolist()
        digest = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
        return {"shape": list(array.shape), "dtype": str(array.dtype), "sha256": digest}

    return {path: one(value) for path, value in paths.leaves(params).items()}


def _forms(tree: Any) -> list[str]:
    return [f"{x.dtype}{list(x.shape)}" for x in jax.tree.leaves(tree)]


def _without_empty(tree: Any) -> Any:
    """Orbax refuses arrays of size 0, such as the readings of an agent that has none."""
    return jax.tree.map(lambda x: x if x.size else None, tree)


def _manager(directory: Path, create: bool) -> ocp.CheckpointManager:
    options = ocp.CheckpointManagerOptions(
        max_to_keep=2, create=create, enable_async_checkpointing=False
    )
    return ocp.CheckpointManager(directory.resolve(), options=options)


def save(directory: Path, training: Training, task: str, params: Any) -> None:
    """Write the whole of `training` as the newest checkpoint; the last two are kept.

    Orbax writes beside and renames, so a write that is cut off leaves the earlier ones whole.
    """
    arrays = training._replace(key=jax.random.key_data(training.key))
    meta = {
        "task": task,
        "params": describe(params),
        "versions": versions(),
        "arrays": _forms(arrays),
    }
    with _manager(directory, create=True) as manager:
        manager.save(
            int(training.update),
            args=ocp.args.Composite(
                training=ocp.args.StandardSave(_without_empty(arrays)),
                meta=ocp.args.JsonSave(meta),
            ),
        )


def restore(directory: Path, like: Training, task: str) -> tuple[Training, dict[str, Any]]:
    """The newest training in `directory`, and the numbers of the task that it was saved with.

    Args:
      directory: where `save` wrote.
      like: a training of the same shapes; only its structure is used, so it may be abstract
        (`jax.eval_shape`).
      task: id of the task; it must be the one that was saved.

    Returns:
      The training, and what `describe` gave of the params then: for `require_same`.

    Raises:
      ValidationError: no checkpoint is there, or it is of another task or network.
    """
    require(directory.is_dir(), "checkpoint", str(directory), "a folder with a checkpoint")
    abstract = like._replace(key=jax.eval_shape(jax.random.key_data, like.key))
    abstract = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), abstract)
    with _manager(directory, create=False) as manager:
        step = manager.latest_step()
        require(step is not None, "checkpoint", str(directory), "a folder with a checkpoint")
        meta = _read(manager, step, meta=ocp.args.JsonRestore()).meta
        require(meta["task"] == task, "task", task, f"{meta['task']!r}, as saved in {directory}")
        if meta["arrays"] != _forms(abstract):
            raise ValidationError(
                f"the checkpoint in {directory} is of another network or number of lanes: its"
                f" arrays are {meta['arrays']}, not {_forms(abstract)}"
            )
        target = ocp.args.StandardRestore(_without_empty(abstract))
        stored = _read(manager, step, training=target).training
        arrays = jax.tree.map(
            lambda x, y: jnp.zeros(x.shape, x.dtype) if y is None else y, abstract, stored
        )
    return arrays._replace(key=jax.random.wrap_key_data(arrays.key)), meta["params"]


def _read(manager: ocp.CheckpointManager, step: int, **what: Any) -> Any:
    try:
        return manager.restore(step, args=ocp.args.Composite(**what))
    except (ValueError, KeyError, OSError) as error:
        raise ValidationError(
            f"the checkpoint of update {step} in {manager.directory} is damaged, or was saved when"
            " its task kept other numbers (CHANGELOG.md); if it is damaged, remove its folder to"
            f" use an earlier one ({type(error).__name__}: {str(error)[:200]})"
        ) from error


def require_same(saved: dict[str, Any], params: Any) -> None:
    """Raise `ValidationError`, naming the number, unless `params` are those that were saved."""
    now = describe(params)
    for path, value in saved.items():
        require(now.get(path) == value, path, now.get(path), f"{value}, as when it was saved")
