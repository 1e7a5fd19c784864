"""tests/evaluation/test_survival: searches weighed by survival, against episodes with a source."""

import json
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plumejax.base.errors import ValidationError
from plumejax.cli import main
from plumejax.evaluation import survival
from plumejax.evaluation.episodes import play
from plumejax.evaluation.statistics import Estimate, mean, summarise
from plumejax.policies.bayesian import POLICIES
from plumejax.policies.reactive import Random
from plumejax.policies.searchers import Infotaxis
from plumejax.search.encounter_tasks import isotropic_search
from plumejax.search.first_hit import by_inversion
from plumejax.search.starts import Fixed

KEY = jax.random.key(5)


@pytest.fixture(scope="module")
def line():
    """`(env, params, policy)`: infotaxis on a short line, some of whose searches time out."""
    env, params = isotropic_search(9, 2.0, 2.0, 1, 25)
    return env, params, POLICIES["infotaxis"](env, params)


@pytest.fixture(scope="module")
def weighed(line):
    """2000 searches by it, weighed."""
    env, params, policy = line
    return survival.search(env, policy, KEY, params, 2000)


@pytest.fixture(scope="module")
def played(line):
    """`Outcomes` of 8000 episodes of it, with a source."""
    env, params, policy = line
    return play(env, policy, KEY, params, 8000)


def test_a_search_is_a_loop_of_acting_and_predicting(line, weighed):
    env, params, policy = line
    act, predict = jax.jit(policy.act), jax.jit(policy.predict)
    for i in range(3):
        reset, init, run = jax.random.split(jax.random.fold_in(KEY, i), 3)
        seen, _ = env.reset(reset, params)
        memory, away, walls, hits, smelled = policy.init(init), [1.0], 0.0, 0.0, 0
        while away[-1] >= 1e-6 and len(away) <= 25:
            keys = jax.random.split(jax.random.fold_in(run, len(away) - 1))
            smelled += int(seen[0] > 0)
            action, memory = act(keys[0], memory, seen)
            here = policy.place(seen)
            p_end, q = predict(memory.belief, here, action)
            there = policy.moved(here, action)
            count = by_inversion(jax.random.uniform(keys[1], (), q.dtype), q)
            seen = jnp.concatenate([count[None], there]).astype(jnp.float32)
            walls += away[-1] * bool(there == here)
            hits += away[-1] * float(p_end) * smelled
            away.append(away[-1] * (1 - float(p_end)))
        assert weighed.steps[i] == len(away) - 1
        assert weighed.not_found[i] == pytest.approx(away[-1], abs=1e-6)
        assert weighed.time[i] == pytest.approx(sum(away[:-1]), rel=1e-5)
        assert weighed.walls[i] == pytest.approx(walls, abs=1e-5)
        assert weighed.hits[i] == pytest.approx(hits, rel=1e-5)


def test_both_estimators_agree(weighed, played):
    ours, sampled = survival.weigh(weighed), summarise(played)
    found, steps = np.asarray(played.found), np.asarray(played.steps)
    assert 0.02 < ours.not_found < 0.2
    for a, b in (
        ((ours.not_found, ours.error_not_found), mean(~found)),
        ((ours.mean_steps_found, ours.error_steps_found), mean(steps[found])),
        ((ours.restricted_mean, ours.error_restricted_mean), mean(steps)),
        (mean(weighed.walls), mean(played.track.walls)),
        ((ours.hits, ours.error_hits), (sampled.hits, sampled.error_hits)),
        *(
            ((weighed.cdf[t], weighed.error[t]), mean(found & (steps <= t + 1)))
            for t in (0, 2, 5, 10, 24)
        ),
    ):
        assert abs(a[0] - b[0]) <= 3 * np.hypot(a[1], b[1])
    assert ours.error_steps_found < sampled.error_steps_found


def test_the_law_and_the_mean_time_are_of_the_same_searches(weighed):
    away = 1 - np.append(0.0, weighed.cdf[:-1])
    assert weighed.time.mean() == pytest.approx(away.sum(), abs=1e-4)
    assert weighed.not_found.mean() == pytest.approx(1 - weighed.cdf[-1])


def test_hits_before_success_are_those_that_were_acted_on(line, played):
    env, params, policy = line
    reset_env, step_env, act = jax.jit(env.reset), jax.jit(env.step), jax.jit(policy.act)
    for i in range(4):
        reset, init, run = jax.random.split(jax.random.fold_in(KEY, i), 3)
        seen, state = reset_env(reset, params)
        memory, done, smelled = policy.init(init), False, []
        while not done:
            smelled.append(bool(seen[0] > 0))
            now = 2 * (len(smelled) - 1)
            keys = [jax.random.fold_in(run, now + k) for k in (0, 1)]
            action, memory = act(keys[0], memory, seen)
            seen, state, _, terminated, truncated, _ = step_env(keys[1], state, action, params)
            done = bool(terminated | truncated)
        begun = [now and not before for before, now in pairwise([False, *smelled])]
        assert smelled[0]  # the search begins with a hit
        assert played.track.hits[i] == sum(smelled)
        assert played.track.whiffs[i] == sum(begun)


@pytest.mark.slow
def test_a_search_does_not_depend_on_those_beside_it(line, weighed):
    env, params, policy = line
    many = survival.search(env, policy, KEY, params, 23, lanes=5)
    one = survival.search(env, policy, KEY, params, 1)
    other = survival.search(env, policy, jax.random.key(6), params, 1)
    np.testing.assert_array_equal(many.steps, weighed.steps[:23])
    np.testing.assert_allclose(many.time, weighed.time[:23], rtol=1e-6)
    assert one.time[0] == pytest.approx(many.time[0])
    assert other.time[0] != pytest.approx(many.time[0])
    # The law of two is the mean of theirs, and its error that of the mean.
    two = survival.search(env, policy, KEY, params, 2)
    half = np.abs(two.cdf - one.cdf)
    np.testing.assert_allclose(two.error, half, atol=1e-6)


class ToAndFro(Infotaxis):
    """From even cells on, from odd ones back."""

    def choose(self, key, costs, position):
        return 1 - position[0] % 2


@pytest.mark.slow
def test_who_goes_to_and_fro_cycles_as_often_as_with_a_source(line):
    env, params, policy = line
    stuck = ToAndFro(**{name: getattr(policy, name) for name in policy.__dataclass_fields__})
    searches = survival.search(env, stuck, KEY, params, 256)
    outcomes = play(env, stuck, KEY, params, 1024)
    ours, sampled = mean(searches.cycled), mean(outcomes.track.cycled)
    assert 0.3 < ours.value < 0.9
    assert abs(ours.value - sampled.value) < 3 * np.hypot(ours.error, sampled.error)
    np.testing.assert_array_equal(searches.stuck, searches.cycled)
    np.testing.assert_array_equal(searches.not_found, searches.cycled)  # it sees no further cell
    assert survival.weigh(searches).stuck == 1.0


def test_what_known_searches_come_to():
    # One has found after 1 or 2 steps, the other, which goes to and fro, after 3 or never.
    searches = survival.Searches(
        steps=np.asarray([2, 4]),
        not_found=np.asarray([0.0, 0.5]),
        time=np.asarray([1.5, 3.5]),
        walls=np.asarray([0.0, 1.0]),
        cycled=np.asarray([0.0, 1.0]),
        stuck=np.asarray([1.0, 1.0]),
        hits=np.asarray([1.5, 1.0]),
        cdf=np.asarray([0.25, 0.5, 0.75, 0.75]),
        error=np.zeros(4),
    )
    ours = survival.weigh(searches)
    assert ours.not_found == 0.25
    assert ours.mean_steps_found == pytest.approx((0.5 * 1 + 0.5 * 2 + 0.5 * 3) / 1.5)
    assert ours.restricted_mean == 2.5
    assert ours.hits == pytest.approx(2.5 / 1.5)
    assert (ours.walls, ours.cycled, ours.stuck, ours.timed_out) == (0.5, 0.5, 1.0, 0.5)
    assert ours.percentiles[50] == Estimate(2.0, 0.0)
    assert ours.percentiles[10].value == pytest.approx(0.4)
    assert ours.percentiles[90].value == np.inf


def test_who_does_not_believe_what_is_so_is_refused(line):
    env, params, policy = line

    def refuse(what, env=env, policy=policy):
        with pytest.raises(ValidationError, match=what):
            survival.search(env, policy, KEY, params, 2)

    refuse("policy = 'Random'", policy=Random(env.action_space(params)))
    refuse("model of Infotaxis", policy=POLICIES["infotaxis"](env, params, rate=1.0))
    other = POLICIES["infotaxis"](*isotropic_search(11, 2.0, 2.0, 1, 25))
    refuse("model of Infotaxis", policy=other)
    anywhere, _ = isotropic_search(9, 2.0, 2.0, 1, 25, start=Fixed())
    refuse(r"env\.start", env=anywhere)


WORDS = ["evaluate", "Olfactory-Isotropic-1D-v0", "--estimator", "survival", "--policy"]
SHORT = ["--set", "max_steps=30", "--episodes", "16"]


@pytest.mark.slow
def test_the_command_line_weighs_and_writes(tmp_path, capsys):
    out = [tmp_path / name for name in ("a.json", "a.png")]
    assert main([*WORDS, "infotaxis", *SHORT, "--out", *map(str, out)]) == 0
    assert "16 searches weighed by survival" in " ".join(capsys.readouterr().out.split())
    whole = json.loads(out[0].read_text())
    assert whole["of"]["episodes"] == whole["survival"]["searches"] == 16
    assert 0 < whole["survival"]["percentiles"]["50"][0] < 30
    assert out[1].stat().st_size > 10_000


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["random"], "policy = 'Random'"),
        (["infotaxis", "--error", "0.1"], "--error"),
        (["infotaxis", "--out", "a.nc"], "a.nc"),
    ],
)
def test_the_command_line_refuses_what_cannot_be_weighed(more, said, capsys):
    assert main([*WORDS, *more, *SHORT]) == 2
    assert said in capsys.readouterr().err
