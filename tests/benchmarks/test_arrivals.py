"""tests/benchmarks/test_arrivals: published arrival times, and that a rerun goes on."""

import json

import numpy as np
import pytest

from benchmarks import arrivals

GOLDEN = json.loads(arrivals.PUBLISHED.read_text())


def test_rows_are_written_beside_what_is_published_and_not_made_twice(tmp_path, monkeypatch):
    made = []

    def measure(row, episodes, seed, progress):
        made.append(row)
        progress(episodes)
        pair = [GOLDEN["arrival"][row.task][0] + 0.3, 0.0]
        names = ("mean", "not_found", "stuck", "hits", "p50", "p90")
        law = [[1, 0.5, 0.01], [9, 1.0, 0.0]]
        return {**dict.fromkeys(names, pair), "limit": 9, "cpu_seconds": 1.0, "law": law}

    monkeypatch.setattr(arrivals, "measure", measure)
    out, page = tmp_path / "arrivals.json", tmp_path / "arrivals.md"
    for _ in range(2):
        arrivals.main(episodes=4, only="19x19", out=out, page=page)
    assert made == [row for row in arrivals.ROWS if "19x19" in row.task]
    assert "| +1.5 |" in page.read_text()  # 0.3 of a published error of 0.2
    assert out.with_suffix(".png").stat().st_size > 10_000
    arrivals.main(episodes=4, seed=1, only="19x19-v0 sampled float32", out=out, page=page)
    assert len(made) == 5


@pytest.mark.long
@pytest.mark.parametrize("row", arrivals.ROWS, ids=" ".join)
def test_mean_arrival_times_are_the_published_ones(row):
    ours = arrivals.measure(row, 20_000, 1, lambda ended: None)
    assert abs(arrivals.apart(ours["mean"], GOLDEN["arrival"][row.task])) < 3
    percentiles = GOLDEN["arrival_percentiles"].get(row.task, {})
    for name in percentiles.keys() & {"p50", "p90"}:
        # Of 3000 episodes, without an error: that of 20,000 episodes with a source, scaled.
        value, error = ours[name]
        assert abs(value - percentiles[name]) < 3 * np.hypot(1, np.sqrt(20 / 3)) * error + 0.5


@pytest.mark.long
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("task", arrivals.TASKS)
def test_both_estimators_agree(task, dtype):
    survival, sampled = (
        arrivals.measure(arrivals.Row(task, by, dtype), 20_000, 1, lambda ended: None)
        for by in ("survival", "sampled")
    )
    for name in ("mean", "not_found", "hits"):
        assert abs(arrivals.apart(survival[name], sampled[name])) < 3
