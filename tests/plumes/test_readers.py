"""tests/plumes/test_readers: every form of file gives the movie that it holds, block by block."""

import sys
from dataclasses import replace

import numpy as np
import pytest

from plumejax.base.errors import PlumeError, ValidationError
from plumejax.plumes import importing
from plumejax.plumes.filament_recordings import read_filaments
from plumejax.plumes.importing import Recipe, WindRecipe, import_filaments, import_movie
from plumejax.plumes.movies import decode, open_movie
from plumejax.plumes.readers import open_stored, parse_axes

T, H, W = 11, 6, 8
GAS = np.random.default_rng(0).uniform(0, 1, (T, H, W)).astype(np.float32)
"""float32[t, y, x], what every file of these tests holds in its own way."""


def _imported(tmp_path, file, wind=None, **choices):
    recipe = Recipe(**{"dtype": "float32", **choices})
    out = tmp_path / "movie"
    import_movie(file, out, recipe, wind)
    return open_movie(out)


def _hdf5(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["dataset1"] = np.zeros((3, 4, 5))
        file.create_dataset("dataset2", data=GAS.transpose(0, 2, 1), chunks=(4, W, H))
    return tmp_path / "a.h5", {}


def _hdf5_elsewhere(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.nwb", "w") as file:
        file["scratch/one/frames"] = GAS[:, ::-1].transpose(1, 0, 2)
        file["other"] = np.zeros((3, 4, 5))
    return tmp_path / "a.nwb", {"variable": "/scratch/one/frames", "axes": "-y,t,x"}


def _matlab(tmp_path):
    h5py = pytest.importorskip("h5py")
    # MATLAB writes an array [y, x, t] with its axes the other way round.
    with h5py.File(tmp_path / "a.mat", "w") as file:
        file["frames"] = GAS.transpose(0, 2, 1)
        file["p"] = np.ones((1, 1))
    return tmp_path / "a.mat", {"variable": "frames", "axes": "y,x,t"}


def _npy(tmp_path):
    np.save(tmp_path / "a.npy", np.asfortranarray(GAS[:, :, ::-1]))
    return tmp_path / "a.npy", {"axes": "t,y,-x"}


def _npz(tmp_path):
    np.savez(tmp_path / "a.npz", gas=GAS, times=np.arange(T))
    return tmp_path / "a.npz", {}


def _zarr(tmp_path):
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(tmp_path / "a.zarr", mode="w")
    data = np.stack([np.zeros_like(GAS), GAS], axis=1)
    group.create_array("concentration", data=data, chunks=(3, 1, H, W))
    return tmp_path / "a.zarr", {"axes": "t,1,y,x"}


def _netcdf(tmp_path):
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("h5netcdf")
    gas = xarray.DataArray(GAS.transpose(2, 0, 1), dims=("x", "time", "y"))
    frame = xarray.Dataset({"gas": gas, "depth": (("x",), np.arange(W))})
    frame.to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    return tmp_path / "a.nc", {}


FORMS = (_hdf5, _hdf5_elsewhere, _matlab, _npy, _npz, _zarr, _netcdf)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__[1:])
def test_every_form_holds_the_same_movie(form, tmp_path, monkeypatch):
    # Three blocks of four frames.
    monkeypatch.setattr(importing, "_BLOCK_NUMBERS", 4 * H * W)
    file, choices = form(tmp_path)
    movie = _imported(tmp_path, file, **choices)
    np.testing.assert_array_equal(movie.frames[0], GAS)
    assert movie.meta.made_from["file"] == file.name
    assert movie.meta.made_from["recipe"]["axes"] == choices.get("axes", "")


def test_blocks_are_small_and_keep_chunks_together(tmp_path, monkeypatch):
    file, _ = _hdf5(tmp_path)
    monkeypatch.setattr(importing, "_BLOCK_NUMBERS", 3 * H * W)
    seen = []
    import_movie(file, tmp_path / "movie", Recipe(), progress=lambda *at: seen.append(at))
    # Chunks of four frames: four at a time, not three.
    assert seen == [(4, T), (8, T), (T, T)]


def _video(path, frames, **options):
    ffmpeg = pytest.importorskip("imageio_ffmpeg")
    height, width = frames.shape[1:]
    writer = ffmpeg.write_frames(
        str(path), (width, height), pix_fmt_in="gray", fps=20, macro_block_size=1, **options
    )
    writer.send(None)
    for frame in frames:
        writer.send(np.ascontiguousarray(frame))
    writer.close()
    return path


@pytest.mark.parametrize("name", ["a.avi", "a.mp4"])
def test_a_video_is_read_with_y_upwards(name, tmp_path, monkeypatch):
    monkeypatch.setattr(importing, "_BLOCK_NUMBERS", 4 * 16 * 32)
    y, x = np.mgrid[:16, :32]
    frames = np.stack([40 + 5 * x + y + 3 * t for t in range(10)]).clip(0, 255).astype(np.uint8)
    lossless = name == "a.avi"
    options = {"codec": "ffv1", "pix_fmt_out": "gray"} if lossless else {"quality": 10}
    file = _video(tmp_path / name, frames, **options)
    movie = _imported(tmp_path, file, dtype="uint8", frames=(2, 9, 3), source=(0, 15))
    assert movie.meta.scale == 1.0
    assert movie.meta.sources == ((0.0, 0.0),)  # the last row, and so the lowest y
    want = frames[[2, 5, 8], ::-1]
    # MP4 is lossy.
    worst = np.abs(movie.frames[0].astype(int) - want.astype(int)).max()
    assert worst <= (0 if lossless else 6)


def test_a_video_can_be_read_backwards_for_its_background(tmp_path):
    rng = np.random.default_rng(1)
    frames = rng.integers(0, 100, (9, 16, 16)).astype(np.uint8)
    file = _video(tmp_path / "a.avi", frames, codec="ffv1", pix_fmt_out="gray")
    movie = _imported(tmp_path, file, axes="t,y,x", background="mean", background_frames=(6, 9))
    want = np.maximum(frames - frames[6:].mean(0, dtype=np.float32), 0)
    np.testing.assert_allclose(movie.frames[0], want, rtol=1e-6)


@pytest.fixture
def npy(tmp_path):
    np.save(tmp_path / "a.npy", GAS)
    return tmp_path / "a.npy"


def test_crop_downsampling_and_steps_keep_places(npy, tmp_path):
    movie = _imported(
        tmp_path,
        npy,
        mm_per_pixel=(0.5, 2.0),
        frames_per_second=30.0,
        frames=(1, 10, 2),
        crop=(1, 8, 2, 6),
        downsample=(3, 2),
        source=(2.5, 3.0),
    )
    part = GAS[1:10:2, 2:6, 1:7]  # the eighth column is left over
    want = part.reshape(5, 2, 2, 2, 3).mean((2, 4))
    np.testing.assert_allclose(movie.frames[0], want, rtol=1e-6)
    meta = movie.meta
    assert meta.spacing == (1.5, 4.0)
    assert meta.origin == (0.5 * 2, 2.0 * 2.5)  # the middle of pixels 1 to 3, and of 2 and 3
    assert meta.frames_per_second == 15.0
    assert meta.sources == ((1.25, 6.0),)
    assert meta.length == "mm"


def test_a_flipped_axis_counts_lengths_from_its_other_end(npy, tmp_path):
    movie = _imported(tmp_path, npy, axes="t,-y,x", crop=(0, 8, 0, 4), source=(3.0, 1.0))
    np.testing.assert_array_equal(movie.frames[0], GAS[:, :4][:, ::-1])
    assert movie.meta.origin == (0.0, 2.0)  # stored row 3 of 6 is the third from below
    assert movie.meta.sources == ((3.0, 4.0),)
    assert movie.meta.length == "pixels"


def test_background_intensity_floor(npy, tmp_path):
    choices = {"intensity": 10.0, "noise_floor": 2.0, "background_frames": (2, 6)}
    movie = _imported(tmp_path, npy, background="25", **choices)
    want = 10 * (GAS - np.percentile(GAS[2:6], 25, axis=0))
    want = np.where(want < 2.0, 0, want)
    np.testing.assert_allclose(movie.frames[0], want, rtol=1e-5)
    assert movie.meta.noise_floor == 2.0


def test_background_of_a_file(npy, tmp_path):
    frame = np.random.default_rng(3).uniform(0, 0.5, (H, W))
    np.save(tmp_path / "dark.npy", frame)
    dark = str(tmp_path / "dark.npy")
    movie = _imported(tmp_path, npy, background=dark, axes="t,-y,x", downsample=(2, 2))
    want = (GAS - frame)[:, ::-1].reshape(T, 3, 2, 4, 2).mean((2, 4))
    np.testing.assert_allclose(movie.frames[0], np.maximum(want, 0), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("coding", ["linear", "log"])
def test_eight_bits_hold_what_the_coding_says(coding, npy, tmp_path):
    movie = _imported(tmp_path, npy, dtype="uint8", coding=coding, peak=1.0, smallest=0.01)
    assert movie.frames.dtype == np.uint8
    gas = decode(movie.frames[0], movie.meta)
    step = 1 / 510 if coding == "linear" else np.expm1(movie.meta.offset / 2) * (GAS + 0.01)
    assert np.all(np.abs(gas - GAS) <= step * 1.001)


def test_uneven_pixels_become_even_ones(tmp_path):
    x = np.asarray([0.0, 0.5, 1.5, 3.5])
    y = np.asarray([6.0, 5.0, 2.0])  # falling
    plane = 1.0 + 2.0 * x[None] + 3.0 * y[:, None]
    np.save(tmp_path / "a.npy", np.stack([plane, 2 * plane]))
    np.savez(tmp_path / "places.npz", X=x[None], Y=y[:, None])
    places = str(tmp_path / "places.npz")
    file = tmp_path / "a.npy"
    movie = _imported(tmp_path, file, axes="t,-y,x", coordinates=places, source=(1, 1))
    assert movie.meta.spacing == pytest.approx((3.5 / 3, 2.0))
    assert movie.meta.origin == (0.0, 2.0)
    assert movie.meta.sources == ((0.5, 5.0),)
    even = 1.0 + 2.0 * np.linspace(0, 3.5, 4)[None] + 3.0 * np.asarray([2.0, 4.0, 6.0])[:, None]
    np.testing.assert_allclose(movie.frames[0], [even, 2 * even], rtol=1e-6)
    with pytest.raises(ValidationError, match="minus"):
        import_movie(file, tmp_path / "other", Recipe(axes="t,y,x", coordinates=places))


def test_coordinates_of_matlab_files_old_and_new(tmp_path):
    h5py = pytest.importorskip("h5py")
    from scipy.io import savemat

    savemat(tmp_path / "old.mat", {"X": np.arange(4.0), "Y": np.arange(3.0)})
    with h5py.File(tmp_path / "new.mat", "w", userblock_size=512) as file:
        file["X"], file["Y"] = np.arange(4.0)[:, None], np.arange(3.0)[:, None]
    with (tmp_path / "new.mat").open("r+b") as file:
        # The head of a MATLAB file that says it is of version 7.3.
        file.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM")
    for name in ("old.mat", "new.mat"):
        x, y = importing.read_coordinates(tmp_path / name)
        assert (x.tolist(), y.tolist()) == ([0, 1, 2, 3], [0, 1, 2])


def test_wind_comes_along_with_its_rate_and_offset(npy, tmp_path):
    h5py = pytest.importorskip("h5py")
    rng = np.random.default_rng(2)
    u, v = rng.normal(size=(2, 5, H, W)).astype(np.float32)
    for name, part in (("uu", u), ("vv", v)):
        with h5py.File(tmp_path / f"{name}.h5", "w") as file:
            file[name] = part
    wind = WindRecipe(
        files=(str(tmp_path / "uu.h5"), str(tmp_path / "vv.h5")),
        variables=("uu", "vv"),
        speed=(0.5, -0.5),
        frames_per_second=6.0,
        start=-1.0,
    )
    choices = {"frames": (4, 0, 2), "frames_per_second": 12.0, "axes": "t,-y,x"}
    file = tmp_path / "gas.h5"
    with h5py.File(file, "w") as stored:
        stored["gas"] = GAS
    movie = _imported(tmp_path, file, wind, downsample=(2, 1), **choices)
    want = np.stack([0.5 * u, -0.5 * v], axis=1)[:, :, ::-1].reshape(5, 2, H, W // 2, 2).mean(-1)
    np.testing.assert_allclose(movie.wind[0], want, atol=2e-3)
    # Frame 4 of the gas is frame 2 of the wind, less one.
    assert (movie.meta.wind_per_second, movie.meta.wind_start) == (6.0, 1.0)
    assert movie.meta.frames_per_second == 6.0


def test_filaments_become_the_slice_at_the_sources_height(recording, tmp_path):
    source = (0.9, 0.7, 0.5)
    import_filaments(recording, tmp_path / "movie", source, (1, 5))
    movie = open_movie(tmp_path / "movie")
    np.testing.assert_array_equal(
        movie.frames[0], read_filaments(recording, source).slice(range(1, 6))
    )
    assert movie.meta.origin == pytest.approx((0.1, 0.1))
    assert (movie.meta.sources, movie.meta.unit) == (((0.9, 0.7),), "ppm")


def test_an_interrupted_import_goes_on_where_it_stopped(npy, tmp_path, monkeypatch):
    monkeypatch.setattr(importing, "_BLOCK_NUMBERS", 4 * H * W)
    recipe, out = (
        Recipe(dtype="float32", background="mean", background_frames=(0, 3)),
        tmp_path / "m",
    )

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_movie(npy, out, recipe, progress=stop)
    assert not out.exists()
    for other in (replace(recipe, intensity=2.0), replace(recipe, downsample=(2, 2))):
        with pytest.raises(ValidationError, match=r"recipe\.(intensity|downsample) was"):
            import_movie(npy, out, other)
    seen = []
    import_movie(npy, out, recipe, progress=lambda *at: seen.append(at))
    assert seen == [(8, T), (T, T)]
    want = np.maximum(GAS - GAS[:3].mean(0), 0)
    np.testing.assert_allclose(open_movie(out).frames[0], want, atol=1e-6)


def test_another_file_is_not_resumed(npy, tmp_path, monkeypatch):
    monkeypatch.setattr(importing, "_BLOCK_NUMBERS", 4 * H * W)

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_movie(npy, tmp_path / "m", Recipe(), about={"sha256": "1"}, progress=stop)
    with pytest.raises(ValidationError, match=r"meta\.sha256 was '1' and is '2'"):
        import_movie(npy, tmp_path / "m", Recipe(), about={"sha256": "2"})


BAD = {
    "axes": ({"axes": "t,y,z"}, "axes"),
    "axes of another array": ({"axes": "t,0,y,x"}, "axes"),
    "frames": ({"frames": (0, T + 1, 1)}, "frames"),
    "crop": ({"crop": (0, W + 1, 0, H)}, "crop"),
    "downsample": ({"downsample": (0, 1)}, "downsample"),
    "scale": ({"mm_per_pixel": (1.0, 0.0)}, "mm_per_pixel"),
    "source": ({"source": (W + 3.0, 0.0)}, "source"),
    "source cut off": ({"source": (W - 1.0, 0.0), "crop": (0, 4, 0, H)}, "source"),
    "background": ({"background": "median"}, "background"),
    "background_frames": ({"background": "mean", "background_frames": (0, 100)}, "background"),
    "peak": ({"dtype": "uint8"}, "peak"),
    "coding": ({"coding": "log"}, "coding"),
    "format": ({"format": "hdf5"}, "no HDF5"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_recipe_that_does_not_fit_is_one_clear_error(case, npy, tmp_path):
    choices, message = BAD[case]
    with pytest.raises(ValidationError, match=message):
        import_movie(npy, tmp_path / "movie", Recipe(**choices))
    assert not (tmp_path / "movie").exists()


BROKEN = {"a.h5": "HDF5", "a.mat": "v7.3", "a.npy": "NumPy", "a.npz": "NumPy", "a.nc": "NetCDF",
          "a.avi": "ffmpeg", "a.zarr": "Zarr", "a.tiff": "format"}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_file_that_is_not_what_its_name_says_is_one_clear_error(name, tmp_path):
    path = tmp_path / name
    path.write_bytes(b"no such thing" * 100)
    with pytest.raises(ValidationError, match=BROKEN[name]), open_stored(path):
        pass


def test_a_file_that_was_cut_off_is_one_clear_error(tmp_path):
    whole = tmp_path / "whole.npz"
    np.savez(whole, gas=np.arange(4000, dtype=np.float32).reshape(10, 20, 20))
    for size in (0, 100, 3000):
        path = tmp_path / f"{size}.npz"
        path.write_bytes(whole.read_bytes()[:size])
        with pytest.raises(ValidationError, match="not a whole NumPy file"), open_stored(path):
            pass


def test_a_file_without_frames_is_refused(tmp_path):
    path = tmp_path / "empty.npy"
    np.save(path, np.zeros((0, 4, 4), np.float32))
    with pytest.raises(ValidationError, match="frames in the file = 0"):
        import_movie(path, tmp_path / "movie", Recipe())


def test_an_unknown_array_is_named_beside_those_there(tmp_path):
    file, _ = _hdf5(tmp_path)
    with (
        pytest.raises(ValidationError, match=r"dataset2 \[11, 8, 6\]"),
        open_stored(file, variable="dataset3"),
    ):
        pass
    with pytest.raises(ValidationError, match="axes"), open_stored(file, axes="t,0,x,y"):
        pass
    np.savez(tmp_path / "two.npz", a=GAS, b=GAS)
    with pytest.raises(ValidationError, match="variable"), open_stored(tmp_path / "two.npz"):
        pass
    file, _ = _hdf5_elsewhere(tmp_path)
    with pytest.raises(ValidationError, match="group"), open_stored(file, variable="scratch/one"):
        pass
    file, _ = _zarr(tmp_path)
    with pytest.raises(ValidationError, match="axes"), open_stored(file, axes="t,2,y,x"):
        pass


@pytest.mark.parametrize(
    ("name", "package", "extra"),
    [
        ("a.h5", "h5py", "data"),
        ("a.zarr", "zarr", "data"),
        ("a.nc", "xarray", "data"),
        ("a.avi", "imageio_ffmpeg", "view"),
    ],
)
def test_a_missing_package_is_one_error_that_names_the_extra(
    name, package, extra, tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, package, None)
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(PlumeError, match=rf"plumejax\[{extra}\]"), open_stored(tmp_path / name):
        pass


def test_axes_are_three_roles_and_indices():
    assert parse_axes("t, x,-y") == ("t", "x", "-y")
    for axes in ("", "t,x", "t,x,x", "-t,x,y", "t,x,y,z"):
        with pytest.raises(ValidationError, match="axes"):
            parse_axes(axes)
