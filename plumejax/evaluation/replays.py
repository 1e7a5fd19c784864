"""evaluation/replays: one episode in a file, and the same episode again.

An episode follows from its task, its numbers, its keys and its actions. A file has these, and the
state after every step: so another machine or version can be asked whether it comes to the same.
"""

import io
import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.base import lifecycle, registry
from plumejax.base.compiling import jit_by_class
from plumejax.base.environment import Environment
from plumejax.base.errors import ValidationError, require
from plumejax.base.files import UNREADABLE, write_bytes_whole
from plumejax.base.rollout import Policy
from plumejax.evaluation.episodes import Episode, Lane, Numbers
from plumejax.evaluation.trials import Trial, evaluation_key, make_agent, make_task, on_bank
from plumejax.learning.checkpoints import bits, describe, require_same, versions
from plumejax.policies.catalogue import PERFECT, prepare

FORMAT = 1
"""Of the file; another number, another form."""


class EpisodeRecord(NamedTuple):
    """An episode that was played.

    Attributes:
      header: what was played, for JSON: format, trial, number, params, versions.
      actions: leading with the steps, T.
      states: of each leaf of the state by its name, its values, leading with T + 1, the start
        first; the observation is left out, which follows from the rest.
    """

    header: dict[str, Any]
    actions: np.ndarray
    states: dict[str, np.ndarray]


class Difference(NamedTuple):
    """Where an episode that is played again parts from the one that was recorded.

    Attributes:
      step: after so many steps; 0 is the start.
      name: of the leaf of the state.
      recorded, now: its values.
    """

    step: int
    name: str
    recorded: np.ndarray
    now: np.ndarray


class Replayed(struct.PyTreeNode):
    """The policy that does what was done.

    Attributes:
      actions: leading with the steps.
    """

    actions: Any

    def init(self, key: jax.Array) -> jax.Array:
        return jnp.zeros((), jnp.int32)

    def act(self, key: jax.Array, carry: jax.Array, observation: Any) -> tuple[Any, jax.Array]:
        return jnp.asarray(self.actions)[carry], carry + jnp.int32(1)


def record(trial: Trial, number: int = 0) -> EpisodeRecord:
    """Episode `number` of a trial, the one that `evaluation.episodes.stream` plays as that.

    Raises:
      ValidationError: what is asked for is not there, or an action that the task refuses.
    """
    require(0 <= number < 2**31, "number", number, "0 <= number < 2**31")
    env, params, policy = make_agent(trial, *make_task(trial))
    actions, states = _play(env, policy, evaluation_key(trial.seed), params, number)
    steps = int(states.step_count[-1])
    kept = {name: x[: steps + 1] for name, x in named(states).items()}
    about = {**header(trial), "number": number}
    return EpisodeRecord(about, actions[:steps], kept)


def header(trial: Trial) -> dict[str, Any]:
    """What the episodes of a trial are a function of, but for their number; for JSON."""
    return {
        "format": FORMAT,
        "version": registry.find(trial.task).version,
        "trial": _plain(replace(trial, episodes=1)),
        "params": describe(_task(trial)[1]),
        "versions": versions(),
    }


def replay(episode: EpisodeRecord, rtol: float = 1e-5) -> Difference | None:
    """Plays it again with its actions: where it comes to another state first, None if nowhere.

    Whole numbers, flags and keys are equal; floats within `rtol` of the largest of their leaf, for
    two programs round differently.

    Raises:
      ValidationError: the task is not what it was: a number, or its behaviour version.
    """
    _, _, states = again(episode)
    now, steps = named(states), len(episode.actions)
    length = int(states.step_count[-1])
    gone = sorted(episode.states.keys() - now.keys())
    if gone:
        raise ValidationError(f"states: {', '.join(gone)}: there is none; it is another version's")
    apart = parts(episode.states, now, rtol)
    if apart is None and length != steps:
        return Difference(min(length, steps), "length", np.asarray(steps), np.asarray(length))
    return apart


def parts(
    was: Mapping[str, np.ndarray], now: Mapping[str, np.ndarray], rtol: float
) -> Difference | None:
    """Where one of the leaves `was` is another `now` first; floats as in `replay`."""
    found = [_first(name, values, now[name], rtol) for name, values in was.items()]
    apart = [each for each in found if each is not None]
    return min(apart, key=lambda each: each.step, default=None)


def again(episode: EpisodeRecord) -> tuple[Any, Any, Any]:
    """`(env, params, states)` of a recorded episode that is played again with its actions: the task
    as it was played, and its states, leaves leading with T + 1 or more, of which those after its
    end are all the last.

    Raises:
      ValidationError: the task is not what it was: a number, or its behaviour version.
    """
    header = episode.header
    trial = Trial(**header["trial"])
    known = registry.find(trial.task).version
    require(known == header["version"], "version", known, f"{header['version']}, as recorded")
    env, params = _task(trial)
    require_same(header["params"], json.loads(json.dumps(describe(params))))
    env, params = on_bank(env, params, trial.plumes, trial.seed)
    if trial.policy == PERFECT:
        env, params, _ = prepare(PERFECT, env, params)
    key = evaluation_key(trial.seed)
    _, states = _play(env, Replayed(episode.actions), key, params, header["number"])
    return env, params, states


def save_episode(path: str | Path, episode: EpisodeRecord) -> None:
    """Write `episode` to `path` (*.npz), which never holds half of it."""
    require(Path(path).suffix == ".npz", "path", str(path), "a name that ends in .npz")
    content = io.BytesIO()
    arrays: dict[str, Any] = {f"state{name}": x for name, x in episode.states.items()}
    np.savez_compressed(
        content, header=json.dumps(episode.header), actions=episode.actions, **arrays
    )
    write_bytes_whole(Path(path), content.getvalue())


def load_episode(path: str | Path) -> EpisodeRecord:
    """What `save_episode` wrote. Raises `ValidationError` for another file."""
    require(Path(path).is_file(), "file", str(path), "one that `plumejax record` wrote")
    try:
        with np.load(path, allow_pickle=False) as stored:
            header = json.loads(str(stored["header"]))
            names = [name for name in stored.files if name.startswith("state")]
            states = {name.removeprefix("state"): stored[name] for name in names}
            episode = EpisodeRecord(header, stored["actions"], states)
        require(header["format"] == FORMAT, "format", header["format"], str(FORMAT))
    except ValidationError:
        raise
    except UNREADABLE:
        raise ValidationError(
            f"{path} holds no episode of plumejax (*.npz), or a damaged one"
        ) from None
    return episode


def _task(trial: Trial) -> tuple[Any, Any]:
    """Without a bank, whose plumes are drawn."""
    return make_task(replace(trial, plumes=0))


def _plain(trial: Trial) -> dict[str, Any]:
    """A trial for JSON. Raises `ValidationError` for a choice that has no form there."""
    try:
        return json.loads(json.dumps(asdict(trial), default=lambda x: np.asarray(x).tolist()))
    except (TypeError, ValueError) as error:
        raise ValidationError(
            f"static = {dict(trial.static)} cannot be recorded: {error}"
        ) from None


def _play(
    env: Environment, policy: Policy, key: jax.Array, params: Any, number: int
) -> tuple[np.ndarray, Any]:
    """`(actions, states)` of an episode, and what comes after its end too."""
    limit = int(params.max_steps)
    numbers = np.asarray([number], np.uint32)
    found = played(env, policy, key, jax.device_put(params), numbers, limit)
    actions, states = jax.tree.map(lambda x: x[0], found)
    actions = jax.device_get(actions)
    steps, last = int(states.step_count[-1]), int(states.lifecycle[-1])
    if last == lifecycle.Lifecycle.READY:
        raise ValidationError(
            f"after {steps} steps the policy gave {actions[steps]}, which the task refuses: it must"
            f" be a member of {env.action_space(params)}"
        )
    return actions, states


def named(states: Any) -> dict[str, np.ndarray]:
    """The leaves of states by their names; of keys their bits."""
    named = jax.tree_util.tree_leaves_with_path(jax.tree.map(bits, states))
    return {jax.tree_util.keystr(path): np.asarray(x) for path, x in named}


class _Noting(struct.PyTreeNode):
    """A policy whose memory has its last action too, which is `none` at the start."""

    policy: Any
    none: Any

    def init(self, key: jax.Array) -> tuple[Any, Any]:
        return self.policy.init(key), self.none

    def act(self, key: jax.Array, carry: Any, observation: Any) -> tuple[Any, Any]:
        action, memory = self.policy.act(key, carry[0], observation)
        return action, (memory, action)


@jit_by_class(static=("env", "steps", "most"))
def played(
    env: Environment,
    policy: Policy,
    key: jax.Array,
    params: Any,
    numbers: Any,
    steps: int,
    most: float = np.inf,
) -> tuple[Any, Any]:
    """`(actions, states)` of the episodes uint32[n], leading with [n, steps] and [n, steps + 1];
    None for parts of a state of more than `most` numbers, and for the observation."""
    game = Episode(env)
    first = jax.eval_shape(game.begin, Numbers(policy, key, params), numbers[0])
    form, _ = jax.eval_shape(policy.act, key, first.memory, first.state.observation)
    none = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), form)
    noting = Numbers(_Noting(policy, none), key, params)

    def kept(lane: Lane) -> Any:
        state = lane.state.replace(observation=None)
        return jax.tree.map(lambda x: x if x.size <= most else None, state)

    def one(lane: Lane, _: None) -> tuple[Lane, Any]:
        lane = game.step(noting, lane)
        return lane, (lane.memory[1], kept(lane))

    def whole(number: jax.Array) -> tuple[Any, Any]:
        begun = game.begin(noting, number)
        _, (actions, states) = jax.lax.scan(one, begun, None, steps)
        return actions, jax.tree.map(
            lambda a, b: jnp.concatenate([a[None], b]), kept(begun), states
        )

    return jax.vmap(whole)(numbers)


def _first(name: str, was: np.ndarray, now: np.ndarray, rtol: float) -> Difference | None:
    """Where a leaf that was recorded is another now."""
    now = now[: len(was)]
    if was[0].size != now[0].size:
        return Difference(0, name, was[0], now[0])
    now = now.reshape(len(now), *was.shape[1:])
    if np.issubdtype(was.dtype, np.floating):
        finite = was[np.isfinite(was)]
        slack = rtol * float(np.max(np.abs(finite), initial=0.0))
        same = np.isclose(now, was, rtol=rtol, atol=slack, equal_nan=True)
    else:
        same = now == was
    wrong = np.flatnonzero(~same.reshape(len(was), -1).all(axis=1))
    return Difference(int(wrong[0]), name, was[wrong[0]], now[wrong[0]]) if len(wrong) else None
