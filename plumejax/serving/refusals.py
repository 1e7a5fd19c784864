"""serving/refusals: what the server answers when it does not do what it is asked."""

import logging
import secrets
from typing import Any

LOG = logging.getLogger("plumejax.serving")


class RefusedError(Exception):
    """A request that is not carried out: nothing has changed.

    Attributes:
      status: of HTTP.
      code: the same on HTTP and WebSocket.
      message: for the client.
      headers: of the HTTP response.
    """

    def __init__(
        self, status: int, code: str, message: str, headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message
        self.headers = headers or {}

    @property
    def error(self) -> dict[str, Any]:
        """As JSON says it."""
        return {"code": self.code, "message": self.message}


def broken(error: Exception) -> RefusedError:
    """What a client is told of an error of ours: a number to look for in the log, no more."""
    number = secrets.token_hex(4)
    LOG.error("error %s", number, exc_info=error)
    return RefusedError(500, "EXECUTION_ERROR", f"internal error {number}")


def not_there(expired: bool) -> RefusedError:
    """There is no such session, or no more."""
    why = "the session has expired or was deleted" if expired else "there is no such session"
    return RefusedError(404, "SESSION_NOT_FOUND", f"{why}; make another one, and reset it")
