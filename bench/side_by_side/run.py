"""One net on all engines: loads, compares and times it; an engine that cannot run it gets a row with the reason."""
import subprocess
import sys

from . import machine, measure, nets
from .formats import Unavailable
from .worker import Worker, write_job


def files(engines, net, formats):
    """The file of the net for each engine by name, and the reasons of those that there is none for."""
    found, reasons = {}, {}
    for name, engine in engines.items():
        try:
            engine.version()
            engine.check(net)
            found[name] = formats.find(net, engine.reads(net))
        except Unavailable as why:
            reasons[name] = str(why)
    return found, reasons


def start(engines, net, found, threads, feeds, folder):
    """Workers with their answers by name, and the reasons of those that do not load or run."""
    workers, answers, reasons = {}, {}, {}
    for name, model in found.items():
        try:
            worker = Worker(engines[name], write_job(folder, engines[name], net, model, threads, feeds))
            answers[name] = worker.outputs()
            workers[name] = worker
        except Unavailable as why:
            reasons[name] = str(why)
    return workers, answers, reasons


def loaded(workers, times, options):
    """How much slower each engine is while another program keeps one processor busy."""
    hog = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        disturbed = measure.rounds(workers, options.rounds, options.burst_seconds, [hog.pid], options.even_if_busy)
    finally:
        hog.kill()
        hog.wait()
    return {name: measure.summary(disturbed[name], times[name])["ratio"] for name in workers}


def rates(row, operations, peaks):
    """The rate of the fastest burst, and its share of the processor's peak for what the net computes in. An OpenCL device
    may be another processor, whose peak was not measured."""
    if not (operations and row.get("ms")): return {}
    rate = operations / (row["ms"] * 1e-3)
    peak = None if row["engine"] == "oncilla-opencl" else peaks.get(machine.PEAK_OF[row["precision"]])
    return {"gflops": round(rate / 1e9, 1), "of_roof": round(rate / peak, 3) if peak else None}


def run_net(net, engines, formats, options, facts, folder):
    """The net's rows, one for each engine."""
    head = lambda name: {"net": net.name, "engine": name, "precision": engines[name].computes_in(net)}
    try:
        model, feeds = nets.path(net, options.models), nets.feeds(net)
    except Exception as error:  # a package that makes the net is missing, or the network
        return [{**head(name), "reason": f"the net cannot be made: {error}"} for name in engines]
    found, reasons = files(engines, net, formats)
    busy = machine.idle(options.patience)  # when all is converted
    workers, answers, silent = start(engines, net, found, options.threads, feeds, folder)
    rows = {name: {**head(name), "reason": why} for name, why in {**reasons, **silent}.items()}
    times, slower = {}, {}
    while workers:  # until those that are left get through
        try:
            times = measure.rounds(workers, options.rounds, options.burst_seconds, (), options.even_if_busy)
            slower = loaded(workers, times, options) if options.loaded else {}
            break
        except Unavailable as why:
            for name in [name for name, worker in workers.items() if worker.ended()]:
                rows[name] = {**head(name), "reason": f"while it was timed it {why}"}
                del workers[name]
    if not workers: return [rows[name] for name in engines]
    reference = net.reference if net.reference in workers else next(iter(workers))
    operations = machine.operations(options.oncilla, model, feeds, folder)
    for name, worker in workers.items():
        row = {**head(name), "reference": reference, "load_ms": round(worker.started["load_ms"], 1),
               "first_ms": round(worker.started["ready_ms"], 1), **measure.summary(times[name], times[reference]),
               **measure.compare(answers[name], answers[reference], net.precision), "busy_before": busy}
        row.update(rates(row, operations, facts["peaks"]))
        if slower: row["loaded_slowdown"] = slower[name]
        if name.startswith("oncilla"): row["memory_mb"] = worker.ask("close")
        worker.stop()
        rows[name] = row
    return [rows[name] for name in engines]
