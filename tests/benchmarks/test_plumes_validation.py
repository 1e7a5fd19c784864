"""tests/benchmarks/test_plumes_validation: verdicts, stations, page and pictures at tiny sizes."""

import json
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[2]))  # benchmarks/ is not part of the installed package

from benchmarks import plumes_checks, plumes_page, plumes_profiles, plumes_speed, plumes_validation
from benchmarks.measure import Row, Spread
from benchmarks.plumes_checks import Check
from plumejax.plumes import catalogue


def test_a_check_is_met_within_three_errors_and_the_slack():
    assert Check("x", 1.0, 1.3, 0.1).met
    assert not Check("x", 1.0, 1.31, 0.1).met
    assert Check("x", 1.0, 1.31, 0.1, slack=0.02).met
    assert not Check("x", 0.0, float("nan"), 0.1).met


def test_errors_of_checks_are_those_of_their_samples():
    rng = np.random.default_rng(0)
    samples = rng.normal(2.0, 3.0, (400, 1000))
    means = [plumes_checks.mean("m", 2.0, s) for s in samples]
    spreads = [plumes_checks.variance("v", 9.0, s) for s in samples]
    shares = [plumes_checks.share("s", 0.5, s > 2.0) for s in samples]
    for checks in (means, spreads, shares):
        off = [(c.measured - c.expected) / c.error for c in checks]
        # Of standard normal numbers; their variance is known to 7 % from 400.
        assert abs(np.mean(off)) < 0.15
        assert abs(np.var(off) - 1) < 0.25


def test_the_mean_field_of_the_stream_is_that_of_the_design_pages():
    golden = json.loads((plumes_checks.GOLDEN / "filaments.json").read_text())
    places, means = (golden["farrell_mean_field"][name] for name in ("places", "means"))
    assert tuple(map(tuple, places)) == plumes_checks.PLACES
    # Where the ten first puffs have not come by, or hardly.
    for (x, y), mean in list(zip(places, means, strict=True))[:4]:
        assert plumes_checks.farrell_mean(x, y) == pytest.approx(mean, rel=0.02)


def test_stations_of_a_square_wave():
    wave = np.tile(np.repeat([1.0, 0.0], [3, 9]), 50)[:, None] * np.ones(4)
    found = plumes_profiles.station(5.0, wave, 0.5, 0.1, 0.6)
    assert found.intermittency == pytest.approx(0.25)
    assert found.error == 0
    assert found.whiff == pytest.approx(0.3)
    assert found.blank == pytest.approx(0.9)
    assert found.blanks == 4 * 49


def test_a_density_of_blanks_integrates_to_one():
    durations = 0.1 * np.round(1 + np.random.default_rng(0).pareto(0.5, 2000)).clip(1, 1e4)
    density = np.asarray(plumes_profiles.density(durations, 0.1))
    # As steep as the law, p ~ t^-1.5.
    middle = density[(density[:, 0] > 1) & (density[:, 0] < 300)]
    slope = np.polyfit(*np.log(middle).T, 1)[0]
    assert slope == pytest.approx(-1.5, abs=0.1)
    assert plumes_profiles.density(np.zeros(0), 0.1) == []


@pytest.fixture(scope="module")
def content():
    """The document of a run of three tiny parts, as it is read back from its JSON."""
    subject = plumes_profiles.Subject(
        label="packets",
        make=partial(catalogue.make, "packets-ou"),
        length="mm",
        plumes=2,
        seconds=40.0,
        warmup=1.0,
        distances=(30, 240),
        threshold=lambda params: 0.02,
        rule="0.02",
        shortest=0.5,
    )
    stations = plumes_profiles.plain(plumes_profiles.profile(subject, quick=False))
    checks = [Check("met", 1.0, 1.05, 0.1), Check("broken", 0.0, 1.0, slack=0.5)]
    across = [[float(y), 0.5, 0.1, 1.2] for y in range(-2, 3)]
    even = Spread(5e3, 4e3, 6e3)
    rows = [
        Row("search-live/1", "live", 1, wall=even, cpu=even),
        Row("pompy", "pompy", 1, note="not installed: pompy"),
        Row("farrell/1", "farrell", 1, wall=even, cpu=even),
    ]
    found = plumes_validation.run(
        {
            "a": lambda: {"checks": {"packets": plumes_validation._plain(checks)}},
            "b": lambda: {"profiles": {"packets": stations, "turbulence": stations}},
            "c": lambda: {"turbulence": {"across": across, "facts": {"Sc": 1.0}, "at": 6.0}},
            "d": lambda: {"rows": rows},
        }
    )
    return json.loads(json.dumps(found))


def test_the_page_says_what_was_found(content):
    page = plumes_page.page(content)
    assert "1 of 2 are met" in page
    assert page.count("**not met**") == 1
    assert "not installed: pompy" in page
    assert "| Sc | 1 |" in page
    assert {"packets", "turbulence"} == set(content["profiles"])
    blocks = [block.splitlines() for block in page.split("\n\n") if block.startswith("|")]
    assert len(blocks) == 8
    for lines in blocks:  # every row has as many cells as its head
        assert len({line.count("|") for line in lines}) == 1


def test_pictures_are_drawn(content, tmp_path):
    found = plumes_page.pictures(content)
    assert set(found) == {"plumes_statistics.png", "plumes_turbulence.png"}
    for name, picture in found.items():
        picture.savefig(tmp_path / name)
        assert (tmp_path / name).stat().st_size > 5000


def test_targets_are_ratios_per_cpu_second(content):
    reached = {target["label"]: target for target in content["targets"]}
    live = next(v for label, v in reached.items() if "live" in label)
    assert live["reached"] == pytest.approx(5e3 / 86)
    assert live["met"]
    # Without pompy there is nothing to compare with.
    assert next(v for label, v in reached.items() if "farrell :" in label)["reached"] is None
    assert len({case.key for case in plumes_speed.cases(False)}) == len(plumes_speed.cases(False))


def test_every_part_has_a_name_and_a_wrong_one_lists_them():
    names = set(plumes_validation.parts(True))
    assert {"gaussian", "turbulence", "speed", "profile, meandering"} <= names
    with pytest.raises(SystemExit, match="gaussian"):
        plumes_validation.main(only="nothing of this")
    assert set(plumes_page.SHOWN) | {"tracking"} == set(plumes_page.STYLES)


@pytest.mark.slow
def test_checks_run_at_a_tiny_size():
    checks = plumes_checks.replayed(8)
    assert all(check.met for check in checks)
