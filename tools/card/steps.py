"""The steps of tools/gpu_check. Each is a function of the card that returns (outcome, a sentence, facts); outcome is ok,
failed, or skipped."""

import json
import re
import signal
import subprocess
import tempfile
import time

import golden
import nets
from card import ROOT
from hardware import DEVICES

QUICKSTART = "testdata/quickstart/efficientnet_lite0"
OUT_OF_MEMORY, OUT_OF_TIME, INTERRUPTED = 6, 7, 130  # exit codes of oncilla (docs/cli.md)
GIGA = 1e9


def counted(card, name, command, limit, pattern):
    """Runs a test program whose last line counts the tests that passed and failed."""
    if not command[0].exists():
        return "skipped", f"{command[0].name} was not built", {}
    done = card.run(command, limit, f"{name}.log")
    if done is None:
        return "failed", "did not end in time", {}
    found = re.findall(pattern, done.stdout + done.stderr)
    if not found:
        return "failed", f"exit status {done.returncode}; see {name}.log", {}
    passed, failed = int(found[-1][0]), int(found[-1][1] or 0)
    outcome = "ok" if done.returncode == 0 and failed == 0 else "failed"
    return outcome, f"{passed} passed, {failed} failed", {"passed": passed, "failed": failed}


def cases(card):
    """Every op against recorded answers."""
    files = sorted(str(p) for p in ROOT.glob("tests/cases/*.case"))
    command = [card.build / "tests/case_tests", "--device", "opencl", "--gaps", "tests/cases/gaps_opencl.txt",
               "--timeout", "300", *files]
    return counted(card, "cases", command, 0.5 * card.left(), r"opencl: (\d+) passed, (\d+) failed")


def onnx(card):
    """ONNX's own node tests, from Debian's libonnx-testdata."""
    data = "/usr/share/libonnx-testdata/data/node"
    command = [card.build / "tests/onnx_tests", "--device", "opencl", "--passes",
               "tests/conformance/onnx_node_passes.txt", data]
    return counted(card, "onnx", command, 0.5 * card.left(), r"(\d+) passed(?:, (\d+) failed)?")


def unit(card):
    """Queues, memory, probes, programs and tiles, by the unit tests of the backend."""
    command = [card.build / "tests/unit_tests", "--gtest_filter=OpenCl*"]
    outcome, said, facts = counted(card, "unit", command, 900, r"\[  PASSED  \] (\d+) tests?()")
    return outcome, said, facts


def misuse(card):
    """Misuse by users that does no harm: each must give an error, and the next run must be right."""
    device = ["--device", card.options.device]
    run = ["run", QUICKSTART, "--random", "--shape", "image=1x224x224x3", *device]
    facts = {}

    def expect(what, code, *arguments):
        done = card.oncilla(*run, *arguments, log=f"misuse_{what}.log")
        facts[what] = None if done is None else done.returncode
        return facts[what] == code

    good = [expect("first_run", 0), expect("little_memory", OUT_OF_MEMORY, "--memory-limit", "1MiB"),
            expect("short_time", OUT_OF_TIME, "--timeout", "1")]
    # Interrupted while it runs, most likely in its first kernels; the card must still work afterwards.
    process = subprocess.Popen([card.program, "bench", *run[1:], "--duration", "60"], cwd=ROOT, env=card.environment,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(3)
    process.send_signal(signal.SIGINT)
    try:
        facts["interrupted"] = process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        facts["interrupted"] = None
    good += [facts["interrupted"] == INTERRUPTED, expect("run_after", 0)]
    return "ok" if all(good) else "failed", ", ".join(f"{k}: {v}" for k, v in facts.items()), facts


def bench(card, model, *arguments, name=None):
    done = card.oncilla("bench", model, "--device", card.options.device, "--duration", "3", "--json", *arguments, limit=300)
    if done is None or done.returncode != 0:
        return None
    if name:
        (card.out / f"bench_{name}.json").write_text(done.stdout)
    return json.loads(done.stdout)


def by_kernel(document):
    """[(program, launches, seconds)] of a bench's table of ops, the most time first."""
    sums = {}
    for op in document["ops"]:
        kernel = op["kernel"].split(" ")[0]
        count, seconds = sums.get(kernel, (0, 0.0))
        sums[kernel] = count + 1, seconds + op["time_s"]
    return sorted(((k, *both) for k, both in sums.items()), key=lambda one: -one[2])


def timed_nets(card):
    """Times the nets of tools/kernel_report and compares them with the golden estimates."""
    estimates = golden.load(card.like)["nets"] if card.like and golden.path_of(card.like).exists() else {}
    facts = {}
    with tempfile.TemporaryDirectory(dir=card.out) as folder:
        for name in nets.NETS:
            if card.left() < 60:
                facts[name] = {"left_out": "no time left"}
                continue
            document = bench(card, nets.write(name, folder), name=name)
            if document is None:
                facts[name] = {"failed": True}
                continue
            seconds = document["summary"]["median_s"]
            own = {"median_s": seconds, "first_run_s": document["first_run_s"], "load_s": document["load_s"],
                   "operations": document["operations"], "noisy": document["summary"]["noisy"],
                   "outside_kernels": document["outside_kernels_share"], "launches": len(document["ops"]),
                   "kernels": by_kernel(document)[:6]}
            if name in estimates:
                own["estimate_s"] = estimates[name]["time_us"] / 1e6
                own["measured_to_estimate"] = seconds / own["estimate_s"]
            facts[name] = own
    failed = [name for name, own in facts.items() if own.get("failed")]
    timed = [name for name, own in facts.items() if "median_s" in own]
    ratios = sorted(own["measured_to_estimate"] for own in facts.values() if "measured_to_estimate" in own)
    said = f"{len(timed)} nets timed" + (f", {', '.join(failed)} failed" if failed else "")
    if ratios:
        said += f"; measured to estimate {ratios[0]:.2f} to {ratios[-1]:.2f}, median {ratios[len(ratios) // 2]:.2f}"
    return "failed" if failed else "ok", said, facts


def rates(card):
    """The rates that the card reaches: multiply-adds in a large product, bytes in an elementwise op on large arrays."""
    facts, megabytes = {}, 64 if card.facts["is_opencl_cpu"] else 256
    with tempfile.TemporaryDirectory(dir=card.out) as folder:
        product = bench(card, nets.write("gemm_1024" if card.facts["is_opencl_cpu"] else "gemm_4096", folder), name="rate_product")
        net = nets.Net()
        net.input("x", [megabytes, 512, 512])
        moved = bench(card, net.save(f"{folder}/copy", net.op("Neg", "x")), name="rate_copy")
    if product is None or moved is None:
        return "failed", "a product or an elementwise op did not run", facts
    seconds = sum(op["time_s"] for op in product["ops"])
    facts["product_gflops"] = product["operations"] / seconds / GIGA
    facts["elementwise_gb_s"] = 2 * megabytes * 2**20 / sum(op["time_s"] for op in moved["ops"]) / GIGA
    said = f"{facts['product_gflops']:.0f} GFLOP/s in a product, {facts['elementwise_gb_s']:.0f} GB/s elementwise"
    if card.like:
        like = DEVICES[card.like]
        facts["share_of_peak"] = facts["product_gflops"] * GIGA / like.peak
        facts["share_of_bandwidth"] = facts["elementwise_gb_s"] / like.memory
        said += f" ({100 * facts['share_of_peak']:.0f} and {100 * facts['share_of_bandwidth']:.0f} % of {card.like}'s)"
    return "ok", said, facts


def tune(card):
    """The layers of well-known nets, measured; the table can be shipped (docs/tuning.md)."""
    budget = max(20, min(300, int(0.2 * card.left())))
    done = card.oncilla("tune", "--ops", "--device", card.options.device, "--budget", f"{budget}s", "--table",
                        str(card.out / "tuning.json"), "--json", log="tune.log", limit=budget + 120)
    if done is None or done.returncode != 0:
        return "failed", "see tune.log", {}
    document = json.loads(done.stdout)
    layers = [layer for layer in document["layers"] if layer["measured"]]
    faults = sum(len(layer["faults"]) for layer in layers)
    facts = {"layers": len(layers), "faults": faults, "generic_us": document["generic_us"], "best_us": document["best_us"]}
    said = f"{len(layers)} of {len(document['layers'])} classes of layers, {document['generic_us']:.0f} -> " \
           f"{document['best_us']:.0f} us" + (f"; {faults} choices compute something else" if faults else "")
    return "failed" if faults else "ok", said, facts


PEER = """
import json, time, torch
assert torch.cuda.is_available()
torch.backends.cuda.matmul.allow_tf32 = False
def timed(work, n=20):
    for _ in range(3): work()
    torch.cuda.synchronize(); begin = time.perf_counter()
    for _ in range(n): work()
    torch.cuda.synchronize(); return (time.perf_counter() - begin) / n
a, b = torch.rand(2, 4096, 4096, device="cuda")
x = torch.rand(64, 1024, 1024, device="cuda")
print(json.dumps({"product_gflops": 2 * 4096**3 / timed(lambda: a @ b) / 1e9,
                  "elementwise_gb_s": 8 * x.numel() / timed(lambda: torch.neg(x)) / 1e9, "torch": torch.__version__}))
"""


def peer(card):
    """The same rates by PyTorch."""
    if not card.options.peer:
        return "skipped", "no --peer", {}
    done = card.run([card.options.peer, "-c", PEER], 300, "peer.log")
    if done is None or done.returncode != 0:
        return "skipped", "PyTorch did not run on this card; see peer.log", {}
    facts = json.loads(done.stdout)
    return "ok", f"{facts['product_gflops']:.0f} GFLOP/s, {facts['elementwise_gb_s']:.0f} GB/s", facts


def trace(card):
    """A trace of one run, to be looked at."""
    target = card.out / "trace.json"
    done = card.oncilla("run", QUICKSTART, "--random", "--shape", "image=1x224x224x3", "--device", card.options.device,
                        "--trace", str(target), log="trace.log")
    events = len(json.loads(target.read_text())["traceEvents"]) if done and done.returncode == 0 else 0
    return ("ok" if events else "failed"), f"{events} events in trace.json", {"events": events}


# In this order: the most valuable steps come first, since time may run out.
STEPS = {"rates": rates, "nets": timed_nets, "tune": tune, "unit": unit, "misuse": misuse, "trace": trace, "peer": peer,
         "cases": cases, "onnx": onnx}


def run(name, card):
    begin = time.monotonic()
    if card.left() < 10:
        outcome, summary, facts = "skipped", "no time left", {}
    else:
        outcome, summary, facts = STEPS[name](card)
    return {"step": name, "what": STEPS[name].__doc__, "outcome": outcome, "summary": summary, "facts": facts,
            "seconds": time.monotonic() - begin}
