"""The engines: what each can run, and how it is loaded and called, with as many threads as are asked for.

Those that are Python packages are loaded by `load`, in a process of their own (worker.py); Oncilla is bench/burst."""
import importlib.metadata
import json
import os
import subprocess
import sys

from .formats import Unavailable


class Engine:
    name = title = package = format = ""
    precisions = {"fp32": ""}  # what it computes in, each with what the engine calls it

    def version(self):
        """What is installed; raises Unavailable."""
        try:
            return importlib.metadata.version(self.package)
        except importlib.metadata.PackageNotFoundError:
            raise Unavailable(f"the package {self.package} is not installed") from None

    def reads(self, net):
        """The format in which it is given a net."""
        return self.format

    def computes_in(self, net):
        return net.precision

    def check(self, net):
        """Raises Unavailable where the engine is not asked to run a net."""
        if net.precision not in self.precisions: raise Unavailable(f"no {net.precision} on CPUs of this kind")

    def command(self, job):
        """What the worker's process runs; `job` is the path of worker.py's job."""
        return [sys.executable, "-m", "side_by_side.worker", job]

    def prepare(self, threads):
        """Imports the package, which is not part of the time to load."""

    def load(self, model, threads, precision, feeds):
        """A function that runs the net once and gives all its outputs as arrays."""
        raise NotImplementedError


class Oncilla(Engine):
    name, title, device = "oncilla", "Oncilla", "cpu"
    precisions = {"fp32": "", "int8": "", "bf16": 'precision { storage: "bf16" }'}

    def __init__(self, build):
        self.burst, self.program = (os.path.join(build, name) for name in ("bench/burst", "oncilla"))

    def version(self):
        for program in (self.burst, self.program):
            if not os.path.exists(program): raise Unavailable(f"there is no {program}: build it first")
        return subprocess.run([self.program, "--version"], capture_output=True, text=True).stdout.split()[1]

    def reads(self, net):
        return net.kind

    def command(self, job):
        with open(job) as file: job = json.load(file)
        config = self.precisions[job["precision"]]
        return [self.burst, job["model"], self.device, str(job["threads"]), *(["--config", config] if config else []),
                *("%s=%s:%s=%s" % (x["name"], "x".join(map(str, x["shape"])), x["type"], x["file"]) for x in job["inputs"])]


class OncillaOpenCL(Oncilla):
    name, title, device = "oncilla-opencl", "Oncilla on OpenCL", "gpu"
    precisions = {"fp32": "", "int8": ""}


class OnnxRuntime(Engine):
    name, title, package, format = "ort", "ONNX Runtime", "onnxruntime", "onnx"
    precisions = {"fp32": "", "int8": "", "bf16": "fp32"}

    def computes_in(self, net):
        """It has no bf16 on these processors; as the reference of such nets it runs them in fp32."""
        return self.precisions[net.precision] or net.precision

    def prepare(self, threads):
        import onnxruntime
        onnxruntime.set_default_logger_severity(3)

    def load(self, model, threads, precision, feeds):
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        return lambda: session.run(None, feeds)


class OpenVino(Engine):
    name, title, package, format = "ov", "OpenVINO", "openvino", "onnx"
    # Its own choice would be bf16 wherever the processor has that, and activations of 8 bits where weights have 8 bits.
    precisions = {"fp32": "f32", "int8": "f32", "bf16": "bf16"}

    def prepare(self, threads):
        import openvino

    def load(self, model, threads, precision, feeds):
        import openvino
        compiled = openvino.Core().compile_model(model, "CPU", {
            "PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": self.precisions[precision],
            "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0})
        request, count = compiled.create_infer_request(), len(compiled.outputs)

        def run():
            results = request.infer(feeds, share_inputs=True, share_outputs=True)
            return [results[i] for i in range(count)]
        return run


class TensorFlow(Engine):
    name, title, package, format = "tf", "TensorFlow", "tensorflow-cpu", "saved_model"

    def check(self, net):
        if net.kind != "saved_model": raise Unavailable("runs the SavedModels of the list")

    def prepare(self, threads):
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        import tensorflow as tf
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(threads)
        tf.constant(0)  # TensorFlow starts its runtime with the first tensor

    def load(self, model, threads, precision, feeds):
        import tensorflow as tf
        loaded = tf.saved_model.load(model)
        serve, fed = loaded.signatures["serving_default"], {name: tf.constant(x) for name, x in feeds.items()}
        return lambda: [y.numpy() for y in serve(**fed).values()]


class LiteRt(Engine):
    name, title, package, format = "litert", "LiteRT", "ai-edge-litert", "tflite"
    precisions = {"fp32": "", "int8": ""}

    def prepare(self, threads):
        from ai_edge_litert import interpreter

    def load(self, model, threads, precision, feeds):
        import numpy as np
        from ai_edge_litert.interpreter import Interpreter
        interpreter = Interpreter(model_path=model, num_threads=threads)
        inputs, left = [], dict(feeds)
        for detail in interpreter.get_input_details():  # by name, where the converter kept it
            x = left.pop(next((name for name in left if name in detail["name"]), next(iter(left))))
            sizes = detail["shape_signature"]  # -1 where any will do
            if x.ndim == 4 and any(want not in (-1, have) for want, have in zip(sizes, x.shape)): x = x.transpose(0, 2, 3, 1)
            interpreter.resize_tensor_input(detail["index"], x.shape)
            inputs.append((detail["index"], np.ascontiguousarray(x, detail["dtype"])))
        interpreter.allocate_tensors()
        outputs = [detail["index"] for detail in interpreter.get_output_details()]

        def run():
            for index, x in inputs: interpreter.set_tensor(index, x)
            interpreter.invoke()
            return [interpreter.get_tensor(index) for index in outputs]
        return run


class Mnn(Engine):
    name, title, package, format = "mnn", "MNN", "MNN", "mnn"
    precisions = {"fp32": "high", "bf16": "Low_BF16", "int8": "high"}

    def prepare(self, threads):
        import MNN.expr
        import MNN.nn

    def load(self, model, threads, precision, feeds):
        import MNN.expr as expr
        import MNN.nn as nn
        import numpy as np
        manager = nn.create_runtime_manager(({"backend": "CPU", "precision": self.precisions[precision], "numThread": threads},))
        module = nn.load_module_from_file(model, list(feeds), [], runtime_manager=manager)
        kinds = {"float32": (expr.float, np.float32), "int64": (expr.int, np.int32), "int32": (expr.int, np.int32)}
        inputs = []
        for x in feeds.values():
            kind, narrow = kinds[x.dtype.name]
            inputs.append((expr.placeholder(list(x.shape), expr.NCHW, kind), np.ascontiguousarray(x, narrow)))

        def run():
            for variable, x in inputs: variable.write(x)
            results = module.forward([variable for variable, _ in inputs])
            return [expr.convert(y, expr.NCHW).read() for y in (results if isinstance(results, (list, tuple)) else [results])]
        return run


class Ncnn(Engine):
    name, title, package, format = "ncnn", "ncnn", "ncnn", "ncnn"
    precisions = {"fp32": False, "bf16": True}

    def check(self, net):
        if net.precision == "int8": raise Unavailable("its quantiser is not in the wheels of ncnn and pnnx")
        super().check(net)

    def prepare(self, threads):
        import ncnn

    def load(self, model, threads, precision, feeds):
        import ncnn
        import numpy as np
        net = ncnn.Net()
        net.opt.num_threads = threads
        for option in ("use_fp16_packed", "use_fp16_storage", "use_fp16_arithmetic"): setattr(net.opt, option, False)
        net.opt.use_bf16_storage = net.opt.use_bf16_packed = self.precisions[precision]
        if net.load_param(os.path.join(model, "net.ncnn.param")) or net.load_model(os.path.join(model, "net.ncnn.bin")):
            raise RuntimeError("ncnn could not load what pnnx wrote")
        with open(os.path.join(model, "batches.json")) as file: batches = json.load(file)
        narrow = lambda x: x.astype(np.int32) if x.dtype == np.int64 else x
        # A Mat does not keep the array alive whose memory it looks at: clone() copies.
        inputs = [ncnn.Mat(narrow(x), batch_index=batch).clone() for x, batch in zip(feeds.values(), batches["in"])]

        def run():
            with net.create_extractor() as extractor:
                for i, mat in enumerate(inputs): extractor.input(f"in{i}", mat)
                results = []
                for i, batch in enumerate(batches["out"]):
                    code, mat = extractor.extract(f"out{i}")
                    if code: raise RuntimeError(f"ncnn's extract answers {code}")
                    results.append(np.array(mat.numpy(batch_index=batch)))
                return results
        return run


PEERS = {engine.name: engine for engine in (OnnxRuntime, OpenVino, LiteRt, Mnn, Ncnn, TensorFlow)}
OURS = {engine.name: engine for engine in (Oncilla, OncillaOpenCL)}
NAMES = [*OURS, *PEERS]


def make(name, build):
    return OURS[name](build) if name in OURS else PEERS[name]()
