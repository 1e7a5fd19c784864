"""serving/app: create_app, the server of a task: its routes, and how a request names a session."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple

from fastapi import APIRouter, Body, Depends, FastAPI, Request, Response, WebSocket
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import Field, create_model
from pydantic_core import from_json
from starlette.exceptions import HTTPException

from plumejax.base import registry
from plumejax.base.errors import ValidationError, require
from plumejax.serving import pages
from plumejax.serving.batches import BatchEngine
from plumejax.serving.client import VECTOR
from plumejax.serving.engine import Engine, HostEngine
from plumejax.serving.environment import Frozen, HostEnvironment
from plumejax.serving.guard import Guard, is_loopback
from plumejax.serving.lanes import LaneEngine
from plumejax.serving.models import Array
from plumejax.serving.refusals import RefusedError, broken
from plumejax.serving.sessions import ResetRequest, Session, Sessions, StepRequest
from plumejax.serving.shelf import Shelf
from plumejax.serving.sockets import converse, described, error_text
from plumejax.version import __version__

COOKIE = "plumejax_session"
HEADER = "X-Session-Id"

Isolation = Literal["lenient", "strict"]
Batching = Literal["on", "off"]

MAX_LANES = 4096
"""Of a session of many episodes."""

PICKED = 4
"""Sessions at a time of a task that is picked on the page."""


class SessionRequest(Frozen):
    """Make a session."""


class VectorRequest(Frozen):
    """Make a session of many episodes, which a request steps together.

    An episode that ends begins anew in the same step: `observation` is then the next one's, the
    last one's is in `metadata["final_observation"]`, and reward, `done` and the rest are of the
    one that ended.

    Attributes:
      num_envs: how many.
    """

    num_envs: Annotated[int, Field(strict=True, ge=1, le=MAX_LANES)]


class SessionReply(Frozen):
    """A session.

    Attributes:
      session_id: its secret name.
    """

    session_id: str


class ErrorDetail(Frozen):
    """The code is of the same kind over HTTP and WebSocket; the message is for people."""

    code: str
    message: str


class ErrorReply(Frozen):
    """Why a request was not carried out."""

    error: ErrorDetail


class Reply(NamedTuple):
    """The session of a request, and whether it was made for it."""

    session: Session
    made: bool


class Naming:
    """Which session a request is about: that of its path, its header, its cookie, or the last one
    that a request without a name made, unless its client has come back with the cookie.

    Attributes:
      sessions: to find it in.
      strict: whether a request must name one.
    """

    def __init__(self, sessions: Sessions, strict: bool) -> None:
        self.sessions, self.strict = sessions, strict
        self._default: str | None = None

    def find(self, request: Request) -> Session | None:
        """The session that is meant; None if there is none to mean. Raises `RefusedError`."""
        name = _explicit(request) or request.cookies.get(COOKIE)
        if name is not None:
            return self.sessions.find(name)
        self._require_name()
        if self._default is None or self.sessions.is_claimed(self._default):
            return None
        session = self.sessions.find(self._default)
        session.claimed = False
        return session

    async def find_or_create(self, request: Request, episode_id: str | None) -> Reply:
        """As `find`; without a name, or with a cookie that is out of date, a session is made for
        that episode. An unknown client never begins an episode in another one's session."""
        name = _explicit(request)
        if name is not None:
            return Reply(self.sessions.find(name), False)
        if COOKIE in request.cookies:
            with suppress(RefusedError):
                return Reply(self.sessions.find(request.cookies[COOKIE]), False)
        self._require_name()
        # Before there is a session: one that is refused must not be the last one begun.
        self.sessions.require_new(episode_id)
        session = await self.sessions.create(claimed=False)
        if COOKIE not in request.cookies:
            self._default = session.id
        return Reply(session, True)

    def _require_name(self) -> None:
        if self.strict:
            raise RefusedError(
                409,
                "SESSION_REQUIRED",
                "POST /sessions, as Client.open does, makes a session; name it by path,"
                f" /sessions/ID/..., or by {HEADER}",
            )


def create_app(
    task: Any,
    *,
    host: str = "127.0.0.1",
    token: str | None = None,
    isolation: Isolation | None = None,
    capacity: int = 16,
    batching: Batching = "on",
    idle_timeout: float = 900.0,
    max_body: int = 65536,
    allowed_hosts: tuple[str, ...] = (),
    page: bool = True,
    clock: Callable[[], float] = time.monotonic,
) -> FastAPI:
    """The server of a task, for uvicorn with one worker: sessions live in its process.

    Args:
      task: the id of a task, `"Echo"`, `(env, params)`, or what makes a `HostEnvironment`.
      host: that it will be bound to; beyond loopback it needs a token.
      token: that each request must bear: what fits into a header, printable ASCII.
      isolation: "strict": each request must name its session; "lenient": one that does not is about
        the last session that such a one made. By default strict beyond loopback.
      capacity: sessions at a time.
      batching: "on": one program steps all places, whether one session steps or many, so keep the
        capacity small if a step is heavy; "off": it steps one place, and sessions wait for each
        other. Either way the numbers of a session do not depend on the others.
      idle_timeout: s, after which a session that is not heard of ends.
      max_body: bytes of a request or a message; one of many episodes may have its actions beside.
      allowed_hosts: names by which clients may call the server, beside `host` and loopback's.
      page: whether there is a page at `/`, on loopback and without a token only. It shows all of an
        episode to whoever knows its session, and compiles other tasks when they are picked.
      clock: s.

    Raises:
      ValidationError: no such task, or a bad number.
    """
    require(
        isinstance(capacity, int) and 0 < capacity <= MAX_LANES,
        "capacity",
        capacity,
        f"1 to {MAX_LANES}",
    )
    require(idle_timeout > 0, "idle_timeout", idle_timeout, "> 0 s")
    require(max_body > 0, "max_body", max_body, "> 0 bytes")
    loopback = is_loopback(host)
    require(loopback or token, "host", host, "on loopback (127.0.0.1), or there must be a token")
    if token:
        fits = token.isascii() and token.isprintable() and token == token.strip()
        shown = f"{len(token)} characters"
        require(fits, "token", shown, "printable ASCII, without spaces around it")
    engine = make_engine(task, capacity, clock, capacity if batching == "on" else 1)
    sessions = Sessions(engine, idle_timeout, clock=clock)
    every, max_batch = [sessions], max_body
    if isinstance(engine, LaneEngine):
        batch_engine = BatchEngine(engine, capacity)
        every.append(Sessions(batch_engine, idle_timeout, clock=clock))
        max_batch += MAX_LANES * batch_engine.action_bytes
    shelf = Shelf(partial(_picked, host=host, idle_timeout=idle_timeout, clock=clock))
    app = FastAPI(
        title=f"plumejax: {engine.name}",
        description=engine.about,
        version=__version__,
        lifespan=_lifespan(every, shelf),
        docs_url="/docs" if loopback else None,
        redoc_url=None,
    )
    app.state.sessions = sessions
    app.state.strict = (isolation or ("lenient" if loopback else "strict")) == "strict"
    naming = Naming(sessions, app.state.strict)
    app.include_router(_about(engine))
    for prefix in ("", "/sessions/{session_id}"):
        app.include_router(_play(naming, max_body), prefix=prefix)
    app.include_router(_manage(sessions, SessionRequest | None, Body(None)), prefix="/sessions")
    for batches in every[1:]:
        vector = Naming(batches, strict=True)
        app.include_router(_manage(batches, VectorRequest, Body()), prefix=VECTOR)
        app.include_router(_play(vector, max_batch), prefix=VECTOR + "/{session_id}")
    app.state.page = page and loopback and not token
    if app.state.page:
        app.include_router(pages.page(shelf, engine.name))
        app.include_router(pages.watching(sessions))
    _answer_errors(app)
    names = ["127.0.0.1", "localhost", "::1", host, *allowed_hosts]
    app.state.max_message = max_batch
    app.add_middleware(
        Guard,
        names=names,
        token=token,
        max_body=lambda path: max_batch if path.startswith(VECTOR) else max_body,
    )
    return app


def _picked(task: str, **options: Any) -> FastAPI:
    """The server of a task that was picked on the page of another one's."""
    app = create_app(task, isolation="strict", capacity=PICKED, page=False, **options)
    app.include_router(pages.watching(app.state.sessions))
    return app


def make_engine(task: Any, capacity: int, clock: Callable[[], float], width: int) -> Engine:
    """The engine of a task, which is given as to `create_app`; of one of arrays, `width` places
    step together."""
    if task == "Echo":
        from plumejax.serving.echo import Echo

        task = Echo
    if isinstance(task, str):
        try:
            about = registry.find(task).summary
        except ValidationError as error:
            raise ValidationError(f"{error}, Echo") from None
        return LaneEngine(task, about, registry.make(task), capacity, clock, width)
    if isinstance(task, tuple):
        return LaneEngine(task[0].name, f"{task[0].name}.", task, capacity, clock, width)
    require(callable(task), "task", task, "an id, (env, params), or what makes a HostEnvironment")
    made = task()
    require(isinstance(made, HostEnvironment), "task()", made, "a HostEnvironment")
    return HostEngine(task, capacity, clock)


def _lifespan(every: list[Sessions], shelf: Shelf) -> Any:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        # Nothing is answered before all is compiled.
        for sessions in every:
            await sessions.engine.start()
        sweeps = [asyncio.create_task(_sweep(sessions)) for sessions in every]
        yield
        await shelf.close()
        for sweep in sweeps:
            sweep.cancel()
        for sessions in every[::-1]:
            await sessions.finish()
            await sessions.engine.stop()

    return lifespan


async def _sweep(sessions: Sessions) -> None:
    while True:
        await asyncio.sleep(min(sessions.idle / 4, 30.0))
        sessions.expire()


def _about(engine: Engine) -> APIRouter:
    """What can be asked of the task itself."""
    router = APIRouter(tags=["task"])

    @router.get("/health")
    async def health() -> Response:
        """Whether it is well; it answers only once everything is compiled."""
        if engine.healthy:
            return JSONResponse({"status": "healthy"})
        return JSONResponse({"status": "degraded"}, 503)

    @router.get("/metadata")
    async def metadata() -> dict[str, Any]:
        """What the task is."""
        return {
            "name": engine.name,
            "description": engine.about,
            "version": __version__,
            "capacity": engine.capacity,
        }

    @router.get("/schema")
    async def schema() -> dict[str, Any]:
        """JSON schemas of its actions, observations and state."""
        models = {
            "action": engine.action,
            "observation": engine.observation,
            "state": engine.state,
        }
        return {name: model.model_json_schema() for name, model in models.items()}

    @router.post("/mcp", include_in_schema=False)
    async def mcp(request: Request) -> dict[str, Any]:
        """There are no tools: an agent must not reach `reset` through one."""
        try:
            call = from_json(await request.body())
        except ValueError:
            call = None
        number = call.get("id") if isinstance(call, dict) else None
        number = number if isinstance(number, int | str) else None
        return {
            "jsonrpc": "2.0",
            "id": number,
            "error": {"code": -32601, "message": "Method not found"},
        }

    return router


def _manage(sessions: Sessions, model: Any, body: Any) -> APIRouter:
    """Make and end sessions; `model` and `body` say what a request to make one brings."""
    router = APIRouter(tags=["sessions"])

    @router.post("", status_code=201, response_model=SessionReply, responses=_refusals(422, 503))
    async def create(wanted: model = body) -> Any:
        """A new session, to be played under its path or by its header."""
        session = await sessions.create(**(wanted.model_dump() if wanted else {}))
        return SessionReply(session_id=session.id)

    @router.delete("/{session_id}", status_code=204, responses=_refusals(404))
    async def end(session_id: str) -> None:
        """End a session; its place is free for another."""
        await sessions.end(sessions.find(session_id))

    return router


def _play(naming: Naming, max_body: int) -> APIRouter:
    """Play in the session that a request names."""
    sessions = naming.sessions
    engine = sessions.engine
    step_request = StepRequest[engine.action]  # type: ignore[name-defined]
    reply = _reply_model(engine)
    router = APIRouter(tags=["play"])
    answers: dict[str, Any] = {"response_model": None, "response_class": JSONResponse}

    @router.post(
        "/reset",
        responses={200: {"model": reply}, **_refusals(404, 409, 422, 429, 503)},
        **answers,
    )
    async def reset(request: Request, body: ResetRequest | None = None) -> Response:
        """Begin an episode."""
        wanted = body or ResetRequest()
        session, made = await naming.find_or_create(request, wanted.episode_id)
        content = await sessions.whole(sessions.reset(session, wanted))
        response = Response(content, media_type="application/json")
        if made:
            response.set_cookie(COOKIE, session.id, httponly=True, samesite="strict")
        return response

    @router.post(
        "/step", responses={200: {"model": reply}, **_refusals(404, 409, 422, 429, 504)}, **answers
    )
    async def step(
        body: step_request,
        session: Annotated[Session | None, Depends(_named(naming))],
    ) -> Response:
        """One step. One that is refused changes nothing; one with `metadata.error` neither."""
        if session is None:
            raise RefusedError(409, "NOT_RESET", "reset first")
        content = await sessions.whole(sessions.step(session, body))
        return Response(content, media_type="application/json")

    @router.get("/state", response_model=engine.state, responses=_refusals(404))
    async def state(session: Annotated[Session | None, Depends(_named(naming))]) -> Any:
        """Where the episode stands."""
        return engine.state() if session is None else session.state

    @router.websocket("/ws")
    async def ws(socket: WebSocket) -> None:
        """The socket of a session of its own, or of the one that it names."""
        await socket.accept()
        name = socket.path_params.get("session_id") or socket.headers.get(HEADER)
        try:
            session = sessions.find(name) if name else await sessions.create()
        except RefusedError as refused:
            await socket.send_text(error_text(refused))
            await socket.close()
            return
        try:
            await converse(socket, sessions, session, step_request, max_body)
        finally:
            if not name:
                await asyncio.shield(sessions.end(session))

    return router


def _named(naming: Naming) -> Callable[[Request], Any]:
    async def named(request: Request) -> Session | None:
        return naming.find(request)

    return named


def _explicit(request: Request) -> str | None:
    return request.path_params.get("session_id") or request.headers.get(HEADER)


def _reply_model(engine: Engine) -> Any:
    """What a transition is answered with."""
    many = isinstance(engine, BatchEngine)
    fields: dict[str, Any] = {
        "observation": (engine.observation, ...),
        "reward": (Array if many else float | None, ...),
        "done": (Array if many else bool, ...),
        "metadata": (dict[str, Any], ...),
    }
    return create_model(f"{engine.observation.__name__}Reply", **fields)


def _refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": ErrorReply} for status in statuses}


def _answer_errors(app: FastAPI) -> None:
    """Every error in one form, without a word of what is inside."""

    def answer(refused: RefusedError) -> JSONResponse:
        return JSONResponse({"error": refused.error}, refused.status, refused.headers)

    @app.exception_handler(RefusedError)
    async def refusal(request: Request, error: RefusedError) -> JSONResponse:
        return answer(error)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        return answer(_invalid(error))

    @app.exception_handler(RecursionError)
    async def deep(request: Request, error: RecursionError) -> JSONResponse:
        # What an environment raises does not come this far: it is the body.
        return answer(RefusedError(422, "INVALID_JSON", "the body is nested too deeply"))

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> JSONResponse:
        if error.status_code == 400:
            # FastAPI could not read the body at all.
            return answer(RefusedError(422, "INVALID_JSON", "the body is not JSON"))
        code = str(error.detail).upper().replace(" ", "_")
        headers = dict(error.headers or {})
        return answer(RefusedError(error.status_code, code, str(error.detail), headers))

    @app.exception_handler(Exception)
    async def bug(request: Request, error: Exception) -> JSONResponse:
        return answer(broken(error))


def _invalid(error: RequestValidationError) -> RefusedError:
    wrong = error.errors()
    if any(each["type"] == "json_invalid" or each["loc"] == ("body",) for each in wrong):
        return RefusedError(422, "INVALID_JSON", "the body is not a JSON object")
    # The first part of a place is where it was sent, the body.
    placed = [{**each, "loc": each["loc"][1:]} for each in wrong]
    return RefusedError(422, "VALIDATION_ERROR", described(placed))
