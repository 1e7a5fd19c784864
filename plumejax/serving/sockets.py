"""serving/sockets: the WebSocket protocol of OpenEnv: one socket, one session."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

import pydantic_core
from fastapi import WebSocket, WebSocketDisconnect
from pydantic import ValidationError

from plumejax.serving.refusals import RefusedError, not_there
from plumejax.serving.sessions import ResetRequest, Session, Sessions, StepRequest

TOO_LARGE = 1009
"""The code that WebSocket has for it."""


async def converse(
    socket: WebSocket, sessions: Sessions, session: Session, step: type[StepRequest], most: int
) -> None:
    """Answer the messages of an accepted socket until one of the two sides closes it.

    Args:
      socket, sessions, session: who speaks, and for whom.
      step: the model of a step.
      most: bytes of a message.
    """
    watch = asyncio.create_task(_close_at_end(socket, session))
    try:
        while True:
            message = await socket.receive()
            if message["type"] == "websocket.disconnect":
                return
            text = message.get("bytes") or (message.get("text") or "").encode()
            if len(text) > most:
                await socket.close(TOO_LARGE)
                return
            answer = await _answered(sessions, session, step, text)
            if answer is None:
                await socket.close()
                return
            await socket.send_text(answer)
    except (WebSocketDisconnect, RuntimeError):
        # It is gone, or was closed as we spoke.
        return
    finally:
        watch.cancel()


def error_text(refused: RefusedError) -> str:
    """A refusal as a message."""
    return pydantic_core.to_json({"type": "error", "data": refused.error}).decode()


def described(wrong: Sequence[Any]) -> str:
    """What pydantic's errors say is wrong, and where; not what was sent."""
    return "; ".join(_place(each) for each in wrong[:5])


def _place(error: Any) -> str:
    where = ".".join(str(part) for part in error["loc"])
    return f"{where}: {error['msg']}" if where else error["msg"]


async def _answered(
    sessions: Sessions, session: Session, step: type[StepRequest], text: bytes
) -> str | None:
    """The answer to a message; None to one that says farewell."""
    try:
        message = _parsed(text)
        if message["type"] == "close":
            return None
        session = sessions.find(session.id)
        return await _VERBS[message["type"]](sessions, session, step, message)
    except ValidationError as error:
        return error_text(RefusedError(422, "VALIDATION_ERROR", described(error.errors())))
    except RefusedError as refused:
        return error_text(refused)


def _parsed(text: bytes) -> dict[str, Any]:
    try:
        message = pydantic_core.from_json(text)
    except ValueError:
        raise RefusedError(422, "INVALID_JSON", "the message is not JSON") from None
    if not isinstance(message, dict):
        raise RefusedError(422, "INVALID_JSON", "the message is no object")
    kind = message.get("type")
    if not isinstance(kind, str) or kind not in (*_VERBS, "close"):
        raise RefusedError(422, "UNKNOWN_TYPE", f"type is one of {', '.join(_VERBS)}, close")
    return message


async def _reset(sessions: Sessions, session: Session, step: Any, message: Any) -> str:
    data = message.get("data")
    request = ResetRequest.model_validate({} if data is None else data)
    return _observation(await sessions.reset(session, request))


async def _step(sessions: Sessions, session: Session, step: Any, message: Any) -> str:
    beside = {name: value for name, value in message.items() if name not in ("type", "data")}
    request = step.model_validate({**beside, "action": message.get("data")})
    return _observation(await sessions.step(session, request))


async def _state(sessions: Sessions, session: Session, step: Any, message: Any) -> str:
    return f'{{"type":"state","data":{session.state.model_dump_json()}}}'


def _observation(body: bytes) -> str:
    return f'{{"type":"observation","data":{body.decode()}}}'


_VERBS: dict[str, Callable[..., Awaitable[str]]] = {
    "reset": _reset,
    "step": _step,
    "state": _state,
}


async def _close_at_end(socket: WebSocket, session: Session) -> None:
    """Say so, and close the socket, when its session is no more."""
    await session.ended.wait()
    with suppress(WebSocketDisconnect, RuntimeError):
        await socket.send_text(error_text(not_there(expired=True)))
        await socket.close()
