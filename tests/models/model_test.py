#!/usr/bin/env python3
"""A real model run by the program as users run it, compared with its own framework's results.
    model_test.py --oncilla PROGRAM --device cpu|cpu:plain|opencl|opencl:gpu MODEL..
    model_test.py .. --shapes MODEL..    other sizes on one loaded model
    model_test.py .. --limit MODEL..     a memory limit of the very peak, and of a byte less
    model_test.py --fetch MODEL..    fills the cache; the names must be all there are

Beside the numbers: on OpenCL (PoCL, unless OCL_ICD_VENDORS says otherwise) no node may be left to the CPU but constants,
shape arithmetic and strings; and the memory that `inspect` predicts is what the run takes."""

import argparse
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

import numpy as np

import models

OPENCL = ["--device", "gpu", "--opencl-cpu-devices"]
DEVICES = {"cpu": ["--device", "cpu"], "cpu:plain": ["--device", "cpu:plain"], "opencl": OPENCL, "opencl:gpu": OPENCL}
ON_THE_CPU = {"Constant", "Identity"}  # may stand there although the device could take them


def oncilla(program, device, *arguments):
    environment = dict(os.environ)
    environment.setdefault("OCL_ICD_VENDORS", "pocl.icd")
    if device == "opencl:gpu":  # the kernels that GPUs get, whatever the device is
        environment["ONCILLA_CL_SHAPE"] = "gpu"
    arguments = [*arguments, "--json", *DEVICES[device]]
    done = subprocess.run([program, *map(str, arguments)], env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=600)
    if done.returncode != 0:
        raise AssertionError(f"exit code {done.returncode}: {done.stderr.strip()[-1000:]}")
    return json.loads(done.stdout)


def shape_of(feed, channels_first):
    if isinstance(feed, np.ndarray):
        return feed.shape
    width, height = struct.unpack(">II", feed.read_bytes()[16:24])  # a PNG's
    return (1, 3, height, width) if channels_first else (1, height, width, 3)


def read(file):
    """An output: numbers as .npy, strings as .json."""
    if file.endswith(".npy"):
        return np.load(file)
    kept = json.loads(pathlib.Path(file).read_text())
    return np.array(kept["data"]).reshape(kept["shape"])


def run(program, model, device, folder, *flags):
    """The outputs by name, and what the program says of the run."""
    command = ["run", model.path(), *model.flags, *flags, "--output-dir", folder]
    for i, (name, feed) in enumerate(model.feeds().items()):
        if isinstance(feed, np.ndarray):
            np.save(folder / f"in{i}.npy", feed)
            feed = folder / f"in{i}.npy"
        command += ["--input", f"{name}={feed}"]
    for name in model.outputs:
        command += ["--output", name]
    said = oncilla(program, device, *command, "--memory-report", folder / "memory.json")
    said["owners"] = json.loads((folder / "memory.json").read_text())["owners"]
    return {o["name"]: read(o["file"]) for o in said["steps"][0]["outputs"]}, said


def recorded_answers(model, name):
    if model.recorded:
        return [model.recorded(output) for output in model.outputs]
    with np.load(models.RECORDED / f"{name}.npz") as file:
        return [{k.split(".")[1]: file[k] for k in file.files if k.split(".")[0] == str(i)}
                for i in range(len(model.outputs))]


def check_numbers(model, name, results):
    for (output, every), recorded in zip(model.outputs.items(), recorded_answers(model, name)):
        yield models.differences(output, results[output], recorded, every)
    if model.reads and (said := model.reads(model.path(), results)) != model.says:
        yield f"it reads {said!r} instead of {model.says!r}"


def check_placement(inspected):
    device = next(d["name"] for d in inspected["devices"] if d["preferred"])
    left = [p for p in inspected["placement"] if p["device"] != device and p["op"] not in ON_THE_CPU
            and p["reason"] not in ("shape arithmetic", "host only")]
    for node in left[:5]:
        yield f"{node['node']} ({node['op']}) is not on the device: {node['reason']} {node['detail']}"
    if len(left) > 5:
        yield f"{len(left)} nodes in all are not on the device"


def check_memory(inspected, said):
    """The predicted peak is never below the pools' and at most 5 % above. With results it is not below
    all that was taken, but for strings and what exact code works in on the host."""
    for taken in said["memory"]:
        predicted = next(m for m in inspected["memory"] if m["device"] == taken["device"])
        held = lambda *categories: sum(o["peak_bytes"] for o in said["owners"]
                                       if o["device"] == taken["device"] and o["category"] in categories)
        expected, pools = predicted["arena_bytes"] + predicted["constant_bytes"], held("arena", "constants")
        if not pools <= expected <= 1.05 * pools:
            yield f"{taken['device']}: {expected} bytes of pools were predicted, {pools} were taken"
        unknown = max(0, held("values") - predicted["result_bytes"])
        if taken["peak_bytes"] > predicted["peak_bytes"] + unknown:
            yield f"{taken['device']}: a peak of {predicted['peak_bytes']} bytes was predicted, {taken['peak_bytes']} were taken"


def check(program, name, device):
    model = models.MODELS[name]
    with tempfile.TemporaryDirectory(prefix="oncilla-model-") as folder:
        results, said = run(program, model, device, pathlib.Path(folder))
        wrong = [w for w in check_numbers(model, name, results) if w]
    shapes = []
    for key, feed in model.feeds().items():
        if sizes := shape_of(feed, bool(model.flags)):
            shapes += ["--shape", f"{key}={'x'.join(map(str, sizes))}"]
    outputs = [a for k in model.outputs for a in ("--output", k)]
    inspected = oncilla(program, device, "inspect", model.path(), "--memory", "--placement", *shapes, *outputs)
    if device.startswith("opencl"):
        wrong += check_placement(inspected)
    wrong += check_memory(inspected, said)
    counts = ", ".join(f"{n['count']} nodes on {n['device'].rsplit('device:', 1)[-1]}"
                       for n in said["steps"][0]["run"]["nodes"])
    print(f"{'FAILED' if wrong else 'ok'} {name} on {device}: {counts}, {said['steps'][0]['run']['wall_ns'] / 1e6:.0f} ms")
    for line in wrong:
        print("  " + line)
    return not wrong


def steps(program, model, device, folder, feeds):
    """The outputs of runs on one loaded model, one for each of `feeds`."""
    rows = []
    for i, feed in enumerate(feeds):
        (folder / str(i)).mkdir(parents=True)
        files = {}
        for k, (name, value) in enumerate(feed.items()):
            files[name] = str(value)
            if isinstance(value, np.ndarray):
                files[name] = str(folder / str(i) / f"in{k}.npy")
                np.save(files[name], value)
        rows.append({"inputs": files, "outputs": list(model.outputs), "output_dir": str(folder / str(i) / "out")})
    (folder / "steps.json").write_text(json.dumps(rows))
    said = oncilla(program, device, "run", model.path(), *model.flags, "--steps", folder / "steps.json")
    return [{o["name"]: read(o["file"]) for o in step["outputs"]} for step in said["steps"]]


def check_shapes(program, name, device):
    """Sizes that come and go: the recorded feed, others, and all again. What was computed once comes out bit for bit
    the same again, and the other sizes agree with the plain code, each loaded afresh."""
    model = models.MODELS[name]
    feeds = [model.feeds(), *model.others()]
    wrong = [] if len(feeds) > 1 else ["it has no other sizes"]
    with tempfile.TemporaryDirectory(prefix="oncilla-model-") as folder:
        folder = pathlib.Path(folder)
        results = steps(program, model, device, folder / "both", feeds + feeds)
        wrong += [w for w in check_numbers(model, name, results[0]) if w]
        for i, feed in enumerate(feeds):
            for output in model.outputs:
                if not np.array_equal(results[i][output], results[i + len(feeds)][output]):
                    wrong.append(f"{output}: feed {i} gives another result the second time")
            if i > 0:
                plain = steps(program, model, "cpu:plain", folder / f"plain{i}", [feed])[0]
                answers = [models.differences(o, results[i][o], models.digest(plain[o], 1), 1) for o in model.outputs]
                wrong += [f"feed {i}: {a}" for a in answers if a]
    print(f"{'FAILED' if wrong else 'ok'} {name} on {device}, {len(feeds)} sizes")
    for line in wrong:
        print("  " + line)
    return not wrong


def check_limit(program, name, device):
    """What a run took is enough for it, and a byte less is refused before it starts, with the exit code of memory."""
    model = models.MODELS[name]
    wrong = []
    with tempfile.TemporaryDirectory(prefix="oncilla-model-") as folder:
        folder = pathlib.Path(folder)
        peak = max(m["peak_bytes"] for m in run(program, model, device, folder)[1]["memory"])
        wrong += [w for w in check_numbers(model, name, run(program, model, device, folder, "--memory-limit", peak)[0]) if w]
        try:
            run(program, model, device, folder, "--memory-limit", peak - 1)
            wrong.append(f"it runs with a byte less than its peak of {peak}")
        except AssertionError as refusal:
            if not str(refusal).startswith("exit code 6:"):
                wrong.append(f"with {peak - 1} bytes: {refusal}")
    print(f"{'FAILED' if wrong else 'ok'} {name} on {device} within {peak} bytes")
    for line in wrong:
        print("  " + line)
    return not wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--oncilla")
    parser.add_argument("--device", choices=DEVICES)
    parser.add_argument("--fetch", action="store_true")
    parser.add_argument("--shapes", action="store_true")
    parser.add_argument("--limit", action="store_true")
    parser.add_argument("models", nargs="*")
    options = parser.parse_args()
    if options.fetch:
        if unlisted := set(options.models) ^ set(models.MODELS):
            print(f"the list of tests and models.py differ by {sorted(unlisted)}")
            return 1
        for name, model in models.MODELS.items():
            print(name, model.path(), flush=True)
        return 0
    one = check_shapes if options.shapes else check_limit if options.limit else check
    failed = [n for n in options.models if not one(options.oncilla, n, options.device)]
    return 1 if failed or not options.models else 0


if __name__ == "__main__":
    sys.exit(main())
