"""adapters/stable_baselines3: PlumeSearchVecEnv, many searches as Stable-Baselines3's VecEnv."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode

from plumejax.adapters.episodes import require_seed
from plumejax.adapters.gymnasium_vector import PlumeSearchVectorEnv
from plumejax.base.errors import PlumeError, require
from plumejax.base.extras import need

_VecEnv: Any = need("stable_baselines3", "interop").common.vec_env.VecEnv


class PlumeSearchVecEnv(_VecEnv):
    """A `PlumeSearchVectorEnv` with the signatures of Stable-Baselines3.

    What it returns is what Gymnasium's does under same-step autoreset, the infos one dict a lane.
    Those of a lane that ended are the ended episode's and have `is_success`, which the trainers
    report; `reset_infos` has the next one's. One seed is for all lanes.

    Args:
      num_envs, **choices: as of `PlumeSearchVectorEnv`, but for `autoreset_mode`.

    Raises:
      ValidationError, ComponentError: as `PlumeSearchVectorEnv`.
    """

    def __init__(self, num_envs: int = 1, **choices: Any) -> None:
        mode = choices.pop("autoreset_mode", AutoresetMode.SAME_STEP)
        require(
            mode in (AutoresetMode.SAME_STEP, AutoresetMode.SAME_STEP.value),
            "autoreset_mode",
            mode,
            "SAME_STEP, all that Stable-Baselines3 knows",
        )
        self.env = PlumeSearchVectorEnv(num_envs, autoreset_mode=AutoresetMode.SAME_STEP, **choices)
        self._actions: Any = None
        spaces = self.env.single_observation_space, self.env.single_action_space
        super().__init__(num_envs, *spaces)

    def seed(self, seed: int | None = None) -> list[int | None]:
        """The seed of the next reset; None leaves it to the environment's own stream.

        Raises `ValidationError` for one that is not allowed.
        """
        require_seed(seed)
        self._seeds = [seed] * self.num_envs
        return self._seeds

    def reset(self) -> Any:
        """The first observations, leading with `num_envs`.

        Raises `ValidationError` for options that are not allowed, or not the same in all lanes.
        """
        options = self._options[0]
        same = all(each == options for each in self._options)
        require(same, "options", self._options, "the same in every lane")
        observation, infos = self.env.reset(seed=self._seeds[0], options=options)
        self.reset_infos = _rows(infos, self.num_envs)
        self._reset_seeds()
        self._reset_options()
        return observation

    def step_async(self, actions: np.ndarray) -> None:
        self._actions = actions

    def step_wait(self) -> tuple[Any, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """`(observation, reward, done, infos)` of the actions given to `step_async`."""
        observation, reward, terminated, truncated, infos = self.env.step(self._actions)
        done, rows = terminated | truncated, _rows(infos, self.num_envs)
        last = _rows(infos.get("final_info", {}), self.num_envs)
        for lane in np.flatnonzero(done):
            self.reset_infos[lane], rows[lane] = rows[lane], last[lane]
            rows[lane]["terminal_observation"] = infos["final_obs"][lane]
            rows[lane]["is_success"] = rows[lane]["goal_reached"]
        for row, out_of_time in zip(rows, truncated & ~terminated, strict=True):
            row["TimeLimit.truncated"] = bool(out_of_time)
        return observation, reward.astype(np.float32), done, rows

    def get_images(self) -> list[np.ndarray]:
        return list(self.env.render())

    def close(self) -> None:
        self.env.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """What all lanes share, once a lane."""
        return [getattr(self.env, attr_name) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        raise _shared("set_attr", attr_name)

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> Any:
        raise _shared("env_method", method_name)

    def env_is_wrapped(
        self, wrapper_class: type[gymnasium.Wrapper], indices: Any = None
    ) -> list[bool]:
        return [False for _ in self._get_indices(indices)]


def _rows(infos: dict[str, Any], lanes: int) -> list[dict[str, Any]]:
    """The infos of each lane, of those that it has; an ended episode's are not among them."""
    rows: list[dict[str, Any]] = [{} for _ in range(lanes)]
    for name in infos:
        if not name.startswith(("_", "final_")):
            for lane in np.flatnonzero(infos[f"_{name}"]):
                rows[lane][name] = infos[name][lane]
    return rows


def _shared(what: str, name: str) -> PlumeError:
    return PlumeError(
        f"{what}({name!r}): the lanes share one compiled step, none has an environment of its own;"
        " reset options and the choices at construction hold for all"
    )
