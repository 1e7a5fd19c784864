"""serving/guard: Guard, what a request must be before the app looks at it."""

import hmac
import ipaddress
import json
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from plumejax.serving.refusals import RefusedError

OPEN = "/health"
"""What needs no token: it tells nothing, and containers are asked for it."""


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach what listens there."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class Guard:
    """Refuses a request without the token, one from a page of another origin, and a body that is
    too large or is not called JSON.

    Attributes:
      app: what it guards.
      token: None lets everybody in.
      max_body: bytes.
    """

    def __init__(self, app: ASGIApp, token: str | None, max_body: int) -> None:
        self.app, self.token, self.max_body = app, token, max_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        try:
            if scope["path"] != OPEN:
                self._require_token(headers)
            _require_own_origin(headers)
            if scope["type"] == "http" and scope["method"] in ("POST", "PUT", "PATCH"):
                receive = await self._whole_body(headers, receive)
        except RefusedError as refused:
            await (_close if scope["type"] == "websocket" else _answer)(refused, receive, send)
            return
        await self.app(scope, receive, send)

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

    async def _whole_body(self, headers: Headers, receive: Receive) -> Receive:
        """The body, read; gives what hands it on."""
        too_large = RefusedError(413, "BODY_TOO_LARGE", f"a body has at most {self.max_body} bytes")
        if int(headers.get("content-length", 0)) > self.max_body:
            raise too_large
        body, more = b"", True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                break
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > self.max_body:
                raise too_large
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if body and kind != "application/json":
            raise RefusedError(415, "UNSUPPORTED_TYPE", "a body must be application/json")
        whole: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def read() -> Message:
            return whole.pop() if whole else await receive()

        return read


def _require_own_origin(headers: Headers) -> None:
    origin = headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != headers.get("host"):
        raise RefusedError(403, "FOREIGN_ORIGIN", "pages of other origins may not use this server")


async def _answer(refused: RefusedError, receive: Receive, send: Send) -> None:
    content = json.dumps({"error": refused.error}).encode()
    headers = {"content-type": "application/json", "connection": "close", **refused.headers}
    raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": refused.status, "headers": raw})
    await send({"type": "http.response.body", "body": content})


async def _close(refused: RefusedError, receive: Any, send: Send) -> None:
    # Before it is accepted: the client sees its handshake refused.
    await send({"type": "websocket.close", "code": 1008, "reason": refused.code})
