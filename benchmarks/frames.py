"""benchmarks/frames: `python -m benchmarks.frames`: what frames look like, and what one costs.

Draws a frame of each of nine tasks a hundred steps into an episode of a baseline, and times frames
of each under `vmap`, in CPU time of this process. Writes benchmarks/results/frames.png.
"""

import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import tyro
from matplotlib.figure import Figure
from rich.console import Console
from rich.progress import track
from rich.table import Table

import plumejax
from plumejax.evaluation.episodes import trace
from plumejax.policies.catalogue import prepare
from plumejax.viewing.figures import save
from plumejax.viewing.frames import TRAIL, camera, frame
from plumejax.viewing.video import places

RESULTS = Path(__file__).parent / "results" / "frames.png"

TASKS = {
    "PlumeSearchLocal-v0": "gradient",
    "Fly-Packets-v0": "cast-and-surge",
    "PlumeTracking-Code-SwitchMany-v0": "cast-and-surge",
    "PlumeTracking-Farrell-v0": "cast-and-surge",
    "Olfactory-Windy-Medium-v0": "infotaxis",
    "Obstacles-v0": "random",
    "Fly-GaussianWind-v0": "cast-and-surge",
    "MovingSource-v0": "random",
    "FiniteMemory-Cosh-v0": "random",
}
"""And who plays them."""


def main(*, steps: int = 100, frames: int = 8, out: Path = RESULTS) -> None:
    """Draw and time.

    Args:
      steps: into an episode, at most.
      frames: under one `vmap`, that are timed.
      out: the picture, *.png.
    """
    figure = Figure(figsize=(11, 11), layout="constrained")
    table = Table("task", "pixels", "CPU ms a frame")
    spots = np.ravel(figure.subplots(3, 3))
    for (task, policy), axes in track(zip(TASKS.items(), spots, strict=True), total=len(TASKS)):
        env, params, agent = prepare(policy, *plumejax.make(task))
        outcomes, lanes = trace(env, agent, jax.random.key(1), params, 4, steps)
        last = int(np.argmax(outcomes.steps))
        moment = max(0, min(steps, int(outcomes.steps[last])) - 1)
        states = jax.tree.map(lambda x, i=last, t=moment: x[t, i], lanes.state)
        way = places(lanes.state)[max(0, moment + 1 - TRAIL) : moment + 1, last]
        trail = np.full((TRAIL, 2), np.nan, np.float32)
        trail[TRAIL - len(way) :] = way
        taken = camera(env, params)
        axes.imshow(frame(taken, states, params, trail))
        axes.set_axis_off()
        axes.set_title(task, fontsize=10)
        many = jax.tree.map(lambda x: jnp.stack([x] * frames), states)
        draw = jax.jit(jax.vmap(lambda one, t=taken, p=params: frame(t, one, p)))
        jax.block_until_ready(draw(many))
        began = time.process_time()
        jax.block_until_ready(draw(many))
        each = (time.process_time() - began) / frames
        table.add_row(task, f"{taken.shape[1]} x {taken.shape[0]}", f"{1000 * each:.1f}")
    save(figure, out)
    Console().print(table)


if __name__ == "__main__":
    tyro.cli(main)
