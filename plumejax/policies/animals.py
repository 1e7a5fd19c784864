"""policies/animals: a walking fly that follows ON and OFF, and the silk moth, as measured."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.base.errors import require
from plumejax.policies.body import Posture, Walker
from plumejax.policies.fitting import legs
from plumejax.search.environment import PlumeSearch
from plumejax.search.filters import on_and_off, smelled
from plumejax.search.state import Params
from plumejax.search.walking import TurnAndSpeed

SAMPLES = 50.0
"""Hz: the samples that the numbers of Alvarez-Salvado et al. 2018 are of."""


class OnOffFilters(struct.PyTreeNode):
    """What the fly of Alvarez-Salvado et al. keeps of the odour: as `search.filters.OnOffState`."""

    adapted_on: Any
    on: Any
    adapted_off: Any
    fast: Any
    slow: Any


class OnOffNumbers(struct.PyTreeNode):
    """As `search.filters.OnOffParams`: float32[], `scale` in the unit of the odour, others s."""

    scale: Any
    adapt_on: Any
    on: Any
    adapt_off: Any
    fast: Any
    slow: Any


class FlyMemory(struct.PyTreeNode):
    """What the fly of Alvarez-Salvado et al. remembers: its posture, and its filters of odour."""

    posture: Posture
    filters: OnOffFilters


class AlvarezSalvado(struct.PyTreeNode):
    """The walking fly of Alvarez-Salvado et al. 2018 (eLife 7: e37815).

    From ON and OFF (`search.filters.OnOff`), at each sample, of 1/50 s: it turns with probability
    0.12 - 0.03 ON + 0.75 OFF, by 20 z^2 degrees to either side, z standard normal; besides by
    0.5 D - 5 D ON degrees, D = -sin of the heading, 0 downwind: drawn downwind without odour,
    upwind with it, and not at all in still air; then it walks at 6 (1 + 0.45 ON - 0.8 OFF) mm/s.

    What it smells at a sample it acts on at the next. At 50 steps a second this is the model as
    written, its filters solved exactly: Euler's, printed, walk a little slower after a pulse than
    the published flies. At other steps the filters stay what they are in seconds, and probability
    and drift are in proportion to the step.

    Attributes:
      body: of the task.
      filters: numbers of ON and OFF.
      unit: float32[], lengths of the plume in a mm.
    """

    body: Walker
    filters: OnOffNumbers
    unit: Any

    def init(self, key: jax.Array) -> FlyMemory:
        """Filters at 0; the key is consumed."""
        return FlyMemory(self.body.begin(key), OnOffFilters(*[jnp.zeros((1,), jnp.float32)] * 5))

    def act(
        self, key: jax.Array, carry: FlyMemory, observation: Any
    ) -> tuple[jax.Array, FlyMemory]:
        """`(action, carry)`; the key is consumed."""
        turn_key, side_key, size_key = jax.random.split(key, 3)
        odour = self.body.odour(observation)[None]
        (on,), (off,) = on_and_off(carry.filters)
        filters = smelled(odour, carry.filters, self.filters, self.body.dt)
        samples = SAMPLES * self.body.dt
        chance = samples * (0.12 - 0.03 * on + 0.75 * off)
        turns = jax.random.uniform(turn_key, (), jnp.float32) < chance
        size = 20.0 * jnp.square(jax.random.normal(size_key, (), jnp.float32))
        side = jax.random.rademacher(side_key, (), jnp.float32)
        downwind = self._downwind(self.body.wind(carry.posture, observation))
        turn = jnp.where(turns, side * size, 0.0) + samples * (0.5 - 5.0 * on) * downwind
        speed = self.unit * jnp.maximum(6.0 * (1.0 + 0.45 * on - 0.8 * off), 0.0)
        action, posture = self.body.go(carry.posture, turn + carry.posture.owed, speed)
        return action, FlyMemory(posture, filters)

    @staticmethod
    def _downwind(wind: jax.Array) -> jax.Array:
        """float32[]: D, the sine of the turn to the left that leads downwind; 0 in still air."""
        squared = jnp.square(wind[0]) + jnp.square(wind[1])
        blows = squared > 0
        return jnp.where(blows, wind[1] / jnp.sqrt(jnp.where(blows, squared, 1.0)), 0.0)


class MothMemory(struct.PyTreeNode):
    """What a silk moth remembers.

    Attributes:
      posture: of its body.
      since: int32[], steps since the last hit.
      side: float32[], 1 or -1, to which it turns first, left or right.
    """

    posture: Posture
    since: jax.Array
    side: jax.Array


class Silkmoth(struct.PyTreeNode):
    """The walking silk moth, Bombyx mori: surge, zigzag, loop (Kanzaki, Sugi, Shibuya 1992,
    Zoological Science 9: 515).

    From a hit on it walks straight ahead at 26 mm/s for 0.5 s, then turns at 1 rad/s: to one side,
    drawn at the hit, until 1.2 s after it, to the other until 1.9 s, back until 2.1 s; from then on
    it loops, as it does at the start. It feels no wind. The side of the loop, the other again, and
    that it turns on the spot unless told otherwise are ours.

    Attributes:
      body: of the task.
      threshold: float32[], in the unit of the sensor; what is above is a hit.
      turning: float32[], mm/s, its speed while it turns.
      unit: float32[], lengths of the plume in a mm.
    """

    body: Walker
    threshold: Any
    turning: Any
    unit: Any

    def init(self, key: jax.Array) -> MothMemory:
        """Looping to a side drawn; the key is consumed."""
        body_key, side_key = jax.random.split(key)
        side = jax.random.rademacher(side_key, (), jnp.float32)
        return MothMemory(self.body.begin(body_key), jnp.int32(2**30), side)

    def act(
        self, key: jax.Array, carry: MothMemory, observation: Any
    ) -> tuple[jax.Array, MothMemory]:
        """`(action, carry)`; the key is consumed."""
        hit = self.body.odour(observation) > self.threshold
        later = jnp.minimum(carry.since + jnp.int32(1), jnp.int32(2**30))
        since = jnp.where(hit, jnp.int32(0), later)
        side = jnp.where(hit, jax.random.rademacher(key, (), jnp.float32), carry.side)
        # Half a step more, against rounding.
        seconds = (since.astype(jnp.float32) + 0.5) * self.body.dt
        first = (seconds < 1.2) | ((seconds >= 1.9) & (seconds < 2.1))
        way = jnp.where(first, side, -side)
        surges = seconds < 0.5
        turn = jnp.where(surges, 0.0, way * jnp.rad2deg(jnp.float32(1.0)) * self.body.dt)
        speed = self.unit * jnp.where(surges, 26.0, self.turning)
        action, posture = self.body.go(carry.posture, turn, speed)
        return action, MothMemory(posture, since, side)


def alvarez_salvado(env: PlumeSearch, params: Params, *, mm: float = 1.0) -> AlvarezSalvado:
    """The walking fly of Alvarez-Salvado et al. 2018: ON and OFF.

    Motions: `TurnAndSpeed`, as fast as 8.7 mm/s. It is the model as written if a step is 1/50 s and
    a step's turn may be half a circle to either side.

    Args:
      env, params: the task; its odour is best 1 at the source.
      mm: lengths of the plume in a mm.

    Raises:
      ValidationError: another motion or a slower one, no sensor of odour or wind.
    """
    of = legs(env, params, 8.7, mm, motions=(TurnAndSpeed,), wind=True)
    taus = [np.float32(n / SAMPLES) for n in (490, 36, 504, 31, 242)]
    return AlvarezSalvado(of, OnOffNumbers(np.float32(0.01), *taus), np.float32(mm))


def silkmoth(
    env: PlumeSearch,
    params: Params,
    *,
    threshold: float = 1e-4,
    turning: float = 0.0,
    mm: float = 1.0,
) -> Silkmoth:
    """The walking silk moth, Kanzaki et al. 1992: surge, zigzag, loop.

    Motions: `TurnAndSpeed`, as fast as 26 mm/s.

    Args:
      env, params: the task.
      threshold: in the unit of the sensor; what is above is a hit.
      turning: mm/s, its speed while it turns, at most 26.
      mm: lengths of the plume in a mm.

    Raises:
      ValidationError: another motion or a slower one, no sensor of odour.
    """
    require(0 <= turning <= 26, "turning", turning, "in [0, 26] mm/s")
    of = legs(env, params, 26.0, mm, motions=(TurnAndSpeed,))
    return Silkmoth(of, np.float32(threshold), np.float32(turning), np.float32(mm))


POLICIES: dict[str, Callable[..., Any]] = {
    "alvarez-salvado": alvarez_salvado,
    "silkmoth": silkmoth,
}
