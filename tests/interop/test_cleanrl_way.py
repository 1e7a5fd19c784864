"""tests/interop/test_cleanrl_way: a trainer as CleanRL has them: one file of PyTorch, a loop over
`gymnasium.make_vec` and its wrappers."""

import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers.vector import NormalizeObservation, RecordEpisodeStatistics

import plumejax  # noqa: F401  (registers the tasks)

pytestmark = pytest.mark.interop

LANES, STEPS, UPDATES, EPOCHS, PARTS = 32, 64, 40, 4, 4
GAMMA, LAMBDA, CLIP, ENTROPY, RATE = 0.97, 0.95, 0.2, 0.01, 3e-3


def train(env, seed):
    """The return of every episode that ended, a list an update."""
    import torch

    def perceptron(outputs):
        first = torch.nn.Linear(env.single_observation_space.shape[0], 32)
        hidden = [first, torch.nn.Tanh(), torch.nn.Linear(32, 32), torch.nn.Tanh()]
        return torch.nn.Sequential(*hidden, torch.nn.Linear(32, outputs))

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    actor, critic = perceptron(env.single_action_space.n), perceptron(1)
    weights = [*actor.parameters(), *critic.parameters()]
    optimiser = torch.optim.Adam(weights, RATE, eps=1e-5)
    seen, _ = env.reset(seed=seed)
    # Under next-step autoreset the step after an end only resets: nothing is learned from it.
    ended, returns = np.zeros(LANES, bool), []
    for _ in range(UPDATES):
        steps, finished = [], []
        for _ in range(STEPS):
            x = torch.as_tensor(seen, dtype=torch.float32)
            with torch.no_grad():
                choice = torch.distributions.Categorical(logits=actor(x))
                action, value = choice.sample(), critic(x)[:, 0]
                log_prob = choice.log_prob(action)
            counts = torch.as_tensor(~ended)
            seen, reward, terminated, truncated, infos = env.step(action.numpy())
            ended = terminated | truncated
            pay, end = torch.as_tensor(reward, dtype=torch.float32), torch.as_tensor(ended)
            steps.append((x, action, log_prob, value, pay, end, counts))
            if ended.any():
                finished.extend(infos["episode"]["r"][infos["_episode"]])
        returns.append(finished)
        x, action, log_prob, value, pay, end, counts = map(torch.stack, zip(*steps, strict=True))
        with torch.no_grad():
            next_value = critic(torch.as_tensor(seen, dtype=torch.float32))[:, 0]
        advantage, ahead = torch.zeros_like(value), torch.zeros(LANES)
        for t in reversed(range(STEPS)):
            goes_on = (~end[t]).float()
            delta = pay[t] + GAMMA * next_value * goes_on - value[t]
            ahead = advantage[t] = delta + GAMMA * LAMBDA * goes_on * ahead
            next_value = value[t]
        target = advantage + value
        x, action, log_prob, advantage, target = (
            each[counts] for each in (x, action, log_prob, advantage, target)
        )
        for _ in range(EPOCHS):
            for part in torch.randperm(len(x)).chunk(PARTS):
                choice = torch.distributions.Categorical(logits=actor(x[part]))
                ratio = (choice.log_prob(action[part]) - log_prob[part]).exp()
                gain = (advantage[part] - advantage[part].mean()) / (advantage[part].std() + 1e-8)
                gain = torch.min(ratio * gain, ratio.clip(1 - CLIP, 1 + CLIP) * gain).mean()
                error = (critic(x[part])[:, 0] - target[part]).square().mean()
                optimiser.zero_grad()
                (0.5 * error - gain - ENTROPY * choice.entropy().mean()).backward()
                torch.nn.utils.clip_grad_norm_(weights, 0.5)
                optimiser.step()
    return returns


def test_it_learns_to_search(search):
    """Random success is told by the first tenth of the updates, during which little is learned."""
    pytest.importorskip("torch", reason="the extra interop is not installed")
    env = gymnasium.make_vec("plumejax/PlumeSearchLocal-v0", num_envs=LANES, config=search)
    returns = train(NormalizeObservation(RecordEpisodeStatistics(env)), seed=0)
    tenth = UPDATES // 10
    before, after = (np.concatenate(part) for part in (returns[:tenth], returns[-tenth:]))
    print(f"success {before.mean():.3f} of {before.size}, then {after.mean():.3f} of {after.size}")
    assert set(np.unique(np.concatenate(returns))) == {0.0, 1.0}
    assert min(before.size, after.size) > 100
    assert after.mean() > before.mean() + 0.5
