"""tests/serving/test_schema: requests made at random of the server's own OpenAPI schema, what it
allows and what it does not: none is an error of the server's, none that is refused a transition."""

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import (
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)

from plumejax.serving import Client
from plumejax.serving.models import packed

pytestmark = pytest.mark.slow

CHECKS = [response_schema_conformance, status_code_conformance, negative_data_rejection]
"""The answer is one that the schema has, and what the schema does not allow is refused."""

EXAMPLES = 60

OPERATIONS = (
    "POST /reset",
    "POST /step",
    "GET /state",
    "POST /sessions",
    "DELETE /sessions/{session_id}",
    "POST /sessions/{session_id}/reset",
    "POST /sessions/{session_id}/step",
    "GET /sessions/{session_id}/state",
    "GET /health",
    "GET /metadata",
    "GET /schema",
)

VECTOR = (
    "POST /v1/vector/sessions",
    "DELETE /v1/vector/sessions/{session_id}",
    "POST /v1/vector/sessions/{session_id}/reset",
    "POST /v1/vector/sessions/{session_id}/step",
    "GET /v1/vector/sessions/{session_id}/state",
)

SEED = {"seed": 3}


@pytest.fixture(scope="module", params=["Echo", "PlumeSearch"])
def served(request, serve, local):
    """A server of either kind, an episode begun in one session of it, and another one beside."""
    with serve("Echo" if request.param == "Echo" else local, capacity=6) as served:
        served.fuzzed, served.beside = served.session(), served.session()
        action = {"message": "hi"} if request.param == "Echo" else {"value": 2}
        for path in (served.fuzzed, served.beside):
            assert served.post(path + "/reset", SEED).status_code == 200
            assert served.post(path + "/step", {"action": action}).status_code == 200
        yield served


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_session_under_random_requests(served, name):
    statuses = statuses_of(served, name, served.fuzzed)
    if name.startswith("POST") and name != "POST /sessions":
        assert {200, 422} <= set(statuses)
        assert statuses.count(422) > len(statuses) // 4


def test_a_session_of_many_episodes_under_random_requests(serve, local):
    with serve(local, capacity=2) as served:
        served.beside = served.session()
        sessions = "/v1/vector/sessions"
        made = served.post(sessions, {"num_envs": 2}).json()["session_id"]
        fuzzed = f"{sessions}/{made}"
        assert served.post(fuzzed + "/reset", SEED).status_code == 200
        statuses = [status for name in VECTOR for status in statuses_of(served, name, fuzzed)]
        assert {200, 201, 404, 422} <= set(statuses)


def test_the_actions_of_many_episodes_are_not_too_large(serve, local):
    with serve(local, capacity=1, max_body=200) as served:
        with Client.open(served.url, num_envs=64) as client:
            client.reset(seed=3)
            _, reward, _ = client.step([2] * 64)
            assert reward.shape == (64,)
            with served.socket(client.base_url.removeprefix(served.url) + "/ws") as socket:
                answer = socket.say("step", {"value": packed([2] * 64)})
                assert answer["type"] == "observation"
            assert client.state().step_count == 2
        assert served.post(served.session() + "/reset", content=" " * 201).status_code == 413


def statuses_of(served, name, fuzzed):
    """Of the answers to requests that are made of an operation of the schema.

    Requests of a session are about `fuzzed`, a path; those that would end it are about any.
    """
    session = fuzzed.rpartition("/")[2]

    def states():
        return [served.get(path + "/state").json() for path in (fuzzed, served.beside)]

    verb, path = name.split()
    operation = schemathesis.openapi.from_url(f"{served.url}/openapi.json")[path][verb]
    statuses, before = [], states()

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.sampled_from(GenerationMode).flatmap(operation.as_strategy))
    def send(case):
        if verb != "DELETE" and case.path_parameters:
            case.path_parameters = {"session_id": session}
        answer = case.call(headers={"X-Session-Id": session})
        case.validate_response(answer, checks=CHECKS)
        assert answer.status_code != 500
        after = states()
        assert after[1] == before[1]
        if answer.status_code != 200:
            assert after[0] == before[0]
        statuses.append(answer.status_code)
        before[:] = after

    send()
    return statuses
