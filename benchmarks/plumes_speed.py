"""benchmarks/plumes_speed: puffs moved a second, and steps of a search in puffs, beside peers.

    taskset -c 0 python -m benchmarks.plumes_speed FILE.json

One core, since the peers use one: `plumes_validation` runs it so.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import tyro

import plumejax
from benchmarks.measure import Case, Prepared, Row, loop, measure_round, random_actions, start
from benchmarks.report import Verdict
from plumejax.base.batch import Batch
from plumejax.plumes import catalogue
from plumejax.plumes.bank import Plan, make_bank, write_bank
from plumejax.plumes.grids import Grid
from plumejax.plumes.movies import movie_plume, open_movie

TRACKING_NETS = 86.0
"""Steps a second of one core of the published plume-tracking code, as the design pages have it."""

WARMUP = 60.0
"""Seconds after which as many puffs leave the plume as are born."""


def cases(quick: bool) -> list[Case]:
    """All are timed in turns."""
    puffs = [
        _puffs("pompy", "pompy PlumeModel and WindModel, their defaults", 1, _pompy),
        *(
            _puffs(f"{name}/{lanes}", f"preset {name}", lanes, partial(_live, name, lanes))
            for name in ("farrell", "farrell-straight", "tracking-code")
            for lanes in ((1,) if quick else (1, 8))
        ),
    ]
    live = [
        _steps("search-live", "in the tracking plume, live", lanes, _live_search)
        for lanes in ((1,) if quick else (1, 16))
    ]
    particles = [
        _steps(
            "search-particles", "in a bank of particles", lanes, partial(_search, _particle_task)
        )
        for lanes in ((256,) if quick else (1, 256))
    ]
    pictures = [
        _steps("search-raster", "in a bank of pictures", lanes, partial(_search, _raster_task))
        for lanes in ((1024,) if quick else (1, 1024))
    ]
    return [*puffs, *live, *particles, *pictures]


def _puffs(key: str, label: str, lanes: int, prepare: Callable[[], Prepared]) -> Case:
    return Case(key, f"{label}: living puffs x steps", lanes, prepare)


def _steps(kind: str, where: str, lanes: int, prepare: Callable[[int], Prepared]) -> Case:
    label = f"PlumeSearchLocal-v0 {where}: steps of a lane"
    return Case(f"{kind}/{lanes}", label, lanes, partial(prepare, lanes))


def _live(name: str, lanes: int) -> Prepared:
    """Plumes that have been blowing for a minute."""
    plume, params = catalogue.make(name)
    steps = max(4, 2000 // lanes // plume.substeps)
    warm = round(WARMUP / float(params.dt)) // plume.substeps

    def run(states: Any, key: jax.Array, count: int) -> Any:
        def one(states: Any, key: jax.Array) -> Any:
            keys = jax.random.split(key, lanes)
            states = jax.vmap(plume.advance, in_axes=(0, 0, None))(keys, states, params)
            return states, states.particles.alive.sum()

        states, living = jax.lax.scan(one, states, jax.random.split(key, count))
        return states, living.sum()

    compiled = jax.jit(run, static_argnums=2, donate_argnums=0)
    keys = jax.random.split(jax.random.key(0), lanes)
    states = jax.jit(jax.vmap(plume.start, in_axes=(0, None)))(keys, params)
    states, _ = compiled(states, jax.random.key(1), warm)
    times = iter(range(2, 1 << 30))

    def once() -> int:
        nonlocal states
        states, living = compiled(states, jax.random.key(next(times)), steps)
        return int(living) * plume.substeps

    return Prepared(once)


def _pompy() -> Prepared:
    """The plume of the preset `farrell` by its usual program: one region of wind, one of puffs."""
    from pompy import models

    rng = np.random.RandomState(0)
    wind = models.WindModel(models.Rectangle(0.0, 100.0, -50.0, 50.0), 21, 21, rng=rng)
    region = models.Rectangle(0.0, 50.0, -12.5, 12.5)
    plume = models.PlumeModel(region, (5.0, 0.0, 0.0), wind, rng=rng)

    def once() -> int:
        living = 0
        for _ in range(20):
            wind.update(0.01)
            plume.update(0.01)
            living += len(plume.puffs)
        return living

    for _ in range(round(WARMUP / 0.01) // 20):
        once()
    return Prepared(once)


GRID = (13, 21)
"""Cells of a metre, with the source at (2, 10); the pictures have cells of a tenth of that."""


def _moved(seconds: float) -> tuple[Any, Any]:
    """The tracking plume with all of its box on the grid, warmed up for so long."""
    plume, params = catalogue.make("tracking-code", warmup=round(seconds / 0.04))
    source, high = np.float32([2, 10]), np.float32([12, 20])
    return plume, params.replace(source=source, low=np.zeros(2, np.float32), high=high)


def _task(plume: Any, params: Any, grid: tuple[int, int], radius: float) -> tuple[Any, Any]:
    """`PlumeSearchLocal-v0` in that plume: 300 steps, found within a metre."""
    env, numbers = plumejax.make("PlumeSearchLocal-v0", grid_size=grid, plume=plume)
    ending = numbers.ending.replace(radius=np.float32(radius))
    numbers = numbers.replace(plume=params, ending=ending, max_steps=np.int32(300))
    env.validate(numbers)
    return env, numbers


def _particle_task() -> tuple[Any, Any]:
    plume, params = _moved(0.0)
    key, warmup = jax.random.key(0), round(30 / 0.04)
    bank, numbers = make_bank(plume, params, key, 2, 600, warmup=warmup, margin=300)
    return _task(bank, jax.device_put(numbers), GRID, 1.0)


def _raster_task() -> tuple[Any, Any]:
    plume, params = _moved(0.0)
    plan = Plan(Grid((120, 200), (0.1, 0.1), (0.0, 0.0)), 1, 200, warmup=round(30 / 0.04))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "bank"
        write_bank(path, plume, params, jax.random.key(0), plan)
        player, numbers = movie_plume(open_movie(path))
        # From here on a length is a cell, so that a move is one.
        numbers = numbers.replace(
            frames=np.array(numbers.frames),
            spacing=np.ones(2, np.float32),
            source=np.float32([20, 100]),
        )
    return _task(player, jax.device_put(numbers), plan.grid.size, 10.0)


def _search(make: Callable[[], tuple[Any, Any]], lanes: int) -> Prepared:
    """A bank under random actions; a lane that ends starts anew."""
    env, params = make()
    batch = Batch(env, lanes, final_observation=False)

    def step(key: jax.Array, state: Any, params: Any) -> Any:
        act, key = jax.random.split(key)
        return batch.step(key, state, random_actions(act, lanes, 4), params)[1]

    state = start(batch.reset, jax.random.key(0), params)[1]
    return loop(step, state, lanes, max(100, 2**14 // lanes), params)


def _live_search(lanes: int) -> Prepared:
    """The same in a live plume; a lane that ends takes one of four starts made ready before.

    To blow a plume for half a minute at every start would cost more than the episode.
    """
    env, params = _task(*_moved(30.0), GRID, 1.0)
    batch = Batch(env, lanes, final_observation=False)

    def step(key: jax.Array, state: Any, starts: Any, params: Any) -> Any:
        act, step_key, key = jax.random.split(key, 3)
        action = random_actions(act, lanes, 4)
        _, state, _, terminated, truncated, _ = batch.advance(step_key, state, action, params)
        place = jax.random.randint(key, (lanes,), 0, 4)
        done = terminated | truncated

        def begin(lane: jax.Array, first: jax.Array) -> jax.Array:
            return jnp.where(done.reshape(-1, *(1,) * (lane.ndim - 1)), first[place], lane)

        return jax.tree.map(begin, state, starts)

    keys = jax.random.split(jax.random.key(0), 4)
    starts = jax.jit(jax.vmap(env.reset, in_axes=(0, None)))(keys, params)[1]
    state = jax.tree.map(lambda x: x[jnp.arange(lanes) % 4], starts)
    return loop(step, state, lanes, max(50, 400 // lanes), starts, params)


TARGETS = (
    ("puff-steps of farrell : pompy's", "farrell", "pompy", 100),
    ("puff-steps of farrell-straight : pompy's", "farrell-straight", "pompy", 100),
    ("puff-steps of tracking-code : pompy's", "tracking-code", "pompy", 100),
    ("steps of a search, live : plumetracknets' 86", "search-live", None, 50),
    ("steps of a search, bank of particles : 86", "search-particles", None, 200),
    ("steps of a search, bank of pictures : 86", "search-raster", None, 200),
)


def verdicts(rows: Sequence[Row]) -> list[Verdict]:
    """Ratios per CPU-second, of medians, for each number of lanes that was measured."""
    rates = {row.key: row.cpu.median for row in rows if row.cpu}
    found = []
    for label, of, to, target in TARGETS:
        against = TRACKING_NETS if to is None else rates.get(to)
        for row in rows:
            if row.key.rpartition("/")[0] == of:
                reached = rates[row.key] / against if against and row.key in rates else None
                lanes = f"{row.lanes} lane{'s' * (row.lanes > 1)}"
                found.append(Verdict(f"{label}, {lanes}", ">=", target, reached))
    return found


def main(out: Path, /, *, quick: bool = False) -> None:
    """Measure and write rows.

    Args:
      out: JSON to write.
      quick: fewer rows, shorter samples.
    """
    rows = measure_round(cases(quick), 3 if quick else 5, 0.3 if quick else 1.0)
    out.write_text(json.dumps([asdict(row) for row in rows]))


if __name__ == "__main__":
    tyro.cli(main)
