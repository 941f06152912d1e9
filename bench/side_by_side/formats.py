"""A net in the formats of engines that do not read its own file. A file that has been converted is kept; so is the
reason why one could not be, since some converters take minutes to fail."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from . import nets

LONGEST_S = 1200  # onnx2tf takes minutes for large nets
# oneDNN in onnx2tf's TensorFlow stops at convolutions that it has no code for on newer processors.
ENVIRONMENT = {"TF_ENABLE_ONEDNN_OPTS": "0", "TF_CPP_MIN_LOG_LEVEL": "2"}


class Unavailable(Exception):
    """Why an engine does not run a net; it is printed in the net's row."""


class Formats:
    """`folder` holds the nets and what is made of them; `converters` is the virtual environment of
    requirements-converters.txt, or empty."""

    def __init__(self, folder, converters):
        self.folder, self.converters = os.path.abspath(folder), converters and os.path.abspath(converters)
        os.makedirs(self.folder, exist_ok=True)

    def find(self, net, kind):
        """The file of the net in a format; raises Unavailable."""
        if kind == net.kind: return nets.path(net, self.folder)
        published = nets.published(net, kind)
        if published: return published
        if net.kind != "onnx": raise Unavailable(f"no converter from {net.kind} to {kind} here")
        source = nets.NETS[net.float_net] if net.precision == "bf16" else net  # engines narrow by themselves
        target = os.path.join(self.folder, f"{source.name}.{kind}")
        reason = target + ".failed"
        if os.path.exists(target): return target
        if os.path.exists(reason):
            with open(reason) as file: raise Unavailable(f"{file.read()} (as {reason} remembers)")
        with tempfile.TemporaryDirectory(dir=self.folder) as work:
            try:
                made = CONVERTERS[kind](self, source, work)
            except Unconverted as failure:
                with open(reason, "w") as file: file.write(str(failure))
                raise Unavailable(str(failure)) from None
            os.replace(made, target)
        return target

    def tool(self, name):
        """A converter's program in the virtual environment of the converters."""
        found = self.converters and os.path.join(self.converters, "bin", name)
        if not found or not os.path.exists(found):
            raise Unavailable(f"its converter {name} is not installed (--converters)")
        return found


class Unconverted(Exception):
    """A converter ran and wrote nothing that can be used."""


def convert(name, command, work, made):
    """Runs a converter in its folder; gives the path of what it wrote."""
    log = os.path.join(work, "log.txt")
    with open(log, "w") as out:
        try:
            code = subprocess.run(command, cwd=work, stdin=subprocess.DEVNULL, stdout=out, stderr=out, timeout=LONGEST_S,
                                  env={**os.environ, **ENVIRONMENT}).returncode
        except subprocess.TimeoutExpired:
            raise Unconverted(f"{name} took more than {LONGEST_S} s") from None
    path = os.path.join(work, made)
    if code == 0 and os.path.exists(path): return path
    with open(log, errors="replace") as file: raise Unconverted(f"{name} failed: {trouble(file.read(), code)}")


def trouble(text, code):
    """The line of a log that most likely says what was wrong: what is missing by name, else the last word of an error."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text).encode("ascii", "replace").decode()
    lines = [line.strip() for line in plain.splitlines() if line.strip()]
    missing, telling = ([line for line in lines if re.search(words, line, re.I)]
                        for words in (r"not support|unsupported|not implemented", r"error|fail|what\(\)"))
    line = (missing or telling or lines or ["it said nothing"])[-1][:160]
    return line if code >= 0 else f"{line} (signal {-code})"


def copied(net, formats, work):
    """A copy of the ONNX file, since onnx2tf writes into the file that it reads."""
    return shutil.copyfile(nets.path(net, formats.folder), os.path.join(work, "net.onnx"))


def statically(net, feeds):
    """Whether a net's activations are quantised by calibrated scales; else by their own range while it runs (make_models.py)."""
    return net.precision == "int8" and all(value.ndim == 4 for value in feeds.values())


def calibration(feeds):
    """Four inputs such as the bench feeds, for quantisers."""
    import numpy as np
    rng = np.random.default_rng(2)
    return [{name: rng.random(value.shape, dtype=np.float32) for name, value in feeds.items()} for _ in range(4)]


def with_gelu(path):
    """Writes Div, Erf, Add, Mul, Mul as the one op that they are: TFLite has a Gelu and no Erf, and its converters find
    the formula only in another order of its factors. Does nothing where ops are missing or have further users."""
    import onnx
    model = onnx.load(path)
    users = {}
    for node in model.graph.node:
        for name in node.input: users.setdefault(name, []).append(node)

    def only(node, kind):
        after = users.get(node.output[0], [])
        return after[0] if len(after) == 1 and after[0].op_type == kind else None

    gone = []
    for erf in [node for node in model.graph.node if node.op_type == "Erf"]:
        before = next((node for node in model.graph.node if node.output[0] == erf.input[0] and node.op_type == "Div"), None)
        chain = [before, erf]
        for kind in ("Add", "Mul", "Mul"): chain.append(chain[-1] and only(chain[-1], kind))
        if None in chain or before.input[0] not in chain[3].input: continue
        chain[4].CopyFrom(onnx.helper.make_node("Gelu", [before.input[0]], [chain[4].output[0]], name=chain[4].name))
        gone += chain[:4]
    if not gone: return
    for node in gone: model.graph.node.remove(node)
    for opset in model.opset_import:
        if not opset.domain: opset.version = max(20, opset.version)
    onnx.save(model, path)


def to_tflite(formats, net, work):
    """By onnx2tf, with pictures channels-last as TFLite wants them. int8 nets are made of the float one by its own
    quantiser: what it makes of Quantize and Dequantize nodes computes in floats."""
    import numpy as np
    tool = formats.tool("onnx2tf")
    source = nets.NETS[net.float_net] if net.precision == "int8" else net
    with_gelu(copied(source, formats, work))
    feeds = nets.feeds(source)
    command = [tool, "-i", "net.onnx", "-o", "out", "-coion", "-nuo", "-n",
               "-ois", *(f"{name}:{','.join(map(str, value.shape))}" for name, value in feeds.items())]
    still = [name for name, value in feeds.items() if value.ndim != 4]
    if still: command += ["-kat", *still]
    # Where the net takes a picture, onnx2tf looks for this file and otherwise downloads it.
    np.save(os.path.join(work, "calibration_image_sample_data_20x128x128x3_float32.npy"),
            np.random.default_rng(0).random((20, 128, 128, 3), dtype=np.float32))
    made = "out/net_float32.tflite"
    if statically(net, feeds):
        made = "out/net_integer_quant.tflite"
        command += ["-oiqt"]
        for name in feeds:
            samples = np.concatenate([sample[name] for sample in calibration(feeds)])
            np.save(os.path.join(work, f"{name}.npy"), samples.transpose(0, 2, 3, 1))
            command += ["-cind", name, os.path.join(work, f"{name}.npy"), "[0.0]", "[1.0]"]
    elif net.precision == "int8":
        made = "out/net_dynamic_range_quant.tflite"
        command += ["-odrqt"]
    return convert("onnx2tf", command, work, made)


def to_mnn(formats, net, work):
    """By the tools in MNN's wheel, called below their command line, which would install and call a telemetry service.
    Nets of pictures in int8 are made of the float one by its own quantiser: its converter stops at Quantize of weights."""
    feeds = nets.feeds(net)
    static = statically(net, feeds)
    copied(nets.NETS[net.float_net] if static else net, formats, work)
    tool = lambda call: [sys.executable, "-c", f"import _tools; _tools.{call}"]
    made = convert("MNN's converter", tool("mnnconvert(['mnnconvert', '-f', 'ONNX', '--modelFile', 'net.onnx', '--MNNModel', "
                                           "'net.mnn', '--bizCode', 'bench'])"), work, "net.mnn")
    if not static: return made
    import numpy as np
    import onnx
    outputs = [y.name for y in onnx.load(os.path.join(work, "net.onnx"), load_external_data=False).graph.output]
    for i, sample in enumerate(calibration(feeds)):
        folder = os.path.join(work, "samples", f"input_{i}")
        os.makedirs(folder)
        for name, value in sample.items(): np.savetxt(os.path.join(folder, name + ".txt"), value.reshape(-1), fmt="%.6g")
        inputs = [{"name": name, "shape": list(value.shape)} for name, value in sample.items()]
        with open(os.path.join(folder, "input.json"), "w") as file: json.dump({"inputs": inputs, "outputs": outputs}, file)
    height, width = next(iter(feeds.values())).shape[2:]
    with open(os.path.join(work, "quant.json"), "w") as file:
        json.dump({"format": "RGB", "mean": [0, 0, 0], "normal": [1, 1, 1], "width": width, "height": height, "path": "samples/",
                   "used_sample_num": 4, "batch_size": 1, "feature_quantize_method": "KL", "weight_quantize_method": "MAX_ABS",
                   "input_type": "sequence", "model": "net.mnn"}, file)
    return convert("MNN's quantiser", tool("mnnquant(['mnnquant', 'net.mnn', 'int8.mnn', 'quant.json'])"), work, "int8.mnn")


def to_ncnn(formats, net, work):
    """By pnnx, weights in 32 bits; a folder with param, bin, and how inputs and outputs are batched, which only the
    program that pnnx writes beside them says."""
    tool = os.path.join(os.path.dirname(os.path.dirname(formats.tool("pnnx"))), "lib")
    program = next((os.path.join(at, "pnnx") for at, _, files in os.walk(tool) if at.endswith("/pnnx") and "pnnx" in files), None)
    if not program: raise Unavailable("pnnx is installed without its program")
    os.chmod(program, 0o755)
    copied(net, formats, work)
    kinds = {"float32": "", "int64": "i64", "int32": "i32"}
    shapes = ",".join(f"[{','.join(map(str, value.shape))}]{kinds[value.dtype.name]}" for value in nets.feeds(net).values())
    convert("pnnx", [program, "net.onnx", f"inputshape={shapes}", "fp16=0"], work, "net.ncnn.param")
    folder = os.path.join(work, "ncnn")
    os.mkdir(folder)
    for name in ("net.ncnn.param", "net.ncnn.bin"): os.rename(os.path.join(work, name), os.path.join(folder, name))
    with open(os.path.join(work, "net_ncnn.py")) as file: text = file.read()
    batches = {"in": [int(n) for n in re.findall(r"ncnn\.Mat\(in\d+\.numpy\(\), batch_index=(\d+)\)", text)],
               "out": [int(n) for n in re.findall(r"out\d+\.numpy\(batch_index=(\d+)\)", text)]}
    with open(os.path.join(folder, "batches.json"), "w") as file: json.dump(batches, file)
    return folder


CONVERTERS = {"tflite": to_tflite, "mnn": to_mnn, "ncnn": to_ncnn}
