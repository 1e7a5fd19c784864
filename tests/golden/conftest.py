"""tests/golden/conftest: a search set up as the peer's configuration says, and replayed."""

import math
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plumejax
from plumejax.base.spaces import Box
from plumejax.search.motion import Moves, Oriented, RunAndTumble
from plumejax.search.rewards import Sparse, StepPenalty
from plumejax.search.starts import Fixed


@dataclass(frozen=True)
class Headed(RunAndTumble):
    """Run and tumble with the angle handed in: the action is the new heading, or -1 to keep it."""

    random_step = False

    def space(self, params):
        return Box(-1.0, 360.0, ())

    def move(self, key, agent, action, air, arena, params):
        return self.run(agent, jnp.where(action < 0, agent.heading, action), arena, params)


MOTIONS = {"discrete": Moves(), "oriented": Oriented(), "run_tumble": Headed()}
REWARDS = {"sparse": Sparse(), "step_penalty": StepPenalty()}


class Replay(NamedTuple):
    """An episode of ours; `concentrations[0]` is at the start, all else follows the actions."""

    positions: np.ndarray
    rewards: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    concentrations: np.ndarray


@partial(jax.jit, static_argnames="env")
def _run(env, params, actions):
    def step(state, action):
        observation, state, reward, terminated, truncated, _ = env.step(
            jax.random.key(0), state, action, params
        )
        return state, (state.agent.position, reward, terminated, truncated, observation[0])

    observation, state = env.reset(jax.random.key(0), params)
    return observation, jax.lax.scan(step, state, actions)[1]


def _replay(config: dict, actions: list) -> Replay:
    env, params = plumejax.make(
        "PlumeSearchLocal-v0",
        grid_size=config["grid_size"],
        motion=MOTIONS[config["action_type"]],
        reward=REWARDS[config["reward_type"]],
        start=Fixed(),
        overrides={
            "plume.sigma": config["plume_sigma"],
            "plume.source": config["goal_location"],
            "ending.radius": config["goal_radius"],
            "start.position": config["start_location"],
            "max_steps": config["max_steps"],
        },
    )
    # One length for all, so that it compiles once; the core ignores what comes after the end.
    length = 50 * math.ceil(max(len(actions), 200) / 50)
    padded = np.zeros(length, np.asarray(actions).dtype)
    padded[: len(actions)] = actions
    first, following = _run(env, params, padded)
    positions, rewards, *flags, concentrations = (np.asarray(column) for column in following)
    assert not rewards[len(actions) :].any()
    assert (positions[len(actions) :] == positions[len(actions) - 1]).all()
    upto = slice(len(actions))
    return Replay(
        positions[upto],
        rewards[upto],
        *(flag[upto] for flag in flags),
        np.concatenate([first, concentrations[upto]]),
    )


@pytest.fixture(scope="session")
def replay():
    """`replay(config, actions) -> Replay`, with a configuration of the peer's."""
    return _replay
