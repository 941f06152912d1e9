"""Fixtures: a local cluster of two nodes, Serve on it, the quickstart's model and its direct answers."""
import os
import pathlib
import socket
import sys

# Without the dashboard, usage statistics and their network calls.
os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_DEDUP_LOGS="0")
ROOT = pathlib.Path(__file__).resolve().parents[3]
# Workers find both packages, and classes of the tests, as the tests do.
PATHS = [str(ROOT / "integrations/ray"), str(ROOT / "integrations/ray/tests")]
sys.path[:0] = PATHS
os.environ["PYTHONPATH"] = os.pathsep.join([*PATHS, os.environ.get("PYTHONPATH", "")])

import numpy as np
import oncilla
import pytest
import ray
from ray import serve
from ray.cluster_utils import Cluster

sys.path.insert(0, str(ROOT / "server/tests"))
import models

QUICKSTART = str(ROOT / "testdata/quickstart/efficientnet_lite0")


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: run in tools/nightly")


@pytest.fixture(scope="session")
def small(tmp_path_factory):
    """The small models of the server's tests, by name."""
    root = tmp_path_factory.mktemp("models")
    for name in ("affine", "two", "row", "mean", "slow"):
        getattr(models, name)(root, name)
    models.same(root, "text", "BYTES")
    models.broken(root, "broken")
    return {folder.name: str(folder / "1/model.onnx") for folder in root.iterdir()}


@pytest.fixture(scope="session")
def cluster():
    """Two nodes of a cluster on this machine, as Ray's own tests make them; two processors each, whatever there is."""
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
    made.add_node(num_cpus=2)
    made.wait_for_nodes(timeout=60)
    ray.init(address=made.address, log_to_driver=False)
    yield made
    ray.shutdown()
    made.shutdown()


@pytest.fixture(scope="session")
def serving(cluster):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    serve.start(http_options={"host": "127.0.0.1", "port": port, "location": "HeadOnly"})
    yield f"http://127.0.0.1:{port}"
    serve.shutdown()


@pytest.fixture(scope="session")
def direct():
    """The model without Ray, on one thread as a replica of one processor has it."""
    with oncilla.Session(device="cpu", runtime=oncilla.Runtime(threads=1)) as session:
        model = session.load(QUICKSTART)
        yield model


def pictures(count, seed=0):
    """Batches of one small picture each, all different."""
    random = np.random.default_rng(seed)
    return [random.integers(0, 256, (1, 32, 32, 3), np.uint8) for _ in range(count)]


def same(ours, theirs, tolerance=1e-4):
    assert ours.keys() == theirs.keys()
    for name in theirs:
        mine, other = np.asarray(ours[name]), np.asarray(theirs[name])
        assert mine.shape == other.shape, name
        if other.dtype.kind == "f":
            assert np.allclose(mine, other, atol=tolerance * max(1.0, float(np.abs(other).max()))), name
        else:
            assert mine.tolist() == other.tolist(), name
