"""tests/benchmarks/test_finite_state: a row of the benchmark, and that a rerun goes on."""

from concurrent.futures import Future

import pytest

from benchmarks import finite_state, report


class Here:
    """A pool of this process."""

    def submit(self, function, *arguments):
        future = Future()
        future.set_result(function(*arguments))
        return future


def test_rows_build_on_one_another_and_are_not_made_twice(tmp_path):
    settings = {"starts": 2, "iterations": 1, "further": 1, "seed": 0}
    name, done = finite_state.TASKS[0], []
    first = finite_state.optimise(Here(), name, 1, None, settings, done.append)
    assert len(first["random_starts"]) == 2
    assert first["iterations"] == [2 * 2, 2]  # a factorisation begins each
    second = finite_state.optimise(Here(), name, 2, first, settings, done.append)
    assert second["factor"] == pytest.approx(first["value"] / second["value"])
    assert len(done) == 3 + 2

    rows = [{**row, "played": 0.5, "played_error": 0.1, "found": 1.0} for row in (first, second)]
    path = tmp_path / "finite_state.json"
    report.write(path, {"settings": settings, "rows": rows})
    assert list(finite_state._done(path, settings)) == [(name, 1), (name, 2)]
    assert finite_state._done(path, {**settings, "seed": 1}) == {}
    assert finite_state.table(rows).row_count == 2
    page = finite_state.page(rows)
    assert page.count("FiniteMemory-Cosh-v0") == 3
    assert "0.4385 to 0.0792 with 4 states, a factor of 5.54." in page
