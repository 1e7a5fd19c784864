"""tests/interop/test_trainers: rejax and Stable-Baselines3, by their own interfaces, learn."""

import jax
import numpy as np
import pytest

from plumejax.adapters.gymnax import FIVE_VALUES, register_all

pytestmark = pytest.mark.interop

TASK = "PlumeSearchLocal-v0"


def test_rejax_learns(search):
    rejax = pytest.importorskip("rejax")
    register_all()
    ppo = rejax.PPO.create(
        env=TASK + FIVE_VALUES,
        env_params={**search["static"], "overrides": search["overrides"]},
        agent_kwargs={"hidden_layer_sizes": (32, 32), "activation": "tanh"},
        normalize_observations=True,
        total_timesteps=160_000,
        eval_freq=80_000,
        num_envs=64,
        num_steps=64,
        num_minibatches=4,
        num_epochs=4,
        learning_rate=3e-3,
        gamma=0.97,
    )
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        _, (lengths, returns) = jax.jit(ppo.train)(jax.random.key(0))
    # Of 128 episodes before, in the middle and after; a return is 1 if the source was found.
    success = np.asarray(returns).mean(1)
    print(f"success {success[0]:.3f}, then {success[-1]:.3f}")
    assert returns.shape == (3, 128)
    assert ((returns == 0.0) | (returns == 1.0)).all()
    assert ((lengths >= 1) & (lengths <= 40)).all()
    # An episode that found nothing ran to its limit.
    assert (lengths[returns == 0.0] == 40).all()
    assert success[-1] > success[0] + 0.5


def test_stable_baselines3_learns(search):
    pytest.importorskip("stable_baselines3", reason="the extra interop is not installed")
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.evaluation import evaluate_policy
    from stable_baselines3.common.vec_env import VecMonitor, VecNormalize

    from plumejax.adapters.stable_baselines3 import PlumeSearchVecEnv

    torch.set_num_threads(1)
    env = VecMonitor(PlumeSearchVecEnv(32, task=TASK, config=search))
    env = VecNormalize(env, norm_reward=False)
    model = PPO(
        "MlpPolicy",
        env,
        n_steps=64,
        batch_size=512,
        n_epochs=4,
        learning_rate=3e-3,
        gamma=0.97,
        ent_coef=0.01,
        seed=0,
        device="cpu",
    )

    def success():
        env.seed(1)
        env.training = False
        returns, lengths = evaluate_policy(
            model, env, 200, deterministic=False, return_episode_rewards=True
        )
        env.training = True
        assert set(returns) <= {0.0, 1.0}
        assert max(lengths) <= 40
        return np.mean(returns)

    before = success()
    model.learn(80_000)
    after = success()
    print(f"success {before:.3f}, then {after:.3f}")
    assert after > before + 0.5
    # What it reports by itself, of the last 100 episodes that it learned from.
    assert np.mean(model.ep_success_buffer) > before + 0.5
