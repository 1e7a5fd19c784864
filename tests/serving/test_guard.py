"""tests/serving/test_guard: who may speak to the server, and how."""

import asyncio
import json
import socket
import sys

import httpx
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from plumejax.base.errors import ValidationError
from plumejax.cli import main
from plumejax.serving import AsyncClient, Client, Echo, HostEnvironment, create_app
from plumejax.serving.client import RequestRefusedError
from plumejax.serving.running import listener

TOKEN = "a secret"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
HELLO = {"action": {"message": "hi"}}


class Broken(Echo):
    """Fails half way through a step."""

    def step(self, action):
        observation = super().step(action)
        if action.message == "fail":
            raise RuntimeError("the password is swordfish")
        if action.message == "nan":
            return observation.model_copy(update={"reward": float("nan")})
        if action.message == "exit":
            sys.exit("the password is swordfish")
        if action.message == "stop":
            next(iter(()))
        return observation


@pytest.fixture(scope="module")
def served(serve):
    """A server that asks for a token, and for the name of a session."""
    with serve(Broken, token=TOKEN, isolation="strict", max_body=2000) as served:
        served.http.headers.update(BEARER)
        yield served


@pytest.mark.parametrize("given", [{}, {"Authorization": "Bearer x"}, {"Authorization": TOKEN}])
def test_nothing_goes_without_the_token(served, given):
    with httpx.Client(base_url=served.url, headers=given) as http:
        for verb, path in (("POST", "/sessions"), ("GET", "/state"), ("GET", "/schema")):
            answer = http.request(verb, path)
            assert (answer.status_code, answer.json()["error"]["code"]) == (401, "UNAUTHORIZED")
            assert answer.headers["www-authenticate"] == "Bearer"
        assert http.get("/health").json() == {"status": "healthy"}
    with (
        pytest.raises(InvalidStatus, match="403"),
        served.socket(additional_headers=given),
    ):
        pass


def test_a_request_must_name_its_session(served):
    for answer in (
        served.post("/reset"),
        served.post("/reset", headers={"Cookie": "plumejax_session=gone"}),
        served.post("/step", HELLO),
        served.get("/state"),
    ):
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "SESSION_REQUIRED")
    with Client.open(served.url, token=TOKEN) as client:
        assert client.reset().observation["echoed_message"] == "Echo environment ready!"


def test_pages_of_other_origins_and_names_are_refused(served):
    path = served.session()
    foreign = {"Origin": "http://evil.example"}
    answer = served.post(path + "/reset", headers=foreign)
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "FOREIGN_ORIGIN")
    assert served.post(path + "/reset", headers={"Origin": served.url}).status_code == 200
    headers = {**foreign, **BEARER}
    with pytest.raises(InvalidStatus, match="403"), served.socket(additional_headers=headers):
        pass
    # An origin that is none.
    assert served.post(path + "/reset", headers={"Origin": "http://["}).status_code == 403
    headers = {"Origin": "http://[", **BEARER}
    with pytest.raises(InvalidStatus, match="403"), served.socket(additional_headers=headers):
        pass


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "[::1]:8000", "a.lab", "10.0.0.7"])
def test_it_is_called_by_its_names(named, host):
    assert named.get("/health", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "", "lab", "[::1", "me@localhost", "10.0.0.77"])
def test_a_name_that_another_has_pointed_at_this_machine(named, host):
    answer = named.get("/health", headers={"Host": host})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "UNKNOWN_HOST")
    assert "--allow-host" in answer.json()["error"]["message"]


@pytest.fixture(scope="module")
def named(serve):
    """A server of several names."""
    with serve("Echo", allowed_hosts=("*.lab", "10.0.0.7")) as named:
        yield named


@pytest.mark.parametrize("sent", ["", json.dumps(HELLO)])
def test_a_request_that_breaks_off_is_not_made(served, sent):
    path = served.session()
    served.post(path + "/reset")
    before = served.get(path + "/state").json()
    verb = "step" if sent else "reset"
    head = (f"POST {path}/{verb} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {TOKEN}")
    rest = ("Content-Type: application/json", "Content-Length: 60", "", sent)
    with socket.create_connection(served.url.removeprefix("http://").split(":")) as connection:
        connection.sendall("\r\n".join((*head, *rest)).encode())
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(100) == b""
    assert served.get(path + "/state").json() == before


def test_what_is_nested_too_deeply_is_refused(served):
    path = served.session()
    served.post(path + "/reset")
    nested = "[" * 800 + "]" * 800
    content = f'{{"action": {{"message": "hi", "metadata": {{"a": {nested}}}}}}}'
    as_json = {"content-type": "application/json"}
    answer = served.post(path + "/step", content=content, headers=as_json)
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "INVALID_JSON")
    assert served.get(path + "/state").json()["step_count"] == 0
    for content in ("[" * 1900, '{"id": "\\ud800"}'):
        answer = served.post("/mcp", content=content, headers=as_json)
        assert answer.json()["error"]["code"] == -32601


def test_bodies_are_json_and_not_large(served):
    path = served.session()
    served.post(path + "/reset")
    text = served.post(path + "/step", content="{}", headers={"content-type": "text/plain"})
    assert (text.status_code, text.json()["error"]["code"]) == (415, "UNSUPPORTED_TYPE")
    large = {"action": {"message": "a" * 2000}}
    as_json = {"content-type": "application/json"}

    def chunks():
        for _ in range(30):
            yield b"a" * 100

    for answer in (
        served.post(path + "/step", large),
        served.post(path + "/step", content=chunks(), headers=as_json),
    ):
        assert (answer.status_code, answer.json()["error"]["code"]) == (413, "BODY_TOO_LARGE")
    with served.socket(path + "/ws", additional_headers=BEARER) as socket:
        with pytest.raises(ConnectionClosed):
            socket.send(json.dumps({"message": "é" * 1500}, ensure_ascii=False))
        assert socket.connection.close_code == 1009
    assert served.get(path + "/state").json()["step_count"] == 0


@pytest.mark.parametrize("message", ["fail", "nan", "exit", "stop"])
def test_an_error_of_the_environment_tells_nothing_and_changes_nothing(served, message, caplog):
    path = served.session()
    served.post(path + "/reset")
    served.post(path + "/step", HELLO)
    answer = served.post(path + "/step", {"action": {"message": message}})
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (500, "EXECUTION_ERROR")
    assert "swordfish" not in answer.text
    number = error["message"].removeprefix("internal error ")
    assert any(number in record.getMessage() for record in caplog.records)
    assert served.get(path + "/state").json()["step_count"] == 1
    assert served.post(path + "/step", HELLO).json()["metadata"]["step"] == 2


def test_an_environment_that_cannot_be_made(serve):
    failing = []

    def make():
        if failing:
            raise RuntimeError("the password is swordfish")
        return Echo()

    with serve(make, capacity=1) as served:
        failing.append(True)
        for _ in range(2):
            answer = served.post("/sessions")
            assert (answer.status_code, answer.json()["error"]["code"]) == (500, "EXECUTION_ERROR")
            with served.socket() as socket:
                assert socket.hear()["data"]["code"] == "EXECUTION_ERROR"


def test_the_cookie_is_not_for_scripts_nor_other_sites(serve):
    with serve("Echo") as served:
        cookie = served.post("/reset").headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie


def test_beyond_this_machine_there_must_be_a_token():
    with pytest.raises(ValidationError, match="token"):
        create_app("Echo", host="0.0.0.0")
    with pytest.raises(ValidationError, match="token"):
        create_app("Echo", host="example.org")
    app = create_app("Echo", host="0.0.0.0", token=TOKEN)
    assert app.docs_url is None


def test_what_cannot_be_served():
    with pytest.raises(ValidationError, match=r"no task.*, Echo$"):
        create_app("PlumeSearch-v99")
    for token in ("sécret", "secret\n", " secret"):
        with pytest.raises(ValidationError, match="ASCII") as seen:
            create_app("Echo", token=token)
        assert token.strip() not in str(seen.value)
    with pytest.raises(ValidationError, match="capacity"):
        create_app("Echo", capacity=0)
    with pytest.raises(ValidationError, match="HostEnvironment"):
        create_app(dict)
    assert issubclass(Broken, HostEnvironment)


def test_the_command_says_what_cannot_be_served(capsys):
    with listener("127.0.0.1", 0) as taken:
        port = str(taken.getsockname()[1])
        assert main(["serve", "Echo", "--port", port]) == 2
    said = capsys.readouterr()
    assert f"cannot listen at 127.0.0.1, port {port}: " in said.err
    assert "compiling" not in said.out
    assert main(["serve", "Echo", "--set", "dt=1"]) == 2
    assert "Echo has no numbers" in capsys.readouterr().err


def test_the_clients_say_what_was_wrong(served):
    with Client.open(served.url, token=TOKEN) as client, pytest.raises(RequestRefusedError) as seen:
        client.step({"message": "hi"})
    assert (seen.value.status, seen.value.code) == (409, "NOT_RESET")
    assert isinstance(seen.value, httpx.HTTPStatusError)

    async def play():
        async with await AsyncClient.open(served.url, token=TOKEN) as client:
            await client.reset()
            result = await client.step({"message": "hello"})
            return result, await client.state()

    result, state = asyncio.run(play())
    assert (result.observation["echoed_message"], result.reward, result.done) == (
        "hello",
        0.5,
        False,
    )
    assert state.step_count == 1
    with pytest.raises(ValueError, match="immutable"):
        result.observation["echoed_message"] = "mine"
