"""viewing/video: frames of episodes one after another, and files of them."""

import itertools
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from plumejax.arms.camera import SIZE, picture
from plumejax.arms.environment import TwoArm
from plumejax.base.errors import require
from plumejax.base.extras import need
from plumejax.viewing.frames import (
    TRAIL,
    Camera,
    brightest,
    camera,
    contact_sheet,
    frame,
    text_mask,
)
from plumejax.viewing.scenery import scenery

_AT_ONCE = 8
"""Moments that one compiled call draws."""


def film(
    env: Any, params: Any, states: Any, steps: Any, every: int = 1, longest: int = 480
) -> Iterator[np.ndarray]:
    """The frames uint8[H, W, 3] of some episodes, side by side, from the start until the last ends.

    All are on one scale of concentrations, that of the first moment.

    Args:
      env, params: the task, a search or one of two arms.
      states: of every step, as in the lanes of `evaluation.episodes.trace`; leaves lead with
        [T + 1, n].
      steps: int[n], length of each episode.
      every: steps from a frame to the next.
      longest: pixels of the longer side, of several episodes about that of all.

    Raises `ValidationError` if `every` is not above 0.
    """
    require(every > 0, "every", every, "> 0")
    steps = np.asarray(steps)
    moments = [*range(0, int(steps.max()), every), int(steps.max())]
    longest = max(96, longest // round(float(np.sqrt(len(steps)))))
    inner = getattr(env, "env", env)
    if isinstance(inner, TwoArm):
        scale = max(1, longest // SIZE)
        draw = partial(_arms, inner, scale)
    else:
        own = env.episode_params(_at(states, 0, 0), params)
        taken = camera(env, own, longest)
        seen = scenery(env, _at(states, 0, 0), own, taken.canvas)
        top = brightest(seen.field, getattr(own.sensor, "saturation", None))
        draw = partial(_searches, taken, top, places(states))
    for first in range(0, len(moments), _AT_ONCE):
        now = np.asarray(moments[first : first + _AT_ONCE])
        padded = np.concatenate([now, np.repeat(now[-1:], _AT_ONCE - len(now))])
        drawn = np.asarray(draw(params, jax.tree.map(lambda x, t=padded: x[t], states), padded))
        yield from drawn[: len(now)]


def _at(states: Any, moment: int, episode: int) -> Any:
    return jax.tree.map(lambda x: x[moment, episode], states)


def places(states: Any) -> np.ndarray:
    """float32[T + 1, n, 2]: where the agents were; the first one of a team."""
    places = np.asarray(states.agent.position)
    places = places[:, :, 0] if places.ndim == 4 else places
    flat = np.zeros((*places.shape[:2], 2), np.float32)
    flat[..., : min(2, places.shape[-1])] = places[..., :2]
    return flat


def _searches(
    taken: Camera, top: Any, places: np.ndarray, params: Any, states: Any, moments: np.ndarray
) -> jax.Array:
    back = moments[:, None] - np.arange(TRAIL)[::-1]
    behind = np.moveaxis(places[np.maximum(back, 0)], 2, 1)
    trails = np.where((back >= 0)[:, None, :, None], behind, np.nan)
    return _sheets(taken, states, params, trails.astype(np.float32), top)


@partial(jax.jit, static_argnames="taken")
def _sheets(taken: Camera, states: Any, params: Any, trails: jax.Array, top: jax.Array) -> Any:
    """uint8[k, H, W, 3] of states and trails that lead with [k, n]."""

    def one(moment: tuple[Any, jax.Array]) -> jax.Array:
        # One after another: a large plume is sampled at every pixel.
        drawn = jax.lax.map(lambda x: frame(taken, x[0], params, x[1], top), moment)
        return contact_sheet(drawn)

    return jax.lax.map(one, (states, trails))


@partial(jax.jit, static_argnames=("env", "scale"))
def _arms(env: TwoArm, scale: int, params: Any, states: Any, moments: Any) -> jax.Array:
    def one(state: Any) -> jax.Array:
        drawn = picture(state, env.task.grip(state, params.task).exists, params)
        return jnp.repeat(jnp.repeat(drawn, scale, axis=0), scale, axis=1)

    return jax.vmap(lambda each: contact_sheet(jax.vmap(one)(each)))(states)


def captioned(frames: Iterable[np.ndarray], text: str) -> Iterator[np.ndarray]:
    """The frames with a line of text above each."""
    for each in frames:
        height = max(16, each.shape[1] // 24)
        strip = np.zeros((height, each.shape[1], 3), np.uint8)
        mask = text_mask(text, round(0.6 * height))[: height - 2, : each.shape[1] - 6]
        strip[1 : 1 + mask.shape[0], 4 : 4 + mask.shape[1]] = np.rint(255 * mask)[..., None]
        yield np.concatenate([strip, each])


def save_video(
    path: Path,
    frames: Iterable[np.ndarray],
    frames_per_second: float = 20.0,
    progress: Callable[[int], None] = lambda done: None,
) -> int:
    """Write frames uint8[H, W, 3] of one size to the GIF or MP4 `path`, which never holds half of
    them; how many they were.

    Args:
      path: *.gif or *.mp4.
      frames: taken one by one; not all are in memory.
      frames_per_second: of the film, > 0; a GIF has whole hundredths of a second.
      progress: is told how many are done.

    Raises:
      ValidationError: another ending, no frame, or a speed that is not above 0.
      PlumeError: MP4 needs imageio with its ffmpeg (the extra `view`).
    """
    require(path.suffix in (".gif", ".mp4"), "path", str(path), "a file named *.gif or *.mp4")
    require(frames_per_second > 0, "frames_per_second", frames_per_second, "> 0")
    count = 0

    def counted() -> Iterator[np.ndarray]:
        nonlocal count
        for each in frames:
            count += 1
            progress(count)
            yield each

    ahead = counted()
    first = next(ahead, None)
    require(first is not None, "frames", "none", "at least one")
    # In a folder of its own: an ffmpeg that is stopped may still open its file.
    with tempfile.TemporaryDirectory(prefix=".film", dir=path.parent) as folder:
        beside = Path(folder) / path.name
        (_save_gif if path.suffix == ".gif" else _save_mp4)(beside, first, ahead, frames_per_second)
        beside.replace(path)
    return count


def _save_gif(path: Path, first: Any, rest: Iterator[np.ndarray], rate: float) -> None:
    from PIL import Image

    def one(each: np.ndarray) -> Any:
        return Image.fromarray(each).quantize(255, dither=Image.Dither.NONE)

    one(first).save(
        path,
        save_all=True,
        append_images=map(one, rest),
        duration=max(20, round(100 / rate) * 10),
        loop=0,
    )


def _save_mp4(path: Path, first: Any, rest: Iterator[np.ndarray], rate: float) -> None:
    need("imageio_ffmpeg", "view")
    imageio = need("imageio.v2", "view")
    # Every player takes yuv420p, whose sides are even.
    even = ((0, first.shape[0] % 2), (0, first.shape[1] % 2), (0, 0))
    with warnings.catch_warnings():
        # JAX warns of every new process; this one becomes ffmpeg at once.
        warnings.filterwarnings("ignore", "os.fork", RuntimeWarning)
        with imageio.get_writer(path, fps=rate, macro_block_size=1, quality=8) as writer:
            for each in itertools.chain([first], rest):
                writer.append_data(np.pad(each, even, mode="edge"))
