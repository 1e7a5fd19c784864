"""adapters: PlumeSearchEnv beside the functional core, its configs, copies and registration."""

import copy
import pickle
import subprocess
import sys
import warnings
from dataclasses import dataclass

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import struct
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import RecordEpisodeStatistics

import plumejax
from plumejax.adapters import gymnasium as adapter
from plumejax.adapters.gymnasium import EnvironmentConfig, PlumeSearchEnv
from plumejax.adapters.gymnasium_ids import register_all
from plumejax.base import registry
from plumejax.base.errors import RenderingError, ValidationError
from plumejax.plumes.gaussian import GaussianPlume
from plumejax.search.motion import Oriented, RunAndTumble
from plumejax.search.sensors import LocalConcentration
from plumejax.search.tasks import plume_search_local

UP, RIGHT, DOWN, LEFT = range(4)
SMALL = {"grid_size": (16, 12), "goal_radius": 2.0, "max_steps": 40}


def small_env(**arguments):
    return PlumeSearchEnv(**{**SMALL, "observation_model": LocalConcentration(), **arguments})


def assert_same(a, b):
    jax.tree.map(np.testing.assert_array_equal, a, b)


# ---- beside the functional core ----


def test_the_functional_core_reproduces_an_episode():
    env = small_env(action_processor=RunAndTumble())  # its steps are random
    obs, info = env.reset(seed=17)
    key = jax.random.key(info["seed"])
    expected, state = env.core.reset(jax.random.fold_in(key, 0), env.params)
    assert_same(obs, expected)
    for t, action in enumerate([0, 1, 1, 0, 1, 0], start=1):
        obs, *outcome, info = env.step(action)
        expected, state, *expected_outcome, core_info = env.core.step(
            jax.random.fold_in(key, t), state, jnp.int32(action), env.params
        )
        assert_same(obs, expected)
        assert outcome == [x.item() for x in expected_outcome]
        assert info["agent_xy"] == tuple(state.agent.position.astype(int).tolist())
        assert info["distance_to_goal"] == core_info["distance"].item()
        assert env.agent_state.orientation == state.agent.heading.item()


def test_concentration_at_agent_is_that_of_the_plume():
    env = small_env()
    obs, _ = env.reset(seed=1)
    obs, *_, info = env.step(UP)
    assert info["concentration_at_agent"] == obs[0].item()


def test_nothing_is_compiled_after_the_first_episode():
    env = small_env()
    env.reset(seed=0)
    env.reset(options={"start": (1, 1)})
    env.step(UP)
    counts = (adapter._reset._cache_size(), adapter._step._cache_size())
    again = small_env(max_steps=30, source_location=(3, 3), goal_radius=1.0)
    for start in [(0, 0), (5, 5)]:
        again.reset(options={"start": start, "source": (4, 7), "params": {"plume.sigma": 5.0}})
        again.step(np.int64(LEFT))
        again.step(RIGHT)
        again.reset()
        again.step(UP)
    assert (adapter._reset._cache_size(), adapter._step._cache_size()) == counts


def test_observations_belong_to_the_caller():
    env = small_env()
    obs, _ = env.reset(seed=3)
    obs[:] = 7.0
    np.testing.assert_array_less(env.reset(seed=3)[0], 1.01)


# ---- which task ----


def test_components_win_over_config_over_arguments():
    config = EnvironmentConfig(
        static={"grid_size": (16, 12), "motion": Oriented()}, overrides={"max_steps": 9}
    )
    env = PlumeSearchEnv(
        config=config, grid_size=(20, 20), max_steps=5, action_processor=RunAndTumble()
    )
    assert env.core.arena.grid_size == (16, 12)
    assert env.max_steps == 9
    assert env.action_processor == RunAndTumble()


def test_a_plume_that_is_given_sets_the_grid():
    env = PlumeSearchEnv(plume_model=GaussianPlume((30, 20)))
    assert env.observation_space["concentration_field"].shape == (20, 30)


def test_config_names_the_task():
    env = PlumeSearchEnv(config={"task": "PlumeSearchLocal-v0", "static": {"grid_size": [8, 8]}})
    assert env.core == plumejax.make("PlumeSearchLocal-v0", grid_size=(8, 8))[0]


def test_config_from_toml(tmp_path):
    file = tmp_path / "task.toml"
    file.write_text(
        'task = "PlumeSearchLocal-v0"\n[static]\ngrid_size = [16, 12]\n'
        '[overrides]\nmax_steps = 7\nplume.sigma = 3.5\n"ending.radius" = 1.5\n'
    )
    config = EnvironmentConfig.from_toml(file)
    assert config == EnvironmentConfig(
        "PlumeSearchLocal-v0",
        {"grid_size": (16, 12)},
        {"max_steps": 7, "plume.sigma": 3.5, "ending.radius": 1.5},
    )
    env = PlumeSearchEnv(config=config)
    assert (env.max_steps, env.params.plume.sigma.item()) == (7, 3.5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("task = ", "cannot be read"),
        ("tusk = 'PlumeSearch-v0'", "'tusk'"),
        ("task = 3", "config task = 3"),
        ("static = 3", "config static = 3"),
        ("overrides = [1]", "config overrides"),
    ],
)
def test_config_files_that_are_refused(tmp_path, text, message):
    file = tmp_path / "task.toml"
    file.write_text(text)
    with pytest.raises(ValidationError, match=message):
        EnvironmentConfig.from_toml(file)
    with pytest.raises(ValidationError, match="cannot be read"):
        EnvironmentConfig.from_toml(tmp_path / "missing.toml")


def test_task_and_config_must_agree():
    with pytest.raises(ValidationError, match="PlumeSearchLocal-v0"):
        PlumeSearchEnv(task="PlumeSearchLocal-v0", config=EnvironmentConfig())


# ---- copies ----


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))]
)
def test_a_copy_goes_on_alike_and_apart(copied):
    env = small_env(render_mode="human", action_processor=RunAndTumble())
    env.reset(seed=5)
    env.step(1)
    twin = copied(env)
    for action in (1, 0, 1):
        assert_same(env.step(action), twin.step(action))
    assert_same(env.reset(), twin.reset())
    before = env.agent_state
    twin.step(1)
    assert env.agent_state == before
    env.close()
    twin.step(0)
    twin.close()


# ---- a step or reset completes or leaves things as they were ----


def test_a_window_that_fails_leaves_the_episode_as_it_was(monkeypatch):
    env = small_env(render_mode="human")
    monkeypatch.setenv("SDL_VIDEODRIVER", "nonsense")
    with pytest.raises(RenderingError, match="SDL_VIDEODRIVER=dummy"):
        env.reset(seed=1)
    assert (env.state, env.episode_count, env.seed) == ("created", 0, None)
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    env.reset(seed=1, options={"start": (0, 0)})
    env.close()


# ---- a user's own components ----


@struct.dataclass
class BonusParams:
    bonus: jax.Array


@dataclass(frozen=True)
class Bonus:
    """A reward in ten lines."""

    def default_params(self):
        return BonusParams(bonus=np.float32(0.5))

    def reward(self, scene, params):
        return scene.air.concentration[0] + params.reward.bonus


def test_a_component_of_ones_own():
    env = small_env(reward_fn=Bonus(), config={"overrides": {"reward.bonus": 2.0}})
    env.reset(seed=2)
    obs, reward, *_ = env.step(UP)
    assert reward == pytest.approx(obs[0].item() + 2.0)


def test_oriented_motion_turns():
    env = small_env(action_processor=Oriented(), render_mode="rgb_array")
    env.reset(seed=0, options={"start": (3, 3)})
    env.step(1)
    assert env.agent_state.orientation == 90.0
    assert env.step(0)[4]["agent_xy"] == (3, 4)
    picture = env.render()
    side = picture.shape[0] // 12
    column = np.all(picture[:, 3 * side + side // 2] == 255, axis=-1)
    middle = (12 - 4) * side - side // 2
    reach = [int(np.argmin(column[middle::way])) for way in (-1, 1)]
    assert reach[0] > reach[1] > 0  # the arrowhead is longer upwards


def test_a_picture_shows_where_the_agent_has_been():
    env = small_env(render_mode="rgb_array")
    ways = []
    for action in (0, 1):  # there by two ways
        env.reset(seed=0, options={"start": (3, 3)})
        for step in (action, 1 - action):
            env.step(step)
        ways.append(env.render())
        place = env.agent_state.position
    env.reset(seed=0, options={"start": place})
    assert np.any(ways[0] != ways[1])
    assert np.any(ways[0] != env.render())


# ---- registration ----


def test_every_task_is_known_to_gymnasium():
    for task in plumejax.registered_tasks().values():
        assert f"plumejax/{task.id}" in gymnasium.registry


def test_recorded_gas_takes_its_data_from_the_config(recorded_choices):
    static, overrides = recorded_choices
    config = {"static": static, "overrides": overrides}
    for mode in ("rgb_array", None):
        env = gymnasium.make("plumejax/Recorded-v0", config=config, render_mode=mode).unwrapped
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            check_env(env, skip_render_check=mode is None)
    with pytest.raises(ValidationError, match="needs data"):
        gymnasium.make("plumejax/Recorded-v0")


def test_make_takes_the_arguments_of_the_class():
    env = gymnasium.make("plumejax/PlumeSearchLocal-v0", **SMALL)
    assert isinstance(env.unwrapped, PlumeSearchEnv)
    assert env.unwrapped.core == small_env().core
    assert env.spec.id == "plumejax/PlumeSearchLocal-v0"
    gymnasium.spec(env.spec.id).to_json()
    with pytest.raises(ValidationError, match="max_steps"):
        gymnasium.make("plumejax/PlumeSearch-v0", max_steps=-1)


def test_config_through_make_keeps_the_task():
    env = gymnasium.make("plumejax/PlumeSearchLocal-v0", config={"overrides": {"max_steps": 3}})
    assert env.unwrapped.core == PlumeSearchEnv(task="PlumeSearchLocal-v0").core
    assert env.unwrapped.max_steps == 3


def test_a_task_registered_later_is_known_too(monkeypatch):
    monkeypatch.setattr(registry, "_tasks", dict(registry._tasks))
    plumejax.register(plumejax.Task("Later-v0", plume_search_local, "registered by a test"))
    try:
        register_all()
        assert gymnasium.make("plumejax/Later-v0", **SMALL).unwrapped.core == small_env().core
    finally:
        del gymnasium.registry["plumejax/Later-v0"]


def test_wrappers_of_gymnasium_work():
    env = RecordEpisodeStatistics(gymnasium.make("plumejax/PlumeSearchLocal-v0", **SMALL))
    env.reset(seed=0, options={"start": (8, 9)})
    *_, info = env.step(DOWN)
    assert (info["episode"]["r"], info["episode"]["l"]) == (1.0, 1)


IMPORT = """
import sys
import plumejax
from jax._src import xla_bridge
assert not xla_bridge._backends, "importing plumejax started a JAX backend"
heavy = {"matplotlib", "pygame", "gymnax", "optax", "orbax", "tyro",
         "plumejax.adapters.gymnasium", "plumejax.adapters.gymnasium_vector"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
import gymnasium
assert "plumejax/PlumeSearch-v0" in gymnasium.registry
assert not xla_bridge._backends
plumejax.PlumeSearchEnv, plumejax.PlumeSearchVectorEnv, plumejax.EnvironmentConfig
assert not {"matplotlib", "pygame"} & set(sys.modules)
"""


def test_import_is_light():
    done = subprocess.run(
        [sys.executable, "-c", IMPORT], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="Nothing"):
        plumejax.Nothing  # noqa: B018
    assert "PlumeSearchEnv" in dir(plumejax)
