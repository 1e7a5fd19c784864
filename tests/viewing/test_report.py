"""tests/viewing/test_report: a report needs no other file, and its player shows what was played."""

import base64
import io
import json
import re
import zlib

import jax
import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

import plumejax
from plumejax.evaluation.episodes import trace
from plumejax.policies.catalogue import prepare
from plumejax.policies.reactive import Random
from plumejax.viewing import player
from plumejax.viewing.report import Section, page


def unpacked(array):
    content = zlib.decompress(base64.b64decode(array["data"]))
    kind = np.dtype(array["dtype"]).newbyteorder("<")
    return np.frombuffer(content, kind).reshape(array["shape"])


@pytest.fixture(scope="module")
def believing():
    """Three searches by infotaxis: `(lanes, outcomes, episodes)`."""
    env, params, policy = prepare("infotaxis", *plumejax.make("Olfactory-Isotropic-19x19-v0"))
    outcomes, lanes = trace(env, policy, jax.random.key(2), params, 3, int(params.max_steps))
    shown = list(player.episodes(env, params, policy, outcomes, lanes, "infotaxis"))
    return lanes, outcomes, shown


@pytest.fixture(scope="module")
def drifting():
    """Two searches in a plume that moves."""
    env, params = plumejax.make("Fly-Packets-v0", overrides={"max_steps": 300})
    policy = Random(env.action_space(params))
    outcomes, lanes = trace(env, policy, jax.random.key(2), params, 2, 300)
    return lanes, list(player.episodes(env, params, policy, outcomes, lanes, "random"))


def test_ways_and_beliefs_are_those_that_were_played(believing):
    lanes, outcomes, shown = believing
    for number, each in enumerate(shown):
        steps = int(outcomes.steps[number])
        assert (each["steps"], each["found"]) == (steps, bool(outcomes.found[number]))
        left, right, bottom, top = each["extent"]
        share = unpacked(each["agents"][0]) / 65535
        way = np.asarray([left, bottom]) + share * np.asarray([right - left, top - bottom])
        true = np.asarray(lanes.state.agent.position)[: steps + 1, number]
        np.testing.assert_allclose(way, true, atol=19 / 60000)
        # At each step the belief that was acted on: it knows that the source is not here.
        belief, moments = unpacked(each["belief"]), np.asarray(each["believed"])
        for level, moment in zip(belief[:-1], moments[:-1], strict=True):
            x, y = true[moment].astype(int)
            assert level[y, x] == 0
            assert level.max() == 252
        acted = np.asarray(lanes.memory.belief)[1 : steps + 1, number]
        bits = -np.sum(np.where(acted > 0, acted * np.log2(np.maximum(acted, 1e-30)), 0), (1, 2))
        kept = moments < steps
        np.testing.assert_allclose(
            np.asarray(each["entropy"])[kept], bits[moments[kept]], rtol=1e-3
        )


def test_a_plume_that_stands_still_is_kept_once_and_one_that_moves_as_it_moves(believing, drifting):
    assert all(unpacked(each["field"]).shape[0] == 1 for each in believing[2])
    _, shown = drifting
    for each in shown:
        field = unpacked(each["field"])
        assert field.shape[0] == len(each["moments"]) > 20
        assert np.any(field[0] != field[-1])
        assert each["moments"][-1] == each["steps"] == 300
        turned = unpacked(each["heading"]) / 65535 * 360
        assert np.ptp(turned) > 10
        assert each["wind"][0][0] > 0


def test_what_is_kept_of_an_episode_is_small(drifting):
    _, shown = drifting
    assert all(len(json.dumps(each)) < 250_000 for each in shown)  # 20 in 5 MB


def test_a_report_loads_nothing_and_says_what_it_was_given(believing):
    figure = Figure(figsize=(2, 2))
    figure.add_subplot().plot([1, 2])
    rows = [["policy", "success"], ["<script>alert(1)</script>", "0.5"]]
    text = page(
        "a & b", [Section("Who", "one </script> two", rows, {"a line": figure})], believing[2]
    )
    assert not re.search(r"(?:src|href)=\"(?!data:)", text)
    assert "http" not in text.replace("http-equiv", "")
    assert "default-src 'none'" in text
    assert "<script>alert(1)" not in text
    assert text.count("</script>") == 2
    assert "<h1>a &amp; b</h1>" in text
    data = re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1]
    assert json.loads(data)["episodes"] == json.loads(json.dumps(believing[2]))
    pictures = re.findall(r"data:image/png;base64,([^\"]*)", text)
    assert [base64.b64decode(each)[1:4] for each in pictures] == [b"PNG"]
    without = page("a", [Section("Who", "", rows)])
    assert 'id="player"' not in without
    assert len(without) < 10_000


@pytest.mark.slow
def test_a_person_watches_the_episodes(browser, believing, drifting, tmp_path):
    from selenium.webdriver import ActionChains
    from selenium.webdriver.support.ui import Select, WebDriverWait

    path = tmp_path / "report.html"
    path.write_text(page("Report", [Section("Who")], [*drifting[1], *believing[2]]))
    browser.get(path.as_uri())
    wait = WebDriverWait(browser, 30, 0.05)

    def find(name):
        return browser.find_element("id", name)

    def at():
        return int(find("at").get_attribute("value"))

    def pixels(name):
        script = "return document.getElementById(arguments[0]).toDataURL()"
        content = base64.b64decode(browser.execute_script(script, name).split(",")[1])
        return np.asarray(Image.open(io.BytesIO(content)).convert("RGB"))

    wait.until(lambda _: find("map").get_attribute("width") != "300" and at() == 0)
    start = pixels("map")
    assert len(np.unique(start.reshape(-1, 3), axis=0)) > 20
    Select(find("speed")).select_by_visible_text("60")
    find("play").click()
    wait.until(lambda _: at() > 20)
    assert find("play").text == "Pause"
    find("play").click()
    stood = at()
    assert np.any(pixels("map") != start)
    assert find("said").text.startswith(f"step {stood} of 300")
    # A click at three quarters of the trace goes there.
    width = find("trace").size["width"]
    there = ActionChains(browser).move_to_element_with_offset(find("trace"), width // 4, 0)
    there.click().perform()
    assert abs(at() - 225) <= 2
    find("on").click()
    assert abs(at() - 226) <= 2
    # Another episode, with its hits and its belief.
    with_hits = next(i for i, each in enumerate(believing[2]) if len(each["hits"]) > 1)
    Select(find("episode")).select_by_index(len(drifting[1]) + with_hits)
    each = believing[2][with_hits]
    wait.until(lambda _: find("said").text.startswith(f"step 0 of {each['steps']}"))
    before = pixels("mind")
    find("hit-after").click()
    assert at() == next(step for step in each["hits"] if step > 0)
    assert "bits" in find("said").text
    assert np.any(pixels("mind") != before)
    complaints = [entry["message"] for entry in browser.get_log("browser")]
    assert complaints == []
