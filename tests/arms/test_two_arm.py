"""tests/arms/test_two_arm: the rules of a step against the reference's records, and one by one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plumejax
from plumejax.arms import scripted, state_from, two_arm
from plumejax.arms.drawer import Drawer
from plumejax.arms.handoff import HandOff
from plumejax.arms.lift import Lift
from plumejax.base.errors import ValidationError
from plumejax.evaluation.episodes import play
from plumejax.policies.reactive import Random

KEY = jax.random.key(0)


def actions_of(record):
    """float64[T, 2, 4]."""
    steps = record["steps"]
    if "action" in steps[0]:
        return np.asarray([step["action"] for step in steps])
    t, i = np.arange(len(steps))[:, None], np.arange(2)[None]
    return np.stack(
        [
            0.05 * np.sin(0.3 * t + i),
            0.04 * np.cos(0.2 * t + i),
            0.06 * np.sin(0.5 * t - i),
            0.5 + 0.5 * np.sin(0.7 * t + 2 * i),
        ],
        axis=-1,
    )


@jax.jit(static_argnums=0)
def replayed(env, params, state, actions):
    """What each step of an episode led to, leaves lead with T."""

    def one(state, action):
        _, state, reward, terminated, truncated, _ = env.step(KEY, state, action, params)
        return state, (state, reward, terminated, truncated)

    return jax.lax.scan(one, state, actions)[1]


def check_record(record, view, atol):
    env, params = two_arm(record["task"], view=view)
    params = params.replace(max_steps=np.int32(record.get("max_steps", 200)))
    begin = state_from(record["task"], record, view=view)
    dtype = begin.goal.dtype
    actions = jnp.asarray(actions_of(record), dtype)
    states, reward, terminated, truncated = replayed(env, params, begin, actions)
    n, phases, steps = len(env.task.objects), env.task.phases(), record["steps"]

    def of(name):
        return np.asarray([step[name] for step in steps])

    for ours, name in (
        (reward, "reward"),
        (states.arm_position, "arm"),
        (states.gripper, "grip"),
        (states.object_position[:, :n], "obj"),
    ):
        np.testing.assert_allclose(ours, of(name), rtol=0, atol=atol, err_msg=name)
    assert [phases[i] for i in states.phase] == of("phase").tolist()
    np.testing.assert_array_equal(states.held[:, :n], of("held"))
    np.testing.assert_array_equal(terminated | truncated, of("done"))
    if "success" in steps[0]:
        np.testing.assert_array_equal(terminated, of("success"))
        np.testing.assert_array_equal(states.phase_complete, of("phase_complete"))
        np.testing.assert_allclose(states.total_reward[-1], record["total"], rtol=0, atol=20 * atol)
    assert not np.any(states.held[:, n:])
    assert not np.any(states.object_position[:, n:])
    np.testing.assert_allclose(
        np.diff([begin.arm_position, *states.arm_position], axis=0) / 0.05,
        states.arm_velocity,
        atol=1e-5,
    )


@pytest.mark.parametrize("number", range(9))
def test_closed_loops_of_the_reference(records, number):
    check_record(records["closed_loop"][number], "named", 1e-6)


@pytest.mark.parametrize("number", range(2))
def test_open_loops_of_the_reference(records, number):
    check_record(records["open_loop"][number], "named", 1e-6)


@pytest.fixture
def x64():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 3, 6, 9, 10])
def test_the_records_in_double_precision(x64, records, number):
    """Places and actions are recorded to 9 decimals, and what they are off by adds up."""
    record = (records["closed_loop"] + records["open_loop"])[number]
    check_record(record, "named", 2e-9 if number >= 9 else 1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 3, 6])
def test_controllers_act_as_recorded_in_double_precision(x64, records, number):
    """With the controller's own actions, not rounded, all is met to what the start is off by."""
    record = records["closed_loop"][number]
    env, params = two_arm(record["task"], view="named")
    begin, policy = state_from(record["task"], record, view="named"), scripted(env, params)

    @jax.jit
    def run(begin):
        def one(carry, _):
            action, memory = policy.act(KEY, carry[1], carry[0].observation)
            _, state, reward, *_ = env.step(KEY, carry[0], action, params)
            return (state, memory), (action, reward, state.arm_position, state.object_position)

        return jax.lax.scan(one, (begin, policy.init(KEY)), None, len(record["steps"]))[1]

    for ours, name in zip(run(begin), ("action", "reward", "arm", "obj"), strict=True):
        theirs = np.asarray([step[name] for step in record["steps"]])
        assert ours.dtype == np.float64
        mine = np.asarray(ours)[:, : theirs.shape[1]]
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=2e-9, err_msg=name)


MOST_STEPS = {"lift": 36, "handoff": 20, "drawer": 14}


def test_controllers_finish_every_episode(task):
    env, params = task
    outcomes = play(env, scripted(env, params), KEY, params, 4096)
    assert np.all(outcomes.found)
    assert np.max(outcomes.steps) <= MOST_STEPS[env.task.name]


def test_starts_are_drawn_as_they_should_be(task):
    env, params = task
    _, state = jax.vmap(env.reset, (0, None))(jax.random.split(KEY, 4096), params)
    objects, goal, arms = (
        np.asarray(x) for x in (state.object_position, state.goal, state.arm_position)
    )
    if env.task.name == "lift":
        low, high = [-0.05, -0.1, 0.08], [0.05, 0.0, 0.08]
        np.testing.assert_allclose(goal[:, 0].min(0), [-0.2, 0.15, 0.05], atol=1e-3)
        np.testing.assert_allclose(goal[:, 0].max(0), [0.2, 0.3, 0.05], atol=1e-3)
        assert np.all(arms == arms[:1])
    elif env.task.name == "handoff":
        low, high = [-0.4, -0.12, 0.08], [-0.36, -0.08, 0.08]
        np.testing.assert_array_equal(goal[:, 0], objects[:, 0])
        offset = np.asarray([0.05, 0.0, 0.17], np.float32)
        np.testing.assert_allclose(
            arms[:, 0] - objects[:, 0], np.tile(offset, (4096, 1)), atol=1e-6
        )
    else:
        low, high = [-0.15, -0.13, 0.1], [-0.13, -0.11, 0.1]
        np.testing.assert_array_equal(goal[:, :2], objects)
        # One offset, added on the left and taken off on the right.
        total = objects.sum(1)
        np.testing.assert_allclose(total, np.tile(total[:1], (4096, 1)), atol=1e-6)
    np.testing.assert_allclose(objects[:, 0].min(0), low, atol=1e-3)
    np.testing.assert_allclose(objects[:, 0].max(0), high, atol=1e-3)
    # Uniform: the variance is that, within 5 standard errors.
    spread = np.var(objects[:, 0, :2], axis=0) / ((np.subtract(high, low)[:2] ** 2) / 12)
    assert np.all(np.abs(spread - 1) < 5 * np.sqrt(0.8 / 4096))


def held_state(**parts):
    """Of lift, in which some things are as told."""
    state = state_from(
        "lift",
        {
            "arm": [[0, 0, 0.2], [0.3, 0, 0.2]],
            "grip": [1, 1],
            "obj": [[0, 0, 0.08]],
            "held": [[False, False]],
        },
    )
    return state.replace(**parts)


@pytest.fixture(scope="module")
def lift():
    return two_arm("lift")


def after(lift, state, first, second):
    env, params = lift
    return env.step(KEY, state, jnp.asarray([first, second], jnp.float32), params)[1]


STILL = [0.0, 0.0, 0.0]


def test_grippers_take_hold_within_reach_and_let_go_when_open(lift):
    near, far = [0.0, 0.0, 0.1625], [0.0, 0.0, 0.1626]
    for place, takes in ((near, True), (far, False)):
        state = held_state(arm_position=jnp.asarray([place, [0.3, 0, 0.2]], jnp.float32))
        assert bool(after(lift, state, [*STILL, 0.24], [*STILL, 1.0]).held[0, 0]) is takes
    state = held_state(arm_position=jnp.asarray([near, [0.3, 0, 0.2]], jnp.float32))
    assert not after(lift, state, [*STILL, 0.25], [*STILL, 1.0]).held[0, 0]
    holding = after(lift, state, [*STILL, 0.0], [*STILL, 1.0])
    # It is where its holder is, and stays held until the gripper is more open than 0.85.
    np.testing.assert_array_equal(holding.object_position[0], holding.arm_position[0])
    assert after(lift, holding, [*STILL, 0.85], [*STILL, 1.0]).held[0, 0]
    let_go = after(lift, holding, [*STILL, 0.86], [*STILL, 1.0])
    assert not let_go.held[0, 0]
    np.testing.assert_allclose(let_go.object_position[0, 2], 0.1625 - 0.015, atol=1e-6)


def test_two_holders_have_it_between_them_however_far_they_are(lift):
    state = held_state(held=jnp.asarray([[True, True], [False, False]]))
    new = after(lift, state, [0.0, 0.05, 0.0, 0.5], [0.05, 0.0, 0.0, 0.5])
    assert np.all(new.held[0])
    np.testing.assert_allclose(new.object_position[0], new.arm_position.mean(0), atol=1e-6)


def test_what_nobody_holds_falls_to_the_surface(lift):
    state = held_state()
    for height in (0.065, 0.05, 0.05):
        state = after(lift, state, [*STILL, 1.0], [*STILL, 1.0])
        np.testing.assert_allclose(state.object_position[0, 2], height, atol=1e-7)


def test_bounds_are_kept_by_clipping(lift):
    state = held_state(arm_position=jnp.asarray([[0.58, 0, 0.2], [0.3, 0, 0.2]], jnp.float32))
    new = after(lift, state, [5.0, -5.0, 0.01, 7.0], [*STILL, -3.0])
    np.testing.assert_allclose(new.arm_position[0], [0.6, -0.08, 0.21], atol=1e-6)
    np.testing.assert_allclose(new.arm_velocity[0], [0.4, -1.6, 0.2], atol=1e-4)
    np.testing.assert_array_equal(new.gripper, [1.0, 0.0])


def test_a_step_out_of_time_does_not_begin_a_phase(lift):
    env, params = lift
    state = held_state(arm_position=jnp.asarray([[0.1, 0, 0.08], [0.1, 0, 0.08]], jnp.float32))
    actions = jnp.asarray([[*STILL, 1.0]] * 2, jnp.float32)
    for limit, phase in ((2, 1), (1, 0)):
        own = params.replace(max_steps=np.int32(limit))
        _, _, _, terminated, truncated, info = env.step(KEY, state, actions, own)
        assert info["phase_complete"]
        assert info["previous_phase"] == 0
        assert info["phase"] == phase
        assert bool(truncated) is (limit == 1)
        assert not terminated


class ShortLift(Lift):
    """Lifts the cube just not high enough."""

    def waypoints(self, seen):
        places, grippers = super().waypoints(seen)
        return places.at[2, :, 2].set(0.305), grippers


class ShortHandOff(HandOff):
    """Both hold the baton, just not near enough to where it changes hands."""

    def waypoints(self, seen):
        places, grippers = super().waypoints(seen)
        return places.at[2, :, 0].add(-0.1), grippers


class OneHanded(Drawer):
    """One arm pulls the drawer all the way, the other has let go."""

    def waypoints(self, seen):
        places, grippers = super().waypoints(seen)
        return places.at[2, 0, 1].add(0.2), grippers.at[2, 1].set(1.0)


STALLS = {
    # What finishing and a good stall come to for an arm by the reference rewards.
    "lift": (ShortLift(), 27, 168),
    "handoff": (ShortHandOff(), 8, 194),
    "drawer": (OneHanded(), 7, 173),
}


class Idle(Random):
    """Does nothing, with open grippers."""

    def act(self, key, carry, observation):
        return jnp.asarray([[*STILL, 1.0]] * 2, jnp.float32), carry


@pytest.mark.slow
def test_reference_rewards_pay_for_stalling_and_progress_does_not(task):
    name = task[0].task.name
    stall, finishing, stalling = STALLS[name]
    played = {}
    for reward in ("reference", "progress"):
        env, params = two_arm(name, reward=reward, view="named")
        policy = scripted(env, params)
        for who, each in (
            ("finishes", policy),
            ("stalls", policy.replace(task=stall)),
            ("idles", Idle(env.action_space(params))),
        ):
            played[reward, who] = play(env, each, KEY, params, 64)
    for (reward, who), outcomes in played.items():
        assert np.all(outcomes.found) if who == "finishes" else not np.any(outcomes.found)
        # That of an episode is the sum of both arms.
        pay = outcomes.reward / 2
        if reward == "progress":
            worth = np.abs(pay - 2.0) < 1e-4 if who == "finishes" else pay < 1.0
            assert np.all(worth)
    assert abs(played["reference", "finishes"].reward.mean() / 2 - finishing) < 2
    assert played["reference", "stalls"].reward.mean() / 2 > stalling - 8


@pytest.mark.parametrize("view", ["flat", "pictures"])
def test_views_say_the_same(view):
    env, params = two_arm("handoff", view=view)
    record = state_from("handoff", HELD, view=view)
    named = state_from("handoff", HELD, view="named").observation
    seen = env.view.named(env.task, record.observation)
    rgb = dict(seen).pop("rgb", None)
    for path, value in jax.tree_util.tree_leaves_with_path(named):
        found = seen
        for part in path:
            found = found[part.key]
        np.testing.assert_array_equal(found, value)
    assert env.observation_space(params).contains(record.observation)
    if rgb is not None:
        assert rgb.shape == (2, 48, 48, 3)
        assert rgb.dtype == np.uint8


HELD = {
    "arm": [[-0.3, 0.1, 0.2], [0.3, -0.2, 0.25]],
    "grip": [0.0, 0.7],
    "obj": [[-0.3, 0.1, 0.2]],
    "held": [[True, False]],
}


def seen_from_above(task, start):
    return np.asarray(state_from(task, start, view="pictures").observation["rgb"][0])


def test_pixels_are_the_reference_ones():
    """Seed 0 of the reference; squares as the design page gives them."""
    start = {"grip": [1, 1], "held": [[False, False]]}
    lift = {
        "arm": [[-0.28, -0.05, 0.24], [0.28, -0.05, 0.24]],
        "obj": [[0.013696169, -0.073021329, 0.08]],
    }
    image = np.asarray(state_from("lift", {**start, **lift}, view="pictures").observation["rgb"][0])
    arms = [(slice(20, 23), slice(11, 14)), (slice(20, 23), slice(33, 36))]
    assert np.all(image[arms[0]] == (0, 180, 255))
    assert np.all(image[arms[1]] == (255, 120, 0))
    assert np.all(image[19:22, 23:26] == (120, 255, 120))
    assert np.count_nonzero(image.any(-1)) == 27
    baton = {
        "arm": [[-0.324521533, -0.109208531, 0.25], [0.05, 0.05, 0.28]],
        "obj": [[-0.374521533, -0.109208531, 0.08]],
    }
    image = np.asarray(
        state_from("handoff", {**start, **baton}, view="pictures").observation["rgb"][0]
    )
    assert np.all(image[24:27, 24:27] == (255, 120, 0))
    assert np.all(image[17:20, 7:10] == (120, 255, 120))
    # The baton is painted over a column of the first arm.
    assert np.count_nonzero(np.all(image == (0, 180, 255), axis=-1)) == 6


def test_bad_numbers_are_refused():
    for path, value, said in (
        ("dt", 0.0, "dt"),
        ("action_limit", -1.0, "action_limit"),
        ("workspace_high", [-0.7, 0.5, 0.5], "workspace_high"),
        ("surface", 2.0, "surface"),
        ("close_below", 1.5, "close_below"),
        ("task.radius", 0.0, r"task\.radius"),
        ("task.open", 1.2, r"task\.open"),
        ("max_steps", 0, "max_steps"),
        ("task.scale", np.nan, r"task\.scale"),
    ):
        with pytest.raises(ValidationError, match=said):
            plumejax.make("TwoArm-Lift-v0", overrides={path: value})
    with pytest.raises(ValidationError, match="reward"):
        two_arm("lift", reward="dense")
    with pytest.raises(ValidationError, match="view"):
        two_arm("lift", view="raw")
    with pytest.raises(KeyError, match="drawer, handoff, lift"):
        two_arm("nope")
    for bad in (
        {"arm": [[0, 0, 0]]},
        {**HELD, "obj": [[0, 0]]},
        {**HELD, "goal": {"a": [0, 0, 0]}},
    ):
        with pytest.raises(ValidationError, match=r"initial|goal"):
            state_from("handoff", bad)


@pytest.mark.slow
def test_the_mixture_plays_each_of_its_tasks():
    env, params = plumejax.make("TwoArm-Multi-v0")
    outcomes = play(env, scripted(env, params), KEY, params, 256)
    assert np.all(outcomes.found)
    _, state = jax.vmap(env.reset, (0, None))(jax.random.split(KEY, 256), params)
    counts = np.bincount(state.task, minlength=3)
    # Of 256 draws a third each, within 4 standard errors.
    assert np.all(np.abs(counts - 256 / 3) < 4 * np.sqrt(256 * 2 / 9))
    for i, name in enumerate(("lift", "handoff", "drawer")):
        own, numbers = two_arm(name)
        alone = own.reset(KEY, numbers)[1]
        which = int(np.argmax(np.asarray(state.task) == i))
        one = jax.tree.map(lambda x, which=which: x[which], state)
        assert set(own.info(alone, numbers)) <= set(env.info(one, params))


def test_an_action_of_another_shape_changes_nothing(lift):
    env, params = lift
    state = held_state()
    for action in (jnp.zeros(8), jnp.zeros((2, 3)), jnp.full((2, 4), jnp.nan)):
        assert env.check(state, action, params) == 4
        _, after, reward, *_ = env.step(KEY, state, action, params)
        jax.tree.map(np.testing.assert_array_equal, after, state)
        assert not np.any(reward)
    for bad in ({"view": 3}, {"reward": None}, {"view": Lift}):
        with pytest.raises(ValidationError, match=next(iter(bad))):
            two_arm("lift", **bad)
