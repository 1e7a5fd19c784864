"""serving/client: Client and AsyncClient, a served environment from afar."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import httpx
from pydantic import BaseModel

from plumejax.base.errors import PlumeError
from plumejax.serving.environment import State, frozen
from plumejax.serving.models import VALUE, Array, encoded, packed, to_numpy

TIMEOUT = 15.0
"""s, that a client waits for an answer."""

COMPILING = 300.0
"""s, that it waits for a session: one of many episodes compiles first."""

VECTOR = "/v1/vector/sessions"
"""Where there are sessions of many episodes."""


class StepResult(NamedTuple):
    """What a reset or a step came to.

    Attributes:
      observation: fields by name, read-only, `metadata` among them; large arrays are NumPy's.
      reward: None where nothing was paid; of a batch an array.
      done: whether the episode has ended; of a batch an array.
    """

    observation: Any
    reward: Any
    done: Any


class RequestRefusedError(PlumeError, httpx.HTTPStatusError):
    """The server did not do what it was asked.

    Attributes:
      status: of HTTP.
      code: the server's own.
    """

    def __init__(self, response: httpx.Response) -> None:
        error = _error(response)
        self.status, self.code = response.status_code, error["code"]
        message = f"{error['code']} ({self.status}): {error['message']}"
        httpx.HTTPStatusError.__init__(self, message, request=response.request, response=response)


class Messages:
    """How actions, observations and states are written; a client of typed ones overrides this.

    Args:
      base_url: of the server, or of a session.
      timeout: s.
    """

    def __init__(self, base_url: str, timeout: float) -> None:
        self.base_url, self.timeout = base_url.rstrip("/"), timeout
        self._write = packed if f"{VECTOR}/" in base_url else encoded

    def _step_payload(self, action: Any) -> dict[str, Any]:
        """An action as JSON: a model, fields by name, or the one field, `value`."""
        if isinstance(action, BaseModel):
            return action.model_dump(mode="json")
        fields = action if isinstance(action, Mapping) else {VALUE: action}
        return {name: self._write(value) for name, value in fields.items()}

    def _parse_result(self, payload: dict[str, Any]) -> StepResult:
        observation, reward, done = (_read(payload[name]) for name in StepResult._fields)
        return StepResult(frozen(observation), reward, done)

    def _parse_state(self, payload: dict[str, Any]) -> Any:
        return State.model_validate(payload)

    def _step_body(self, action: Any, options: Mapping[str, Any]) -> dict[str, Any]:
        payload = self._step_payload(action)
        return {"action": payload, "timeout_s": self.timeout, **_given(options)}


class Client(Messages):
    """Plays in a session of its own, which the server's cookie names; or under the URL of a
    session, as `Client.open` does.

    Args:
      base_url: of the server, such as `http://127.0.0.1:8000`, or of a session.
      timeout: s, that it waits for an answer; a step that is not begun by then never is.
      token: of the server, if it asks for one.
      headers: sent with every request.
    """

    def __init__(
        self,
        base_url: str,
        *,
        timeout: float = TIMEOUT,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(base_url, timeout)
        self._http = httpx.Client(timeout=timeout, headers=_headers(token, headers))

    @classmethod
    def open(cls, base_url: str, *, num_envs: int | None = None, **options: Any) -> "Client":
        """A client in a new session, of `num_envs` episodes if that is given."""
        with cls(base_url, **{**options, "timeout": COMPILING}) as server:
            path, body = _new_session(num_envs)
            session = server._post(path, body)["session_id"]
        return cls(f"{server.base_url}{path}/{session}", **options)

    def reset(
        self,
        seed: int | None = None,
        episode_id: str | None = None,
        *,
        request_id: str | None = None,
    ) -> StepResult:
        """Begin an episode. Raises `RequestRefusedError`."""
        options = {"seed": seed, "episode_id": episode_id, "request_id": request_id}
        return self._parse_result(self._post("/reset", _given(options)))

    def step(
        self, action: Any, *, episode_id: str | None = None, request_id: str | None = None
    ) -> StepResult:
        """One step; sent again with the same `request_id` it is made once. Raises
        `RequestRefusedError`."""
        options = {"episode_id": episode_id, "request_id": request_id}
        return self._parse_result(self._post("/step", self._step_body(action, options)))

    def state(self) -> Any:
        """The `State` of the episode. Raises `RequestRefusedError`."""
        return self._parse_state(_content(self._http.get(f"{self.base_url}/state")))

    def close(self) -> None:
        """Let go of the connection."""
        self._http.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        return _content(self._http.post(f"{self.base_url}{path}", json=body))


class AsyncClient(Messages):
    """As `Client`, each method a coroutine."""

    def __init__(
        self,
        base_url: str,
        *,
        timeout: float = TIMEOUT,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(base_url, timeout)
        self._http = httpx.AsyncClient(timeout=timeout, headers=_headers(token, headers))

    @classmethod
    async def open(
        cls, base_url: str, *, num_envs: int | None = None, **options: Any
    ) -> "AsyncClient":
        """As `Client.open`."""
        async with cls(base_url, **{**options, "timeout": COMPILING}) as server:
            path, body = _new_session(num_envs)
            session = (await server._post(path, body))["session_id"]
        return cls(f"{server.base_url}{path}/{session}", **options)

    async def reset(
        self,
        seed: int | None = None,
        episode_id: str | None = None,
        *,
        request_id: str | None = None,
    ) -> StepResult:
        """As `Client.reset`."""
        options = {"seed": seed, "episode_id": episode_id, "request_id": request_id}
        return self._parse_result(await self._post("/reset", _given(options)))

    async def step(
        self, action: Any, *, episode_id: str | None = None, request_id: str | None = None
    ) -> StepResult:
        """As `Client.step`."""
        options = {"episode_id": episode_id, "request_id": request_id}
        body = self._step_body(action, options)
        return self._parse_result(await self._post("/step", body))

    async def state(self) -> Any:
        """As `Client.state`."""
        return self._parse_state(_content(await self._http.get(f"{self.base_url}/state")))

    async def close(self) -> None:
        """As `Client.close`."""
        await self._http.aclose()

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _post(self, path: str, body: dict[str, Any]) -> Any:
        return _content(await self._http.post(f"{self.base_url}{path}", json=body))


def _content(response: httpx.Response) -> Any:
    if response.is_error:
        raise RequestRefusedError(response)
    return response.json()


def _error(response: httpx.Response) -> dict[str, str]:
    """What the server says of it, or a proxy on the way."""
    try:
        return dict(response.json()["error"])
    except (ValueError, KeyError, TypeError):
        return {"code": response.reason_phrase, "message": response.text[:200]}


def _new_session(num_envs: int | None) -> tuple[str, dict[str, Any]]:
    """The path to post to, and what."""
    return ("/sessions", {}) if num_envs is None else (VECTOR, {"num_envs": num_envs})


def _headers(token: str | None, headers: Mapping[str, str] | None) -> dict[str, str]:
    return {**({"Authorization": f"Bearer {token}"} if token else {}), **(headers or {})}


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _read(value: Any) -> Any:
    """JSON with NumPy arrays for what was written in base64."""
    if not isinstance(value, dict):
        return value
    if value.keys() == {"dtype", "shape", "data"}:
        array = to_numpy(Array.model_validate(value))
        array.flags.writeable = False
        return array
    return {name: _read(each) for name, each in value.items()}
