"""viewing: frames are pure, upright and the size of the grid."""

import numpy as np
import pytest

from plumejax.viewing.frames import colours, frame

WHITE, BLACK, SOURCE = (255, 255, 255), (0, 0, 0), (213, 94, 0)
FIELD = np.zeros((12, 16), np.float32)
SOURCES = np.asarray([[8.0, 6.0]], np.float32)


def draw(position, heading=None, **choices):
    return frame(
        FIELD, SOURCES, choices.pop("radius", None), np.float32(position), heading, **choices
    )


def at(picture, x, y):
    """The colour of cell (x, y)."""
    return tuple(picture[picture.shape[0] - 1 - y, x].tolist())


def test_a_picture_is_the_grid_in_uint8():
    picture = draw((3, 3))
    assert (picture.shape, picture.dtype) == ((12, 16, 3), np.uint8)


def test_up_is_up():
    field = FIELD.copy()
    field[11, 0] = 1.0  # largest y
    picture = frame(field, SOURCES, None, np.float32([3, 3]))
    assert tuple(picture[0, 0]) == tuple(colours(np.float32(1.0), 1.0))
    assert at(picture, 0, 11) == (254, 232, 56)
    assert at(picture, 0, 0) == (0, 34, 78)


def test_agent_and_source_are_where_they_are():
    picture = draw((3, 2))
    assert at(picture, 3, 2) == BLACK
    rim = [(x, y) for x in (2, 3, 4) for y in (1, 2, 3) if (x, y) != (3, 2)]
    assert {at(picture, *cell) for cell in rim} == {WHITE}
    cross = [(8, 6), (7, 6), (9, 6), (8, 5), (8, 7)]
    assert {at(picture, *cell) for cell in cross} == {SOURCE}
    assert at(picture, 7, 5) == (0, 34, 78)


@pytest.mark.parametrize(
    ("heading", "opening"),
    [(0, (4, 2)), (90, (3, 3)), (180, (2, 2)), (270, (3, 1)), (45, (4, 3)), (359, (4, 2))],
)
def test_the_rim_is_open_towards_the_heading(heading, opening):
    picture = draw((3, 2), heading)
    assert at(picture, *opening) == BLACK
    assert (picture == 255).all(axis=-1).sum() == 7


def test_the_agent_may_stand_at_an_edge():
    for corner in ((0, 0), (15, 11)):
        assert at(draw(corner, 0.0), *corner) == BLACK


def test_the_goal_disc_is_a_ring():
    picture = draw((0, 0), radius=3.0)
    bare = draw((0, 0))
    changed = {(x, y) for x in range(16) for y in range(12) if at(picture, x, y) != at(bare, x, y)}
    assert {(11, 6), (5, 6), (8, 9), (8, 3)} <= changed
    assert all(2.5 < np.hypot(x - 8, y - 6) < 3.5 for x, y in changed)


def test_walls_are_black():
    free = np.ones((12, 16), bool)
    free[0] = False
    picture = draw((3, 5), free=free)
    assert (picture[-1] == 0).all()
    assert not (picture[0] == 0).all()


def test_a_source_between_cells_has_a_whole_cross():
    picture = frame(FIELD, np.float32([[7.5, 5.5]]), None, np.float32([0, 0]))
    assert (picture == SOURCE).all(axis=-1).sum() == 5


def test_colours_grow_lighter():
    scale = colours(np.linspace(0, 1, 50) ** 3, 1.0).astype(float)
    lightness = scale @ [0.2126, 0.7152, 0.0722]
    assert (np.diff(lightness) > 0).all()
    assert lightness[-1] - lightness[0] > 150


def test_colours_keep_to_the_scale():
    np.testing.assert_array_equal(
        colours(np.float32([-1.0, 9.0]), 2.0), colours(np.float32([0, 2]), 2.0)
    )
    np.testing.assert_array_equal(colours(np.zeros(3)), np.tile([0, 34, 78], (3, 1)))
    np.testing.assert_array_equal(colours(np.float32([0.0, 5.0]))[1], [254, 232, 56])


def test_arguments_are_left_alone():
    field, sources, position = FIELD.copy(), SOURCES.copy(), np.float32([3, 3])
    a = frame(field, sources, 2.0, position, 90.0)
    np.testing.assert_array_equal(a, frame(field, sources, 2.0, position, 90.0))
    np.testing.assert_array_equal(field, FIELD)
    np.testing.assert_array_equal(position, [3, 3])
