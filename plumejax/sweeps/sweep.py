"""sweeps/sweep: what is swept, checked before anything is played, and the run of it."""

import hashlib
import json
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import jax
import numpy as np

from plumejax.base import paths, registry
from plumejax.base.errors import ValidationError, near, require
from plumejax.evaluation.trials import Trial, held, make_agent, make_task
from plumejax.sweeps.cells import differing
from plumejax.sweeps.chunks import MEASURES, Cell, Chunk, Told, chunks, measured
from plumejax.sweeps.designs import Design, grid, listed
from plumejax.sweeps.units import described
from plumejax.version import __version__

EPISODES = 2**15
"""Of a chunk, about: what is lost of a sweep that is stopped."""


@dataclass(frozen=True, eq=False)
class Sweep:
    """A task and a policy over many values of their numbers.

    Every cell plays `episodes` fresh episodes, whose keys are of the seed, the number of the cell
    and that of the episode: on how many devices or machines, in what order and in which parts they
    are played changes nothing.

    Attributes:
      task: its id.
      axes: `{name: values}`, whose product is swept, or a `Design`. A name is the dotted path of a
        number of the task; "policy", for names of policies; "policy.NAME", a number that the policy
        takes as an argument; or "seed". A policy is made for the task as it is without the sweep:
        what it believes of the world is its own, to be swept by "policy.NAME".
      policy: as in `evaluation.trials.Trial`, where "policy" is no axis.
      episodes: of each cell.
      seed: of the episodes, where "seed" is no axis.
      arguments: of the policy.
      overrides: numbers of the task in every cell, by dotted path.
      static: choices of the task.
      plumes: realisations of the plume that all cells share, see `Trial`; its numbers cannot be
        swept then.

    Raises:
      ValidationError: at once, for whatever is not there, or not allowed in some cell.
    """

    task: str
    axes: Mapping[str, Any] | Design
    policy: str = "random"
    episodes: int = 1000
    seed: int = 0
    arguments: Mapping[str, Any] = field(default_factory=dict)
    overrides: Mapping[str, Any] = field(default_factory=dict)
    static: Mapping[str, Any] = field(default_factory=dict)
    plumes: int = 0

    def __post_init__(self) -> None:
        whole = isinstance(self.episodes, int) and not isinstance(self.episodes, bool)
        require(whole and self.episodes > 0, "episodes", self.episodes, "an int > 0")
        require_seed("seed", self.seed)
        require(type(self.plumes) is int and self.plumes >= 0, "plumes", self.plumes, "an int >= 0")
        require_tables(self, "arguments", "overrides", "static")
        require_axes(self.axes)
        self._require_known()
        _ = self.differing  # for what it raises

    @cached_property
    def design(self) -> Design:
        """The cells; those of one policy follow each other."""
        if not isinstance(self.axes, Design):
            first = {name: self.axes[name] for name in self.axes if name == "policy"}
            return grid({**first, **self.axes})
        if "policy" not in self.axes.columns:
            return self.axes
        order = np.argsort(self.axes.columns["policy"], kind="stable")
        return listed({name: x[order] for name, x in self.axes.columns.items()})

    @cached_property
    def made(self) -> tuple[Any, Any]:
        """`(env, params)` of the task without the sweep."""
        return make_task(self._trial(self.policy, {}))

    def cells(self, numbers: Iterable[int]) -> tuple[Any, list[Cell]]:
        """`(env, cells)` of the cells of these numbers, which have one policy."""
        columns, made, env, found = self.design.columns, {}, self.made[0], []
        for number in numbers:
            own = {name: values[number] for name, values in columns.items()}
            name = str(own.get("policy", self.policy))
            given = {key: own[f"policy.{key}"].item() for key in self._swept_arguments}
            mark = (name, *given.values())
            if mark not in made:
                trial = self._trial(name, {**self.arguments, **given})
                env, params, policy = make_agent(trial, *self.made)
                made[mark] = env, params, policy, paths.leaves(params)
            env, params, policy, known = made[mark]
            for path in self._swept_paths:
                params = paths.replace(params, path, paths.fit(path, own[path], known[path]))
            seed = int(own["seed"]) if "seed" in own else None
            found.append(Cell(number, policy, params, seed))
        return env, found

    @property
    def blocks(self) -> tuple[int, ...]:
        """How many cells each policy has, in their order."""
        names = self.design.columns.get("policy")
        if names is None:
            return (self.design.size,)
        ends = np.flatnonzero(names[1:] != names[:-1]) + 1
        return tuple(np.diff([0, *ends, len(names)]).tolist())

    @cached_property
    def differing(self) -> tuple[tuple[int, ...], ...]:
        """Of each run of cells of one policy, which leaves of `(policy, params)` differ in it.

        Raises `ValidationError` unless the task allows the numbers of every cell, and one program
        serves those of a run.
        """
        found, start = [], 0
        for block in self.blocks:
            env, cells = self.cells(range(start, start + block))
            forms = sorted({str(jax.tree.structure(cell.policy)) for cell in cells})
            require(len(forms) == 1, "policy", forms[:2], "of one form over the arguments swept")
            for cell in {self._numbers(cell.number): cell for cell in reversed(cells)}.values():
                with of_cell(cell.number, self.design):
                    env.validate(cell.params)
            found.append(differing([(cell.policy, cell.params) for cell in cells]))
            start += block
        return tuple(found)

    @property
    def chunks(self) -> list[Chunk]:
        """The parts that it is played in."""
        return list(chunks(self.blocks, max(1, EPISODES // self.episodes)))

    @property
    def measures(self) -> Mapping[str, str]:
        """What is measured, and its unit."""
        return MEASURES

    def attributes(self, column: str) -> dict[str, str]:
        """What a column is, and its unit, as far as that is documented."""
        if column in ("policy", "seed") or column.startswith("policy."):
            return {}
        return described(self.made[1], column)

    def work(self, chunk: Chunk) -> int:
        """Episodes that a chunk takes."""
        return chunk.room * self.episodes

    def play(self, chunk: Chunk, told: Told = lambda ended: None) -> dict[str, np.ndarray]:
        """`{measure: float64[cells]}` of a chunk's cells."""
        env, cells = self.cells(range(chunk.first, chunk.first + chunk.cells))
        # Room that is left over plays the last cell again, so that one program serves all chunks.
        every = [*cells, *cells[-1:] * (chunk.room - chunk.cells)]
        which = self.differing[chunk.block]
        found = measured(env, every, self.seed, self.episodes, which, told)
        return {name: values[: chunk.cells] for name, values in found.items()}

    @cached_property
    def description(self) -> dict[str, Any]:
        """What exactly it is, for JSON: by this a store knows its sweep."""
        columns = self.design.columns
        params = {path: np.asarray(x) for path, x in paths.leaves(self.made[1]).items()}
        return {
            "task": self.task,
            "version": registry.find(self.task).version,
            "policy": None if "policy" in columns else self.policy,
            "learned": {name: held(name) for name in self._policies if held(name)},
            "arguments": {name: str(x) for name, x in self.arguments.items()},
            "overrides": {name: np.asarray(x).tolist() for name, x in self.overrides.items()},
            "static": {name: str(x) for name, x in self.static.items()},
            "plumes": self.plumes,
            "episodes": self.episodes,
            "seed": self.seed,
            "shape": list(self.design.shape),
            "axes": [[name, list(names)] for name, names in self.design.axes],
            "values": hashed(self.design),
            "params": {path: _shown(x) for path, x in params.items()},
            "versions": {
                "plumejax": __version__,
                "jax": jax.__version__,
                "numpy": np.__version__,
                "python": platform.python_version(),
            },
        }

    def run(
        self,
        store: str | Path | None = None,
        *,
        executor: Literal["local", "ray"] = "local",
        progress: Callable[[int], None] | None = None,
    ) -> Any:
        """The sweep as an `xarray.Dataset`: of each cell the fields of `evaluation.statistics.
        Summary`, along the axes of the design, with units.

        Args:
          store: a directory (*.zarr) that gets the chunks as they end; what is there already is not
            played again. By default nothing is kept.
          executor: "local", the devices of this process, or of all processes of a program under
            `jax.distributed`, where process 0 alone has the store; "ray", the workers of a Ray
            cluster, that of the environment variable RAY_ADDRESS or one of this machine.
          progress: is told how many more episodes have ended; by default a bar is shown.

        Raises:
          ValidationError: a store of another sweep.
          PlumeError: xarray, zarr or ray is not installed.
        """
        from plumejax.sweeps.running import run

        return run(self, None if store is None else Path(store), executor, progress)

    @property
    def _policies(self) -> list[str]:
        return sorted(set(self.design.columns.get("policy", [self.policy])))

    @property
    def _swept_paths(self) -> list[str]:
        special = {"policy", "seed"}
        known = self.design.columns
        return [x for x in known if x not in special and not x.startswith("policy.")]

    @property
    def _swept_arguments(self) -> list[str]:
        return [x.removeprefix("policy.") for x in self.design.columns if x.startswith("policy.")]

    def _numbers(self, number: int) -> bytes:
        """What the task's numbers in a cell are known by."""
        return b"".join(self.design.columns[path][number].tobytes() for path in self._swept_paths)

    def _trial(self, policy: str, arguments: Mapping[str, Any]) -> Trial:
        return Trial(
            self.task,
            policy,
            seed=self.seed,
            arguments=arguments,
            overrides=self.overrides,
            static=self.static,
            plumes=self.plumes,
        )

    def _require_known(self) -> None:
        """Raise unless every column names something, and its values are of the right kind."""
        known, columns = paths.leaves(self.made[1]), self.design.columns
        for name, values in columns.items():
            if name in ("policy", "seed"):
                kind, what = ("U", "names") if name == "policy" else ("iu", "whole numbers")
                good = values.dtype.kind in kind and values.ndim == 1
                require(good, name, values, f"{what}, one a cell")
                fits = name == "policy" or bool(np.all((values >= 0) & (values < 2**31)))
                require(fits, name, values, "0 <= seed < 2**31")
            elif not name.startswith("policy."):
                rolled = self.plumes > 0 and name.startswith("plume.")
                require(not rolled, f"plumes, with {name} swept", self.plumes, "0")
                if name not in known:
                    hint = near(name, [*known, "policy", "seed"])
                    raise ValidationError(
                        f"{name!r} names no number of {self.task}.{hint} It has:"
                        f" {', '.join(known)}; and there are policy, policy.NAME and seed"
                    )
                paths.fit(name, values[0], known[name])
        require("policy" not in columns or not self.arguments, "arguments", self.arguments, "none")


def _shown(numbers: np.ndarray) -> Any:
    """Numbers for a description; of large arrays, such as a bank's, their hash."""
    if numbers.size <= 64:
        return numbers.tolist()
    return "sha256 " + hashlib.sha256(np.ascontiguousarray(numbers).tobytes()).hexdigest()


def require_seed(name: str, seed: Any, most: int = 2**31 - 1) -> None:
    """Raise `ValidationError` unless it is a whole number from 0 to `most`."""
    good = isinstance(seed, int) and not isinstance(seed, bool) and 0 <= seed <= most
    require(good, name, seed, f"an int from 0 to {most}")


def require_tables(sweep: Any, *names: str) -> None:
    """Raise `ValidationError` unless these attributes are mappings from names."""
    for name in names:
        given = getattr(sweep, name)
        good = isinstance(given, Mapping) and all(isinstance(key, str) for key in given)
        require(good, name, given, "a table: {name: value}")


def require_axes(axes: Any) -> None:
    """Raise `ValidationError` unless they are a design or a mapping from names."""
    good = isinstance(axes, Design)
    good = good or (isinstance(axes, Mapping) and all(isinstance(key, str) for key in axes))
    require(good, "axes", axes, "{name: values}, or a Design")


def hashed(design: Design) -> str:
    """What tells the values of a design from others."""
    columns = design.columns.values()
    content = b"".join(np.ascontiguousarray(values).tobytes() for values in columns)
    return hashlib.sha256(content).hexdigest()


@contextmanager
def of_cell(number: int, design: Design) -> Iterator[None]:
    """What is refused inside is said to be of a cell."""
    try:
        yield
    except ValidationError as error:
        own = {name: np.asarray(x[number]).tolist() for name, x in design.columns.items()}
        raise ValidationError(f"in the cell {json.dumps(own)}: {error}") from None
