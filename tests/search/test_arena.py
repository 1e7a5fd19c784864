"""tests/search/test_arena: where an agent can be, and what a wall does."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plumejax
from plumejax.base.errors import ValidationError
from plumejax.search.arena import (
    BoxParams,
    MaskedGrid,
    ObstacleBox,
    ObstacleBoxParams,
    OpenBox,
    OpenGrid,
    PeriodicBox,
    PeriodicGrid,
    from_array,
    from_map,
    read_map,
)
from plumejax.search.walking import Velocity, Walking
from plumejax.search.walls import RULES

GRID = (6, 4)
FREE = np.asarray(
    [
        [1, 1, 1, 1, 1, 1],
        [1, 0, 0, 0, 0, 1],
        [1, 0, 1, 1, 0, 1],
        [1, 1, 1, 1, 1, 1],
    ],
    bool,
)


@pytest.fixture(scope="module")
def masked():
    overrides = {"arena.free": FREE, "ending.radius": 1.0, "plume.sigma": 2.0}
    return plumejax.make(
        "PlumeSearchLocal-v0", grid_size=GRID, arena=MaskedGrid(GRID), overrides=overrides
    )


def test_an_open_grid_holds_its_cells_and_no_more(local):
    arena, params = OpenGrid((16, 12)), local[1]
    places = jnp.asarray([[0, 0], [15, 11], [16, 3], [3, 12], [-1, 3]], jnp.float32)
    np.testing.assert_array_equal(arena.inside(places, params), [True, True, False, False, False])
    settled = jax.vmap(lambda p: arena.settle(places[0], p, params))(places)
    np.testing.assert_array_equal(settled, [[0, 0], [15, 11], [15, 3], [3, 11], [0, 3]])


def test_a_masked_grid_is_indexed_y_x(masked):
    env, params = masked
    y, x = np.mgrid[:4, :6]
    places = jnp.asarray(np.stack([x.ravel(), y.ravel()], -1), jnp.float32)
    np.testing.assert_array_equal(env.arena.inside(places, params), FREE.ravel())
    outside = jnp.asarray([[-1, 0], [6, 0], [0, 4], [0, -1]], jnp.float32)
    assert not env.arena.inside(outside, params).any()


def test_a_move_onto_a_barred_cell_does_not_happen(masked):
    env, params = masked
    _, state = env.reset(jax.random.key(0), params)
    at = state.agent.replace(position=jnp.asarray([1.0, 0.0]))
    state = state.replace(agent=at)
    for action, there in ((0, (1, 0)), (1, (2, 0)), (2, (1, 0)), (3, (0, 0))):
        _, after, *_ = env.step(jax.random.key(0), state, action, params)
        np.testing.assert_array_equal(after.agent.position, there)
        assert after.step_count == 1
    np.testing.assert_array_equal(
        env.motion.mask(at, env.arena, params), [False, True, False, True]
    )


def test_starts_are_on_free_cells(masked):
    env, params = masked
    keys = jax.random.split(jax.random.key(1), 200)
    _, state = jax.vmap(env.reset, in_axes=(0, None))(keys, params)
    x, y = np.asarray(state.agent.position, int).T
    assert FREE[y, x].all()
    far = np.hypot(x - 3, y - 2) > 1.0
    assert far.all()
    allowed = FREE & (np.hypot(*(np.mgrid[:4, :6][::-1] - np.asarray([3, 2])[:, None, None])) > 1)
    assert len(set(zip(x, y, strict=True))) == allowed.sum()


@pytest.mark.parametrize(
    ("free", "message"), [(np.zeros((4, 6), bool), "free somewhere"), (FREE.T, "shape")]
)
def test_a_mask_that_cannot_be_is_refused(free, message):
    with pytest.raises(ValidationError, match=message):
        plumejax.make(
            "PlumeSearchLocal-v0",
            grid_size=GRID,
            arena=MaskedGrid(GRID),
            overrides={"arena.free": free, "ending.radius": 1.0},
        )


def end(arena, params, origin, target, at_wall="settle"):
    origin, target = jnp.asarray(origin, jnp.float32), jnp.asarray(target, jnp.float32)
    return np.asarray(RULES[at_wall](origin, target, arena, params))


@pytest.mark.parametrize("size", [(5,), (3, 4), (2, 3, 4)])
def test_an_open_grid_has_one_to_three_dimensions(local, size):
    arena, params = OpenGrid(size), local[1]
    arena.validate(params)
    wide = np.stack(np.meshgrid(*(np.arange(-1, n + 1) for n in size), indexing="ij"), -1)
    places = wide.reshape(-1, len(size)).astype(np.float32)
    expected = ((places >= 0) & (places < np.asarray(size))).all(-1)
    np.testing.assert_array_equal(arena.inside(jnp.asarray(places), params), expected)
    settled = jax.jit(jax.vmap(lambda p: arena.settle(p, p, params)))(places)
    np.testing.assert_array_equal(settled, np.clip(places, 0, np.asarray(size) - 1))


@pytest.mark.parametrize("size", [(), (3, 0), (2, 2, 2, 2), (2.0, 3)])
def test_a_grid_that_cannot_be_is_refused(local, size):
    with pytest.raises(ValidationError, match="grid_size"):
        OpenGrid(size).validate(local[1])


def test_a_periodic_grid_goes_round_in_each_dimension(local):
    arena, params = PeriodicGrid((6, 4)), local[1]
    for target, place in (((6, 3), (0, 3)), ((-1, 4), (5, 0)), ((13, -5), (1, 3))):
        for rule in RULES:
            np.testing.assert_array_equal(end(arena, params, (5, 3), target, rule), place)
    assert arena != OpenGrid((6, 4))


DRAWN = """
    #....
    ##..#
    ...#.
"""


def test_a_drawn_map_has_its_first_row_on_top():
    free = read_map(DRAWN)
    np.testing.assert_array_equal(
        free.astype(int), [[1, 1, 1, 0, 1], [0, 0, 1, 1, 0], [0, 1, 1, 1, 1]]
    )
    arena, numbers = from_map(DRAWN)
    assert arena == MaskedGrid((5, 3))
    np.testing.assert_array_equal(numbers.free, free)
    assert from_array(free)[0] == arena


@pytest.mark.parametrize("text", ["", "..\n...", ".x."])
def test_a_map_that_cannot_be_read_is_refused(text):
    with pytest.raises(ValidationError, match="map"):
        read_map(text)
    with pytest.raises(ValidationError, match=r"int64\[3\].*bool"):
        from_array(np.ones(3, np.int64))


@pytest.fixture(scope="module")
def box(local):
    """Params of a box of 0.3 x 0.2 m."""
    return local[1].replace(arena=BoxParams(np.zeros(2, np.float32), np.float32([0.3, 0.2])))


def test_an_open_box_stops_a_move_at_its_wall(box):
    arena = OpenBox(2)
    arena.validate(box)
    places = jnp.asarray([[0, 0], [0.3, 0.2], [0.1, 0.21], [-0.01, 0.1]], jnp.float32)
    np.testing.assert_array_equal(arena.inside(places, box), [True, True, False, False])
    start, target = (0.2, 0.1), (0.4, 0.15)
    wanted = {"settle": (0.3, 0.15), "stay": start, "slide": (0.2, 0.15), "end": start}
    for rule, place in wanted.items():
        np.testing.assert_allclose(end(arena, box, start, target, rule), place, rtol=1e-6)
        np.testing.assert_array_equal(
            end(arena, box, start, (0.25, 0.05), rule), np.float32([0.25, 0.05])
        )


def test_a_periodic_box_goes_round(box):
    arena = PeriodicBox(2)
    place = end(arena, box, (0.29, 0.01), (0.31, -0.01))
    np.testing.assert_allclose(place, (0.01, 0.19), atol=1e-6)
    tiny = end(arena, box, (0, 0), (-1e-12, 0.1))
    assert arena.inside(jnp.asarray(tiny)[None], box).all()


@pytest.mark.parametrize(
    ("low", "high", "message"),
    [
        ((0, 0), (1, 0), "arena.high"),
        ((0, np.nan), (1, 1), "arena.low"),
        ((0, 0), (1, 1, 1), "arena.high"),
    ],
)
def test_a_box_that_cannot_be_is_refused(local, low, high, message):
    params = local[1].replace(arena=BoxParams(np.float32(low), np.float32(high)))
    with pytest.raises(ValidationError, match=message):
        OpenBox(2).validate(params)


WALL = np.ones((4, 6), bool)
WALL[:, 3] = False
WALL[0, 3] = True  # a door in the lowest row
ORIGIN, SPACING = np.float32([10.0, 20.0]), np.float32([0.5, 2.0])


@pytest.fixture(scope="module")
def walled(local):
    """`(arena, params)` of a box with a wall of one cell across it, x in 11.25..11.75."""
    numbers = ObstacleBoxParams(WALL, ORIGIN, SPACING)
    motion = Velocity().default_params()
    return ObstacleBox((6, 4), samples=4), local[1].replace(arena=numbers, motion=motion)


def test_an_obstacle_box_is_indexed_by_the_nearest_centre(walled):
    arena, params = walled
    rng = np.random.default_rng(0)
    places = rng.uniform((9.5, 18.0), (13.5, 28.0), (300, 2)).astype(np.float32)
    x, y = np.round((places - ORIGIN) / SPACING).astype(int).T
    on = (x >= 0) & (x < 6) & (y >= 0) & (y < 4)
    expected = on & WALL[np.clip(y, 0, 3), np.clip(x, 0, 5)]
    assert 0 < expected.sum() < on.sum() < 300
    np.testing.assert_array_equal(arena.inside(jnp.asarray(places), params), expected)


def test_no_step_jumps_through_a_wall(walled):
    arena, params = walled
    rng = np.random.default_rng(1)
    n, reach = 2000, arena.samples * SPACING.min()
    origins = rng.uniform((9.8, 23.01), (11.2, 26.9), (n, 2))
    angle = rng.uniform(0, 2 * np.pi, n)
    targets = origins + reach * np.stack([np.cos(angle), np.sin(angle)], -1)

    @jax.jit
    @jax.vmap
    def step(origin, target):
        settled = [rule(origin, target, arena, params) for rule in RULES.values()]
        return arena.blocked(origin, target, params), jnp.stack(settled)

    origins, targets = np.float32(origins), np.float32(targets)
    barred, ends = map(np.asarray, step(origins, targets))
    # Rows above the door: the wall is whole there, and what is beyond it is out of reach.
    beyond = targets[:, 0] > 11.75
    assert beyond.sum() > 200
    assert np.asarray(arena.inside(jnp.asarray(targets[beyond]), params)).any()
    assert barred[beyond].all()
    assert (ends[..., 0] <= 11.2501).all()
    np.testing.assert_array_equal(
        ends[~barred], np.repeat(targets[~barred][:, None], len(RULES), 1)
    )
    # Settled on the way, at the last free one of the points that are looked at.
    part = np.einsum("nd,nd->n", ends[:, 0] - origins, targets - origins) / reach**2
    np.testing.assert_allclose(part * arena.samples, np.round(part * arena.samples), atol=1e-3)
    inside = np.asarray(arena.inside(jnp.asarray(ends[:, 0]), params))
    assert inside.all()
    # One point more, and it would have been in the wall.
    onward = origins + (np.round(part * arena.samples) + 1)[:, None] / arena.samples * (
        targets - origins
    )
    stopped = barred & (part > -1e-3)
    assert not np.asarray(arena.inside(jnp.asarray(onward[stopped]), params)).any()


def test_no_step_jumps_from_edge_to_edge_of_a_wall(walled):
    arena, params = walled
    # Looks at 11.25, 11.75, 12.25 and 12.75; the wall is from 11.25 to 11.75.
    assert end(arena, params, (10.75, 24.0), (12.75, 24.0))[0] == 10.75


def test_a_move_slides_along_an_obstacle(walled):
    arena, params = walled
    place = end(arena, params, (11.0, 23.0), (11.5, 23.5), "slide")
    np.testing.assert_array_equal(place, np.float32([11.0, 23.5]))
    np.testing.assert_array_equal(
        end(arena, params, (11.0, 23.0), (11.5, 23.5), "stay"), np.float32([11.0, 23.0])
    )


def test_an_obstacle_box_in_space_is_indexed_z_y_x(local):
    free = np.ones((2, 3, 4), bool)
    free[1, 0, 3] = False
    numbers = ObstacleBoxParams(free, np.zeros(3, np.float32), np.ones(3, np.float32))
    arena = ObstacleBox((4, 3, 2))
    params = local[1].replace(arena=numbers)
    arena.validate(params)
    places = jnp.asarray([[3, 0, 1], [3, 0, 0], [0, 0, 1], [3, 2, 1.4], [3, 2, 1.6]], jnp.float32)
    np.testing.assert_array_equal(arena.inside(places, params), [False, True, True, True, False])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"free": WALL.T}, "arena.free.shape"),
        ({"free": np.zeros_like(WALL)}, "free somewhere"),
        ({"spacing": np.float32([0.5, 0.0])}, "arena.spacing"),
        ({"origin": np.float32([0.5])}, "arena.origin"),
        ({"spacing": np.float32([0.24, 2.0])}, "arena.samples = 4.*>= 4.167.*no wall"),
    ],
)
def test_obstacles_that_cannot_be_are_refused(walled, change, message):
    arena, params = walled
    arena.validate(params)
    with pytest.raises(ValidationError, match=message):
        arena.validate(params.replace(arena=params.arena.replace(**change)))


def test_every_rule_is_one_that_a_motion_may_choose(local):
    for rule in RULES:
        Walking(at_wall=rule).validate(local[1])
    with pytest.raises(ValidationError, match="at_wall"):
        Walking(at_wall="bounce").validate(local[1])
