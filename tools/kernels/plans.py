"""Plans of models for simulated devices, from build/release/tools/kernels/kernel_plan."""

import concurrent.futures
import json
import os
import pathlib
import subprocess

import nets

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAM = ROOT / "build/release/tools/kernels/kernel_plan"


class Failed(Exception):
    pass


def plan(model, devices, shapes=(), programs=None, program=PROGRAM, signature=None):
    """The document that kernel_plan prints for a model's path."""
    command = [str(program), str(model)]
    for device in devices:
        command += ["--device", device]
    for shape in shapes:
        command += ["--shape", shape]
    if signature:
        command += ["--signature", signature]
    if programs:
        command += ["--programs", str(programs)]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        raise Failed(f"{program}: {error.strerror}: build the target kernel_plan, or name it with --plan") from None
    if done.returncode != 0:
        raise Failed(done.stderr.strip() or f"{program}: exit status {done.returncode}")
    return json.loads(done.stdout)


# A model of the tree beside the made ones: its graph comes from TensorFlow.
QUICKSTART = ("testdata/quickstart/efficientnet_lite0", ["image=1x224x224x3"])


def known():
    return [*nets.NETS, "quickstart"]


def plans_of(names, devices, folder, program=PROGRAM, jobs=None):
    """{name: {device: plan}} of nets by name; their programs lie in folder/programs."""
    programs = pathlib.Path(folder, "programs")
    programs.mkdir(parents=True, exist_ok=True)

    def one(name):
        if name == "quickstart":
            document = plan(ROOT / QUICKSTART[0], devices, QUICKSTART[1], programs, program)
        else:
            document = plan(nets.write(name, folder), devices, (), programs, program)
        return name, {p["device"]: p for p in document["plans"]}

    with concurrent.futures.ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
        return dict(pool.map(one, names))
