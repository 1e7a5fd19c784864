"""sweeps/trainings: how well PPO learns a task, over its hyperparameters and over seeds."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import jax
import numpy as np

from plumejax.base import registry
from plumejax.base.errors import require
from plumejax.evaluation.trials import on_bank
from plumejax.learning.checkpoints import describe, versions
from plumejax.learning.ppo import PPO, Hyperparameters, Training, continue_training
from plumejax.learning.recipes import recipe
from plumejax.learning.runs import RunConfig, acting, changed, make_task, make_training, new_config
from plumejax.learning.seeds import each, one_of
from plumejax.sweeps.chunks import MEASURES, Cell, Chunk, Told, chunks, measured, out_of_memory
from plumejax.sweeps.designs import Design, crossed, grid
from plumejax.sweeps.sweep import hashed, of_cell, require_axes, require_seed, require_tables
from plumejax.sweeps.units import described


@dataclass(frozen=True, eq=False)
class TrainingSweep:
    """PPO on a task over many values of its hyperparameters, each with several seeds.

    All trainings are one program, `at_once` of them in a call; each then plays `episodes` fresh
    episodes, drawing its actions, as `plumejax train` shows them. The seeds are the last axis.

    Attributes:
      task: its id.
      axes: `{name: values}` of fields of `learning.ppo.Hyperparameters`, or a `Design` of them.
      seeds: trainings of each setting: of `seed` and those that follow it.
      seed: the first, and that of the episodes.
      steps: environment steps of each training, rounded up to whole calls of 5 updates; by default
        what the task takes.
      shapes: fields of `learning.ppo.Shapes` that are not as the task has them.
      hyperparameters: those of every cell that are not as the task has them.
      overrides: numbers of the task, by dotted path.
      data: path of a recording, for a task that plays one.
      episodes: of each evaluation.
      at_once: trainings in a call: on an accelerator side by side, on a CPU one after the other.
        What is lost of a sweep that is stopped.

    Raises:
      ValidationError: at once, for whatever is not there or not allowed.
    """

    task: str
    axes: Mapping[str, Any] | Design
    seeds: int = 4
    seed: int = 0
    steps: int | None = None
    shapes: Mapping[str, Any] = field(default_factory=dict)
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)
    overrides: Mapping[str, Any] = field(default_factory=dict)
    data: str | None = None
    episodes: int = 1000
    at_once: int = 4

    def __post_init__(self) -> None:
        for name in ("seeds", "episodes", "at_once", "steps"):
            value = getattr(self, name)
            good = type(value) is int and value > 0
            require(good or (name == "steps" and value is None), name, value, "an int > 0")
        require_seed("seed", self.seed, 2**31 - self.seeds)
        require_tables(self, "shapes", "hyperparameters", "overrides")
        require_axes(self.axes)
        _ = self.config  # for what it raises
        columns = self._settings.columns
        twice = sorted(set(columns) & set(self.hyperparameters))
        require(not twice, "hyperparameters", twice, "those that are no axes")
        require("seed" not in columns, "axes", list(columns), "without the seed: give seeds")
        for name, values in columns.items():
            require(values.ndim == 1, f"{name}: shape", values.shape, "one number a cell")
        for number in range(self.design.size):
            with of_cell(number, self.design):
                self._hyper(number)

    @cached_property
    def design(self) -> Design:
        """The cells: every setting with every seed."""
        return crossed(self._settings, "seed", np.arange(self.seed, self.seed + self.seeds))

    @property
    def chunks(self) -> list[Chunk]:
        """The parts that it is trained in."""
        return list(chunks((self.design.size,), self.at_once))

    @property
    def measures(self) -> Mapping[str, str]:
        """What is measured, and its unit."""
        return MEASURES

    def attributes(self, column: str) -> dict[str, str]:
        """What a column is, and its unit, as far as that is documented."""
        return {} if column == "seed" else described(self.config.hyperparameters, column)

    def work(self, chunk: Chunk) -> int:
        """Updates that a chunk takes."""
        return chunk.room * self.config.updates

    @cached_property
    def config(self) -> RunConfig:
        """Of the first seed, without what is swept."""
        return new_config(
            self.task,
            seed=self.seed,
            steps=self.steps,
            data=self.data,
            settings=self.overrides,
            shapes=self.shapes,
            hyperparameters=self.hyperparameters,
        )

    @cached_property
    def description(self) -> dict[str, Any]:
        """What exactly it is, for JSON: by this a store knows its sweep."""
        config = self.config
        return {
            "task": self.task,
            "version": registry.find(self.task).version,
            "training": {
                "updates": config.updates,
                "shapes": {k: str(x) for k, x in vars(config.shapes).items()},
                "hyperparameters": {k: float(x) for k, x in vars(config.hyperparameters).items()},
            },
            "overrides": {name: np.asarray(x).tolist() for name, x in self.overrides.items()},
            "data": self.data,
            "episodes": self.episodes,
            "seed": self.seed,
            "shape": list(self.design.shape),
            "axes": [[name, list(names)] for name, names in self.design.axes],
            "values": hashed(self.design),
            "params": describe(make_task(config)[1]),
            "versions": versions(),
        }

    def run(
        self,
        store: str | Path | None = None,
        *,
        executor: Literal["local", "ray"] = "local",
        progress: Callable[[int], None] | None = None,
    ) -> Any:
        """The sweep as an `xarray.Dataset`, as `Sweep.run` gives it; a training that has diverged
        is NaN. Arguments and errors are those of `Sweep.run`; `progress` is told of updates."""
        from plumejax.sweeps.running import run

        if executor == "local":
            _ = self._training, self._played  # before several threads ask for them
        return run(self, None if store is None else Path(store), executor, progress)

    def play(self, chunk: Chunk, told: Told = lambda done: None) -> dict[str, np.ndarray]:
        """`{measure: float64[cells]}` of a chunk's cells, trained and evaluated."""
        numbers = range(chunk.first, chunk.first + chunk.cells)
        # Room that is left over trains the last cell again, so that one program serves all chunks.
        every = [*numbers, *[numbers[-1]] * (chunk.room - chunk.cells)]
        found = self._evaluated(self._trained(every, told), every)
        return {name: values[: chunk.cells] for name, values in found.items()}

    def _trained(self, numbers: list[int], told: Told) -> list[Any]:
        """The agents of cells, trained in one program; of half of them at a time where the device
        has too little memory."""
        algorithm, params = self._training
        params = jax.device_put(params)  # on the device of this thread
        hypers = [self._hyper(number) for number in numbers]
        hyper = jax.tree.map(lambda *x: np.asarray(x, np.float32), *hypers)
        seeds = self.design.columns["seed"][numbers].astype(np.uint32)
        a_call, done = self.config.updates_per_call, 0
        try:
            training = _begin(algorithm, seeds, params)
            while done < self.config.updates:
                training = jax.block_until_ready(_go_on(algorithm, training, hyper, params, a_call))
                told(len(numbers) * a_call)
                done += a_call
        except jax.errors.JaxRuntimeError as error:
            half = len(numbers) // 2
            if not out_of_memory(error) or half == 0:
                raise
            told(-len(numbers) * done)
            return [
                x for part in (numbers[:half], numbers[half:]) for x in self._trained(part, told)
            ]
        agents = jax.device_get(algorithm.agent(training))
        return [one_of(agents, i) for i in range(len(numbers))]

    def _evaluated(self, agents: list[Any], numbers: list[int]) -> dict[str, np.ndarray]:
        env, params = self._played
        sound = [all(np.all(np.isfinite(x)) for x in jax.tree.leaves(agent)) for agent in agents]
        agents = [jax.tree.map(np.nan_to_num, agent) for agent in agents]
        cells = [
            Cell(number, acting(agent, env), params, None)
            for number, agent in zip(numbers, agents, strict=True)
        ]
        found = measured(env, cells, self.seed, self.episodes)
        return {name: np.where(sound, values, np.nan) for name, values in found.items()}

    @cached_property
    def _settings(self) -> Design:
        return self.axes if isinstance(self.axes, Design) else grid(self.axes)

    @cached_property
    def _training(self) -> tuple[PPO, Any]:
        return make_training(self.config)

    @cached_property
    def _played(self) -> tuple[Any, Any]:
        env, params = make_task(self.config)
        return on_bank(env, params, recipe(env).plumes, self.seed)

    def _hyper(self, number: int) -> Hyperparameters:
        columns = self.design.columns
        own = {name: columns[name][number].item() for name in columns if name != "seed"}
        return changed(self.config.hyperparameters, own)


@partial(jax.jit, static_argnames=("algorithm",))
def _begin(algorithm: PPO, seeds: jax.Array, params: Any) -> Training:
    """Trainings that have not begun, of uint32[n] seeds; leaves lead with n."""

    def one(seed: jax.Array, params: Any) -> Training:
        return algorithm.init(jax.random.key(seed), params)

    return each(one)(seeds, params)


@partial(jax.jit, static_argnames=("algorithm", "updates"), donate_argnames=("trainings",))
def _go_on(
    algorithm: PPO, trainings: Training, hyper: Hyperparameters, params: Any, updates: int
) -> Training:
    """Trainings, n of them, after so many more updates, each by its own of n hyperparameters."""

    def one(own: tuple[Training, Hyperparameters], params: Any) -> Training:
        training, hyper = own
        return continue_training(algorithm, training, params, hyper, updates)[0]

    return each(one)((trainings, hyper), params)


class Best(NamedTuple):
    """The best setting of a sweep of trainings.

    Attributes:
      setting: its hyperparameters, by name.
      median, least, greatest: share of episodes that found the source, over its seeds.
    """

    setting: dict[str, float]
    median: float
    least: float
    greatest: float


def best(data: Any) -> Best:
    """The setting whose median success over its seeds is the greatest, and of equal ones that
    whose mean is; a training that diverged counts as -1. `data` as from `TrainingSweep.run`."""
    good = "success" in data and "seed" in data.success.dims
    require(good, "data", list(data.sizes), "what TrainingSweep.run gives, with an axis of seeds")
    success = data.success.fillna(-1.0)
    success = success.transpose(..., "seed").stack(setting=success.dims[:-1])
    median, average = success.median("seed").values, success.mean("seed").values
    place = int(np.lexsort((average, median))[-1])
    own = success.isel(setting=place)
    columns = [x for x in data.coords if "seed" not in data[x].dims and x not in ("cell",)]
    setting = {str(x): float(own[x]) for x in columns}
    return Best(setting, float(median[place]), float(own.min()), float(own.max()))
