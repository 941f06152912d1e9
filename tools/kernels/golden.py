"""Figures of kernels that must not get worse: tests/golden/kernels/<device>.json, rewritten by
tools/kernel_report --rewrite."""

import json
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "tests/golden/kernels"
TOLERANCE = 0.03
# Devices whose compilers are quick and whose figures the others follow, and the nets of a short check.
DEVICES = ["h200", "rtx3060", "rx6700", "a770", "adreno740", "mali_g710"]
SHORT_DEVICES = ["h200", "rtx3060", "rx6700", "a770", "mali_g710"]
SHORT_NETS = ["resnet50_b1", "resnet50_b64", "mobilenet_v2", "efficientnet_b0", "minilm_s128", "gemm_1024",
              "decoder_decode_256", "resnet50_b64_f16"]


def figures(net):
    """The figures that are kept of a net's report, and of its kernels by source, entry and defines."""
    kernels = {}
    for row in net["rows"]:
        defines = " ".join(f"{k}={v}" for k, v in row["defines"].items())
        own = {"registers": row["registers"], "spills": row["spills"], "fma_share": row["fma_share"]}
        keep_worst(kernels, f"{row['source']}:{row['kernel']} {defines}".rstrip(), own)
    return {"launches": net["launches"], "time_us": round(net["time_s"] * 1e6, 2)}, kernels


def keep_worst(kernels, key, own):
    """The key of a kernel. Kernels whose text is partly generated share one."""
    known = kernels.setdefault(key, own)
    kernels[key] = {"registers": max(known["registers"], own["registers"]), "spills": max(known["spills"], own["spills"]),
                    "fma_share": min(known["fma_share"], own["fma_share"])}


def document(reports, compilers):
    """`reports` are those of one device, by net."""
    out = {"compilers": compilers, "nets": {}, "kernels": {}}
    for name, net in reports.items():
        out["nets"][name], kernels = figures(net)
        for key, own in kernels.items():
            keep_worst(out["kernels"], key, own)
    out["kernels"] = dict(sorted(out["kernels"].items()))
    return out


def path_of(device):
    return FOLDER / f"{device}.json"


def write(device, made):
    FOLDER.mkdir(parents=True, exist_ok=True)
    lines = ["{", f' "compilers": {json.dumps(made["compilers"])},']
    for part in ("nets", "kernels"):
        rows = [f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in made[part].items()]
        lines += [f' "{part}": {{', ",\n".join(rows), " }" + ("," if part == "nets" else "")]
    path_of(device).write_text("\n".join([*lines, "}"]) + "\n")


def load(device):
    return json.loads(path_of(device).read_text())


def compare(device, golden, made):
    """(what got worse, what got better) as sentences. Figures that only one side has are not judged."""
    worse, better = [], []

    def judge(who, what, before, after, less_is_better=True):
        low, high = (before, after) if less_is_better else (after, before)
        if high > low * (1 + TOLERANCE) + 1e-9:
            worse.append(f"{device} {who}: {what} was {before}, is {after}")
        elif low > high * (1 + TOLERANCE) + 1e-9:
            better.append(f"{device} {who}: {what} was {before}, is {after}")

    for name, net in made["nets"].items():
        if name in golden["nets"]:
            judge(name, "microseconds", golden["nets"][name]["time_us"], net["time_us"])
    for key, kernel in made["kernels"].items():
        if known := golden["kernels"].get(key):
            judge(key, "registers", known["registers"], kernel["registers"])
            judge(key, "spills", known["spills"], kernel["spills"])
            judge(key, "share of multiply-adds", known["fma_share"], kernel["fma_share"], less_is_better=False)
    return worse, better
