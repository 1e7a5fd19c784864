"""tests/serving/test_faults: the command, and clients and servers that die, or speak nonsense."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from socket import SHUT_RDWR

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from plumejax.serving import Client
from plumejax.serving.client import RequestRefusedError

pytestmark = pytest.mark.slow

HELLO = {"message": "hi"}


def start(port, *arguments, task="Echo", **variables):
    """`plumejax serve`, once it answers: the process, and what it said."""
    process = subprocess.Popen(
        [sys.executable, "-m", "plumejax", "serve", task, "--port", str(port), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **variables},
    )
    said = ""
    while "/schema" not in said:
        line = process.stdout.readline()
        assert line, said
        said += line
    return process, said


def stop(process, how=signal.SIGINT):
    process.send_signal(how)
    try:
        process.wait(timeout=30)
    finally:
        process.kill()
        process.stdout.close()


@pytest.mark.usefixtures("interruptible")
def test_the_command_serves_and_says_where():
    process, said = start(
        0, "--set", "max_steps=5", "ending.radius=0.001", task="PlumeSearchLocal-v0"
    )
    try:
        url = re.search(r"served at (\S+)", said)[1]
        assert httpx.get(url + "/health").json() == {"status": "healthy"}
        with Client(url) as client:
            client.reset(seed=3)
            done = [client.step(0).done for _ in range(5)]
            assert done == [False] * 4 + [True]
            with pytest.raises(RequestRefusedError, match="EPISODE_DONE"):
                client.step(0)
    finally:
        stop(process)
    assert process.returncode in (0, 130, -signal.SIGINT)


def test_the_command_asks_for_the_token_of_its_surroundings():
    process, said = start(0, "--host", "0.0.0.0", PLUMEJAX_TOKEN="secret")
    try:
        port = re.search(r":(\d+)", said)[1]
        url = f"http://127.0.0.1:{port}"
        assert httpx.post(url + "/sessions").status_code == 401
        with Client.open(url, token="secret") as client:
            assert client.reset().reward == 0.0
        assert f"Client.open('http://0.0.0.0:{port}', token=...)" in said
        assert f"curl -X POST http://0.0.0.0:{port}/sessions -H 'Authorization: Bearer ...'" in said
        assert "/docs" not in said
    finally:
        stop(process)


def test_a_server_that_was_killed_begins_no_episode_unasked():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    process, _ = start(port)
    with Client(url) as by_cookie, Client.open(url) as by_path, httpx.Client() as unnamed:
        for client in (by_cookie, by_path):
            client.reset()
            client.step(HELLO)
        unnamed.post(url + "/reset")
        stop(process, signal.SIGKILL)
        with pytest.raises(httpx.TransportError):
            by_path.step(HELLO)
        process, _ = start(port)
        try:
            for client in (by_cookie, by_path):
                for ask in (client.state, lambda client=client: client.step(HELLO)):
                    with pytest.raises(RequestRefusedError) as refused:
                        ask()
                    assert (refused.value.status, refused.value.code) == (404, "SESSION_NOT_FOUND")
            unnamed.cookies.clear()
            answer = unnamed.post(url + "/step", json={"action": HELLO})
            assert (answer.status_code, answer.json()["error"]["code"]) == (409, "NOT_RESET")
            # A reset is asked for: the cookie that is out of date does not stand in its way.
            assert by_cookie.reset().reward == 0.0
            assert by_cookie.step(HELLO).observation["metadata"]["step"] == 1
        finally:
            stop(process)


@pytest.fixture(scope="module")
def served(serve, local):
    """A server of a task."""
    with serve(local, capacity=4) as served:
        yield served


def test_a_client_that_dies_in_the_middle_of_a_step(served):
    path = served.session()
    served.post(path + "/reset", {"seed": 3})
    body = json.dumps({"action": {"value": 2}, "request_id": "once"}).encode()
    host, port = served.url.removeprefix("http://").split(":")
    head = (
        f"POST {path}/step HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    for cut in (len(body) // 2, len(body)):
        with socket.create_connection((host, int(port))) as line:
            line.sendall(head.encode() + body[:cut])
    # Half a request is none; a whole one is carried out, once, whether or not one listens.
    again = served.post(path + "/step", json.loads(body))
    assert again.status_code == 200
    assert served.get(path + "/state").json()["step_count"] == 1


def test_a_socket_that_dies_in_the_middle_of_a_step(served):
    path = served.session()
    with served.socket(path + "/ws") as socket:
        socket.say("reset", {"seed": 3})
        # Sent, and gone without a farewell before it is answered.
        socket.connection.send('{"type": "step", "data": {"value": 2}, "request_id": "once"}')
        socket.connection.socket.shutdown(SHUT_RDWR)
    with served.socket(path + "/ws") as socket:
        again = socket.say("step", {"value": 2}, request_id="once")
        assert again["type"] == "observation"
        assert socket.say("state")["data"]["step_count"] == 1
    served.ask("DELETE", path)


def test_a_socket_of_a_server_that_was_killed_ends():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"ws://127.0.0.1:{port}"
    process, _ = start(port)
    session = httpx.post(f"http://127.0.0.1:{port}/sessions").json()["session_id"]
    named = f"{url}/sessions/{session}/ws"
    with connect(named, proxy=None) as line:
        for kind, data in (("reset", {}), ("step", HELLO)):
            assert _ask(line, kind, data)["type"] == "observation"
        stop(process, signal.SIGKILL)
        with pytest.raises(ConnectionClosed):
            _ask(line, "step", HELLO)
    process, _ = start(port)
    try:
        with connect(named, proxy=None) as line:
            assert json.loads(line.recv())["data"]["code"] == "SESSION_NOT_FOUND"
            with pytest.raises(ConnectionClosed):
                line.recv()
        with connect(f"{url}/ws", proxy=None) as line:
            assert _ask(line, "step", HELLO)["data"]["code"] == "NOT_RESET"
    finally:
        stop(process)


def _ask(line, kind, data):
    line.send(json.dumps({"type": kind, "data": data}))
    return json.loads(line.recv())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["action", "value", "metadata", "timeout_s", "type", "data", "x"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)


def _is_step(body):
    """Whether it is a step after all."""
    action = body.get("action") if isinstance(body, dict) else None
    value = action.get("value") if isinstance(action, dict) else None
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 4


@settings(max_examples=1000)
@given(JSON | st.binary(max_size=40))
def test_nonsense_is_refused_and_changes_nothing(served, body):
    if not hasattr(served, "path"):
        served.path = served.session()
        served.post(served.path + "/reset", {"seed": 3})
        served.before = served.get(served.path + "/state").json()
        served.there = served.sessions.find(served.path.rpartition("/")[2])
    if _is_step(body):
        return
    content = body if isinstance(body, bytes) else json.dumps(body)
    headers = {"content-type": "application/json"}
    answer = served.post(served.path + "/step", content=content, headers=headers)
    assert answer.status_code == 422, answer.text
    assert answer.json()["error"]["code"] in ("INVALID_JSON", "VALIDATION_ERROR")
    assert served.there.state.model_dump() == served.before


@settings(max_examples=300)
@given(JSON)
def test_nonsense_on_a_socket_is_refused_and_changes_nothing(served, body):
    if not hasattr(served, "line"):
        served.line = served.socket().__enter__()
        served.line.say("reset", {"seed": 3})
    if isinstance(body, dict) and (body.get("type") in ("close", "reset", "state", "step")):
        return
    assert served.line.send(json.dumps(body))["type"] == "error"
    if _is_step({"action": body}):
        return
    assert served.line.say("step", body)["type"] == "error"
    assert served.line.say("state")["data"]["step_count"] == 0
