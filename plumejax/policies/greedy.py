"""policies/greedy: an agent that sees the world and looks a few moves ahead: the perfect score."""

from dataclasses import replace
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.base.errors import require
from plumejax.base.spaces import Box, Discrete
from plumejax.policies.geodesic import Geodesic, geodesic
from plumejax.search.endings import AnyOf, GoalDisc, LeftPlume, goal_radius
from plumejax.search.environment import PlumeSearch, distance_to_source
from plumejax.search.state import Agent, Params, Scene
from plumejax.search.truth import World

HORIZON = 16
"""Steps that a plan looks ahead."""

TURNS = (1, 2, 4, 8)
"""After how many steps a plan goes over to its second action."""

DRAWS = 16
"""How often a random motion is simulated; every plan meets the same draws."""


class Greedy(struct.PyTreeNode):
    """Simulates plans, "one action for some steps, then another", and takes the first action of the
    one that is soonest at the source.

    It sees a `World` (`search.truth.told`), and knows motion, arena and ending; of the plume it
    knows nothing. It takes sources to stay where they are and the air to blow on as it does.

    Attributes:
      search: whose motion, arena and ending it knows, static.
      params: their numbers.
      actions: those that it chooses among, leading with n.
      first, second: the actions of each plan, leading with P, as many for each first one in turn.
      turn: int32[P], when it goes over to the second.
      ways: distances round obstacles, None where they are straight: without obstacles, and for a
        source that is drawn or moves.
    """

    search: PlumeSearch = struct.field(pytree_node=False)
    params: Params
    actions: jax.Array
    first: jax.Array
    second: jax.Array
    turn: jax.Array
    ways: Geodesic | None

    def init(self, key: jax.Array) -> tuple[()]:
        """It remembers nothing."""
        return ()

    def act(self, key: jax.Array, carry: tuple[()], observation: World) -> tuple[Any, tuple[()]]:
        """`(action, carry)` of a `World`; the key is consumed."""
        random = getattr(self.search.motion, "random_step", True)
        keys = jax.random.split(key, DRAWS if random else 1)
        costs = jax.vmap(self._costs, (0, None))(keys, observation)
        # Of each first action the best plan in every draw: one is made anew after the step.
        best = jnp.min(costs.reshape(len(keys), len(self.actions), -1), axis=-1)
        return self.actions[jnp.argmin(jnp.mean(best, axis=0))], carry

    def _costs(self, key: jax.Array, world: World) -> jax.Array:
        """float32[P]: of every plan, under one draw of what is random about the motion."""
        keys = jax.random.split(key, HORIZON)
        return jax.vmap(self._cost, (None, None, 0, 0, 0))(
            keys, world, self.first, self.second, self.turn
        )

    def _cost(
        self, keys: jax.Array, world: World, first: jax.Array, second: jax.Array, turn: jax.Array
    ) -> jax.Array:
        """float32[]: of one plan: its distances to the source, summed until that is found.

        Every step before costs as much as the way from the start besides, so that arriving early is
        what counts most; one after a failure a thousand times that.
        """
        apart = self._distance(world.agent, world) + self._radius()
        nothing = jnp.zeros((), bool)

        def step(
            so_far: tuple[Agent, jax.Array, jax.Array], now: tuple[jax.Array, jax.Array]
        ) -> tuple[tuple[Agent, jax.Array, jax.Array], jax.Array]:
            agent, found, failed = so_far
            key, t = now
            action = jnp.where(t < turn, first, second)
            moved = self.search.motion.move(
                key, agent, action, world.air, self.search.arena, self.params
            )
            here, lost = self._ended(agent, moved, action, t, world)
            found, failed = found | (here & ~failed), failed | (lost & ~found)
            going = apart + self._distance(moved, world)
            cost = jnp.where(found, 0.0, jnp.where(failed, 1000.0 * apart, going))
            return (moved, found, failed), cost

        steps = jnp.arange(HORIZON, dtype=jnp.int32)
        _, costs = jax.lax.scan(step, (world.agent, nothing, nothing), (keys, steps))
        return jnp.sum(costs)

    def _distance(self, agent: Agent, world: World) -> jax.Array:
        """float32[]: how far it is to where the source is found."""
        if self.ways is not None:
            return self.ways.distance(agent.position)
        straight = distance_to_source(agent.position, world.sources)
        return jnp.maximum(straight - self._radius(), 0.0)

    def _radius(self) -> Any:
        radius = goal_radius(self.params.ending)
        return jnp.float32(0.0) if radius is None else radius

    def _ended(
        self, before: Agent, after: Agent, action: Any, t: jax.Array, world: World
    ) -> tuple[jax.Array, jax.Array]:
        """`(found, failed)`, as the ending of the search says."""
        no = jnp.zeros((), bool)
        scene = Scene(
            agent=after,
            previous=before,
            action=action,
            air=world.air,
            plume_state=None,
            sensor=(),
            previous_sensor=(),
            sources=world.sources,
            found=no,
            failed=no,
            step_count=t + 1,
        )
        return self.search.ending.ended(scene, self.params)


def greedy(env: PlumeSearch, params: Params) -> Greedy:
    """The perfect agent of a search, which acts on the observations of `told(env, params)`.

    Distances are those round the obstacles if the arena has some (`free` among its numbers) and the
    source is in one place in all episodes; a source that is drawn or moves is gone for straight,
    and may not be reached behind a wall.

    Raises `ValidationError` for actions other than a `Discrete` number or a `Box` of one to three.
    """
    actions = jnp.asarray(_actions(env.action_space(params)))
    plans = [
        (a, b, turn)
        for a, b in product(range(len(actions)), repeat=2)
        for turn in (TURNS if a != b else (HORIZON,))
    ]
    first, second, turn = jnp.asarray(plans, jnp.int32).T
    return Greedy(
        search=replace(env, ending=_foreseen(env.ending)),
        params=params.replace(plume=(), sensor=(), reward=(), start=()),
        actions=actions,
        first=actions[first],
        second=actions[second],
        turn=turn,
        ways=geodesic(env, params),
    )


def _actions(space: Any) -> np.ndarray:
    """The actions of plans: all of a few, else a grid: ends, middle and, of up to two, halves."""
    if isinstance(space, Discrete):
        return np.arange(space.n, dtype=np.int32)
    good = isinstance(space, Box) and len(space.shape) == 1 and space.shape[0] <= 3
    require(good, "action space", space, "Discrete, or a Box of one to three numbers")
    low, high = (np.broadcast_to(np.asarray(x), space.shape) for x in (space.low, space.high))
    shares = np.linspace(0, 1, 5 if len(low) < 3 else 3)
    grid = np.asarray(list(product(shares, repeat=len(low))))
    return (low + grid * (high - low)).astype(space.dtype)


def _foreseen(ending: Any) -> Any:
    """The ending as far as it can be told without the plume."""
    if isinstance(ending, LeftPlume):
        return GoalDisc()
    if isinstance(ending, AnyOf):
        return AnyOf(tuple((name, _foreseen(part)) for name, part in ending.parts))
    return ending
