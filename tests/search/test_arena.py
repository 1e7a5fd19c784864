"""tests/search/test_arena: what a wall does on an open grid and on a masked one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plumejax
from plumejax.base.errors import ValidationError
from plumejax.search.arena import MaskedGrid, OpenGrid

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
