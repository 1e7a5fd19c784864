"""plumejax: the search for an odour source, simulated as pure functions on arrays."""

from plumejax.base.registry import Task, make, register, registered_tasks
from plumejax.search import tasks as _search_tasks  # noqa: F401  (registers its ids)
from plumejax.version import __version__

__all__ = ["Task", "__version__", "make", "register", "registered_tasks"]
