"""serving/running: listener and run, an app under uvicorn, which says when it answers."""

import socket
from collections.abc import Callable

import uvicorn
from fastapi import FastAPI

from plumejax.base.errors import PlumeError


class Announced(uvicorn.Server):
    """Calls `ready(url)` once it answers."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[str], None]) -> None:
        super().__init__(config)
        self.ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            self.ready(f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}")


def listener(host: str, port: int) -> socket.socket:
    """A socket at that address, before anything is compiled for it; of a name at its first one,
    IPv4 if it has both. Who connects already waits. Raises `PlumeError` if it cannot be had."""
    try:
        found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
        family, kind, protocol, _, address = min(found)
        made = socket.socket(family, kind, protocol)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen()  # or another server, which compiles too, could have it as well
    except OSError as error:
        raise PlumeError(f"cannot listen at {host}, port {port}: {error.strerror}") from None
    return made


def server(app: FastAPI, ready: Callable[[str], None]) -> Announced:
    """What `run` runs: one process, since the sessions live in it."""
    config = uvicorn.Config(
        app,
        workers=1,
        log_level="warning",
        access_log=False,
        ws_max_size=app.state.max_message,
        ws_per_message_deflate=False,  # it takes longer than the step
        server_header=False,
        timeout_graceful_shutdown=5,
    )
    return Announced(config, ready)


def run(app: FastAPI, at: socket.socket, ready: Callable[[str], None]) -> None:
    """Serve `app` at a `listener` until it is interrupted; `ready` is called with its URL."""
    server(app, ready).run(sockets=[at])
