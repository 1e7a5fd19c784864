"""cli/serve: `plumejax serve`, a task over HTTP and WebSocket."""

import os
from pathlib import Path
from typing import Any, Literal

import tyro
from rich.console import Console

from plumejax.base.errors import require
from plumejax.base.registry import make
from plumejax.learning.runs import parse_settings

TOKEN = "PLUMEJAX_TOKEN"


def serve(
    task: tyro.conf.Positional[str],
    *,
    port: int = 8000,
    host: str = "127.0.0.1",
    capacity: int = 16,
    batching: Literal["on", "off"] = "on",
    idle_timeout: float = 900.0,
    isolation: Literal["lenient", "strict"] | None = None,
    allow_host: tuple[str, ...] = (),
    page: bool = True,
    set: tuple[str, ...] = (),
    data: Path | None = None,
) -> int:
    """Serve a task, or `Echo`, over HTTP and WebSocket, to OpenEnv's clients too.

    Beyond this machine (another --host) it asks each request for the token in the environment
    variable PLUMEJAX_TOKEN, and each must name its session.

    Args:
        task: id of a task.
        port: 0 takes a free one.
        host: address to listen at.
        capacity: sessions at a time.
        batching: on: one program steps all places at once; off: one place, for a task whose step is
            heavy while few sessions step at a time.
        idle_timeout: seconds, after which a session that is not heard of ends.
        isolation: strict: each request must name its session; lenient: one that names none is about
            the last session begun so.
        allow_host: names by which clients may call this machine, beside HOST.
        page: a page to play on, at /; on this machine only, and not where a token is asked for. It
            shows all of an episode to whoever knows its session.
        set: numbers of the task, as in --set plume.sigma=8.
        data: a recording for tasks that play one.
    """
    import plumejax.serving  # noqa: F401  (says which extra is missing)
    from plumejax.serving.app import create_app
    from plumejax.serving.running import run

    require(0 <= port < 2**16, "--port", port, "0 to 65535")
    app = create_app(
        _task(task, set, data),
        host=host,
        token=os.environ.get(TOKEN) or None,
        isolation=isolation,
        capacity=capacity,
        batching=batching,
        idle_timeout=idle_timeout,
        allowed_hosts=allow_host,
        page=page,
    )
    console = Console()
    console.print(f"compiling {task} ...", highlight=False)
    run(app, host, port, lambda url: _announce(console, task, url, app.state.page))
    return 0


def _task(task: str, settings: tuple[str, ...], data: Path | None) -> Any:
    if not (settings or data):
        return task
    static = {} if data is None else {"data": data}
    return make(task, overrides=parse_settings(settings), **static)


def _announce(console: Console, task: str, url: str, page: bool) -> None:
    lines = [
        f"{task} is served at {url} (Ctrl-C ends it)",
        f"  from Python: plumejax.serving.Client({url!r}).reset()",
        f"  by hand:     curl -X POST {url}/reset",
        f"  what it is:  {url}/docs, {url}/schema",
    ]
    if page:
        lines.insert(1, f"  in a browser: {url}/")
    for line in lines:
        console.print(line, highlight=False, soft_wrap=True)
