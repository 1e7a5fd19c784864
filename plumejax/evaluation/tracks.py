"""evaluation/tracks: what is noted of a searcher's way, step by step."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from plumejax.search import components
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
      hits: int32[], how many of the observations that it acted on told of a hit; None of a sensor
        that tells of none (`search.components.hit`).
      whiffs: int32[], how often hits began: runs of such observations.
      smelled: bool[], whether the last of them told of one.
    """

    path: jax.Array
    distance: jax.Array
    walls: jax.Array
    cycled: jax.Array
    returns: jax.Array
    before: jax.Array
    hits: Any = None
    whiffs: Any = None
    smelled: Any = None


def track_from(env: Any, state: Any, params: Any) -> Track | None:
    """The `Track` at the start of an episode; None where no single agent searches."""
    agent = getattr(state, "agent", None)
    if not isinstance(agent, Agent) or agent.position.ndim != 1:
        return None
    place, zero, no = agent.position, jnp.zeros((), jnp.int32), jnp.asarray(False)
    hits = None if _hit(env, state, params) is None else zero
    sources = env.plume.sources(state.plume, env.episode_params(state, params).plume)
    return Track(
        path=jnp.zeros((), jnp.float32),
        distance=jnp.asarray(distance_to_source(place, sources), jnp.float32),
        walls=zero,
        cycled=no,
        returns=zero,
        before=place,
        hits=hits,
        whiffs=hits,
        smelled=None if hits is None else no,
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
    back = moved & went_back(track.before, here, there)
    returns = jnp.where(moved, jnp.where(back, track.returns + 1, 0), track.returns)
    barred = moved & _barred(env, state, action, after, env.episode_params(state, params))
    return track._replace(
        path=track.path + went,
        walls=track.walls + barred.astype(jnp.int32),
        cycled=track.cycled | (returns > STUCK),
        returns=returns,
        before=jnp.where(moved, here, track.before),
        **_smelled(env, track, state, moved, params),
    )


def _smelled(
    env: Any, track: Track, state: Any, moved: jax.Array, params: Any
) -> dict[str, jax.Array]:
    """What the `Track` notes of the observation that was acted on."""
    hit = _hit(env, state, params)
    if hit is None:
        return {}
    return {
        "hits": track.hits + (moved & hit).astype(jnp.int32),
        "whiffs": track.whiffs + (moved & hit & ~track.smelled).astype(jnp.int32),
        "smelled": jnp.where(moved, hit, track.smelled),
    }


def _hit(env: Any, state: Any, params: Any) -> jax.Array | None:
    return components.hit(env.sensor, state.observation, env.episode_params(state, params))


def went_back(before: jax.Array, here: jax.Array, there: jax.Array) -> jax.Array:
    """bool[]: whether a step from `here` leads to where the one to `here` came from, [d] each."""
    return jnp.all(there == before) & jnp.any(there != here)


def _barred(env: Any, state: Any, action: Any, after: Any, params: Any) -> jax.Array:
    """bool[]: whether the move was barred: what the motion kept of it, or else its mask."""
    kept = getattr(after.agent.motion, "touched", None)
    if kept is not None:
        return kept
    mask = env.motion.mask(state.agent, env.arena, params)
    return ~mask[jnp.ravel(jnp.asarray(action, jnp.int32))[0] if len(mask) > 1 else 0]
