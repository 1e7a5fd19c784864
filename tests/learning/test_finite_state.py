"""tests/learning/test_finite_state: exact values, gradients, training, and rollouts that agree."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plumejax
from plumejax.base.errors import ValidationError
from plumejax.evaluation.episodes import play
from plumejax.learning import finite_state as fs
from plumejax.plumes.encounters import Isotropic, cosh
from plumejax.search.endings import Never
from plumejax.search.finite_memory_tasks import finite_memory_search
from plumejax.search.motion import Oriented

SIZE = (17, 12)


def small(**static):
    """`(env, params)` on 17 x 12 cells, the source at [3, 6]."""
    plume, numbers = cosh(grid_size=SIZE, **static)
    numbers = numbers.replace(source=np.asarray([3.0, 6.0], np.float32))
    return finite_memory_search(plume, numbers)


TASKS = {"cosh": small(), "bessel": small(law=Isotropic())}


@pytest.fixture(scope="module", params=TASKS)
def task(request):
    return TASKS[request.param]


@pytest.fixture(scope="module")
def search(task):
    return fs.problem(*task, gamma=0.97)


def densely(search, logits):
    """The value by a dense solve over all cells, each transition written down by hand."""
    height, width = search.hit.shape
    memories = len(logits)
    policy = np.exp(logits) / np.exp(logits).sum(axis=(2, 3), keepdims=True)
    size = height * width * memories

    def index(x, y, memory):
        return (memory * height + y) * width + x

    system, cost = np.eye(size), np.zeros(size)
    moves = ((-1, 0), (1, 0), (0, -1), (0, 1))
    for x, y, m in np.ndindex(width, height, memories):
        if np.hypot(x - 3, y - 6) <= 1.1:
            continue
        cost[index(x, y, m)] = 1 - search.gamma
        for hit, a, n in np.ndindex(2, 4, memories):
            there = (x + moves[a][0], y + moves[a][1])
            inside = 0 <= there[0] < width and 0 <= there[1] < height
            there = there if inside else (x, y)
            chance = search.hit[y, x] if hit else 1 - search.hit[y, x]
            system[index(x, y, m), index(*there, n)] -= search.gamma * chance * policy[m, hit, a, n]
    to_come = np.linalg.solve(system, cost).reshape(memories, height, width)
    return np.sum(search.start * to_come[0]), to_come


def test_the_problem_is_that_of_the_task(task, search):
    env, _ = task
    assert search.hit.shape == search.start.shape == search.found.shape == SIZE[::-1]
    assert search.found.sum() == 5  # within 1.1 cells
    assert search.found[6, 3]
    assert search.found[6, 4]
    assert not search.found[7, 4]
    np.testing.assert_allclose(search.start.sum(), 1)
    assert not search.start[:, :-1].any()
    expected = search.hit[:, -1] / search.hit[:, -1].sum()
    np.testing.assert_allclose(search.start[:, -1], expected, rtol=1e-5)
    assert search.after.shape == (4, *SIZE[::-1])
    assert [int(x) for x in search.after[:, 0, 0]] == [0, 1, 0, SIZE[0]]
    assert env.motion.dimensions == 2


def test_the_value_is_that_of_a_dense_solve(search):
    logits = fs.random_logits(jax.random.key(1), 2)
    value, to_come = densely(search, logits)
    found = fs.solve(search, logits)
    np.testing.assert_allclose(found.value, value, rtol=1e-10)
    np.testing.assert_allclose(found.cost, to_come, rtol=1e-8, atol=1e-12)
    # What is paid a step, times the discounted steps, is the value again.
    np.testing.assert_allclose((1 - search.gamma) * found.visits.sum(), value, rtol=1e-9)
    np.testing.assert_allclose(found.uses.sum(), found.visits.sum(), rtol=1e-9)


def test_the_gradient_is_that_of_finite_differences(search):
    logits = fs.random_logits(jax.random.key(2), 3)
    gradient = fs.solve(search, logits).gradient
    step = 1e-5
    rng = np.random.default_rng(0)
    for place in rng.integers(0, logits.shape, (20, 4)):
        moved = np.zeros_like(logits)
        moved[tuple(place)] = step
        difference = fs.solve(search, logits + moved).value - fs.solve(search, logits - moved).value
        np.testing.assert_allclose(gradient[tuple(place)], difference / 2 / step, atol=1e-9)


def test_the_natural_gradient_solves_the_fisher_system(search):
    logits = fs.random_logits(jax.random.key(3), 2)
    found, policy = fs.solve(search, logits), fs.softmax(logits)
    for memory, hit in np.ndindex(2, 2):
        p = policy[memory, hit].ravel()
        fisher = found.uses[memory, hit] * (np.diag(p) - np.outer(p, p))
        product = fisher @ found.natural[memory, hit].ravel()
        np.testing.assert_allclose(product, found.gradient[memory, hit].ravel(), atol=1e-12)


def test_other_names_for_the_memory_states_leave_the_value(search):
    logits = fs.random_logits(jax.random.key(4), 3)
    names = [0, 2, 1]  # state 0 is where it begins
    renamed = logits[names][..., names]
    assert not np.allclose(renamed, logits)
    np.testing.assert_allclose(
        fs.solve(search, renamed).value, fs.solve(search, logits).value, rtol=1e-12
    )


def test_a_twin_of_a_state_leaves_the_value_until_it_is_disturbed(search):
    logits = fs.random_logits(jax.random.key(5), 2)
    value = fs.solve(search, logits).value
    grown = fs.split(logits, 1)
    assert grown.shape == (3, 2, 4, 3)
    np.testing.assert_allclose(fs.solve(search, grown).value, value, rtol=1e-12)
    apart = fs.disturbed(jax.random.key(0), grown)
    np.testing.assert_allclose(fs.softmax(apart).sum(axis=(2, 3)), 1)
    assert abs(fs.solve(search, apart).value - value) > 1e-4


def test_a_halved_search_is_nearly_the_same(search):
    half = fs.halved(search)
    assert half.hit.shape == half.start.shape == half.found.shape == (6, 9)
    assert half.gamma == pytest.approx(0.97**2)
    np.testing.assert_array_equal(half.hit, search.hit[::2, ::2])
    assert [half.found[y, x] for y, x in ((3, 1), (3, 2), (2, 1), (2, 2))] == [True] * 3 + [False]
    assert not half.start[:, :-1].any()
    np.testing.assert_allclose(half.start.sum(), 1)
    # One step left, right, down and up, walls included.
    y, x = np.divmod(np.arange(54).reshape(6, 9), 9)
    ways = ((-1, 0), (1, 0), (0, -1), (0, 1))
    for after, (dx, dy) in zip(half.after, ways, strict=True):
        there = np.clip(y + dy, 0, 5) * 9 + np.clip(x + dx, 0, 8)
        np.testing.assert_array_equal(after, there)
    logits = fs.random_logits(jax.random.key(11), 2)
    whole, wide = (fs.solve(p, logits).value for p in (search, half))
    assert wide == pytest.approx(whole, abs=0.15)


def test_training_goes_down_and_goes_on_where_it_stopped(search):
    start = fs.begin(search, fs.random_logits(jax.random.key(6), 2))
    seen = []
    whole = fs.train(search, start, 30, progress=lambda at: seen.append(float(at.value)))
    assert len(seen) == 30
    assert whole.iterations == 31
    assert (np.diff(seen) <= 0).all()
    assert whole.value < 0.9 * start.value
    np.testing.assert_allclose(fs.solve(search, whole.logits).value, whole.value, rtol=1e-12)
    parts = fs.train(search, fs.train(search, start, 13), 17)
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_array_equal(one, other)


def test_rollouts_cost_what_the_exact_value_says(task, search):
    env, params = task
    logits = fs.train(search, fs.begin(search, fs.random_logits(jax.random.key(7), 2)), 10).logits
    value = fs.solve(search, logits).value
    policy = fs.FiniteStateController(jnp.asarray(logits, jnp.float32))
    params = params.replace(max_steps=np.int32(300))  # 0.97^300 is 1e-4
    outcomes = play(env, policy, jax.random.key(8), params, 1024)
    cost = 1 - np.where(outcomes.found, search.gamma ** np.asarray(outcomes.steps), 0.0)
    error = cost.std() / np.sqrt(len(cost))
    assert 0.1 < value < 0.95
    assert error < 0.02
    assert abs(cost.mean() - value) < 3 * error + 1e-4


@pytest.mark.long
@pytest.mark.parametrize("name", ["Cosh", "Bessel"])
def test_on_the_whole_map_rollouts_cost_what_the_exact_value_says(name):
    env, params = plumejax.make(f"FiniteMemory-{name}-v0")
    params = params.replace(max_steps=np.int32(5000))
    search = fs.problem(env, params, gamma=0.999)
    logits = fs.train(search, fs.begin(search, fs.random_logits(jax.random.key(1), 2)), 40).logits
    value = fs.solve(search, logits).value
    policy = fs.FiniteStateController(jnp.asarray(logits, jnp.float32))
    outcomes = play(env, policy, jax.random.key(0), params, 400)
    cost = 1 - np.where(outcomes.found, search.gamma ** np.asarray(outcomes.steps), 0.0)
    cut_off = search.gamma ** int(params.max_steps) * np.mean(~np.asarray(outcomes.found))
    error = cost.std() / np.sqrt(len(cost))
    assert abs(cost.mean() - value) < 3 * error + cut_off


def test_the_controller_draws_from_its_table():
    policy = fs.FiniteStateController(
        jnp.asarray(fs.random_logits(jax.random.key(9), 3), jnp.float32)
    )
    keys = jax.random.split(jax.random.key(10), 20_000)
    act = jax.vmap(policy.act, (0, None, None))
    assert int(policy.init(keys[0])) == 0
    for memory, hit in ((0, 0.0), (2, 1.0)):
        action, after = act(keys, jnp.int32(memory), jnp.asarray([hit], jnp.float32))
        drawn = np.zeros((4, 3))
        np.add.at(drawn, (np.asarray(action), np.asarray(after)), 1 / len(keys))
        p = fs.softmax(np.asarray(policy.logits))[memory, int(hit)]
        assert np.all(np.abs(drawn - p) < 4.5 * np.sqrt(p * (1 - p) / len(keys)))


def test_what_is_no_such_search_is_refused(task):
    env, params = task
    with pytest.raises(ValidationError, match="gamma = 1"):
        fs.problem(env, params, gamma=1.0)
    with pytest.raises(ValidationError, match="motion"):
        fs.problem(replace(env, motion=Oriented()), params)
    with pytest.raises(ValidationError, match="ending"):
        fs.problem(replace(env, ending=Never()), params)
