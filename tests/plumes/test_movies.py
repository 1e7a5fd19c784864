"""tests/plumes/test_movies: movies on disk: whole or not there, resumed, coded, played."""

import json
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plumejax.base.errors import ValidationError
from plumejax.plumes.movies import (
    MovieMeta,
    MovieWriter,
    decode,
    encode,
    log_coding,
    movie_plume,
    open_movie,
)
from plumejax.plumes.recorded import Playing

META = MovieMeta(
    title="made up",
    unit="ppm",
    spacing=(0.5, 2.0),
    origin=(-1.0, 3.0),
    frames_per_second=15.0,
    sources=((0.0, 5.0),),
    wind_per_second=5.0,
    wind_start=0.5,
    licence="CC0-1.0",
    doi="10.1/made.up",
    made_from={"file": "a.h5", "recipe": {"axes": "t,x,y", "crop": None, "mm": [0.5, 2.0]}},
)
SHAPE = (2, 6, 3, 4)
FRAMES = np.arange(np.prod(SHAPE), dtype=np.float32).reshape(SHAPE)
WIND_SHAPE = (2, 2, 2, 3, 4)
WIND = np.random.default_rng(0).normal(size=WIND_SHAPE).astype(np.float16)


def _write(path, until=12, meta=META):
    """Write up to `until` frames in blocks of two; the rest is what was left of it before."""
    writer = MovieWriter(path, SHAPE, "float32", meta, WIND_SHAPE)
    for p in range(2):
        for t in range(writer.done[p], 6, 2):
            if 6 * p + t < until:
                writer.write(p, t, FRAMES[p, t : t + 2])
        if until >= 12:
            writer.write_wind(p, 0, WIND[p])
    return writer


def test_what_is_written_is_read_memory_mapped(tmp_path):
    path = tmp_path / "movie"
    _write(path).close()
    movie = open_movie(path)
    assert {file.name for file in path.iterdir()} == {"frames.npy", "wind.npy", "movie.json"}
    assert [path] == list(tmp_path.iterdir())
    assert isinstance(movie.frames, np.memmap)
    np.testing.assert_array_equal(movie.frames, FRAMES)
    np.testing.assert_array_equal(movie.wind, WIND)
    assert movie.meta == META
    with pytest.raises(ValidationError, match="not there yet"):
        _write(path)


def test_an_interrupted_writing_leaves_no_movie_and_is_resumed(tmp_path):
    path = tmp_path / "movie"
    _write(path, until=8)
    assert not path.exists()
    with pytest.raises(ValidationError, match="a directory that holds"):
        open_movie(path)
    writer = _write(path, until=8)
    assert writer.done == [6, 2]
    writer.write(0, 1, FRAMES[0, 1:2])  # once more
    assert writer.done == [6, 2]
    with pytest.raises(ValidationError, match="frames written"):
        writer.close()
    # What is there is not written again.
    otherwise = FRAMES[1, 2:] * 2
    writer.write(1, 2, otherwise)
    for p in range(2):
        writer.write_wind(p, 0, WIND[p])
    writer.close()
    np.testing.assert_array_equal(open_movie(path).frames[1, :2], FRAMES[1, :2])
    np.testing.assert_array_equal(open_movie(path).frames[1, 2:], otherwise)


def test_an_error_in_a_with_block_keeps_the_part(tmp_path):
    path = tmp_path / "movie"

    def write_some():
        with MovieWriter(path, SHAPE, "float32", META) as writer:
            writer.write(0, 0, FRAMES[0, :3])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_some()
    assert not path.exists()
    with MovieWriter(path, SHAPE, "float32", META) as writer:
        assert writer.done == [3, 0]
        writer.write(0, 3, FRAMES[0, 3:])
        writer.write(1, 0, FRAMES[1])
    np.testing.assert_array_equal(open_movie(path).frames, FRAMES)


def test_resuming_another_movie_says_what_differs(tmp_path):
    path = tmp_path / "movie"
    _write(path, until=4)
    other = replace(META, made_from={**META.made_from, "file": "b.h5"}, unit="percent")
    with pytest.raises(ValidationError) as error:
        _write(path, meta=other)
    for part in ("meta.made_from.file was 'a.h5' and is 'b.h5'", "meta.unit was 'ppm'"):
        assert part in str(error.value)
    with pytest.raises(ValidationError, match=r"dtype was 'float32' and is 'uint8'"):
        MovieWriter(path, SHAPE, "uint8", META, WIND_SHAPE)
    assert _write(path, until=4).done == [4, 0]


def test_foreign_files_are_not_taken_for_an_unfinished_movie(tmp_path):
    (tmp_path / "movie.part").mkdir()
    (tmp_path / "movie.part" / "thesis.txt").write_text("years of work")
    with pytest.raises(ValidationError, match=r"movie\.part"):
        _write(tmp_path / "movie")
    assert (tmp_path / "movie.part" / "thesis.txt").read_text() == "years of work"


BAD_BLOCKS = {
    "another dtype": (0, 0, FRAMES[0].astype(np.float64), "block"),
    "another grid": (0, 0, FRAMES[0, :, :2], "block"),
    "a gap": (0, 3, FRAMES[0, :1], "t = 3"),
    "too long": (0, 0, np.concatenate([FRAMES[0]] * 2), "at most 6"),
    "no such movie": (2, 0, FRAMES[0], "p = 2"),
}


@pytest.mark.parametrize("case", BAD_BLOCKS)
def test_a_block_that_does_not_fit_is_refused(case, tmp_path):
    p, t, block, message = BAD_BLOCKS[case]
    writer = MovieWriter(tmp_path / "movie", SHAPE, "float32", META)
    with pytest.raises(ValidationError, match=message):
        writer.write(p, t, block)
    with pytest.raises(ValidationError, match="no wind_shape"):
        writer.write_wind(0, 0, WIND[0])
    assert writer.done == [0, 0]


BAD_META = {
    "scale": {"scale": 0.0},
    "frames_per_second": {"frames_per_second": float("nan")},
    "spacing": {"spacing": (1.0, -1.0)},
    "coding": {"coding": "gamma"},
    "offset": {"coding": "log", "offset": 0.0},
    "sources": {"sources": ((1.0, 2.0, 3.0),)},
}


@pytest.mark.parametrize("name", BAD_META)
def test_meta_that_means_nothing_is_refused(name):
    with pytest.raises(ValidationError, match=rf"^{name} = "):
        replace(META, **BAD_META[name])


def test_a_movie_whose_parts_do_not_fit_is_refused(tmp_path):
    path = tmp_path / "movie"
    _write(path).close()
    np.save(path / "wind.npy", WIND[:, :, :, :2])
    with pytest.raises(ValidationError, match=r"wind\.npy"):
        open_movie(path)
    np.save(path / "frames.npy", FRAMES.astype(np.int64))
    with pytest.raises(ValidationError, match=r"frames\.npy"):
        open_movie(path)
    stored = json.loads((path / "movie.json").read_text())
    (path / "movie.json").write_text(json.dumps({**stored, "flavour": "mint"}))
    with pytest.raises(ValidationError, match="flavour"):
        open_movie(path)
    (path / "movie.json").write_text("half of")
    with pytest.raises(ValidationError, match="no movie that can be read"):
        open_movie(path)


def test_movie_plume_plays_what_is_stored_where_it_lies(tmp_path):
    _write(tmp_path / "movie").close()
    plume, params = movie_plume(open_movie(tmp_path / "movie"), time="held")
    plume.validate(params)
    assert (plume.num_movies, plume.num_frames, plume.grid_size) == (2, 6, (4, 3))
    assert (plume.wind_frames, plume.unit) == (2, "ppm")
    assert params.wind_rate == pytest.approx(1 / 3)
    state = Playing(phase=jnp.float32(4.5), movie=jnp.int32(1), mirrored=())
    at = np.asarray([[-1.0 + 0.5 * 3, 3.0 + 2.0 * 1], [0.0, 5.0]], np.float32)
    air = jax.jit(plume.sample)(state, at, params)
    np.testing.assert_array_equal(air.concentration, FRAMES[1, 4, 1, [3, 2]])
    # Frame 4.5 is at 0.3 s, the wind's frame 0.5 + 1.5 = 2, of which the last is 1.
    np.testing.assert_array_equal(air.wind[0], WIND[1, 1, :, 1, 3].astype(np.float32))
    assert plume.sources(state, params).tolist() == [[0.0, 5.0]]
    with pytest.raises(ValidationError, match="sources"):
        movie_plume(replace(open_movie(tmp_path / "movie"), meta=replace(META, sources=())))


@given(
    st.lists(st.floats(0, 100, width=32), min_size=1, max_size=20),
    st.sampled_from(["linear", "log", "float16"]),
)
@settings(max_examples=50)
def test_coding_loses_no_more_than_half_a_step(concentrations, coding):
    gas = np.asarray(concentrations, np.float32)
    if coding == "float16":
        meta, dtype = MovieMeta(), "float16"
        allowed = 2.0**-11 * gas + 3e-8
    elif coding == "linear":
        meta, dtype = MovieMeta(scale=100 / 255), "uint8"
        allowed = np.full_like(gas, 50 / 255)
    else:
        meta, dtype = MovieMeta(**log_coding(100.0, 0.01)), "uint8"
        allowed = np.expm1(meta.offset / 2) * (gas + meta.scale)
    back = decode(encode(gas, dtype, meta), meta)
    assert np.all(np.abs(back - gas) <= allowed * (1 + 1e-4) + 1e-5)


def test_coding_clips_at_the_peak_and_below_the_noise():
    meta = MovieMeta(**log_coding(10.0, 0.01), noise_floor=0.5)
    raw = encode(np.asarray([0.0, 0.4, 0.6, 10.0, 1e6]), "uint8", meta)
    assert raw[:2].tolist() == [0, 0]
    assert raw[3:].tolist() == [255, 255]
    assert decode(raw, meta)[2] == pytest.approx(0.6, rel=0.02)
    assert decode(raw, meta)[3] == pytest.approx(10.0, rel=1e-4)
    assert np.isfinite(encode(np.asarray([1e9]), "float16", MovieMeta())).all()
    with pytest.raises(ValidationError, match="smallest"):
        log_coding(1.0, 2.0)
