"""tests/serving/test_conformance: the seed's rules from outside, on Echo and on a task."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import httpx
import pytest

from plumejax.serving import Client, State

ACTIONS = {"Echo": {"message": "hi"}, "PlumeSearch": {"value": 2}}

SEED = {"seed": 3}
"""Begins in the corner below, far from the source: action 2 leaves it there."""


@pytest.fixture(
    scope="module", params=["Echo", pytest.param("PlumeSearch", marks=pytest.mark.slow)]
)
def served(request, serve, local):
    """A server of either kind."""
    with serve(local if request.param == "PlumeSearch" else "Echo", capacity=8) as served:
        served.action = ACTIONS[request.param]
        yield served


@pytest.fixture(params=["path", "header", "cookie", "default", "socket"])
def player(request, served):
    """`(say, state)` in a session that is named in one of the five ways: `say(kind, data)` gives a
    status or code, and the body."""
    kind = request.param
    if kind == "socket":
        with served.socket() as socket:
            yield _by_socket(socket), lambda: socket.say("state")["data"]
        return
    path = served.session() if kind in ("path", "header") else ""
    headers = {"X-Session-Id": path.rpartition("/")[2]} if kind == "header" else {}
    base = served.url + (path if kind == "path" else "")
    with httpx.Client(base_url=base, headers=headers) as http:

        def say(kind_, data, **beside):
            if kind == "default":
                http.cookies.clear()
            body = {**beside, **({"action": data} if kind_ == "step" else data or {})}
            answer = http.post(f"/{kind_}", json=body)
            return answer.status_code, answer.json()

        def state():
            if kind == "default":
                http.cookies.clear()
            return http.get("/state").json()

        yield say, state
    if path:
        served.ask("DELETE", path)


def _by_socket(socket):
    def say(kind, data, **beside):
        answer = socket.say(kind, data, **beside)
        return (
            (200, answer["data"]) if answer["type"] != "error" else (409, {"error": answer["data"]})
        )

    return say


def test_the_timeline_of_the_seed(served, player):
    say, state = player
    if state()["episode_id"] is None:
        assert state() == {"episode_id": None, "step_count": 0}
        assert say("step", served.action)[1]["error"]["code"] == "NOT_RESET"
    status, body = say("reset", SEED)
    assert status == 200
    first = state()
    assert UUID(first["episode_id"]).version == 4
    assert first["step_count"] == 0
    for count in range(1, 4):
        status, body = say("step", served.action)
        assert status == 200
        assert state() == state() == {**first, "step_count": count}
    assert set(body) == {"observation", "reward", "done", "metadata"}
    assert not {"reward", "done"} & set(body["observation"])
    assert body["observation"]["metadata"] == body["metadata"]
    assert (type(body["reward"]), body["done"]) == (float, False)
    say("reset", SEED)
    assert state()["step_count"] == 0
    assert state()["episode_id"] != first["episode_id"]


def test_one_request_id_is_one_step(served, player):
    say, state = player
    say("reset", SEED)
    first = say("step", served.action, request_id="a")
    assert say("step", served.action, request_id="a") == first
    assert state()["step_count"] == 1
    assert say("step", served.action, request_id="b")[0] == 200
    assert state()["step_count"] == 2
    before = state()["episode_id"]
    say("reset", SEED)
    assert say("step", served.action, request_id="b")[0] == 200  # of another episode
    assert (state()["episode_id"] != before, state()["step_count"]) == (True, 1)
    say("step", served.action)
    if "value" in served.action:  # a step by hand in the wrong episode
        refused = say("step", served.action, episode_id="another")
        assert (refused[0], refused[1]["error"]["code"]) == (409, "EPISODE_MISMATCH")
        assert state()["step_count"] == 2


def test_an_episode_may_be_named_once(served):
    path = served.session()
    assert served.post(path + "/reset", {**SEED, "episode_id": "mine"}).status_code == 200
    assert served.get(path + "/state").json() == {"episode_id": "mine", "step_count": 0}
    again = served.post(served.session() + "/reset", {"episode_id": "mine"})
    assert (again.status_code, again.json()["error"]["code"]) == (409, "EPISODE_ID_USED")
    assert served.get(path + "/state").json()["episode_id"] == "mine"


BODIES = {
    "no JSON": ("{", "INVALID_JSON"),
    "no text": (b"\xff\xfe", "INVALID_JSON"),
    "no object": ("[1]", "INVALID_JSON"),
    "a string": ('"step"', "INVALID_JSON"),
    "nothing": ("null", "INVALID_JSON"),
    "deep": ("[" * 50_000, "INVALID_JSON"),
    "empty": ("{}", "VALIDATION_ERROR"),
    "extra": ('{"action": ACTION, "more": 1}', "VALIDATION_ERROR"),
    "wrong type": ('{"action": {"FIELD": [true]}}', "VALIDATION_ERROR"),
    "a bool": ('{"action": {"FIELD": true}}', "VALIDATION_ERROR"),
    "not a number": ('{"action": {"FIELD": NaN}}', "VALIDATION_ERROR"),
    "too large": ('{"action": {"FIELD": 1e400}}', "VALIDATION_ERROR"),
    "out of bounds": ('{"action": {"FIELD": 99}}', "VALIDATION_ERROR"),
    "a fraction": ('{"action": {"FIELD": 1.5}}', "VALIDATION_ERROR"),
    "time": ('{"action": ACTION, "timeout_s": -1}', "VALIDATION_ERROR"),
}


@pytest.mark.parametrize("case", BODIES)
def test_what_is_malformed_changes_nothing(served, case):
    body, code = BODIES[case]
    if isinstance(body, str):
        (field,) = served.action
        body = body.replace("ACTION", json.dumps(served.action)).replace("FIELD", field)
    path = served.session()
    served.post(path + "/reset", SEED)
    before = served.get(path + "/state").json()
    headers = {"content-type": "application/json"}
    answer = served.post(path + "/step", content=body, headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, code)
    assert served.get(path + "/state").json() == before
    served.ask("DELETE", path)


MESSAGES = {
    "{": "INVALID_JSON",
    "[]": "INVALID_JSON",
    '{"type": "dance"}': "UNKNOWN_TYPE",
    '{"type": 7}': "UNKNOWN_TYPE",
    '{"type": "step"}': "VALIDATION_ERROR",
    '{"type": "step", "data": {}}': "VALIDATION_ERROR",
    '{"type": "step", "data": {"value": NaN, "message": 3}}': "VALIDATION_ERROR",
    '{"type": "reset", "data": {"seed": -1}}': "VALIDATION_ERROR",
}


def test_a_socket_outlives_what_is_malformed(served):
    with served.socket() as socket:
        socket.say("reset", SEED)
        for text, code in MESSAGES.items():
            answer = socket.send(text)
            assert (answer["type"], answer["data"]["code"]) == ("error", code)
        assert socket.say("state")["data"]["step_count"] == 0
        assert socket.say("step", served.action)["type"] == "observation"


def test_a_socket_is_a_session_and_frees_its_place(served):
    served.end_idle()
    there = len(served.sessions)
    with served.socket() as one, served.socket() as other:
        one.say("reset", SEED)
        other.say("reset", SEED)
        assert len(served.sessions) == there + 2
        one.say("step", served.action)
        assert one.say("state")["data"]["step_count"] == 1
        assert other.say("state")["data"]["step_count"] == 0
        one.connection.send('{"type": "close"}')
        assert not list(one.connection)
    _until(lambda: len(served.sessions) == there)


def test_a_socket_of_a_session_comes_back_to_its_episode(served):
    path = served.session()
    with served.socket(path + "/ws") as socket:
        socket.say("reset", SEED)
        socket.say("step", served.action)
    with served.socket(path + "/ws") as socket:
        assert socket.say("step", served.action)["type"] == "observation"
    assert served.get(path + "/state").json()["step_count"] == 2
    served.ask("DELETE", path)


def test_a_session_that_is_not_there(served):
    path = served.session()
    assert served.ask("DELETE", path).status_code == 204
    for gone, said in ((path, "expired or was deleted"), ("/sessions/nobody", "no such session")):
        for answer in (
            served.post(gone + "/reset"),
            served.post(gone + "/step", {"action": served.action}),
            served.get(gone + "/state"),
            served.get("/state", headers={"X-Session-Id": gone.rpartition("/")[2]}),
            served.ask("DELETE", gone),
        ):
            assert (answer.status_code, answer.json()["error"]["code"]) == (
                404,
                "SESSION_NOT_FOUND",
            )
            assert said in answer.json()["error"]["message"]
    with served.socket(path + "/ws") as socket:
        assert socket.hear()["data"]["code"] == "SESSION_NOT_FOUND"
        assert not list(socket.connection)


def test_sessions_end_when_they_are_not_heard_of(served):
    path = served.session()
    with served.socket(path + "/ws") as socket:
        socket.say("reset", SEED)
        served.clock.ahead += 899
        assert socket.say("step", served.action)["type"] == "observation"
        served.end_idle()
        assert socket.hear()["data"]["code"] == "SESSION_NOT_FOUND"
        assert not list(socket.connection)
    gone = served.post(path + "/step", {"action": served.action})
    assert gone.status_code == 404
    assert "expired" in gone.json()["error"]["message"]


def test_no_more_sessions_than_there_are_places(served):
    served.end_idle()
    paths = [served.session() for _ in range(8)]
    answer = served.post("/sessions")
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "CAPACITY_REACHED")
    assert int(answer.headers["retry-after"]) > 0
    with served.socket() as socket:
        assert socket.hear()["data"]["code"] == "CAPACITY_REACHED"
        assert not list(socket.connection)
    # The place of another: nothing of its episode can be read in it.
    served.post(paths[3] + "/reset", SEED)
    served.post(paths[3] + "/step", {"action": served.action})
    served.ask("DELETE", paths[3])
    new = served.session()
    assert served.get(new + "/state").json() == {"episode_id": None, "step_count": 0}
    early = served.post(new + "/step", {"action": served.action})
    assert (early.status_code, early.json()["error"]["code"]) == (409, "NOT_RESET")
    served.end_idle()


def test_two_clients_that_know_of_no_sessions_are_kept_apart(served):
    with Client(served.url + "/") as one, Client(served.url) as other:
        one.reset(seed=1)
        other.reset(seed=2)
        for _ in range(3):
            one.step(served.action)
        assert (one.state().step_count, other.state().step_count) == (3, 0)
        assert one.state().episode_id != other.state().episode_id
        assert isinstance(one.state(), State)


def test_what_names_no_session_is_not_about_that_of_a_client_who_came_back(served):
    with Client(served.url) as client:
        client.reset(seed=3)
        client.step(served.action)
        before = client.state()
        assert served.get("/state").json() == {"episode_id": None, "step_count": 0}
        early = served.post("/step", {"action": served.action})
        assert (early.status_code, early.json()["error"]["code"]) == (409, "NOT_RESET")
        assert served.post("/reset", SEED).status_code == 200
        assert served.post("/step", {"action": served.action}).status_code == 200
        assert client.state() == before


def test_one_after_another_at_a_server_without_cookies(served):
    """As curl does; more resets than there are places."""
    for _ in range(12):
        assert served.post("/reset", SEED).status_code == 200
        assert served.post("/step", {"action": served.action, "timeout_s": 15}).status_code == 200
        assert served.get("/state").json()["step_count"] == 1


def test_a_reset_that_is_refused_is_not_the_last_one_begun(served):
    assert served.post("/reset", {**SEED, "episode_id": "once"}).status_code == 200
    assert served.post("/step", {"action": served.action}).status_code == 200
    there = len(served.sessions)
    again = served.post("/reset", {"episode_id": "once"})
    assert (again.status_code, again.json()["error"]["code"]) == (409, "EPISODE_ID_USED")
    assert served.get("/state").json() == {"episode_id": "once", "step_count": 1}
    assert len(served.sessions) == there


def test_requests_of_one_session_take_turns(served):
    path = served.session()
    served.post(path + "/reset", SEED)
    with ThreadPoolExecutor(8) as pool:
        answers = list(
            pool.map(lambda _: served.post(path + "/step", {"action": served.action}), range(16))
        )
        assert {answer.status_code for answer in answers} == {200}
        assert served.get(path + "/state").json()["step_count"] == 16
        body = {"action": served.action, "request_id": "once"}
        twice = list(pool.map(lambda _: served.post(path + "/step", body), range(8)))
    assert len({answer.content for answer in twice}) == 1
    assert served.get(path + "/state").json()["step_count"] == 17


def test_what_it_says_of_itself(served):
    assert served.get("/health").json() == {"status": "healthy"}
    metadata = served.get("/metadata").json()
    assert metadata["name"]
    assert metadata["description"]
    schema = served.get("/schema").json()
    (field,) = served.action
    assert field in schema["action"]["required"]
    assert set(schema["state"]["properties"]) == {"episode_id", "step_count"}
    assert "done" in schema["observation"]["properties"]
    described = served.get("/openapi.json").json()
    assert {"/reset", "/step", "/state", "/sessions/{session_id}/step"} <= set(described["paths"])
    assert served.get("/docs").status_code == 200
    call = served.post("/mcp", {"jsonrpc": "2.0", "id": 4, "method": "tools/list"}).json()
    assert (call["id"], call["error"]["code"]) == (4, -32601)


def _until(true, seconds=10.0):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)
