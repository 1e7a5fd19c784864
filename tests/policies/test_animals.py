"""tests/policies/test_animals: rates, speeds and successes of the animals against their models'."""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plumejax
from plumejax.plumes.interface import Air
from plumejax.policies.animals import alvarez_salvado, silkmoth
from plumejax.policies.whiff_flies import demir, jayaram

DT = 0.02
OPTIMISED = {"xla_backend_optimization_level": 3, "xla_cpu_use_fusion_emitters": True}


def test_on_and_off_are_solved_exactly_for_what_came_in_before(arena, drive):
    odours = np.random.default_rng(0).random(400) * (np.arange(400) % 100 < 60)
    filters = drive(
        alvarez_salvado(*arena), odours, 1, jax.random.key(0), lambda a, memory: memory.filters
    )
    adapted_on = adapted_off = on = fast = slow = 0.0
    for t, c in enumerate(odours):
        seen = c / (c + 0.01 + adapted_off)
        on += (c / (c + 0.01 + adapted_on) - on) * -np.expm1(-1 / 36)
        fast += (seen - fast) * -np.expm1(-1 / 31)
        slow += (seen - slow) * -np.expm1(-1 / 242)
        adapted_on += (c - adapted_on) * -np.expm1(-1 / 490)
        adapted_off += (c - adapted_off) * -np.expm1(-1 / 504)
        want = [adapted_on, on, adapted_off, fast, slow]
        np.testing.assert_allclose([x[0, t, 0] for x in jax.tree.leaves(filters)], want, rtol=2e-4)


def test_a_fly_turns_and_walks_as_on_and_off_say(arena, drive):
    lanes, odours = 1000, [1.0] * 60 + [0.0] * 60
    seen = drive(
        alvarez_salvado(*arena),
        odours,
        lanes,
        jax.random.key(1),
        lambda a, m: (a, m.filters.on[0], jnp.maximum(m.filters.slow - m.filters.fast, 0.0)[0]),
    )
    turn, speed = np.moveaxis(seen[0], -1, 0)
    # What a sample makes of them is acted on at the next.
    on, off = (np.pad(x, ((0, 0), (1, 0)))[:, :-1] for x in seen[1:])
    np.testing.assert_allclose(30.0 * speed, 6.0 * (1 + 0.45 * on - 0.8 * off), rtol=1e-4)
    # The wind blows to the left: D = 1.
    drift = 0.5 - 5.0 * on
    random = (turn - 0.5) * 360.0 - drift
    chance = 0.12 - 0.03 * on + 0.75 * off
    turns = np.abs(random) > 2e-3  # 20 z^2 is smaller for 0.8 % of z
    rate = chance.mean() * 0.992
    assert abs(turns.mean() - rate) < 3 * np.sqrt(rate / turns.size) + 1e-4
    assert abs(random.mean()) < 3 * random.std() / np.sqrt(random.size)


@dataclass(frozen=True)
class Pulse:
    """Odour of 1 everywhere from 30 to 40 s, in wind along +x; its source is nowhere near."""

    random_step = False
    random_start = False

    def default_params(self):
        return ()

    def start(self, key, params):
        return jnp.int32(0)

    def advance(self, key, state, params):
        return state + 1

    def sample(self, state, positions, params):
        on = (state >= round(30 / DT)) & (state < round(40 / DT))
        wind = jnp.broadcast_to(jnp.asarray([1.0, 0.0], jnp.float32), positions.shape)
        return Air(jnp.full(len(positions), on.astype(jnp.float32)), wind)

    def sources(self, state, params):
        return jnp.full((1, 2), 1e4, jnp.float32)


@partial(jax.jit, static_argnames=("env", "lanes", "steps"), compiler_options=OPTIMISED)
def walk(env, policy, params, key, lanes, steps):
    """The states after `steps`, and of each step the mean way upwind, to -x, and the mean way, of
    all agents, float32[steps, 2], mm."""
    first, second, rest = jax.random.split(key, 3)
    _, state = jax.vmap(env.reset, (0, None))(jax.random.split(first, lanes), params)
    memory = jax.vmap(policy.init)(jax.random.split(second, lanes))

    def one(lane, key):
        state, memory = lane
        keys = jax.random.split(key, lanes)
        action, memory = jax.vmap(policy.act)(keys, memory, state.observation)
        # Its motion, plume and sensor draw nothing.
        _, after, *_ = jax.vmap(env.step, (None, 0, 0, None))(key, state, action, params)
        way = after.agent.position - state.agent.position
        speed = jnp.sqrt(jnp.sum(jnp.square(way), axis=1))
        return (after, memory), jnp.stack([-way[:, 0].mean(), speed.mean()])

    (state, _), ways = jax.lax.scan(one, (state, memory), jax.random.split(rest, steps))
    return state, ways


@pytest.mark.long
def test_a_pulse_sends_flies_upwind_as_published(arena):
    """science.md: -1.52, +5.64, +0.46 mm/s upwind and 6.00, 7.93, 5.10 over ground, of 4000 flies.

    Over ground nothing is drawn, and the speeds are those published to the last digit.
    """
    flies = 4000
    env, params = plumejax.make(
        "Fly-Gaussian-v0",
        plume=Pulse(),
        overrides={"start.low": [741.0, 741.0], "start.high": [759.0, 759.0]},
    )
    policy, keys = alvarez_salvado(env, params), jax.random.split(jax.random.key(0), 10)
    # Ten groups of flies, to know the error, which is that of the published flies too.
    ways = [walk(env, policy, params, k, flies // 10, round(45 / DT))[1] for k in keys]
    windows = [(0, 20, 30), (0, 30, 40), (0, 40, 45), (1, 20, 30), (1, 32, 40), (1, 40, 42)]
    speeds = np.asarray(
        [[w[round(a / DT) : round(b / DT), i].mean() / DT for i, a, b in windows] for w in ways]
    )
    error = np.sqrt(2 / 10) * speeds.std(axis=0, ddof=1)
    published = np.asarray([-1.52, 5.64, 0.46, 6.00, 7.93, 5.10])
    upwind, ground = np.abs(speeds.mean(axis=0) - published).reshape(2, 3)
    assert np.all(upwind < 3 * error[:3] + 0.005)
    assert np.all(ground < 0.005)


@pytest.mark.long
@pytest.mark.parametrize(
    ("smells", "seconds", "published"),
    [(True, (60, 180, 300), (0.258, 0.460, 0.559)), (False, (300,), (0.355,))],
)
def test_flies_find_the_middle_of_a_gaussian_as_often_as_published(smells, seconds, published):
    """science.md, 4000 flies. The published start has 3.14 % of them at the goal already."""
    flies, theirs = 1500, 4000
    env, params = plumejax.make("Fly-Gaussian-v0")
    if not smells:
        odour = params.sensor["odour"].replace(saturation=np.float32(1e-30))
        params = params.replace(sensor={**params.sensor, "odour": odour})
    policy = alvarez_salvado(env, params)
    state, _ = walk(env, policy, params, jax.random.key(0), flies, round(300 / DT))
    steps = np.where(state.found, state.step_count, 10**9)
    for limit, want in zip(seconds, published, strict=True):
        there = np.pi * 20.0**2 / 200.0**2
        got = there + (1 - there) * (steps <= round(limit / DT)).mean()
        error = np.sqrt(want * (1 - want) * (1 / flies + 1 / theirs))
        print(limit, got, error)
        assert abs(got - want) < 3 * error


def within(share, want, size):
    """Whether a share of `size` is within three standard errors of what it should be."""
    return abs(share - want) < 3 * np.sqrt(want * (1 - want) / size)


def test_demirs_fly_stops_goes_and_turns_at_its_rates(arena, drive):
    lanes, whiff = 2000, 200
    odours = np.zeros(350)
    odours[whiff] = 1.0
    stands, turn, speed = drive(
        demir(*arena),
        odours,
        lanes,
        jax.random.key(2),
        lambda a, m: (m.stands, (a[0] - 0.5) * 360.0, a[1] * 30.0),
    )
    np.testing.assert_allclose(speed, np.where(stands, 0.0, 10.1), rtol=1e-5)
    before, now = stands[:, :-1], stands[:, 1:]

    def shares(first, last):
        """(stops of those that walk, starts of those that stand), each with its number."""
        was, is_ = before[:, first:last], now[:, first:last]
        return ((is_[~was]).mean(), (~was).sum()), ((~is_[was]).mean(), was.sum())

    stops, starts = shares(0, whiff - 1)
    assert within(stops[0], -np.expm1(-0.78 * DT), stops[1])
    assert within(starts[0], -np.expm1(-0.29 * DT), starts[1])
    # The mean speed before any whiff: all walk at first, and some time later 0.29 / 1.07 of them.
    walking, w = [], 1.0
    for _ in range(whiff):
        w = w * np.exp(-0.78 * DT) - (1 - w) * np.expm1(-0.29 * DT)
        walking.append(w)
    mean = speed[:, :whiff].mean(axis=1)
    assert abs(mean.mean() - 10.1 * np.mean(walking)) < 3 * mean.std() / np.sqrt(lanes)
    assert walking[-1] == pytest.approx(0.29 / 1.07, rel=0.05)
    # A whiff keeps those walking that walk, and starts those that stand. What a fly stopped after
    # the whiff has not smelled.
    since = DT * np.arange(10)
    stops, starts = shares(whiff - 1, whiff + 9)
    rate = (0.78 - 0.61 * np.exp(-since / 0.25)) * DT
    assert within(stops[0], np.average(-np.expm1(-rate)), stops[1])
    stood = stands[:, whiff - 1]
    first = ~stands[stood, whiff]
    assert within(first.mean(), -np.expm1(-(0.29 + 0.41) * DT), len(first))
    still = stands[stood]
    gone = 1 - still[:, whiff : whiff + 25].all(axis=1).mean()
    times = DT * np.arange(25)
    assert within(gone, -np.expm1(-np.sum(0.29 + 0.41 * np.exp(-times / 0.52)) * DT), len(still))

    walks = ~stands
    saccade = walks & (np.abs(turn) > 3.0)
    assert within(saccade.sum() / walks.sum(), -np.expm1(-DT / 0.75), walks.sum())
    sizes = np.abs(turn[saccade])
    assert abs(sizes.mean() - 30.0) < 3 * 8.0 / np.sqrt(len(sizes)) + 0.01
    assert sizes.std() == pytest.approx(8.0, rel=0.03)
    wobble = turn[walks & ~saccade]
    assert wobble.std() == pytest.approx(20 / 89.94 * np.sqrt(89.94 * DT), rel=0.01)
    # Upwind is to the right.
    for at, w in (
        (slice(0, whiff), 0.0),
        (slice(whiff, whiff + 40), np.exp(-DT * np.arange(40) / 2)),
    ):
        right = turn[:, at][saccade[:, at]] < 0
        assert within(right.mean(), np.mean(1 / (1 + np.exp(-0.242 * w))), len(right))


def test_jayarams_fly_turns_upwind_as_whiffs_come_and_last(arena, drive):
    lanes = 1500
    odours = np.r_[np.zeros(50), np.ones(200)]
    turn, upwind, present = drive(
        jayaram(*arena),
        odours,
        lanes,
        jax.random.key(3),
        lambda a, m: ((a[0] - 0.5) * 360.0, m.upwind, m.present),
    )
    since = DT * np.arange(200)
    on = 0.5 * -np.expm1(-(since + DT) / 2)
    np.testing.assert_allclose(present[0, 50:], on, rtol=1e-4)
    np.testing.assert_allclose(upwind[0, 50:], np.exp(-since / 2), rtol=1e-4)
    saccade = np.abs(turn) > 3.0
    assert within(saccade.mean(), -np.expm1(-DT / 0.75), saccade.size)
    toward = 1 / (1 + np.exp(-0.242 * np.exp(-since / 2) - 3.872 * on))
    for first, last in ((0, 50), (50, 120), (120, 200)):
        at = slice(50 + first, 50 + last)
        right = turn[:, at][saccade[:, at]] < 0
        assert within(right.mean(), toward[first:last].mean(), len(right))


def test_whiffs_within_the_refractory_time_are_one(arena, drive):
    odours = np.tile([1.0, 0.0], 50)  # each 0.04 s
    upwind = drive(jayaram(*arena), odours, 1, jax.random.key(0), lambda a, m: m.upwind)[0]
    want, last = 0.0, -1.0
    for t, odour in enumerate(odours):
        want *= np.exp(-DT / 2)
        if odour and t * DT - last >= 0.085:
            want, last = want + 1.0, t * DT
        assert upwind[t] == pytest.approx(want, rel=1e-4)


def test_a_silk_moth_surges_zigzags_and_loops(arena, drive):
    odours = np.zeros(150)
    odours[10] = 1.0
    turn, speed = np.moveaxis(
        drive(silkmoth(*arena), odours, 400, jax.random.key(4), lambda a, m: a), -1, 0
    )
    turn, speed = (turn - 0.5) * 360.0, speed * 30.0
    rate = np.rad2deg(1.0) * DT
    np.testing.assert_allclose(np.abs(turn[:, :10]), rate, rtol=1e-4)
    side = np.sign(turn[:, 40:41])
    assert abs(side.mean()) < 3 / np.sqrt(400)
    plan = np.r_[np.zeros(25), np.ones(35), -np.ones(35), np.ones(10), -np.ones(35)]
    np.testing.assert_allclose(turn[:, 10:], side * rate * plan, atol=1e-4)
    np.testing.assert_allclose(
        speed[:, 10:], np.broadcast_to(26.0 * (plan == 0), (400, 140)), rtol=1e-5
    )


def mean_within(each, want, allowed=0.0):
    """Whether the mean over animals is within three standard errors of what it should be."""
    return abs(each.mean() - want) < 3 * each.std() / np.sqrt(len(each)) + allowed


def walking_share(whiffs, steps):
    """float[steps]: how many of Demir's flies walk after each step, by the stops that were."""
    walk, standing = 1.0, np.zeros(steps)  # those that stand, by the step of their stop
    shares = []
    for t in range(steps):
        past = np.asarray([w for w in whiffs if w <= t], int)
        faded = np.exp(-(t - past) * DT / 0.52)
        smelled = np.sum(faded * (past > np.arange(t)[:, None]), axis=1)
        gone = -standing[:t] * np.expm1(-(0.29 + 0.41 * smelled) * DT)
        since = (t - past[-1]) * DT if len(past) else np.inf
        stopped = -walk * np.expm1(-(0.78 - 0.61 * np.exp(-since / 0.25)) * DT)
        standing[:t] -= gone
        standing[t] = stopped
        walk += gone.sum() - stopped
        shares.append(walk)
    return np.asarray(shares)


@pytest.mark.slow
@pytest.mark.parametrize("every", [15, 50])
def test_demirs_fly_among_whiffs_walks_and_turns_as_often_as_it_should(arena, drive, every):
    """Whiffs that come evenly: more of them within one stop, and within the memory of W."""
    lanes, steps, settled = 4000, 500, 250
    odours = (np.arange(steps) % every == 5).astype(float)
    stands, turn, speed = drive(
        demir(*arena),
        odours,
        lanes,
        jax.random.key(5),
        lambda a, m: (m.stands, (a[0] - 0.5) * 360.0, a[1] * 30.0),
    )
    whiffs = np.flatnonzero(odours)
    share = walking_share(whiffs, steps)
    assert mean_within(speed[:, settled:].mean(axis=1), 10.1 * share[settled:].mean())
    # As many stops as starts, in the long run.
    stops = (stands[:, settled:] & ~stands[:, settled - 1 : -1]).mean(axis=1)
    since = DT * ((np.arange(steps) - 5) % every)[settled:]
    rate = 0.78 - 0.61 * np.exp(-since / 0.25)
    assert mean_within(stops, np.mean(share[settled - 1 : -1] * -np.expm1(-rate * DT)))

    walks = ~stands[:, settled:]
    saccades = walks & (np.abs(turn[:, settled:]) > 3.0)
    share = share[settled:]
    assert mean_within(saccades.mean(axis=1), -np.expm1(-DT / 0.75) * share.mean())
    # W of whiffs without end, one every P seconds: exp(-s / 2) / (1 - exp(-P / 2)).
    w = np.exp(-since / 2) / -np.expm1(-every * DT / 2)
    right = turn[:, settled:][saccades] < 0
    # The first whiff was 5 s before: the sum is short by exp(-5 / 2) of itself at most.
    toward = np.average(1 / (1 + np.exp(-0.242 * w)), weights=share)
    short = np.average(1 / (1 + np.exp(-0.242 * w * (1 - np.exp(-2.5)))), weights=share)
    assert short - 3 * 0.5 / np.sqrt(len(right)) < right.mean()
    assert right.mean() < toward + 3 * 0.5 / np.sqrt(len(right))


@pytest.mark.slow
def test_jayarams_fly_among_whiffs_turns_upwind_as_often_as_it_should(arena, drive):
    """Odour of 0.4 s that comes each second."""
    lanes, steps, settled = 2000, 1000, 500
    odours = (np.arange(steps) % 50 < 20).astype(float)
    turn, speed = drive(
        jayaram(*arena),
        odours,
        lanes,
        jax.random.key(6),
        lambda a, m: ((a[0] - 0.5) * 360.0, a[1] * 30.0),
    )
    np.testing.assert_allclose(speed, 10.1, rtol=1e-5)
    saccade = np.abs(turn) > 3.0
    assert mean_within(saccade.mean(axis=1), -np.expm1(-DT / 0.75))
    sizes = np.abs(turn[saccade])
    assert mean_within(sizes, 30.0, 0.01)
    assert sizes.std() == pytest.approx(8.0, rel=0.01)
    assert turn[~saccade].std() == pytest.approx(20 / 89.94 * np.sqrt(89.94 * DT), rel=0.01)
    # Within a second: odour from 0 to 0.4 s, low-passed by 2 s, the same after a second as before.
    s = DT * np.arange(50)
    up = -np.expm1(-np.minimum(s + DT, 0.4) / 2)
    at_start = -np.expm1(-0.2) * np.exp(-0.3) / -np.expm1(-0.5)
    on = 0.5 * np.where(
        s < 0.4,
        at_start * np.exp(-(s + DT) / 2) + up,
        (at_start * np.exp(-0.2) + up) * np.exp(-(s + DT - 0.4) / 2),
    )
    w = np.exp(-s / 2) / -np.expm1(-0.5)
    toward = 1 / (1 + np.exp(-0.242 * w - 3.872 * on))
    right = turn[:, settled:][saccade[:, settled:]] < 0
    assert within(right.mean(), toward.mean(), len(right))


@pytest.mark.slow
def test_a_silk_moth_that_is_hit_now_and_then_goes_and_turns_as_much_as_it_should(arena, drive):
    """A hit each 1.5 s: a third of the time it surges; it turns 0.7 s one way, 0.3 s the other."""
    odours = (np.arange(1500) % 75 == 0).astype(float)
    turn, speed = np.moveaxis(
        drive(silkmoth(*arena), odours, 400, jax.random.key(7), lambda a, m: a), -1, 0
    )
    turn, speed = np.deg2rad(turn - 0.5) * 360.0, speed * 30.0
    np.testing.assert_allclose(speed.mean(), 26.0 / 3, rtol=1e-5)
    np.testing.assert_allclose(np.abs(turn).mean() / DT, 2.0 / 3, rtol=1e-4)
    # Sides are drawn anew at each hit: a random walk of 0.4 rad a step.
    turned = turn.reshape(400, 20, 75).sum(axis=2)
    np.testing.assert_allclose(np.abs(turned), 0.4, rtol=1e-3)
    assert mean_within(turned.sum(axis=1), 0.0)
    assert np.square(turned.sum(axis=1)).mean() == pytest.approx(
        20 * 0.16, rel=3 * np.sqrt(2 / 400)
    )
