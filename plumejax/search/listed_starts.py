"""search/listed_starts: starts from a list: a moment of the plume, a place and a heading."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.base.errors import require
from plumejax.search.starts import require_heading
from plumejax.search.state import Agent, Params


class ListedParams(struct.PyTreeNode):
    """Numbers of a `Listed`.

    Attributes:
      which: int32[], the start that is taken, in 0..N-1.
      frames: int32[N], of the bank or recording that is the plume.
      positions: float32[N, d], lengths of the plume.
      headings: float32[N], degrees, in [0, 360).
    """

    which: Any
    frames: Any
    positions: Any
    headings: Any


@dataclass(frozen=True)
class Listed:
    """One of a list of starts, for tests in which all agents begin alike: `vmap` over `which`.

    For plumes that play a bank or a recording, whose frame it sets; nothing is drawn.

    Attributes:
      count: N.
      dimensions: d.
    """

    count: int
    dimensions: int = 2

    def default_params(self) -> ListedParams:
        return ListedParams(
            which=np.int32(0),
            frames=np.zeros(self.count, np.int32),
            positions=np.zeros((self.count, self.dimensions), np.float32),
            headings=np.zeros(self.count, np.float32),
        )

    def place(
        self, key: jax.Array, plume: Any, plume_state: Any, arena: Any, params: Params
    ) -> tuple[Any, Agent, None]:
        own = params.start
        frame, position, heading = (
            jnp.asarray(x)[own.which] for x in (own.frames, own.positions, own.headings)
        )
        playing = getattr(plume_state, "playing", plume_state)
        playing = playing.replace(phase=frame.astype(playing.phase.dtype))
        nested = hasattr(plume_state, "playing")
        plume_state = plume_state.replace(playing=playing) if nested else playing
        return plume_state, Agent(position=position, heading=heading), None

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` if the start that is taken is none of the list."""
        own = params.start
        which = np.asarray(own.which)
        good = np.all((which >= 0) & (which < self.count))
        require(good, "start.which", own.which, f"in 0..{self.count - 1}")
        require_heading("headings", own.headings)
