"""tests/policies/test_trackers: the ways of the policies that track a plume or climb."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

import plumejax
from plumejax.base.errors import ValidationError
from plumejax.policies.cast_and_surge import cast_and_surge, dung_beetle, moth_zigzag
from plumejax.policies.catalogue import prepare
from plumejax.policies.chemotaxis import braitenberg, e_coli, run_and_tumble
from plumejax.policies.recoveries import backtracking, circling, surge_spiral
from plumejax.search.antennae import bilateral
from plumejax.search.motion import WindRelative
from plumejax.search.sensors import LocalConcentration

DT = 0.02


def from_upwind(headings):
    """Degrees to the left of upwind, which is 180, in (-180, 180]."""
    return np.round(-np.mod(-(headings - 180.0) + 180.0, 360.0) + 180.0, 2)


def after(odour, seconds):
    """Odour for half a second, then none."""
    return [odour] * 25 + [0.0] * round(seconds / DT)


def test_on_a_grid_casts_grow_and_a_hit_begins_them_anew():
    env, params = plumejax.make(
        "Fly-GaussianWind-v0", sensor=LocalConcentration(), motion=WindRelative()
    )
    policy = cast_and_surge(env, params)
    act = jax.jit(policy.act)
    memory, actions = policy.init(jax.random.key(1)), []
    for odour in [0, 0, 1, 1, *[0] * 15, 1, 0]:
        action, memory = act(jax.random.key(0), memory, jnp.asarray([odour], jnp.float32))
        actions.append(int(action))
    one = actions[0]
    other = 5 - one
    assert {one, other} == {2, 3}
    runs = [one, 0, other, other, 0, *[one] * 3, 0, *[other] * 4, 0, one]
    assert actions == [one, 0, 0, 0, *runs, 0, one]


def test_the_delays_of_surge_and_cast_are_those_of_flies(arena, drive):
    policy = cast_and_surge(*arena)
    lanes = 4000
    odours = [0.0] * 5 + [1.0] * 60 + [0.0] * 70
    surges = drive(policy, odours, lanes, jax.random.key(0), lambda action, memory: memory.surges)
    assert not surges[:, :5].any()
    assert surges[:, 50:65].all()
    assert not surges[:, -1].any()
    starts = (np.argmax(surges, axis=1) - 5) * DT
    stops = (np.argmax(~surges[:, 65:], axis=1)) * DT
    for delays, mean, spread in ((starts, 0.19, 0.075), (stops, 0.45, 0.165)):
        # What is drawn below 0 counts as 0, and a step begins after what was drawn.
        z = mean / spread
        later = mean * norm.cdf(z) + spread * norm.pdf(z) + DT / 2
        wider = np.hypot(spread, DT / np.sqrt(12))
        assert abs(delays.mean() - later) < 3 * wider / np.sqrt(lanes)
        assert abs(delays.std() - wider) < 3 * wider / np.sqrt(2 * lanes) + 2e-4


def test_a_surge_leads_upwind_over_ground_and_a_cast_across(arena, follow):
    env, params = arena
    policy = cast_and_surge(env, params, surge_spread=0.0, cast_spread=0.0, cast=0.4)
    drifting = policy.replace(body=policy.body.replace(drift=np.float32(0.2)))
    places, _ = follow(drifting, after(1.0, 1.6), heading=10.0, drift=0.2)
    ways = np.diff(places, axis=0)
    # From 0.19 s to 0.5 + 0.45 s, and from then on.
    surge, cast = ways[11:46], ways[50:]
    assert np.all(np.abs(surge[:, 1]) < 1e-3)
    assert np.all(surge[:, 0] < 0)
    assert np.all(np.abs(cast[:, 0]) < 1e-3)
    turns = np.flatnonzero(np.diff(np.sign(cast[:, 1]))) + 50
    assert turns.tolist() == pytest.approx([47 + 19], abs=2)


def test_a_moth_zigzags_narrowly_in_odour_and_ever_wider_without(arena, follow):
    _, headings = follow(moth_zigzag(*arena), after(1.0, 3.5))
    side = np.sign(from_upwind(headings)[0])
    angles = side * from_upwind(headings)
    assert angles[:25].tolist() == [30.0] * 25
    assert angles[25:49].tolist() == [-30.0] * 24
    # Half a second after the last odour: 0.5 s to one side, 1 s to the other, 1.5 s back.
    assert angles[49:74].tolist() == [90.0] * 25
    assert angles[74:124].tolist() == [-90.0] * 50
    assert angles[124:199].tolist() == [90.0] * 75


def test_a_dung_beetle_turns_about_at_the_edge_of_the_plume(arena, follow):
    odours = [1.0] * 10 + [0.0] * 5 + [1.0] * 10 + [0.0] * 160
    _, headings = follow(dung_beetle(*arena), odours)
    angles = np.sign(from_upwind(headings)[0]) * from_upwind(headings)
    assert set(np.abs(angles)) == {60.0}
    changes = np.flatnonzero(np.diff(angles)) + 1
    # At each edge; without odour after 1 s and 2 s more.
    assert changes.tolist() == [10, 25, 25 + 49, 25 + 149]


def test_a_spiral_keeps_its_gap(arena, follow):
    policy = surge_spiral(*arena, surge=0.1, gap=0.6)
    places, _ = follow(policy, [0.0] * 800)
    spiral = places[5:] - places[5]
    angle = np.unwrap(np.arctan2(spiral[1:, 1], spiral[1:, 0]))
    radius = np.linalg.norm(spiral[1:], axis=1)
    turn = np.abs(angle - angle[0]) / (2 * np.pi)
    late = turn > 1
    slope, _ = np.polyfit(turn[late], radius[late], 1)
    assert turn[-1] > 2
    assert slope == pytest.approx(0.6 * 30.0, rel=0.1)


def test_circles_widen(arena, follow):
    policy = circling(*arena, patience=0.1, radius=0.3)
    places, headings = follow(policy, [0.0] * 300)
    turned = np.abs(np.diff(headings[5:])) * np.pi / 180.0
    # Of 2 pi 0.3 s, 1.885 s, and of twice that.
    np.testing.assert_allclose(turned[2:90], DT / 0.3, rtol=1e-3)
    np.testing.assert_allclose(turned[100:270], DT / 0.6, rtol=1e-3)
    np.testing.assert_allclose(places[99], places[5], atol=1.0)


def test_backtracking_leads_back_to_the_odour(arena, follow):
    places, _ = follow(backtracking(*arena, patience=0.4), after(1.0, 2.0))
    assert places[24 + 20, 0] < places[25, 0] - 10
    np.testing.assert_allclose(places[24 + 40], places[24], atol=30 * DT + 1e-3)
    last = np.diff(places[24 + 41 : 24 + 60], axis=0)
    np.testing.assert_allclose(last - last[0], 0.0, atol=1e-3)


def test_runs_are_exponential_and_longer_up_the_gradient(arena, drive):
    policy = run_and_tumble(*arena, run=0.5, gain=4.0)
    lanes, steps = 400, 300

    def turned(action, memory):
        return (action[0] - 0.5) * 360.0

    level = drive(policy, [0.5] * (steps + 1), lanes, jax.random.key(0), turned)[:, 1:]
    rising = drive(policy, np.linspace(0.1, 0.9, steps), lanes, jax.random.key(1), turned)
    for turns, run in ((level, 0.5), (rising, 2.0)):
        ends = -np.expm1(-DT / run)
        share = (turns != 0).mean()
        assert abs(share - ends) < 3 * np.sqrt(ends * (1 - ends) / turns.size)
    tumbles = np.abs(level[level != 0])
    # Of |N(68, 36)|, of which few are beyond half a circle.
    z = 68.0 / 36.0
    mean = 68.0 * (2 * norm.cdf(z) - 1) + 2 * 36.0 * norm.pdf(z)
    assert abs(tumbles.mean() - mean) < 3 * 36.0 / np.sqrt(len(tumbles)) + 0.2


def test_e_coli_turns_little_after_a_rise_and_anyhow_else(arena, drive):
    odours = [0.1, 0.2, 0.3, 0.3, 0.2]
    turns = drive(
        e_coli(*arena), odours, 4000, jax.random.key(0), lambda a, memory: (a[0] - 0.5) * 360.0
    )
    for step, most in ((1, 5.0), (2, 5.0), (3, 180.0), (4, 180.0)):
        assert np.abs(turns[:, step]).max() <= most * (1 + 1e-4) + 1e-4
        assert abs(np.abs(turns[:, step]).mean() - most / 2) < 3 * most / np.sqrt(12 * 4000)
        assert abs(turns[:, step].mean()) < 3 * most / np.sqrt(3 * 4000)


def test_braitenberg_turns_to_the_side_that_smells_more(arena):
    _, params = arena
    env, params = plumejax.make("Fly-Gaussian-v0", sensor=bilateral(), overrides={"dt": DT})
    policy = braitenberg(env, params, gain=100.0)
    memory = policy.init(jax.random.key(0))
    for sides, contrast in (((0.6, 0.2), 0.5), ((0.0, 0.3), -1.0), ((0.0, 0.0), 0.0)):
        action, _ = policy.act(jax.random.key(0), memory, jnp.asarray(sides, jnp.float32))
        assert float(action[0]) == pytest.approx(0.5 + contrast * 100.0 * DT / 360.0, abs=1e-6)


def test_arguments_of_policies_are_numbers_where_they_should_be():
    env, params = plumejax.make("Olfactory-Isotropic-19x19-v0")
    for bad, said in (({"rate": "abc"}, "rate = 'abc'"), ({"steps": 1.5}, "steps = 1.5")):
        name = "k-step-infotaxis"
        with pytest.raises(ValidationError, match=f"{name}: {said}"):
            prepare(name, env, params, **bad)
