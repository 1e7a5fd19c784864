"""evaluation/results: outcomes with what they are of, in files."""

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from plumejax.base.errors import ValidationError, require
from plumejax.base.extras import need
from plumejax.base.files import UNREADABLE
from plumejax.evaluation.episodes import Outcomes
from plumejax.evaluation.tracks import Track


@dataclass(frozen=True)
class Subject:
    """What was played.

    Attributes:
      task, version: id and behaviour version.
      policy: its name.
      arguments: of the policy, as JSON.
      overrides: numbers of the task that are not its own, as JSON.
      seed: of the episodes.
      episodes: how many.
      plumes: realisations of the plume that they share, 0 if each has its own.
      max_steps: steps after which an episode is cut off.
      radius: of the goal, lengths of the plume; 0 if the task has none.
    """

    task: str
    version: int
    policy: str
    arguments: str
    overrides: str
    seed: int
    episodes: int
    plumes: int
    max_steps: int
    radius: float


@dataclass(frozen=True)
class Result:
    """Outcomes and what they are of.

    Attributes:
      subject: what was played.
      outcomes: NumPy arrays of n episodes.
    """

    subject: Subject
    outcomes: Outcomes

    @property
    def plumes(self) -> np.ndarray:
        """int[n], the realisation of the plume of each episode: the unit of replication."""
        plume = self.outcomes.plume
        return np.arange(len(self.outcomes.steps)) if plume is None else np.asarray(plume)


_TRACK = ("path", "distance", "walls", "cycled", "hits", "whiffs")


def arrays(result: Result) -> dict[str, np.ndarray]:
    """Every number of each episode, by name."""
    outcomes = result.outcomes
    found = {name: np.asarray(getattr(outcomes, name)) for name in ("found", "failed", "steps")}
    track = outcomes.track
    way = {name: np.asarray(x) for name in _TRACK if (x := getattr(track, name, None)) is not None}
    return {**found, "return": np.asarray(outcomes.reward), **way, "plume": result.plumes}


def write_result(path: Path, result: Result) -> None:
    """Write it to `path` (.npz), which never holds half of it."""
    beside = path.with_name(f".{path.name}.part")
    with open(beside, "wb") as file:
        subject = json.dumps(asdict(result.subject))
        np.savez_compressed(file, subject=np.asarray(subject), **arrays(result))  # type: ignore[arg-type]
    os.replace(beside, path)


def read_result(path: Path) -> Result:
    """What `write_result` wrote.

    Raises:
      ValidationError: a file that is not there or not one of those.
    """
    try:
        with np.load(path) as file:
            held = {name: file[name] for name in file.files}
        subject = Subject(**json.loads(str(held.pop("subject"))))
        plume, paid = held.pop("plume"), held.pop("return")
        own = len(np.unique(plume)) == len(plume)
        way = {name: held.pop(name) for name in _TRACK if name in held}
        track = Track(**way, returns=None, before=None) if way else None  # type: ignore[arg-type]
        outcomes = Outcomes(**held, reward=paid, plume=None if own else plume, track=track)
        return Result(subject, outcomes)
    except UNREADABLE as error:
        raise ValidationError(f"{path} holds no result of plumejax: {error}") from error


def dataset(results: Iterable[Result]) -> Any:
    """An `xarray.Dataset` of the results, dimensions `run` and `episode`; the subject of each is a
    coordinate along `run`.

    Raises:
      PlumeError: xarray is not installed (the extra `data`).
      ValidationError: no result, or different numbers of episodes.
    """
    xarray = need("xarray", "data")
    results = list(results)
    counts = {result.subject.episodes for result in results}
    require(len(counts) == 1, "results", sorted(counts), "at least one, of equally many episodes")
    columns = [arrays(result) for result in results]
    shared = [name for name in columns[0] if all(name in each for each in columns)]
    subjects = [asdict(result.subject) for result in results]
    return xarray.Dataset(
        {name: (("run", "episode"), np.stack([each[name] for each in columns])) for name in shared},
        coords={
            name: ("run", np.asarray([subject[name] for subject in subjects]))
            for name in subjects[0]
            if name != "episodes"
        },
        attrs={"about": "outcomes of episodes played by plumejax; lengths in those of the plume"},
    )


def write_dataset(path: Path, data: Any) -> None:
    """Write an `xarray.Dataset` as NetCDF (.nc) or Zarr (.zarr); `path` never holds half of it.

    Raises:
      ValidationError: another suffix.
      PlumeError: what writes it is not installed (the extra `data`).
    """
    require(path.suffix in (".nc", ".zarr"), "path", path, "a name that ends in .nc or .zarr")
    beside = path.with_name(f".{path.stem}.part{path.suffix}")
    if path.suffix == ".nc":
        need("h5netcdf", "data")
        data.to_netcdf(beside, engine="h5netcdf")
        os.replace(beside, path)
        return
    need("zarr", "data")
    data.to_zarr(beside, mode="w", zarr_format=2)  # strings have no stable form in 3
    if path.exists():
        import shutil

        shutil.rmtree(path)
    os.replace(beside, path)


def finite(value: Any) -> Any:
    """JSON knows no NaN and no infinity."""
    if isinstance(value, dict):
        return {key: finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [finite(each) for each in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value
