"""serving: tasks over HTTP and WebSocket, their sessions kept apart; and the clients."""

from importlib import import_module
from typing import Any

from plumejax.base.extras import need

for _package in ("pydantic", "fastapi", "uvicorn", "websockets", "httpx"):
    need(_package, "serve")

# Names that are loaded when they are first asked for: a client needs no JAX program.
_LAZY = {
    "Action": "plumejax.serving.environment",
    "AsyncClient": "plumejax.serving.client",
    "Client": "plumejax.serving.client",
    "CompositeTransform": "plumejax.serving.environment",
    "Echo": "plumejax.serving.echo",
    "HostEnvironment": "plumejax.serving.environment",
    "NullTransform": "plumejax.serving.environment",
    "Observation": "plumejax.serving.environment",
    "State": "plumejax.serving.environment",
    "StepResult": "plumejax.serving.client",
    "Transform": "plumejax.serving.environment",
    "create_app": "plumejax.serving.app",
}

__all__ = list(_LAZY)


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
