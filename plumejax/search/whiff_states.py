"""search/whiff_states: a sensor with few states, of how often odour came and how strong it was."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from plumejax.base.errors import require
from plumejax.base.spaces import Discrete
from plumejax.search.components import validate_part
from plumejax.search.state import Params
from plumejax.search.whiffs import WhiffFeatures
from plumejax.search.wrappers import Wrapper, WrapperParams, WrapperState, inner


class WhiffStatesParams(WrapperParams):
    """Numbers of a `WhiffStates`.

    Attributes:
      intermittency: float32[num_intermittencies - 1], rising, in [0, 1]: the bins' edges.
      intensity: float32[num_intensities - 1], rising, > 0, unit of the reading: the bins' edges.
    """

    intermittency: Any
    intensity: Any


@dataclass(frozen=True)
class WhiffStates(Wrapper):
    """What a nose remembers as one of few states, int32[]: the void, 0, if no whiff is in the
    window, else `1 + i num_intensities + j` of bin i of the intermittency and bin j of the mean
    intensity of whiffs, counted from the lowest.

    Intermittency, intensity, whiffs and window are those of `WhiffFeatures`. An edge belongs to the
    bin above it. The olfactory states of Rando et al. 2025 (eLife, article 102906), whose 3 x 5
    bins are the default, with edges at 0.33 and 0.66 of the window. Their edges of intensity are
    percentiles (25, 50, 80, 99) of their plume: those of another have to be measured. It has no
    gradient.

    Attributes:
      of: the `WhiffFeatures` of one nose.
      num_intermittencies, num_intensities: bins of each, >= 1.
    """

    of: WhiffFeatures
    num_intermittencies: int = 3
    num_intensities: int = 5

    def default_params(self) -> WhiffStatesParams:
        """The published edges of three bins, of other numbers equal parts; of the intensity equal
        parts of 1."""
        n = self.num_intermittencies
        edges = np.asarray([0.33, 0.66], np.float32) if n == 3 else _equal_parts(n)
        return WhiffStatesParams(
            of=self.of.default_params(),
            intermittency=edges,
            intensity=_equal_parts(self.num_intensities),
        )

    def respond(
        self, key: jax.Array, reading: jax.Array, state: WrapperState, params: Params
    ) -> tuple[jax.Array, WrapperState]:
        own = params.sensor
        _, _, intermittency, intensity = reading
        row, column = _bin(intermittency, own.intermittency), _bin(intensity, own.intensity)
        number = 1 + row * self.num_intensities + column
        return jnp.where(intermittency > 0, number, jnp.zeros_like(number)), state

    def space(self, params: Params) -> Discrete:  # type: ignore[override]
        return Discrete(1 + self.num_intermittencies * self.num_intensities)

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` if the edges do not fit, or `WhiffFeatures` refuses a number."""
        require(isinstance(self.of, WhiffFeatures), "sensor.of", self.of, "a WhiffFeatures")
        validate_part("sensor", "of", self.of, inner(params))
        for name, count, most in (
            ("intermittency", self.num_intermittencies, 1.0),
            ("intensity", self.num_intensities, np.inf),
        ):
            static = "num_intermittencies" if name == "intermittency" else "num_intensities"
            require(count >= 1, f"sensor.{static}", count, ">= 1")
            edges = np.asarray(getattr(params.sensor, name))
            fits = edges.shape[-1:] == (count - 1,)
            require(fits, f"sensor.{name}.shape", edges.shape, f"({count - 1},)")
            good = np.all((edges > 0) & (edges <= most) & np.isfinite(edges))
            good = good and np.all(np.diff(edges, axis=-1) > 0)
            require(good, f"sensor.{name}", edges, f"rising, > 0, finite, <= {most:g}")


def _bin(value: jax.Array, edges: Any) -> jax.Array:
    """int32[]: how many of the edges are not above the value."""
    return jnp.sum(value >= jnp.asarray(edges, jnp.float32), dtype=jnp.int32)


def _equal_parts(bins: int) -> np.ndarray:
    """float32[bins - 1], the edges of equal parts of 0..1."""
    return (np.arange(1, bins) / np.float32(bins)).astype(np.float32)
