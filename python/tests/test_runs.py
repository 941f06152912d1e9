"""Runs: signatures, errors, threads, cancellation, futures, callables, and models that are closed meanwhile."""
import asyncio
import concurrent.futures
import copy
import os
import pickle
import signal
import threading
import time

import numpy as np
import oncilla
import pytest
import slow_model
from conftest import one_op, run_python


@pytest.fixture(scope="module")
def net(quickstart):
    with oncilla.load(quickstart, device="cpu") as model:
        yield model


@pytest.fixture(scope="module")
def grey():
    return np.full((1, 8, 8, 3), 90, np.uint8)


def test_signatures(net, grey):
    assert list(net.inputs) == ["image"] and set(net.outputs) == {"label", "probability", "logits"}
    assert net.inputs["image"].shape == (None, None, None, 3) and net.inputs["image"].numpy_dtype == np.uint8
    assert net.inputs["image"].kind == "tensor"
    by_name, by_position, by_dict = net(image=grey), net(grey), net({"image": grey})
    for result in (by_position, by_dict, net.signatures["serving_default"](image=grey), net.run({"image": grey})):
        np.testing.assert_array_equal(result["logits"], by_name["logits"])
    assert set(by_name) == set(net.outputs) and "CPU:0" in by_name.report
    assert list(net.run({"image": grey}, outputs="label")) == ["label"]
    assert "image: uint8" in repr(net) and "image: uint8" in repr(net.signatures["serving_default"])


def test_nodes_are_judged(net):
    """An ONNX file of Relu and an op that does not exist."""
    file = (b"\x08\x08\x12\x00:A\n\x0c\n\x01x\x12\x01a\"\x04Relu\n\x0c\n\x01a\x12\x01y\"\x04Nope\x12\x01gZ\x0f\n\x01x\x12\n\n\x08\x08\x01\x12\x04\n\x02\x08\x02"
            b"b\x0f\n\x01y\x12\n\n\x08\x08\x01\x12\x04\n\x02\x08\x02B\x04\n\x00\x10\x11")
    with oncilla.load(file, device="cpu") as model:
        first, second = model.judge_nodes()
    assert first == ("a", "Relu", "") and second[:2] == ("y", "Nope") and "Nope" in second[2]
    with pytest.raises(oncilla.UnimplementedError, match="ONNX"):
        net.judge_nodes()


def test_several_inputs_are_given_by_name():
    graph = oncilla.Graph()
    a, b = graph.placeholder("float32", [], name="a"), graph.placeholder("float32", [], name="b")
    graph.op("Sub", a, b, name="c")
    with oncilla.load(graph, device="cpu") as model:
        with pytest.raises(TypeError, match="name"):
            model(1.0)
        with pytest.raises(TypeError, match="name"):
            model(1.0, 2.0)
        assert model.run({"a:0": 3, "b:0": 1}, outputs="c:0")["c:0"] == 2
        assert model.run({"c:0": np.float32(3)}, outputs="c:0")["c:0"] == 3  # any tensor can be fed


def test_an_input_that_is_not_fed_takes_its_default():
    graph = oncilla.Graph()
    half = graph.op("PlaceholderWithDefault", graph.constant([0.5, 1.0], "float32"), name="p", dtype="float32",
                    shape=oncilla.Graph.shape([None]))
    graph.op("Neg", half, name="y")
    graph.op("Add", "y:0", graph.placeholder("float32", [2], name="x"), name="z")
    with oncilla.load(graph, device="cpu") as model:
        assert model.run({}, outputs="y:0")["y:0"].tolist() == [-0.5, -1]
        assert model.run({"p:0": [2.0]}, outputs="y:0")["y:0"].tolist() == [-2]
        assert model.run({"x:0": [1.0, 1.0]}, outputs="z:0")["z:0"].tolist() == [0.5, 0]
        assert model.run({"x:0": [1.0, 1.0], "p:0": [1.0, 2.0]}, outputs="z:0")["z:0"].tolist() == [0, -1]
        with pytest.raises(oncilla.InvalidArgumentError, match="must feed a value for placeholder tensor 'x'"):
            model.run({"p:0": [2.0]}, outputs="z:0")


def test_results_are_copied_and_sent_to_other_processes(net, grey):
    result = net(image=grey)
    for other in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result)):
        assert type(other) is dict and list(other) == list(result)
        assert all(np.array_equal(other[name], result[name]) for name in result)


def test_errors(net, grey):
    with pytest.raises(oncilla.InvalidArgumentError, match="image.*u8") as caught:
        net(image=grey.astype(np.float32))
    assert caught.value.code == "INVALID_ARGUMENT" and isinstance(caught.value, ValueError)
    with pytest.raises(oncilla.NotFoundError, match="did you mean 'image'"):
        net(imag=grey)
    with pytest.raises(oncilla.Error):
        net.run({"image": grey}, outputs=["nothing"])
    with pytest.raises(oncilla.Error):
        net()
    with pytest.raises(oncilla.Error, match="signature"):
        net.run({"image": grey}, signature="none")
    with pytest.raises(TypeError):
        net.run({1: grey})
    with pytest.raises(ValueError):
        net.run({"image": grey}, timeout=-1)
    with pytest.raises(TypeError, match="timeout must be a number of seconds, not str"):
        net.run({"image": grey}, timeout="5")
    with pytest.raises(ValueError, match="trace"):
        net.run({"image": grey}, trace="all")
    with pytest.raises(TypeError, match="name of a signature, not dict; prepare"):
        net.plan({"image": grey})
    with pytest.raises(FileNotFoundError) as caught:
        oncilla.load("no/such/file.onnx", device="cpu")
    assert isinstance(caught.value, oncilla.NotFoundError) and caught.value.stage == "file"
    with pytest.raises(oncilla.NotFoundError):
        oncilla.load("x", device="gpu:17")
    with pytest.raises(oncilla.Error):
        oncilla.load(b"no model", device="cpu")


def test_the_failing_node_is_named():
    graph = oncilla.Graph()
    x = graph.placeholder("float32", [None], name="x")
    graph.op("NoSuchOp", x, name="odd")
    with pytest.raises(oncilla.UnimplementedError, match="NoSuchOp") as caught:
        with oncilla.load(graph, device="cpu") as model:
            model.run({"x:0": [1.0]}, outputs="odd:0")
    assert isinstance(caught.value, NotImplementedError)


def test_errors_are_pickled():
    error = oncilla.ResourceExhaustedError("full", stage="run", node="n", device="GPU:0", driver_code=-4)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and str(again) == "full" and again.driver_code == -4 and again.node == "n"
    assert isinstance(again, MemoryError)


def test_memory_limit():
    with oncilla.Session(device="cpu", memory_limit=1 << 20) as session:
        graph = oncilla.Graph()
        x = graph.placeholder("float32", [None], name="x")
        graph.op("Sin", graph.op("Sin", x), name="y")
        model = session.load(graph)
        assert model.run({"x:0": [0.0]}, outputs="y:0")["y:0"] == 0
        with pytest.raises(oncilla.ResourceExhaustedError):
            model.run({"x:0": np.zeros(1 << 20, np.float32)}, outputs="y:0")
        assert model.run({"x:0": [0.0]}, outputs="y:0")["y:0"] == 0


def test_timeout(slow):
    begin = time.monotonic()
    with pytest.raises(oncilla.DeadlineExceededError) as caught:
        slow.run(slow_model.feed(), outputs="y:0", timeout=0.3)
    assert isinstance(caught.value, TimeoutError) and time.monotonic() - begin < 10


def test_cancellation(slow):
    token = oncilla.Cancellation()
    threading.Timer(0.3, token.cancel).start()
    with pytest.raises(oncilla.CancelledError):
        slow.run(slow_model.feed(), outputs="y:0", cancel=token)


def test_other_threads_go_on_while_a_model_runs(slow):
    ticks, stop = [], threading.Event()

    def tick():
        while not stop.wait(0.01):
            ticks.append(time.monotonic())

    thread = threading.Thread(target=tick)
    thread.start()
    with pytest.raises(oncilla.DeadlineExceededError):
        slow.run(slow_model.feed(), outputs="y:0", timeout=0.5)
    stop.set()
    thread.join()
    assert len(ticks) > 5


@pytest.fixture
def interruptible():
    """Python's own handler, which a shell's background job has not."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_keyboard_interrupt_cancels(slow, interruptible):
    slow.prepare(slow_model.feed(), outputs=["y:0"])
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        slow.run(slow_model.feed(), outputs="y:0")
    assert time.monotonic() - begin < 10
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with pytest.raises(oncilla.DeadlineExceededError):  # the next run is not cancelled
        slow.run(slow_model.feed(), outputs="y:0", timeout=0.2)


def test_handlers_of_the_program_run_after_the_run(slow):
    seen = []
    before = signal.signal(signal.SIGINT, lambda *_: seen.append(1))
    try:
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(oncilla.DeadlineExceededError):
            slow.run(slow_model.feed(), outputs="y:0", timeout=0.5)
        assert seen == [1]
    finally:
        signal.signal(signal.SIGINT, before)


def test_threads_share_a_model(net, grey):
    expected = net(grey)["logits"]

    def work(_):
        return all((net(grey)["logits"] == expected).all() for _ in range(5))

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        assert all(pool.map(work, range(6)))


def test_async(net, grey):
    expected = net(grey)["logits"]
    run = net.run_async({"image": grey})
    assert isinstance(run, concurrent.futures.Future)
    np.testing.assert_array_equal(run.result(60)["logits"], expected)
    assert run.done() and not run.cancel() and not run.cancelled()

    async def gather():
        return await asyncio.gather(*(net.run_async(grey, outputs="logits") for _ in range(8)))

    for result in asyncio.run(gather()):
        np.testing.assert_array_equal(result["logits"], expected)
    done = []
    run = net.run_async({"image": grey})
    run.add_done_callback(lambda r: done.append(r.result()["label"].shape))
    concurrent.futures.wait([run])
    deadline = time.monotonic() + 10
    while not done and time.monotonic() < deadline:
        time.sleep(0.01)
    assert done == [(1, 5)]


def test_async_failures(net, grey):
    with pytest.raises(oncilla.InvalidArgumentError):
        net.run_async({"image": grey.astype(np.float32)}).result(60)
    with pytest.raises(TypeError):
        net.run_async({"image": None})


def test_async_is_cancelled(slow):
    run = slow.run_async(slow_model.feed(), outputs="y:0")
    time.sleep(0.2)
    assert run.cancel() and run.cancelled()
    with pytest.raises(concurrent.futures.CancelledError):
        run.result()

    async def cancelled():
        task = asyncio.ensure_future(asyncio.wait_for(slow.run_async(slow_model.feed(), outputs="y:0"), 0.2))
        with pytest.raises((asyncio.TimeoutError, TimeoutError)):
            await task

    asyncio.run(cancelled())
    with pytest.raises(oncilla.DeadlineExceededError):
        slow.run_async(slow_model.feed(), outputs="y:0", timeout=0.2).result(60)


def test_closing(quickstart, grey):
    model = oncilla.load(quickstart, device="cpu")
    with model as same:
        assert same is model
        model(grey)
    assert model.closed and model.closed_bytes > 1 << 20 and model.close() == 0 and "closed" in repr(model)
    assert model.session.closed
    with pytest.raises(oncilla.FailedPreconditionError):
        model(grey)
    with pytest.raises(oncilla.FailedPreconditionError):
        model.session.load(quickstart)


def test_closing_while_another_thread_runs():
    model = oncilla.load(slow_model.make(), device="cpu")
    failures = []

    def run():
        try:
            model.run(slow_model.feed(), outputs="y:0")
        except oncilla.Error as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(0.5)
    model.session.close(cancel=True)
    thread.join(30)
    assert not thread.is_alive() and isinstance(failures[0], (oncilla.CancelledError, oncilla.FailedPreconditionError))
    model.close()


def test_callable(net, grey):
    call = net.callable(outputs=["logits"])
    np.testing.assert_array_equal(call(grey), net(grey)["logits"])
    label, probability = net.callable("image", ["label", "probability"])(grey)
    assert label.shape == probability.shape == (1, 5)
    with pytest.raises(TypeError, match="takes 1"):
        call(grey, grey)
    with pytest.raises(oncilla.Error):
        call(grey.astype(np.int64))
    with pytest.raises(oncilla.Error):
        net.callable(["none"])
    assert call.run(grey, timeout=60).shape == (1, 1000)


def test_prefetch(net, grey):
    call = net.callable(outputs=["logits"])
    results = list(call.prefetch(grey for _ in range(4)))
    assert len(results) == 4
    np.testing.assert_array_equal(results[3], net(grey)["logits"])

    def failing():
        yield (grey,)
        raise ZeroDivisionError("in the source")

    stream = call.prefetch(failing(), depth=1)
    next(stream)
    with pytest.raises(ZeroDivisionError):
        next(stream)


def test_traces(net, grey):
    import json
    result = net.run({"image": grey}, trace=True)
    assert json.loads(result.trace())["traceEvents"] and result.trace("step_stats")
    with pytest.raises(oncilla.FailedPreconditionError):
        net(grey).trace()
    with pytest.raises(ValueError, match="format"):
        result.trace("svg")


def test_variables(testdata):
    with oncilla.load(testdata / "tensorflow/models/counter", device="cpu") as model:
        variables = model.variables
        assert variables
        name, spec = next((n, s) for n, s in variables.items() if s.shape == ())
        value = np.array(41, spec.numpy_dtype)
        model.assign_variable(name, value)
        value[...] = 0  # the library has a copy
        assert model.read_variable(name) == 41
        with pytest.raises(oncilla.Error):
            model.assign_variable(name, np.zeros(3, spec.numpy_dtype))
        with pytest.raises(oncilla.Error, match="nothing"):
            model.read_variable("nothing")


def test_placement(net, grey):
    seen = []
    with oncilla.load(slow_model.make(3, 4), device="cpu") as model:
        model.place_by(lambda node, op, stored: seen.append((node, op)))
        model.run(slow_model.feed(4), outputs="y:0")
        assert any(op == "MatMul" for _, op in seen)
        model.place("*", "cpu")
        model.place(None, "cpu", op="MatMul")
        model.clear_placement()
        with pytest.raises(TypeError):
            model.place_by("cpu")
    plan = net.plan()
    assert plan.devices.keys() == {"CPU:0"} and plan.peak_bytes > 0 and plan.weight_bytes["CPU:0"] > 1 << 20
    assert any(node.op == "Conv" and node.reason for node in plan.nodes) and "peak" in str(plan)


def test_plans_are_those_of_one_model():
    """Also where other models of the session have the same name."""
    with oncilla.Session(device="cpu") as session:
        models = []
        for size in (1 << 10, 1 << 16):
            graph = oncilla.Graph()
            x = graph.placeholder("float32", [size], name="x")
            graph.op("Sin", graph.op("AddV2", x, graph.constant(np.full(size, 0.5, np.float32))), name="y")
            models.append(session.load(graph))
            models[-1].run({"x:0": np.zeros(size, np.float32)}, outputs="y:0")
        small, large = (sum(model.plan().weight_bytes.values()) for model in models)
        assert 4 << 10 <= small < 8 << 10 and 4 << 16 <= large < 8 << 16


def test_rules_that_raise_are_told_and_ignored(recwarn):
    import sys
    told = []
    before, sys.unraisablehook = sys.unraisablehook, told.append
    try:
        with oncilla.load(slow_model.make(3, 4), device="cpu") as model:
            model.place_by(lambda *_: 1 / 0)
            model.run(slow_model.feed(4), outputs="y:0")
            model.place_by(lambda *_: 7)
            model.run(slow_model.feed(4), outputs="y:0")
    finally:
        sys.unraisablehook = before
    assert any(t.exc_type is ZeroDivisionError for t in told)


def test_progress(quickstart):
    seen = []
    with oncilla.load(quickstart, device="cpu", progress=lambda *a: seen.append(a)):
        assert seen == [("load", 0.0), ("load", 1.0)]
    graph = oncilla.Graph()  # all sizes are known, so that kernels are made while loading
    value = x = graph.placeholder("float32", [8, 8], name="x")
    for _ in range(12):
        value = graph.op("MatMul", value, x)
    with oncilla.load(graph, device="cpu", eager=True, progress=lambda *a: seen.append(a)):
        shares = [share for what, share in seen if what == "compile"]
        assert shares == sorted(set(shares)) and shares[0] == 0 and shares[-1] == 1 and len(shares) == 13
    with pytest.raises(ZeroDivisionError):
        oncilla.load(quickstart, device="cpu", progress=lambda *_: 1 / 0)


def test_loading_bytes(testdata):
    data = bytearray((testdata / "tensorflow/matmul.pb").read_bytes())
    with oncilla.Session(device="cpu") as session:
        model = session.load(data, name="mine")
        data[:] = bytes(len(data))  # the model must have its own copy
        assert model.inputs or model.signatures
        assert session.load(memoryview(bytes((testdata / "tensorflow/matmul.pb").read_bytes())))
        with pytest.raises(oncilla.Error, match="mine"):
            session.load(b"\x00\x01", name="mine")


def test_fork(net, grey):
    net(grey)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            try:
                net(grey)
            except oncilla.FailedPreconditionError:
                code = 0 if oncilla.default_runtime().has_device("CPU") else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_the_interpreter_ends_while_threads_run_in_loops():
    ran = run_python("""
import threading, time, oncilla
from conftest import one_op
model = one_op("Neg")
def loop():
    while True:
        try: model.run({"x:0": [1.0]}, outputs="y:0")
        except oncilla.Error: pass
for _ in range(3): threading.Thread(target=loop, daemon=True).start()
time.sleep(0.3)
print("end")
""")
    assert ran.returncode == 0 and ran.stdout == "end\n", ran.stderr


@pytest.mark.parametrize("how", ["thread", "async", "daemon"])
def test_the_interpreter_ends_while_a_run_is_under_way(how):
    ran = run_python("""
import sys, threading, time, oncilla, slow_model
model = oncilla.load(slow_model.make(), device="cpu")
run = lambda: model.run(slow_model.feed(), outputs="y:0")
if sys.argv[1] == "async":
    future = model.run_async(slow_model.feed(), outputs="y:0")
else:
    def quiet():
        try: run()
        except oncilla.Error: pass
    threading.Thread(target=quiet, daemon=sys.argv[1] == "daemon").start()
time.sleep(0.5)
if sys.argv[1] == "thread":  # the interpreter waits for threads that are no daemons
    threading.Timer(0.2, lambda: model.session.close(cancel=True)).start()
print("end")
""", how)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "end\n" and ran.stderr == ""


def test_the_interpreter_ends_with_objects_alive():
    ran = run_python("""
import numpy as np, oncilla
from conftest import one_op
keep = one_op("Neg")
result = keep.run({"x:0": np.ones(3, np.float32)}, outputs="y:0")
keep.place_by(lambda *_: None)
call = keep.callable(["x:0"], ["y:0"])
stream = call.prefetch(np.ones(3, np.float32) for _ in range(100))
next(stream)
cycle = [keep]; cycle.append(cycle)
""")
    assert ran.returncode == 0 and ran.stderr == "", ran.stderr


def test_a_model_is_freed_when_it_is_let_go(quickstart, grey):
    import gc
    import weakref
    gc.collect()
    gc.disable()
    try:
        model = oncilla.load(quickstart, device="cpu")
        session, seen = weakref.ref(model.session), weakref.ref(model)
        model(grey)
        repr(model), model.plan(), model.signatures["serving_default"](grey), model.run_async(grey).result()
        call = model.callable()
        del model
        assert seen() is not None  # the callable needs it
        call(grey)
        del call
        deadline = time.monotonic() + 10
        while seen() is not None and time.monotonic() < deadline:  # the thread of run_async releases it last
            time.sleep(0.01)
        assert seen() is None and session() is None
    finally:
        gc.enable()


def test_inputs_of_any_name():
    graph = oncilla.Graph()
    graph.op("Neg", graph.placeholder("float32", [], name="self"), name="y")
    with oncilla.load(graph, device="cpu") as model:
        assert model.run({"self:0": 1.0}, outputs="y:0")["y:0"] == -1
