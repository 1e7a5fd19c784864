"""tests/search/test_obstacle_tasks: rooms with doors, and a drone in recorded gas."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import k0

import plumejax
from plumejax.base.errors import ValidationError
from plumejax.plumes.diffusion import lost, steady_field
from plumejax.plumes.filament_recordings import read_filaments
from plumejax.search.obstacle_tasks import distances
from plumejax.testing import check_task

SOURCE = (0.9, 0.7, 0.5)
"""Of the made-up recording (`tests/conftest.py`)."""


def test_odour_in_a_corridor_falls_exponentially():
    free, reach = np.ones((1, 200), bool), 5.0
    field = steady_field(free, (0, 0), reach)[0]
    # On cells the rate is exactly acosh(1 + 1 / (2 L^2)), which is 1 / L for long reaches.
    rate = np.arccosh(1 + 1 / (2 * reach**2))
    assert rate == pytest.approx(1 / reach, rel=0.002)
    np.testing.assert_allclose(field[:100], np.exp(-rate * np.arange(100)), rtol=1e-9)


def test_odour_in_the_open_is_a_bessel_function():
    n, reach = 101, 6.0
    field = steady_field(np.ones((n, n), bool), (50, 50), reach)
    y, x = np.mgrid[-50:51, -50:51]
    r = np.hypot(x, y)
    ring = (r >= 4) & (r <= 18)
    ratio = field[ring] / k0(r[ring] / reach)
    np.testing.assert_allclose(ratio / ratio.mean(), 1, atol=0.03)


@pytest.fixture(scope="module")
def rooms():
    return plumejax.make("Obstacles-v0")


def test_odour_goes_round_the_walls(rooms):
    _, params = rooms
    free, field = np.asarray(params.arena.free), np.asarray(params.plume.frames[0], float)
    assert np.all(field[~free] == 0)
    x, y = params.plume.source.astype(int)
    exact = steady_field(free, (x, y), 6.0)
    left = lost(exact, free, 6.0)
    left[y, x] = 0
    assert np.max(np.abs(left)[free] / exact[free]) < 1e-9
    # It rises from everywhere: whoever climbs it gets to the source through the doors.
    wide = np.pad(field, 1)
    beside = [wide[:-2, 1:-1], wide[2:, 1:-1], wide[1:-1, :-2], wide[1:-1, 2:]]
    assert np.argwhere(free & (field >= np.max(beside, axis=0))).tolist() == [[y, x]]


def test_searches_start_many_moves_away_and_climbing_finds_the_source(rooms):
    env, params = rooms
    x, y = params.plume.source.astype(int)
    moves = distances(np.asarray(params.arena.free), (x, y))
    column, row = params.start.positions.astype(int).T
    assert moves[row, column].min() == 20
    assert len(row) == np.sum(np.isfinite(moves) & (moves >= 20))
    field = jnp.asarray(np.pad(params.plume.frames[0], 1))

    @jax.jit
    def climb(key):
        _, state = env.reset(key, params)
        begun = state.agent.position

        def step(state, _):
            i, j = jnp.round(state.agent.position).astype(jnp.int32) + 1
            around = jnp.stack([field[j + 1, i], field[j, i + 1], field[j - 1, i], field[j, i - 1]])
            seen, state, *_ = env.step(key, state, jnp.argmax(around).astype(jnp.int32), params)
            return state, seen

        state, seen = jax.lax.scan(step, state, length=60)
        return begun, state.found, seen, state.step_count

    for seed in range(4):
        begun, found, seen, count = climb(jax.random.key(seed))
        assert found
        i, j = np.asarray(begun).astype(int)
        assert int(count) == moves[j, i] - 1  # found one cell from it
        assert np.all((seen >= 0) & (seen <= 1))
        assert np.all(np.diff(seen[: int(count), 0]) > 0)


@pytest.mark.parametrize(
    ("choice", "name"),
    [
        ({"source": (0, 0)}, "source"),
        ({"source": (40, 3)}, "source"),
        ({"source": (4.5, 27)}, "source"),
        ({"reach": 0.0}, "reach"),
        ({"min_distance": 99}, "min_distance"),
        ({"rooms": "#.x"}, "map"),
    ],
)
def test_rooms_that_cannot_be_are_refused(choice, name):
    with pytest.raises(ValidationError, match=f"^{name}"):
        plumejax.make("Obstacles-v0", **choice)


@pytest.fixture(scope="module")
def drone(recording):
    return plumejax.make(
        "Recorded-Drone-v0",
        data=recording,
        source=SOURCE,
        frames=(1, 5),
        overrides={"ending.radius": 0.3, "start.min_distance": 0.4},
    )


def test_the_drone_smells_what_the_filaments_say(drone, recording):
    env, params = drone
    read = read_filaments(recording, SOURCE)
    pictures = read.slice(range(1, 6))
    width, height = read.grid_size
    y, x = np.divmod(np.arange(width * height), width)
    places = np.stack([0.2 * (x + 0.5), 0.2 * (y + 0.5), np.full(x.shape, 0.5)], axis=-1)
    sample = jax.jit(lambda t: env.plume.sample(t, jnp.asarray(places, jnp.float32), params.plume))
    for frame in range(5):
        smelt = sample(jnp.int32(frame)).concentration.reshape(height, width)
        np.testing.assert_allclose(smelt, pictures[frame], rtol=2e-4, atol=1e-6)
    assert int(env.plume.advance(None, jnp.int32(4), params.plume)) == 0


def test_the_drone_flies_in_the_room_and_is_told_how(drone):
    env, params = drone
    keys = jax.random.split(jax.random.key(0), 16)

    @jax.jit
    @jax.vmap
    def fly(key):
        first, state = env.reset(key, params)
        push = jnp.asarray([1.0, 0.0, -1.0], jnp.float32)
        seen, after, *_ = env.step(key, state, push, params)
        return first, state, seen, after

    first, state, seen, after = fly(keys)
    begun = np.asarray(state.agent.position)
    assert np.all(np.linalg.norm(begun - np.asarray(SOURCE), axis=1) >= 0.4)
    free = jax.vmap(lambda p: env.arena.inside(p[None], params)[0])
    assert free(state.agent.position).all()
    assert free(after.agent.position).all()
    assert np.all(begun[:, 0] >= 0.2)  # the first cells along x are a wall
    np.testing.assert_array_equal(first[:, 1:4], 0)
    np.testing.assert_allclose(seen[:, 1:4], after.agent.motion.velocity)
    np.testing.assert_allclose(seen[:, 4:], after.agent.position)
    # Half a second of 1 m/s^2 against a drag of 1/s, where no wall is in the way.
    clear = ~np.asarray(after.agent.motion.touched)
    speed = 1 - np.exp(-0.5)
    expected = np.tile([speed, 0, -speed], (clear.sum(), 1))
    assert clear.any()
    np.testing.assert_allclose(seen[clear, 1:4], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.long
@pytest.mark.parametrize("task", ["rooms", "drone"])
def test_tasks_conform(task, request):
    check_task(*request.getfixturevalue(task), steps=4)
