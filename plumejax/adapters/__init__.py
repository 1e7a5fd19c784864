"""adapters: every task as the environments of other libraries."""

# Without the one that needs Stable-Baselines3, and with it torch.
__all__ = [
    "captures",
    "config",
    "episodes",
    "gymnasium",
    "gymnasium_vector",
    "gymnax",
    "packing",
    "pettingzoo",
    "spaces",
    "two_arm",
]
