"""policies/whiff_flies: walking flies that stop, go and turn as whiffs come, as measured."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.policies.body import Body, Posture, Turner, turn_upwind
from plumejax.policies.fitting import legs
from plumejax.search.bouts import Saccades
from plumejax.search.environment import PlumeSearch
from plumejax.search.filters import relaxed
from plumejax.search.state import Params
from plumejax.search.walking import TurnAndSpeed


class Whiffs(struct.PyTreeNode):
    """What a fly that counts whiffs remembers.

    Attributes:
      posture: of its body.
      smells: bool[], whether there was odour in the last step.
      since: float32[], s, since the last whiff; 1000 at the start.
      upwind: float32[], W, the sum over whiffs of exp(-(t - t_whiff) / 2 s).
      start: float32[], the sum over whiffs since the stop of exp(-(t - t_whiff) / 0.52 s).
      present: float32[], ON, 0.5 in odour, 0 out of it, low-passed by 2 s.
      stands: bool[], else it walks.
    """

    posture: Posture
    smells: jax.Array
    since: jax.Array
    upwind: jax.Array
    start: jax.Array
    present: jax.Array
    stands: jax.Array


class Jayaram(struct.PyTreeNode):
    """The walking fly of Jayaram et al. 2022, which follows how often whiffs come and how long.

    It walks at 10.1 mm/s and turns at a rate of 1/0.75 Hz by |N(30, 8)| degrees, toward upwind with
    probability 1 / (1 + exp(-alpha W - beta ON)), measured as alpha = 0.242 and beta = 3.872: W the
    sum over whiffs of exp(-(t - t_whiff) / 2 s), ON half of whether there is odour, low-passed by
    2 s. A whiff is odour that begins, 85 ms or more after the last. Its heading diffuses as that of
    `Demir`.

    `Saccades` draws sizes of turns and diffusion itself; so that they are this fly's, keep its
    numbers. In still air either side is as likely.

    Attributes:
      body: of the task.
      threshold: float32[], in the unit of the sensor; what is above is odour.
      refractory: float32[], s.
      unit: float32[], lengths of the plume in a mm.
      alpha: float32[], the gain of how often whiffs come.
      beta: float32[], the gain of how long they last.
    """

    body: Body
    threshold: Any
    refractory: Any
    unit: Any
    alpha: Any
    beta: Any

    def init(self, key: jax.Array) -> Whiffs:
        """Walking, no whiff yet; the key is consumed."""
        zero, no = jnp.zeros((), jnp.float32), jnp.asarray(False)
        return Whiffs(self.body.begin(key), no, jnp.float32(1000.0), zero, zero, zero, no)

    def act(self, key: jax.Array, carry: Whiffs, observation: Any) -> tuple[jax.Array, Whiffs]:
        """`(action, carry)`; the key is consumed."""
        stop_key, turn_key = jax.random.split(key)
        now = self._stop_or_go(stop_key, self._smell(carry, observation))
        turn = self._turn(turn_key, now, self.body.wind(now.posture, observation))
        turn = jnp.where(now.stands, 0.0, turn)
        speed = jnp.where(now.stands, 0.0, 10.1 * self.unit)
        # Of what a saccade overshoots nothing is owed.
        action, posture = self.body.go(now.posture, turn, speed)
        return action, now.replace(posture=posture)

    def upwind(self, now: Whiffs) -> jax.Array:
        """float32[]: the probability that a turn is toward upwind."""
        return jax.nn.sigmoid(self.alpha * now.upwind + self.beta * now.present)

    def _smell(self, carry: Whiffs, observation: Any) -> Whiffs:
        smells = self.body.odour(observation) > self.threshold
        since = jnp.minimum(carry.since + self.body.dt, 1000.0)
        whiff = smells & ~carry.smells & (since >= self.refractory)
        one = whiff.astype(jnp.float32)
        return carry.replace(
            smells=smells,
            since=jnp.where(whiff, 0.0, since),
            upwind=carry.upwind * jnp.exp(-self.body.dt / 2.0) + one,
            start=carry.start * jnp.exp(-self.body.dt / 0.52) + one,
            present=relaxed(carry.present, 0.5 * smells.astype(jnp.float32), 2.0, self.body.dt),
        )

    def _stop_or_go(self, key: jax.Array, now: Whiffs) -> Whiffs:
        return now

    def _turn(self, key: jax.Array, now: Whiffs, wind: jax.Array) -> jax.Array:
        turn_key, side_key, size_key = jax.random.split(key, 3)
        turns = chance(turn_key, 1.0 / 0.75, self.body.dt)
        # In still air it is on neither side.
        to_upwind = jnp.sign(turn_upwind(wind))
        toward = jnp.where(to_upwind == 0, 0.5, self.upwind(now))
        drawn = jax.random.uniform(side_key, (), jnp.float32) < toward
        side = jnp.where(drawn, 1.0, -1.0) * jnp.where(to_upwind == 0, 1.0, to_upwind)
        if isinstance(self.body, Turner):
            return jnp.where(turns, side * self.body.step, 0.0)
        size, wobble = jax.random.normal(size_key, (2,), jnp.float32)
        noise = 20.0 * jnp.sqrt(self.body.dt / jnp.float32(89.94)) * wobble
        return jnp.where(turns, side * jnp.abs(30.0 + 8.0 * size), 0.0) + noise


class Demir(Jayaram):
    """The walking fly of Demir et al. 2020 (eLife 9: e57524), which follows when whiffs come.

    It stops at a rate of 0.78 - 0.61 exp(-s / 0.25 s) Hz, s the time since the last whiff, and
    walks again at one of 0.29 + 0.41 S Hz, S the sum over whiffs since it stopped of
    exp(-(t - t_whiff) / 0.52 s). It walks at 10.1 mm/s and turns at a rate of 1/0.75 Hz by
    |N(30, 8)| degrees, toward upwind with probability 1 / (1 + exp(-0.242 W)), W the sum over
    whiffs of exp(-(t - t_whiff) / 2 s). A whiff is odour that begins. Its heading diffuses while it
    walks, by N(0, 20/89.94) degrees a frame at 89.94 frames a second.

    On `Saccades`, and attributes, see `Jayaram`.
    """

    def _stop_or_go(self, key: jax.Array, now: Whiffs) -> Whiffs:
        stop = 0.78 - 0.61 * jnp.exp(-now.since / 0.25)
        walk = 0.29 + 0.41 * now.start
        changes = chance(key, jnp.where(now.stands, walk, stop), self.body.dt)
        stands = now.stands ^ changes
        # What was smelled before the stop does not count.
        start = jnp.where(changes & stands, 0.0, now.start)
        return now.replace(stands=stands, start=start)


def chance(key: jax.Array, rate: Any, dt: Any) -> jax.Array:
    """bool[]: whether what happens at a rate, Hz, does within `dt` seconds; the key is consumed."""
    return jax.random.uniform(key, (), jnp.float32) < -jnp.expm1(-jnp.asarray(rate) * dt)


def demir(env: PlumeSearch, params: Params, *, threshold: float = 1e-4, mm: float = 1.0) -> Demir:
    """The walking fly of Demir et al. 2020: it stops, goes and turns as whiffs come.

    Motions: `Saccades`, `TurnAndSpeed`, as fast as 10.1 mm/s.

    Args:
      env, params: the task.
      threshold: in the unit of the sensor; what is above is odour.
      mm: lengths of the plume in a mm.

    Raises:
      ValidationError: another motion or a slower one, no sensor of odour or wind.
    """
    of = legs(env, params, 10.1, mm, motions=(Saccades, TurnAndSpeed), wind=True)
    none, alpha = np.float32(0.0), np.float32(0.242)
    return Demir(of, np.float32(threshold), none, np.float32(mm), alpha, none)


def jayaram(
    env: PlumeSearch,
    params: Params,
    *,
    threshold: float = 1e-4,
    refractory: float = 0.085,
    alpha: float = 0.242,
    beta: float = 3.872,
    mm: float = 1.0,
) -> Jayaram:
    """The walking fly of Jayaram et al. 2022: how often whiffs come, and how long they last.

    Motions: `Saccades`, `TurnAndSpeed`, as fast as 10.1 mm/s.

    Args:
      env, params: the task.
      threshold: in the unit of the sensor; what is above is odour.
      refractory: s, the least from one whiff to the next.
      alpha, beta: gains of how often whiffs come and how long they last, see `Jayaram`.
      mm: lengths of the plume in a mm.

    Raises:
      ValidationError: another motion or a slower one, no sensor of odour or wind.
    """
    of = legs(env, params, 10.1, mm, motions=(Saccades, TurnAndSpeed), wind=True)
    numbers = (np.float32(x) for x in (threshold, refractory, mm, alpha, beta))
    return Jayaram(of, *numbers)


POLICIES: dict[str, Callable[..., Any]] = {"demir": demir, "jayaram": jayaram}
