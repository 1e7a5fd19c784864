"""plumes/recorded_filaments: a recording played as its filaments, exact at every place."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.base.errors import require
from plumejax.plumes.filament_recordings import FilamentRecording
from plumejax.plumes.interface import Air
from plumejax.plumes.puffs import squared_distance


class RecordedFilamentsParams(struct.PyTreeNode):
    """Numbers of a `RecordedFilaments` of T frames with up to N filaments each.

    Attributes:
      filaments: float32[T, 4, N]: x, y, z in m, and the width sigma in m, 0 where there is none.
      amount: float32[], ppm m^3 of gas in a filament, > 0.
      source: float32[3], x, y, z in m.
    """

    filaments: Any
    amount: Any
    source: Any


@dataclass(frozen=True)
class RecordedFilaments:
    """Frames of filaments in a loop, one a step, from one drawn at the start of an episode.

    `C = sum A / ((8 pi^3)^(1/2) sigma^3) exp(-d^2 / (2 sigma^2))`. A grid of the same room in space
    would be tens of times as large and less exact. There is no wind: it reads 0.

    Attributes:
      num_frames: T.
      capacity: N.
    """

    num_frames: int
    capacity: int
    unit = "ppm"
    dimensions = 3
    random_step = False

    def default_params(self) -> RecordedFilamentsParams:
        """Clean air; the filaments of a recording replace it."""
        return RecordedFilamentsParams(
            filaments=np.zeros((self.num_frames, 4, self.capacity), np.float32),
            amount=np.float32(1.0),
            source=np.zeros(3, np.float32),
        )

    def start(self, key: jax.Array, params: RecordedFilamentsParams) -> jax.Array:
        """int32[], the frame."""
        return jax.random.randint(key, (), 0, self.num_frames, jnp.int32)

    def advance(
        self, key: jax.Array, state: jax.Array, params: RecordedFilamentsParams
    ) -> jax.Array:
        after = state + 1
        return jnp.where(after == self.num_frames, jnp.zeros_like(after), after)

    def sample(
        self, state: jax.Array, positions: jax.Array, params: RecordedFilamentsParams
    ) -> Air:
        # A frame of the loop is in bounds. Read once and not in the loop that sums: a third faster.
        filaments = jnp.asarray(params.filaments).at[state].get(mode="promise_in_bounds")
        filaments = jax.lax.optimization_barrier(filaments)
        sigma = filaments[3]
        there = sigma > 0
        sigma = jnp.where(there, sigma, 1.0)
        square = jnp.square(sigma)
        scale = np.float32(1 / np.sqrt(8 * np.pi**3)) * jnp.asarray(params.amount, jnp.float32)
        peak = jnp.where(there, scale / (square * sigma), 0.0)
        squared = squared_distance(positions.T, filaments[:3])
        parts = peak[None] * jnp.exp(squared * (np.float32(-0.5) / square)[None])
        return Air(jnp.sum(parts, axis=1), jnp.zeros_like(positions))

    def sources(self, state: jax.Array, params: RecordedFilamentsParams) -> jax.Array:
        """float32[1, 3]."""
        return jnp.asarray(params.source, jnp.float32)[None]

    def validate(self, params: RecordedFilamentsParams) -> None:
        """Raise `ValidationError` if the filaments do not fit, or a number is not allowed."""
        shape = self.default_params().filaments.shape
        filaments = np.asarray(params.filaments)
        given = filaments.shape
        require(given[-3:] == shape, "plume.filaments.shape", given, f"{shape}")
        sigma = filaments[..., 3, :]
        require(np.all(sigma >= 0), "plume.filaments", float(sigma.min()), "widths >= 0 m")
        require(np.all(np.asarray(params.amount) > 0), "plume.amount", params.amount, "> 0 ppm m^3")
        source = np.asarray(params.source)
        good = source.shape[-1:] == (3,) and np.all(np.isfinite(source))
        require(good, "plume.source", source, "three finite numbers, m")


def played(
    recording: FilamentRecording, frames: range
) -> tuple[RecordedFilaments, RecordedFilamentsParams]:
    """The plume that plays `frames` of a recording, and its numbers."""
    parts = [recording.filaments[recording.offsets[i] : recording.offsets[i + 1]] for i in frames]
    plume = RecordedFilaments(len(parts), max(1, *map(len, parts)))
    params = plume.default_params()
    for row, part in zip(params.filaments, parts, strict=True):
        row[:, : len(part)] = part.T
    params.filaments[:, 3] /= 100  # cm
    # ppm cm^3 are 1e-6 ppm m^3, a share 1e6 ppm.
    amount = recording.moles / recording.moles_of_air
    return plume, params.replace(
        amount=np.float32(amount), source=np.asarray(recording.source, np.float32)
    )
