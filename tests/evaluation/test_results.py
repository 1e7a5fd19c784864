"""tests/evaluation/test_results: outcomes are what they were after a file, and go to xarray."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from plumejax.base.errors import ValidationError
from plumejax.evaluation import results
from plumejax.evaluation.episodes import Outcomes
from plumejax.evaluation.tracks import Track

SUBJECT = results.Subject("A-v0", 2, "random", "{}", "{}", 7, 3, 0, 40, 2.0)


@pytest.fixture
def result():
    track = Track(
        path=np.asarray([3.0, 4.0, 5.0], np.float32),
        distance=np.asarray([2.0, 2.0, 2.0], np.float32),
        walls=np.asarray([0, 1, 2], np.int32),
        cycled=np.asarray([False, False, True]),
        returns=None,
        before=None,
    )
    outcomes = Outcomes(
        found=np.asarray([True, False, True]),
        failed=np.asarray([False, False, False]),
        steps=np.asarray([4, 40, 9], np.int32),
        reward=np.asarray([1.0, 0.0, 1.0], np.float32),
        plume=np.asarray([1, 0, 1], np.int32),
        track=track,
    )
    return results.Result(SUBJECT, outcomes)


def test_a_result_comes_back_from_its_file(result, tmp_path):
    path = tmp_path / "a.npz"
    results.write_result(path, result)
    back = results.read_result(path)
    assert back.subject == result.subject
    jax.tree.map(np.testing.assert_array_equal, back.outcomes, result.outcomes)
    assert back.plumes.tolist() == [1, 0, 1]
    assert [each.name for each in tmp_path.iterdir()] == ["a.npz"]


@pytest.mark.parametrize("content", [None, b"", b"PK\x03\x04 not a whole archive"])
def test_what_is_no_result_is_refused_by_name(content, tmp_path):
    path = tmp_path / "broken.npz"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ValidationError, match=r"broken\.npz"):
        results.read_result(path)


@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
def test_results_of_several_runs_go_to_one_dataset(result, suffix, tmp_path):
    xarray = pytest.importorskip("xarray")
    other = replace(result, subject=replace(SUBJECT, policy="infotaxis"))
    path = tmp_path / f"both{suffix}"
    for _ in range(2):  # the second replaces the first
        results.write_dataset(path, results.dataset([result, other]))
    opened = xarray.open_dataset(path) if suffix == ".nc" else xarray.open_zarr(path)
    with opened as data:
        assert dict(data.sizes) == {"run": 2, "episode": 3}
        assert data["policy"].values.tolist() == ["random", "infotaxis"]
        np.testing.assert_array_equal(data["steps"].values[1], [4, 40, 9])
        np.testing.assert_array_equal(data["return"].values[0], [1.0, 0.0, 1.0])


def test_a_dataset_needs_equally_many_episodes_and_a_known_suffix(result, tmp_path):
    fewer = replace(result, subject=replace(SUBJECT, episodes=2))
    with pytest.raises(ValidationError, match="equally many"):
        results.dataset([result, fewer])
    with pytest.raises(ValidationError, match=r"\.nc or \.zarr"):
        results.write_dataset(tmp_path / "a.csv", None)
