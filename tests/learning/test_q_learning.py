"""tests/learning/test_q_learning: tables that are learned, and what acts in the void."""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plumejax
from plumejax.base.batch import Batch
from plumejax.base.environment import Environment, EnvParams, EnvState
from plumejax.base.errors import ValidationError
from plumejax.base.spaces import Discrete
from plumejax.evaluation.episodes import play
from plumejax.learning import q_learning as ql
from plumejax.learning.finite_state import FiniteStateController
from plumejax.learning.tables import load_policy, require_fit, save_policy
from plumejax.policies.reactive import Random
from plumejax.search.motion import AxisMoves, Moves, Oriented, WindRelative

FOUR = ql.Compass(0, 1, 2, 3)

REWARD = np.asarray([[-0.1, 0.0], [0.2, -0.3], [0.0, 1.0]], np.float32)
"""By state and action of `Chain`."""


@dataclass(frozen=True)
class Chain(Environment):
    """States 1, 2, 3: action 0 goes back by one, 1 on; from 3 action 1 ends. All is certain."""

    random_step = False

    def default_params(self):
        return EnvParams(max_steps=np.int32(25))

    def action_space(self, params):
        return Discrete(2)

    def observation_space(self, params):
        return Discrete(4)

    def reset_env(self, key, params):
        return EnvState(
            lifecycle=jnp.int32(1),
            step_count=jnp.int32(0),
            total_reward=jnp.float32(0),
            observation=jax.random.randint(key, (), 1, 4, jnp.int32),
        )

    def step_env(self, key, state, action, params):
        now = state.observation
        reward = jnp.asarray(REWARD)[now - 1, action]
        then = jnp.clip(now + 2 * action - 1, 1, 3)
        return state.replace(observation=then), reward, (now == 3) & (action == 1)


def by_value_iteration(gamma):
    """float[3, 2]: Q of `Chain`."""
    q = np.zeros((3, 2))
    for _ in range(500):
        v = q.max(axis=1)
        then = np.asarray([[v[0], v[1]], [v[0], v[2]], [v[1], 0.0]])
        q = REWARD + gamma * then
    return q


@pytest.fixture(scope="module")
def chain():
    """`(batch, params, policy)` of 3 learners."""
    env = Chain()
    policy = ql.QTable(jnp.zeros((4, 2), jnp.float32), 4, "learned", FOUR)
    return Batch(env, 3), env.default_params(), policy


def test_it_converges_to_the_values_of_value_iteration(chain):
    batch, params, policy = chain
    training = ql.begin(batch, policy, jax.random.key(0), params)
    numbers = ql.Numbers(epsilon=np.float32(1.0), decay=np.float32(0.0))
    training = ql.train(batch, training, jax.random.key(1), params, 2000, numbers)
    expected = by_value_iteration(0.95)
    for learner in range(3):
        values = np.asarray(ql.learned(training, learner).values)
        np.testing.assert_allclose(values[1:], expected, atol=1e-4)
        assert not values[0].any()  # never seen
    assert (np.asarray(training.episodes) > 50).all()
    assert (np.asarray(training.steps) > np.asarray(training.episodes)).all()


def test_training_goes_on_where_it_stopped_and_learners_differ(chain):
    batch, params, policy = chain
    start = ql.begin(batch, policy, jax.random.key(0), params)
    whole = ql.train(batch, start, jax.random.key(1), params, 30)
    parts = ql.train(batch, start, jax.random.key(1), params, 15)
    parts = ql.train(batch, parts, jax.random.key(1), params, 15)
    for one, other in zip(jax.tree.leaves(whole), jax.tree.leaves(parts), strict=True):
        np.testing.assert_array_equal(one, other)
    first, second, _ = np.asarray(whole.policy.values)
    assert (first != second).any()


def test_exploration_fades_with_the_episodes(chain):
    batch, params, policy = chain
    # Once learned, action 1 is best in state 3; it is drawn half as often as anything is.
    policy = policy.replace(values=policy.values.at[:, 1].set(1.0))
    start = ql.begin(batch, policy, jax.random.key(0), params)
    still = ql.Numbers(alpha=np.float32(0.0), decay=np.float32(1e6))
    training = ql.train(batch, start, jax.random.key(1), params, 600, still)
    steps, episodes = (np.asarray(x, np.float64) for x in (training.steps, training.episodes))
    np.testing.assert_allclose(steps / episodes, 2.0, atol=0.2)  # 1, 2 or 3 steps, straight


def moves(recovery, steps, path=()):
    """The actions of `recovery` after `path`, in a void of `steps` steps."""
    policy = ql.QTable(jnp.zeros((5, 4), jnp.float32), 5, recovery, FOUR)
    carry = policy.init(jax.random.key(0))
    for action in path:
        _, carry = policy.choose(jax.random.key(0), carry, jnp.int32(2), jnp.int32(action))

    def one(carry, key):
        action, carry = policy.act(key, carry, jnp.int32(ql.VOID))
        return carry, action

    return np.asarray(jax.lax.scan(one, carry, jax.random.split(jax.random.key(1), steps))[1])


def test_cast_and_surge_casts_wider_and_wider():
    expected = "L U RR U LLL U RRRR U LLLLL U".replace(" ", "")
    assert "".join("UDLR"[a] for a in moves("cast_and_surge", len(expected))) == expected


def test_circling_is_a_square_spiral():
    expected = "U L DD RR UUU LLL DDDD RRRR".replace(" ", "")
    assert "".join("UDLR"[a] for a in moves("circling", len(expected))) == expected
    ways = np.asarray([[-1, 0], [1, 0], [0, -1], [0, 1]])
    places = np.cumsum(ways[moves("circling", 1200)], axis=0)
    assert len(np.unique(places, axis=0)) == 1200  # no place twice, and late steps are exact


def test_backtracking_undoes_the_way_and_then_wanders():
    taken = moves("backtrack", 200, path=[0, 0, 3, 1, 2])
    assert taken[:5].tolist() == [3, 0, 2, 1, 1]
    assert set(taken[5:]) == {0, 1, 2, 3}
    assert set(moves("random", 100)) == {0, 1, 2, 3}


def test_a_learned_recovery_has_a_row_for_each_of_the_first_steps_in_the_void():
    values = jnp.zeros((7, 4), jnp.float32)
    for row, action in ((0, 3), (5, 2), (6, 1), (2, 0)):
        values = values.at[row, action].set(1.0)
    policy = ql.QTable(values, 5, "learned", FOUR)
    carry, taken = policy.init(jax.random.key(0)), []
    for state in (0, 0, 0, 0, 2, 0):
        action, carry = policy.act(jax.random.key(0), carry, jnp.int32(state))
        taken.append(int(action))
    assert taken == [3, 2, 1, 1, 0, 3]


def test_the_value_of_a_recovery_is_learned_whatever_it_does():
    policy = ql.QTable(jnp.zeros((5, 4), jnp.float32), 5, "random", FOUR)
    carry = policy.init(jax.random.key(0))
    values = ql._learn(
        ql.PUBLISHED,
        policy.replace(values=policy.values.at[3, 1].set(2.0)),
        carry,
        jnp.int32(0),
        jnp.int32(1),
        jnp.float32(-0.001),
        jnp.asarray(False),
        carry,
        jnp.int32(3),
    )
    np.testing.assert_allclose(values[0], 0.5 * (-0.001 + 0.95 * 2.0), rtol=1e-6)
    assert not np.asarray(values[1]).any()


@pytest.mark.parametrize(
    ("motion", "expected"),
    [
        (Moves(), ql.Compass(upwind=3, downwind=1, left=2, right=0)),
        (AxisMoves(), ql.Compass(0, 1, 2, 3)),
        (WindRelative(), ql.Compass(0, 1, 2, 3)),
    ],
)
def test_the_compass_is_that_of_the_motion(local, motion, expected):
    env, _ = local
    assert ql.compass(replace(env, motion=motion)) == expected


def test_what_does_not_fit_is_refused(local):
    env, params = local
    with pytest.raises(ValidationError, match="sensor"):
        ql.table(env, params)
    with pytest.raises(ValidationError, match="motion"):
        ql.compass(replace(env, motion=Oriented()))
    with pytest.raises(ValidationError, match="motion"):
        ql.compass(replace(env, motion=AxisMoves(3)))
    env, params = plumejax.make("WhiffStates-v0")
    with pytest.raises(ValidationError, match="recovery"):
        ql.table(env, params, recovery="spiral")
    with pytest.raises(ValidationError, match="void_states"):
        ql.table(env, params, recovery="random", void_states=2)
    assert ql.table(env, params, void_states=3).values.shape == (18, 4)


@pytest.mark.long
def test_what_is_learned_on_whiff_states_beats_chance():
    near = {"start.low": [60.0, -30.0], "start.high": [200.0, 30.0], "max_steps": 200}
    env, params = plumejax.make("WhiffStates-v0", overrides=near)
    batch = Batch(env, 8)
    numbers = ql.Numbers(alpha=np.float32(0.2), decay=np.float32(0.02))
    policy = ql.table(env, params, recovery="cast_and_surge")
    training = ql.begin(batch, policy, jax.random.key(0), params)
    training = ql.train(batch, training, jax.random.key(1), params, 60_000, numbers)

    def success(policy):
        return float(play(env, policy, jax.random.key(2), params, 64).found.mean())

    learned = [success(ql.learned(training, learner)) for learner in range(3)]
    assert np.mean(learned) > success(Random(env.action_space(params))) + 0.2


def test_tables_come_back_from_disk(tmp_path):
    table = ql.QTable(
        jnp.arange(20, dtype=jnp.float32).reshape(5, 4), 4, "circling", ql.Compass(3, 1, 2, 0)
    )
    controller = FiniteStateController(jnp.ones((2, 2, 4, 2), jnp.float32))
    for number, policy in enumerate((table, controller)):
        path = tmp_path / f"{number}.npz"
        save_policy(path, policy)
        back = load_policy(path)
        assert jax.tree.structure(back) == jax.tree.structure(policy)
        jax.tree.map(np.testing.assert_array_equal, back, policy)
    assert sorted(x.name for x in tmp_path.iterdir()) == ["0.npz", "1.npz"]


def test_files_that_hold_no_policy_are_refused(tmp_path):
    with pytest.raises(ValidationError, match="npz"):
        save_policy(tmp_path / "policy.json", FiniteStateController(jnp.zeros((1, 2, 4, 1))))
    with pytest.raises(ValidationError, match="policy = 'Random'"):
        save_policy(tmp_path / "policy.npz", Random(Discrete(4)))
    with pytest.raises(ValidationError, match="path"):
        load_policy(tmp_path / "none.npz")
    (tmp_path / "text.npz").write_text("no zip")
    np.savez(tmp_path / "other.npz", kind="Unknown", values=np.zeros(3))
    np.savez(tmp_path / "odd.npz", kind="FiniteStateController", logits=np.zeros((2, 2, 4, 3)))
    for name in ("text.npz", "other.npz", "odd.npz"):
        with pytest.raises(ValidationError, match="is no policy"):
            load_policy(tmp_path / name)


def test_a_table_that_does_not_fit_the_task_is_refused_by_what_does_not_fit():
    whiffs, hits = plumejax.make("WhiffStates-v0"), plumejax.make("FiniteMemory-Cosh-v0")
    states, actions = whiffs[0].observation_space(whiffs[1]).n, whiffs[0].num_actions

    def of(states, actions, recovery="learned", directions=FOUR):
        return ql.QTable(jnp.zeros((states, actions), jnp.float32), states, recovery, directions)

    def controller(actions):
        return FiniteStateController(jnp.zeros((2, 2, actions, 2), jnp.float32))

    turned = ql.Compass(*reversed(ql.compass(whiffs[0])))
    require_fit(of(states, actions), *whiffs)
    require_fit(of(states, actions, "circling", ql.compass(whiffs[0])), *whiffs)
    require_fit(controller(4), *hits)
    for policy, task, what in (
        (of(states + 1, actions), whiffs, f"observation of the task .*{states + 1} states"),
        (of(states, actions + 1), whiffs, f"action of the task .*one of {actions + 1}"),
        (of(states, actions, "circling", turned), whiffs, "directions of the task .*circling"),
        (of(states, 4), hits, f"observation of the task .*{states} states"),
        (controller(4), whiffs, "observation of the task .*a hit"),
        (controller(5), hits, "action of the task .*one of 5"),
    ):
        with pytest.raises(ValidationError, match=what):
            require_fit(policy, *task)
