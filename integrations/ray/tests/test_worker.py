"""A worker without a cluster: which requests are joined, and the response to each."""
import numpy as np
import oncilla
import pytest
from conftest import QUICKSTART, pictures, same
from oncilla_ray._data import Predictor
from oncilla_ray._worker import Worker, session_options


def counted(worker):
    """How many rows each run has that is made from now on."""
    made, run = [], worker.run
    worker.run = lambda arrays: (made.append(len(next(iter(arrays.values())))), run(arrays))[1]
    return made


def test_equal_shapes_are_joined_and_others_run_by_themselves(small):
    worker = Worker(small["text"], max_batch_size=8)
    made = counted(worker)
    answers = worker.run_many([{"x": ["a", "b"]}, {"x": np.array(["c"], object)}, {"x": ["d"]}])
    assert [a["y"].tolist() for a in answers] == [["a", "b"], ["c"], ["d"]] and made == [4]
    worker = Worker(QUICKSTART, max_batch_size=8)
    made = counted(worker)
    images = [*pictures(2), np.zeros((1, 8, 8, 3), np.uint8)]
    answers = worker.run_many([{"image": image} for image in images])
    assert sorted(made) == [1, 2]
    for image, answer in zip(images, answers):
        same(answer, worker.run({"image": image}))


def test_without_batches_each_runs_by_itself(small):
    worker = Worker(small["affine"])
    made = counted(worker)
    x = np.ones((2, 3), np.float32)
    assert [a["y"].tolist() for a in worker.run_many([{"x": x}, {"x": 2 * x}])] == [[[3] * 3] * 2, [[5] * 3] * 2]
    assert made == [2, 2]


def test_one_bad_request_fails_alone(small):
    worker = Worker(small["row"], max_batch_size=8)
    answers = worker.run_many([{"i": [0]}, {"i": [99]}, {"i": [2]}, {"j": [1]}, {"i": [1.5]}, {"i": np.zeros(1, np.int32)}, 7])
    assert answers[0]["y"].tolist() == [10] and answers[2]["y"].tolist() == [30]
    kinds = [oncilla.Error, oncilla.InvalidArgumentError, TypeError, oncilla.InvalidArgumentError, TypeError]
    told = ["99", "no input 'j' and input 'i' is missing", "'i'", "'i' is int32, and the model takes int64", "dict"]
    for answer, kind, text in zip([answers[i] for i in (1, 3, 4, 5, 6)], kinds, told):
        assert isinstance(answer, kind) and text in str(answer)


def test_a_model_without_a_batch_axis_is_refused(small):
    for name in ("two", "mean"):
        with pytest.raises(ValueError, match="no open first axis"):
            Worker(small[name], max_batch_size=2)
    with pytest.raises(ValueError, match="no output 'q'"):
        Worker(small["affine"], outputs=["q"])
    with pytest.raises(ValueError, match="no signature 'q'"):
        Worker(small["affine"], signature="q")
    with pytest.raises(oncilla.Error, match="model.onnx"):
        Worker(small["broken"])


def test_a_share_becomes_limits():
    assert session_options({"CPU": 2.5}) == {"device": "cpu", "threads": 3, "config": None}
    assert session_options({"CPU": 1.0, "GPU": 0.25}) == {"device": "gpu", "threads": 1,
                                                          "config": {"memory_limit_fraction": 0.25}}
    assert session_options({"GPU": 0.5}, memory_limit="1GiB", device="gpu:1", threads=2) == {
        "device": "gpu:1", "threads": 2, "config": {"memory_limit_bytes": "1GiB"}}
    # Outside of Ray nothing is reserved, and all processors are there.
    assert session_options({}) == {"device": "cpu", "threads": 0, "config": None}
    # Explicit options must not be overridden.
    assert session_options({"GPU": 0.5, "CPU": 1.0}, config={"device": "cpu", "threads": 5, "memory_limit_bytes": 10}) == {
        "device": None, "threads": 0, "config": {"device": "cpu", "threads": 5, "memory_limit_bytes": 10}}


def test_memory_limit_holds(small):
    worker = Worker(small["affine"], memory_limit="64MiB")
    assert worker.session.memory("cpu").limit_bytes == 64 << 20
    with pytest.raises(oncilla.ResourceExhaustedError):
        Worker(QUICKSTART, memory_limit="1MiB").run({"image": pictures(1)[0]})


def test_health(small):
    worker = Worker(small["affine"])
    made = counted(worker)
    worker.prove()
    worker.probe(fresh=0)
    worker.probe(fresh=60)  # it ran just now
    assert made == [1, 1]
    worker.prove({"x": [[1, 2, 3]]})
    with pytest.raises(oncilla.InvalidArgumentError):
        worker.prove({"x": [[1, 2, 3, 4]]})
    worker.session.close()
    with pytest.raises(oncilla.Error):
        worker.probe(fresh=0)


def test_columns_of_equal_and_of_different_shapes():
    predictor = Predictor(QUICKSTART, inputs={"image": "picture"}, outputs={"label": "what", "logits": "logits"}, keep=["id"])
    images = np.concatenate(pictures(3))
    whole = predictor({"picture": images, "id": np.arange(3)})
    assert whole.keys() == {"id", "what", "logits"} and whole["logits"].shape == (3, 1000) and whole["what"].shape == (3, 5)
    ragged = np.empty(3, object)
    ragged[:] = [images[0], np.zeros((8, 9, 3), np.uint8), images[2]]
    apart = predictor({"picture": ragged, "id": np.arange(3)})
    assert apart["logits"].shape == (3, 1000) and np.allclose(apart["logits"][::2], whole["logits"][::2], atol=1e-3)
    with pytest.raises(ValueError, match="no column 'picture'; it has image"):
        predictor({"image": images})
    with pytest.raises(TypeError, match="NumPy"):
        predictor({"picture": [1, 2]})
    with pytest.raises(ValueError, match="no input 'x'"):
        Predictor(QUICKSTART, inputs={"x": "picture"})


def test_rows_of_a_model_without_a_batch_axis(small):
    predictor = Predictor(small["two"], outputs=["sum"])
    a = np.arange(12, dtype=np.int32).reshape(3, 2, 2)
    assert predictor({"a": a, "b": a})["sum"].tolist() == (2 * a).tolist()
