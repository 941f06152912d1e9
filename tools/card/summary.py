"""report.json and report.md of tools/gpu_check."""

import json
import time


def milliseconds(seconds):
    return f"{seconds * 1e3:.3g}"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def nets_table(facts):
    rows = []
    for name, own in facts.items():
        if "median_s" not in own:
            rows.append([name, own.get("left_out", "failed"), "", "", "", "", ""])
            continue
        ratio = own.get("measured_to_estimate")
        rows.append([name, milliseconds(own["median_s"]) + (" (noisy)" if own["noisy"] else ""),
                     milliseconds(own["estimate_s"]) if ratio else "", f"{ratio:.2f}" if ratio else "",
                     f"{own['operations'] / own['median_s'] / 1e9:.0f}", f"{100 * own['outside_kernels']:.0f}",
                     ", ".join(f"{kernel} {100 * seconds / own['median_s']:.0f} %" for kernel, _, seconds in own["kernels"][:3])])
    return table(["net", "ms", "estimate", "ratio", "GFLOP/s", "% outside kernels", "most time in"], rows)


def write(card, results):
    document = {"when": time.strftime("%Y-%m-%d"), "device": card.facts, "like": card.like, "steps": results}
    (card.out / "report.json").write_text(json.dumps(document, indent=1) + "\n")
    lines = [f"# {card.name}", "", f"Driver {card.driver}, platform {card.facts['platform']}, {card.facts['compute_units']} compute "
             f"units, {card.facts['memory_bytes'] / 2**30:.1f} GiB. Estimates are those for "
             f"{card.like or 'no simulated device'}.", ""]
    lines += table(["step", "outcome", "seconds", "result"],
                   [[r["step"], r["outcome"], f"{r['seconds']:.0f}", r["summary"]] for r in results])
    for result in results:
        if result["step"] == "nets" and result["facts"]:
            lines += ["", "## Nets", "", "Medians of runs, without loading. `ratio` is measured to estimated time: where it is far "
                      "from 1, either the card or the model of tools/kernels/estimate.py is not what was thought.", ""]
            lines += nets_table(result["facts"])
    (card.out / "report.md").write_text("\n".join(lines) + "\n")
