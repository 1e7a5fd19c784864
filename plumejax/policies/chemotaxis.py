"""policies/chemotaxis: searches by odour alone: run-and-tumble, E. coli's rule, Braitenberg's."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.base.errors import require
from plumejax.policies.body import Body, Posture
from plumejax.policies.fitting import EGOCENTRIC, body_and_speed
from plumejax.search.environment import PlumeSearch
from plumejax.search.state import Params


class Climbing(struct.PyTreeNode):
    """What a climber remembers.

    Attributes:
      posture: of its body.
      last: float32[], the last reading.
      wait: float32[], s, until it decides anew.
    """

    posture: Posture
    last: jax.Array
    wait: jax.Array


class _Climber(struct.PyTreeNode):
    """What the climbers share that turn by chance as the last two readings say."""

    body: Body
    speed: Any

    def init(self, key: jax.Array) -> Climbing:
        """Without a reading yet; the key is consumed."""
        return Climbing(self.body.begin(key), jnp.float32(-1.0), jnp.float32(0.0))


class RunAndTumbleChemotaxis(_Climber):
    """Runs that end by chance in tumbles: less often while the odour rises.

    A run ends with a rate of 1 / `run`, `gain` times less often while the reading rises; a tumble
    is a turn to either side of |N(turn, spread)|. So in odour that does not rise runs are
    exponential: a step ends one with 1 - exp(-dt / run). The numbers of the default are those of
    Escherichia coli in Berg & Brown 1972 (Nature 239: 500): runs of 0.86 s, tumbles of 68 +- 36
    degrees; the gain is ours. Under the motion `RunAndTumble` a tumble is what that does.

    Attributes:
      body: of the task.
      speed: float32[], lengths a second.
      run: float32[], s, the mean length of a run that leads nowhere.
      gain: float32[], >= 1, by how much longer runs are up the gradient.
      turn, spread: float32[], degrees.
    """

    run: Any
    gain: Any
    turn: Any
    spread: Any

    def act(self, key: jax.Array, carry: Climbing, observation: Any) -> tuple[jax.Array, Climbing]:
        """`(action, carry)`; the key is consumed."""
        end_key, side_key, size_key = jax.random.split(key, 3)
        now = self.body.odour(observation)
        mean = jnp.where(now > carry.last, self.run * self.gain, self.run)
        ends = jax.random.uniform(end_key, (), jnp.float32) < -jnp.expm1(-self.body.dt / mean)
        size = jnp.abs(self.turn + self.spread * jax.random.normal(size_key, (), jnp.float32))
        tumble = size * jax.random.rademacher(side_key, (), jnp.float32)
        turn = carry.posture.owed + jnp.where(ends, tumble, 0.0)
        action, posture = self.body.go(carry.posture, turn, self.speed)
        return action, Climbing(posture, now, carry.wait)


class EColi(_Climber):
    """A small turn where the odour has risen, else any turn; then straight on.

    The reactive rule that robots use under the bacterium's name (Russell, Bab-Hadiashar, Shepherd,
    Wallace 2003, Robotics and Autonomous Systems 45: 83), one of the policies of GSL-Bench (Erwich
    et al. 2024). Both turns are drawn uniformly, to either side. GSL-Bench's numbers stand in no
    text that we found: ours are 5 degrees, half a circle, and a decision each step.

    Attributes:
      body: of the task.
      speed: float32[], lengths a second.
      small, large: float32[], degrees, the most of a turn after a rise, and otherwise.
      every: float32[], s from one decision to the next; 0 is each step.
    """

    small: Any
    large: Any
    every: Any

    def act(self, key: jax.Array, carry: Climbing, observation: Any) -> tuple[jax.Array, Climbing]:
        """`(action, carry)`; the key is consumed."""
        now = self.body.odour(observation)
        decides = carry.wait < self.body.dt / 2
        most = jnp.where(now > carry.last, self.small, self.large)
        drawn = most * jax.random.uniform(key, (), jnp.float32, -1.0, 1.0)
        turn = jnp.where(decides, drawn, carry.posture.owed)
        action, posture = self.body.go(carry.posture, turn, self.speed)
        wait = jnp.where(decides, self.every, carry.wait) - self.body.dt
        return action, Climbing(posture, jnp.where(decides, now, carry.last), wait)


class Braitenberg(struct.PyTreeNode):
    """Turns to the antenna that smells more: Braitenberg 1984, "Vehicles", number 2.

    It turns left by `gain` (L - R) / (L + R) degrees a second, L and R the readings, and goes on.

    Attributes:
      body: of the task.
      speed: float32[], lengths a second.
      gain: float32[], degrees a second if one side smells all; below 0 it flees.
    """

    body: Body
    speed: Any
    gain: Any

    def init(self, key: jax.Array) -> Posture:
        """The posture; the key is consumed."""
        return self.body.begin(key)

    def act(self, key: jax.Array, carry: Posture, observation: Any) -> tuple[jax.Array, Posture]:
        """`(action, carry)`; nothing is drawn."""
        left, right = self.body.reader.sides(observation)
        both = left + right
        contrast = (left - right) / jnp.where(both > 0, both, 1.0)
        turn = carry.owed + self.gain * self.body.dt * contrast
        return self.body.go(carry, turn, self.speed)


def run_and_tumble(
    env: PlumeSearch,
    params: Params,
    *,
    run: float = 0.86,
    gain: float = 5.0,
    turn: float = 68.0,
    spread: float = 36.0,
    speed: float = 1.0,
) -> RunAndTumbleChemotaxis:
    """Run-and-tumble chemotaxis: runs end less often while the odour rises.

    Motions: all that there is a body for (`policies.fitting.MOTIONS`).

    Args:
      env, params: the task.
      run: s; gain; turn, spread: degrees: see `RunAndTumbleChemotaxis`.
      speed: part of the motion's fastest, in (0, 1].

    Raises:
      ValidationError: another motion, no sensor of odour, or a number that is not allowed.
    """
    require(run > 0, "run", run, "> 0 s")
    require(gain >= 1, "gain", gain, ">= 1")
    of, pace = body_and_speed(env, params, speed)
    numbers = map(np.float32, (run, gain, turn, spread))
    return RunAndTumbleChemotaxis(of, pace, *numbers)


def e_coli(
    env: PlumeSearch,
    params: Params,
    *,
    small: float = 5.0,
    large: float = 180.0,
    every: float = 0.0,
    speed: float = 1.0,
) -> EColi:
    """E. coli's rule of robots: a small turn after a rise, else any turn.

    Motions: all that there is a body for (`policies.fitting.MOTIONS`).

    Args:
      env, params: the task.
      small, large: degrees; every: s: see `EColi`.
      speed: part of the motion's fastest, in (0, 1].

    Raises:
      ValidationError: another motion, no sensor of odour, or a number that is not allowed.
    """
    require(every >= 0, "every", every, ">= 0 s")
    of, pace = body_and_speed(env, params, speed)
    return EColi(of, pace, *map(np.float32, (small, large, every)))


def braitenberg(
    env: PlumeSearch, params: Params, *, gain: float = 360.0, speed: float = 1.0
) -> Braitenberg:
    """Braitenberg's vehicle: it turns to the antenna that smells more.

    Motions: `TurnAndSpeed`, `Saccades`, `Unicycle`, `Oriented`.

    Args:
      env, params: the task.
      gain: degrees a second: see `Braitenberg`; ours.
      speed: part of the motion's fastest, in (0, 1].

    Raises:
      ValidationError: another motion, no two antennae, or a number that is not allowed.
    """
    of, pace = body_and_speed(env, params, speed, motions=EGOCENTRIC)
    two = of.reader.antennae is not None
    require(two, "env.sensor", env.sensor, "Antennae with two angles, or a Stack with them")
    return Braitenberg(of, pace, np.float32(gain))


POLICIES: dict[str, Callable[..., Any]] = {
    "run-and-tumble": run_and_tumble,
    "e-coli": e_coli,
    "braitenberg": braitenberg,
}
