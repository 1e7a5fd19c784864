"""tests/plumes/test_recorded: recorded gas: the reader, the slice, the loop, and bad data."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plumejax
from plumejax.base.errors import ValidationError
from plumejax.plumes.recorded import RecordedPlume, read_filaments

REAL = Path(__file__).parents[3] / "shared" / "data" / "gaden" / "warehouse_empty_001.npz"
"""The GSL-Bench recording beside a checkout; tests on it skip where it is absent."""

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


def test_frames_play_in_a_loop_from_a_uniform_phase():
    plume = RecordedPlume(num_frames=4, grid_size=(3, 2))
    frames = np.arange(24, dtype=np.float32).reshape(4, 2, 3)
    params = plume.default_params().replace(frames=frames)
    phases = jax.vmap(lambda k: plume.start(k, params))(jax.random.split(jax.random.key(0), 2000))
    share = np.bincount(phases, minlength=4) / 2000
    # Four standard errors of a share of a quarter.
    assert np.all(np.abs(share - 0.25) < 4 * np.sqrt(0.25 * 0.75 / 2000))
    state, seen = jnp.int32(2), []
    for _ in range(6):
        state = plume.advance(jax.random.key(0), state, params)
        seen.append(int(state))
    assert seen == [3, 0, 1, 2, 3, 0]
    positions = jnp.asarray([[0, 0], [2, 1], [1.4, 0.6], [3, 0], [-1, 1], [1, 2]], jnp.float32)
    air = plume.sample(jnp.int32(1), positions, params)
    assert air.concentration.tolist() == [6.0, 11.0, 10.0, 0.0, 0.0, 0.0]
    assert not air.wind.any()


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
    assert len(set(states.plume.tolist())) == 5
    for t in range(20):
        actions = jax.random.randint(jax.random.fold_in(jax.random.key(1), t), (200,), 0, 4)
        step = jax.vmap(env.step, in_axes=(None, 0, 0, None))
        obs, states, *_ = step(keys[0], states, actions, params)
        xy = np.asarray(states.agent.position).astype(int)
        assert np.all(free[xy[:, 1], xy[:, 0]])
        frames = np.asarray(params.plume.frames)
        want = frames[np.asarray(states.plume), xy[:, 1], xy[:, 0]]
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
    assert env.plume == RecordedPlume(300, (77, 77))
    assert int(params.max_steps) == 600
    np.testing.assert_allclose(params.plume.source, [25.5, 5.5], atol=1e-4)
    assert float(params.ending.radius) == pytest.approx(5.0)  # 1 m
    assert float(params.start.min_distance) == pytest.approx(15.0)  # 3 m
    recording = read_filaments(REAL)
    part = recording.filaments[recording.offsets[300] : recording.offsets[301]]
    want = _ppm(part, (-0.2 + 0.2 * 30.5, -0.2 + 0.2 * 10.5, 2.0))
    assert np.asarray(params.plume.frames)[100, 10, 30] == pytest.approx(want, rel=1e-5)
