"""Sessions, runtimes, devices, configurations, logging, graphs, sequences, notebooks, the program."""
import json
import logging
import subprocess
import sys

import numpy as np
import oncilla
import pytest
import slow_model
from conftest import ROOT, one_op, run_python


def test_devices():
    devices = oncilla.devices()
    assert devices[0].short_name == "CPU:0" and devices[0].memory_bytes > 0
    assert oncilla.has_device("cpu") and oncilla.has_device("/CPU:0") and not oncilla.has_device("GPU:99")
    assert "CPU:0" in repr(oncilla.default_runtime())


@pytest.mark.parametrize("config", [
    {"run_timeout_ms": 5000, "max_concurrent_runs": 2},
    "run_timeout_ms: 5000 max_concurrent_runs: 2",
    b'{"run_timeout_ms": 5000, "max_concurrent_runs": 2}',
], ids=["dict", "text", "json"])
def test_config(config):
    with oncilla.Session(device="cpu", config=config) as session:
        assert int(session.config["run_timeout_ms"]) == 5000 and session.config["max_concurrent_runs"] == 2


def test_config_proto():
    # What tensorflow.compat.v1.ConfigProto(intra_op_parallelism_threads=1, device_count={"GPU": 0}) serializes to.
    serialized = b"\n\x07\n\x03GPU\x10\x00\x10\x01"

    class ConfigProto:
        def SerializeToString(self):
            return serialized

    for config in (serialized, ConfigProto(), 'intra_op_parallelism_threads: 1 device_count { key: "GPU" value: 0 }'):
        with oncilla.Session(device="cpu", config=config) as session:
            assert session.config["threads"] == 1, session.config


def test_bad_options():
    with pytest.raises(oncilla.InvalidArgumentError, match="thread"):
        oncilla.Session(config={"thread": 1})
    with pytest.raises(TypeError):
        oncilla.Session(config=7)
    with pytest.raises(oncilla.Error):
        oncilla.Session(device="cpu", memory_limit=-1)
    with pytest.raises(TypeError, match="memory_limit is a number of bytes, .* not '512MiB'"):
        oncilla.load("x", device="cpu", memory_limit="512MiB")
    with oncilla.Session(device="cpu", memory_limit=np.int64(1 << 20)) as session:
        with pytest.raises(TypeError, match="limit_bytes is a number of bytes, .* not 1.5"):
            session.set_memory_limit("cpu", 1.5)
    with pytest.raises(oncilla.Error):
        oncilla.Session(device="cpu", threads=100000)
    with pytest.raises(oncilla.NotFoundError):
        oncilla.Session(device="gpu:77")
    with pytest.raises(ValueError, match="stored_devices"):
        oncilla.load("x", device="cpu", stored_devices="never")
    with pytest.raises(ValueError, match="session"):
        oncilla.load("x", device="cpu", session=oncilla.Session(device="cpu"))
    with pytest.raises(ValueError, match="strings"):
        oncilla.load(ROOT / "testdata/quickstart/efficientnet_lite0", device="cpu", strings="text")


def test_arguments_of_the_wrong_type(quickstart):
    image = np.full((1, 8, 8, 3), 90, np.uint8)
    with pytest.raises(TypeError, match="device must be a str, not int"):
        oncilla.load(quickstart, device=3)
    with pytest.raises(TypeError, match="runtime must be an oncilla.Runtime, not str"):
        oncilla.Session(runtime="cpu")
    with oncilla.load(quickstart, device="cpu") as model:
        with pytest.raises(TypeError, match="device must be a str, not int"):
            model.session.upload(image, 3)
        with pytest.raises(TypeError, match="device must be a str, not int"):
            model.run_async({"image": image}, device=3)
        with pytest.raises(TypeError, match="signature must be a str, not int"):
            model.run({"image": image}, signature=3)
        with pytest.raises(TypeError, match="cancel must be an oncilla.Cancellation, not int"):
            model.run({"image": image}, cancel=3)


def test_memory():
    with oncilla.Session(device="cpu", memory_limit=200_000_000) as session:
        model = one_op("Neg", session=session)
        model.run({"x:0": np.ones(1000, np.float32)}, outputs="y:0")
        info = session.memory("cpu")
        assert info.limit_bytes == 200_000_000 and 0 <= info.in_use_bytes <= info.pool_bytes
        session.set_memory_limit("cpu", 100_000_000)
        assert session.memory().limit_bytes == 100_000_000
        assert session.devices()[0].in_use and "CPU:0" in repr(session)
        assert "CPU:0" in session.memory_report() and session.memory_data()["devices"]
        session.record_memory(10)
        session.reset_peaks()
        for freed in (session.trim(), session.defragment(), session.reset()):
            assert freed >= 0
        with pytest.raises(oncilla.Error):
            session.memory("gpu:9")
    assert session.closed and session.close() == 0 and "closed" in repr(session)
    with pytest.raises(oncilla.FailedPreconditionError):
        one_op("Neg", session=session)


def test_upload():
    with oncilla.Session(device="cpu") as session:
        given = np.ones(3, np.float32)
        copy = session.upload(given)
        given[:] = 5
        assert copy.device == "" and copy.numpy().tolist() == [1, 1, 1]
        assert one_op("Neg", session=session).run({"x:0": copy}, outputs="y:0")["y:0"].tolist() == [-1, -1, -1]
    runtime = oncilla.Runtime(opencl_cpu_devices=True)
    if not runtime.has_device("GPU"):
        pytest.skip("no OpenCL device")
    with oncilla.Session(device="gpu", runtime=runtime) as session:
        x = session.upload(np.arange(3, dtype=np.float32))
        model = one_op("Neg", session=session)
        kept = model.run({"x:0": x}, outputs="y:0", keep=["y:0"])["y:0"]
        assert isinstance(kept, oncilla.Tensor) and kept.device.endswith("GPU:0") and "GPU:0" in repr(kept)
        again = model.run({"x:0": kept}, outputs="y:0")["y:0"]
        assert again.tolist() == [0, 1, 2]
        step = model.callable("x:0", "y:0", keep=True)
        assert step(x).numpy().tolist() == [0, -1, -2]
    with pytest.raises(oncilla.Error):
        kept.numpy()
    assert "closed" in repr(session)


def test_runtimes():
    runtime = oncilla.Runtime(threads=1, log_level=logging.ERROR)
    session = oncilla.Session(device="cpu", runtime=runtime)
    closed = runtime.close_sessions()
    assert closed.released_bytes >= 0 and closed.still_held
    with pytest.raises(oncilla.FailedPreconditionError):
        one_op("Neg", session=session)
    with pytest.raises(ValueError):
        oncilla.Runtime(log_level=17)
    with pytest.raises(oncilla.Error):
        oncilla.Runtime.from_opencl(0)


def test_logging(caplog):
    with caplog.at_level(logging.DEBUG, logger="oncilla"):
        runtime = oncilla.Runtime(log_level=logging.DEBUG)
        with oncilla.Session(device="cpu", runtime=runtime, config={"log_device_placement": True}) as session:
            one_op("Neg", session=session).run({"x:0": [1.0]}, outputs="y:0")
    assert any("CPU:0" in record.getMessage() for record in caplog.records if record.name == "oncilla")


def test_log_handlers_that_raise():
    ran = run_python("""
import logging, oncilla
class Bad(logging.Handler):
    def handle(self, record): raise ZeroDivisionError("in the handler")
logging.getLogger("oncilla").addHandler(Bad())
logging.getLogger("oncilla").setLevel(logging.DEBUG)
from conftest import one_op
runtime = oncilla.Runtime(log_level=logging.DEBUG)
with oncilla.Session(device="cpu", runtime=runtime, config={"log_device_placement": True}) as session:
    print(one_op("Neg", session=session).run({"x:0": [1.0]}, outputs="y:0"))
""")
    assert ran.returncode == 0 and "-1." in ran.stdout and "in the handler" in ran.stderr


def test_graphs(tmp_path):
    graph = oncilla.Graph()
    x = graph.placeholder("float32", [1, 4, 4, 1], name="x")
    with graph.device("/CPU:0"):
        weights = graph.constant(np.ones((2, 2, 1, 3), np.float32))
        y = graph.op("Conv2D", x, weights, strides=[1, 1, 1, 1], padding="VALID", name="y")
    graph.op("Cast", y, DstT=np.int32, name="z", dtype="int32")
    graph.op("Placeholder", name="w", dtype="float32", shape=graph.shape([None, 2]))
    graph.save(tmp_path / "graph.pb")
    serialized = (tmp_path / "graph.pb").read_bytes()

    class GraphDef:
        def SerializeToString(self):
            return serialized

    for source in (graph, tmp_path / "graph.pb", serialized, GraphDef()):
        with oncilla.load(source, device="cpu") as model:
            result = model.run({"x:0": np.ones((1, 4, 4, 1), np.float32)}, outputs=["y:0", "z:0"])
            assert result["y:0"].shape == (1, 3, 3, 3) and (result["z:0"] == 4).all() and result["z:0"].dtype == np.int32
    with pytest.raises(TypeError, match="attribute 'a'"):
        graph.op("Neg", x, a=object())
    with pytest.raises(oncilla.Error):
        graph.op("Neg", "nothing:0")


def test_names_that_are_not_utf8(capsys):
    """Bytes of a file become surrogates, and go back as what they were; texts for people can be printed."""
    whole = (ROOT / "testdata/tflite/model_convnet.tflite").read_bytes()
    damaged = whole.replace(b"keras_tensor", b"k\xe9ras_tensor").replace(b"output_0", b"\xffutput_0")
    damaged = damaged.replace(b"serving_default", b"serving\xc3default")
    with oncilla.load(whole, device="cpu") as right, oncilla.load(damaged, device="cpu") as model:
        (key,), (name,), (output,) = model.signatures, model.inputs, model.outputs
        assert key == "serving\udcc3default" and name == "k\udce9ras_tensor" and output == "\udcffutput_0"
        x = np.linspace(0, 1, 192, dtype=np.float32).reshape(1, 8, 8, 3)
        expected = right(x)["output_0"]
        for result in (model(x), model({name: x}), model.run({name: x}, outputs=output, signature=key)):
            assert (result[output] == expected).all()
        assert (model.callable([name], [output], signature=key)(x) == expected).all()
        print(model.run({name: x}, trace=True).report)
        assert capsys.readouterr().out
        assert model.plan(key).nodes
        with pytest.raises(oncilla.Error, match="nothing"):
            model.run({name: x}, outputs="nothing\udcff")
        with pytest.raises(UnicodeEncodeError):
            model.run({"half of a pair \ud800": x})


def test_sequences_and_optionals():
    onnx = pytest.importorskip("onnx")
    from onnx import TensorProto, helper
    f32 = helper.make_tensor_type_proto(TensorProto.FLOAT, [None])
    sequence = helper.make_sequence_type_proto(f32)
    optional = helper.make_optional_type_proto(f32)
    info = helper.make_value_info
    graph = helper.make_graph(
        [helper.make_node("SequenceInsert", ["s", "x"], ["t"]), helper.make_node("OptionalHasElement", ["o"], ["has"]),
         helper.make_node("Identity", ["o"], ["p"]), helper.make_node("SequenceLength", ["s"], ["n"])],
        "g", [info("s", sequence), info("x", f32), info("o", optional)],
        [info("t", sequence), helper.make_tensor_value_info("has", TensorProto.BOOL, []), info("p", optional),
         helper.make_tensor_value_info("n", TensorProto.INT64, [])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    with oncilla.load(model, device="cpu") as loaded:
        assert loaded.inputs["s"].kind == "sequence" and loaded.inputs["o"].kind == "optional"
        for given in (None, [4.0], np.array([4], np.float32)):
            result = loaded(s=[[1.0], np.array([2, 3], np.float32)], x=[9.0], o=given)
            assert [t.tolist() for t in result["t"]] == [[1], [2, 3], [9]] and result["n"] == 2
            assert result["has"] == (given is not None)
            assert result["p"] is None if given is None else result["p"].tolist() == [4]
        assert loaded(s=[], x=[1.0], o=None)["n"] == 0
        step = loaded.callable(["x", "s", "o"], ["t", "p", "has"])
        for given in (None, np.array([4], np.float32)):
            t, p, has = step([9.0], [[1.0], np.array([2, 3], np.float32)], given)
            assert [e.tolist() for e in t] == [[1], [2, 3], [9]] and has == (given is not None)
            assert p is None if given is None else p.tolist() == [4]
        assert [len(t) for t, _, _ in step.prefetch((([1.0], [[2.0]] * n, None) for n in range(3)))] == [1, 2, 3]
        with pytest.raises((TypeError, ValueError)):
            step([1.0], [np.ones(1)], None)
        for wrong in ([np.ones(1)], "text", 5, [None]):
            with pytest.raises((TypeError, ValueError)):
                loaded(s=wrong, x=[1.0], o=None)
        assert "sequence" in loaded._repr_html_() and "elements" in loaded(s=[], x=[1.0], o=None)._repr_html_()


def test_precision(quickstart):
    grey = np.full((1, 8, 8, 3), 90, np.uint8)
    report = oncilla.check_precision(quickstart, {"image": grey}, "fp16", device="cpu", inner_values=2)
    assert 0 < report.outputs["logits"].relative_error < 0.1 and len(report.inner) == 2 and "logits" in str(report)
    with pytest.raises(oncilla.Error):
        oncilla.check_precision(quickstart, {"image": grey}, "int3", device="cpu")


def test_html(quickstart):
    from html.parser import HTMLParser

    class Balanced(HTMLParser):
        open = []

        def handle_starttag(self, tag, attrs):
            if tag != "br":
                self.open.append(tag)

        def handle_endtag(self, tag):
            assert self.open.pop() == tag

    with oncilla.load(quickstart, device="cpu") as model:
        result = model(np.full((1, 8, 8, 3), 90, np.uint8))
        for text in (model._repr_html_(), result._repr_html_(), model.plan()._repr_html_()):
            parser = Balanced()
            parser.feed(text)
            assert parser.open == [] and "<table" in text
        assert "peak of a run" in model._repr_html_() and "probability" in result._repr_html_()
    odd = oncilla.Result({"<x>": np.array([np.nan, np.inf, 1]), "e": np.zeros(0), "s": np.array(["<i>"], object),
                          "c": np.ones(2, complex), "n": None, "l": [1], "big": np.full(99, np.nan)})
    odd._native = result._native
    assert "<x>" not in odd._repr_html_() and "<i>" not in odd._repr_html_() and "not finite" in odd._repr_html_()


def test_program(quickstart, tmp_path):
    def run(*arguments):
        return run_python("import sys; from oncilla.__main__ import main; sys.exit(main())", *map(str, arguments))

    assert run("--version").stdout.startswith("oncilla 0.1.0")
    shown = run("inspect", quickstart, "--json")
    assert shown.returncode == 0 and json.loads(shown.stdout)
    wrong = run("inspect", "no/such/model")
    assert wrong.returncode != 0 and "no/such/model" in wrong.stderr
    assert run("run", quickstart, "--input", f"image={quickstart.parent}/coffee.png", "--topk", "1",
               "--device", "cpu").stdout.find("espresso") >= 0
    assert run("frobnicate").returncode == 2


def test_program_takes_patterns_from_its_own_copy():
    """The engine's module for patterns lies beside the package's library."""
    with one_op("StaticRegexReplace", "string", (None,), pattern="(a+)b*$", rewrite=r"<\1>") as model:
        assert model.run({"x:0": ["caabb"]}, outputs="y:0")["y:0"].tolist() == ["c<aa>"]


@pytest.mark.parametrize("other", ["onnxruntime", "tensorflow", "torch"])
@pytest.mark.parametrize("first", [True, False])
def test_beside_other_libraries(other, first, quickstart):
    pytest.importorskip(other)
    imports = [f"import {other}", "import oncilla"]
    ran = run_python("\n".join(imports if first else imports[::-1]) + """
import sys, numpy as np
from conftest import one_op
with one_op("StaticRegexReplace", "string", (None,), pattern="(a+)b*$", rewrite=r"<\\1>") as model:
    print(model.run({"x:0": ["caabb"]}, outputs="y:0")["y:0"].tolist())
with oncilla.load(sys.argv[1], device="cpu") as model:
    print(model(np.full((1, 8, 8, 3), 90, np.uint8))["label"].shape)
with oncilla.Session(device="cpu", config="threads: 1"):
    pass
""" + {"tensorflow": """
config = tensorflow.compat.v1.ConfigProto(intra_op_parallelism_threads=1)
with oncilla.Session(device="cpu", config=config) as session:
    assert session.config["threads"] == 1
print(tensorflow.strings.regex_replace("caabb", "(a+)b*$", "<x>").numpy())
""", "onnxruntime": "print(onnxruntime.get_available_providers())", "torch": """
with one_op("Neg") as model:
    print(torch.from_dlpack(oncilla.Tensor.of(model.run({"x:0": torch.ones(3)}, outputs="y:0")["y:0"])))
"""}[other], str(quickstart))
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("['c<aa>']\n(1, 5)\n")


def test_types_are_checked(tmp_path):
    pytest.importorskip("mypy")
    package = ROOT / "python/oncilla"
    example = ROOT / "python/tests/typed_example.py"
    for arguments in ([str(package)], [str(example)]):
        ran = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path), *arguments],
                             capture_output=True, text=True, cwd=ROOT, env={"MYPYPATH": str(ROOT / "python"), "PATH": ""})
        assert ran.returncode == 0, ran.stdout + ran.stderr
    ran = run_python("import typed_example; typed_example.main()", str(ROOT / "testdata/quickstart/efficientnet_lite0"))
    assert ran.returncode == 0 and "(1, 1000)" in ran.stdout, ran.stderr


def test_docstrings():
    import doctest
    import importlib
    import pkgutil
    tried = 0
    for module in pkgutil.iter_modules(oncilla.__path__):
        if module.name in ("__main__", "_oncilla") or module.name.startswith("lib"):
            continue
        found = importlib.import_module(f"oncilla.{module.name}")
        failures, count = doctest.testmod(found, extraglobs={"oncilla": oncilla, "np": np})
        assert failures == 0, module.name
        tried += count
    assert tried > 10
