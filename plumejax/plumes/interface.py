"""plumes/interface: Air, and what every plume can do."""

from typing import Any, Protocol

import jax
import numpy as np
from flax import struct


class Air(struct.PyTreeNode):
    """The air at n positions.

    Attributes:
      concentration: float32[n], in the unit of the plume, >= 0.
      wind: float32[n, d], velocity of the air (where it goes to), lengths of the plume a second;
        a step is a second to a plume that knows no time.
    """

    concentration: jax.Array
    wind: jax.Array


class Plume(Protocol):
    """A plume model: static structure in a frozen dataclass, numbers in its own params.

    All methods are pure. `random_step` and `random_start` (attributes, True if absent) say whether
    `advance` and `start` use their key; `unit` ("arbitrary units" if absent) is that of the
    concentration, for pictures.
    """

    def default_params(self) -> Any:
        """The numbers the model proposes."""

    def start(self, key: jax.Array, params: Any) -> Any:
        """The state of the plume when an episode starts."""

    def advance(self, key: jax.Array, state: Any, params: Any) -> Any:
        """The state one step on."""

    def sample(self, state: Any, positions: jax.Array, params: Any) -> Air:
        """The air at `positions` float32[n, d]; concentration 0 outside the plume's region."""

    def sources(self, state: Any, params: Any) -> jax.Array:
        """float32[S, d], where the sources are."""


def clock(plume: Any, params: Any) -> Any:
    """float32[]: seconds of one advance, or None of a plume that knows no time (a static one, a
    recording or a bank, whose frames may lie anyhow far apart)."""
    dt = getattr(params, "dt", None)
    return None if dt is None else dt * np.float32(getattr(plume, "substeps", 1))
