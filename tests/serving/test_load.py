"""tests/serving/test_load: many at once lose nothing, compile nothing, and leave nothing behind."""

import asyncio
import gc
import json
import tracemalloc

import pytest
from websockets.asyncio.client import connect

from plumejax.serving import lanes as programs

pytestmark = pytest.mark.slow

SESSIONS, STEPS = 8, 200

ROOM = 200_000
"""Bytes: 8 sessions of 200 steps that kept one answer each would need 800,000."""


@pytest.mark.parametrize("batching", ["on", "off"])
def test_eight_sessions_at_once(serve, local, batching):
    with serve(local, capacity=SESSIONS, batching=batching) as served:
        url = served.url.replace("http", "ws") + "/ws"
        assert asyncio.run(_all(url)) == (0, 0)
        compiled, before = _compiled(), _memory_after_start()
        assert asyncio.run(_all(url)) == (0, 0)
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        assert _compiled() == compiled
        assert grown < ROOM, f"{grown} bytes more than before"


def _memory_after_start():
    gc.collect()
    tracemalloc.start()
    return tracemalloc.get_traced_memory()[0]


def _compiled():
    return programs.step_lanes._cache_size(), programs.reset_lane._cache_size()


async def _all(url):
    """`(errors, lost)` of all players."""
    played = await asyncio.gather(*[_player(url, n) for n in range(SESSIONS)])
    return tuple(map(sum, zip(*played, strict=True)))


async def _player(url, seed):
    errors = lost = since = 0
    async with connect(url, proxy=None) as line:

        async def say(kind, data):
            await line.send(json.dumps({"type": kind, "data": data}))
            return json.loads(await line.recv())

        await say("reset", {"seed": seed})
        for count in range(STEPS):
            answer = await say("step", {"value": count % 4})
            errors += answer["type"] == "error"
            since += 1
            if count == STEPS - 1 or answer["data"]["done"]:
                lost += abs((await say("state", {}))["data"]["step_count"] - since)
                await say("reset", {})
                since = 0
    return errors, lost
