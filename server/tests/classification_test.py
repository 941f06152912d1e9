"""Outputs as their largest elements: the classification extension, with both clients."""

import concurrent.futures
import json

import numpy as np
import pytest
import tritonclient.grpc as grpc
import tritonclient.http as http

import models
from conftest import Server
from sequence_test import client_of, fails  # noqa: F401: a fixture

TEXTS = {"FP32": "2.500000", "FP64": "2.500000"}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    root = tmp_path_factory.mktemp("scores")
    for datatype in models.TYPES:
        models.scores(root, datatype.lower(), datatype)
    models.scores(root, "rows", "FP32", batch=True)
    models.affine(root, "affine")
    server = Server(root)
    yield server
    assert server.stop() == 0


def classes(client, name, x, count, datatype="FP32", **options):
    kind = http if isinstance(client, http.InferenceServerClient) else grpc
    given = kind.InferInput("x", x.shape, datatype)
    given.set_data_from_numpy(x)
    output = kind.InferRequestedOutput("y", class_count=count, **options)
    return client.infer(name, [given], outputs=[output]).as_numpy("y")


@pytest.mark.parametrize("datatype", [t for t in models.TYPES if t not in ("FP16", "BOOL", "BYTES")])
def test_types(served, client_of, datatype):  # noqa: F811
    client = client_of(served)
    x = np.array([[1, 7], [2.5, 7]], models.TYPES[datatype][1])
    value = TEXTS.get(datatype, "2")
    seven = "7.000000" if datatype in TEXTS else "7"
    assert list(classes(client, datatype.lower(), x, 3, datatype)) == [f"{seven}:1".encode(), f"{seven}:3".encode(), f"{value}:2".encode()]
    assert len(classes(client, datatype.lower(), x, 100, datatype)) == 4  # there are no more
    assert classes(client, datatype.lower(), x, 0, datatype).shape == (2, 2)  # the output itself


def test_negative_numbers_and_what_is_none(served, client_of):  # noqa: F811
    x = np.array([[-1, np.nan], [np.inf, -np.inf]], np.float32)
    assert [c.rsplit(b":", 1)[1] for c in classes(client_of(served), "fp32", x, 4)] == [b"2", b"0", b"3", b"1"]


def test_nothing_has_no_classes(served, client_of):  # noqa: F811
    assert classes(client_of(served), "affine", np.zeros((0, 3), np.float32), 2).shape == (0,)


def test_rows_of_a_batch(served, client_of):  # noqa: F811
    client = client_of(served)
    x = np.array([[0, 3, 2, 1], [9, 8, 7, 6]], np.float32)
    assert classes(client, "rows", x, 2).tolist() == [[b"3.000000:1", b"2.000000:2"], [b"9.000000:0", b"8.000000:1"]]


def test_requests_that_are_joined_have_their_own_counts(served):
    with grpc.InferenceServerClient(served.grpc) as client, concurrent.futures.ThreadPoolExecutor(3) as threads:
        calls = [threads.submit(classes, client, "rows", np.array([[i, 0, 0, 5]], np.float32), i) for i in (0, 1, 2)]
        assert calls[0].result().tolist() == [[0, 0, 0, 5]]
        assert calls[1].result().tolist() == [[b"5.000000:3"]] and calls[2].result().tolist() == [[b"5.000000:3", b"2.000000:0"]]


def test_in_json(served):
    body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [2, 2], "data": [1, 2, 3, 4]}],
            "outputs": [{"name": "y", "parameters": {"classification": 1}}]}
    answer = served.post("/v2/models/fp32/infer", body)[1]["outputs"][0]
    assert answer == {"name": "y", "datatype": "BYTES", "shape": [1], "data": ["4.000000:3"]}


def test_what_has_no_classes(served, client_of):  # noqa: F811
    for datatype in ("FP16", "BOOL", "BYTES"):
        x = np.zeros((2, 2), models.TYPES[datatype][1]) if datatype != "BYTES" else np.array([[b"a", b"b"], [b"c", b"d"]], object)
        fails(f"'y' is {datatype}, which cannot be classified", classes, client_of(served), datatype.lower(), x, 1, datatype)
    status, body = served.post("/v2/models/fp32/infer", json.dumps({
        "inputs": [{"name": "x", "datatype": "FP32", "shape": [2, 2], "data": [1, 2, 3, 4]}],
        "outputs": [{"name": "y", "parameters": {"classification": -1}}]}).encode())
    assert status == 400 and "classification" in body["error"]
