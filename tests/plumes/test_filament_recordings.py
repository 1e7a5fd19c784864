"""tests/plumes/test_filament_recordings: the readers, the slice, the task, and bad data."""

import json
from pathlib import Path

import jax
import numpy as np
import pytest

import plumejax
from plumejax.base.errors import ValidationError
from plumejax.plumes.filament_recordings import (
    raw_iterations,
    read_filaments,
    read_raw_filaments,
)
from plumejax.plumes.recorded import RecordedPlume

GADEN = Path(__file__).parents[3] / "shared" / "data" / "gaden"
REAL = GADEN / "warehouse_empty_001.npz"
"""The GSL-Bench recordings beside a checkout; tests on them skip where they are absent."""

SOURCE = (0.9, 0.7, 0.5)


@pytest.fixture(scope="module")
def task(recorded_choices):
    choices, near = recorded_choices
    return plumejax.make("Recorded-v0", overrides={**near, "max_steps": 30}, **choices)


def _ppm(filaments, point):
    """The published formula at one point (m), directly in float64."""
    d = 100 * (filaments[:, :3].astype(float) - np.asarray(point))
    sigma = filaments[:, 3].astype(float)
    moles = 6.440736978853164e-06 / (np.sqrt(8 * np.pi**3) * sigma**3)
    return 1e6 / 4.0894632701667424e-05 * np.sum(moles * np.exp(-(d**2).sum(1) / (2 * sigma**2)))


def test_slice_is_the_published_formula_at_the_cells_centres(recording):
    recording = read_filaments(recording, SOURCE)
    pictures = recording.slice(range(1, 6))
    assert pictures.shape == (5, 6, 8)
    for frame, x, y in [(1, 0, 0), (3, 4, 3), (5, 7, 5)]:
        part = recording.filaments[recording.offsets[frame] : recording.offsets[frame + 1]]
        want = _ppm(part, (0.2 * x + 0.1, 0.2 * y + 0.1, 0.5))
        assert pictures[frame - 1, y, x] == pytest.approx(want, rel=1e-6)


def test_room_is_that_at_the_sources_height(recording):
    recording = read_filaments(recording, SOURCE)
    assert recording.level == 2
    np.testing.assert_allclose(recording.source_cell(), [4.0, 3.0], atol=1e-5)
    free = recording.free()
    assert free.shape == (6, 8)
    assert not free[:, 0].any()
    assert not free[5, 4]
    assert free.sum() == 6 * 7 - 1


def test_task_is_what_the_recording_defines(task, recorded_choices):
    env, params = task
    choices, near = recorded_choices
    np.testing.assert_allclose(params.plume.source, [4.0, 3.0], atol=1e-5)
    plain, numbers = plumejax.make("Recorded-v0", overrides=near, **choices)
    assert plain == env
    assert int(numbers.max_steps) == 600
    with pytest.raises(ValidationError, match="no cell is left"):
        plumejax.make("Recorded-v0", **choices)


def test_starts_are_free_cells_far_enough_and_walls_stay_closed(task):
    env, params = task
    free = np.asarray(params.arena.free)
    keys = jax.random.split(jax.random.key(0), 200)
    _, states = jax.vmap(env.reset, in_axes=(0, None))(keys, params)
    xy = np.asarray(states.agent.position)
    assert np.all(free[xy[:, 1].astype(int), xy[:, 0].astype(int)])
    assert np.all(np.hypot(*(xy - np.asarray(params.plume.source)).T) >= 2.0 - 1e-5)
    assert len(set(states.plume.phase.tolist())) == 5
    for t in range(20):
        actions = jax.random.randint(jax.random.fold_in(jax.random.key(1), t), (200,), 0, 4)
        step = jax.vmap(env.step, in_axes=(None, 0, 0, None))
        obs, states, *_ = step(keys[0], states, actions, params)
        xy = np.asarray(states.agent.position).astype(int)
        assert np.all(free[xy[:, 1], xy[:, 0]])
        frames = np.asarray(params.plume.frames)
        want = frames[np.asarray(states.plume.phase), xy[:, 1], xy[:, 0]]
        np.testing.assert_array_equal(np.asarray(obs)[:, 0], want)


BAD = {
    "missing": (None, "existing file"),
    "names": ({"filaments": None}, "arrays"),
    "nan": ("nan", "NaN"),
    "offsets": ({"offsets": np.asarray([0, 3, 5000])}, "offsets"),
    "falling": ({"offsets": np.asarray([0, 40, 3, 63])}, "offsets"),
    "columns": ({"filaments": np.ones((63, 3), np.float32)}, "filaments"),
    "flat": ({"filaments": np.ones(63, np.float32)}, "2 dimensions"),
    "sigma": ("sigma", "sigma"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_data_is_one_clear_error(case, tmp_path, write_recording):
    change, message = BAD[case]
    arrays = change if isinstance(change, dict) else None
    if case == "names":
        path = write_recording(tmp_path)
        np.savez(path, puffs=np.ones((3, 4)), offsets=np.asarray([0, 3]))
    else:
        path = write_recording(tmp_path, arrays=arrays)
    if case == "missing":
        path = tmp_path / "nothing.npz"
    if change in ("nan", "sigma"):
        with np.load(path) as archive:
            filaments, offsets = archive["filaments"].copy(), archive["offsets"]
        filaments[7, 3 if change == "sigma" else 1] = -1.0 if change == "sigma" else np.nan
        np.savez(path, filaments=filaments, offsets=offsets)
    with pytest.raises(ValidationError, match=message):
        plumejax.make("Recorded-v0", data=path, source=SOURCE, frames=(0, 5))


def test_what_is_no_archive_or_has_no_room_beside_it_is_refused(tmp_path, write_recording):
    text = tmp_path / "text.npz"
    text.write_text("no archive")
    with pytest.raises(ValidationError, match="not a NumPy archive"):
        read_filaments(text)
    single = tmp_path / "single.npz"
    with single.open("wb") as file:
        np.save(file, np.ones(3))
    with pytest.raises(ValidationError, match="not a NumPy archive"):
        read_filaments(single)
    path = write_recording(tmp_path)
    (tmp_path / "made_up_occupancy.npz").unlink()
    with pytest.raises(ValidationError, match=r"made_up_occupancy\.npz"):
        read_filaments(path, SOURCE)


def test_source_and_frames_are_checked(recording, tmp_path, write_recording):
    with pytest.raises(ValidationError, match="source"):
        read_filaments(recording)
    with pytest.raises(ValidationError, match="source"):
        read_filaments(recording, (0.9, 7.0, 0.5))
    with pytest.raises(ValidationError, match="frames"):
        plumejax.make("Recorded-v0", data=recording, source=SOURCE)
    with pytest.raises(ValidationError, match="data"):
        plumejax.make("Recorded-v0")
    other = write_recording(tmp_path, header={"num_cells": [6, 8, 5]})
    with pytest.raises(ValidationError, match="num_cells"):
        read_filaments(other, SOURCE)
    json.loads((tmp_path / "made_up_occupancy.txt").read_text())  # the file itself is fine


@pytest.mark.skipif(not REAL.is_file(), reason=f"no recording at {REAL.name}")
def test_warehouse_recording_gives_the_published_task():
    env, params = plumejax.make("Recorded-v0", data=REAL)
    assert env.plume == RecordedPlume(300, (77, 77), unit="ppm")
    assert int(params.max_steps) == 600
    np.testing.assert_allclose(params.plume.source, [25.5, 5.5], atol=1e-4)
    assert float(params.ending.radius) == pytest.approx(5.0)  # 1 m
    assert float(params.start.min_distance) == pytest.approx(15.0)  # 3 m
    recording = read_filaments(REAL)
    part = recording.filaments[recording.offsets[300] : recording.offsets[301]]
    want = _ppm(part, (-0.2 + 0.2 * 30.5, -0.2 + 0.2 * 10.5, 2.0))
    assert np.asarray(params.plume.frames)[100, 10, 30] == pytest.approx(want, rel=1e-5)


@pytest.mark.slow
@pytest.mark.skipif(not REAL.is_file(), reason=f"no recording at {REAL.name}")
def test_other_scene_has_its_obstacles_and_no_gas_in_them():
    recording = read_filaments(GADEN / "warehouse_simple_004.npz")
    assert recording.source == (1.2, 10.0, 2.0)
    assert (recording.occupancy[recording.level] == 1).sum() > 100
    cells = ((recording.filaments[:, :3] - recording.origin) / recording.cell_size).astype(int)
    x, y, z = np.clip(cells, 0, np.asarray(recording.occupancy.shape)[[1, 2, 0]] - 1).T
    assert not (recording.occupancy[z, x, y] == 1).any()
    _, params = plumejax.make("Recorded-v0", data=GADEN / "warehouse_simple_004.npz")
    np.testing.assert_array_equal(params.arena.free, recording.free())


@pytest.mark.skipif(not REAL.is_file(), reason=f"no recording at {REAL.name}")
def test_original_form_holds_the_same_frames():
    folder = GADEN / "raw_001"
    raw, known = read_raw_filaments(folder), read_filaments(REAL)
    assert raw_iterations(folder) == [0, 100, 101, 250, 499]
    assert raw.source == known.source
    assert (raw.origin, raw.cell_size) == (known.origin, known.cell_size)
    assert raw.occupancy.shape == known.occupancy.shape
    assert (raw.moles, raw.moles_of_air) == (known.moles, known.moles_of_air)
    for i, n in enumerate(raw_iterations(folder)):
        own = np.load(folder / f"iteration_{n}_fil.npy")
        own = np.stack([own[name] for name in ("pose_x", "pose_y", "pose_z", "sigma")], axis=1)
        np.testing.assert_array_equal(
            raw.filaments[raw.offsets[i] : raw.offsets[i + 1]], own.astype(np.float32)
        )
        # The archive has three decimals: half of the last, and float32's own rounding.
        want = known.filaments[known.offsets[n] : known.offsets[n + 1]]
        np.testing.assert_allclose(own, want, rtol=1e-7, atol=0.0005 + 1e-6)


HEAD = {
    **{f"env_min_{axis}": 0.0 for axis in "xyz"},
    **{f"env_cells_{axis}": n for axis, n in zip("xyz", (8, 6, 5), strict=True)},
    **{f"cell_size_{axis}": 0.2 for axis in "xyz"},
    **{f"gas_source_pos_{axis}": at for axis, at in zip("xyz", SOURCE, strict=True)},
    "filament_num_moles_of_gas": 2e-6,
    "num_moles_all_gases_in_cm3": 4e-5,
}


def _write_raw(folder, numbers, head=None):
    rows = np.asarray([tuple({**HEAD, **(head or {})}.values())], [(k, "f8") for k in HEAD])
    names = ("pose_x", "pose_y", "pose_z", "sigma")
    for n in numbers:
        gas = np.zeros(n + 1, [("id", "u4"), *((name, "f8") for name in names)])
        for name, at in zip(names, (*SOURCE, 10.0 + n), strict=True):
            gas[name] = at
        np.save(folder / f"iteration_{n}_fil.npy", gas)
        np.save(folder / f"iteration_{n}_head.npy", rows)


def test_original_form_is_read_in_the_order_of_its_numbers(tmp_path):
    _write_raw(tmp_path, [10, 2])
    recording = read_raw_filaments(tmp_path)
    assert raw_iterations(tmp_path) == [2, 10]
    assert recording.offsets.tolist() == [0, 3, 14]
    # Moles come from the header, and frame 1 is eleven filaments of 20 cm at the source.
    peak = 11 * 1e6 * 2e-6 / 4e-5 / (np.sqrt(8 * np.pi**3) * 20.0**3)
    assert recording.slice(range(1, 2))[0].max() == pytest.approx(peak, rel=1e-5)


@pytest.mark.parametrize("case", ["none", "half", "other head", "outside"])
def test_bad_original_form_is_one_clear_error(case, tmp_path):
    if case != "none":
        _write_raw(tmp_path, [0])
    if case == "half":
        (tmp_path / "iteration_0_head.npy").unlink()
    if case == "other head":
        _write_raw(tmp_path, [1], {"gas_source_pos_x": 0.5})
    if case == "outside":
        _write_raw(tmp_path, [0], {"gas_source_pos_x": 5.0})
    message = {
        "none": "iteration_N_fil",
        "half": r"iteration_0_head\.npy",
        "other head": "the same",
        "outside": "source",
    }[case]
    with pytest.raises(ValidationError, match=message):
        read_raw_filaments(tmp_path)
