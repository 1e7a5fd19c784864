"""evaluation/tracks: what is noted of a searcher's way, step by step."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from plumejax.search.environment import distance_to_source
from plumejax.search.state import Agent

STUCK = 8
"""A searcher cycles that comes back to its place of two steps ago more often than this, running."""


class Track(NamedTuple):
    """The way of one searcher.

    Attributes:
      path: float32[], how far it went, lengths of the plume.
      distance: float32[], from its start to the nearest source then.
      walls: int32[], moves that a wall or an obstacle barred.
      cycled: bool[], it went to and fro between two places (`STUCK`).
      returns: int32[], how often running it has come back to its place of two steps ago.
      before: float32[d], where it was a step ago.
    """

    path: jax.Array
    distance: jax.Array
    walls: jax.Array
    cycled: jax.Array
    returns: jax.Array
    before: jax.Array


def track_from(env: Any, state: Any, params: Any) -> Track | None:
    """The `Track` at the start of an episode; None where no single agent searches."""
    agent = getattr(state, "agent", None)
    if not isinstance(agent, Agent) or agent.position.ndim != 1:
        return None
    place, zero = agent.position, jnp.zeros((), jnp.int32)
    sources = env.plume.sources(state.plume, env.episode_params(state, params).plume)
    return Track(
        path=jnp.zeros((), jnp.float32),
        distance=jnp.asarray(distance_to_source(place, sources), jnp.float32),
        walls=zero,
        cycled=jnp.asarray(False),
        returns=zero,
        before=place,
    )


def follow(
    env: Any, track: Track | None, state: Any, action: Any, after: Any, params: Any
) -> Track | None:
    """The `Track` after the step from `state` to `after`; of an ended episode, as it was."""
    if track is None:
        return None
    here, there = state.agent.position, after.agent.position
    moved = after.step_count > state.step_count
    went = jnp.sqrt(jnp.sum(jnp.square(there - here)))
    back = moved & jnp.all(there == track.before) & jnp.any(there != here)
    returns = jnp.where(moved, jnp.where(back, track.returns + 1, 0), track.returns)
    barred = moved & _barred(env, state, action, after, env.episode_params(state, params))
    return track._replace(
        path=track.path + went,
        walls=track.walls + barred.astype(jnp.int32),
        cycled=track.cycled | (returns > STUCK),
        returns=returns,
        before=jnp.where(moved, here, track.before),
    )


def _barred(env: Any, state: Any, action: Any, after: Any, params: Any) -> jax.Array:
    """bool[]: whether the move was barred: what the motion kept of it, or else its mask."""
    kept = getattr(after.agent.motion, "touched", None)
    if kept is not None:
        return kept
    mask = env.motion.mask(state.agent, env.arena, params)
    return ~mask[jnp.ravel(jnp.asarray(action, jnp.int32))[0] if len(mask) > 1 else 0]
