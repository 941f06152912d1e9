"""The steps of tools/gpu_check. Each is a function of the card that returns (outcome, a sentence, facts); outcome is ok,
failed, or skipped."""

import concurrent.futures
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
    """Every op against recorded answers, by several processes, since most of the time goes into compiling kernels."""
    files, part = sorted(str(p) for p in ROOT.glob("tests/cases/*.case")), 8
    parts = [files[i:i + part] for i in range(0, len(files), part)]
    limit = 0.5 * card.left()

    def one(number):
        command = [card.build / "tests/case_tests", "--device", "opencl", "--partial", "--gaps", "tests/cases/gaps_opencl.txt",
                   "--timeout", "120", *parts[number]]
        return counted(card, f"cases_{number:02}", command, limit, r"opencl: (\d+) passed, (\d+) failed")

    with concurrent.futures.ThreadPoolExecutor(card.jobs) as pool:
        results = list(pool.map(one, range(len(parts))))
    facts = {key: sum(own.get(key, 0) for _, _, own in results) for key in ("passed", "failed")}
    lost = [f"{files[part * n]} and those after it: {said}" for n, (_, said, own) in enumerate(results) if not own]
    said = "; ".join([f"{facts['passed']} passed, {facts['failed']} failed", *lost])
    outcomes = {outcome for outcome, _, _ in results}
    return "failed" if "failed" in outcomes else "skipped" if "skipped" in outcomes else "ok", said, facts


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


def bench(card, model, *arguments, name=None, duration="1", limit=60):
    done = card.oncilla("bench", model, "--device", card.options.device, "--duration", duration, "--json", *arguments, limit=limit)
    if done is None or done.returncode != 0:
        with open(card.out / "bench_failures.log", "a") as log:
            log.write(f"{model}: " + ("did not end in time\n" if done is None else f"exit status {done.returncode}: {done.stderr}\n"))
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
        models = {name: nets.write(name, folder, shared=False) for name in [*nets.NETS, *nets.NETS_OF_BYTES]}
        with concurrent.futures.ThreadPoolExecutor(card.jobs) as pool:  # programs are compiled once, and kept
            cold = dict(zip(models, pool.map(lambda model: bench(card, model, duration="0.01"), models.values())))
        for name, model in models.items():
            if card.left() < 20:
                facts[name] = {"left_out": "no time left"}
                continue
            document = cold[name] and bench(card, model, name=name)
            if document is None:
                facts[name] = {"failed": True}
                continue
            seconds = document["summary"]["median_s"]
            own = {"median_s": seconds, "first_run_s": document["first_run_s"],
                   "cold_first_run_s": cold[name]["first_run_s"], "load_s": document["load_s"],
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
        size = "gemm_1024" if card.facts["is_opencl_cpu"] else "gemm_4096"
        product = bench(card, nets.write(size, folder), name="rate_product")
        narrow = None if card.facts["is_opencl_cpu"] else bench(card, nets.write("gemm_4096_f16", folder), name="rate_product16")
        net = nets.Net()
        net.input("x", [megabytes, 512, 512])
        moved = bench(card, net.save(f"{folder}/copy", net.op("Neg", "x")), name="rate_copy")
    if product is None or moved is None:
        return "failed", "a product or an elementwise op did not run", facts
    seconds = sum(op["time_s"] for op in product["ops"])
    facts["product_gflops"] = product["operations"] / seconds / GIGA
    facts["elementwise_gb_s"] = 2 * megabytes * 2**20 / sum(op["time_s"] for op in moved["ops"]) / GIGA
    said = f"{facts['product_gflops']:.0f} GFLOP/s in a product, {facts['elementwise_gb_s']:.0f} GB/s elementwise"
    if narrow:
        facts["product16_gflops"] = narrow["operations"] / sum(op["time_s"] for op in narrow["ops"]) / GIGA
        said = f"{facts['product16_gflops']:.0f} GFLOP/s in 16 bits, {said}"
    if card.like:
        like = DEVICES[card.like]
        facts["share_of_peak"] = facts["product_gflops"] * GIGA / like.peak
        facts["share_of_bandwidth"] = facts["elementwise_gb_s"] / like.memory
        said += f" ({100 * facts['share_of_peak']:.0f} and {100 * facts['share_of_bandwidth']:.0f} % of {card.like}'s)"
    return "ok", said, facts


def driver(card):
    """What the driver takes for itself, and whether parts of one buffer can be used and released; each in a process of
    its own, since a driver may crash."""
    program = card.build / "bench/opencl_costs"
    if not program.exists():
        return "skipped", f"{program.name} was not built", {}
    done = card.run([program], 60, "driver.log")
    if done is None or done.returncode != 0:
        return "failed", "the costs could not be measured; see driver.log", {}
    facts = {"costs": json.loads(done.stdout), "views": {}}
    for mode in ("apart", "same_begin", "overlap", "chain"):
        done = card.run([program, "--views", mode], 30)
        facts["views"][mode] = "late" if done is None else "fine" if done.returncode == 0 else done.returncode
    costs = facts["costs"]
    said = f"a launch {costs['launch_s'] * 1e6:.1f} us, to its end {costs['poll_s'] * 1e6:.1f} us, " \
           f"copy {costs['copy_bytes_per_s'] / GIGA:.0f} GB/s; parts of a buffer " + \
           ", ".join(f"{mode} {outcome}" for mode, outcome in facts["views"].items())
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
import json, sys, time, torch
assert torch.cuda.is_available()
torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
torch.backends.cudnn.benchmark = True
def timed(work, n=20):
    for _ in range(3): work()
    torch.cuda.synchronize(); begin = time.perf_counter()
    for _ in range(n): work()
    torch.cuda.synchronize(); return (time.perf_counter() - begin) / n
def recorded(work):
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3): work()
    torch.cuda.synchronize(); graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph): work()
    return graph.replay
facts = {"torch": torch.__version__, "nets": {}}
a, b = torch.rand(2, 4096, 4096, device="cuda")
facts["product_gflops"] = 2 * 4096**3 / timed(lambda: a @ b) / 1e9
a, b = a.half(), b.half()
facts["product16_gflops"] = 2 * 4096**3 / timed(lambda: a @ b) / 1e9
x = torch.rand(64, 1024, 1024, device="cuda")
facts["elementwise_gb_s"] = 8 * x.numel() / timed(lambda: torch.neg(x)) / 1e9
def net(name, make, *inputs):
    try:
        with torch.inference_mode():
            model = make().eval().cuda()
            if inputs[0].is_floating_point(): model = model.to(inputs[0].dtype)
            work = lambda: model(*inputs)
            facts["nets"][name] = {"eager_s": timed(work), "recorded_s": timed(recorded(work))}
    except Exception as problem:
        facts["nets"][name] = {"problem": str(problem)[:300]}
try:
    import torchvision.models as pictures
    image = lambda n: torch.rand(n, 3, 224, 224, device="cuda")
    for n in (1, 8, 64): net(f"resnet50_b{n}", pictures.resnet50, image(n))
    for n in (1, 64): net(f"resnet50_b{n}_f16", pictures.resnet50, image(n).half().to(memory_format=torch.channels_last))
    net("mobilenet_v2", pictures.mobilenet_v2, image(1)); net("efficientnet_b0", pictures.efficientnet_b0, image(1))
except ImportError as problem: facts["pictures"] = str(problem)
def encoder(layers, width, heads, inner):
    layer = torch.nn.TransformerEncoderLayer(width, heads, inner, activation="gelu", batch_first=True)
    return lambda: torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
net("bert_base_s128", encoder(12, 768, 12, 3072), torch.rand(1, 128, 768, device="cuda"))
net("bert_base_s128_f16", encoder(12, 768, 12, 3072), torch.rand(1, 128, 768, device="cuda").half())
net("minilm_s128", encoder(6, 384, 12, 1536), torch.rand(1, 128, 384, device="cuda"))
print(json.dumps(facts))
"""


def peer(card):
    """The same rates and nets by PyTorch, in true fp32: each op by itself, and recorded once and replayed."""
    if not card.options.peer:
        return "skipped", "no --peer", {}
    done = card.run([card.options.peer, "-c", PEER], 300, "peer.log")
    if done is None or done.returncode != 0:
        return "skipped", "PyTorch did not run on this card; see peer.log", {}
    facts = json.loads(done.stdout.splitlines()[-1])
    nets_said = ", ".join(f"{name} {own['recorded_s'] * 1e3:.3g} ms" for name, own in facts["nets"].items() if "recorded_s" in own)
    return "ok", f"{facts['product_gflops']:.0f} GFLOP/s, {facts['product16_gflops']:.0f} in 16 bits, " \
                 f"{facts['elementwise_gb_s']:.0f} GB/s; {nets_said}", facts


def trace(card):
    """A trace of one run, to be looked at."""
    target = card.out / "trace.json"
    done = card.oncilla("run", QUICKSTART, "--random", "--shape", "image=1x224x224x3", "--device", card.options.device,
                        "--trace", str(target), log="trace.log")
    events = len(json.loads(target.read_text())["traceEvents"]) if done and done.returncode == 0 else 0
    return ("ok" if events else "failed"), f"{events} events in trace.json", {"events": events}


# In this order: the most valuable steps come first, since time may run out.
STEPS = {"driver": driver, "rates": rates, "nets": timed_nets, "tune": tune, "unit": unit, "misuse": misuse, "trace": trace,
         "peer": peer, "cases": cases, "onnx": onnx}


def run(name, card):
    begin = time.monotonic()
    if card.left() < 10:
        outcome, summary, facts = "skipped", "no time left", {}
    else:
        outcome, summary, facts = STEPS[name](card)
    return {"step": name, "what": STEPS[name].__doc__, "outcome": outcome, "summary": summary, "facts": facts,
            "seconds": time.monotonic() - begin}
