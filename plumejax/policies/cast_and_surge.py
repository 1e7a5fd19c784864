"""policies/cast_and_surge: upwind in odour, from side to side without; zigzags."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from plumejax.base.errors import require
from plumejax.policies.tracking import Track, Tracker, alternate, leg, seconds_of, tracker
from plumejax.search.bouts import Declare, SniffOrMove
from plumejax.search.environment import PlumeSearch
from plumejax.search.motion import AxisMoves, Moves, WindRelative
from plumejax.search.state import Params


class CastAndSurgeOnGrid(Tracker):
    """A hit: a step upwind. Else runs across the wind of 1, 2, 3, ... steps, one upwind between.

    The runs go to either side in turn, the first to one that is drawn at the start; a hit begins
    them anew. As in Heinonen, Biferale, Celani, Vergassola 2023 (Physical Review E 107: 055105).
    """

    def steer(
        self, key: jax.Array, now: Track, before: Track, wind: jax.Array
    ) -> tuple[jax.Array, Track]:
        # The n-th run and the step upwind after it, n from 1, are n + 1 steps, so they end with
        # step n (n + 3) / 2 since the odour was lost.
        step = now.lost.astype(jnp.float32)
        run = jnp.ceil((jnp.sqrt(9.0 + 8.0 * step) - 3.0) / 2.0 - 1e-4)
        last = step > run * (run + 3.0) / 2.0 - 0.5
        across = 90.0 * now.side * alternate(run - 1.0)
        return self.course(wind, jnp.where((now.lost == 0) | last, 0.0, across)), now


class Casting(Track):
    """What a `CastAndSurge` remembers besides.

    Attributes:
      surges: bool[], else it casts.
      surge_in, cast_in: float32[], s, until it begins to; infinite if nothing says so.
      cast_for: float32[], s, since it began to cast.
    """

    surges: jax.Array
    surge_in: jax.Array
    cast_in: jax.Array
    cast_for: jax.Array


class CastAndSurge(Tracker):
    """Surges upwind some time after it meets odour, casts across the wind some time after a loss.

    Both delays are drawn, from normal distributions, none below 0; the defaults are those of
    Drosophila in flight (van Breugel & Dickinson 2014, Current Biology 24: 274): 190 +- 75 ms and
    450 +- 165 ms. A loss does not call off a surge, but an odour met calls off a cast. The casts
    last 1, 2, 3, ... times `cast`, to either side in turn, over ground; that is ours.

    Attributes:
      surge_delay, surge_spread: float32[], s, mean and standard deviation.
      cast_delay, cast_spread: float32[], s, the same.
      cast: float32[], s, of the first cast.
    """

    surge_delay: Any
    surge_spread: Any
    cast_delay: Any
    cast_spread: Any
    cast: Any

    def init(self, key: jax.Array) -> Casting:
        """Casting; the key is consumed."""
        never, track = jnp.float32(jnp.inf), super().init(key)
        # One step out of odour already: that is no loss.
        return Casting(
            track.posture,
            track.steps,
            track.lost + jnp.int32(1),
            track.side,
            track.angle,
            jnp.asarray(False),
            never,
            never,
            jnp.float32(0.0),
        )

    def steer(
        self, key: jax.Array, now: Any, before: Any, wind: jax.Array
    ) -> tuple[jax.Array, Any]:
        first, second = jax.random.normal(key, (2,), jnp.float32)
        met = (now.lost == 0) & (before.lost > 0)
        left = (now.lost > 0) & (before.lost == 0)
        dt = self.body.dt
        surge_delay = jnp.maximum(self.surge_delay + self.surge_spread * first, 0.0)
        cast_delay = jnp.maximum(self.cast_delay + self.cast_spread * second, 0.0)
        surge_in = jnp.where(met, surge_delay, now.surge_in - dt)
        cast_in = jnp.where(left, cast_delay, now.cast_in - dt)
        cast_in = jnp.where(met, jnp.inf, cast_in)
        begins, ends = surge_in <= 0, cast_in <= 0
        surges = (now.surges | begins) & ~ends
        cast_for = jnp.where(surges | ends, 0.0, now.cast_for + dt)
        now = now.replace(
            surges=surges,
            surge_in=jnp.where(begins, jnp.inf, surge_in),
            cast_in=jnp.where(ends, jnp.inf, cast_in),
            cast_for=cast_for,
        )
        side = now.side * alternate(leg(cast_for, self.cast))
        return self.course(wind, jnp.where(surges, 0.0, 90.0 * side)), now


class MothZigzag(Tracker):
    """Zigzags upwind in odour, and across the wind, ever farther, without.

    In odour, and for `base` seconds after it, the way is `surge` degrees to either side of upwind
    in turn, `base` seconds each; later `cast` degrees, for 1, 2, 3, ... times `base`: moths'
    zigzags and casts (Kennedy 1983, Physiological Entomology 8: 109), of +-30 and +-90 degrees and
    0.5 s.

    Attributes:
      surge, cast: float32[], degrees.
      base: float32[], s.
    """

    surge: Any
    cast: Any
    base: Any

    def steer(
        self, key: jax.Array, now: Track, before: Track, wind: jax.Array
    ) -> tuple[jax.Array, Track]:
        lost = self.seconds(now.lost)
        wing = alternate(jnp.floor(self.seconds(now.steps) / self.base))
        cast = alternate(leg(lost - self.base, self.base))
        angle = jnp.where(lost < self.base, self.surge * wing, self.cast * cast)
        return self.course(wind, now.side * angle), now


class DungBeetle(Tracker):
    """Zigzags upwind through the plume: at its edge it turns about to the other side of upwind.

    The reactive rule that robots use under the beetle's name (Ishida, Suetsugu, Nakamoto, Moriizumi
    1994, Sensors and Actuators A 45: 153; Russell et al. 2003, Robotics and Autonomous Systems 45:
    83), one of the policies of GSL-Bench (Erwich et al. 2024). Without odour it turns about again
    after 1, 2, 3, ... times `patience`. GSL-Bench's numbers stand in no text that we found: ours
    are 60 degrees and 1 s.

    Attributes:
      angle: float32[], degrees off upwind.
      patience: float32[], s.
    """

    angle: Any
    patience: Any

    def steer(
        self, key: jax.Array, now: Track, before: Track, wind: jax.Array
    ) -> tuple[jax.Array, Track]:
        leaves = (now.lost > 0) & (before.lost == 0) & (before.steps > 0)
        legs = leg(self.seconds(now.lost), self.patience)
        turns = (legs > leg(self.seconds(before.lost), self.patience)) & (now.lost > 0)
        side = jnp.where(leaves | turns, -now.side, now.side)
        return self.course(wind, side * self.angle), now.replace(side=side)


def cast_and_surge(
    env: PlumeSearch,
    params: Params,
    *,
    surge_delay: float = 0.19,
    surge_spread: float = 0.075,
    cast_delay: float = 0.45,
    cast_spread: float = 0.165,
    cast: float = 0.5,
    threshold: float = 1e-4,
    speed: float = 1.0,
    downwind: float = 0.0,
) -> CastAndSurge | CastAndSurgeOnGrid:
    """Cast and surge: upwind in odour, across the wind without.

    On `Moves`, `AxisMoves` and `WindRelative` it is `CastAndSurgeOnGrid`, which has no numbers in
    seconds; on `TurnAndSpeed`, `Saccades`, `Unicycle` and `Oriented` it is `CastAndSurge`.

    Args:
      env, params: the task.
      surge_delay, surge_spread, cast_delay, cast_spread, cast: s: see `CastAndSurge`.
      threshold: in the unit of the sensor; what is above is odour.
      speed: part of the motion's fastest, in (0, 1].
      downwind: degrees from +x, where the air goes to: used if no sensor feels it.

    Raises:
      ValidationError: another motion, no sensor of odour or wind, or a number that is not allowed.
    """
    for name, value in (("surge_spread", surge_spread), ("cast_spread", cast_spread)):
        require(value >= 0, name, value, ">= 0 s")
    shared = tracker(env, params, threshold=threshold, speed=speed, downwind=downwind)
    motion = env.motion
    while isinstance(motion, SniffOrMove | Declare):
        motion = motion.of
    if isinstance(motion, Moves | AxisMoves | WindRelative):
        return CastAndSurgeOnGrid(**shared)
    return CastAndSurge(
        **shared,
        surge_delay=np.float32(surge_delay),
        surge_spread=np.float32(surge_spread),
        cast_delay=np.float32(cast_delay),
        cast_spread=np.float32(cast_spread),
        cast=seconds_of("cast", cast, params),
    )


def moth_zigzag(
    env: PlumeSearch,
    params: Params,
    *,
    surge: float = 30.0,
    cast: float = 90.0,
    base: float = 0.5,
    threshold: float = 1e-4,
    speed: float = 1.0,
    downwind: float = 0.0,
) -> MothZigzag:
    """A moth's zigzags: narrow in odour, across the wind without.

    Motions: all that can be steered (`policies.fitting.STEERED`).

    Args:
      env, params: the task.
      surge, cast: degrees; base: s: see `MothZigzag`.
      threshold, speed, downwind: as in `cast_and_surge`.

    Raises:
      ValidationError: as in `cast_and_surge`.
    """
    shared = tracker(env, params, threshold=threshold, speed=speed, downwind=downwind)
    time = seconds_of("base", base, params)
    return MothZigzag(**shared, surge=np.float32(surge), cast=np.float32(cast), base=time)


def dung_beetle(
    env: PlumeSearch,
    params: Params,
    *,
    angle: float = 60.0,
    patience: float = 1.0,
    threshold: float = 1e-4,
    speed: float = 1.0,
    downwind: float = 0.0,
) -> DungBeetle:
    """The dung beetle's rule of robots: a zigzag from edge to edge of the plume.

    Motions: all that can be steered (`policies.fitting.STEERED`).

    Args:
      env, params: the task.
      angle: degrees; patience: s: see `DungBeetle`.
      threshold, speed, downwind: as in `cast_and_surge`.

    Raises:
      ValidationError: as in `cast_and_surge`.
    """
    shared = tracker(env, params, threshold=threshold, speed=speed, downwind=downwind)
    return DungBeetle(
        **shared, angle=np.float32(angle), patience=seconds_of("patience", patience, params)
    )


POLICIES: dict[str, Callable[..., Any]] = {
    "cast-and-surge": cast_and_surge,
    "moth-zigzag": moth_zigzag,
    "dung-beetle": dung_beetle,
}
