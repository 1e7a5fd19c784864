"""plumejax: the search for an odour source, simulated as pure functions on arrays."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from plumejax.adapters.gymnasium_ids import register_all as _register_all
from plumejax.base.registry import Task, make, registered_tasks
from plumejax.base.registry import register as _register
from plumejax.search import encounter_tasks as _encounter_tasks  # noqa: F401  (registers its ids)
from plumejax.search import finite_memory_tasks as _finite_memory_tasks  # noqa: F401
from plumejax.search import fly_tasks as _fly_tasks  # noqa: F401
from plumejax.search import intermittent_tasks as _intermittent_tasks  # noqa: F401
from plumejax.search import levels as _levels  # noqa: F401
from plumejax.search import obstacle_tasks as _obstacle_tasks  # noqa: F401
from plumejax.search import recorded_tasks as _recorded_tasks  # noqa: F401
from plumejax.search import tasks as _search_tasks  # noqa: F401
from plumejax.search import tracking_tasks as _tracking_tasks  # noqa: F401
from plumejax.search import twins as _twins  # noqa: F401  (the last: one for each of them)
from plumejax.version import __version__

# isort: split
# After all searches, in the order of `plumejax list`.
from plumejax.arms import named_tasks as _arm_tasks  # noqa: F401

if TYPE_CHECKING:
    from plumejax.adapters.gymnasium import EnvironmentConfig, PlumeEnv, PlumeSearchEnv
    from plumejax.adapters.gymnasium_vector import PlumeSearchVectorEnv
    from plumejax.base.randomised import Choice, IntegerRange, LogUniform, Normal, Uniform
    from plumejax.learning.runs import load_agent
    from plumejax.search.scores import normalised_return, scores
    from plumejax.search.team import Team
    from plumejax.sweeps.sweep import Sweep
    from plumejax.sweeps.trainings import TrainingSweep

__all__ = [
    "Choice",
    "EnvironmentConfig",
    "IntegerRange",
    "LogUniform",
    "Normal",
    "PlumeEnv",
    "PlumeSearchEnv",
    "PlumeSearchVectorEnv",
    "Sweep",
    "Task",
    "Team",
    "TrainingSweep",
    "Uniform",
    "__version__",
    "load_agent",
    "make",
    "normalised_return",
    "register",
    "registered_tasks",
    "scores",
]

# Names that are loaded when they are first asked for.
_LAZY = {
    "Choice": "plumejax.base.randomised",
    "EnvironmentConfig": "plumejax.adapters.config",
    "IntegerRange": "plumejax.base.randomised",
    "LogUniform": "plumejax.base.randomised",
    "Normal": "plumejax.base.randomised",
    "PlumeEnv": "plumejax.adapters.gymnasium",
    "PlumeSearchEnv": "plumejax.adapters.gymnasium",
    "PlumeSearchVectorEnv": "plumejax.adapters.gymnasium_vector",
    "Sweep": "plumejax.sweeps.sweep",
    "Team": "plumejax.search.team",
    "TrainingSweep": "plumejax.sweeps.trainings",
    "Uniform": "plumejax.base.randomised",
    "load_agent": "plumejax.learning.runs",
    "normalised_return": "plumejax.search.scores",
    "scores": "plumejax.search.scores",
}


def register(task: Task) -> None:
    """Make `task` known by its id, here and to Gymnasium as `plumejax/<id>`.

    Raises `ValidationError` if the id is taken.
    """
    _register(task)
    _register_all()


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})


_register_all()
