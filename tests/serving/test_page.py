"""tests/serving/test_page: the page at `/`, what it asks the server, and people's use of it."""

import asyncio
import fnmatch
import json
import re
import tomllib
from pathlib import Path

import httpx
import jax
import numpy as np
import pytest

import plumejax
from plumejax.base.randomised import Uniform
from plumejax.base.spaces import Discrete
from plumejax.search.team import Team
from plumejax.serving import create_app
from plumejax.serving.baselines import Baselines
from plumejax.serving.environment import State
from plumejax.serving.lanes import Lanes
from plumejax.serving.looks import controls, look, names_of
from plumejax.serving.models import task_models
from plumejax.serving.pages import FILES
from plumejax.serving.refusals import RefusedError
from plumejax.serving.sessions import Session
from plumejax.serving.shelf import OPEN, Shelf

TOKEN = "a secret"
TASKS = [task.id for task in plumejax.registered_tasks().values() if not task.needs]
KINDS = ("agents", "sources", "objects", "goals")
SHOWN = ("/", "/page", "/page/page.js", "/tasks")
ROOT = Path(__file__).parents[2]


def test_the_page_comes_whole_from_this_server_alone(serve):
    with serve("Echo") as served:
        http = served.http
        page = http.get("/")
        assert page.status_code == 200
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        policy = page.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        named = re.findall(r'(?:src|href)="([^"]*)"', page.text)
        assert sorted(named) == sorted(f"/page/{name}" for name in FILES if name != "index.html")
        for name in named:
            file = http.get(name)
            assert file.status_code == 200
            assert "://" not in file.text.replace("http://www.w3.org/2000/svg", "")
        # What stands in the text itself the policy forbids.
        assert not re.search(r"<style|style=|\son\w+=|<script(?![^>]*src)", page.text)
        assert http.get("/page/app.py").status_code == 404


@pytest.mark.parametrize("options", [{"token": TOKEN}, {"host": "0.0.0.0", "token": TOKEN}])
def test_with_a_token_there_is_no_page(serve, options):
    with serve("Echo", **options) as served:
        http = served.http
        http.headers["Authorization"] = f"Bearer {TOKEN}"
        assert [http.get(path).status_code for path in SHOWN] == [404] * len(SHOWN)
        assert http.post("/tasks/PlumeSearch-v0").status_code == 404


def test_a_server_without_a_page(serve):
    with serve("Echo", page=False) as served:
        assert [served.get(path).status_code for path in SHOWN] == [404] * len(SHOWN)


def test_the_page_is_in_the_wheel():
    setup = tomllib.loads((ROOT / "pyproject.toml").read_text())
    patterns = setup["tool"]["setuptools"]["package-data"]["plumejax"]
    folder = ROOT / "plumejax" / "serving" / "page"
    assert {path.name for path in folder.iterdir()} == set(FILES)
    for name in FILES:
        assert any(fnmatch.fnmatch(f"serving/page/{name}", pattern) for pattern in patterns)


def test_the_page_adds_nothing_to_what_clients_are_promised():
    paths = create_app("Echo").openapi()["paths"]
    assert paths == create_app("Echo", page=False).openapi()["paths"]


def test_a_shelf_keeps_the_tasks_that_are_played():
    """Echo stands for each: what is picked is compiled elsewhere."""
    tasks = TASKS[: OPEN + 1]
    shelf = Shelf(lambda task: create_app("Echo", isolation="strict", page=False))
    app = create_app("Echo")

    async def play():
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
            for task in tasks[:OPEN]:
                assert await shelf.pick(app, task) == f"/tasks/{task}"
                made = await http.post(f"/tasks/{task}/sessions")
                session = f"/tasks/{task}/sessions/{made.json()['session_id']}"
                assert (await http.post(f"{session}/reset")).status_code == 200
            with pytest.raises(RefusedError, match="being played"):
                await shelf.pick(app, tasks[OPEN])
            await http.delete(session)
            # All others are played: the last one makes room.
            await shelf.pick(app, tasks[OPEN])
            gone = await http.post(f"/tasks/{tasks[OPEN - 1]}/sessions")
            still = await http.post(f"/tasks/{tasks[0]}/sessions")
            assert (gone.status_code, still.status_code) == (404, 201)
            await shelf.pick(app, tasks[0])
            for unknown in ("Recorded-v0", "no such task"):
                with pytest.raises(RefusedError, match="no such task"):
                    await shelf.pick(app, unknown)
        await shelf.close()

    asyncio.run(play())


@pytest.mark.slow
def test_each_action_has_a_name():
    for task in TASKS:
        env, params = plumejax.make(task)
        space = env.action_space(params)
        offered = controls(env, params)
        if isinstance(space, Discrete):
            assert len(set(offered["actions"])) == space.n, task
        else:
            named = [axis["name"] for axis in offered["axes"]]
            assert not any(name.isdigit() for name in named), task
            assert all(axis["low"] < axis["high"] for axis in offered["axes"])
    assert names_of(object()) == []


@pytest.mark.slow
def test_a_task_of_another_kind_is_played_without_a_map(local):
    search, params = local
    team = Team(search, 2)
    assert [each["name"] for each in Baselines(team, params).described()] == ["random"]
    _, state = jax.jit(team.reset)(jax.random.key(1), params)
    assert look(team, state, params)["max_steps"] == 40
    assert controls(team, params) == {"actions": [], "axes": []}
    drawn, numbers = plumejax.make(
        "PlumeSearchLocal-v0", grid_size=(16, 12), overrides={"plume.sigma": Uniform(2.0, 5.0)}
    )
    _, state = jax.jit(drawn.reset)(jax.random.key(1), numbers)
    assert look(drawn, state, numbers)["levels"]["shape"] == [12, 16]
    assert "random" in Baselines(drawn, numbers).fitting


@pytest.mark.long
@pytest.mark.parametrize("task", TASKS)
def test_each_task_is_shown(task):
    env, params = plumejax.make(task)
    _, state = jax.jit(env.reset)(jax.random.key(1), params)
    seen = look(env, state, params)
    json.dumps(seen, allow_nan=False)
    left, right, low, high = seen["extent"]
    marks = [mark for kind in KINDS for mark in seen.get(kind, ())]
    assert len(seen["agents"]) == (2 if task.startswith("TwoArm") else 1)
    for x, y in (mark["at"] for mark in marks):
        assert left <= x <= right
        assert low <= y <= high


@pytest.mark.long
@pytest.mark.parametrize("task", TASKS)
def test_what_a_baseline_does_is_an_action_of_the_task(task):
    env, params = plumejax.make(task)
    action, _ = task_models(task, env, params)
    _, state = jax.jit(env.reset)(jax.random.key(1), params)
    lane = Lanes(state, np.uint32(1))
    session = Session("s", 0, 0.0, True, State(episode_id="e"))
    baselines = Baselines(env, params)
    for name in baselines.fitting:
        action.model_validate_json(json.dumps(baselines.act(session, name, lane)))


@pytest.fixture(scope="module")
def search(serve, local):
    with serve(local) as served:
        yield served


@pytest.mark.slow
def test_looking_changes_nothing_and_shows_where_things_are(search):
    def played(looks):
        path = search.session()
        search.post(path + "/reset", {"seed": 3})
        replies = []
        for action in (0, 1, 1, 2):
            if looks:
                seen = search.get(path + "/view").json()
                search.post(path + "/baseline", {"name": "random"})
            replies.append(search.post(path + "/step", {"action": {"value": action}}).json())
        return replies, seen if looks else None

    replies, seen = played(looks=True)
    assert replies == played(looks=False)[0]
    assert seen["extent"] == [-0.5, 15.5, -0.5, 11.5]
    assert seen["levels"]["shape"] == [12, 16]
    assert seen["sources"] == [{"at": [8.0, 6.0]}]
    assert (seen["radius"], seen["max_steps"]) == (2.0, 40)
    assert 0.9 < seen["top"] <= 1.0
    (agent,) = seen["agents"]
    assert seen["odour"] == pytest.approx(replies[-2]["observation"]["value"][0])
    away = sum((a - b) ** 2 for a, b in zip(agent["at"], (8.0, 6.0), strict=True)) ** 0.5
    assert replies[-2]["metadata"]["distance"] == pytest.approx(away)


@pytest.mark.slow
def test_a_baseline_acts_as_it_would_alone(search):
    """With the seed of an episode all of it repeats; asked twice at a step, it says the same."""

    def played(name):
        path = search.session()
        reply = search.post(path + "/reset", {"seed": 11}).json()
        actions = []
        while not reply["done"]:
            action = search.post(path + "/baseline", {"name": name}).json()["action"]
            assert search.post(path + "/baseline", {"name": name}).json()["action"] == action
            reply = search.post(path + "/step", {"action": action}).json()
            actions.append(action["value"])
        return actions

    for name in ("random", "gradient"):
        assert played(name) == played(name)
    assert len(set(played("random"))) == 4


@pytest.mark.slow
def test_what_the_page_may_not_ask(search):
    path = search.session()
    for answer in (
        search.get(path + "/view"),
        search.post(path + "/baseline", {"name": "random"}),
    ):
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "NOT_RESET")
    search.post(path + "/reset")
    answer = search.post(path + "/baseline", {"name": "infotaxis"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "NO_SUCH_BASELINE")
    assert search.get("/sessions/unknown/view").status_code == 404
    assert search.post("/tasks/PlumeSearch-v99").status_code == 404
    foreign = {"Origin": "http://evil.example"}
    assert search.post("/tasks/PlumeSearch-v0", headers=foreign).status_code == 403


class Page:
    """The page in a browser, as a person has it."""

    def __init__(self, driver):
        self.driver = driver

    def find(self, css):
        return self.driver.find_element("css selector", css)

    def text(self, css):
        return self.find(css).text

    def number(self, name):
        return self.text(f'#numbers [data-name="{name}"]')

    def choose(self, css, value):
        from selenium.webdriver.support.ui import Select

        Select(self.find(css)).select_by_value(value)

    def press(self, key):
        self.find("body").send_keys(key)

    def wait(self, holds):
        from selenium.common.exceptions import StaleElementReferenceException
        from selenium.webdriver.support.ui import WebDriverWait

        ignored = [StaleElementReferenceException]
        wait = WebDriverWait(self.driver, 120, 0.1, ignored_exceptions=ignored)
        return wait.until(lambda driver: holds())

    def open(self, url):
        self.driver.get(url)
        self.wait(lambda: self.text("#status") == "your turn")

    def complaints(self):
        return [entry["message"] for entry in self.driver.get_log("browser")]


@pytest.fixture
def page(browser):
    return Page(browser)


@pytest.mark.slow
def test_a_person_plays_a_search(search, page):
    page.open(search.url)
    page.find("#seed").send_keys("5")
    page.find("#reset").click()
    page.wait(lambda: page.number("seed") == "5")
    assert page.number("step") == "0 of 40"
    x, y = map(int, re.match(r"(\d+), (\d+) cells", page.number("position")).groups())
    inward = "left" if x > 8 else "right"
    page.press({"left": "\ue012", "right": "\ue014"}[inward])
    page.wait(lambda: page.number("step") == "1 of 40")
    x += 1 if inward == "right" else -1
    assert page.number("position") == f"{x}, {y} cells"

    page.choose("#baseline", "random")
    page.driver.execute_script("const s = document.getElementById('speed'); s.value = 100;")
    page.find("#play").click()
    page.wait(lambda: " after " in page.text("#status"))
    steps = int(re.search(r"after (\d+) step", page.text("#status"))[1])
    assert page.number("step") == f"{steps} of 40"
    assert not page.find("#actions button").is_enabled()
    ended = {40: "out of time"}.get(steps, "found the source")
    assert page.text("#status").startswith(ended)
    # The map is not of one colour.
    colours = page.driver.execute_script(
        "const map = document.getElementById('map');"
        "const {data} = map.getContext('2d').getImageData(0, 0, map.width, map.height);"
        "return new Set(new Uint32Array(data.buffer)).size"
    )
    assert colours > 20
    assert page.complaints() == []


@pytest.mark.slow
def test_a_person_picks_another_task(search, page):
    page.open(search.url)
    page.choose("#task", "TwoArm-Lift-v0")
    page.wait(lambda: page.text("#status").startswith("compiling"))
    page.wait(lambda: page.text("#status") == "your turn")
    assert page.number("step") == "0 of 200"
    page.find("#actions button").click()
    page.wait(lambda: page.number("step") == "1 of 200")
    page.choose("#baseline", "scripted")
    page.find("#play").click()
    page.wait(lambda: page.text("#status").startswith("done after"))
    page.choose("#task", search.sessions.engine.name)
    page.wait(lambda: page.text("#status") == "your turn")
    assert page.number("step") == "0 of 40"
    assert page.complaints() == []


@pytest.mark.slow
def test_a_person_talks_to_echo_and_is_told_what_went_wrong(serve, page):
    with serve("Echo") as served:
        page.open(served.url)
        page.find("#actions input").send_keys("hello\n")
        page.wait(lambda: page.text("#said") == "hello")
        assert page.number("reward") == "0.5"
        assert page.complaints() == []
        served.end_idle()
        page.find("#actions input").send_keys(" again\n")
        page.wait(lambda: "no more" in page.text("#error"))
        page.find("#error-action").click()
        page.wait(lambda: page.text("#said") == "Echo environment ready!")
        assert page.number("step") == "0"
    page.find("#reset").click()
    page.wait(lambda: "cannot be reached" in page.text("#error"))
