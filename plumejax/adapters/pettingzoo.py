"""adapters/pettingzoo: the two-arm tasks as PettingZoo's parallel environment of two agents."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import jax
import numpy as np

from plumejax.adapters.episodes import (
    closed,
    not_reset,
    require_render_mode,
    require_renderable,
    require_seed,
)
from plumejax.adapters.spaces import to_gymnasium
from plumejax.adapters.two_arm import finite_action, made, plain, shown
from plumejax.arms.environment import ACTION_SIZE
from plumejax.arms.state import ARMS, ArmsState
from plumejax.base.agents import of_one
from plumejax.base.errors import require
from plumejax.base.extras import need

_ParallelEnv: Any = need("pettingzoo", "pettingzoo").ParallelEnv

AGENTS = tuple(f"agent_{i}" for i in range(ARMS))


class TwoArmParallelEnv(_ParallelEnv):
    """A two-arm task as two agents, which both end when the episode does.

    Each observes float[N] (`views.Flat`) and acts by float[4]; `infos` are the episode's.

    Args:
      task: id of a two-arm task.
      render_mode: None or "rgb_array".
      overrides, **static: as of `plumejax.make`.

    Raises:
      ValidationError: as `plumejax.make`.
    """

    metadata = {"name": "plumejax_two_arm_v0", "render_modes": ["rgb_array"], "render_fps": 20}

    def __init__(
        self,
        task: str = "TwoArm-Lift-v0",
        *,
        render_mode: str | None = None,
        overrides: Mapping[str, Any] | None = None,
        **static: Any,
    ) -> None:
        require_render_mode(render_mode, ["rgb_array"])
        self.render_mode = render_mode
        self.core, self.params = made(task, overrides, static)
        self.possible_agents = list(AGENTS)
        self.agents: list[str] = []
        self._random = np.random.default_rng()
        self._state: ArmsState | None = None
        self._closed = False

    @cached_property
    def observation_spaces(self) -> dict[str, Any]:
        """By agent."""
        space = of_one(self.core.observation_space(self.params))
        return {agent: to_gymnasium(space) for agent in AGENTS}

    @cached_property
    def action_spaces(self) -> dict[str, Any]:
        """By agent."""
        space = of_one(self.core.action_space(self.params))
        return {agent: to_gymnasium(space) for agent in AGENTS}

    def observation_space(self, agent: str) -> Any:
        """That of one agent, the same object at every call."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Any:
        """That of one agent, the same object at every call."""
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, dict[str, Any]]]:
        """`(observations, infos)` of a fresh episode; no option is known, and none is looked at."""
        if self._closed:
            raise closed("reset")
        require_seed(seed)
        if seed is not None:
            self._random = np.random.default_rng(seed)
        used = int(self._random.integers(2**31)) if seed is None else int(seed)
        observation, self._state = self.core.reset(jax.random.key(used), self.params)
        self.agents = list(AGENTS)
        return _by_agent(np.asarray(observation)), {agent: {"seed": used} for agent in AGENTS}

    def step(self, actions: dict[str, np.ndarray]) -> tuple[dict[str, Any], ...]:
        """`(observations, rewards, terminations, truncations, infos)`, each by agent.

        Raises `ValidationError` for missing or other agents, and for numbers that are not finite.
        """
        if self._closed:
            raise closed("step")
        if self._state is None:
            raise not_reset("step")
        if not self.agents:
            return {}, {}, {}, {}, {}
        require(set(actions) == set(AGENTS), "actions", sorted(actions), f"of {AGENTS}")
        together = np.stack(
            [finite_action(f"action of {agent}", actions[agent], ACTION_SIZE) for agent in AGENTS]
        )
        observation, self._state, reward, terminated, truncated, info = self.core.step(
            jax.random.key(0), self._state, together, self.params
        )
        told = {name: plain(value) for name, value in info.items()}
        if terminated | truncated:
            self.agents = []
        paid = np.asarray(reward)
        return (
            _by_agent(np.asarray(observation)),
            {agent: float(r) for agent, r in zip(AGENTS, paid, strict=True)},
            dict.fromkeys(AGENTS, bool(terminated)),
            dict.fromkeys(AGENTS, bool(truncated)),
            {agent: dict(told) for agent in AGENTS},
        )

    def render(self) -> np.ndarray | None:
        """uint8[384, 384, 3], from above. Raises where no `render_mode` was chosen."""
        if self._state is None:
            raise not_reset("render")
        require_renderable(self.render_mode, None)
        return shown(self.core, self._state, self.params)

    def close(self) -> None:
        """After this nothing but `close` works."""
        self._closed = True


def _by_agent(rows: np.ndarray) -> dict[str, np.ndarray]:
    return {agent: row.copy() for agent, row in zip(AGENTS, rows, strict=True)}
