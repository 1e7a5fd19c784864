"""tests/arms/conftest: what several tests of the two arms share."""

import json
from pathlib import Path

import pytest

from plumejax.arms import two_arm


@pytest.fixture(scope="session")
def records():
    """Steps of the reference environment; `tests/golden/README.md`."""
    return json.loads((Path(__file__).parents[1] / "golden" / "arms.json").read_text())


@pytest.fixture(params=["lift", "handoff", "drawer"], scope="session")
def task(request):
    """`(env, params)` of each task, observed by name."""
    return two_arm(request.param, view="named")
