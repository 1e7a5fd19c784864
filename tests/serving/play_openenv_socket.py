"""tests/serving/play_openenv_socket: plays with the unmodified WebSocket client of `openenv`.

Run by a Python that has it: `python play_openenv_socket.py WHAT URL ACTION`. WHAT is `sessions`,
what this package's server promises; or `episode`, what any server of the protocol does, which
prints a seeded episode as JSON. The action is JSON too.
"""

import json
import sys

import requests
from openenv.core import GenericEnvClient

WHAT, URL, ACTION = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
SEED = 3


def connected(url=URL, **options):
    return GenericEnvClient(base_url=url, **options).sync()


def new_session():
    answer = requests.post(f"{URL}/sessions", timeout=15)
    answer.raise_for_status()
    return answer.json()["session_id"]


def error_of(call, *arguments):
    """What a call raises."""
    try:
        call(*arguments)
    except RuntimeError as error:
        return str(error)
    raise AssertionError(f"{call} raised nothing")


def require_the_timeline(client):
    first = client.reset(seed=SEED, episode_id=None)
    assert (first.done, set(first.observation) & {"reward", "done"}) == (False, set())
    begun = client.state()
    assert begun["step_count"] == 0
    for count in (1, 2, 3):
        result = client.step(ACTION)
        assert (type(result.reward), type(result.done)) == (float, bool)
        assert result.metadata == result.observation["metadata"]
        assert client.state() == client.state() == {**begun, "step_count": count}
    client.reset(seed=SEED)
    again = client.state()
    assert again["step_count"] == 0
    assert again["episode_id"] != begun["episode_id"]


def require_apart(one, other):
    one.reset(seed=SEED)
    other.reset(seed=SEED + 1)
    idle = other.state()
    for _ in range(3):
        one.step(ACTION)
    assert one.state()["step_count"] == 3
    assert other.state() == idle
    assert one.state()["episode_id"] != idle["episode_id"]
    other.step(ACTION)
    assert (one.state()["step_count"], other.state()["step_count"]) == (3, 1)


def require_errors_that_raise(client):
    """Of a client whose session has not been reset; the session outlives them."""
    assert client.state() == {"episode_id": None, "step_count": 0}
    assert "reset first" in error_of(client.step, ACTION)
    client.reset(seed=SEED)
    client.step(ACTION)
    before = client.state()
    for action in ({}, {**ACTION, "more": 1}):
        assert "VALIDATION_ERROR" in error_of(client.step, action)
    assert client.state() == before
    client.step(ACTION)
    assert client.state()["step_count"] == before["step_count"] + 1


def an_episode(client, steps=60):
    """To its end, or for so many steps."""
    result = client.reset(seed=SEED)
    told = [vars(result)]
    while not result.done and len(told) <= steps:
        result = client.step(ACTION)
        told.append(vars(result))
    assert client.state()["step_count"] == len(told) - 1
    if result.done:
        assert "has ended" in error_of(client.step, ACTION)
        assert client.state()["step_count"] == len(told) - 1
    return told


def play_an_episode():
    with connected() as client:
        require_errors_that_raise(client)
    with connected() as client, connected() as other:
        require_the_timeline(client)
        require_apart(client, other)
        print(json.dumps(an_episode(client)))


def play_in_sessions():
    paths = [f"{URL}/sessions/{new_session()}" for _ in range(2)]
    headers = [{"X-Session-Id": new_session()} for _ in range(2)]
    with connected(paths[0] + "/") as one, connected(paths[1]) as other:
        require_the_timeline(one)
        require_apart(one, other)
        before = one.state()
    with connected(URL, headers=headers[0]) as one, connected(URL, headers=headers[1]) as other:
        require_the_timeline(one)
        require_apart(one, other)
    # A socket that comes back by path goes on with its episode.
    with connected(paths[0]) as client:
        assert client.state() == before
        client.step(ACTION)
        assert client.state() == {**before, "step_count": before["step_count"] + 1}
    with connected(f"{URL}/sessions/nobody") as client:
        assert "SESSION_NOT_FOUND" in error_of(client.reset)


{"episode": play_an_episode, "sessions": play_in_sessions}[WHAT]()
