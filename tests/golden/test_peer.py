"""tests/golden/test_peer: plume_nav_sim itself, where it is installed, on fresh random episodes."""

import numpy as np
import pytest

factory = pytest.importorskip("plume_nav_sim.envs.factory")

KINDS = [
    ("discrete", "sparse", 1.1920929e-07),
    ("discrete", "step_penalty", 2.0),
    ("oriented", "sparse", 2.0),
    ("oriented", "step_penalty", float(np.sqrt(2))),
    ("run_tumble", "sparse", 2.0),
]
NUM_ACTIONS = {"discrete": 4, "oriented": 3, "run_tumble": 2}


def config_of(action_type, reward_type, goal_radius, rng):
    grid = (21, 13)
    return {
        "grid_size": grid,
        "goal_location": tuple(int(rng.integers(n)) for n in grid),
        "start_location": tuple(int(rng.integers(n)) for n in grid),
        "plume_sigma": float(rng.uniform(2.0, 8.0)),
        "goal_radius": goal_radius,
        "max_steps": 150,
        "action_type": action_type,
        "reward_type": reward_type,
        "observation_type": "concentration",
    }


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("action_type", "reward_type", "radius"), KINDS)
def test_an_episode_of_the_peer_comes_out_the_same(replay, action_type, reward_type, radius, seed):
    rng = np.random.default_rng([seed, KINDS.index((action_type, reward_type, radius))])
    config = config_of(action_type, reward_type, radius, rng)
    peer = factory.create_component_environment(**config, warn_deprecated=False)
    observation, _ = peer.reset(seed=seed)
    # The generator that the peer's tumbles will draw from.
    angles = np.random.default_rng(seed)
    actions, handed, positions, rewards, flags = [], [], [], [], []
    concentrations = [observation[0]]
    done = False
    while not done:
        actions.append(int(rng.integers(NUM_ACTIONS[action_type])))
        handed.append(np.float32(angles.uniform(0.0, 360.0) if actions[-1] else -1.0))
        observation, reward, terminated, truncated, info = peer.step(actions[-1])
        positions.append(info["agent_position"])
        rewards.append(reward)
        flags.append((terminated, truncated))
        concentrations.append(observation[0])
        done = terminated or truncated
    tumbling = action_type == "run_tumble"
    chosen = np.asarray(handed) if tumbling else np.asarray(actions, np.int32)
    ours = replay(config, chosen)
    np.testing.assert_array_equal(ours.positions, np.asarray(positions, np.float32))
    np.testing.assert_array_equal(ours.rewards, np.asarray(rewards, np.float32))
    np.testing.assert_array_equal(np.stack([ours.terminated, ours.truncated], -1), flags)
    np.testing.assert_allclose(ours.concentrations, concentrations, rtol=0, atol=2e-7)
