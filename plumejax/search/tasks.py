"""search/tasks: the named searches, and how one is composed from defaults."""

from typing import Any

from plumejax.base.errors import require
from plumejax.base.registry import Task, register
from plumejax.plumes.gaussian import GaussianPlume
from plumejax.search.arena import OpenGrid
from plumejax.search.endings import GoalDisc
from plumejax.search.environment import PlumeSearch
from plumejax.search.motion import Moves
from plumejax.search.rewards import Sparse
from plumejax.search.sensors import FullField, LocalConcentration
from plumejax.search.starts import Uniform
from plumejax.search.state import Params


def plume_search(
    *,
    grid_size: tuple[int, int] = (128, 128),
    plume: Any = None,
    sensor: Any = None,
    motion: Any = None,
    reward: Any = None,
    ending: Any = None,
    start: Any = None,
    arena: Any = None,
) -> tuple[PlumeSearch, Params]:
    """`(env, params)` of a search on a grid; what is not given is that of `PlumeSearch-v0`.

    Args:
      grid_size: width and height in cells.
      plume, sensor, motion, reward, ending, start, arena: the components; any object with the
        methods of its kind (`plumejax.search.components`).

    Raises:
      ValidationError: a grid that is not two ints > 0.
      ComponentError: a component without the methods of its kind.
    """
    grid_size = _grid(grid_size)
    env = PlumeSearch(
        plume=GaussianPlume(grid_size) if plume is None else plume,
        sensor=FullField(grid_size) if sensor is None else sensor,
        motion=Moves() if motion is None else motion,
        reward=Sparse() if reward is None else reward,
        ending=GoalDisc() if ending is None else ending,
        start=Uniform() if start is None else start,
        arena=OpenGrid(grid_size) if arena is None else arena,
    )
    return env, env.default_params()


def plume_search_local(**static: Any) -> tuple[PlumeSearch, Params]:
    """`plume_search` with the concentration where the agent stands as the one observation."""
    return plume_search(**{"sensor": LocalConcentration(), **static})


def _grid(grid_size: Any) -> tuple[int, int]:
    try:
        good = len(grid_size) == 2 and all(int(n) == n and n > 0 for n in grid_size)
    except (TypeError, ValueError):
        good = False
    require(good, "grid_size", grid_size, "(width, height), two ints > 0")
    return int(grid_size[0]), int(grid_size[1])


register(
    Task(
        "PlumeSearch-v0",
        plume_search,
        "128 x 128 grid, Gaussian plume, four moves, the whole field observed, sparse reward",
    )
)
register(
    Task(
        "PlumeSearchLocal-v0",
        plume_search_local,
        "the same, observing only the concentration where the agent stands",
    )
)
