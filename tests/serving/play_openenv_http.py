"""tests/serving/play_openenv_http: plays with the unmodified HTTP client of `openenv-core`.

Run by a Python that has it: `python play_openenv_http.py URL ACTION`, the action as JSON.
"""

import json
import sys

import requests
from openenv_core import HTTPEnvClient, StepResult

URL, ACTION = sys.argv[1], json.loads(sys.argv[2])


class Client(HTTPEnvClient):
    """Actions, observations and states as JSON has them."""

    def _step_payload(self, action):
        return action

    def _parse_result(self, payload):
        return StepResult(payload["observation"], payload["reward"], payload["done"])

    def _parse_state(self, payload):
        return payload


def new_session():
    answer = requests.post(f"{URL}/sessions", timeout=15)
    answer.raise_for_status()
    return answer.json()["session_id"]


def status_of(call, *arguments):
    """Of the error that a call raises."""
    try:
        call(*arguments)
    except requests.HTTPError as error:
        return error.response.status_code
    raise AssertionError(f"{call} raised nothing")


def require_the_timeline(client):
    first = client.reset()
    assert (first.done, set(first.observation) & {"reward", "done"}) == (False, set())
    begun = client.state()
    assert begun["step_count"] == 0
    for count in (1, 2, 3):
        result = client.step(ACTION)
        assert (type(result.reward), type(result.done)) == (float, bool)
        assert client.state() == client.state() == {**begun, "step_count": count}
    client.reset()
    again = client.state()
    assert again["step_count"] == 0
    assert again["episode_id"] != begun["episode_id"]


def require_apart(one, other):
    one.reset()
    other.reset()
    idle = other.state()
    for _ in range(3):
        one.step(ACTION)
    assert one.state()["step_count"] == 3
    assert other.state() == idle
    assert one.state()["episode_id"] != idle["episode_id"]
    other.step(ACTION)
    assert (one.state()["step_count"], other.state()["step_count"]) == (3, 1)


def require_errors_that_raise(client):
    """Of a client whose session has not been reset."""
    assert client.state() == {"episode_id": None, "step_count": 0}
    assert status_of(client.step, ACTION) == 409
    client.reset()
    client.step(ACTION)
    before = client.state()
    assert status_of(client.step, {}) == 422
    assert status_of(client.step, {**ACTION, "more": 1}) == 422
    assert client.state() == before


def main():
    by_path = [f"{URL}/sessions/{new_session()}" for _ in range(3)]
    by_header = [{"X-Session-Id": new_session()} for _ in range(2)]
    for client in (Client(URL + "/"), Client(by_path[0]), Client(URL, 15.0, by_header[0])):
        require_the_timeline(client)
    require_apart(Client(URL), Client(URL))
    require_apart(Client(by_path[0]), Client(by_path[1]))
    require_apart(*(Client(URL, default_headers=header) for header in by_header))
    require_apart(Client(URL), Client(by_path[0]))

    require_errors_that_raise(Client(by_path[2]))
    assert status_of(Client(f"{URL}/sessions/nobody").reset) == 404

    # Another client under the same path goes on with the episode.
    before = Client(by_path[0]).state()
    client = Client(by_path[0])
    client.step(ACTION)
    assert client.state() == {**before, "step_count": before["step_count"] + 1}


main()
