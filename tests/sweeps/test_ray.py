"""tests/sweeps/test_ray: a cluster of two real workers, of which one is lost in mid-sweep."""

import time

import numpy as np
import pytest

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
