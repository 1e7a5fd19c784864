"""viewing: frames are pure, upright, and show what is there."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plumejax
from plumejax.base.errors import RenderingError, ValidationError
from plumejax.search.team import Team
from plumejax.viewing import frames
from plumejax.viewing.frames import camera, contact_sheet, frame, levels

DARKEST, BRIGHTEST = (0, 34, 78), (254, 232, 56)


@pytest.fixture(scope="module")
def task(local):
    """`(camera, state, params)`: 16 x 12 cells of 30 pixels, the source in the middle."""
    env, params = local
    params = params.replace(sensor=params.sensor.replace(saturation=np.float32(1.0)))
    _, state = env.reset(jax.random.key(0), params)
    return camera(env, params), placed(state, 3, 2), params


def placed(state, x, y, heading=0.0):
    agent = state.agent.replace(position=jnp.float32([x, y]), heading=jnp.float32(heading))
    return state.replace(agent=agent)


def of_cell(picture, x, y, scale=30):
    """The pixels of cell (x, y)."""
    picture = np.asarray(picture)
    low = picture.shape[0] - (y + 1) * scale
    return picture[low : low + scale, x * scale : (x + 1) * scale]


def middle(picture, x, y, scale=30):
    return tuple(of_cell(picture, x, y, scale)[scale // 2, scale // 2].tolist())


def share(picture, colour):
    return float((np.asarray(picture) == colour).all(axis=-1).mean())


def test_a_picture_is_of_the_shape_that_the_camera_says(task):
    taken, state, params = task
    picture = frame(taken, state, params)
    assert picture.shape == taken.shape == (360, 480, 3)
    assert picture.dtype == np.uint8


def test_under_vmap_and_without_jit_it_is_the_same_picture(task):
    taken, state, params = task
    places = [(3, 2), (12, 9), (0, 11)]
    states = jax.tree.map(lambda *x: jnp.stack(x), *(placed(state, *at) for at in places))
    together = jax.vmap(lambda one: frame(taken, one, params))(states)
    for picture, at in zip(together, places, strict=True):
        alone = np.asarray(frame(taken, placed(state, *at), params), int)
        # Two programs may round a colour to either side.
        assert np.abs(np.asarray(picture, int) - alone).max() <= 1
    with jax.disable_jit():
        eager = np.asarray(frame(taken, placed(state, *at), params), int)
    assert np.abs(eager - alone).max() <= 1


def test_up_is_up_and_the_agent_is_where_it_is(task):
    taken, state, params = task
    for x, y in ((3, 2), (3, 9), (12, 2)):
        picture = frame(taken, placed(state, x, y), params)
        assert middle(picture, x, y) == frames.WHITE
        assert share(of_cell(picture, x, y), frames.BLACK) > 0.02  # its rim
        others = [at for at in ((3, 2), (3, 9), (12, 2)) if at != (x, y)]
        assert all(middle(picture, *at) != frames.WHITE for at in others)


def test_the_source_is_a_star_in_a_ring_of_the_goal(task, local):
    taken, state, params = task
    env, _ = local
    source = np.asarray(env.plume.sources(state.plume, params.plume))[0]
    picture = np.asarray(frame(taken, state, params), int)
    at = (np.asarray([source[0], 11 - source[1]]) + 0.5) * 30 - 0.5
    y, x = np.mgrid[: picture.shape[0], : picture.shape[1]]
    away = np.hypot(x - at[0], y - at[1])
    red = (picture == frames.SOURCE).all(axis=-1)
    assert red.sum() > 50
    assert away[red].max() < 15
    without = params.replace(ending=params.ending.replace(radius=np.float32(1.0)))
    moved = np.abs(picture - np.asarray(frame(taken, state, without), int)).sum(axis=-1) > 0
    assert set(np.round(away[moved] / 30).astype(int)) == {1, 2}


@pytest.mark.parametrize("heading", [0, 60, 90, 180, 270, 359])
def test_the_arrowhead_points_along_the_heading(heading):
    env, params = plumejax.make("PlumeSearchLocal-v0", grid_size=(16, 12), motion=turning())
    _, state = env.reset(jax.random.key(0), params)
    picture = np.asarray(frame(camera(env, params), placed(state, 3, 2, heading), params))
    cell = picture[-110:-40, 65:145]  # around it, without wind and bar
    rows, columns = np.nonzero((cell == 255).all(axis=-1))
    # The tip is the white pixel farthest from where the agent is.
    dx, dy = columns + 65 - 104.5, picture.shape[0] - 110 + rows - 284.5
    tip = np.argmax(np.hypot(dx, dy))
    away = np.rad2deg(np.arctan2(-dy[tip], dx[tip])) - heading
    assert abs((away + 180) % 360 - 180) < 12


def turning():
    from plumejax.search.motion import Oriented

    return Oriented()


def test_the_trail_is_where_the_agent_was_and_faint_long_ago(task):
    taken, state, params = task
    trail = np.full((8, 2), np.nan, np.float32)
    trail[-4:] = [[12, 2], [9, 2], [6, 2], [3, 2]]
    bare = np.asarray(frame(taken, state, params, np.full_like(trail, np.nan)), int)
    picture = np.asarray(frame(taken, state, params, trail), int)
    np.testing.assert_array_equal(bare, frame(taken, state, params))
    y, x = np.nonzero(np.abs(picture - bare).sum(axis=-1))
    assert (np.abs(y - 284.5) < 4).all()
    assert (x.min() < 120, x.max() > 370) == (True, True)
    whiter = np.abs(picture - bare).sum(axis=-1)[284]
    assert whiter[150] > whiter[360] > 0


def test_what_an_agent_cannot_enter_is_pale():
    env, params = plumejax.make("Obstacles-v0")
    _, state = env.reset(jax.random.key(0), params)
    taken = camera(env, params)
    picture = np.asarray(frame(taken, state, params))
    where = taken.canvas
    cells = np.stack(np.meshgrid(np.arange(where.size[0]), np.arange(where.size[1])), axis=-1)
    places = where.origin + where.spacing * cells.reshape(-1, 2).astype(np.float32)
    walls = ~np.asarray(env.arena.inside(jnp.asarray(places), params))
    pale = [middle(picture, x, y, taken.scale[0]) == frames.WALL for x, y in cells.reshape(-1, 2)]
    assert np.mean(pale == walls) > 0.98  # but where something stands before it
    assert 0.1 < np.mean(walls) < 0.9


def test_the_wind_is_an_arrow_in_the_corner_and_no_wind_is_none(task):
    taken, state, params = task
    assert share(frame(taken, state, params), frames.WIND) == 0.0
    env, params = plumejax.make("Fly-Packets-v0")
    _, state = env.reset(jax.random.key(0), params)
    picture = np.asarray(frame(camera(env, params), state, params))
    rows, columns = np.nonzero((picture == frames.WIND).all(axis=-1))
    assert len(rows) > 20
    assert rows.min() > picture.shape[0] - 60
    assert columns.max() < 60
    # It blows along +x: the head, which is wider, is to the right.
    right = columns > np.median([columns.min(), columns.max()])
    assert np.ptp(rows[right]) > np.ptp(rows[~right])


def test_the_scale_bar_is_as_long_as_it_says(task):
    taken, state, params = task
    assert taken.bar == 2.0  # cells, of 16
    picture = np.asarray(frame(taken, state, params))
    row = (picture[-30:] == 255).all(axis=-1).sum(axis=1).max()
    assert abs(row - 2 * 30) < 10


def test_antennae_are_dots_beside_the_agent():
    env, params = plumejax.make("PlumeSearchLocal-v0", grid_size=(16, 12))
    from dataclasses import replace

    from plumejax.search.antennae import Antennae

    sensor = Antennae()
    two = replace(env, sensor=sensor)
    params = params.replace(sensor=sensor.default_params())
    _, state = two.reset(jax.random.key(0), params)
    state = placed(state, 3, 2)
    probes = np.asarray(sensor.probes(state.agent, params))
    assert len(probes) == 2
    picture = np.asarray(frame(camera(two, params), state, params))
    for x, y in probes:
        pixel = picture[round(11.5 * 30 - 0.5 - y * 30), round((x + 0.5) * 30 - 0.5)]
        assert tuple(pixel) == frames.WHITE


def test_a_team_is_all_shown(local):
    team = Team(local[0], num_agents=3)
    params = local[1]
    _, state = team.reset(jax.random.key(0), params)
    at = jnp.float32([[2, 9], [13, 9], [13, 3]])
    state = state.replace(agent=state.agent.replace(position=at))
    picture = frame(camera(team, params), state, params)
    assert all(middle(picture, *cell) == frames.WHITE for cell in ((2, 9), (13, 9), (13, 3)))


def test_a_line_is_high_enough_to_be_seen():
    env, params = plumejax.make("Olfactory-Isotropic-1D-v0")
    _, state = env.reset(jax.random.key(0), params)
    picture = frame(camera(env, params), state, params)
    assert picture.shape[0] >= 48
    assert share(picture, frames.SOURCE) > 0


def test_brightness_is_the_cube_root_or_the_logarithm():
    values = np.float32([-1.0, 0.0, 1e-3, 1e-2, 1.0, 9.0])
    np.testing.assert_allclose(levels(values, 1.0), [0, 0, 0.1, 0.01 ** (1 / 3), 1, 1], rtol=1e-5)
    np.testing.assert_allclose(levels(values, 1.0, 4.0), [0, 0, 0.25, 0.5, 1, 1], atol=1e-6)
    np.testing.assert_array_equal(levels(np.zeros(3, np.float32), 0.0), np.zeros(3))


def test_the_brightest_colour_is_not_that_of_a_peak():
    field = np.ones((100, 100), np.float32)
    field[0, :20] = 1000
    assert float(frames.brightest(field)) == 1.0
    assert float(frames.brightest(field, 5.0)) == 5.0
    assert float(frames.brightest(field, np.inf)) == 1.0
    rare = np.zeros((100, 100), np.float32)
    rare[0, 0] = 2.0
    assert float(frames.brightest(rare)) == 2.0


def test_colours_grow_lighter():
    table = frames.colour_table()
    assert tuple(table[0]) == DARKEST
    assert tuple(table[-1]) == BRIGHTEST
    lightness = table.astype(float) @ [0.2126, 0.7152, 0.0722]
    assert (np.diff(lightness[::8]) > 0).all()
    assert np.ptp(lightness) > 150


def test_a_contact_sheet_has_every_picture_in_its_place():
    pictures = np.stack([np.full((30, 40, 3), n, np.uint8) for n in range(5)])
    sheet = np.asarray(contact_sheet(pictures, columns=3))
    gap = sheet.shape[1] - 3 * 40
    assert sheet.shape == (2 * 30 + gap // 2, 120 + gap, 3)
    step = 40 + gap // 2
    tops = (0, 30 + gap // 2)
    shown = [sheet[top, column * step, 0] for top in tops for column in range(3)]
    assert shown == [0, 1, 2, 3, 4, 255]
    assert np.asarray(contact_sheet(pictures)).shape[1] > 0


@pytest.mark.parametrize(
    ("name", "value"),
    [("longest", 0), ("longest", 5000), ("longest", 2.5), ("decades", 0.0), ("decades", "a")],
)
def test_a_camera_refuses_what_makes_no_picture(local, name, value):
    with pytest.raises(ValidationError, match=f"{name} = {value!r}"):
        camera(*local, **{name: value})


def test_only_searches_have_frames():
    with pytest.raises(RenderingError, match="no search"):
        camera(*plumejax.make("TwoArm-Lift-v0"))


@pytest.mark.parametrize("shape", [(0, 4, 4, 3), (4, 4, 3), (2, 4, 4, 4)])
def test_a_contact_sheet_is_of_pictures(shape):
    with pytest.raises(ValidationError, match="frames = "):
        contact_sheet(np.zeros(shape, np.uint8))
