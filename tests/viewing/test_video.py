"""tests/viewing/test_video: films have every frame, in order, or there is no film."""

import itertools

import imageio.v2 as imageio
import jax
import numpy as np
import pytest
from PIL import Image

import plumejax
from plumejax.base.errors import PlumeError, ValidationError
from plumejax.evaluation.episodes import trace
from plumejax.policies.reactive import Random
from plumejax.viewing.frames import camera, frame
from plumejax.viewing.video import captioned, film, save_video


@pytest.fixture(scope="module")
def played(local):
    """`(env, params, lanes, steps)` of four episodes."""
    env, params = local
    policy = Random(env.action_space(params))
    outcomes, lanes = trace(env, policy, jax.random.key(3), params, 4, 40)
    return env, params, lanes, np.asarray(outcomes.steps)


def lanes_of(states, lanes):
    return jax.tree.map(lambda x: x[:, np.asarray(lanes)], states)


def test_a_film_is_the_pictures_of_an_episode_from_start_to_end(played):
    env, params, lanes, steps = played
    longest = int(np.argmax(steps))
    states = lanes_of(lanes.state, [longest])
    frames = list(film(env, params, states, steps[[longest]], longest=160))
    assert len(frames) == steps[longest] + 1
    taken = camera(env, params, 160)
    first = jax.tree.map(lambda x: x[0, 0], states)
    trail = np.full((64, 2), np.nan, np.float32)
    trail[-1] = first.agent.position
    alone = np.asarray(frame(taken, first, params, trail), int)
    assert np.abs(alone - frames[0]).max() <= 1
    assert np.any(frames[-1] != frames[0])


def test_frames_are_as_far_apart_as_is_said_and_the_last_is_there(played):
    env, params, lanes, steps = played
    longest = int(np.argmax(steps))
    states, lengths = lanes_of(lanes.state, [longest]), steps[[longest]]
    every = list(film(env, params, states, lengths, longest=160))
    some = list(film(env, params, states, lengths, every=7, longest=160))
    wanted = [*range(0, lengths[0], 7), lengths[0]]
    assert len(some) == len(wanted)
    for drawn, moment in zip(some, wanted, strict=True):
        np.testing.assert_array_equal(drawn, every[moment])
    with pytest.raises(ValidationError, match="every = 0"):
        next(film(env, params, states, lengths, every=0))


def test_several_episodes_stand_side_by_side_and_wait_for_the_last(played):
    env, params, lanes, steps = played
    frames = list(film(env, params, lanes.state, steps, every=8, longest=320))
    height, width, _ = frames[0].shape
    alone = next(film(env, params, lanes_of(lanes.state, [0]), steps[[0]], longest=160))
    assert (height > 2 * alone.shape[0], width > 2 * alone.shape[1]) == (True, True)
    np.testing.assert_array_equal(frames[0][: alone.shape[0], : alone.shape[1]], alone)


def test_two_arms_are_filmed_from_above():
    env, params = plumejax.make("TwoArm-Lift-v0", overrides={"max_steps": 5})
    policy = Random(env.action_space(params))
    outcomes, lanes = trace(env, policy, jax.random.key(0), params, 1, 5)
    frames = list(film(env, params, lanes.state, np.asarray(outcomes.steps), longest=96))
    assert [each.shape for each in frames] == [(96, 96, 3)] * (int(outcomes.steps[0]) + 1)
    assert len(np.unique(frames[0].reshape(-1, 3), axis=0)) > 2


def test_a_caption_is_a_line_above():
    plain = np.full((40, 120, 3), 7, np.uint8)
    (told,) = captioned([plain], "after 2 M steps")
    (other,) = captioned([plain], "before training")
    np.testing.assert_array_equal(told[-40:], plain)
    above = told[:-40]
    assert 0.02 < (above > 128).mean() < 0.5
    assert np.any(above != other[:-40])


FRAMES = [np.full((31, 45, 3), shade, np.uint8) for shade in (10, 90, 170, 250)]


def test_a_gif_has_every_frame(tmp_path):
    path, told = tmp_path / "a.gif", []
    assert save_video(path, iter(FRAMES), 10.0, told.append) == 4
    assert told == [1, 2, 3, 4]
    with Image.open(path) as film:
        shades = [film.seek(i) or int(np.asarray(film.convert("RGB")).mean()) for i in range(4)]
        assert (film.n_frames, film.info["duration"]) == (4, 100)
    assert np.all(np.diff(shades) > 0)


def test_an_mp4_has_every_frame_and_even_sides(tmp_path, recwarn):
    path = tmp_path / "a.mp4"
    assert save_video(path, FRAMES, 10.0) == 4
    assert not [each for each in recwarn if "fork" in str(each.message)]
    with imageio.get_reader(path) as film:
        read = list(iter(film))  # its length is not known
        assert film.get_meta_data()["fps"] == 10.0
    assert [each.shape for each in read] == [(32, 46, 3)] * 4
    assert (
        np.abs([each[:31, :45].mean() for each in read] - np.asarray([10, 90, 170, 250])).max() < 6
    )


@pytest.mark.parametrize("name", ["a.gif", "a.mp4"])
def test_a_film_that_fails_leaves_the_one_before(tmp_path, name):
    path = tmp_path / name
    save_video(path, FRAMES)
    before = path.read_bytes()

    def failing():
        yield from FRAMES[:2]
        raise PlumeError("no more")

    with pytest.raises(PlumeError, match="no more"):
        save_video(path, failing())
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    ("name", "frames", "rate", "message"),
    [
        ("a.avi", FRAMES, 20, "path = .*gif or"),
        ("a.gif", [], 20, "frames = 'none'"),
        ("a.mp4", FRAMES, 0, "frames_per_second = 0"),
    ],
)
def test_what_makes_no_film_is_refused(tmp_path, name, frames, rate, message):
    with pytest.raises(ValidationError, match=message):
        save_video(tmp_path / name, itertools.chain(frames), rate)
    assert list(tmp_path.iterdir()) == []
