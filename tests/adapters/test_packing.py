"""adapters: what is packed comes back, in JAX and in NumPy; components whose states are hard to."""

import copy
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plumejax.adapters.gymnasium import PlumeSearchEnv
from plumejax.adapters.gymnasium_vector import PlumeSearchVectorEnv
from plumejax.adapters.packing import LARGE, pack, unpack
from plumejax.base.errors import ComponentError
from plumejax.base.spaces import Box, Dict
from plumejax.search.sensors import LocalConcentration

SMALL = {"grid_size": (16, 12), "goal_radius": 2.0, "max_steps": 3, "task": "PlumeSearchLocal-v0"}


def tree():
    return {
        "none": None,
        "flags": jnp.array([[True, False, True]]),
        "halves": jnp.arange(3, dtype=jnp.float16),
        "key": jax.random.key(3),
        "large": jnp.zeros(LARGE),
        "nothing": jnp.zeros((0, 2)),
        "numbers": [jnp.float32(-0.0), jnp.array([np.nan, 1e-42, np.inf], jnp.float32)],
        "whole": (jnp.int32(-7), jnp.uint32(2**32 - 1)),
    }


def assert_same_bits(a, b):
    assert jax.tree.structure(a) == jax.tree.structure(b)
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        if not jnp.issubdtype(x.dtype, jax.dtypes.prng_key):
            assert np.asarray(x).tobytes() == np.asarray(y).tobytes()


def test_a_tree_comes_back_bit_for_bit():
    packed = jax.jit(pack)(tree())
    assert [x.shape for x in packed.arrays] == [(9,), (3,), (), (LARGE,)]
    on_host = (np.asarray(packed.arrays[0]), *packed.arrays[1:])
    for arrays in (packed.arrays, on_host):
        assert_same_bits(unpack(arrays, packed.layout), tree())
    assert jax.random.key_data(unpack(on_host, packed.layout)["key"])[1] == 3


def test_a_member_is_read_alone():
    packed = pack((jnp.zeros(LARGE), {"a": jnp.int32(4), "b": jnp.ones(LARGE)}, jnp.float32(2.5)))
    for index, expected in enumerate(unpack(packed.arrays, packed.layout)):
        member = unpack(packed.arrays, packed.layout.member(index))
        assert_same_bits(member, expected)


def test_layouts_are_compared_by_value_and_travel():
    layout = pack(tree()).layout
    assert layout == pack(tree()).layout
    assert hash(layout) == hash(pack(tree()).layout)
    assert layout != pack({**tree(), "whole": jnp.int32(1)}).layout
    assert copy.deepcopy(layout) == layout


@dataclass(frozen=True)
class Hard(LocalConcentration):
    """A sensor whose state has a key, halves and flags, and whose observation has every kind."""

    def start(self, params: Any) -> Any:
        return {
            "key": jax.random.key(5),
            "halves": jnp.zeros(2, jnp.float16),
            "flag": jnp.asarray(False),
        }

    def observe(self, key: Any, state: Any, scene: Any, params: Any) -> Any:
        key, use = jax.random.split(state["key"])
        state = {
            "key": key,
            "halves": state["halves"] + jnp.float16(1),
            "flag": ~state["flag"],
        }
        number, _ = super().observe(key, (), scene, params)
        observation = {
            "bits": jax.random.bits(use, (2,), jnp.uint8),
            "count": state["halves"].astype(jnp.int32),
            "number": number,
            "picture": jnp.zeros(LARGE) + number,
        }
        return observation, state

    def space(self, params: Any) -> Dict:
        return Dict(
            {
                "bits": Box(0, 255, (2,), np.uint8),
                "count": Box(0, 99, (2,), np.int32),
                "number": Box(0.0, 1.0, (1,)),
                "picture": Box(0.0, 1.0, (LARGE,)),
            }
        )


def test_states_and_observations_of_every_kind():
    env = PlumeSearchEnv(**SMALL, observation_model=Hard())
    obs, info = env.reset(seed=4)
    key = jax.random.key(info["seed"])
    expected, state = env.core.reset(jax.random.fold_in(key, 0), env.params)
    assert_same_bits(obs, expected)
    for t in (1, 2):
        obs, *_ = env.step(0)
        step_key = jax.random.fold_in(key, t)
        expected, state, *_ = env.core.step(step_key, state, jnp.int32(0), env.params)
        assert_same_bits(obs, expected)
        assert obs in env.observation_space
        obs["picture"][:] = 0.0
        obs["number"][:] = 0.0
    twin = copy.deepcopy(env)
    assert_same_bits(env.step(1)[0], twin.step(1)[0])


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_lanes_of_every_kind(mode):
    env = PlumeSearchVectorEnv(2, **SMALL, observation_model=Hard(), autoreset_mode=mode)
    obs, _ = env.reset(seed=4)
    assert obs in env.observation_space
    for t in range(1, 4):
        obs, _, _, truncated, infos = env.step([0, 1])
        assert obs in env.observation_space
        np.testing.assert_array_equal(truncated, [t == 3] * 2)
    if mode == "SameStep":
        last = infos["final_obs"][0]
        assert last in env.single_observation_space
        last["picture"][:] = 0.0
        np.testing.assert_array_equal(last["count"], [4, 4])


@dataclass(frozen=True)
class Growing(LocalConcentration):
    """A sensor whose state is larger after the first step than after the reset."""

    def start(self, params: Any) -> Any:
        return jnp.zeros(0)

    def observe(self, key: Any, state: Any, scene: Any, params: Any) -> Any:
        observation, _ = super().observe(key, (), scene, params)
        return observation, jnp.zeros(1 if state.shape == (0,) else 2)


def test_a_state_that_changes_its_shape_is_refused():
    env = PlumeSearchEnv(**SMALL, observation_model=Growing())
    env.reset(seed=0)
    with pytest.raises(ComponentError, match="shape"):
        env.step(0)
    assert env.step_count == 0


WIDE = """
import jax, jax.numpy as jnp, numpy as np
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")
from plumejax.adapters.gymnasium import PlumeSearchEnv
from plumejax.adapters.gymnasium_vector import PlumeSearchVectorEnv
assert jnp.zeros(()).dtype == jnp.float64
for task in ("PlumeSearch-v0", "PlumeSearchLocal-v0"):
    small = {"task": task, "grid_size": (16, 12), "max_steps": 2, "goal_radius": 2.0}
    env = PlumeSearchEnv(**small)
    env.reset(seed=0)
    for _ in range(2):
        obs, *_, truncated, info = env.step(0)
        assert obs in env.observation_space
    assert truncated and info["step_count"] == 2
    for mode in ("NextStep", "SameStep"):
        lanes = PlumeSearchVectorEnv(3, **small, autoreset_mode=mode)
        lanes.reset(seed=0)
        for _ in range(3):
            assert lanes.step(np.zeros(3, int))[0] in lanes.observation_space
"""


@pytest.mark.slow
def test_it_works_with_x64_on():
    environ = {**os.environ, "JAX_ENABLE_X64": "1"}
    done = subprocess.run(
        [sys.executable, "-c", WIDE], capture_output=True, text=True, check=False, env=environ
    )
    assert done.returncode == 0, done.stderr[-3000:]
