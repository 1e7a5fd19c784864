"""tests/benchmarks/test_benchmarks: rows, ratios, notes and JSON on tiny cases; none is timed."""

import json
import sys
from pathlib import Path

import jax.numpy as jnp
import pytest

sys.path.append(str(Path(__file__).parents[2]))  # benchmarks/ is not part of the installed package

from rich.console import Console

from benchmarks import ours, peers, plots, policies, report, rounds
from benchmarks.measure import Case, Prepared, Row, Spread, loop, measure_round


def _counting(calls, key):
    def once():
        calls.append(key)
        return 3

    return Case(key, f"{key}: a step", 2, lambda: Prepared(once, {"compile_seconds": 1.0}))


def test_cases_of_a_round_take_turns():
    calls = []
    rows = measure_round([_counting(calls, "a"), _counting(calls, "b")], 2, 0.0)
    # Each is tried once when ready, then sampled in turns.
    assert calls == ["a", "b", "a", "b", "a", "b"]
    assert [row.key for row in rows] == ["a", "b"]
    assert all(row.wall.low <= row.wall.median <= row.wall.high for row in rows)


def test_a_loop_steps_and_tells_its_bytes():
    prepared = loop(lambda key, x: x + jnp.float32(1.0), jnp.zeros(4), 4, 5)
    assert prepared.once() == 20
    assert prepared.facts["state_bytes"] == 4.0
    assert prepared.facts["compile_seconds"] > 0


def test_a_peer_that_is_missing_or_broken_has_a_row_that_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "pompy", None)
    monkeypatch.setitem(sys.modules, "plume_nav_sim.envs.factory", None)

    def broken():
        raise TypeError("what it said\nand more")

    cases = [peers.pompy(), peers.plume_nav_sim(), Case("x", "x", 1, broken)]
    rows = measure_round(cases, 1, 0.0)
    assert [row.wall for row in rows] == [None] * 3
    assert rows[0].note.startswith("not installed: ")
    assert rows[1].note.startswith("not installed: ")
    assert rows[2].note == "does not run: TypeError: what it said"
    console = Console(width=120)
    with console.capture() as shown:
        console.print(report.table(rows, "title"))
    assert "not installed" in shown.get()


def test_what_does_not_fit_is_left_out():
    (row,) = measure_round([ours.full_field(2**20)], 1, 0.0)
    assert row.note.startswith("left out: ")


def _row(key, rate):
    return Row(key, key, 1, wall=Spread(rate, rate, rate), cpu=Spread(rate, rate, rate))


def test_targets_are_ratios_of_medians():
    rows = [_row("local/4096", 60.0), _row("cartpole/4096", 10.0), _row("bare/4096", 200.0)]
    found = {v.label: v for v in report.verdicts(rows)}
    assert len(found) == len(report.RATIOS) + len(report.LIMITS) + len(report.RATES)
    reached = [found[ratio.label] for ratio in report.RATIOS]
    assert [v.reached for v in reached[:3]] == [6.0, 0.3, None]
    assert [v.met for v in reached[:3]] == [True, False, None]


def test_every_ratio_is_measured_within_one_round():
    but_training = [ratio for ratio in report.RATIOS if "PPO" not in ratio.label]
    for chosen, ratios in ((rounds.whole(), report.RATIOS), (rounds.quick(), but_training)):
        keys = [{case.key for case in r.cases} for r in chosen]
        for ratio in ratios:
            assert any({ratio.of, ratio.to} <= some for some in keys), ratio
        assert {rate.of for rate in report.RATES} <= set().union(*keys)
    every = [case.key for r in rounds.whole() for case in r.cases]
    assert len(every) == len(set(every))


def test_rates_are_a_cpu_second_of_a_policy():
    rows = [_row("infotaxis/19x19", 90_000.0), _row("infotaxis/81x41", 20_000.0)]
    found = [v for v in report.verdicts(rows) if v.reached is not None]
    assert [v.met for v in found] == [False, True]
    assert policies.prepare("infotaxis", "Olfactory-Isotropic-1D-v0", 3).once() == 60


def test_json_holds_all_that_the_plots_need(tmp_path):
    calls = []
    cases = [_counting(calls, "a"), Case("b", "b", 1, lambda: 1 / 0)]
    rows = measure_round(cases, 2, 0.0)
    rows[0].series = "PlumeSearchLocal-v0"
    path = tmp_path / "new" / "speed.json"
    report.write(path, report.document(rows, ["c"]))
    stored = json.loads(path.read_text())
    assert {"date", "machine", "versions", "rows", "targets", "left_out"} == set(stored)
    assert stored["rows"][0]["wall"]["median"] > 0
    assert "ZeroDivisionError" in stored["rows"][1]["note"]
    assert stored["machine"]["cores"] >= 1
    for picture in plots.draw(stored["rows"], path.parent):
        assert picture.stat().st_size > 0
    assert not list(path.parent.glob(".*"))


@pytest.mark.parametrize("filaments", [1, 20])
def test_made_up_recording_is_one(tmp_path, filaments):
    from plumejax.plumes.filament_recordings import read_filaments

    recording = read_filaments(ours.write_recording(tmp_path, 3, filaments), ours.SOURCE)
    assert recording.grid_size == (77, 77)
    assert recording.slice(range(3)).max() > 0
