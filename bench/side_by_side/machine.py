"""The machine of the measurement: the processor's name, what it can reach at best (its roof), how far apart two of
its processors are, and whether anything else was running."""
import json
import os
import subprocess
import time

QUIET = 0.1  # processors that other programs may use while something is measured

PEAKS = {"fp32_flops_per_s": ("fp32", "GFLOP/s"), "bf16_flops_per_s": ("bf16", "GFLOP/s"), "int8_ops_per_s": ("int8", "GOP/s"),
         "copy_bytes_per_s": ("copy", "GB/s"), "read_bytes_per_s": ("read", "GB/s")}
PEAK_OF = {"fp32": "fp32_flops_per_s", "bf16": "bf16_flops_per_s", "int8": "int8_ops_per_s"}


def cpu_name(text=None):
    """The processor's name in /proc/cpuinfo; ARM's has numbers only."""
    if text is None:
        with open("/proc/cpuinfo") as file: text = file.read()
    fields = {}
    for line in text.splitlines():
        key, _, value = line.partition(":")
        fields.setdefault(key.strip(), value.strip())
    if "model name" in fields: return " ".join(fields["model name"].split())
    known = [f"{key.split()[-1]} {fields[key]}" for key in ("CPU implementer", "CPU part") if key in fields]
    return "CPU " + ", ".join(known) if known else "unknown CPU"


def simd(text=None):
    """The instructions that decide which code engines run."""
    if text is None:
        with open("/proc/cpuinfo") as file: text = file.read()
    flags = next((line.split(":")[1].split() for line in text.splitlines() if line.startswith(("flags", "Features"))), [])
    telling = ("avx2", "avx_vnni", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_int8", "amx_bf16",
               "asimd", "asimddp", "i8mm", "bf16", "sve")
    return [flag for flag in telling if flag in flags]


def ticks():
    """Time that all processors were busy, the host's share (steal) included."""
    with open("/proc/stat") as file: fields = [int(v) for v in file.readline().split()[1:9]]
    return sum(fields) - fields[3] - fields[4]


def ticks_of(pids):
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/stat") as file: fields = file.read().rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total


class Watch:
    """Counts what programs other than `pids` use from now on."""

    def __init__(self, pids):
        self.pids, self.busy, self.own, self.start = pids, ticks(), ticks_of(pids), time.perf_counter()

    def others(self):
        """In processors. Two ticks are less than the clock can tell."""
        spent = (time.perf_counter() - self.start) * os.sysconf("SC_CLK_TCK")
        used = (ticks() - self.busy) - (ticks_of(self.pids) - self.own)
        return 0.0 if used <= 2 else used / max(spent, 1)


def idle(patience_s, own=()):
    """Processors that other programs use, after waiting for them for so long at most."""
    end = time.perf_counter() + patience_s
    while True:
        watch = Watch([os.getpid(), *own])
        time.sleep(1)
        used = watch.others()
        if used <= QUIET or time.perf_counter() >= end: return round(used, 2)


def answer(command):
    """The JSON that a program prints, or why there is none."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    except (OSError, subprocess.TimeoutExpired) as error:
        return None, str(error)
    if done.returncode: return None, (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
    try:
        return json.loads(done.stdout), ""
    except ValueError:
        return None, "it printed no JSON"


def roof(oncilla, threads):
    """Rates by name, None for instructions that the processor lacks; or why they are missing."""
    said, why = answer([oncilla, "bench", "--peaks", "--json", "--threads", str(threads)])
    if said is None or "peaks" not in said: return {}, f"{oncilla} bench --peaks: {why or 'no peaks in what it printed'}"
    return {key: said["peaks"].get(key) for key in PEAKS}, ""


def round_trip_ns(build):
    """The median time of a word between two processors and back; or why it is missing."""
    program = os.path.join(build, "bench", "core_latency")
    if not os.path.exists(program): return None, f"there is no {program}: build the target core_latency"
    pairs, why = answer([program])
    if pairs is None: return None, why
    times = sorted(pair["round_trip_ns"] for pair in pairs)
    return (times[len(times) // 2], "") if times else (None, "this process may use one processor only")


def operations(oncilla, model, feeds, folder):
    """Additions and multiplications of one run, as `oncilla bench` counts them from the shapes; None where it cannot."""
    import numpy as np
    command = [oncilla, "bench", model, "--device", "cpu", "--json", "--samples", "1", "--warmup", "0", "--rows", "0"]
    for i, (name, value) in enumerate(feeds.items()):
        file = os.path.join(folder, f"counted{i}.npy")
        np.save(file, value)
        command += ["--input", f"{name}={file}"]
    said, _ = answer(command)
    return said and said.get("operations") or None


def describe(oncilla, build, threads, patience_s):
    busy = idle(patience_s)
    peaks, no_peaks = roof(oncilla, threads)
    latency, no_latency = round_trip_ns(build)
    facts = {"cpu": cpu_name(), "simd": simd(), "processors": len(os.sched_getaffinity(0)), "threads": threads, "peaks": peaks,
             "round_trip_ns": latency, "busy_before": busy}
    missing = {"peaks": no_peaks, "round_trip_ns": no_latency}
    return {**facts, "missing": {key: why for key, why in missing.items() if why}}
