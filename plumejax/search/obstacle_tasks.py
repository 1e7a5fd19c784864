"""search/obstacle_tasks: a search through rooms with doors, by name; odour goes round the walls."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from plumejax.base.errors import require
from plumejax.base.registry import Task, register
from plumejax.plumes.diffusion import steady_field
from plumejax.plumes.recorded import RecordedPlume
from plumejax.search.arena import from_map
from plumejax.search.endings import GoalDisc
from plumejax.search.environment import PlumeSearch
from plumejax.search.motion import Moves
from plumejax.search.numbered import numbered, numbered_search
from plumejax.search.sensors import LogConcentration
from plumejax.search.starts import FixedList
from plumejax.search.state import Params

ROOMS = """
    ################################
    #..........#.........#.........#
    #..........#.........#.........#
    #..........#.........#.........#
    #..........#.........#.........#
    #....................#.........#
    #....................#.........#
    #..........#.........#.........#
    #..........#.........#.........#
    #..........#.........#.........#
    #..........#.........#.........#
    ####..############..######..####
    #.........#...............#....#
    #.........#...............#....#
    #.........#...............#....#
    #.........#...............#....#
    #..............................#
    #..............................#
    #.........#...............#....#
    #.........#...............#....#
    #.........#...............#....#
    #.........#...............#....#
    ######..#########..#############
    #..........#...................#
    #..........#...................#
    #..........#...................#
    #..........#...................#
    #..........#...................#
    #..............................#
    #..............................#
    #..........#...................#
    ################################
"""
"""Eight rooms of our own, 32 x 32 cells."""


def obstacles(
    *,
    rooms: str = ROOMS,
    source: Sequence[int] = (4, 27),
    reach: float = 6.0,
    min_distance: int = 20,
    **static: Any,
) -> tuple[PlumeSearch, Params]:
    """`(env, params)` of the search for a source in rooms with doors, all of it ours: four moves of
    a cell, found within 1 cell, in 1000 steps.

    The odour is the steady field of diffusion and decay in these rooms (`steady_field`), so it goes
    round the walls as the agent must. The observation, float32[1], is its concentration, 1 at the
    source, on a logarithmic scale that is linear well below 1e-5. It is 4.5e-5 in the
    farthest corner, and rises towards the source from everywhere else: no other
    cell is its neighbours' equal or more.

    Args:
      rooms: a drawn map (`plumejax.search.arena.read_map`).
      source: x and y of its cell, which has to be free. The field is worked out for it: another
        source is another task, not another number.
      reach: cells, how far odour gets before it decays, > 0.
      min_distance: moves from a start to the source, at least; starts are uniform over the cells
        that are as far.
      **static: components, as in `plume_search`.

    Raises:
      ValidationError: a map that is none, a source in a wall, a reach that is not > 0, or a
        distance that no cell has.
    """
    arena, walls = from_map(rooms)
    cell = _cell(source, walls.free)
    field = steady_field(walls.free, cell, reach)
    starts = _far_cells(walls.free, cell, min_distance)
    plume = RecordedPlume(1, arena.grid_size)
    parts = {
        "plume": numbered(
            plume, {"frames": field[None].astype(np.float32), "source": np.asarray(cell)}
        ),
        "sensor": numbered(LogConcentration(), {"floor": 1e-5}),
        "motion": numbered(Moves(), {}),
        "ending": numbered(GoalDisc(), {"radius": 1.0}),
        "start": numbered(FixedList(len(starts)), {"positions": starts}),
        "arena": (arena, walls),
    }
    return numbered_search(parts, 1000, static)


def distances(free: np.ndarray, source: tuple[int, int]) -> np.ndarray:
    """float[height, width], indexed [y, x]: moves from each free cell to the source at (x, y), in
    four directions; infinite where there is no way."""
    x, y = source
    reached = np.zeros(free.shape, bool)
    reached[y, x] = True
    moves = np.full(free.shape, np.inf)
    front, count = reached, 0
    while front.any():
        moves[front] = count
        wide = np.pad(front, 1)
        beside = wide[:-2, 1:-1] | wide[2:, 1:-1] | wide[1:-1, :-2] | wide[1:-1, 2:]
        front = beside & free & ~reached
        reached, count = reached | front, count + 1
    return moves


def _cell(source: Any, free: np.ndarray) -> tuple[int, int]:
    """The cell, if it is a free one."""
    height, width = free.shape
    allowed = f"(x, y), two ints: a free cell of the {width} x {height} map"
    whole = np.shape(source) == (2,) and np.all(np.asarray(source) == np.round(source))
    require(whole, "source", source, allowed)
    x, y = (int(n) for n in source)
    require(0 <= x < width and 0 <= y < height and free[y, x], "source", source, allowed)
    return x, y


def _far_cells(free: np.ndarray, source: tuple[int, int], least: int) -> np.ndarray:
    """float32[n, 2]: x and y of the cells from which it is `least` moves or more to the source."""
    moves = distances(free, source)
    far = np.isfinite(moves) & (moves >= least)
    most = int(moves[np.isfinite(moves)].max())
    require(far.any(), "min_distance", least, f"<= {most}, the moves from the farthest cell")
    y, x = np.nonzero(far)
    return np.stack([x, y], axis=1).astype(np.float32)


register(
    Task(
        "Obstacles-v0",
        obstacles,
        "rooms with doors, 32 x 32 cells, odour that goes round the walls",
        source="plumejax",
        difficulty="medium",
    )
)
