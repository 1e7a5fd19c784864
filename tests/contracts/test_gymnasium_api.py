"""contracts: `gymnasium_api_v1.md`, the living document, and each row of `contract.md`'s tables."""

import math
import warnings

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import plumejax
from plumejax.adapters.gymnasium import EnvironmentState, PlumeEnv, PlumeSearchEnv
from plumejax.base.errors import (
    ComponentError,
    PlumeError,
    RenderingError,
    StateError,
    ValidationError,
)
from plumejax.search.motion import Moves
from plumejax.search.rewards import StepPenalty

UP, RIGHT, DOWN, LEFT = range(4)
ABOVE_GOAL = {"start": (8, 9)}
CORNER = {"start": (0, 0)}
RESET_KEYS = {
    *("seed", "episode", "episode_count", "step_count", "total_reward", "goal_reached"),
    *("agent_xy", "source_location", "goal_location"),
}
STEP_KEYS = {
    *("seed", "step_count", "total_reward", "goal_reached", "agent_xy", "source_location"),
    *("goal_location", "distance_to_goal", "concentration_at_agent"),
}


@pytest.fixture(scope="module")
def default():
    """`PlumeSearchEnv()` itself."""
    return PlumeSearchEnv()


# ---- V1's list ----


@pytest.mark.parametrize("task_id", ["PlumeSearch-v0", "PlumeSearchLocal-v0"])
def test_gymnasium_api_compliance(task_id):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gymnasium.make(f"plumejax/{task_id}").unwrapped)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_env(PlumeSearchEnv())
    assert all("not having a spec" in str(warning.message) for warning in caught)


def test_observation_space_consistency(default):
    env = default
    obs, _ = env.reset(seed=42)
    assert obs in env.observation_space
    env.action_space.seed(0)
    for _ in range(100):
        obs, _, terminated, truncated, _ = env.step(env.action_space.sample())
        assert obs in env.observation_space
        if terminated or truncated:
            break


def test_action_space_validation(default):
    env = default
    for action in [0, 1, 2, 3]:
        env.reset(seed=42)
        assert len(env.step(action)) == 5
    for invalid in [-1, 4, 100]:
        env.reset(seed=42)
        with pytest.raises(ValueError, match=f"action = {invalid} "):
            env.step(invalid)


def test_info_keys_present(default):
    _, info = default.reset(seed=42)
    assert "seed" in info
    *_, info = default.step(0)
    assert {"step_count", "total_reward", "goal_reached"} <= set(info)


def test_determinism():
    env1, env2 = PlumeSearchEnv(), PlumeSearchEnv()
    obs1, _ = env1.reset(seed=42)
    obs2, _ = env2.reset(seed=42)
    np.testing.assert_array_equal(obs1["agent_position"], obs2["agent_position"])
    for action in [0, 1, 2, 3, 0]:
        obs1, *outcome1, _ = env1.step(action)
        obs2, *outcome2, _ = env2.step(action)
        np.testing.assert_array_equal(obs1["agent_position"], obs2["agent_position"])
        assert outcome1 == outcome2


# ---- V1's rules ----


def test_spaces_are_those_of_the_contract(default):
    assert default.action_space == gymnasium.spaces.Discrete(4)
    cell = gymnasium.spaces.Box(0, 127, (2,), np.int32)
    field = gymnasium.spaces.Box(0.0, 1.0, (128, 128), np.float32)
    assert default.observation_space == gymnasium.spaces.Dict(
        {"agent_position": cell, "concentration_field": field, "source_location": cell}
    )


def test_observation_invariants(default):
    obs, _ = default.reset(seed=1)
    kinds = {name: (value.dtype, value.shape) for name, value in obs.items()}
    assert kinds == {
        "agent_position": (np.int32, (2,)),
        "concentration_field": (np.float32, (128, 128)),
        "source_location": (np.int32, (2,)),
    }
    assert all(type(value) is np.ndarray and np.isfinite(value).all() for value in obs.values())
    np.testing.assert_array_equal(obs["source_location"], [64, 64])


@pytest.mark.parametrize(
    ("action", "there"), [(UP, (5, 6)), (RIGHT, (6, 5)), (DOWN, (5, 4)), (LEFT, (4, 5))]
)
def test_movement_vectors(make_env, action, there):
    env = make_env()
    env.reset(seed=0, options={"start": (5, 5)})
    obs, *_, info = env.step(action)
    assert tuple(obs["agent_position"]) == info["agent_xy"] == there


def test_a_blocked_move_costs_a_step_and_nothing_else(make_env):
    env = make_env()
    env.reset(seed=0, options=CORNER)
    _, reward, terminated, truncated, info = env.step(LEFT)
    assert (reward, terminated, truncated) == (0.0, False, False)
    assert (info["agent_xy"], info["step_count"]) == ((0, 0), 1)


def test_metadata():
    assert PlumeSearchEnv.metadata == {"render_modes": ["human", "rgb_array"], "render_fps": 30}


def test_episodes_are_independent(make_env):
    env = make_env()
    first = env.reset(seed=5)[0]
    for action in (UP, UP, LEFT):
        env.step(action)
    jax.tree.map(np.testing.assert_array_equal, first, env.reset(seed=5)[0])


# ---- the default task, row by row ----


def test_default_task_is_the_registered_one(default):
    env, params = plumejax.make("PlumeSearch-v0")
    assert default.core == env
    jax.tree.map(np.testing.assert_array_equal, default.params, params)


def test_default_numbers(default):
    p = default.params
    numbers = (p.plume.sigma, *p.plume.source, p.ending.radius, p.max_steps, p.motion.step)
    assert numbers == (12.0, 64.0, 64.0, 5.0, 1000, 1.0)
    assert default.core.arena.grid_size == (128, 128)


def test_default_plume_is_one_at_the_source(default):
    obs, _ = default.reset(seed=0)
    field = obs["concentration_field"]
    assert field[64, 64] == 1.0
    np.testing.assert_allclose(field[64 + 5, 64 - 3], math.exp(-34 / 288), rtol=1e-6)


def test_starts_are_outside_the_goal_disc(make_env):
    env = make_env(goal_radius=6.0)
    for seed in range(30):
        x, y = env.reset(seed=seed)[1]["agent_xy"]
        assert math.hypot(x - 8, y - 6) > 6.0


def test_goal_boundary_is_inclusive(make_env):
    env = make_env(goal_radius=math.sqrt(2))
    env.reset(seed=0, options={"start": (10, 7)})
    _, reward, terminated, _, info = env.step(LEFT)
    assert (reward, terminated, info["distance_to_goal"]) == (1.0, True, pytest.approx(2**0.5))


def test_an_argument_leaves_the_other_defaults_alone():
    changed = PlumeSearchEnv(max_steps=7)
    expected = PlumeSearchEnv().params.replace(max_steps=np.int32(7))
    jax.tree.map(np.testing.assert_array_equal, changed.params, expected)


def test_the_source_of_another_grid_is_its_middle(make_env):
    assert make_env().reset(seed=0)[1]["source_location"] == (8, 6)


def test_local_task_observes_one_number():
    env = gymnasium.make("plumejax/PlumeSearchLocal-v0")
    assert env.observation_space == gymnasium.spaces.Box(0, 1, (1,), np.float32)


# ---- settled contradictions, row by row ----


@pytest.mark.parametrize("seed", [-1, 2**31, 1.0, True, "1", np.float32(1), np.bool_(True), [1]])
def test_seed_range(make_env, seed):
    env = make_env()
    with pytest.raises(ValidationError, match=r"seed = .*0 <= seed < 2\*\*31"):
        env.reset(seed=seed)
    assert env.state is EnvironmentState.CREATED
    assert env.episode_count == 0


@pytest.mark.parametrize("seed", [0, 2**31 - 1, np.int64(7), np.uint8(7)])
def test_seeds_that_are_allowed(make_env, seed):
    info = make_env().reset(seed=seed)[1]
    assert info["seed"] == int(seed)
    assert type(info["seed"]) is int


def test_seed_that_was_drawn_repeats_the_episode(make_env):
    env = make_env()
    env.reset(seed=1)
    drawn = [env.reset() for _ in range(3)]
    assert len({info["seed"] for _, info in drawn}) == 3
    for obs, info in drawn:
        again, _ = make_env().reset(seed=info["seed"])
        jax.tree.map(np.testing.assert_array_equal, obs, again)


def test_drawn_seeds_follow_from_the_first(make_env):
    streams = []
    for env in (make_env(), make_env()):
        env.reset(seed=9)
        streams.append([env.reset()[1]["seed"] for _ in range(3)])
    assert streams[0] == streams[1]


BAD_ACTIONS = [-1, 4, True, np.bool_(True), 1.0, np.float32(1), "0", None, [1], np.array([1])]


@pytest.mark.parametrize("action", [*BAD_ACTIONS, 10**30])
def test_invalid_action_is_a_validation_error_and_changes_nothing(make_env, action):
    env = make_env()
    env.reset(seed=0, options=CORNER)
    with pytest.raises(ValidationError, match="action = "):
        env.step(action)
    assert (env.step_count, env.agent_state.position) == (0, (0, 0))
    assert env.step(RIGHT)[4]["agent_xy"] == (1, 0)


@pytest.mark.parametrize("action", [1, np.int8(1), np.uint64(1), np.array(1), jnp.int32(1)])
def test_integers_of_every_kind_are_actions(make_env, action):
    env = make_env()
    env.reset(seed=0, options=CORNER)
    assert env.step(action)[4]["agent_xy"] == (1, 0)


def ended(make_env, **arguments):
    env = make_env(**arguments)
    env.reset(seed=0, options=ABOVE_GOAL)
    return env, env.step(DOWN)


def test_step_after_the_end_is_inert_and_warns_once(make_env):
    env, (obs, _, terminated, truncated, info) = ended(make_env)
    obs["concentration_field"][:] = -1.0  # the caller's own array
    with pytest.warns(UserWarning, match="after the end") as caught:
        outcomes = [env.step(action) for action in (UP, LEFT)]
    assert len(caught) == 1
    for again, *rest in outcomes:
        assert tuple(again["agent_position"]) == (8, 8)
        assert again in env.observation_space
        assert rest == [0.0, terminated, truncated, info]
    assert env.state is EnvironmentState.TERMINATED
    env.reset(options=ABOVE_GOAL)
    env.step(DOWN)
    with pytest.warns(UserWarning, match="after the end"):
        env.step(UP)


def test_strict_forbids_a_step_after_the_end(make_env):
    env, _ = ended(make_env, strict=True)
    with pytest.raises(StateError, match="after the end"):
        env.step(UP)
    assert env.state is EnvironmentState.TERMINATED


def test_info_has_the_keys_and_types_of_the_contract(make_env):
    env = make_env()
    _, at_reset = env.reset(seed=3, options=CORNER)
    *_, at_step = env.step(UP)
    assert set(at_reset) == RESET_KEYS
    assert set(at_step) == STEP_KEYS
    kinds = {
        **dict.fromkeys(("seed", "episode", "episode_count", "step_count"), int),
        **dict.fromkeys(("total_reward", "distance_to_goal", "concentration_at_agent"), float),
        **dict.fromkeys(("agent_xy", "source_location", "goal_location"), tuple),
        "goal_reached": bool,
    }
    for info in (at_reset, at_step):
        assert {key: type(value) for key, value in info.items()} == {k: kinds[k] for k in info}
        assert {type(n) for key in info if "_xy" in key or "loc" in key for n in info[key]} == {int}
    assert at_step["agent_xy"] == (0, 1)
    assert at_step["distance_to_goal"] == pytest.approx(math.hypot(8, 5))
    assert at_step["concentration_at_agent"] == pytest.approx(math.exp(-89 / 288))
    assert at_reset["source_location"] == at_reset["goal_location"] == (8, 6)


def test_episode_counts(make_env):
    env = make_env()
    infos = [env.reset()[1] for _ in range(3)]
    assert [info["episode"] for info in infos] == [1, 2, 3]
    assert [info["episode_count"] for info in infos] == [1, 2, 3]
    assert env.episode_count == 3


def test_total_reward_may_be_negative(make_env):
    env = make_env(reward_fn=StepPenalty())
    env.reset(seed=0, options=CORNER)
    *_, info = env.step(UP)
    assert info["total_reward"] == pytest.approx(-0.01)


def test_reward_and_flags_are_python_values(make_env):
    env = make_env()
    env.reset(seed=0, options=CORNER)
    _, *outcome, _ = env.step(UP)
    assert [type(value) for value in outcome] == [float, bool, bool]


def test_render_before_reset_and_after_close(make_env):
    env = make_env(render_mode="rgb_array")
    with pytest.raises(StateError, match=r"render\(\) before the first reset"):
        env.render()
    env.reset(seed=0)
    env.close()
    with pytest.raises(StateError, match=r"render\(\) after close"):
        env.render()


@pytest.mark.parametrize("render_mode", ["ansi", "RGB_ARRAY", 3, ["human"]])
def test_render_mode_at_construction(render_mode):
    with pytest.raises(ValidationError, match=r"render_mode = .*'human', 'rgb_array'"):
        PlumeSearchEnv(render_mode=render_mode)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"begin": (1, 1)}, "options key = 'begin'"),
        ([("start", (1, 1))], "options = "),
        ({"start": (16, 0)}, r"options\['start'\] = \(16, 0\)"),
        ({"start": (1.5, 0)}, r"options\['start'\]"),
        ({"start": (1, 2, 3)}, r"options\['start'\]"),
        ({"start": "here"}, r"options\['start'\]"),
        ({"start": (float("nan"), 0)}, r"options\['start'\]"),
        ({"source": (99, 0)}, "plume.source"),
        ({"source": 3}, "plume.source"),
        ({"params": {"plume.width": 3.0}}, "plume.width"),
        ({"params": {"plume.sigma": -1.0}}, "plume.sigma"),
        ({"params": 3}, r"options\['params'\] = 3"),
        ({"params": {"sensor.saturation": 0.5}}, "observation space"),
    ],
)
def test_options_that_are_refused_change_nothing(make_env, options, message):
    env = make_env()
    env.reset(seed=4)
    before = (env.agent_state, env.seed, env.episode_count, env.np_random.bit_generator.state)
    with pytest.raises(ValidationError, match=message):
        env.reset(seed=5, options=options)
    after = (env.agent_state, env.seed, env.episode_count, env.np_random.bit_generator.state)
    assert before == after


def test_options_hold_for_one_episode(make_env):
    env = make_env()
    options = {"start": (2, 3), "source": (4, 4), "params": {"plume.sigma": 2.0, "max_steps": 1}}
    obs, info = env.reset(seed=0, options=options)
    assert (info["agent_xy"], info["source_location"]) == ((2, 3), (4, 4))
    assert obs["concentration_field"][4, 6] == pytest.approx(math.exp(-0.5))
    _, _, terminated, truncated, info = env.step(UP)
    assert (terminated, truncated, info["agent_xy"]) == (True, True, (2, 4))
    starts = {env.reset()[1]["agent_xy"] for _ in range(5)}
    assert len(starts) > 1
    assert env.agent_state.position in starts
    assert env.reset(options={"start": (0, 0)})[1]["source_location"] == (8, 6)
    assert not env.step(UP)[3]


# ---- the classes of the seeds ----


def test_plume_env_is_an_alias():
    assert PlumeEnv is PlumeSearchEnv is plumejax.PlumeSearchEnv is plumejax.PlumeEnv


def test_constructor_is_keyword_only():
    with pytest.raises(TypeError):
        PlumeSearchEnv(None)


@pytest.mark.parametrize(
    ("argument", "role", "method"),
    [
        ("plume_model", "plume", "default_params"),
        ("reward_fn", "reward", "default_params"),
        ("observation_model", "sensor", "default_params"),
        ("action_processor", "motion", "default_params"),
    ],
)
def test_component_without_its_methods(argument, role, method):
    with pytest.raises(ComponentError, match=rf"{role} = .* lacks the method {method}\(\)"):
        PlumeSearchEnv(**{argument: object()})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"grid_size": (0, 5)}, "grid_size"),
        ({"grid_size": (5,)}, "grid_size"),
        ({"grid_size": "128x128"}, "grid_size"),
        ({"max_steps": 0}, "max_steps"),
        ({"max_steps": 2.5}, "max_steps"),
        ({"max_steps": True}, "max_steps"),
        ({"goal_radius": 0.0}, "goal_radius"),
        ({"goal_radius": -1.0}, "goal_radius"),
        ({"goal_radius": float("nan")}, "goal_radius"),
        ({"goal_radius": float("inf")}, "goal_radius"),
        ({"source_location": (200, 3)}, "plume.source"),
        ({"source_location": 3}, "plume.source"),
        ({"config": {"task": "Nowhere-v0"}}, "Nowhere-v0"),
        ({"config": 7}, "config = 7"),
    ],
)
def test_arguments_that_are_refused(arguments, message):
    with pytest.raises(ValidationError, match=message):
        PlumeSearchEnv(**arguments)


class Careful(Moves):
    """Four moves, of which `validate_action` lets two through."""

    def validate_action(self, action):
        return action in (UP, LEFT)


def test_validate_action_of_the_action_processor_is_used(make_env):
    env = make_env(action_processor=Careful())
    env.reset(seed=0, options=CORNER)
    env.step(UP)
    with pytest.raises(ValidationError, match="action = 1"):
        env.step(RIGHT)


def test_spaces_are_the_same_object_at_every_call(make_env):
    env = make_env()
    spaces = (env.action_space, env.observation_space)
    env.reset(seed=0)
    env.step(UP)
    assert spaces[0] is env.action_space
    assert spaces[1] is env.observation_space


def test_underscored_names_read_the_same(make_env):
    env = make_env()
    env.reset(seed=8)
    env.step(UP)
    for name in ("state", "agent_state", "episode_count", "step_count", "seed"):
        assert getattr(env, f"_{name}") == getattr(env, name)


def test_agent_state_is_a_host_view(make_env):
    env, _ = ended(make_env)
    agent = env.agent_state
    assert (agent.position, agent.orientation) == ((8, 8), 0.0)
    assert (agent.step_count, agent.total_reward, agent.goal_reached) == (1, 1.0, True)


def test_render_obeys_render_mode(make_env):
    env = make_env(render_mode="rgb_array")
    env.reset(seed=0)
    for picture in (env.render(), env.render(mode="rgb_array")):
        assert (picture.shape, picture.dtype) == ((360, 480, 3), np.uint8)  # 30 pixels a cell
    with pytest.raises(ValidationError, match="mode = 'human'"):
        env.render(mode="human")


def test_render_without_a_mode_says_what_to_do(make_env):
    env = make_env()
    env.reset(seed=0)
    with pytest.raises(RenderingError, match="render_mode='rgb_array'"):
        env.render()


def test_human_rendering_returns_none(make_env):
    env = make_env(render_mode="human")
    env.reset(seed=0)
    env.step(UP)
    assert env.render() is None
    env.close()


def test_rendering_does_not_affect_the_episode(make_env):
    plain, drawn = make_env(), make_env(render_mode="rgb_array")
    for env in (plain, drawn):
        env.reset(seed=2)
    for action in (UP, LEFT, LEFT, DOWN):
        drawn.render()
        a, b = plain.step(action), drawn.step(action)
        jax.tree.map(np.testing.assert_array_equal, a, b)


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (ValidationError, ValueError),
        (StateError, RuntimeError),
        (ComponentError, TypeError),
        (RenderingError, RuntimeError),
    ],
)
def test_errors_are_also_the_usual_ones(error, builtin):
    assert issubclass(error, PlumeError)
    assert issubclass(error, builtin)
