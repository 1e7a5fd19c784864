"""tests/learning/test_recipes: on what an agent learns each kind of task."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plumejax
from plumejax.learning.curricula import params_at
from plumejax.learning.ppo import Hyperparameters, Shapes, ppo
from plumejax.learning.recipes import ARMS, FILAMENTS, SEARCH, TRACKING, recipe


def test_each_task_has_the_recipe_of_its_kind(local):
    assert recipe(local[0]) is SEARCH
    assert recipe(plumejax.make("TwoArm-Lift-v0")[0]) is ARMS
    for name in ("Code-SwitchMany", "Paper-Constant", "Walking"):
        assert recipe(plumejax.make(f"PlumeTracking-{name}-v0")[0]) is TRACKING
    for name in ("Farrell", "FarrellStraight"):
        assert recipe(plumejax.make(f"PlumeTracking-{name}-v0")[0]) is FILAMENTS


@pytest.mark.parametrize(
    ("name", "paid"),
    [("Code-SwitchMany", 101 * 0.05), ("Paper-Constant", 101 * 0.05), ("Farrell", 3)],
)
def test_tracking_is_learned_on_tapes(name, paid):
    static = {"capacity": 64, "warmup": 8}
    numbers = {"plume.rate": 8.0, "max_steps": 6}
    env, params = plumejax.make(f"PlumeTracking-{name}-v0", overrides=numbers, **static)
    told = []
    prepare = recipe(env).prepare
    env, schedule = prepare(
        env, params, 3, lambda *parts: told.append(parts), tapes=2, seconds_more=0.4
    )
    assert told[-1] == (4, 4)
    begin, end = (params_at(schedule, jnp.float32(share)) for share in (0.0, 1.0))
    env.validate(jax.device_get(end))
    # Filaments are all of a kind; the other puffs that grow half as fast come in later.
    late = 1.0 if name == "Farrell" else 0.0
    assert np.asarray(begin.plume.shares).tolist() == [1, 1, late, late]
    assert np.asarray(end.plume.shares).tolist() == [1, 1, 1, 1]
    reward = end.reward.goal if name == "Farrell" else end.reward.found
    assert float(reward) == pytest.approx(paid)
    # The recurrent update that the recipe asks for, once.
    algorithm = ppo(env, end, Shapes(8, 4, 2, 1, memory="gru", hidden=(8,), units=8, floor=1e-5))
    training = jax.jit(algorithm.init)(jax.random.key(0), schedule)
    _, metrics = jax.jit(algorithm.update)(training, schedule, Hyperparameters(updates=2.0))
    assert all(np.isfinite(x) for x in jax.tree.leaves(metrics))
