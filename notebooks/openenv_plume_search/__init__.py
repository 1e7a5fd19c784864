"""The search for an odour source, as an OpenEnv environment."""

from .client import PlumeSearchEnv

__all__ = ["PlumeSearchEnv"]
