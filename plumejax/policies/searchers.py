"""policies/searchers: agents that believe, by Bayes' rule, where the source is, and decide on it.

For tasks that observe hits and the agent's own position (`search/encounter_tasks`). A policy keeps
its belief, updates it with what it observes, and takes the move of least cost; what it takes the
world to be (`policies/belief`) are numbers of its own, and may be wrong.
"""

from typing import Any, Literal

import jax
import jax.numpy as jnp
from flax import struct

from plumejax.plumes.encounters import entropy
from plumejax.policies.belief import Model
from plumejax.search.first_hit import by_inversion

Ties = Literal["first", "random"]
"""Of moves that cost the same the first is taken, or one drawn uniformly."""

Walls = Literal["open", "masked"]
"""A move off the grid, which leaves the agent where it is, is weighed as others, or never taken."""


class Memory(struct.PyTreeNode):
    """What a Bayesian searcher remembers.

    Attributes:
      belief: float[*grid], of the source's cell; sums to 1.
    """

    belief: jax.Array


class Searcher(struct.PyTreeNode):
    """Believes, then takes the move of least cost: a subclass says what moves cost in `costs`.

    An observation is float32[1 + d]: hits, then the position. The belief begins uniform over the
    grid; the first observation is taken like any other.

    Attributes:
      model: of the world.
      tolerance: float[], costs that differ by no more are the same.
      ties: which of such moves is taken, static.
      walls: whether moves off the grid may be taken, static.
    """

    model: Model
    tolerance: Any
    ties: Ties = struct.field(pytree_node=False)
    walls: Walls = struct.field(pytree_node=False)

    @property
    def categories(self) -> int:
        """H of the counts."""
        return self.model.categories

    @property
    def grid_size(self) -> tuple[int, ...]:
        return self.model.grid_size

    def init(self, key: jax.Array) -> Any:
        """Nothing is known; nothing is drawn."""
        return Memory(self.model.uniform())

    def act(self, key: jax.Array, carry: Any, observation: Any) -> tuple[jax.Array, Any]:
        """`(action, carry)`, the belief of which is that after the observation; the key is
        consumed."""
        belief, position = self.believe(carry, observation), self.place(observation)
        costs = self.costs(belief, position)
        return self.choose(key, costs, position), carry.replace(belief=belief)

    def believe(self, carry: Any, observation: Any) -> jax.Array:
        """float[*grid]: the belief after `observation`; `Model.updated`."""
        hits = jnp.round(jnp.asarray(observation)[0]).astype(jnp.int32)
        return self.model.updated(carry.belief, self.place(observation), hits)

    def place(self, observation: Any) -> jax.Array:
        """int32[d]: the agent's cell."""
        return jnp.round(jnp.asarray(observation)[1:]).astype(jnp.int32)

    def moved(self, position: jax.Array, action: jax.Array) -> jax.Array:
        """int32[d]: the cell that `action` leads to; `Model.moved`."""
        return self.model.moved(position, action)

    def predict(
        self, belief: jax.Array, position: jax.Array, action: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """`(p_end, q)`: float[], the probability that `action` finds the source; and float[H],
        that of each count if it does not; `Model.predict`."""
        return self.model.predict(belief, position, action)

    def costs(self, belief: jax.Array, position: jax.Array) -> jax.Array:
        """float[2d]: of each move."""
        raise NotImplementedError

    def choose(self, key: jax.Array, costs: jax.Array, position: jax.Array) -> jax.Array:
        """int32[]: the move of least cost; the key is consumed."""
        return self._least(key, self._allowed(costs, position))

    def _allowed(self, costs: jax.Array, position: jax.Array) -> jax.Array:
        if self.walls == "open":
            return costs
        return jnp.where(self.model.possible(position), costs, jnp.inf)

    def _least(self, key: jax.Array, costs: jax.Array) -> jax.Array:
        """int32[]: the index of the least of float[n], of several as `ties` says."""
        least = costs <= jnp.min(costs) + self.tolerance
        if self.ties == "random":
            least = jnp.where(least, jax.random.uniform(key, costs.shape, jnp.float32), -1.0)
        return jnp.argmax(least).astype(jnp.int32)


class Infotaxis(Searcher):
    """Takes the move that is expected to tell most about where the source is (Vergassola,
    Villermaux, Shraiman 2007, Nature 445: 406).

    The entropy expected after a move is `(1 - p_end) sum_h q_h H(p_h)`, of the posteriors p_h of
    all counts, with 0 if the source is found. What it is less than that of the belief is the mutual
    information of the source's cell and of what the move will show, "found" or a count: the
    entropy of that outcome, less the one that its law has if the cell is known. So no posterior is
    made, and no logarithm of the belief is taken: with j_h = sum_cells p L_h,

        gain = -sum_h j_h log2 j_h - p_end log2 p_end + sum_cells p sum_h L_h log2 L_h .

    A cost is minus the gain, bits. Every cell counts, also those below 1e-10 that some programs
    leave out.

    Attributes:
      kernel: float[cells, 1 + 2d, H + 1], L_h and sum_h L_h log2 L_h.
    """

    kernel: Any

    def costs(self, belief: jax.Array, position: jax.Array) -> jax.Array:
        sums = self.model.expected(belief, position, self.kernel)
        unsure = jnp.sum(_xlogx(sums[:, :-1]), axis=1) - sums[:, -1]
        cost = _of_moves(self.model, position, unsure)
        return cost + _xlogx(self.model.beside(belief, position))


class KStepInfotaxis(Infotaxis):
    """Infotaxis that looks several moves ahead: the entropy expected after k moves is least.

    J_k = min over moves of (1 - p_end) sum_h q_h J_(k-1)(p_h), with the entropy as J_0, and 0 once
    the source is found. A cost is J_k with its first move given, less the entropy of the belief.

    Attributes:
      steps: k, static; the work grows by a factor of 2d H each.
    """

    steps: int = struct.field(pytree_node=False)

    def costs(self, belief: jax.Array, position: jax.Array) -> jax.Array:
        return self._ahead(belief, position, self.steps)

    def _ahead(self, belief: jax.Array, position: jax.Array, steps: int) -> jax.Array:
        now = super().costs(belief, position)
        if steps == 1:
            return now

        def later(action: jax.Array) -> jax.Array:
            there = self.model.moved(position, action)

            def best(joint: jax.Array) -> jax.Array:
                share = jnp.sum(joint)
                posterior = joint / jnp.where(share > 0, share, 1.0)
                costs = self._allowed(self._ahead(posterior, there, steps - 1), there)
                return share * jnp.min(costs)

            return jnp.sum(jax.vmap(best)(self.model.joint(belief, there)))

        # One after another: the posteriors of all moves at once are much memory.
        return now + jax.lax.map(later, jnp.arange(len(now), dtype=jnp.int32))


class SpaceAwareInfotaxis(Searcher):
    """Infotaxis that also wants to be near: least `(1 - p_end) sum_h q_h J(p_h)`, J(found) = 0.

    J = log2(D + 2^(H-1) - 1/2), D the mean 1-norm distance to the source and H the entropy in bits
    (Loisy, Eloy 2022, Proc. R. Soc. A 478: 20220118); +1/2 in Heinonen, Biferale, Celani,
    Vergassola 2023 (Phys. Rev. E 107: 055105). With a weight alpha the sum is 2 (alpha D +
    (1 - alpha) 2^(H-1)), so 1/2 is as published, 0 heeds the entropy only, 1 the distance only.

    The entropies of all posteriors p_h = p L_h / j_h come of products with fixed tables:
    H(p_h) = log2 j_h - (sum p log2 p L_h + sum p L_h log2 L_h) / j_h.

    Attributes:
      hits: float[cells, 1 + 2d, H], L_h.
      rest: float[cells, 1 + 2d, 2H], L_h log2 L_h and L_h times the 1-norm distance.
      shift: float[], -1/2 or 1/2.
      alpha: float[], in [0, 1].
    """

    hits: Any
    rest: Any
    shift: Any
    alpha: Any

    def costs(self, belief: jax.Array, position: jax.Array) -> jax.Array:
        joint = self.model.expected(belief, position, self.hits)
        surprise = self.model.expected(_xlogx(belief), position, self.hits)
        rest = self.model.expected(belief, position, self.rest)
        of_law, of_distance = jnp.split(rest, 2, axis=1)
        share = jnp.where(joint > 0, joint, 1.0)
        unsure = jnp.maximum(jnp.log2(share) - (surprise + of_law) / share, 0.0)
        worth = _space_aware(of_distance / share, unsure, self.alpha, self.shift)
        return _of_moves(self.model, position, jnp.sum(joint * worth, axis=1))


class ByPosteriors(Searcher):
    """Forms every posterior that a move may lead to: least `(1 - p_end) sum_h q_h J(p_h)`.

    A subclass says in `worth` what J is; J(found) = 0.
    """

    def costs(self, belief: jax.Array, position: jax.Array) -> jax.Array:
        def after(there: jax.Array) -> jax.Array:
            joint = self.model.joint(belief, there)
            share = jnp.sum(joint, axis=tuple(range(1, joint.ndim)), keepdims=True)
            posteriors = joint / jnp.where(share > 0, share, 1.0)
            worth = jax.vmap(self.worth, (0, None))(posteriors, there)
            return jnp.sum(share.reshape(-1) * worth)

        # One after another: the posteriors of all moves at once are much memory.
        return jax.lax.map(after, self.model.neighbours(position))

    def worth(self, posterior: jax.Array, position: jax.Array) -> jax.Array:
        """float[]: J of float[*grid] as seen from int32[d]; finite where all of it is 0."""
        raise NotImplementedError


class CutoffInfotaxis(ByPosteriors):
    """`Infotaxis` as programs for it compute it, in whose entropies small cells count nothing.

    Loisy, Heinonen 2023 (Eur. Phys. J. E 46: 17) leave out those below 1e-10. That moves gains by
    about 1e-7 on their larger grids.

    Attributes:
      cutoff: float[], of the probability of a cell in a posterior.
    """

    cutoff: Any

    def costs(self, belief: jax.Array, position: jax.Array) -> jax.Array:
        return super().costs(belief, position) - entropy(belief, self.cutoff)

    def worth(self, posterior: jax.Array, position: jax.Array) -> jax.Array:
        return entropy(posterior, self.cutoff)


class CutoffSpaceAwareInfotaxis(ByPosteriors):
    """`SpaceAwareInfotaxis` in whose entropies small cells count nothing; see `CutoffInfotaxis`.

    Attributes:
      shift: float[], -1/2 or 1/2; alpha: float[], in [0, 1]: see `SpaceAwareInfotaxis`.
      cutoff: float[], of the probability of a cell in a posterior.
    """

    shift: Any
    alpha: Any
    cutoff: Any

    def worth(self, posterior: jax.Array, position: jax.Array) -> jax.Array:
        away = self.model.distances(position).astype(posterior.dtype)
        unsure = entropy(posterior, self.cutoff)
        return _space_aware(jnp.sum(posterior * away), unsure, self.alpha, self.shift)


class MaxProbability(Searcher):
    """Takes the move that most probably finds the source: greedy (Loisy, Eloy 2022).

    A cost is minus that probability, as a part of the greatest one: all may be very small.
    """

    def costs(self, belief: jax.Array, position: jax.Array) -> jax.Array:
        p_end = self.model.beside(belief, position)
        most = jnp.max(p_end)
        return -p_end / jnp.where(most > 0, most, 1.0)


class ExpectedGain(Searcher):
    """Takes the move of greatest gain, one that is known for each cell that the source may be in.

    Attributes:
      kernel: float[cells, 2d, 1], gains by displacement; a move off the grid gains 0.
    """

    kernel: Any

    def costs(self, belief: jax.Array, position: jax.Array) -> jax.Array:
        gain = self.model.expected(belief, position, self.kernel)[:, 0]
        return jnp.where(self.model.possible(position), -gain, 0.0)


class MostLikely(Searcher):
    """Goes for the most likely cell (Cassandra, Kaelbling, Kurien 1996, Proc. IROS 2: 963).

    A cost is the moves that are left to there.
    """

    def act(self, key: jax.Array, carry: Any, observation: Any) -> tuple[jax.Array, Any]:
        """`(action, carry)`; the key is consumed."""
        target_key, tie_key = jax.random.split(key)
        belief, position = self.believe(carry, observation), self.place(observation)
        worth = self.worth(belief, position).reshape(-1)
        index = self._least(target_key, -worth / jnp.max(worth))
        costs = self._left(self._cell(index), position)
        return self.choose(tie_key, costs, position), carry.replace(belief=belief)

    def worth(self, belief: jax.Array, position: jax.Array) -> jax.Array:
        """float[*grid]: how much each cell is worth to be gone for."""
        return belief

    def _cell(self, index: jax.Array) -> jax.Array:
        """int32[d]: of a cell's number."""
        return jnp.stack(jnp.unravel_index(index, self.grid_size)).astype(jnp.int32)

    def _left(self, target: jax.Array, position: jax.Array) -> jax.Array:
        """float[2d]: how many moves it is to `target` after each move."""
        ways = jnp.abs(target[None] - self.model.neighbours(position))
        return jnp.sum(ways, axis=1).astype(self.model.likelihood.dtype)


class ProbabilityOverDistance(MostLikely):
    """Goes for the cell of greatest probability over 1-norm distance."""

    def worth(self, belief: jax.Array, position: jax.Array) -> jax.Array:
        return belief / jnp.maximum(self.model.distances(position), 1).astype(belief.dtype)


class Aim(struct.PyTreeNode):
    """What a `Thompson` searcher remembers.

    Attributes:
      belief: float[*grid], of the source's cell; sums to 1.
      target: int32[d], the cell that it goes for.
      left: int32[], moves until another one is drawn.
    """

    belief: jax.Array
    target: jax.Array
    left: jax.Array


class Thompson(MostLikely):
    """Draws a cell from the belief and goes for it, for some moves or until it is there (Heinonen
    et al. 2023; Thompson 1933, Biometrika 25: 285).

    Attributes:
      persistence: int32[], moves until the next is drawn.
    """

    persistence: Any

    def init(self, key: jax.Array) -> Aim:
        target = jnp.zeros(len(self.grid_size), jnp.int32)
        return Aim(self.model.uniform(), target, jnp.int32(0))

    def act(self, key: jax.Array, carry: Aim, observation: Any) -> tuple[jax.Array, Aim]:
        """`(action, carry)`; the key is consumed."""
        draw_key, tie_key = jax.random.split(key)
        belief, position = self.believe(carry, observation), self.place(observation)
        uniform = jax.random.uniform(draw_key, (), belief.dtype)
        drawn = self._cell(by_inversion(uniform, belief.reshape(-1)))
        again = (carry.left <= 0) | jnp.all(carry.target == position)
        target = jnp.where(again, drawn, carry.target)
        left = jnp.where(again, self.persistence, carry.left) - jnp.int32(1)
        action = self.choose(tie_key, self._left(target, position), position)
        return action, Aim(belief, target, left)


def _xlogx(x: jax.Array) -> jax.Array:
    """float[...]: x log2 x, 0 at 0."""
    return jnp.where(x > 0, x * jnp.log2(jnp.where(x > 0, x, 1.0)), 0.0)


def _space_aware(distance: jax.Array, unsure: jax.Array, alpha: Any, shift: Any) -> jax.Array:
    """float[...]: J of the mean distance and the entropy, float[...] each."""
    size = alpha * distance + (1 - alpha) * jnp.exp2(unsure - 1)
    # It is no less than 1/2 where nothing is found; rounding, or a count that cannot be, may be.
    return jnp.log2(jnp.maximum(2 * size + shift, 0.5))


def _of_moves(model: Model, position: jax.Array, after: jax.Array) -> jax.Array:
    """float[2d] from float[1 + 2d], where the first is that of a move that was barred."""
    return jnp.where(model.possible(position), after[1:], after[0])
