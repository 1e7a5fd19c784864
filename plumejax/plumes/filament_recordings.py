"""plumes/filament_recordings: gas recorded as filaments, and its slices on a grid."""

import json
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from plumejax.base.errors import ValidationError, require

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
      moles: of gas in a filament.
      moles_of_air: of all gases in a cm^3.
    """

    filaments: np.ndarray
    offsets: np.ndarray
    occupancy: np.ndarray
    origin: tuple[float, float, float]
    cell_size: float
    source: tuple[float, float, float]
    moles: float = MOL_PER_FILAMENT
    moles_of_air: float = MOL_OF_AIR_PER_CM3

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
            weight = self._peak(sigma) * at_z
            at_y = weight * _gauss(y[:, None] - centre[None, :, 1], sigma)
            at_x = _gauss(x[:, None] - centre[None, :, 0], sigma)
            pictures[i] = at_y @ at_x.T
        return pictures

    def _peak(self, sigma: np.ndarray) -> np.ndarray:
        """ppm at the centre of a filament of width `sigma` (cm)."""
        return 1e6 * self.moles / (np.sqrt(8 * np.pi**3) * sigma**3) / self.moles_of_air


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
    _require_good(path.name, filaments)
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


def read_raw_filaments(
    folder: str | Path, occupancy: np.ndarray | None = None
) -> FilamentRecording:
    """Read a folder as GADEN's NumPy form has it: `iteration_N_fil.npy` and `iteration_N_head.npy`.

    The frames are those that are there, in the order of N, which need not be 0, 1, 2, ...

    Args:
      folder: of the files; each is one structured array.
      occupancy: uint8[nz, nx, ny], 0 where the air is free; by default everywhere.

    Raises:
      ValidationError: a file is missing or has other fields, the headers differ, a number is not
        finite, or the source or the occupancy does not fit.
    """
    path = Path(folder)
    numbers = raw_iterations(path)
    heads = [_load_raw(path / f"iteration_{n}_head.npy", _HEAD) for n in numbers]
    differing = [n for n, head in zip(numbers, heads, strict=True) if head != heads[0]]
    require(not differing, f"{path.name}: iteration_{differing[:1]}_head", "another", "the same")
    head = heads[0][0]
    cells = tuple(int(head[f"env_cells_{axis}"]) for axis in "zxy")
    sizes = {float(head[f"cell_size_{axis}"]) for axis in "xyz"}
    require(len(sizes) == 1 and min(sizes) > 0, f"{path.name}: cell_size", sizes, "one, > 0 m")
    frames = [_load_raw(path / f"iteration_{n}_fil.npy", _FILAMENT) for n in numbers]
    columns = [np.concatenate([frame[name] for frame in frames]) for name in _FILAMENT]
    filaments = np.stack(columns, axis=1).astype(np.float32)
    _require_good(path.name, filaments)
    if occupancy is None:
        occupancy = np.zeros(cells, np.uint8)
    require(occupancy.shape == cells, "occupancy.shape", occupancy.shape, f"{cells}")
    recording = FilamentRecording(
        filaments=filaments,
        offsets=np.cumsum([0, *(len(frame) for frame in frames)]),
        occupancy=occupancy,
        origin=_triple(head, "env_min_"),
        cell_size=sizes.pop(),
        source=_triple(head, "gas_source_pos_"),
        moles=float(head["filament_num_moles_of_gas"]),
        moles_of_air=float(head["num_moles_all_gases_in_cm3"]),
    )
    _require_source_inside(recording)
    return recording


def raw_iterations(folder: str | Path) -> list[int]:
    """The numbers N of the frames in a folder that `read_raw_filaments` reads, rising."""
    names = (file.name for file in Path(folder).glob("iteration_*_fil.npy"))
    numbers = sorted(int(n) for name in names if (n := name.split("_")[1]).isdigit())
    require(numbers, "folder", str(folder), "one that holds iteration_N_fil.npy")
    return numbers


_FILAMENT = ("pose_x", "pose_y", "pose_z", "sigma")
_HEAD = (
    *(f"{name}{axis}" for name in ("env_min_", "env_cells_", "cell_size_") for axis in "xyz"),
    *(f"gas_source_pos_{axis}" for axis in "xyz"),
    "filament_num_moles_of_gas",
    "num_moles_all_gases_in_cm3",
)


def _load_raw(path: Path, names: tuple[str, ...]) -> np.ndarray:
    require(path.is_file(), "data", str(path), "an existing file")
    try:
        array = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise ValidationError(f"{path.name} is not a NumPy array: {error}") from error
    there = array.dtype.names or ()
    fits = array.ndim == 1 and set(names) <= set(there)
    require(fits, f"{path.name}: fields", there, f"{list(names)} of a structured array")
    return array


def _triple(head: np.ndarray, prefix: str) -> tuple[float, float, float]:
    x, y, z = (float(head[prefix + axis]) for axis in "xyz")
    return x, y, z


def _require_good(name: str, filaments: np.ndarray) -> None:
    bad = np.flatnonzero(~np.isfinite(filaments).all(axis=1))
    require(bad.size == 0, f"{name}: filaments", f"NaN or infinity in rows {bad[:5]}", "finite")
    require(np.all(filaments[:, 3] > 0), f"{name}: filaments[:, 3]", "a sigma <= 0", "> 0 cm")


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
