"""tests/serving/test_lanes: sessions of arrays are what the library plays, alone or in company."""

import asyncio
import json
from contextlib import suppress

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import struct
from hypothesis import given, settings
from hypothesis import strategies as st

import plumejax
from plumejax.base.batch import Batch
from plumejax.serving import lanes as programs
from plumejax.serving.batches import BatchEngine
from plumejax.serving.environment import State
from plumejax.serving.lanes import LaneEngine
from plumejax.serving.models import Array, packed, to_numpy
from plumejax.serving.refusals import RefusedError
from plumejax.serving.sessions import ResetRequest, Sessions, StepRequest

pytestmark = pytest.mark.slow

NEVER = float("inf")


class Play:
    """An engine and the loop that it runs in."""

    def __init__(self, engine):
        self.engine, self.loop = engine, asyncio.new_event_loop()
        self.run(engine.start())

    def run(self, work):
        return self.loop.run_until_complete(work)

    def reset(self, place, seed):
        return self.run(self.engine.reset(place, seed, State(episode_id="e")))

    def step(self, place, action, state=None, deadline=NEVER):
        action = self.engine.action(value=action)
        return self.run(self.engine.step(place, action, state or State(episode_id="e"), deadline))

    def lane(self, place):
        slab, lane = divmod(place, self.engine._width)
        return jax.device_get(jax.tree.map(lambda x: x[lane], self.engine._slabs[slab]))

    def close(self):
        self.run(self.engine.stop())
        self.loop.close()


@pytest.fixture(scope="module", params=[32, 1], ids=["batching", "one-by-one"])
def play(request, local):
    play = Play(LaneEngine("Local", "A task.", local, 32, width=request.param))
    yield play
    play.close()


def test_a_seeded_session_is_the_episode_of_the_library(play, local):
    env, params = local
    key = jax.random.key(jnp.uint32(7))
    observation, state = env.reset(jax.random.fold_in(key, 0), params)
    seen = json.loads(play.reset(3, 7).body)
    assert seen["observation"]["value"] == observation.tolist()
    assert seen["metadata"]["seed"] == 7
    for count, action in enumerate((1, 1, 0, 2, 3), 1):
        observation, state, reward, terminated, truncated, info = env.step(
            jax.random.fold_in(key, count), state, jnp.int32(action), params
        )
        outcome = play.step(3, action)
        seen = json.loads(outcome.body)
        assert seen["observation"]["value"] == pytest.approx(observation.tolist(), abs=1e-6)
        assert seen["reward"] == float(reward)
        assert seen["done"] == bool(terminated | truncated)
        assert seen["metadata"]["distance"] == pytest.approx(float(info["distance"]), abs=1e-6)
        assert outcome.state.step_count == count


def test_the_same_in_any_company(play):
    """Byte for byte: alone, among 31 others that come and go, and in another lane."""

    def episode(place, between):
        bodies = [play.reset(place, 11).body]
        for action in (1, 0, 0, 3, 2, 1, 1, 2):
            between()
            bodies.append(play.step(place, action).body)
        return bodies

    async def noise():
        one, *others = range(1, 32)
        await play.engine.reset(one, None, State(episode_id="n"))
        action, state = play.engine.action(value=int(rng.integers(4))), State(episode_id="n")
        steps = [play.engine.step(place, action, state, NEVER) for place in others]
        await asyncio.gather(*steps, return_exceptions=True)

    rng = np.random.default_rng(0)
    alone = episode(0, lambda: None)
    assert episode(0, lambda: play.run(noise())) == alone
    assert episode(31, lambda: None) == alone


MOVES = st.lists(st.tuples(st.integers(0, 7), st.one_of(st.none(), st.integers(0, 3))), max_size=40)


@settings(max_examples=50)
@given(MOVES)
def test_interleaved_sessions_live_as_they_do_alone(play, moves):
    """I2, of eight sessions: byte for byte what each does alone."""

    def live(sessions, session, number, move):
        work = (
            sessions.reset(session, ResetRequest(seed=number))
            if move is None
            else sessions.step(session, StepRequest(action=play.engine.action(value=move)))
        )
        try:
            return play.run(work)
        except RefusedError as refused:
            return refused.code

    def run(chosen):
        sessions = Sessions(play.engine)
        there = [play.run(sessions.create()) for _ in range(8)]
        return [
            (n, live(sessions, there[n], n, move), there[n].state.step_count) for n, move in chosen
        ]

    together = run(moves)
    for n in {n for n, _ in moves}:
        alone = run([move for move in moves if move[0] == n])
        assert [each for each in together if each[0] == n] == alone


def test_what_a_step_refuses_changes_nothing(play, local):
    play.reset(2, 3)
    while not json.loads(play.step(2, 1).body)["done"]:
        pass
    before = play.lane(2)
    with pytest.raises(RefusedError) as refused:
        play.step(2, 1)
    assert (refused.value.status, refused.value.code) == (409, "EPISODE_DONE")
    with pytest.raises(RefusedError) as refused:
        play.step(2, 1, deadline=play.engine.clock() - 1)
    assert (refused.value.status, refused.value.code) == (504, "TIMEOUT")
    after = play.lane(2)
    jax.tree.map(np.testing.assert_array_equal, before, after)


def test_what_waits_is_one_batch(play, monkeypatch):
    sizes = []
    step = play.engine._step
    monkeypatch.setattr(play.engine, "_step", lambda jobs: sizes.append(len(jobs)) or step(jobs))
    for place in range(8):
        play.reset(place, place)

    async def together():
        action, state = play.engine.action(value=0), State(episode_id="e")
        steps = [play.engine.step(place, action, state, NEVER) for place in range(8)]
        return await asyncio.gather(*steps)

    assert all(each.state.step_count == 1 for each in play.run(together()))
    assert sizes == ([8] if play.engine._width > 1 else [1] * 8)


def test_nothing_compiles_once_it_is_warm(play):
    def compiled():
        return programs.step_lanes._cache_size(), programs.reset_lane._cache_size()

    before = compiled()
    for n in range(200):
        place = n % 8
        if n % 5 == 0:
            play.reset(place, n)
        elif n > 40:
            with suppress(RefusedError):  # some have ended
                play.step(place, n % 4)
    assert compiled() == before


class Sick(struct.PyTreeNode):
    """A reward that is not finite once `after` steps are made."""

    after: int = struct.field(pytree_node=False)

    def reward(self, scene, params):
        return jnp.where(scene.step_count > self.after, jnp.float32(jnp.nan), jnp.float32(0))

    def default_params(self):
        return ()


def test_a_number_that_is_not_finite_is_no_transition():
    task = plumejax.make("PlumeSearchLocal-v0", grid_size=(16, 12), reward=Sick(2))
    play = Play(LaneEngine("Sick", "A task.", task, 2))
    play.reset(0, 3)
    for _ in range(2):
        play.step(0, 2)
    for _ in range(2):
        with pytest.raises(FloatingPointError):
            play.step(0, 2)
    assert int(play.lane(0).state.step_count) == 2
    assert play.reset(0, 4).state.step_count == 0
    assert play.engine.healthy
    play.close()


def test_a_batch_is_the_batch_of_the_library(play, local):
    env, params = local
    many = BatchEngine(play.engine, 2)
    play.run(many.open(0, 5))
    batch, key = Batch(env, 5), jax.random.key(jnp.uint32(7))
    observation, state = batch.reset(jax.random.fold_in(key, 0), params)
    seen = json.loads(play.run(many.reset(0, 7, State(episode_id="b"))).body)
    np.testing.assert_array_equal(_array(seen["observation"]["value"]), observation)
    action = np.arange(5, dtype=np.int32) % 4
    model = many.action(value=_written(action))
    state_, count = State(episode_id="b"), 0
    for count in range(1, 4):
        observation, state, reward, terminated, truncated, info = batch.step(
            jax.random.fold_in(key, count), state, jnp.asarray(action), params
        )
        outcome = play.run(many.step(0, model, state_, NEVER))
        state_, seen = outcome.state, json.loads(outcome.body)
        assert state_.step_count == count
        np.testing.assert_allclose(_array(seen["observation"]["value"]), observation, atol=1e-6)
        np.testing.assert_array_equal(_array(seen["reward"]), reward)
        np.testing.assert_array_equal(_array(seen["done"]), terminated | truncated)
        assert set(seen["metadata"]) == {*info, "terminated", "truncated"}
    for wrong in (action[:4], action + 1, action.astype(np.float32)):
        with pytest.raises(RefusedError, match="action"):
            play.run(many.step(0, many.action(value=_written(wrong)), state_, NEVER))
    many.release(0)
    assert not many._programs


def _array(written):
    return to_numpy(Array(**written))


def _written(array):
    return Array(**packed(array))
