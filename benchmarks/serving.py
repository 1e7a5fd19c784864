"""benchmarks/serving: `python -m benchmarks.serving`: what the server bears, and what a step costs.

Servers run in processes of their own, real uvicorn on loopback; this process is the client, with
plain WebSockets for either server. Beside the server of the public package `openenv` if the Python
of an environment that has it is given; to make one:

    python -m venv peer && peer/bin/python -m pip install openenv==0.10.0 -e .

Both then run on asyncio, or with uvloop installed in both environments both on that.

Writes each part to benchmarks/results/serving.json as it is done; rerun, it goes on with those that
are missing. Then it writes benchmarks/serving.md.
"""

import asyncio
import itertools
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import httpx
import numpy as np
import psutil
import tyro
from rich.console import Console
from rich.markdown import Markdown
from websockets.asyncio.client import connect

from benchmarks import report
from plumejax.base.files import write_whole
from plumejax.serving import AsyncClient

RESULTS = Path(__file__).parent / "results" / "serving.json"
PAGE = Path(__file__).with_name("serving.md")
PEER = Path(__file__).with_name("openenv_peer.py")

TASK = "PlumeSearchLocal-v0"

SOCKETS, SESSIONS = 32, 64
"""Of the comparison, and of the load."""

LANES = (256, 1024, 4096)

WARM = 2.0
"""s of play before anything is measured."""


class Server(NamedTuple):
    """A process that serves.

    Attributes:
      url: of it.
      process: to ask what it uses.
      log: what it says, its compilations among it.
    """

    url: str
    process: psutil.Process
    log: Path

    def cpu(self) -> float:
        """s of CPU so far."""
        times = self.process.cpu_times()
        return times.user + times.system

    def memory(self) -> float:
        """MiB."""
        return self.process.memory_info().rss / 2**20

    def compilations(self) -> int:
        """Programs so far."""
        return self.log.read_text().count("Finished XLA compilation")


class Played(NamedTuple):
    """What a player, or several, did.

    Attributes:
      steps: that were answered.
      requests: of all kinds.
      errors: answers that were errors.
      lost: steps that the server does not know of, or knows of and did not answer.
    """

    steps: int
    requests: int
    errors: int
    lost: int


def main(
    *,
    seconds: float = 60.0,
    rounds: int = 7,
    openenv: str = "",
    out: Path = RESULTS,
    page: Path = PAGE,
) -> None:
    """Measure the parts that `out` lacks, then write the page.

    Args:
      seconds: of the load.
      rounds: of the comparison, in each of which every server plays for 3 s; the median counts.
      openenv: the Python of an environment with `openenv` and plumejax; without it there is no
        comparison.
      out: JSON to write and to go on from.
      page: Markdown to write.
    """
    settings = {"task": TASK, "seconds": seconds, "rounds": rounds}
    parts = _done(out, settings)
    measures: dict[str, Callable[[], dict[str, Any]]] = {"load": lambda: load(seconds)}
    if openenv:
        measures["beside"] = lambda: beside(openenv, rounds)
    measures["vector"] = vector
    console = Console()
    for name in [name for name in measures if name not in parts]:
        console.print(f"{name} ...", highlight=False)
        parts[name] = measures[name]()
        held = {"settings": settings, "machine": report.machine(), "parts": parts}
        report.write(out, held)
    text = markdown(json.loads(out.read_text()))
    console.print(Markdown(text))
    write_whole(page, text)
    for path in (out, page):
        console.print(str(path), highlight=False, soft_wrap=True)


def _done(path: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """The parts that are there already, if they were made with the same settings."""
    content = json.loads(path.read_text()) if path.is_file() else {}
    return content["parts"] if content.get("settings") == settings else {}


def load(seconds: float) -> dict[str, Any]:
    """As many sessions as there are places, all at once and without a pause."""
    with ours(TASK, SESSIONS) as server:
        asyncio.run(play(server.url, TASK, SESSIONS, WARM))
        began, cpu, compiled = time.monotonic(), server.cpu(), server.compilations()
        done, memory = asyncio.run(_watched(server, seconds))
        wall = time.monotonic() - began
        return {
            **done._asdict(),
            "requests_per_second": round(done.requests / wall),
            "cpu_us_per_request": round((server.cpu() - cpu) / done.requests * 1e6),
            "memory_mib": [round(each, 1) for each in memory],
            "compilations": server.compilations() - compiled,
        }


async def _watched(server: Server, seconds: float) -> tuple[Played, list[float]]:
    """The load, and the memory of the server at its start and after each sixth."""
    playing = asyncio.create_task(play(server.url, TASK, SESSIONS, seconds))
    memory = [server.memory()]
    for _ in range(6):
        await asyncio.sleep(seconds / 6)
        memory.append(server.memory())
    return await playing, memory


def beside(openenv: str, rounds: int) -> dict[str, Any]:
    """Steps a second of server CPU, ours and theirs in turn, since a machine's speed varies."""
    with (
        ours(TASK, SOCKETS) as our_task,
        theirs(openenv, TASK, SOCKETS) as their_task,
        ours("Echo", SOCKETS) as our_echo,
        theirs(openenv, "Echo", SOCKETS) as their_echo,
    ):
        contest = {
            "ours": (our_task, TASK),
            "openenv": (their_task, TASK),
            "ours, Echo": (our_echo, "Echo"),
            "openenv, Echo": (their_echo, "Echo"),
        }
        for server, task in contest.values():
            asyncio.run(play(server.url, task, SOCKETS, WARM))
        rates: dict[str, list[float]] = {name: [] for name in contest}
        errors = 0
        for _ in range(rounds):
            for name, (server, task) in contest.items():
                cpu = server.cpu()
                done = asyncio.run(play(server.url, task, SOCKETS, 3.0))
                rates[name].append(done.steps / (server.cpu() - cpu))
                errors += done.errors + done.lost
    ratios = [a / b for a, b in zip(rates["ours"], rates["openenv"], strict=True)]
    echoes = [a / b for a, b in zip(rates["ours, Echo"], rates["openenv, Echo"], strict=True)]
    return {
        "sockets": SOCKETS,
        "steps_per_cpu_second": {name: round(median(each)) for name, each in rates.items()},
        "ratios": [round(x, 2) for x in ratios],
        "ratio": round(median(ratios), 2),
        "ratio_echo": round(median(echoes), 2),
        "errors": errors,
        "uvloop": [_has_uvloop(python) for python in (sys.executable, openenv)],
    }


def _has_uvloop(python: str) -> bool:
    found = subprocess.run([python, "-c", "import uvloop"], check=False, capture_output=True)
    return found.returncode == 0


def vector() -> dict[str, Any]:
    """Steps of a session of many episodes, the client's time included."""
    with ours(TASK, len(LANES)) as server:
        return {str(n): asyncio.run(_lanes(server, n, 5.0)) for n in LANES}


async def _lanes(server: Server, n: int, seconds: float) -> dict[str, Any]:
    async with await AsyncClient.open(server.url, num_envs=n, timeout=60.0) as client:
        await client.reset(seed=1)
        action = np.arange(n, dtype=np.int32) % 4
        for _ in range(10):
            await client.step(action)
        began, cpu, steps = time.monotonic(), server.cpu(), 0
        while time.monotonic() < began + seconds:
            await client.step(action)
            steps += 1
        wall = time.monotonic() - began
        return {
            "lane_steps_per_second": round(n * steps / wall),
            "lane_steps_per_cpu_second": round(n * steps / (server.cpu() - cpu)),
            "ms_per_request": round(wall / steps * 1e3, 2),
        }


async def play(url: str, task: str, sockets: int, seconds: float) -> Played:
    """Players side by side, a socket each."""
    end = time.monotonic() + seconds
    players = [_player(url, task, seed, end) for seed in range(sockets)]
    return _all_of(await asyncio.gather(*players))


async def _player(url: str, task: str, seed: int, end: float) -> Played:
    """Plays till then, and compares its count with the server's when an episode ends."""
    said = itertools.cycle([{"message": "hello"}] if task == "Echo" else _CHOICES)
    steps = requests = errors = lost = since = 0
    async with connect(
        url.replace("http", "ws") + "/ws", proxy=None, compression=None, open_timeout=60
    ) as line:

        async def say(kind: str, **data: Any) -> Any:
            nonlocal requests, errors
            await line.send(json.dumps({"type": kind, **data}))
            answer = json.loads(await line.recv())
            requests += 1
            errors += answer["type"] == "error"
            return answer["data"]

        await say("reset", data={"seed": seed})
        while time.monotonic() < end:
            answer = await say("step", data=next(said))
            if "done" not in answer:
                continue
            steps, since = steps + 1, since + 1
            if answer["done"]:
                lost += abs((await say("state"))["step_count"] - since)
                await say("reset", data={"seed": seed + steps})
                since = 0
        lost += abs((await say("state"))["step_count"] - since)
    return Played(steps, requests, errors, lost)


_CHOICES = [{"value": value} for value in range(4)]


def _all_of(played: list[Played]) -> Played:
    return Played(*map(sum, zip(*played, strict=True)))


@contextmanager
def ours(task: str, capacity: int) -> Iterator[Server]:
    """`plumejax serve`, which tells what it compiles."""
    arguments = ["-m", "plumejax", "serve", task, "--capacity", str(capacity)]
    with _running([sys.executable, *arguments, "--port"], JAX_LOG_COMPILES="1") as server:
        yield server


@contextmanager
def theirs(python: str, task: str, sockets: int) -> Iterator[Server]:
    """The server of `openenv`."""
    port = _free_port()
    with _running([python, str(PEER), task], str(sockets), port=port) as server:
        yield server


@contextmanager
def _running(
    command: list[str], *more: str, port: int | None = None, **variables: str
) -> Iterator[Server]:
    """The process of `command PORT more`, once it answers."""
    port = port or _free_port()
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        with log.open("w") as said:
            process = subprocess.Popen(
                [*command, str(port), *more],
                stdout=said,
                stderr=said,
                env={**os.environ, **variables},
            )
        try:
            url = f"http://127.0.0.1:{port}"
            _wait(url, process, log)
            yield Server(url, psutil.Process(process.pid), log)
        finally:
            process.terminate()
            process.wait(30)


def _wait(url: str, process: subprocess.Popen, log: Path) -> None:
    while True:
        try:
            httpx.get(f"{url}/health").raise_for_status()
            return
        except httpx.HTTPError:
            if process.poll() is not None:
                raise RuntimeError(f"the server ended: {log.read_text()}") from None
            time.sleep(0.2)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def markdown(content: dict[str, Any]) -> str:
    """The page."""
    parts, settings, machine = content["parts"], content["settings"], content["machine"]
    lines = [
        "# What the server bears",
        "",
        f"By `python -m benchmarks.serving`, task `{settings['task']}`, on {machine['cpu']},"
        f" {machine['cores']} core(s) for server and client together. CPU is that of the server's"
        " process.",
        "",
        "| what | measured | target |",
        "| --- | --- | --- |",
    ]
    for name, rows in (("load", _load_rows), ("beside", _beside_rows), ("vector", _vector_rows)):
        if name in parts:
            lines += [f"| {' | '.join(row)} |" for row in rows(parts[name], settings)]
    if "beside" in parts:
        lines += [
            "",
            "Beside `openenv` 0.10.0: each server is played by the same client through the same"
            f" {parts['beside']['sockets']} sockets in turn, messages uncompressed,"
            f" {'uvloop' if all(parts['beside']['uvloop']) else 'asyncio'}; the ratio is the median"
            f" of those of {settings['rounds']} rounds ({min(parts['beside']['ratios'])} to"
            f" {max(parts['beside']['ratios'])}). There the task is as its user would write it: an"
            " instance a socket, one compiled step of one episode, the same numbers sent.",
        ]
    return "\n".join([*lines, ""])


def _load_rows(load: dict[str, Any], settings: dict[str, Any]) -> list[tuple[str, ...]]:
    memory = load["memory_mib"]
    return [
        (f"{SESSIONS} sessions for {settings['seconds']:g} s: steps", str(load["steps"]), ""),
        ("errors", str(load["errors"]), "0"),
        ("lost transitions", str(load["lost"]), "0"),
        ("compilations", str(load["compilations"]), "0"),
        ("requests a second", str(load["requests_per_second"]), ""),
        ("server CPU a request, us", str(load["cpu_us_per_request"]), ""),
        ("memory, MiB, at the start and after each sixth", ", ".join(map(str, memory)), "flat"),
    ]


def _beside_rows(beside: dict[str, Any], settings: dict[str, Any]) -> list[tuple[str, ...]]:
    rates = beside["steps_per_cpu_second"].items()
    rows = [(f"steps a CPU-second: {name}", str(rate), "") for name, rate in rates]
    return [
        *rows,
        ("ours : openenv", str(beside["ratio"]), "2"),
        ("ours : openenv, Echo", str(beside["ratio_echo"]), ""),
    ]


def _vector_rows(vector: dict[str, Any], settings: dict[str, Any]) -> list[tuple[str, ...]]:
    rows = []
    for n, row in vector.items():
        what = f"a session of {n}: lane-steps a second, a CPU-second"
        got = f"{row['lane_steps_per_second']}, {row['lane_steps_per_cpu_second']}"
        rows.append((what, got, "100000 a second" if n == "1024" else ""))
    return rows


if __name__ == "__main__":
    tyro.cli(main)
