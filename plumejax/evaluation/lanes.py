"""evaluation/lanes: games played side by side, each once and to its own end."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from plumejax.base.compiling import jit_by_class

LANES = 1024
"""Games that are played side by side."""


class Game(Protocol):
    """What is played, one lane at a time, pure; hashable and compared by value.

    Every number of it is in a pytree, `numbers`, and game i depends on `numbers` and i only. A game
    that is over stays as it was, as far as `view` shows it.
    """

    def begin(self, numbers: Any, number: jax.Array) -> Any:
        """The lane at the start of game `number`, uint32[]."""

    def step(self, numbers: Any, lane: Any) -> Any:
        """The lane a step later."""

    def over(self, numbers: Any, lane: Any) -> jax.Array:
        """bool[]: whether the game has ended."""

    def view(self, lane: Any) -> Any:
        """What is kept of a game."""


def begin(game: Game, numbers: Any, which: jax.Array) -> Any:
    """Lanes at the start of the games uint32[n] `which`."""
    return jax.vmap(game.begin, (None, 0))(numbers, which)


def step(game: Game, numbers: Any, table: Any) -> Any:
    """Every lane a step later."""
    return jax.vmap(game.step, (None, 0))(numbers, table)


def play_out(game: Game, numbers: Any, table: Any) -> Any:
    """The lanes when the last of them is over; pure."""

    def going_on(table: Any) -> jax.Array:
        return ~jnp.all(_over(game, numbers, table))

    return jax.lax.while_loop(going_on, partial(step, game, numbers), table)


def stream(
    game: Game,
    numbers: Any,
    count: int,
    *,
    first: int = 0,
    lanes: int = LANES,
    progress: Callable[[int], None] = lambda ended: None,
) -> Iterator[tuple[np.ndarray, Any]]:
    """Of any number of games, as they end: `(which, views)`, int[k] and leaves that lead with k.

    A lane whose game has ended waits until half of them have, then the next games begin; the memory
    is that of `lanes` games.

    Args:
      game, numbers: what is played.
      count: games.
      first: number of the first; `first=n` goes on where n games ended.
      lanes: games played side by side.
      progress: is told how many more have ended, now and then.
    """
    lanes = min(lanes, count)
    which = np.arange(first, first + lanes, dtype=np.uint32)
    table = _begin(game, numbers, which)
    waiting, last = first + lanes, first + count
    playing = np.ones(lanes, bool)
    while playing.any():
        more = last - waiting
        enough = int(playing.sum()) if more == 0 else max(1, lanes // 2)
        table, over = _play_on(game, numbers, table, playing, np.int32(enough))
        over = np.asarray(over) & playing
        views = jax.device_get(_view(game, table))
        yield which[over], jax.tree.map(lambda x, o=over: x[o], views)
        progress(int(over.sum()))
        places = np.flatnonzero(over)
        playing[places[more:]] = False
        begun = places[:more]
        if len(begun):
            which = which.copy()
            which[begun] = np.arange(waiting, waiting + len(begun))
            waiting += len(begun)
            table = _restart(game, numbers, table, which, np.isin(np.arange(lanes), begun))


@jit_by_class(static=("game",))
def _begin(game: Game, numbers: Any, which: jax.Array) -> Any:
    return begin(game, numbers, which)


@jit_by_class(static=("game",))
def _view(game: Game, table: Any) -> Any:
    return jax.vmap(game.view)(table)


@jit_by_class(static=("game",), donate=("table",))
def _restart(game: Game, numbers: Any, table: Any, which: jax.Array, these: jax.Array) -> Any:
    """The lanes; those of bool[n] `these` at the start of their game `which`, uint32[n]."""
    fresh = begin(game, numbers, which)

    def chosen(new: jax.Array, old: jax.Array) -> jax.Array:
        return jnp.where(jnp.expand_dims(these, tuple(range(1, new.ndim))), new, old)

    return jax.tree.map(chosen, fresh, table)


@jit_by_class(static=("game",), donate=("table",))
def _play_on(
    game: Game, numbers: Any, table: Any, playing: jax.Array, enough: jax.Array
) -> tuple[Any, jax.Array]:
    """`(lanes, over)`: until `enough` of the lanes bool[n] `playing` are over, bool[n]."""

    def going_on(table: Any) -> jax.Array:
        return jnp.sum(_over(game, numbers, table) & playing, dtype=jnp.int32) < enough

    table = jax.lax.while_loop(going_on, partial(step, game, numbers), table)
    return table, _over(game, numbers, table)


def _over(game: Game, numbers: Any, table: Any) -> jax.Array:
    return jax.vmap(game.over, (None, 0))(numbers, table)
