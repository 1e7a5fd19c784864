"""policies/recoveries: upwind in odour, and ways to find it again: spirals, circles, and back."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from plumejax.policies.tracking import Track, Tracker, seconds_of, tracker
from plumejax.search.environment import PlumeSearch
from plumejax.search.state import Params


class SurgeSpiral(Tracker):
    """Upwind in odour and for `surge` seconds after it; then a spiral until there is odour again.

    The spiral is Archimedean, of a distance `gap` v between its turns at the speed v: after t
    seconds it turns by sqrt(pi / (gap t)) radians a second. To the side drawn at the start. After
    Lochmatter & Martinoli 2009 ("Tracking odor plumes in a laminar wind field with bio-inspired
    algorithms"); the numbers are ours.

    Attributes:
      surge: float32[], s.
      gap: float32[], s, the time that it takes to go as far as from turn to turn.
    """

    surge: Any
    gap: Any

    def steer(
        self, key: jax.Array, now: Track, before: Track, wind: jax.Array
    ) -> tuple[jax.Array, Track]:
        lost = self.seconds(now.lost)
        begun = jnp.maximum(lost - self.surge, self.body.dt / 2)
        quickness = jnp.sqrt(jnp.pi / (self.gap * begun))
        # No more than half a circle in a step, at the middle.
        turned = jnp.minimum(jnp.rad2deg(quickness) * self.body.dt, 180.0)
        spiral = now.posture.owed + now.side * turned
        return jnp.where(lost < self.surge, self.course(wind, 0.0), spiral), now


class Circling(Tracker):
    """Upwind in odour and for `patience` seconds after it; then circles, each wider than the last.

    The n-th circle has a radius of n times `radius` v at the speed v, to the side drawn at the
    start. One of the ways back that Rando et al. 2025 compare ("Q-learning with temporal memory to
    navigate turbulence"); the numbers are ours.

    Attributes:
      patience: float32[], s.
      radius: float32[], s, the time that it takes to go as far as the first circle's radius.
    """

    patience: Any
    radius: Any

    def steer(
        self, key: jax.Array, now: Track, before: Track, wind: jax.Array
    ) -> tuple[jax.Array, Track]:
        lost = self.seconds(now.lost)
        begun = jnp.maximum(lost - self.patience, 0.0)
        # n circles take pi radius n (n + 1) seconds.
        n = jnp.floor((jnp.sqrt(1.0 + 4.0 * begun / (jnp.pi * self.radius)) - 1.0) / 2.0) + 1.0
        turned = jnp.minimum(jnp.rad2deg(self.body.dt / (n * self.radius)), 180.0)
        circle = now.posture.owed + now.side * turned
        return jnp.where(lost < self.patience, self.course(wind, 0.0), circle), now


class Backtracking(Tracker):
    """Upwind in odour and for `patience` seconds after it; then the same way back; then anywhere.

    Back at where it last smelled odour it goes on in directions drawn uniformly, each for
    `patience` seconds. One of the ways back that Rando et al. 2025 compare ("Q-learning with
    temporal memory to navigate turbulence"); the number is ours.

    Attributes:
      patience: float32[], s.
    """

    patience: Any

    def steer(
        self, key: jax.Array, now: Track, before: Track, wind: jax.Array
    ) -> tuple[jax.Array, Track]:
        phase = jnp.floor(self.seconds(now.lost) / self.patience)
        begins = phase > jnp.floor(self.seconds(before.lost) / self.patience)
        drawn = jax.random.uniform(key, (), jnp.float32, -180.0, 180.0)
        now = now.replace(angle=jnp.where(begins, drawn, now.angle))
        angle = jnp.where(phase < 1, 0.0, jnp.where(phase < 2, 180.0, now.angle))
        return self.course(wind, angle), now


def surge_spiral(
    env: PlumeSearch,
    params: Params,
    *,
    surge: float = 0.5,
    gap: float = 1.0,
    threshold: float = 1e-4,
    speed: float = 1.0,
    downwind: float = 0.0,
) -> SurgeSpiral:
    """Surge and spiral: upwind in odour, a spiral without.

    Motions: all that can be steered (`policies.fitting.STEERED`).

    Args:
      env, params: the task.
      surge, gap: s: see `SurgeSpiral`.
      threshold: in the unit of the sensor; what is above is odour.
      speed: part of the motion's fastest, in (0, 1].
      downwind: degrees from +x, where the air goes to: used if no sensor feels it.

    Raises:
      ValidationError: another motion, no sensor of odour or wind, or a number that is not allowed.
    """
    shared = tracker(env, params, threshold=threshold, speed=speed, downwind=downwind)
    return SurgeSpiral(
        **shared, surge=seconds_of("surge", surge, params), gap=seconds_of("gap", gap, params)
    )


def circling(
    env: PlumeSearch,
    params: Params,
    *,
    patience: float = 0.5,
    radius: float = 0.5,
    threshold: float = 1e-4,
    speed: float = 1.0,
    downwind: float = 0.0,
) -> Circling:
    """Upwind in odour, widening circles without.

    Motions: all that can be steered (`policies.fitting.STEERED`).

    Args:
      env, params: the task.
      patience, radius: s: see `Circling`.
      threshold, speed, downwind: as in `surge_spiral`.

    Raises:
      ValidationError: as in `surge_spiral`.
    """
    shared = tracker(env, params, threshold=threshold, speed=speed, downwind=downwind)
    first = seconds_of("radius", radius, params)
    return Circling(**shared, patience=seconds_of("patience", patience, params), radius=first)


def backtracking(
    env: PlumeSearch,
    params: Params,
    *,
    patience: float = 0.5,
    threshold: float = 1e-4,
    speed: float = 1.0,
    downwind: float = 0.0,
) -> Backtracking:
    """Upwind in odour, back to where it was without.

    Motions: all that can be steered (`policies.fitting.STEERED`).

    Args:
      env, params: the task.
      patience: s: see `Backtracking`.
      threshold, speed, downwind: as in `surge_spiral`.

    Raises:
      ValidationError: as in `surge_spiral`.
    """
    shared = tracker(env, params, threshold=threshold, speed=speed, downwind=downwind)
    return Backtracking(**shared, patience=seconds_of("patience", patience, params))


POLICIES: dict[str, Callable[..., Any]] = {
    "surge-spiral": surge_spiral,
    "circling": circling,
    "backtracking": backtracking,
}
