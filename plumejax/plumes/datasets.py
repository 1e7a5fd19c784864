"""plumes/datasets: the public recordings that people replay, and how each becomes a movie.

Nothing is downloaded: a file that a user has fetched is verified and imported by its id. Checksums
are those that the archives publish, as plume_nav_sim 0.1.0 (MIT) and the reproduction notes of
`emonetlab/GradientMotionMultiplePlumes` repeat them; None where we found none.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from plumejax.base.errors import ValidationError, near, require
from plumejax.plumes.importing import Recipe

FILAMENTS = "filaments"
"""The recipe of what `importing.import_filaments` reads."""

POINTS = "points"
"""What stands for a recipe where there is no movie to make."""


@dataclass(frozen=True)
class Dataset:
    """A public recording.

    Attributes:
      id: what it is called here.
      title: what it is.
      authors: and the year.
      doi: of the data, or "" if they have none; `url` then says where they are.
      licence: as the archive has it.
      file: the name of the file to fetch, or a pattern of several; the checksums are of that file.
      size: of the file or, if it says so, of the whole deposit.
      md5, sha256: of the file, None where we found none published.
      recipe: how it is imported, `FILAMENTS`, `POINTS`, or None where we do not know its form and
        an import needs choices of its own.
      notes: what else to know, one sentence each.
    """

    id: str
    title: str
    authors: str
    doi: str
    licence: str
    file: str
    size: str
    recipe: Recipe | str | None
    md5: str | None = None
    sha256: str | None = None
    url: str = ""
    notes: tuple[str, ...] = field(default=())

    @property
    def where(self) -> str:
        """The address of the data."""
        return f"https://doi.org/{self.doi}" if self.doi else self.url


@dataclass(frozen=True)
class Verified:
    """What a file was found to be.

    Attributes:
      md5, sha256: its own.
      published: whether they were compared with a published checksum.
    """

    md5: str
    sha256: str
    published: bool


def find(id: str) -> Dataset:
    """The dataset of that id. Raises `ValidationError` for an unknown one, naming the nearest."""
    if id not in DATASETS:
        known = ", ".join(DATASETS)
        raise ValidationError(f"no dataset {id!r}.{near(id, DATASETS)} There are: {known}")
    return DATASETS[id]


def verify(
    path: str | Path, id: str, progress: Callable[[int, int], None] = lambda done, total: None
) -> Verified:
    """Check a fetched file against the registry.

    Args:
      path: of the file.
      id: of the dataset.
      progress: told bytes read and bytes in all.

    Raises:
      ValidationError: an unknown id, no such file, or a checksum that is not the published one.
    """
    dataset, path = find(id), Path(path)
    require(path.exists(), "file", str(path), f"the file {dataset.file} of {id}, as fetched")
    md5, sha256 = checksums(path, progress)
    for name, own, published in (("md5", md5, dataset.md5), ("sha256", sha256, dataset.sha256)):
        if published is not None and own != published:
            raise ValidationError(
                f"{path.name} is not {dataset.file} of {id}, or is damaged: its {name} is {own},"
                f" not {published}; fetch it anew from {dataset.where}"
            )
    return Verified(md5, sha256, dataset.md5 is not None or dataset.sha256 is not None)


def checksums(
    path: Path, progress: Callable[[int, int], None] = lambda done, total: None
) -> tuple[str, str]:
    """(md5, sha256) of a file; of a folder, of its files in the order of their names."""
    files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    total = sum(file.stat().st_size for file in files)
    both, done = (hashlib.md5(usedforsecurity=False), hashlib.sha256()), 0
    for name in files:
        with name.open("rb") as file:
            while block := file.read(2**22):
                for each in both:
                    each.update(block)
                done += len(block)
                progress(done, total)
    return both[0].hexdigest(), both[1].hexdigest()


_RIGOLLI = {
    "authors": "Rigolli, Reddy, Seminara, Vergassola 2022 (doi 10.7554/eLife.76989)",
    "doi": "10.5281/zenodo.15469831",
    "licence": "CC-BY-4.0",
    "size": "6.8 GB",
}
_RIGOLLI_NOTES = (
    "The grid is not even: fetch coordinates.mat (md5 1e264919fb96574ecfb1981eaccc7d20) too and add"
    " --coordinates coordinates.mat; lengths are then those of that file.",
    "15 frames a second is how Nag & van Breugel read it; the archive does not say.",
    "Wind: downwind_v.mat (uu) and crosswind_v.mat (vv), 9.3 GB: --wind-files downwind_v.mat"
    " crosswind_v.mat --wind-variables uu vv --wind-start -1; Nag & van Breugel pair frame k of the"
    " wind with frame k + 1 of the odour, and take a unit as 0.015625 m/s.",
    "Where the source is, is not stated: give --source.",
)


def _rigolli(variable: str) -> Recipe:
    return Recipe(
        format="matlab",
        variable=variable,
        axes="x,y,t",
        length="as in coordinates.mat",
        frames_per_second=15.0,
    )


DATASETS: dict[str, Dataset] = {
    dataset.id: dataset
    for dataset in (
        Dataset(
            id="connor-2018",
            title="acetone vapour in a wind tunnel (PLIF), near the bed, 10 cm/s",
            authors="Connor, McHugh, Crimaldi 2018 (doi 10.1007/s00348-018-2591-3)",
            doi="10.5061/dryad.g27mq71",
            licence="CC0-1.0 (others have CC-BY-4.0)",
            file="10302017_10cms_bounded_2.h5",
            size="6.94 GB in all",
            md5="cf3cadd8a9b53c2a3f6d3aca37f71a62",
            recipe=Recipe(
                format="hdf5",
                variable="/dataset2",
                axes="t,x,y",
                mm_per_pixel=(0.74, 0.74),
                frames_per_second=15.0,
                source=(0.0, 107.0),
                unit="of the source",
            ),
            notes=(
                "[3600, 406, 216]: 406 pixels downwind, 216 across; some list it as 150 frames.",
                "The source is at pixel (0, 107), as in the model of Alvarez-Salvado et al. 2018.",
            ),
        ),
        Dataset(
            id="boie-2018",
            title="the same tunnel in three flows: fast and slow free stream, and near the bed",
            authors="Boie, Connor, McHugh, Nagel, Ermentrout, Crimaldi, Victor 2018"
            " (doi 10.1371/journal.pcbi.1006275)",
            doi="10.5061/dryad.04t19",
            licence="CC0-1.0",
            file="34 files, *.hdf5",
            size="11.8 GB in all",
            recipe=None,
            notes=(
                "15 Hz. Some files are series of grids of sensors, others snapshots: import the one"
                " you want with --format hdf5 and its own --variable, --axes and --mm-per-pixel.",
            ),
        ),
        Dataset(
            id="demir-2020",
            title="smoke over walking flies, blown about by jets (complex plume)",
            authors="Demir, Kadakia, Anderson, Clark, Emonet 2020 (doi 10.7554/eLife.57524)",
            doi="10.5061/dryad.4j0zpc87z",
            licence="CC0-1.0",
            file="2018_09_12_NA_3_3ds_5do_IS_1-frames.mat",
            size="29 GB",
            md5="6f87df24e4a5146c49c56979aca0fd78",
            recipe=Recipe(
                format="matlab",
                variable="frames",
                axes="y,x,t",
                mm_per_pixel=(0.154, 0.154),
                frames_per_second=89.94,
                downsample=(8, 8),
                background="mean",
                background_frames=(0, 200),
                dtype="uint8",
                peak=255.0,
                unit="grey levels",
            ),
            notes=(
                "2048 pixels along the wind, some 1200 across, about 315 by 185 mm, with a margin.",
                "The first 200 frames are the background, as plume_nav_sim takes it.",
                "Where the source is, is not stated: give --source. It is stored as a picture: add"
                " --axes=-y,x,t if up and down matter.",
                "Imported in cells of 8 x 8 pixels (1.23 mm): 36 kB a frame.",
            ),
        ),
        Dataset(
            id="kadakia-2022",
            title="simulated and recorded odour motion in complex plumes, with tracks of flies",
            authors="Kadakia, Demir, Michaelis, DeAngelis, Reidenbach, Clark, Emonet 2022"
            " (doi 10.1038/s41586-022-05423-4)",
            doi="10.5061/dryad.1ns1rn8xd",
            licence="CC0-1.0",
            file="a zip of .npy files",
            size="2.36 GB",
            recipe=None,
            notes=(
                "Arrays by figure, most of them behaviour: unpack it, read its README, and import"
                " an array of frames with --format numpy and its own --axes.",
            ),
        ),
        Dataset(
            id="brudner-2026",
            title="complex smoke, background subtracted, 25 s",
            authors="Brudner 2026, Data for fly navigational responses exploiting plume-specific"
            " odor motion and gradient cues",
            doi="10.48324/dandi.001871",
            licence="CC-BY-4.0",
            file="sub-figs1-complex-smoke-1a_ses-figure-s1_image.nwb",
            size="not stated",
            recipe=Recipe(
                format="hdf5",
                variable="/scratch/smoke_1a_orig_figs1_background_subtracted_window_frames",
                axes="t,-y,x",
                frames_per_second=60.0,
                downsample=(4, 4),
                dtype="uint8",
                peak=255.0,
                unit="grey levels",
            ),
            notes=(
                "[1500, 1088, 1728], frames 300 to 1799 of the whole video, scaled to 0..255.",
                "Scale and source are not stated: give --mm-per-pixel and --source.",
            ),
        ),
        Dataset(
            id="rigolli-2022-nose",
            title="scalar in a turbulent channel, computed (DNS), at the height of a raised nose",
            file="nose_data.mat",
            md5="ce390644cf1b075fac06360a6dbe1881",
            recipe=_rigolli("nose"),
            notes=_RIGOLLI_NOTES,
            **_RIGOLLI,
        ),
        Dataset(
            id="rigolli-2022-ground",
            title="the same at the ground",
            file="ground_data.mat",
            md5="5e674b6a30890f2de0dc720809baa936",
            recipe=_rigolli("ground"),
            notes=_RIGOLLI_NOTES,
            **_RIGOLLI,
        ),
        Dataset(
            id="nag-2025",
            title="odour and wind at a moving sensor, outdoors, in a desert and a forest",
            authors="Nag, van Breugel 2025",
            doi="10.5061/dryad.j3tx95xss",
            licence="CC0-1.0",
            file="data.zip",
            size="1.22 GB",
            recipe=POINTS,
            notes=("Points at 200 Hz, no movie: for statistics, not to be played.",),
        ),
        *(
            Dataset(
                id=f"gsl-bench-{name}",
                title=f"gas in a 15 x 15 x 8 m warehouse {what}, filaments in a computed airflow",
                authors="Erwich, Duisterhof, de Croon 2024 (GSL-Bench, ICRA)",
                doi="",
                url="https://github.com/Herwich012/PegasusSimulator",
                licence="BSD-3-Clause",
                file=f"the folder of iteration_*.npy, or warehouse_{name.replace('-', '_')}.npz",
                size="6 MB as .npz",
                recipe=FILAMENTS,
                notes=(
                    "500 frames, one each 0.5 s, cells of 0.2 m; no wind was recorded.",
                    f"The source is at {source} m; its height is the slice that is imported.",
                ),
            )
            for name, what, source in (
                ("empty-001", "without obstacles", "(5.0, 1.0, 2.0)"),
                ("simple-004", "with obstacles", "(1.2, 10.0, 2.0)"),
            )
        ),
    )
}
