"""What one call of a model of one op costs, in microseconds of processor time, in turns with ONNX Runtime where that is
installed: python python/tests/measure_calls.py"""
from __future__ import annotations

import time

import numpy as np
import oncilla

ROUNDS, CALLS = 7, 10000


def measure(call):
    begin = time.thread_time()
    for _ in range(CALLS):
        call()
    return (time.thread_time() - begin) / CALLS * 1e6


def main():
    graph = oncilla.Graph()
    graph.op("Neg", graph.placeholder("float32", [4], name="x"), name="y")
    x = np.arange(4, dtype=np.float32)
    ways = {}
    try:
        import onnx.helper as helper
        import onnxruntime
    except ImportError:
        model = oncilla.load(graph, device="cpu")
        ways["oncilla run"] = lambda: model.run({"x:0": x}, outputs="y:0")
        step = model.callable("x:0", "y:0")
    else:
        values = [helper.make_tensor_value_info(name, 1, [4]) for name in "xy"]
        data = helper.make_model(helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "g", values[:1], values[1:]),
                                 opset_imports=[helper.make_opsetid("", 17)], ir_version=9).SerializeToString()
        session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
        ways["onnxruntime run"] = lambda: session.run(None, {"x": x})
        model = oncilla.load(data, device="cpu")
        ways["oncilla model(x=x)"] = lambda: model(x=x)
        ways["oncilla run"] = lambda: model.run({"x": x})
        ways["oncilla run, outputs named"] = lambda: model.run({"x": x}, outputs="y")
        step = model.callable()
    ways["oncilla callable"] = lambda: step(x)
    times = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, call in ways.items():
            times[name].append(measure(call))
    for name, all_times in times.items():
        print(f"{name:27} {sorted(all_times)[ROUNDS // 2]:6.2f} us, least {min(all_times):.2f}")


if __name__ == "__main__":
    main()
