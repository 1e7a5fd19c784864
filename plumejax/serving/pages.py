"""serving/pages: the page at `/`, and what it asks for beside what every client can."""

import asyncio
from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import JSONResponse, RedirectResponse
from starlette.exceptions import HTTPException

from plumejax.base.registry import registered_tasks
from plumejax.serving.baselines import Baselines
from plumejax.serving.environment import Frozen
from plumejax.serving.lanes import LaneEngine
from plumejax.serving.looks import colour_table, controls, look, unit
from plumejax.serving.sessions import Session, Sessions
from plumejax.serving.shelf import Shelf

FILES = {
    "index.html": "text/html; charset=utf-8",
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self';"
    " img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none';"
    " frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
"""Nothing from elsewhere, no script in the text, and in no other page."""


class BaselineRequest(Frozen):
    """Ask a policy what it would do.

    Attributes:
      name: of the policy.
    """

    name: str


def page(shelf: Shelf, served: str) -> APIRouter:
    """The page, and the tasks that can be picked on it beside the one that is `served`."""
    folder = Path(__file__).with_name("page")
    texts = {name: (folder / name).read_bytes() for name in FILES}
    router = APIRouter(include_in_schema=False)

    @router.get("/")
    async def index() -> Response:
        return _file(texts, "index.html")

    @router.get("/page/{name}")
    async def file(name: str) -> Response:
        if name not in texts:
            raise HTTPException(404)
        return _file(texts, name)

    @router.get("/favicon.ico")
    async def icon() -> Response:
        return RedirectResponse("/page/icon.svg")

    @router.get("/tasks")
    async def tasks() -> list[dict[str, Any]]:
        return [
            {
                "id": task.id,
                "about": task.summary,
                "family": "twins" if task.twin_of else task.family,
            }
            for task in registered_tasks().values()
            if not task.needs and task.id != served
        ]

    @router.post("/tasks/{task}", status_code=201)
    async def pick(request: Request, task: str) -> dict[str, str]:
        app: FastAPI = request.app
        return {"path": await shelf.pick(app, task)}

    return router


def watching(sessions: Sessions) -> APIRouter:
    """What the page shows of a task, and of an episode of it: all that there is, and so more than
    an agent should see."""
    router = APIRouter(include_in_schema=False)
    engine = sessions.engine
    if not isinstance(engine, LaneEngine):

        @router.get("/page")
        async def nothing() -> dict[str, Any]:
            return {"view": False, "actions": [], "axes": [], "baselines": []}

        return router
    baselines = Baselines(engine.env, engine.params)

    def prepared() -> dict[str, Any]:
        # What is compiled here holds nobody up: not on the thread of the engine.
        look(engine.env, engine.fresh_lane().state, engine.params)
        return {
            "view": True,
            **controls(engine.env, engine.params),
            "baselines": baselines.described(),
            "unit": unit(engine.env),
            "palette": colour_table(),
        }

    @router.get("/page")
    async def task() -> dict[str, Any]:
        return await asyncio.to_thread(prepared)

    @router.get("/sessions/{session_id}/view")
    async def view(session_id: str) -> Response:
        async def see(session: Session) -> Any:
            lane = await engine.lane(session.place)
            return await asyncio.to_thread(look, engine.env, lane.state, engine.params)

        return JSONResponse(await sessions.look(sessions.find(session_id), see))

    @router.post("/sessions/{session_id}/baseline")
    async def baseline(session_id: str, body: BaselineRequest) -> Response:
        async def act(session: Session) -> Any:
            lane = await engine.lane(session.place)
            return await asyncio.to_thread(baselines.act, session, body.name, lane)

        action = await sessions.look(sessions.find(session_id), act)
        return JSONResponse({"action": action})

    return router


def _file(texts: dict[str, bytes], name: str) -> Response:
    return Response(texts[name], media_type=FILES[name], headers=HEADERS)
