"""The measurements as text, as JSON, and as one line of the history."""
import datetime
import json
import os

from .machine import PEAKS, QUIET


def document(facts, versions, rows, options):
    """All of it: the machine, what was installed or why it was not, and a row for each net and engine."""
    return {"schema_version": 1, "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"), "machine": facts,
            "engines": versions, "options": options, "rows": rows}


def number(value, form="{:.2f}", none="-"):
    return none if value is None else form.format(value)


def peak_words(facts):
    """The roof in one line, or why it is missing."""
    if "peaks" in facts["missing"]: return f"roof: missing ({facts['missing']['peaks']})"
    said = [f"{name} {number(value and value / 1e9, '{:.0f}')} {unit}"
            for key, (name, unit) in PEAKS.items() for value in [facts["peaks"].get(key)]]
    return "roof: " + ", ".join(said)


def machine_words(facts):
    latency = "missing (" + facts["missing"]["round_trip_ns"] + ")" if "round_trip_ns" in facts["missing"] \
        else f"{facts['round_trip_ns']:.0f} ns"
    return [f"{facts['cpu']} ({' '.join(facts['simd']) or 'no vectors named'}), {facts['processors']} processors, "
            f"{facts['threads']} threads", peak_words(facts), f"between two processors and back: {latency}"
            + (f" (BUSY MACHINE: other programs use {facts['busy_before']} processors)" if facts["busy_before"] > QUIET else "")]


def line(row):
    """A row as it is printed when its net is done."""
    start = f"{row['net']:<22} {row['engine']:<15}"
    if "reason" in row: return f"{start} -  {row['reason']}"
    words = [f"{number(row['ms'], '{:9.3f}', '        -')} ms", f"ratio {number(row['ratio'])}"]
    if row["ratio"] is not None: words.append(f"({row['ratio_low']:.2f}..{row['ratio_high']:.2f}, {row['rounds']} rounds)")
    if row.get("of_roof") is not None: words.append(f"{100 * row['of_roof']:.0f} % of the roof")
    elif row.get("gflops"): words.append(f"{row['gflops']:.0f} G/s")
    words += [row["precision"], f"load {row['load_ms']:.0f}", f"first {row['first_ms']:.0f} ms"]
    if row.get("loaded_slowdown"): words.append(f"beside a busy processor x{row['loaded_slowdown']:.2f}")
    words.append("agrees" if row["agrees"] else f"DIFFERS by {row['distance']:.2g}" if row["distance"] is not None else "DIFFERS in shape")
    if row["busy_before"] > QUIET: words.append(f"BUSY MACHINE ({row['busy_before']})")
    return start + " " + "  ".join(words)


def nets_of(rows):
    return list(dict.fromkeys(row["net"] for row in rows))


def cell(row, is_reference):
    if row is None or "reason" in row: return "-"
    text = f"{number(row['ms'], '{:.2f}')} ms" if is_reference else number(row["ratio"])
    if row.get("of_roof") is not None: text += f" [{100 * row['of_roof']:.0f}]"
    return text if row["agrees"] else text + " (differs)"


def table(rows, titles):
    """Nets by engines, for a README: the reference's time, the others' ratios to it, shares of the roof in brackets."""
    engines = [name for name in titles if any(row["engine"] == name and "reason" not in row for row in rows)]
    by = {(row["net"], row["engine"]): row for row in rows}
    out = ["| net | " + " | ".join(titles[name] for name in engines) + " |", "|---" * (len(engines) + 1) + "|"]
    for net in nets_of(rows):
        reference = next((row["reference"] for row in rows if row["net"] == net and "reference" in row), None)
        out.append(f"| {net} | " + " | ".join(cell(by.get((net, name)), name == reference) for name in engines) + " |")
    return "\n".join(out)


def left_out(rows, titles):
    """Every engine that has no figure for a net, with the reason: nets with the same one together."""
    groups = {}
    for row in rows:
        if "reason" in row: groups.setdefault((row["engine"], row["reason"]), []).append(row["net"])
    return [f"{titles[engine]}: {why}: {', '.join(names)}" for (engine, why), names in groups.items()]


def text(made, titles):
    head = [made["date"], *machine_words(made["machine"]),
            ", ".join(f"{titles[name]} {version}" for name, version in made["engines"].items())]
    reasons = left_out(made["rows"], titles)
    return "\n".join([*head, "", table(made["rows"], titles), *(["", "Without a figure:", *reasons] if reasons else [])])


def trustworthy(made):
    """Why a run is no figure for the history; nothing where it is one."""
    if made["options"]["even_if_busy"]: return "busy rounds were counted (--even-if-busy)"
    measured = [row for row in made["rows"] if "reason" not in row]
    if not measured: return "nothing was measured"
    if made["machine"]["busy_before"] > QUIET: return "the machine was busy before its roof was measured"
    busy = [row["net"] for row in measured if row["busy_before"] > QUIET]
    if busy: return "the machine was busy before " + ", ".join(dict.fromkeys(busy))
    few = [f"{row['net']} of {row['engine']}" for row in measured if row["rounds"] < 3]
    if few: return "fewer than three quiet rounds of " + ", ".join(few)
    wrong = [f"{row['net']} of {row['engine']}" for row in measured if row["engine"] == "oncilla" and not row["agrees"]]
    return "answers differ: " + ", ".join(wrong) if wrong else ""


def history_line(made):
    """What is kept of a run: per net and engine the best time, the ratio and the share of the roof."""
    figures = {}
    for row in made["rows"]:
        if "reason" not in row: figures.setdefault(row["net"], {})[row["engine"]] = [row["ms"], row["ratio"], row.get("of_roof")]
    facts = made["machine"]
    return {"release": made["engines"].get("oncilla", "none"), "date": made["date"], "cpu": facts["cpu"], "simd": facts["simd"],
            "threads": facts["threads"], "peaks": facts["peaks"], "round_trip_ns": facts["round_trip_ns"],
            "engines": made["engines"], "nets": figures}


def machine_and_release(entry):
    return entry["cpu"], entry["simd"], entry["threads"], entry["release"]


def keep(path, made):
    """Adds the run's line to a history, in the place of an older one of the same machine, threads and release."""
    entry, kept = history_line(made), []
    if os.path.exists(path):
        with open(path) as file: kept = [json.loads(each) for each in file if each.strip()]
    kept = [old for old in kept if machine_and_release(old) != machine_and_release(entry)] + [entry]
    kept.sort(key=lambda e: (e["cpu"], e["threads"], e["date"]))
    with open(path, "w") as file: file.writelines(json.dumps(each) + "\n" for each in kept)
