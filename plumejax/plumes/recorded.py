"""plumes/recorded: recorded gas, played in a loop, and the reader of filament recordings."""

import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.base.errors import ValidationError, require
from plumejax.plumes.interface import Air


class RecordedParams(struct.PyTreeNode):
    """Numbers of a `RecordedPlume`.

    Attributes:
      frames: float32[T, height, width], concentration at the centre of each cell.
      source: float32[2], x and y in cells; not whole where it lies between cells.
    """

    frames: Any
    source: Any


@dataclass(frozen=True)
class RecordedPlume:
    """A movie of concentration, one frame a step, in a loop from a phase drawn at the start.

    A position reads the cell it lies in, and 0 outside the grid. The state is the frame, int32[].
    No wind was recorded: it reads 0.

    Attributes:
      num_frames: frames of the loop.
      grid_size: width and height in cells.
    """

    num_frames: int
    grid_size: tuple[int, int]
    random_step = False
    unit = "ppm"

    def default_params(self) -> RecordedParams:
        """Clean air with the source in the middle; the frames of a recording replace it."""
        width, height = self.grid_size
        return RecordedParams(
            frames=np.zeros((self.num_frames, height, width), np.float32),
            source=(np.asarray(self.grid_size) // 2).astype(np.float32),
        )

    def start(self, key: jax.Array, params: RecordedParams) -> jax.Array:
        # One draw of bits, where `randint` makes four; no frame gains more than its share of 2^32.
        word = jax.random.bits(key, (), jnp.uint32)
        return (word % jnp.uint32(self.num_frames)).astype(jnp.int32)

    def advance(self, key: jax.Array, state: jax.Array, params: RecordedParams) -> jax.Array:
        return jnp.where(state + 1 == self.num_frames, jnp.zeros_like(state), state + 1)

    def sample(self, state: jax.Array, positions: jax.Array, params: RecordedParams) -> Air:
        width, height = self.grid_size
        x, y = jnp.round(positions).astype(jnp.int32).T
        inside = (x >= 0) & (x < width) & (y >= 0) & (y < height)
        cell = (state, jnp.clip(y, 0, height - 1), jnp.clip(x, 0, width - 1))
        reading = jnp.asarray(params.frames)[cell]
        concentration = jnp.where(inside, reading, jnp.zeros_like(reading))
        return Air(concentration=concentration, wind=jnp.zeros_like(positions))

    def sources(self, state: jax.Array, params: RecordedParams) -> jax.Array:
        return jnp.asarray(params.source)[None]

    def validate(self, params: RecordedParams) -> None:
        """Raise `ValidationError` if the frames do not fit or a number is not allowed."""
        frames, shape = np.asarray(params.frames), (self.num_frames, *self.grid_size[::-1])
        require(frames.shape[-3:] == shape, "plume.frames.shape", frames.shape, f"{shape}")
        require(np.all(frames >= 0), "plume.frames", float(frames.min()), ">= 0 everywhere")
        source = np.asarray(params.source)
        good = np.all((source >= 0) & (source <= np.asarray(self.grid_size) - 1))
        require(good, "plume.source", params.source, f"inside the grid {self.grid_size}")


# Gas in a filament and in the air, as GADEN's filament model has it in the recordings of
# GSL-Bench (Erwich, Duisterhof, de Croon, ICRA 2024): mol a filament, mol of all gases a cm^3.
MOL_PER_FILAMENT = 6.440736978853164e-06
MOL_OF_AIR_PER_CM3 = 4.0894632701667424e-05

SOURCES = {"warehouse_empty_001": (5.0, 1.0, 2.0), "warehouse_simple_004": (1.2, 10.0, 2.0)}
"""Where the source is, x, y, z in m, of the recordings we know by their file name (GSL-Bench)."""


@dataclass(frozen=True)
class FilamentRecording:
    """A recorded dispersion as filaments.

    Attributes:
      filaments: float32[n, 4]: x, y, z in m and the width sigma in cm, frame after frame.
      offsets: int64[T + 1]: frame i is `filaments[offsets[i]:offsets[i + 1]]`.
      occupancy: uint8[nz, nx, ny]: 0 where the air is free.
      origin: x, y, z in m of the corner of cell (0, 0, 0).
      cell_size: edge of a cell in m.
      source: x, y, z in m.
    """

    filaments: np.ndarray
    offsets: np.ndarray
    occupancy: np.ndarray
    origin: tuple[float, float, float]
    cell_size: float
    source: tuple[float, float, float]

    @property
    def level(self) -> int:
        """The layer of cells, counted from below, that the source is in."""
        return int(np.floor((self.source[2] - self.origin[2]) / self.cell_size + 1e-6))

    @property
    def grid_size(self) -> tuple[int, int]:
        """Width (x) and height (y) in cells."""
        return self.occupancy.shape[1], self.occupancy.shape[2]

    def free(self) -> np.ndarray:
        """bool[height, width], indexed [y, x]: the free cells at the source's height."""
        return (self.occupancy[self.level] == 0).T

    def source_cell(self) -> np.ndarray:
        """float32[2]: the source in cells, where cell i has its centre at i."""
        corner, source = np.asarray(self.origin[:2]), np.asarray(self.source[:2])
        return ((source - corner) / self.cell_size - 0.5).astype(np.float32)

    def slice(self, frames: range) -> np.ndarray:
        """float32[len(frames), height, width], ppm at the cells' centres at the source's height.

        Exact there: a filament is a product of Gaussians of x, y and z, so a frame is one product
        of two matrices.
        """
        width, height = self.grid_size
        x = 100 * (self.origin[0] + (np.arange(width) + 0.5) * self.cell_size)
        y = 100 * (self.origin[1] + (np.arange(height) + 0.5) * self.cell_size)
        pictures = np.empty((len(frames), height, width), np.float32)
        for i, frame in enumerate(frames):
            part = self.filaments[self.offsets[frame] : self.offsets[frame + 1]].astype(np.float64)
            centre, sigma = 100 * part[:, :3], part[:, 3]
            at_z = _gauss(100 * self.source[2] - centre[:, 2], sigma)
            weight = concentration_scale(sigma) * at_z
            at_y = weight * _gauss(y[:, None] - centre[None, :, 1], sigma)
            at_x = _gauss(x[:, None] - centre[None, :, 0], sigma)
            pictures[i] = at_y @ at_x.T
        return pictures


def concentration_scale(sigma: Any) -> Any:
    """ppm at the centre of a filament of width `sigma` (cm)."""
    per_filament = MOL_PER_FILAMENT / (np.sqrt(8 * np.pi**3) * sigma**3)
    return 1e6 * per_filament / MOL_OF_AIR_PER_CM3


def _gauss(distance: np.ndarray, sigma: np.ndarray) -> np.ndarray:
    # Far below what float32 keeps; without it the products fall into slow subnormal numbers.
    return np.exp(np.maximum(-np.square(distance / sigma) / 2, -150.0))


def read_filaments(
    data: str | Path, source: tuple[float, float, float] | None = None
) -> FilamentRecording:
    """Read `NAME.npz` (`filaments`, `offsets`) with `NAME_occupancy.npz` and `.txt` beside it.

    Args:
      data: path of `NAME.npz`.
      source: x, y, z in m; may be left out for a recording in `SOURCES`.

    Raises:
      ValidationError: a file is missing or no archive, an array has another name, shape or kind,
        holds a NaN, or does not fit the others; the message says which and what is expected.
    """
    require(isinstance(data, str | Path), "data", data, "the path of a file")
    path = Path(data)
    arrays = _load(path, {"filaments": 2, "offsets": 1})
    filaments, offsets = arrays["filaments"], arrays["offsets"]
    require(
        filaments.shape[1:] == (4,) and filaments.dtype.kind == "f",
        f"{path.name}: filaments",
        f"{filaments.dtype}{list(filaments.shape)}",
        "float32[n, 4]: x, y, z in m, sigma in cm",
    )
    bad = np.flatnonzero(~np.isfinite(filaments).all(axis=1))
    require(
        bad.size == 0, f"{path.name}: filaments", f"NaN or infinity in rows {bad[:5]}", "finite"
    )
    require(np.all(filaments[:, 3] > 0), f"{path.name}: filaments[:, 3]", "a sigma <= 0", "> 0 cm")
    fit = (
        offsets.dtype.kind in "iu"
        and len(offsets) >= 2
        and offsets[0] == 0
        and offsets[-1] == len(filaments)
        and np.all(np.diff(offsets) >= 0)
    )
    require(
        fit,
        f"{path.name}: offsets",
        f"{offsets.dtype}{list(offsets.shape)} from {offsets[:1]} to {offsets[-1:]}",
        f"integers that rise from 0 to the number of filaments, {len(filaments)}",
    )
    rooms = path.with_name(f"{path.stem}_occupancy.npz")
    occupancy = _load(rooms, {"occupancy": 3})["occupancy"]
    origin, cell_size = _read_header(rooms.with_suffix(".txt"), occupancy.shape)
    if source is None:
        require(
            path.stem in SOURCES,
            "source",
            None,
            f"x, y, z in m, since {path.name} is not one of the known {list(SOURCES)}",
        )
        source = SOURCES[path.stem]
    recording = FilamentRecording(filaments, offsets, occupancy, origin, cell_size, source)
    _require_source_inside(recording)
    return recording


def _load(path: Path, dimensions: dict[str, int]) -> dict[str, np.ndarray]:
    require(path.is_file(), "data", str(path), "the path of an existing file")
    try:
        with np.load(path, allow_pickle=False) as archive:
            names = sorted(archive.files)
            missing = [name for name in dimensions if name not in names]
            require(not missing, f"{path.name}: arrays", names, f"{list(dimensions)}")
            arrays = {name: archive[name] for name in dimensions}
    except ValidationError:
        raise
    except (OSError, ValueError, TypeError, AttributeError, zipfile.BadZipFile) as error:
        raise ValidationError(f"{path.name} is not a NumPy archive (.npz): {error}") from error
    for name, ndim in dimensions.items():
        shape = arrays[name].shape
        require(len(shape) == ndim, f"{path.name}: {name}.shape", shape, f"of {ndim} dimensions")
    return arrays


def _read_header(path: Path, shape: tuple[int, ...]) -> tuple[tuple[float, float, float], float]:
    require(path.is_file(), "data", str(path), "beside the recording: it says where its cells are")
    try:
        header = json.loads(path.read_text())
        x, y, z = (float(v) for v in header["env_min"])
        cells, size = tuple(header["num_cells"]), float(header["cell_size"])
    except (ValueError, KeyError, TypeError) as error:
        raise ValidationError(
            f"{path.name} must be JSON with env_min, num_cells and cell_size: {error}"
        ) from error
    stored = (shape[1], shape[2], shape[0])
    require(cells == stored, f"{path.name}: num_cells", cells, f"the array's {stored}")
    require(size > 0, f"{path.name}: cell_size", size, "> 0 m")
    return (x, y, z), size


def _require_source_inside(recording: FilamentRecording) -> None:
    cells = (recording.occupancy.shape[1], recording.occupancy.shape[2])
    low = np.asarray(recording.origin)
    high = low + recording.cell_size * np.asarray([*cells, recording.occupancy.shape[0]])
    source = np.asarray(recording.source, float)
    inside = source.shape == (3,) and np.all((source > low) & (source < high))
    require(inside, "source", recording.source, f"x, y, z in m between {low} and {high}")
