"""serving/running: run, an app under uvicorn, which says when it answers."""

import socket
from collections.abc import Callable

import uvicorn
from fastapi import FastAPI


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


def server(app: FastAPI, host: str, port: int, ready: Callable[[str], None]) -> Announced:
    """What `run` runs: one process, since the sessions live in it."""
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        workers=1,
        log_level="warning",
        access_log=False,
        ws_max_size=app.state.max_message,
        ws_per_message_deflate=False,  # it takes longer than the step
        server_header=False,
        timeout_graceful_shutdown=5,
    )
    return Announced(config, ready)


def run(app: FastAPI, host: str, port: int, ready: Callable[[str], None]) -> None:
    """Serve `app` until it is interrupted; `ready` is called with its URL."""
    server(app, host, port, ready).run()
