"""search/tracking: the two rewards of plume tracking, that of the published code and the paper's.

Singh, van Breugel, Rao, Brunton 2023, Nature Machine Intelligence 5: 58. The two differ.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.base.errors import require
from plumejax.search.environment import distance_to_source
from plumejax.search.state import Params, Scene


class TrackingCodeParams(struct.PyTreeNode):
    """Numbers of `TrackingCode`.

    Attributes:
      found: float32[], paid on the step that finds the source, which costs nothing else.
      step: float32[], >= 0, taken on every step that does not end the episode.
      off_plume: float32[], >= 0, taken besides on such a step off the plume.
      per_metre: float32[], paid for each m that the source came nearer.
      threshold: float32[], in the plume's unit, >= 0; off the plume no probe reads more.
      lost: float32[], >= 0, taken for each m along x from the source on the step that fails.
      upwind: float32[], >= 0, by which what is taken on that step is multiplied upwind (x < 0).
    """

    found: Any
    step: Any
    off_plume: Any
    per_metre: Any
    threshold: Any
    lost: Any
    upwind: Any


@dataclass(frozen=True)
class TrackingCode:
    """The shaped reward of the published code.

    `found` on the step that finds the source; `-(lost |x| + stray)` on the step that fails, twice
    that upwind of the source, with x from the source and `stray` the distance to the nearest puff;
    else `per_metre (decrease of the distance) - step`, off the plume not more than 0 for the
    distance and `off_plume` less. Off the plume is where no probe of the sensor meets more than
    `threshold`, before the sensor makes anything of it.
    """

    asks = ("nearest",)

    def default_params(self) -> TrackingCodeParams:
        return TrackingCodeParams(
            found=np.float32(101.0),
            step=np.float32(0.0333),
            off_plume=np.float32(0.2),
            per_metre=np.float32(5.0),
            threshold=np.float32(1e-4),
            lost=np.float32(5.0),
            upwind=np.float32(2.0),
        )

    def reward(self, scene: Scene, params: Params) -> jax.Array:
        own = params.reward
        going = self._going(scene, own)
        lost = self._lost(scene, params)
        return jnp.where(scene.found, own.found, jnp.where(scene.failed, -lost, going))

    def _going(self, scene: Scene, own: TrackingCodeParams) -> jax.Array:
        before = distance_to_source(scene.previous.position, scene.sources)
        after = distance_to_source(scene.agent.position, scene.sources)
        nearer = own.per_metre * (before - after)
        off = jnp.max(scene.air.concentration) <= own.threshold
        return jnp.where(off, jnp.minimum(nearer, 0.0) - own.off_plume, nearer) - own.step

    def _lost(self, scene: Scene, params: Params) -> jax.Array:
        own = params.reward
        position = scene.agent.position
        stray = scene.plume.nearest(scene.plume_state, position, params.plume)
        x = position[0] - scene.sources[0, 0]
        # Another ending may fail an agent where there is no puff.
        taken = own.lost * jnp.abs(x) + jnp.where(jnp.isfinite(stray), stray, 0.0)
        return jnp.where(x < 0, own.upwind * taken, taken)

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` if a number is negative."""
        for name in ("step", "off_plume", "threshold", "lost", "upwind"):
            _require_not_negative(name, getattr(params.reward, name))


class TrackingPaperParams(struct.PyTreeNode):
    """Numbers of `TrackingPaper`.

    Attributes:
      found: float32[], paid on the step that finds the source.
      step: float32[], >= 0, the paper's epsilon, taken on every step that does not end the episode.
      lost: float32[], >= 0, taken on the step that fails.
    """

    found: Any
    step: Any
    lost: Any


@dataclass(frozen=True)
class TrackingPaper:
    """The reward of the paper: `found`, `-lost`, and `-step` on every other step.

    The paper gives no number for its epsilon; the default is the code's 0.0333.
    """

    def default_params(self) -> TrackingPaperParams:
        return TrackingPaperParams(
            found=np.float32(100.0), step=np.float32(0.0333), lost=np.float32(10.0)
        )

    def reward(self, scene: Scene, params: Params) -> jax.Array:
        own = params.reward
        return jnp.where(scene.found, own.found, jnp.where(scene.failed, -own.lost, -own.step))

    def validate(self, params: Params) -> None:
        """Raise `ValidationError` if a penalty is negative."""
        for name in ("step", "lost"):
            _require_not_negative(name, getattr(params.reward, name))


def _require_not_negative(name: str, value: Any) -> None:
    require(np.all(np.asarray(value) >= 0), f"reward.{name}", value, ">= 0")
