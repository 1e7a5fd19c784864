"""cli/video: `plumejax video`: an episode, a batch of them, or a training as a film."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import jax
import numpy as np
import tyro
from rich.console import Console

from plumejax.base.errors import ValidationError, require
from plumejax.base.registry import registered_tasks
from plumejax.cli.plume_named import bar, require_out
from plumejax.evaluation.episodes import trace
from plumejax.evaluation.replays import again, load_episode
from plumejax.evaluation.trials import Trial, evaluation_key, make_agent, make_task, on_bank
from plumejax.learning.recipes import recipe
from plumejax.learning.runs import agent_history, load_agent
from plumejax.viewing.video import captioned, film, save_video

_WINDOWS = 36
"""Episodes side by side, at most: more are too small to be seen."""

_AT_MOST = 400
"""Frames that a film has unless `--every` says otherwise."""


def video(
    source: tyro.conf.Positional[str],
    *,
    out: Path,
    policy: str | None = None,
    of: Literal["agent", "training"] = "agent",
    episodes: int | None = None,
    seed: int = 0,
    every: int | None = None,
    fps: float = 20.0,
) -> int:
    """Make a film (*.gif or *.mp4) of episodes over the moving plume.

    Of several episodes each has a window of its own, on one scale of concentrations.

    Args:
        source: what `plumejax record` wrote; a run directory or the name of an agent that comes
            with the package; or the id of a task, with --policy.
        out: the film.
        policy: who plays the task.
        of: of a run directory: agent, its agent as it is; training, the agents along the training
            on the same starts, one after another.
        episodes: side by side; by default 1, of a training 4.
        seed: of the episodes.
        every: steps from a frame to the next; by default as makes 400 frames at most.
        fps: frames a second.
    """
    require_out(out, ".gif", ".mp4")
    require(
        episodes is None or 0 < episodes <= _WINDOWS, "--episodes", episodes, f"1 to {_WINDOWS}"
    )
    require(0 <= seed < 2**31, "--seed", seed, "0 <= seed < 2**31")
    require(every is None or every > 0, "--every", every, "> 0")
    fastest = 50 if out.suffix == ".gif" else 240
    require(0.1 <= fps <= fastest, "--fps", fps, f"0.1 to {fastest} of a {out.suffix}")
    is_task = source in registered_tasks()
    require(is_task == (policy is not None), "--policy", policy, "given of a task, and only of one")
    run = Path(source)
    good = of == "agent" or run.is_dir()
    require(good, "--of", of, "agent, where it is no run directory")
    with bar(Console()) as shown:
        count = shown.add_task("playing", total=None)
        if of == "training":
            parts = _training(run, episodes or 4, seed, every)
        else:
            parts = [("", *_played(source, policy, episodes or 1, seed))]
            parts = [(*part, every or _stride(part[-1], 1)) for part in parts]
        total = sum(len(range(0, int(steps.max()), n)) + 1 for *_, steps, n in parts)
        shown.update(count, description="drawing", total=total)
        frames = chain.from_iterable(_shot(*part) for part in parts)
        made = save_video(out, frames, fps, lambda done: shown.update(count, completed=done))
    Console().print(f"{out}: {made} frames, {made / fps:.1f} s", highlight=False, soft_wrap=True)
    return 0


def _shot(
    caption: str, env: Any, params: Any, states: Any, steps: Any, every: int
) -> Iterator[np.ndarray]:
    frames = film(env, params, states, steps, every)
    return captioned(frames, caption) if caption else frames


def _stride(steps: Any, parts: int) -> int:
    """Steps between frames, for one of several parts."""
    return -(-int(np.max(steps)) * parts // _AT_MOST) or 1


def _played(source: str, policy: str | None, episodes: int, seed: int) -> tuple[Any, ...]:
    """`(env, params, states, steps)` of what is to be seen."""
    path = Path(source)
    if path.suffix == ".npz" and path.is_file():
        require(episodes == 1, "--episodes", episodes, "left out: a file has one episode")
        env, params, states = again(load_episode(path))
        steps = np.asarray(states.step_count)[-1:]
        return env, params, jax.tree.map(lambda x: x[:, None], states), steps
    if policy is not None:
        trial = Trial(source, policy, seed=seed)
        env, params, agent = make_agent(trial, *make_task(trial))
    else:
        agent, env, params = load_agent(source)
        env, params = on_bank(env, params, recipe(env).plumes and 1, seed)
    return _traced(env, params, agent, episodes, seed)[:4]


def _traced(env: Any, params: Any, agent: Any, episodes: int, seed: int) -> tuple[Any, ...]:
    """`(env, params, states, steps, found)`."""
    limit = int(params.max_steps)
    params = jax.device_put(params)
    outcomes, lanes = trace(env, agent, evaluation_key(seed), params, episodes, limit)
    steps = np.asarray(outcomes.steps)
    if (steps < 0).any():
        raise ValidationError(f"the task refuses an action of {type(agent).__name__}")
    return env, params, lanes.state, steps, np.asarray(outcomes.found)


def _training(run: Path, episodes: int, seed: int, every: int | None) -> list[tuple[Any, ...]]:
    """A part for each agent along a training."""
    history = agent_history(run)
    parts = []
    for steps, path in history:
        agent, env, params = load_agent(path)
        env, params = on_bank(env, params, recipe(env).plumes and 1, seed)
        env, params, states, lengths, found = _traced(env, params, agent, episodes, seed)
        caption = f"after {steps / 1e6:.2g} M steps" if steps else "before training"
        caption = f"{caption}: {found.sum()} of {episodes} found"
        stride = every or _stride(lengths, len(history))
        parts.append((caption, env, params, states, lengths, stride))
    return parts
