"""base/tables: the steps of many episodes in one table on disk, readable while it grows.

A table is a folder NAME.parquet of whole parts, which `pandas.read_parquet` takes for one table.
What it is of stands with it, in `DataFrame.attrs["plumejax"]`.
"""

import io
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from plumejax.base.errors import ValidationError, require
from plumejax.base.extras import need
from plumejax.base.files import write_bytes_whole

FORMAT = 1
"""Of the tables; another number, another form."""

ABOUT = ("episode", "step", "lane", "seed", "options", "action", "reward")
"""Columns that are not of the state."""

MOST = 32
"""Numbers of a part of the state that is kept: what is larger follows from the rest."""


def rows(
    number: int, actions: Any, states: Mapping[str, np.ndarray], more: Mapping[str, Any] = {}
) -> dict[str, np.ndarray]:
    """An episode of T steps as columns of T + 1 rows; the last has no action.

    Args:
      number: of the episode.
      actions: [T, ...].
      states: by name, leading with T + 1; their `.total_reward` gives the rewards.
      more: what is the same in every row, numbers or text.
    """
    count = len(actions) + 1
    columns: dict[str, Any] = {"episode": np.full(count, number), "step": np.arange(count)}
    columns |= {name: np.full(count, value) for name, value in more.items()}
    actions = np.asarray(actions)
    blank = np.zeros((1, *actions.shape[1:]), actions.dtype)
    none = np.arange(count) == count - 1
    if ".total_reward" in states:
        paid = states[".total_reward"]
        columns |= _flat("reward", np.diff(paid, axis=0, prepend=paid[:1] * 0))
    return columns | answered(np.concatenate([actions, blank]), none, states)


def answered(
    actions: np.ndarray, none: np.ndarray, states: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Columns of states, each with the action that it was answered with.

    Args:
      actions: [n, ...].
      none: bool[n], states that were not answered.
      states: by name, leading with n.
    """
    columns: dict[str, Any] = {}
    for name, values in _flat("action", actions).items():
        columns[name] = np.ma.masked_array(values, none)
    for name, values in states.items():
        columns |= _flat(name.removeprefix("."), values)
    return columns


def _flat(name: str, values: np.ndarray) -> dict[str, np.ndarray]:
    """A column for each number of an array: NAME, or NAME:i in the order of the memory."""
    if values.ndim == 1:
        return {name: values}
    flat = values.reshape(len(values), -1)
    return {f"{name}:{i}": flat[:, i] for i in range(flat.shape[1])}


def append(path: Path, about: Mapping[str, Any], episodes: Sequence[Mapping[str, Any]]) -> None:
    """Add the `rows` of some episodes to the table `path`, a folder *.parquet, as one whole part.

    Args:
      about: what the table is of, for JSON; the same for all parts.
      episodes: at least one.

    Raises:
      ValidationError: another ending, or a table of something else.
      PlumeError: pyarrow is not installed (the extra `data`).
    """
    arrow, parquet = need("pyarrow", "data"), need("pyarrow.parquet", "data")
    require(path.suffix == ".parquet", "path", str(path), "a name that ends in .parquet")
    told = json.loads(json.dumps({"format": FORMAT, **about}))
    if path.exists():
        same = _told(path) == told
        require(same, "path", str(path), "new, or a table of the same task, numbers and versions")
    columns = {}
    for name in episodes[0]:
        values = np.ma.concatenate([each[name] for each in episodes])
        mask = np.ma.getmaskarray(values)
        columns[name] = arrow.array(np.asarray(values.data), mask=mask if mask.any() else None)
    # Where pandas looks for `DataFrame.attrs`.
    attrs = {"PANDAS_ATTRS": json.dumps({"plumejax": told})}
    content = io.BytesIO()
    table = arrow.table(columns).replace_schema_metadata(attrs)
    parquet.write_table(table, content, compression="zstd")
    path.mkdir(parents=True, exist_ok=True)
    write_bytes_whole(path / f"part-{len(_parts(path)):05d}.parquet", content.getvalue())


def read_episode(path: Path, number: int) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """`(about, columns)` of an episode in a table; its `action` has T rows, other columns T + 1,
    and those of one array are one again, [T + 1, k].

    Raises `ValidationError` for what is no table, or an episode that is not there.
    """
    parquet = need("pyarrow.parquet", "data")
    about = _told(path)
    table = parquet.read_table(path, filters=[("episode", "=", number)])
    if table.num_rows == 0:
        known = parquet.read_table(path, columns=["episode"]).column("episode").to_numpy()
        require(False, "number", number, f"{known.min()} to {known.max()}")
    found: dict[str, list[np.ndarray]] = {}
    for name in table.column_names:
        column = table.column(name)
        values = column.drop_null() if name.startswith("action") else column
        found.setdefault(name.partition(":")[0], []).append(values.to_numpy())
    single = {name for name in table.column_names if ":" not in name}
    whole = {n: x[0] if n in single else np.stack(x, axis=1) for n, x in found.items()}
    named = {n if n in ABOUT else f".{n}": x for n, x in whole.items()}
    return about, named


def require_folder(name: str, folder: Any) -> None:
    """Raise `ValidationError` unless tables can be put into `folder`: one that is there, or a new
    one in one that is; and `PlumeError` if pyarrow is not installed (the extra `data`)."""
    need("pyarrow", "data")
    good = isinstance(folder, str | Path) and str(folder) != ""
    there = Path(folder).resolve() if good else Path()
    good = good and (there.is_dir() or (not there.exists() and there.parent.is_dir()))
    where = there if there.is_dir() else there.parent
    good = good and os.access(where, os.W_OK)
    require(good, name, str(folder), "a folder to write into, or a new one in such a folder")


def is_table(path: Path) -> bool:
    """Whether there is a table."""
    return path.is_dir() and path.suffix == ".parquet"


def _parts(path: Path) -> list[Path]:
    return sorted(path.glob("part-*.parquet"))


def _told(path: Path) -> dict[str, Any]:
    parquet, parts = need("pyarrow.parquet", "data"), _parts(path)
    try:
        metadata = parquet.read_schema(parts[0]).metadata
        about = json.loads(metadata[b"PANDAS_ATTRS"])["plumejax"]
    except (IndexError, KeyError, TypeError, ValueError, OSError):
        raise ValidationError(f"{path} holds no table of episodes, or a damaged one") from None
    require(about["format"] == FORMAT, "format", about["format"], str(FORMAT))
    return about
