"""evaluation/histories: what a trained network had in mind, beside what was the case."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from plumejax.base.compiling import jit_by_class
from plumejax.base.errors import require
from plumejax.base.extras import need
from plumejax.evaluation import lanes as side_by_side
from plumejax.evaluation.episodes import Episode, Lane, Numbers
from plumejax.learning.agent import Agent
from plumejax.search.environment import PlumeSearch


@jit_by_class(static=("env", "episodes", "steps"))
def _follow(
    env: PlumeSearch, agent: Agent, key: jax.Array, params: Any, episodes: int, steps: int
) -> tuple[Any, dict[str, jax.Array]]:
    """`(outcomes, columns)`, columns lead with [steps, episodes]."""
    game, numbers = Episode(env), Numbers(agent, key, params)

    def row(before: Lane, after: Lane) -> dict[str, jax.Array]:
        state = before.state
        memory, hidden = after.memory
        action = memory.action
        done = jnp.argmax(action) if agent.encoder.discrete else agent.encoder.allowed(action)
        own = env.episode_params(state, params)
        air = env.plume.sample(state.plume, state.agent.position[None], own.plume)
        leaves = [jnp.ravel(x).astype(jnp.float32) for x in jax.tree.leaves(state.observation)]
        units = [jnp.ravel(x) for x in jax.tree.leaves(hidden)]
        return {
            "observation": jnp.concatenate(leaves),
            "hidden": jnp.concatenate(units) if units else jnp.zeros(0, jnp.float32),
            "action": done,
            "reward": after.state.total_reward - state.total_reward,
            "position": state.agent.position,
            "heading": state.agent.heading,
            "concentration": air.concentration[0],
            "wind": air.wind[0],
            "distance": env.info(state, own)["distance"],
            "running": ~game.over(numbers, before),
        }

    def one(table: Lane, _: None) -> tuple[Lane, dict[str, jax.Array]]:
        after = side_by_side.step(game, numbers, table)
        return after, jax.vmap(row)(table, after)

    table = side_by_side.begin(game, numbers, jnp.arange(episodes, dtype=jnp.uint32))
    table, columns = jax.lax.scan(one, table, None, steps)
    return jax.vmap(game.view)(table), columns


_AXES = {
    "observation": ("number",),
    "hidden": ("unit",),
    "position": ("axis",),
    "wind": ("wind_axis",),
}


def histories(
    env: PlumeSearch, agent: Agent, key: jax.Array, params: Any, episodes: int, steps: int
) -> Any:
    """An `xarray.Dataset` of episodes of a trained agent, dimensions `episode` and `step`.

    At step t stand the observation, the hidden state and the action that followed from it, the
    reward that the action brought; and of the moment before the action the position, heading,
    distance to the source, and concentration and wind at the agent, whether it senses them or not.
    After an episode's end `running` is False and floats are not numbers.

    Args:
      env, params: of a search.
      agent: from `load_agent`; the hidden state of one without a recurrent layer has no units.
      key: of the episodes, as in `play`.
      episodes: how many.
      steps: the longest that is kept.

    Raises:
      PlumeError: xarray is not installed (the extra `data`).
      ValidationError: no search, or another policy.
    """
    xarray = need("xarray", "data")
    require(isinstance(env, PlumeSearch), "env", env, "a search")
    require(isinstance(agent, Agent), "agent", agent, "a trained one, from load_agent")
    outcomes, columns = jax.device_get(_follow(env, agent, key, params, episodes, steps))
    running = columns.pop("running").T
    units = {
        "reward": "1",
        "position": "lengths of the plume",
        "heading": "degrees counter-clockwise from +x",
        "concentration": getattr(env.plume, "unit", "arbitrary units"),
        "wind": "lengths of the plume a second",
        "distance": "lengths of the plume",
    }
    data = {}
    for name, column in columns.items():
        values = np.moveaxis(column, 1, 0)
        if values.dtype.kind == "f":
            gone = ~running.reshape(*running.shape, *(1,) * (values.ndim - 2))
            values = np.where(gone, np.float32(np.nan), values)
        own = _AXES.get(name, ("component",) if values.ndim > 2 else ())
        data[name] = (("episode", "step", *own), values, {"units": units.get(name, "")})
    return xarray.Dataset(
        {**data, "running": (("episode", "step"), running)},
        coords={
            "time": ("step", np.arange(steps) * float(params.dt), {"units": "s"}),
            "found": ("episode", np.asarray(outcomes.found)),
            "steps": ("episode", np.asarray(outcomes.steps)),
        },
        attrs={"about": "episodes of a trained agent, step by step (plumejax)"},
    )
