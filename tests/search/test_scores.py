"""tests/search/test_scores: every named search has its scale, and it runs from 0 to 1."""

import json

import pytest

import plumejax
from plumejax.base.errors import ValidationError
from plumejax.search import scores as module
from plumejax.search.scores import normalised_return, scores

MEASURED = next(id for id in plumejax.registered_tasks() if scores(id))


def test_every_task_has_scores_of_its_version():
    """`python -m benchmarks.scores ID` measures them; ids that need data may go without."""
    tasks = {id: t for id, t in plumejax.registered_tasks().items() if t.family == "search"}
    missing = [id for id, t in tasks.items() if not t.needs and not t.twin_of and not scores(id)]
    assert missing == []


def test_there_are_no_scores_of_what_is_not_there():
    tasks = plumejax.registered_tasks()
    assert set(json.loads(module.FILE.read_text())) <= {id for id in tasks if not tasks[id].twin_of}


def test_a_perfect_agent_beats_a_random_one():
    ids = json.loads(module.FILE.read_text())
    pairs = {id: scores(id) for id in ids}
    worse = {
        id: (s.random.mean_return, s.perfect.mean_return)
        for id, s in pairs.items()
        if s and s.perfect.mean_return <= s.random.mean_return
    }
    assert worse == {}


def test_the_scale_runs_from_random_to_perfect():
    found = scores(MEASURED)
    low, high = found.random.mean_return, found.perfect.mean_return
    ends = [normalised_return(MEASURED, x) for x in (low, (low + high) / 2, high)]
    assert ends == pytest.approx([0.0, 0.5, 1.0])


def test_a_twin_has_the_scores_of_its_base():
    twins = [t for t in plumejax.registered_tasks().values() if t.twin_of]
    assert twins
    assert all(scores(twin.id) == scores(twin.twin_of) for twin in twins)


def test_scores_of_another_version_count_for_nothing(monkeypatch):
    row = json.loads(module.FILE.read_text())[MEASURED]
    monkeypatch.setattr(module, "_measured", lambda: {MEASURED: {**row, "version": 0}})
    assert scores(MEASURED) is None
    with pytest.raises(ValidationError, match="no measured scores"):
        normalised_return(MEASURED, 0.0)


def test_the_package_hands_them_out():
    assert plumejax.scores is scores
    assert plumejax.normalised_return is normalised_return
