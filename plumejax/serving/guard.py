"""serving/guard: Guard, what a request must be before the app looks at it."""

import hmac
import ipaddress
import json
import re
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from plumejax.serving.refusals import RefusedError

OPEN = "/health"
"""What needs no token: it tells nothing, and containers are asked for it."""

HOST = re.compile(r"(\[[^\]]+\]|[^:@/\[\]]+)(:\d*)?")
"""A name or address, and a port."""


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach what listens there."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class Guard:
    """Refuses a request to another name, one without the token, one from a page of another origin,
    and a body that is too large or is not called JSON.

    Attributes:
      app: what it guards.
      names: that it may be called by; `*` in one stands for anything.
      token: None lets everybody in.
      max_body: of a path, bytes.
    """

    def __init__(
        self,
        app: ASGIApp,
        names: Iterable[str],
        token: str | None,
        max_body: Callable[[str], int],
    ) -> None:
        self.app, self.token, self.max_body = app, token, max_body
        self.names = [name.strip("[]").lower() for name in names]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        try:
            self._require_known_name(headers)
            if scope["path"] != OPEN:
                self._require_token(headers)
            _require_own_origin(headers)
            if scope["type"] == "http" and scope["method"] in ("POST", "PUT", "PATCH"):
                body = await _whole_body(headers, receive, self.max_body(scope["path"]))
                if body is None:
                    # Who is gone in the middle of a request has not made it.
                    return
                receive = _again(body, receive)
        except RefusedError as refused:
            await (_close if scope["type"] == "websocket" else _answer)(refused, receive, send)
            return
        await self.app(scope, receive, send)

    def _require_known_name(self, headers: Headers) -> None:
        # A page of elsewhere may have pointed its own name at this machine.
        host = HOST.fullmatch(headers.get("host", ""))
        name = host[1].strip("[]").lower() if host else ""
        if not any(fnmatchcase(name, known) for known in self.names):
            raise RefusedError(
                400,
                "UNKNOWN_HOST",
                f"this server does not go by the name {name!r}: serve with --allow-host NAME",
            )

    def _require_token(self, headers: Headers) -> None:
        if self.token is None:
            return
        given = headers.get("authorization", "").encode()
        if not hmac.compare_digest(given, f"Bearer {self.token}".encode()):
            raise RefusedError(
                401,
                "UNAUTHORIZED",
                "this server asks for a token: Authorization: Bearer ...",
                {"WWW-Authenticate": "Bearer"},
            )


async def _whole_body(headers: Headers, receive: Receive, most: int) -> bytes | None:
    """The body, of so many bytes at most; None if its client is gone before it ends."""
    too_large = RefusedError(413, "BODY_TOO_LARGE", f"a body has at most {most} bytes")
    if int(headers.get("content-length", 0)) > most:
        raise too_large
    body, more = b"", True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > most:
            raise too_large
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if body and kind != "application/json":
        raise RefusedError(415, "UNSUPPORTED_TYPE", "a body must be application/json")
    return body


def _again(body: bytes, receive: Receive) -> Receive:
    """Hands on a body that has been read, and then what comes after it."""
    whole: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def read() -> Message:
        return whole.pop() if whole else await receive()

    return read


def _require_own_origin(headers: Headers) -> None:
    origin = headers.get("origin")
    if origin is not None and _netloc(origin) != headers.get("host"):
        raise RefusedError(403, "FOREIGN_ORIGIN", "pages of other origins may not use this server")


def _netloc(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None


async def _answer(refused: RefusedError, receive: Receive, send: Send) -> None:
    content = json.dumps({"error": refused.error}).encode()
    headers = {"content-type": "application/json", "connection": "close", **refused.headers}
    raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": refused.status, "headers": raw})
    await send({"type": "http.response.body", "body": content})


async def _close(refused: RefusedError, receive: Any, send: Send) -> None:
    # Before it is accepted: the client sees its handshake refused.
    await send({"type": "websocket.close", "code": 1008, "reason": refused.code})
