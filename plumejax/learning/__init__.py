"""learning: agents that are learned: networks, PPO, checkpoints."""
