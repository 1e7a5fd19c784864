"""tests/serving/conftest: a real server on loopback, and what speaks to it."""

import contextlib
import json
import threading
import time

import httpx
import pytest
from websockets.sync.client import connect

from plumejax.serving import create_app
from plumejax.serving.running import listener, server


class Clock:
    """Shows the time, and more once it is put forward."""

    def __init__(self):
        self.ahead = 0.0

    def __call__(self):
        return time.monotonic() + self.ahead


class Served:
    """A server: `url`, `app`, `clock`, and requests to it that keep no cookie."""

    def __init__(self, app, url, clock, http):
        self.app, self.url, self.clock, self.http = app, url, clock, http
        self.sessions = app.state.sessions

    def post(self, path, body=None, **options):
        if "content" not in options:
            options["json"] = {} if body is None else body
        return self.ask("POST", path, **options)

    def get(self, path, **options):
        return self.ask("GET", path, **options)

    def ask(self, verb, path, **options):
        self.http.cookies.clear()
        return self.http.request(verb, path, **options)

    def end_idle(self):
        """End every session."""
        self.clock.ahead += 901
        self.ask("DELETE", self.session())

    def session(self):
        """The path of a new session."""
        made = self.post("/sessions")
        assert made.status_code == 201, made.text
        return f"/sessions/{made.json()['session_id']}"

    def socket(self, path="/ws", **options):
        return Socket(connect(self.url.replace("http", "ws") + path, proxy=None, **options))

    def __repr__(self):
        return self.url


class Socket:
    """A WebSocket that speaks JSON."""

    def __init__(self, connecting):
        self.connecting = connecting

    def __enter__(self):
        self.connection = self.connecting.__enter__()
        return self

    def __exit__(self, *error):
        self.connecting.__exit__(*error)

    def say(self, kind, data=None, **beside):
        message = {"type": kind, **({} if data is None else {"data": data}), **beside}
        return self.send(json.dumps(message))

    def send(self, text):
        self.connection.send(text)
        return self.hear()

    def hear(self):
        return json.loads(self.connection.recv(timeout=30))


@contextlib.contextmanager
def running(task, **options):
    """`Served`, for as long as it is needed."""
    clock = Clock()
    app = create_app(task, clock=clock, **options)
    ready, urls = threading.Event(), []

    def announce(url):
        urls.append(url)
        ready.set()

    uvicorn = server(app, announce)
    thread = threading.Thread(target=uvicorn.run, args=([listener("127.0.0.1", 0)],))
    thread.start()
    try:
        while not ready.wait(0.1):
            assert thread.is_alive(), "the server did not start"
        with httpx.Client(base_url=urls[0], timeout=60.0) as http:
            yield Served(app, urls[0], clock, http)
    finally:
        uvicorn.should_exit = True
        thread.join()


@pytest.fixture(scope="session")
def serve():
    """`running`, for tests that need a server of their own."""
    return running
