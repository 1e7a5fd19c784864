"""tests/plumes/test_datasets: the registry of public recordings, and files held against it."""

import hashlib
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from plumejax.base.errors import ValidationError
from plumejax.plumes import datasets
from plumejax.plumes.datasets import DATASETS, FILAMENTS, POINTS, checksums, find, verify
from plumejax.plumes.importing import Recipe, import_movie
from plumejax.plumes.movies import open_movie
from plumejax.plumes.readers import parse_axes


def test_every_entry_is_whole():
    for id, dataset in DATASETS.items():
        assert dataset.id == id
        assert dataset.title
        assert dataset.authors
        assert dataset.licence
        assert re.fullmatch(r"https://(doi\.org/10\.\d{4,}/\S+|github\.com/\S+)", dataset.where)
        for name, length in (("md5", 32), ("sha256", 64)):
            value = getattr(dataset, name)
            assert value is None or re.fullmatch(rf"[0-9a-f]{{{length}}}", value)
        # What cannot be imported by its id alone says why.
        if not isinstance(dataset.recipe, Recipe):
            assert dataset.recipe in (FILAMENTS, POINTS, None)
            assert dataset.notes
        else:
            parse_axes(dataset.recipe.axes)
            assert dataset.recipe.frames_per_second > 1


def test_an_unknown_id_names_the_nearest():
    with pytest.raises(ValidationError, match="Did you mean 'connor-2018'"):
        find("conor-2018")


def test_checksums_are_those_of_the_bytes(tmp_path):
    content = np.random.default_rng(0).bytes(5_000_000)
    path = tmp_path / "file"
    path.write_bytes(content)
    seen = []
    assert checksums(path, lambda *at: seen.append(at)) == (
        hashlib.md5(content).hexdigest(),
        hashlib.sha256(content).hexdigest(),
    )
    assert seen[-1] == (5_000_000, 5_000_000)
    assert len(seen) == 2  # not in one gulp
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "b").write_bytes(content[10:])
    (tmp_path / "folder" / "a").write_bytes(content[:10])
    assert checksums(tmp_path / "folder") == checksums(path)


def test_a_file_is_held_against_its_checksum(tmp_path, monkeypatch):
    path = tmp_path / "10302017_10cms_bounded_2.h5"
    path.write_bytes(b"not it")
    with pytest.raises(ValidationError, match=r"is not 10302017.*doi\.org/10\.5061/dryad\.g27mq71"):
        verify(path, "connor-2018")
    with pytest.raises(ValidationError, match="as fetched"):
        verify(tmp_path / "nothing", "connor-2018")
    own = hashlib.md5(b"not it").hexdigest()
    known = replace(DATASETS["connor-2018"], md5=own)
    monkeypatch.setitem(DATASETS, "connor-2018", known)
    found = verify(path, "connor-2018")
    assert found.published
    assert (found.md5, found.sha256) == (own, hashlib.sha256(b"not it").hexdigest())
    # Where nothing is published there is nothing to hold it against, and the answer says so.
    assert not verify(path, "brudner-2026").published


@pytest.mark.parametrize(
    ("id", "name", "shape"),
    [
        ("connor-2018", "dataset2", (7, 12, 110)),
        ("demir-2020", "frames", (210, 32, 24)),
        ("brudner-2026", "scratch/smoke_1a_orig_figs1_background_subtracted_window_frames",
         (5, 16, 20)),
        ("rigolli-2022-nose", "nose", (4, 6, 9)),
    ],
)  # fmt: skip
def test_recipes_import_files_of_their_form(id, name, shape, tmp_path):
    h5py = pytest.importorskip("h5py")
    recipe = DATASETS[id].recipe
    rng = np.random.default_rng(0)
    gas = rng.integers(0, 255, shape).astype(np.uint8 if recipe.dtype == "uint8" else np.float32)
    with h5py.File(tmp_path / "file.h5", "w") as file:
        file[name] = gas
    if recipe.format == "matlab":
        (tmp_path / "file.h5").rename(tmp_path / "file.mat")
    file = next(tmp_path.iterdir())
    import_movie(file, tmp_path / "movie", recipe)
    movie = open_movie(tmp_path / "movie")
    # As the file's axes are, in the order that HDF5 has them: t, x, y, or t, y, x.
    turned = id in ("connor-2018", "demir-2020")
    height, width = shape[:0:-1] if turned else shape[1:]
    across, up = recipe.downsample
    assert movie.frames.shape == (1, shape[0], height // up, width // across)
    mm = recipe.mm_per_pixel or (1.0, 1.0)
    assert movie.meta.spacing == (across * mm[0], up * mm[1])
    if id == "connor-2018":
        np.testing.assert_array_equal(movie.frames[0], gas.transpose(0, 2, 1))
        assert movie.meta.sources == ((0.0, pytest.approx(0.74 * 107)),)


def test_nothing_is_downloaded():
    source = Path(datasets.__file__).read_text()
    assert not re.search(r"urllib|requests|httpx|socket", source)
