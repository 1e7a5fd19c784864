"""learning/curricula: numbers of a task that change as a training goes on."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.base import paths
from plumejax.base.errors import require


class Curriculum(struct.PyTreeNode):
    """Params with a schedule: it stands wherever the params of a training do.

    Attributes:
      params: of the task; the numbers of the schedule replace theirs.
      at: float32[K], shares of the training from 0 to 1, rising.
      stages: by dotted path float32[K, ...], the number at each of these; between them it lies on
        the straight line, before the first and after the last it stays.
    """

    params: Any
    at: Any
    stages: dict[str, Any]


def curriculum(params: Any, at: Any, stages: Mapping[str, Any]) -> Curriculum:
    """`params` on a schedule. Raises `ValidationError` for a path or a shape that does not fit."""
    at = np.asarray(at, np.float32)
    good = at.ndim == 1 and len(at) > 0 and np.all(np.diff(at) > 0)
    require(good and at[0] >= 0 and at[-1] <= 1, "at", at, "rising from 0 to 1")
    for path, values in stages.items():
        shape = (len(at), *np.shape(paths.find(params, path)))
        require(np.shape(values) == shape, f"stages {path}: shape", np.shape(values), str(shape))
    return Curriculum(params, at, {path: np.asarray(x, np.float32) for path, x in stages.items()})


def params_at(params: Any, share: jax.Array) -> Any:
    """The params when `share` float32[] of a training is done; plain ones are what they are."""
    if not isinstance(params, Curriculum):
        return params
    at, now = jnp.asarray(params.at), params.params
    for path, stages in params.stages.items():
        flat = jnp.asarray(stages).reshape(len(at), -1)
        value = jax.vmap(lambda each: jnp.interp(share, at, each), 1)(flat)
        now = paths.replace(now, path, value.reshape(jnp.shape(stages)[1:]))
    return now
