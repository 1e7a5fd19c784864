"""cli/serve: `plumejax serve`, a task over HTTP and WebSocket."""

import os
from pathlib import Path
from typing import Any, Literal

import tyro
from rich.console import Console

from plumejax.base.errors import ValidationError, require
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
        allow_host: names and addresses by which clients may call this machine, beside HOST; * in
            one stands for anything.
        page: a page to play on, at /; on this machine only, and not where a token is asked for. It
            shows all of an episode to whoever knows its session.
        set: numbers of the task, as in --set plume.sigma=8.
        data: a recording for tasks that play one.
    """
    import plumejax.serving  # noqa: F401  (says which extra is missing)
    from plumejax.serving.app import create_app
    from plumejax.serving.running import listener, run

    require(0 <= port < 2**16, "--port", port, "0 to 65535")
    token = os.environ.get(TOKEN) or None
    app = create_app(
        _task(task, set, data),
        host=host,
        token=token,
        isolation=isolation,
        capacity=capacity,
        batching=batching,
        idle_timeout=idle_timeout,
        allowed_hosts=allow_host,
        page=page,
    )
    console = Console()
    with listener(host, port) as at:
        console.print(f"compiling {task} ...", highlight=False)
        run(app, at, lambda url: _announce(console, task, url, app, token is not None))
    return 0


def _task(task: str, settings: tuple[str, ...], data: Path | None) -> Any:
    if not (settings or data):
        return task
    if task == "Echo":
        raise ValidationError("Echo has no numbers to --set, and plays no --data")
    static = {} if data is None else {"data": data}
    return make(task, overrides=parse_settings(settings), **static)


def _announce(console: Console, task: str, url: str, app: Any, asks: bool) -> None:
    """Say how to reach it; `asks` is whether it asks for a token."""
    client, path = ("Client.open", "/sessions") if app.state.strict else ("Client", "/reset")
    token, header = (", token=...", " -H 'Authorization: Bearer ...'") if asks else ("", "")
    docs = f"{url}/docs, " if app.docs_url and not asks else ""
    lines = [
        f"{task} is served at {url} (Ctrl-C ends it)",
        f"  from Python: plumejax.serving.{client}({url!r}{token}).reset()",
        f"  by hand:     curl -X POST {url}{path}{header}",
        f"  what it is:  {docs}{url}/schema",
    ]
    if app.state.page:
        lines.insert(1, f"  in a browser: {url}/")
    for line in lines:
        console.print(line, highlight=False, soft_wrap=True)
