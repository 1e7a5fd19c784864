"""learning/tables: learned tables on disk: one .npz of plain arrays for each policy."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from plumejax.base.errors import ValidationError, require
from plumejax.base.files import UNREADABLE, write_bytes_whole
from plumejax.base.spaces import Box, Discrete
from plumejax.learning.finite_state import FiniteStateController
from plumejax.learning.q_learning import Compass, QTable, compass

Table = FiniteStateController | QTable


def save_policy(path: str | Path, policy: Table) -> None:
    """Write a policy to `path`, NAME.npz; what was there is replaced as a whole.

    Raises `ValidationError` for another policy, or another name.
    """
    path = Path(path)
    require(path.suffix == ".npz", "path", str(path), "a name that ends in .npz")
    kind = type(policy).__name__
    require(kind in _READERS, "policy", kind, f"one of {', '.join(_READERS)}")
    if isinstance(policy, QTable):
        arrays: dict[str, Any] = {
            "values": np.asarray(policy.values),
            "num_states": np.int64(policy.num_states),
            "recovery": np.str_(policy.recovery),
            "compass": np.asarray(policy.compass, np.int64),
        }
    else:
        arrays = {"logits": np.asarray(policy.logits)}
    buffer = io.BytesIO()
    np.savez(buffer, kind=np.str_(kind), **arrays)
    write_bytes_whole(path, buffer.getvalue())


def is_table(path: Path) -> bool:
    """Whether a file is one of `save_policy`, rather than a trained agent's."""
    try:
        with np.load(path) as stored:
            return "kind" in stored.files
    except UNREADABLE:
        return False


def load_policy(path: str | Path) -> Table:
    """The policy that `save_policy` wrote.

    Raises `ValidationError` if there is none to read.
    """
    path = Path(path)
    require(path.is_file(), "path", str(path), "a file that save_policy wrote")
    try:
        with np.load(path) as stored:
            return _READERS[str(stored["kind"])](stored)
    except UNREADABLE as error:
        raise ValidationError(
            f"{path} is no policy that save_policy wrote ({type(error).__name__}: {error})"
        ) from error


def require_fit(policy: Table, env: Any, params: Any) -> None:
    """Raise `ValidationError`, which names what does not fit, unless the table is one for the task:
    of its observations, its actions and, where a recovery acts in the void, its directions."""
    seen, actions = env.observation_space(params), env.action_space(params)
    if isinstance(policy, QTable):
        columns = policy.values.shape[1]
        observed = isinstance(seen, Discrete) and seen.n == policy.num_states
        wants = f"{policy.num_states} states"
    else:
        columns = policy.logits.shape[2]
        observed = isinstance(seen, Box) and seen.shape == (1,)
        wants = "one number, 1 for a hit and 0 for none"
    require(observed, "observation of the task", seen, f"{wants}, as the table is for")
    fits = isinstance(actions, Discrete) and actions.n == columns
    require(fits, "action of the task", actions, f"one of {columns}, as the table is for")
    if isinstance(policy, QTable) and policy.recovery != "learned":
        ways = compass(env)
        allowed = f"{policy.compass}, by which the table's {policy.recovery} goes"
        require(ways == policy.compass, "directions of the task", ways, allowed)


def _controller(stored: Any) -> FiniteStateController:
    logits = jnp.asarray(stored["logits"], jnp.float32)
    memories, hits, _, after = logits.shape
    require((hits, after) == (2, memories), "shape of logits", logits.shape, "(M, 2, A, M)")
    return FiniteStateController(logits)


def _q_table(stored: Any) -> QTable:
    values, states = jnp.asarray(stored["values"], jnp.float32), int(stored["num_states"])
    good = values.ndim == 2 and len(values) >= states
    require(good, "shape of values", values.shape, f"(>= {states}, A)")
    return QTable(
        values,
        num_states=states,
        recovery=str(stored["recovery"]),  # type: ignore[arg-type]
        compass=Compass(*map(int, stored["compass"])),
    )


_READERS: dict[str, Callable[[Any], Table]] = {
    "FiniteStateController": _controller,
    "QTable": _q_table,
}
