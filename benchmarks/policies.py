"""benchmarks/policies: `python -m benchmarks.policies`: how many decisions a CPU-second makes.

A step is all that a policy does in one: the belief updated with the hits, then the move, of 1024
searchers side by side. For that of infotaxis OTTO (Loisy, Eloy 2022), one searcher in NumPy, takes
0.46 CPU-ms on 19 x 19 cells and 0.61 on 81 x 41 in wind, measured elsewhere. `python -m benchmarks`
has these cases too.
"""

from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import tyro
from rich.console import Console

import plumejax
from benchmarks import report
from benchmarks.measure import Case, Prepared, loop, measure_round, start
from plumejax.policies.bayesian import POLICIES

RESULTS = Path(__file__).parent / "results" / "policies.json"

LANES = 1024

TASKS = {"19x19": "Olfactory-Isotropic-19x19-v0", "81x41": "Olfactory-Windy-Medium-v0"}


def main(*, seconds: float = 0.5, repeats: int = 5, out: Path = RESULTS) -> None:
    """Steps of every Bayesian policy on this machine's CPU: one table, and JSON.

    Args:
      seconds: least length of a sample.
      repeats: samples of each; the median counts.
      out: JSON to write.
    """
    rows = [row for case in cases() for row in measure_round([case], repeats, seconds)]
    targets = [verdict for verdict in report.verdicts(rows) if verdict.reached is not None]
    report.write(out, report.document(rows, [], targets))
    console = Console(width=120)
    console.print(report.table(rows, "Bayesian policies", targets))
    console.print(str(out), highlight=False, soft_wrap=True)


def cases() -> list[Case]:
    """One a policy and task."""
    return [case(name, short) for short in TASKS for name in POLICIES]


def promised() -> list[Case]:
    """Those that have a target."""
    return [case("infotaxis", short) for short in TASKS]


def case(name: str, short: str) -> Case:
    """The policy called `name` on a task of `TASKS`."""
    label = f"{name}, {TASKS[short]}: belief and decision"
    return Case(f"{name}/{short}", label, LANES, partial(prepare, name, TASKS[short], LANES))


def prepare(name: str, task: str, lanes: int) -> Prepared:
    """The policy by itself: it moves as it decides, and of counts three in a hundred are 1.

    So beliefs spread and narrow as in searches, at a cost that the policy does not notice.
    """
    env, params = plumejax.make(task)
    policy = POLICIES[name](env, params)

    def one(key: jax.Array, carry: Any, policy: Any) -> Any:
        hit_key, act_key = jax.random.split(key)
        memory, place = carry
        hits = jax.random.bernoulli(hit_key, 0.03, (lanes, 1)).astype(jnp.float32)
        observation = jnp.concatenate([hits, place.astype(jnp.float32)], axis=1)
        keys = jax.random.split(act_key, lanes)
        action, memory = jax.vmap(policy.act)(keys, memory, observation)
        return memory, jax.vmap(policy.moved)(place, action)

    def begin(policy: Any) -> Any:
        keys = jax.random.split(jax.random.key(0), lanes)
        place = jnp.asarray(params.start.position, jnp.int32)
        return jax.vmap(policy.init)(keys), jnp.tile(place, (lanes, 1))

    steps = 2 if name == "k-step-infotaxis" else 20
    return loop(one, start(begin, policy), lanes, steps, policy)


if __name__ == "__main__":
    tyro.cli(main)
