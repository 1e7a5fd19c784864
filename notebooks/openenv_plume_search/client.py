"""The client: it needs `openenv` alone."""

from openenv.core import GenericEnvClient


class PlumeSearchEnv(GenericEnvClient):
    """Actions are `{"value": 0 to 3}`: up, right, down, left.

    Observations are `{"value": [concentration], "metadata": {...}}`.
    """
