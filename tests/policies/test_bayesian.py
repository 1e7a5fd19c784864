"""tests/policies/test_bayesian: decisions against a direct computation, and published ones."""

import json
from functools import partial
from itertools import product
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import k0
from scipy.stats import poisson

import plumejax
from plumejax.base.compiling import jit_by_class
from plumejax.base.errors import ValidationError
from plumejax.evaluation.episodes import stream
from plumejax.plumes.encounters import EncounterPlume, Windy, cosh
from plumejax.policies.bayesian import POLICIES
from plumejax.policies.searchers import Searcher
from plumejax.search.encounter_tasks import encounter_search, isotropic_search
from plumejax.search.motion import Moves

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "infotaxis.json").read_text())

KEY = jax.random.key(0)


def isotropic_rate(offset, L, I):  # noqa: E741
    d = np.maximum(np.sqrt((offset**2).sum(0)), 1)
    n = len(offset)
    if n == 1:
        return I * 2 * L / (2 * L - 1) * np.exp(-d / L)
    return I / np.log(2 * L) * k0(d / L) if n == 2 else I / (2 * d) * np.exp(-d / L)


def windy_rate(offset, R):
    d = np.maximum(np.sqrt((offset**2).sum(0)), 1)
    decay = np.sqrt((150 / 4) / (1 + 150 / 4))
    return R / d * np.exp(offset[0] - d / decay)


def cosh_rate(offset):
    x, y = offset
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        return np.where(x > 0, np.cosh(y / (np.float64(np.float32(0.2)) * x)) ** -2.0, 0.0)


class Direct:
    """Everything by the definitions, one posterior after another, float64.

    `rate` of float[d, ...] agent minus source; `law(h, mu)` of each count.
    """

    def __init__(self, size, rate, categories, bernoulli=False):
        self.size, self.rate, self.categories = size, rate, categories
        self.bernoulli = bernoulli
        self.cells = np.indices(size).astype(float)
        self.moves = [
            s * np.eye(len(size), dtype=int)[axis] for axis in range(len(size)) for s in (-1, 1)
        ]

    def likelihood(self, h, x):
        offset = np.reshape(x, (-1, *(1,) * len(self.size))) - self.cells
        mu = self.rate(offset)
        if self.bernoulli:
            law = mu if h == 1 else 1 - mu
        elif h == self.categories - 1:
            law = poisson.sf(h - 1, mu)
        else:
            law = poisson.pmf(h, mu)
        return np.where(np.abs(offset).max(0) < 0.5, 0.0, law)

    def believe(self, belief, x, h):
        joint = belief * self.likelihood(h, x)
        return joint / joint.sum()

    def begin(self, x, h):
        return self.believe(np.ones(self.size), x, h)

    def moved(self, x, a):
        return np.clip(x + self.moves[a], 0, np.asarray(self.size) - 1)

    def after(self, belief, x, a):
        """`(p_end, [(q, posterior) of each count])`."""
        there = self.moved(x, a)
        p_end = belief[tuple(there)]
        missed = belief.copy()
        missed[tuple(there)] = 0
        joints = [missed * self.likelihood(h, there) for h in range(self.categories)]
        q = [joint.sum() / missed.sum() for joint in joints]
        return p_end, [(a, j / j.sum()) for a, j in zip(q, joints, strict=True) if j.sum() > 0]

    def expected(self, belief, x, value):
        """float[2d]: of `value(posterior, place)`, 0 if found."""
        costs = []
        for a in range(len(self.moves)):
            p_end, each = self.after(belief, x, a)
            there = self.moved(x, a)
            costs.append((1 - p_end) * sum(q * value(p, there) for q, p in each))
        return np.asarray(costs)

    def away(self, x):
        return np.abs(np.reshape(x, (-1, *(1,) * len(self.size))) - self.cells).sum(0)

    def entropies(self, belief, x, cutoff=0.0):
        return self.expected(belief, x, lambda p, x: bits(p, cutoff))

    def space_aware(self, belief, x, shift=-0.5, alpha=0.5, cutoff=0.0):
        def worth(p, x):
            distance, unsure = (p * self.away(x)).sum(), 2 ** (bits(p, cutoff) - 1)
            return np.log2(2 * (alpha * distance + (1 - alpha) * unsure) + shift)

        return self.expected(belief, x, worth)


def bits(p, cutoff=0.0):
    p = p[p > cutoff]
    return -(p * np.log2(p)).sum()


def small_isotropic(size, L, I, dimensions):  # noqa: E741
    return isotropic_search(size, L, I, dimensions, 100)


def small_windy():
    plume = EncounterPlume(Windy(), (23, 11))
    return encounter_search(plume, plume.default_params(), np.ones(1), np.asarray([18, 4]), 100)


def small_cosh():
    plume, numbers = cosh(grid_size=(23, 11))
    numbers = numbers.replace(source=np.asarray([5.0, 5.0], np.float32))
    return encounter_search(plume, numbers, np.ones(1), np.asarray([18, 4]), 100)


CASES = {
    "line L2": (
        partial(plumejax.make, "Olfactory-Isotropic-1D-v0"),
        partial(isotropic_rate, L=2, I=2),
    ),
    "19x19": (
        partial(plumejax.make, "Olfactory-Isotropic-19x19-v0"),
        partial(isotropic_rate, L=1, I=1),
    ),
    "plane L2.5 I3": (
        partial(small_isotropic, 11, 2.5, 3.0, 2),
        partial(isotropic_rate, L=2.5, I=3),
    ),
    "space L2 I4": (partial(small_isotropic, 7, 2.0, 4.0, 3), partial(isotropic_rate, L=2, I=4)),
    "wind": (small_windy, partial(windy_rate, R=2.5)),
    "cosh": (small_cosh, cosh_rate),
}


@pytest.fixture
def x64():
    with jax.enable_x64(True):
        yield


@jax.jit
def all_costs(policies, belief, position):
    """Of a list or dict of policies."""
    return jax.tree.map(
        lambda policy: policy.costs(belief, position),
        policies,
        is_leaf=lambda x: isinstance(x, Searcher),
    )


@jax.jit
def first_belief(policy, observation):
    return policy.believe(policy.init(KEY), observation)


@jax.jit
def predictions(policy, belief, position):
    actions = jnp.arange(2 * len(policy.grid_size), dtype=jnp.int32)
    return jax.vmap(policy.predict, (None, None, 0))(belief, position, actions)


def costly(env, params, dtype="float64"):
    """The policies that weigh moves by `costs`, and variants."""
    make = {name: partial(factory, env, params, dtype=dtype) for name, factory in POLICIES.items()}
    names = ("infotaxis", "greedy-belief", "mean-distance", "voting", "qmdp")
    aware = make["space-aware-infotaxis"]
    return {name: make[name]() for name in names} | {
        "aware": aware(),
        "aware+": aware(shift=0.5),
        "aware 0.8": aware(shift=0.5, alpha=0.8),
        "cut": make["infotaxis"](cutoff=1e-3),
        "aware 0.8 cut": aware(shift=0.5, alpha=0.8, cutoff=1e-3),
        "two steps": make["k-step-infotaxis"](steps=2),
    }


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_costs_are_those_of_the_definitions(x64, case):
    """For every first count, and again two moves on, one of them against a wall."""
    make, rate = CASES[case]
    env, params = make()
    policies = costly(env, params)
    informed = policies["infotaxis"]
    size = informed.grid_size
    direct = Direct(size, rate, informed.categories, bernoulli=case == "cosh")
    start = np.asarray(params.start.position, int)
    corner = np.asarray([n - 1 for n in size])
    for h in range(1, informed.categories):
        belief = direct.begin(start, h)
        seen = first_belief(informed, np.asarray([h, *start], np.float32))
        np.testing.assert_allclose(seen, belief, atol=1e-14)
        for x, p in ((start, belief), (corner, direct.believe(belief, corner, 0))):
            _agrees(direct, policies, p, x)


def _agrees(direct, policies, p, x):
    close = partial(np.testing.assert_allclose, rtol=1e-10, atol=1e-11)
    costs = all_costs(policies, p, x.astype(np.int32))
    close(bits(p) + costs["infotaxis"], direct.entropies(p, x))
    close(costs["aware"], direct.space_aware(p, x))
    close(costs["aware+"], direct.space_aware(p, x, 0.5))
    close(costs["aware 0.8"], direct.space_aware(p, x, 0.5, 0.8))
    close(bits(p, 1e-3) + costs["cut"], direct.entropies(p, x, 1e-3))
    close(costs["aware 0.8 cut"], direct.space_aware(p, x, 0.5, 0.8, 1e-3))
    if len(direct.size) < 3 and direct.size[0] < 30:
        two = direct.expected(p, x, lambda p, x: direct.entropies(p, x).min())
        close(bits(p) + costs["two steps"], two)
    p_end = np.asarray([direct.after(p, x, a)[0] for a in range(len(direct.moves))])
    close(costs["greedy-belief"], -p_end / (p_end.max() or 1.0))
    away = np.stack([direct.away(direct.moved(x, a)) for a in range(len(direct.moves))])
    axes = tuple(range(1, away.ndim))
    close(costs["mean-distance"], (p * (away - direct.away(x))).sum(axes))
    value = (p * (0.99**away - 0.99 ** direct.away(x))).sum(axes)
    close(costs["qmdp"], -value / 0.01)
    best = (away == away.min(0)) & (away < direct.away(x))
    close(costs["voting"], -(p * best / np.maximum(best.sum(0), 1)).sum(axes))
    found, q = predictions(policies["infotaxis"], p, x.astype(np.int32))
    blocked = [np.array_equal(direct.moved(x, a), x) for a in range(len(direct.moves))]
    close(found, np.where(blocked, 0, p_end))
    law = [
        [(p * direct.likelihood(h, direct.moved(x, a))).sum() for h in range(direct.categories)]
        for a in range(len(direct.moves))
    ]
    close(q, np.asarray(law) / np.sum(law, axis=1, keepdims=True))


PUBLISHED = {
    "Olfactory-Isotropic-1D-v0": partial(isotropic_rate, L=2, I=2),
    "Olfactory-Isotropic-19x19-v0": partial(isotropic_rate, L=1, I=1),
    "Olfactory-Isotropic-53x53-v0": partial(isotropic_rate, L=3, I=2),
    "Olfactory-Windy-Medium-v0": partial(windy_rate, R=2.5),
}


def smallest_plain(tasks):
    """The tasks as parameters, of which the larger ones are slow."""
    slow = ("53x53", "Windy")
    marks = {task: [pytest.mark.slow] if any(s in task for s in slow) else [] for task in tasks}
    return [pytest.param(task, marks=mark) for task, mark in marks.items()]


@pytest.mark.parametrize("task", smallest_plain(PUBLISHED))
def test_first_decisions_are_the_published_ones(x64, task):
    """Those are after a first count of 1, cells below 1e-10 left out; the rest by definition."""
    golden = GOLDEN["first"][task]
    env, params = plumejax.make(task)
    start = np.asarray(params.start.position, np.int32)
    policies = {
        (name, cutoff): POLICIES[name](env, params, dtype="float64", cutoff=cutoff)
        for name in ("infotaxis", "space-aware-infotaxis")
        for cutoff in (0.0, 1e-10)
    }
    informed = policies["infotaxis", 0.0]
    direct = Direct(informed.grid_size, PUBLISHED[task], informed.categories)
    close = partial(np.testing.assert_allclose, rtol=0, atol=1e-9)
    for h in range(1, informed.categories):
        belief = first_belief(informed, np.asarray([h, *start], np.float32))
        costs = dict(zip(policies, all_costs(list(policies.values()), belief, start), strict=True))
        if h == 1:
            close(-costs["infotaxis", 1e-10], golden["gain"])
            close(costs["space-aware-infotaxis", 1e-10], golden["space_aware"])
        p = direct.begin(start, h)
        for cutoff in (0.0, 1e-10):
            gains = bits(p, cutoff) - direct.entropies(p, start, cutoff)
            close(-costs["infotaxis", cutoff], gains)
            aware = direct.space_aware(p, start, cutoff=cutoff)
            close(costs["space-aware-infotaxis", cutoff], aware)


@jax.jit
def without_hits(policy, start):
    """Actions int32[40], the end, and the probability that the source is still not found."""

    def one(carry, _):
        memory, position, hits, missed = carry
        seen = jnp.concatenate([hits[None], position]).astype(jnp.float32)
        action, memory = policy.act(KEY, memory, seen)
        p_end, _ = policy.predict(memory.belief, position, action)
        carry = memory, policy.moved(position, action), jnp.zeros_like(hits), missed * (1 - p_end)
        return carry, action

    one_hit = jnp.ones((), jnp.int32), jnp.ones((), policy.model.likelihood.dtype)
    (_, end, _, missed), actions = jax.lax.scan(one, (policy.init(KEY), start, *one_hit), None, 40)
    return actions, end, missed


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("task", smallest_plain(GOLDEN["no_hits"]))
def test_runs_without_hits_are_the_published_ones(x64, task, dtype):
    golden = GOLDEN["no_hits"][task]
    env, params = plumejax.make(task)
    policy = POLICIES["infotaxis"](env, params, dtype=dtype)
    start = np.asarray(params.start.position, np.int32)
    actions, end, missed = without_hits(policy, start)
    assert "".join(map(str, np.asarray(actions))) == golden["actions"]
    assert end.tolist() == golden["end"]
    places = golden["digits"] if dtype == "float64" else 6
    assert abs(float(missed) - golden["not_found"]) < 0.51 * 10.0**-places


@pytest.mark.slow
def test_single_precision_costs_what_double_does(x64):
    env, params = plumejax.make("Olfactory-Isotropic-19x19-v0")
    start = np.asarray(params.start.position, np.int32)
    exact, single = (costly(env, params, dtype) for dtype in ("float64", "float32"))
    belief = first_belief(exact["infotaxis"], np.asarray([1, *start], np.float32))
    two, one = all_costs(exact, belief, start), all_costs(single, belief.astype("float32"), start)
    for name, costs in two.items():
        assert one[name].dtype == np.float32
        np.testing.assert_allclose(one[name], costs, rtol=2e-6, atol=2e-6, err_msg=name)


@pytest.fixture(scope="module")
def plane():
    return small_isotropic(11, 2.5, 3.0, 2)


def at(hits, *place):
    return np.asarray([hits, *place], np.float32)


def test_ties_are_first_or_drawn_and_walls_may_be_masked(plane):
    first = POLICIES["infotaxis"](*plane)
    drawn = POLICIES["infotaxis"](*plane, ties="random")
    keys = jax.random.split(KEY, 400)
    act = jax.jit(
        jax.vmap(
            lambda policy, key, seen: policy.act(key, policy.init(key), seen)[0], (None, 0, None)
        )
    )
    assert set(np.asarray(act(first, keys, at(1, 5, 5)))) == {0}
    counts = np.bincount(act(drawn, keys, at(1, 5, 5)), minlength=4)
    assert np.all(np.abs(counts - 100) < 45)
    # In a corner two moves lead off the grid.
    masked = POLICIES["infotaxis"](*plane, ties="random", walls="masked", tolerance=100.0)
    assert set(np.asarray(act(masked, keys, at(1, 0, 0)))) == {1, 3}
    free = POLICIES["infotaxis"](*plane, ties="random", tolerance=100.0)
    assert set(np.asarray(act(free, keys, at(1, 0, 0)))) == {0, 1, 2, 3}


def test_targets(plane):
    """The most likely cell, that of most probability over distance, and draws that persist."""
    likely, near = (POLICIES[n](*plane) for n in ("most-likely-state", "p-over-d"))
    memory = likely.init(KEY)
    far = memory.replace(belief=jnp.zeros((11, 11)).at[0, 5].set(0.3).at[5, 6].set(0.7))

    @jit_by_class()
    def step(policy, memory, seen):
        return policy.act(KEY, memory, seen)[0]

    seen = at(0, 5, 5)
    belief = np.asarray(likely.believe(far, seen))
    assert belief[5, 6] < belief[0, 5] < 3 * belief[5, 6]
    assert step(likely, far, seen) == 0
    assert step(near, far, seen) == 3


@pytest.mark.slow
def test_thompson_draws_from_the_belief_and_persists(plane):
    policy = POLICIES["thompson"](*plane, persistence=3)
    keys = jax.random.split(KEY, 1000)
    begin = policy.init(KEY)
    begin = begin.replace(belief=jnp.zeros((11, 11)).at[0, 5].set(0.5).at[10, 5].set(0.5))
    seen = at(0, 5, 5)
    act = jax.jit(jax.vmap(policy.act, (0, None, None)))
    actions, memory = act(keys, begin, seen)
    share = np.mean(np.asarray(actions) == 0)
    assert abs(share - 0.5) < 0.05
    np.testing.assert_array_equal(memory.target[:, 0], np.where(np.asarray(actions) == 0, 0, 10))
    one = jax.tree.map(lambda x: x[0], memory)
    for left in (1, 0):
        _, memory = act(keys, one, seen)
        assert np.all(memory.target == one.target[None])
        assert np.all(memory.left == left)
        one = jax.tree.map(lambda x: x[0], memory)
    _, memory = act(keys, one, seen)
    assert len(np.unique(memory.target[:, 0])) == 2
    # Who is there and has not found it draws another.
    there = one.replace(left=jnp.int32(2), target=jnp.asarray([5, 5], jnp.int32))
    _, memory = act(keys, there, seen)
    assert np.all(memory.target[:, 0] != 5)


def test_what_cannot_be_changes_nothing():
    env, params = small_cosh()
    policy = POLICIES["infotaxis"](env, params)
    memory = policy.init(KEY)
    # A hit that far upwind of every cell there may be.
    one_cell = memory.replace(belief=jnp.zeros((23, 11)).at[20, 5].set(1.0))
    assert np.array_equal(policy.believe(one_cell, at(1, 2, 5)), one_cell.belief)
    p_end, q = policy.predict(one_cell.belief, jnp.asarray([19, 5], jnp.int32), jnp.int32(1))
    assert p_end == 1
    assert np.sum(q) == 1


def test_the_agent_may_be_wrong(plane):
    env, params = plane
    told = POLICIES["infotaxis"](env, params, rate=1.5, wavelength=2.0)
    law = params.plume.law.replace(rate=np.float32(1.5), wavelength=np.float32(2.0))
    right = POLICIES["infotaxis"](env, params.replace(plume=params.plume.replace(law=law)))
    np.testing.assert_array_equal(told.model.likelihood, right.model.likelihood)
    with pytest.raises(ValidationError, match="width"):
        POLICIES["infotaxis"](env, params, width=0.3)
    with pytest.raises(ValidationError, match="wavelength"):
        POLICIES["voting"](env, params, wavelength=0.5)


def test_what_does_not_fit_is_refused(plane):
    env, params = plane
    for name, bad in product(
        POLICIES, ({"ties": "last"}, {"walls": "soft"}, {"dtype": "float64"}, {"tolerance": -1})
    ):
        with pytest.raises(ValidationError, match=next(iter(bad))):
            POLICIES[name](env, params, **bad)
    for name, bad in (
        ("k-step-infotaxis", {"steps": 0}),
        ("space-aware-infotaxis", {"alpha": 2.0}),
        ("space-aware-infotaxis", {"shift": 1.0}),
        ("infotaxis", {"cutoff": -1e-10}),
        ("thompson", {"persistence": 0}),
        ("qmdp", {"gamma": 1.0}),
    ):
        with pytest.raises(ValidationError, match=next(iter(bad))):
            POLICIES[name](env, params, **bad)
    with pytest.raises(ValidationError, match=r"env\.sensor"):
        POLICIES["infotaxis"](*plumejax.make("PlumeSearchLocal-v0"))
    with pytest.raises(ValidationError, match=r"env\.motion"):
        POLICIES["infotaxis"](*isotropic_search(11, 2.5, 3.0, 2, 100, motion=Moves()))
    faster = params.replace(motion=params.motion.replace(step=np.float32(2)))
    with pytest.raises(ValidationError, match=r"motion\.step"):
        POLICIES["infotaxis"](env, faster)


@pytest.mark.long
@pytest.mark.parametrize("task", ["Olfactory-Isotropic-1D-v0", "Olfactory-Isotropic-19x19-v0"])
def test_mean_arrival_times_are_the_published_ones(task):
    mean, error = GOLDEN["arrival"][task]
    env, params = plumejax.make(task)
    outcomes = stream(env, POLICIES["infotaxis"](env, params), KEY, params, 20_000)
    steps = outcomes.steps[outcomes.found]
    own = steps.std() / np.sqrt(len(steps))
    assert outcomes.found.mean() > 0.99
    assert abs(steps.mean() - mean) < 3 * np.hypot(own, error)
