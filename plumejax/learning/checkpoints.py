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


def save(directory: Path, training: Training, task: str, described: dict[str, Any]) -> None:
    """Write the whole of `training` as the newest checkpoint; the last two are kept.

    Orbax writes beside and renames, so a write that is cut off leaves the earlier ones whole.

    Args:
      directory: of the checkpoints.
      training: what is saved.
      task: its id.
      described: what `describe` gives of the params.
    """
    arrays = training._replace(key=jax.random.key_data(training.key))
    meta = {
        "task": task,
        "params": described,
        "versions": versions(),
        "arrays": _forms(arrays),
    }
    with _manager(directory, create=True) as manager:
        manager.save(
            int(np.max(training.update)),
            args=ocp.args.Composite(
                training=ocp.args.StandardSave(_without_empty(arrays)),
                meta=ocp.args.JsonSave(meta),
            ),
        )


def is_saved(directory: Path) -> bool:
    """Whether a whole checkpoint is in `directory`: of one that was being written when the process
    was killed nothing counts."""
    if not directory.is_dir():
        return False
    with _manager(directory, create=False) as manager:
        return manager.latest_step() is not None


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


def save_tree(directory: Path, tree: Any) -> None:
    """Write any tree of arrays and typed keys (of JAX's default kind) into `directory`, which must
    not be there yet: the state of an episode or of a `Batch`, the carry of a rollout."""
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(directory.resolve(), _numbered(jax.tree.map(bits, tree)))


def restore_tree(directory: Path, like: Any) -> Any:
    """What `save_tree` wrote, exactly.

    Args:
      directory: where it wrote.
      like: a tree of the same structure, shapes and dtypes; it may be abstract (`jax.eval_shape`).

    Raises:
      ValidationError: nothing is there, or a tree of another form.
    """
    require(directory.is_dir(), "checkpoint", str(directory), "a folder that save_tree wrote")
    forms = jax.eval_shape(lambda tree: jax.tree.map(bits, tree), like)
    with ocp.StandardCheckpointer() as checkpointer:
        try:
            stored = checkpointer.restore(directory.resolve(), _numbered(forms))
        except (ValueError, KeyError, OSError) as error:
            shown = f"{type(error).__name__}: {str(error)[:200]}"
            raise ValidationError(f"{directory} holds a tree of another form ({shown})") from error
    # By way of the host: Orbax ties arrays to a device, and a step would be compiled once more.
    arrays = [
        jnp.asarray(np.asarray(stored[str(i)])) if x.size else jnp.zeros(x.shape, x.dtype)
        for i, x in enumerate(jax.tree.leaves(forms))
    ]
    leaves, form = jax.tree.flatten(like)
    typed = [
        jax.random.wrap_key_data(array) if _is_key(x) else array
        for array, x in zip(arrays, leaves, strict=True)
    ]
    return jax.tree.unflatten(form, typed)


def _numbered(tree: Any) -> dict[str, Any]:
    """The leaves by their number, which needs no structure; Orbax refuses arrays of size 0."""
    return {str(i): x for i, x in enumerate(jax.tree.leaves(tree)) if x.size}


def bits(x: Any) -> Any:
    """A key as the numbers that it is, another array as it is."""
    return jax.random.key_data(x) if _is_key(x) else x


def _is_key(x: Any) -> bool:
    return jnp.issubdtype(x.dtype, jax.dtypes.prng_key)


def _read(manager: ocp.CheckpointManager, step: int, **what: Any) -> Any:
    try:
        return manager.restore(step, args=ocp.args.Composite(**what))
    except (ValueError, KeyError, OSError) as error:
        raise ValidationError(
            f"the checkpoint of update {step} in {manager.directory} is damaged, or was saved when"
            " its task kept other numbers (CHANGELOG.md); if it is damaged, remove its folder to"
            f" use an earlier one ({type(error).__name__}: {str(error)[:200]})"
        ) from error


def require_same(saved: dict[str, Any], now: dict[str, Any]) -> None:
    """Raise `ValidationError`, naming the number, unless params are what was saved, as `describe`
    has both."""
    for path, value in saved.items():
        require(now.get(path) == value, path, now.get(path), f"{value}, as when it was saved")
