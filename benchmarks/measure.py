"""benchmarks/measure: what a case is, and how several of them are timed against each other."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from statistics import median
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

MOST_BYTES = 4 * 2**30
"""A compiled loop that needs more memory than this is left out, and its row says so."""


class Spread(NamedTuple):
    """Median, least and greatest of several samples."""

    median: float
    low: float
    high: float


class Prepared(NamedTuple):
    """A case ready to run.

    Attributes:
      once: does some work, waits for it and returns how many steps it did.
      facts: what making it ready told: `compile_seconds`, `state_bytes` and `temporary_bytes`
        (both a lane).
    """

    once: Callable[[], int]
    facts: dict[str, float] = {}


@dataclass(frozen=True)
class Case:
    """Something whose steps a second are measured.

    Attributes:
      key: short and unique, what ratios and `--only` refer to.
      label: what it is and what one step of it is.
      lanes: episodes side by side.
      prepare: makes it ready; what it raises becomes the row's note.
      series: the line of a plot that it is a point of.
      size: the point's place on the horizontal axis of a plot of sizes.
    """

    key: str
    label: str
    lanes: int
    prepare: Callable[[], Prepared]
    series: str = ""
    size: int | None = None


@dataclass
class Row:
    """One line of the table: either rates, or seconds, or a note that says why there is neither."""

    key: str
    label: str
    lanes: int
    series: str = ""
    size: int | None = None
    wall: Spread | None = None
    cpu: Spread | None = None
    seconds: Spread | None = None
    facts: dict[str, float] = field(default_factory=dict)
    note: str = ""


class LeftOutError(Exception):
    """Why a case is not run."""


def spread(samples: list[float]) -> Spread:
    return Spread(median(samples), min(samples), max(samples))


def measure_round(
    cases: list[Case], repeats: int, seconds: float, tick: Callable[[str], None] = lambda _: None
) -> list[Row]:
    """A row for each case, timed in turns (A, B, A, B, ...) so that all share the machine's moods.

    Args:
      cases: prepared first, all of them.
      repeats: samples of each.
      seconds: least length of a sample.
      tick: called with a case's key when it is ready and after each of its samples.
    """
    rows = [Row(case.key, case.label, case.lanes, case.series, case.size) for case in cases]
    ready: list[tuple[Row, Callable[[], int]]] = []
    for case, row in zip(cases, rows, strict=True):
        try:
            prepared = case.prepare()
            prepared.once()
            row.facts = prepared.facts
            ready.append((row, prepared.once))
        except Exception as error:  # a peer may fail in any way; the row says how
            row.note = short(error)
        tick(case.key)
    samples: dict[str, list[tuple[float, float]]] = {row.key: [] for row, _ in ready}
    for _ in range(repeats):
        for row, once in ready:
            samples[row.key].append(sample(once, seconds))
            tick(row.key)
    for row, _ in ready:
        wall, cpu = zip(*samples[row.key], strict=True)
        row.wall, row.cpu = spread(list(wall)), spread(list(cpu))
    return rows


def sample(once: Callable[[], int], seconds: float) -> tuple[float, float]:
    """Steps per wall second and per CPU-second (of all threads) over at least `seconds`."""
    steps, wall, cpu = 0, time.perf_counter(), time.process_time()
    while True:
        steps += once()
        elapsed = time.perf_counter() - wall
        if elapsed >= seconds:
            return steps / elapsed, steps / (time.process_time() - cpu)


def measure_seconds(key: str, label: str, take: Callable[[], float], repeats: int) -> Row:
    """A row of the seconds that `take` reports."""
    row = Row(key, label, 1)
    try:
        row.seconds = spread([take() for _ in range(repeats)])
    except Exception as error:
        row.note = short(error)
    return row


def short(error: Exception) -> str:
    """The error in one line."""
    if isinstance(error, LeftOutError):
        return f"left out: {error}"
    if isinstance(error, ImportError):
        return f"not installed: {error}"
    first = (str(error).strip().splitlines() or [""])[0]
    return f"does not run: {type(error).__name__}: {first}"[:160]


def loop(step: Callable[..., Any], carry: Any, lanes: int, steps: int, *constants: Any) -> Prepared:
    """`steps` times `carry = step(key, carry, *constants)` as one compiled scan, carry donated.

    The seconds of compilation are those of tracing, lowering and compiling; bytes are of the carry
    and of the scan's temporaries, a lane.

    Args:
      step: pure; must not drop what a user would look at, or the compiler drops it too.
      carry: pytree that leads with `lanes`; it is given up.
      lanes: episodes side by side.
      steps: of the scan.
      *constants: further arguments, such as params, not baked in.
    """

    def run(carry: Any, key: jax.Array, *constants: Any) -> Any:
        def one(carry: Any, key: jax.Array) -> tuple[Any, None]:
            return step(key, carry, *constants), None

        return jax.lax.scan(one, carry, jax.random.split(key, steps))[0]

    keys = _keys()
    began = time.perf_counter()
    compiled = jax.jit(run, donate_argnums=0).lower(carry, next(keys), *constants).compile()
    compile_seconds = time.perf_counter() - began
    memory = compiled.memory_analysis()
    total = memory.argument_size_in_bytes + memory.temp_size_in_bytes
    if total > MOST_BYTES:
        raise LeftOutError(f"needs {total / 2**30:.1f} GiB")
    state_bytes = sum(x.nbytes for x in jax.tree.leaves(carry))

    def once() -> int:
        nonlocal carry
        carry = jax.block_until_ready(compiled(carry, next(keys), *constants))
        return steps * lanes

    facts = {
        "compile_seconds": compile_seconds,
        "state_bytes": state_bytes / lanes,
        "temporary_bytes": memory.temp_size_in_bytes / lanes,
    }
    return Prepared(once, facts)


def random_actions(key: jax.Array, lanes: int, num_actions: int) -> jax.Array:
    """int32[lanes], uniform over 0..num_actions-1 (to 1/256): many actions from each random word.

    Everything in these tables is driven by them: drawing 4096 with `jax.random.randint` takes
    longer than stepping 4096 lanes.
    """
    width = 2 if num_actions in (2, 4) else 8
    each = 32 // width
    words = jax.random.bits(key, (-(-lanes // each),), jnp.uint32)
    # Concatenated, not interleaved, so that XLA makes vector instructions of it.
    mask = jnp.uint32(2**width - 1)
    parts = [(words >> jnp.uint32(width * i)) & mask for i in range(each)]
    return (jnp.concatenate(parts)[:lanes] % jnp.uint32(num_actions)).astype(jnp.int32)


def randint_actions(key: jax.Array, lanes: int, num_actions: int) -> jax.Array:
    """The same by `jax.random.randint`, as one writes it first."""
    return jax.random.randint(key, (lanes,), 0, num_actions, jnp.int32)


def start(make: Callable[..., Any], *args: Any) -> Any:
    """`make(*args)`, compiled in a hurry: for what is run once."""
    cpu = jax.default_backend() == "cpu"
    hurry = {"xla_backend_optimization_level": 0} if cpu else None
    return jax.block_until_ready(jax.jit(make, compiler_options=hurry)(*args))


def _keys() -> Iterator[jax.Array]:
    key = jax.random.key(1)
    while True:
        key, out = jax.random.split(key)
        yield out


def steps_of_a_scan(lanes: int, budget: int) -> int:
    """Steps that make `budget` steps of all lanes, within what is worth a call."""
    return max(4, min(2000, budget // lanes))
