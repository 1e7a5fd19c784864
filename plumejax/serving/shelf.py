"""serving/shelf: Shelf, tasks that are served beside the first one once somebody picks them."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple

from fastapi import FastAPI
from starlette.routing import Mount

from plumejax.base.registry import registered_tasks
from plumejax.serving.refusals import RefusedError

OPEN = 4
"""Tasks beside the first one that are kept compiled."""


class Opened(NamedTuple):
    """A task that is served.

    Attributes:
      route: to its app.
      app: a server of it alone.
      running: its lifespan.
    """

    route: Mount
    app: FastAPI
    running: AbstractAsyncContextManager


class Shelf:
    """Serves named tasks under `/tasks/ID`, each by an app of its own, made when it is picked.

    Attributes:
      make: the app of a task by its id.
    """

    def __init__(self, make: Callable[[str], FastAPI]) -> None:
        self.make = make
        self._opened: dict[str, Opened] = {}
        self._picking = asyncio.Lock()

    async def pick(self, onto: FastAPI, task: str) -> str:
        """The path that the task is served under, compiled. Raises `RefusedError`."""
        about = registered_tasks().get(task)
        if about is None or about.needs:
            raise RefusedError(404, "NO_SUCH_TASK", "there is no such task to pick")
        async with self._picking:
            # The last one picked is the last to go.
            opened = self._opened.pop(task, None) or await self._open(onto, task)
            self._opened[task] = opened
        return opened.route.path

    async def close(self) -> None:
        """End them all."""
        for task in list(self._opened):
            await self._opened.pop(task).running.__aexit__(None, None, None)

    async def _open(self, onto: FastAPI, task: str) -> Opened:
        if len(self._opened) >= OPEN:
            await self._make_room(onto)
        app = await asyncio.to_thread(self.make, task)
        running = app.router.lifespan_context(app)
        await running.__aenter__()
        route = Mount(f"/tasks/{task}", app)
        onto.router.routes.append(route)
        return Opened(route, app, running)

    async def _make_room(self, onto: FastAPI) -> None:
        """Close the one that was picked longest ago of those that nobody plays."""
        for task, opened in self._opened.items():
            if not len(opened.app.state.sessions):
                del self._opened[task]
                onto.router.routes.remove(opened.route)
                await opened.running.__aexit__(None, None, None)
                return
        raise RefusedError(
            503, "CAPACITY_REACHED", f"{OPEN} other tasks are being played", {"Retry-After": "10"}
        )
