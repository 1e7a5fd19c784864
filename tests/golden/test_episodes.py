"""tests/golden/test_episodes: recorded episodes of plume_nav_sim 0.1.0 come out the same here."""

import json
from pathlib import Path

import numpy as np
import pytest

EPISODES = json.loads(Path(__file__).with_name("plume_nav_sim_episodes.json").read_text())
EPISODES = EPISODES["episodes"]


def test_there_are_ten_of_several_kinds():
    assert len(EPISODES) == 10
    assert {e["config"]["action_type"] for e in EPISODES} == {"discrete", "oriented"}
    assert {e["config"]["reward_type"] for e in EPISODES} == {"sparse", "step_penalty"}
    assert {(e["terminated"], e["truncated"]) for e in EPISODES} == {(True, False), (False, True)}


@pytest.mark.parametrize("recorded", EPISODES, ids=[str(i) for i in range(len(EPISODES))])
def test_a_recorded_episode_comes_out_the_same(replay, recorded):
    ours = replay(recorded["config"], np.asarray(recorded["actions"], np.int32))
    np.testing.assert_array_equal(ours.positions, np.asarray(recorded["positions"], np.float32))
    np.testing.assert_array_equal(ours.rewards, np.asarray(recorded["rewards"], np.float32))
    for flag in ("terminated", "truncated"):
        got = getattr(ours, flag)
        assert not got[:-1].any()
        assert got[-1] == recorded[flag]
    np.testing.assert_allclose(ours.concentrations, recorded["concentrations"], rtol=0, atol=2e-7)
