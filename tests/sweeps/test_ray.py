"""tests/sweeps/test_ray: a cluster of two real workers, of which one is lost in mid-sweep."""

import time

import numpy as np
import pytest

import plumejax

ray = pytest.importorskip("ray", reason="the extra `ray` is not installed")

pytestmark = pytest.mark.interop


@pytest.fixture
def cluster(monkeypatch):
    """A cluster of a head without cores and two nodes of one, and what kills the second node."""
    from ray.cluster_utils import Cluster

    # Ray's workers are nice, and where others are at work they would hardly begin.
    monkeypatch.setenv("RAY_worker_niceness", "0")
    made = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 0, "include_dashboard": False, "object_store_memory": 10**8},
    )
    made.add_node(num_cpus=1, object_store_memory=10**8)
    lost = made.add_node(num_cpus=1, object_store_memory=10**8)
    made.wait_for_nodes()
    ray.init(made.address, log_to_driver=False)
    yield lambda: made.remove_node(lost, allow_graceful=False)
    ray.shutdown()
    made.shutdown()


def test_a_lost_workers_chunks_are_played_again_and_the_result_is_the_same(
    tmp_path, small, run, cluster, monkeypatch
):
    lose = cluster
    monkeypatch.setattr("plumejax.sweeps.sweep.EPISODES", 24)
    sweep = small({"plume.sigma": np.geomspace(1, 16, 12), "ending.radius": [1.5, 3.0]})
    assert len(sweep.chunks) == 24
    ended = []

    def tell(episodes):
        ended.append(episodes)
        if len(ended) == 4:
            # The other worker is playing, and more chunks are waiting.
            lose()

    data = sweep.run(tmp_path / "ray.zarr", executor="ray", progress=tell)
    assert len(ended) == 24
    assert data.equals(run(sweep))
    # Ray notices some seconds later that nobody answers there.
    while sum(node["Alive"] and node["Resources"].get("CPU", 0) for node in ray.nodes()) > 1:
        time.sleep(1)


def test_trainings_come_to_the_same(run, cluster):
    made = [
        plumejax.TrainingSweep(
            "PlumeSearchLocal-v0",
            {"learning_rate": [1e-3, 3e-2]},
            seeds=2,
            steps=640,
            episodes=16,
            shapes={"num_envs": 16, "num_steps": 8, "hidden": (8,), "num_epochs": 1},
            overrides={"max_steps": 100, "ending.radius": 30},
            at_once=2,
        )
        for _ in range(2)
    ]
    by_ray = run(made[0], executor="ray")
    assert np.all(by_ray.done == 1)
    here = run(made[1])
    for name, values in here.data_vars.items():
        np.testing.assert_allclose(by_ray[name], values, rtol=1e-5, err_msg=name)
