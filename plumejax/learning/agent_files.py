"""learning/agent_files: a trained agent in one file: network, normaliser, what it learned on."""

import io
import json
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from plumejax.base.errors import ValidationError, require
from plumejax.base.files import UNREADABLE, write_bytes_whole
from plumejax.learning.agent import Agent


class Stored(NamedTuple):
    """What an agent's file holds.

    Attributes:
      config: of the run, as JSON has it.
      params: of the task as defined, as `checkpoints.describe` gives them.
      arrays: by path in the tree, of network and normaliser.
    """

    config: dict[str, Any]
    params: dict[str, Any]
    arrays: dict[str, np.ndarray]


def save_agent(path: Path, agent: Agent, config: dict[str, Any], params: dict[str, Any]) -> None:
    """Write `agent` to `path`, NAME.npz, which never holds half of it; see `Stored`."""
    about = json.dumps({"config": config, "params": params})
    buffer = io.BytesIO()
    arrays: dict[str, Any] = {name: np.asarray(x) for name, x in _named(agent).items()}
    np.savez_compressed(buffer, about=np.str_(about), **arrays)
    write_bytes_whole(path, buffer.getvalue())


def read_agent(path: Path) -> Stored:
    """What `save_agent` wrote. Raises `ValidationError` if there is none to read."""
    require(path.is_file(), "agent", str(path), "a file that holds a trained agent")
    try:
        with np.load(path) as stored:
            about = json.loads(str(stored["about"]))
            arrays = {name: stored[name] for name in stored.files if name != "about"}
            return Stored(about["config"], about["params"], arrays)
    except UNREADABLE as error:
        raise ValidationError(
            f"{path} holds no trained agent ({type(error).__name__}: {error})"
        ) from error


def fill(like: Agent, stored: Stored, path: Path) -> Agent:
    """`like`, which may be abstract, with the arrays that are stored at `path`.

    Raises `ValidationError` if they are of another network.
    """
    wanted = {name: (x.shape, np.dtype(x.dtype)) for name, x in _named(like).items()}
    given = {name: (x.shape, x.dtype) for name, x in stored.arrays.items()}
    require(given == wanted, str(path), given, f"the arrays of its task's network, {wanted}")
    leaves = [stored.arrays[name] for name in wanted]
    return jax.tree.unflatten(jax.tree.structure(like), leaves)


def _named(agent: Agent) -> dict[str, Any]:
    return {
        jax.tree_util.keystr(path, simple=True, separator="."): x
        for path, x in jax.tree_util.tree_leaves_with_path(agent)
    }
