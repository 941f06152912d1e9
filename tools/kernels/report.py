"""Rows of a report: figures of each launch of a net on a device, and their sums; as JSON and as plain text."""

import concurrent.futures
import os

import estimate
import vendors
from hardware import ARCH, DEVICES


def compiler_of(device):
    """Vendor and architecture of the compiler that stands for a device: its own, or a phone's proxy."""
    arch = DEVICES[device].arch
    arch = ARCH[arch].proxy or arch
    return ARCH[arch].vendor, arch


def missing(devices):
    """{device: what this machine lacks for it}."""
    found = {device: vendors.missing(compiler_of(device)[0]) for device in devices}
    return {device: needs for device, needs in found.items() if needs}


def compile_all(plans, folder, compiled, jobs=None):
    """Every program of the plans for its device, several at a time; returns failures by (program, architecture)."""
    wanted = sorted({(launch["program"], launch["kernel"], *compiler_of(device))
                     for devices in plans.values() for device, plan in devices.items() for launch in plan["launches"]})
    failures = {}

    def one(item):
        program, entry, vendor, arch = item
        try:
            compiled.kernel(f"{folder}/programs/{program}.cl", entry, arch, vendor)
        except vendors.Failed as failure:
            failures[program, arch] = str(failure)

    with concurrent.futures.ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
        list(pool.map(one, wanted))
    return failures


def row_of(launch, kernel, device):
    e = estimate.Estimate(kernel, launch, device)
    return {
        "node": launch["node"], "op": launch["op"], "source": launch["source"], "kernel": launch["kernel"],
        "defines": launch["defines"], "program": launch["program"],
        "tile": str(e.tile) if e.tile else None, "group": launch["local"], "groups": e.groups,
        "groups_per_unit": e.resident, "waves_per_unit": e.resident * e.warps, "limited_by": e.limit,
        "registers": kernel.registers, "spills": e.spilled, "stack_bytes": kernel.stack, "local_bytes": e.local_bytes,
        "fma_share": round(e.fma_share(), 4), "local_loads": e.widths("lds"), "global_loads": e.widths("ldg"),
        "operations": launch["operations"], "bytes": e.bytes,
        "bytes_per_operation": e.bytes / launch["operations"] if launch["operations"] else None,
        "time_s": e.time, "roof_s": roof(launch, device), "bound": e.bound, "share_of_peak": e.share(),
    }


def roof(launch, device):
    """The time that the device's peak and its memory's rate allow at best."""
    d = DEVICES[device]
    return max(launch["operations"] / d.peak, estimate.moved(launch) / (d.memory * 1e9))


def by_kernel(rows):
    """[(kernel, launches, seconds)], the most time first."""
    sums = {}
    for row in rows:
        key = row["source"].removesuffix(".cl") + ":" + row["kernel"]
        launches, seconds = sums.get(key, (0, 0.0))
        sums[key] = launches + 1, seconds + row["time_s"]
    return sorted(((key, *both) for key, both in sums.items()), key=lambda one: -one[2])


def of_net(plan, folder, compiled):
    """The report of one net on one device; vendors.Failed where a program does not compile."""
    device = plan["device"]
    vendor, arch = compiler_of(device)
    rows = []
    for launch in plan["launches"]:
        kernel = compiled.kernel(f"{folder}/programs/{launch['program']}.cl", launch["kernel"], arch, vendor)
        rows.append(row_of(launch, kernel, device))
    time = sum(row["time_s"] for row in rows)
    return {
        "device": device, "complete": plan["complete"], "elsewhere": plan["elsewhere"], "launches": len(rows),
        "programs": len({row["program"] for row in rows}), "operations": plan["operations"], "time_s": time,
        "roof_s": sum(row["roof_s"] for row in rows),
        "share_of_peak": plan["operations"] / time / DEVICES[device].peak if time else 0,
        "spilling_launches": sum(1 for row in rows if row["spills"]), "rows": rows,
    }


def microseconds(seconds):
    return f"{seconds * 1e6:.1f}"


def widths_text(widths):
    return "+".join(f"{count}x{width}" for width, count in widths.items()) or "-"


HEAD = ("node", "kernel", "tile", "groups", "waves", "regs", "spill", "stack", "local", "fma%", "local loads", "global loads",
        "B/op", "us", "peak%", "bound")


def cells(row, times):
    each = row["bytes_per_operation"]
    node = row["node"] if len(row["node"]) <= 28 else ".." + row["node"][-26:]
    return (node + (f" x{times}" if times > 1 else ""), row["source"].removesuffix(".cl") + ":" + row["kernel"],
            row["tile"] or "-", str(row["groups"]), f"{row['waves_per_unit']} ({row['limited_by'][:5]})",
            str(row["registers"]), str(row["spills"]), str(row["stack_bytes"]), str(row["local_bytes"]),
            f"{100 * row['fma_share']:.0f}", widths_text(row["local_loads"]), widths_text(row["global_loads"]),
            f"{each:.2f}" if each else "-", microseconds(row["time_s"]), f"{100 * row['share_of_peak']:.0f}", row["bound"])


def text(name, net):
    """A table with one line for launches that differ in nothing but their node, in the order of the first of them."""
    groups = {}
    for row in net["rows"]:
        key = str({k: v for k, v in row.items() if k != "node"})
        groups.setdefault(key, []).append(row)
    table = [HEAD] + [cells(rows[0], len(rows)) for rows in groups.values()]
    widths = [max(len(line[i]) for line in table) for i in range(len(HEAD))]
    out = [f"{name} on {net['device']}: {net['launches']} launches of {net['programs']} programs, "
           f"{net['time_s'] * 1e3:.3g} ms by the model, {100 * net['share_of_peak']:.0f} % of peak; "
           f"the roof is {net['roof_s'] * 1e3:.3g} ms"]
    if not net["complete"]:
        out.append("  not all of it: sizes that depend on data, or functions of control flow, are not in the plan")
    if net["elsewhere"]:
        out.append(f"  {len(net['elsewhere'])} nodes run elsewhere; the first: {net['elsewhere'][0]['node']} "
                   f"({net['elsewhere'][0]['op']}): {net['elsewhere'][0]['detail'] or net['elsewhere'][0]['reason']}")
    shares = [f"{kernel} {100 * seconds / net['time_s']:.0f} % in {launches}" for kernel, launches, seconds in by_kernel(net["rows"])]
    out.append("  " + "; ".join(shares[:6]))
    for line in table:
        out.append("  " + "  ".join(c.ljust(w) if i < 3 else c.rjust(w) for i, (c, w) in enumerate(zip(line, widths))).rstrip())
    return "\n".join(out) + "\n"
