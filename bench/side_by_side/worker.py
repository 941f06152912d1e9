"""One engine with one net, loaded in a process of its own that answers lines with lines; the protocol is that of
bench/burst.cc. `Worker` is our end of it, main() that of the engines that are Python packages:

    python -m side_by_side.worker JOB      (JOB: a file, see write_job)"""
import contextlib
import json
import os
import select
import subprocess
import sys
import time

from . import engines
from .formats import Unavailable, trouble

PATIENCE_S = 300  # to load and to run once; a burst takes a run more than it was given


def write_job(folder, engine, net, model, threads, feeds):
    """What an engine is to run; inputs lie as raw bytes beside it."""
    inputs = []
    for i, (name, value) in enumerate(feeds.items()):
        file = os.path.join(folder, f"{net.name}.in{i}")
        if not os.path.exists(file): value.tofile(file)
        inputs.append({"name": name, "shape": list(value.shape), "type": value.dtype.name, "file": file})
    path = os.path.join(folder, f"{net.name}.{engine.name}.json")
    with open(path, "w") as file:
        json.dump({"engine": engine.name, "model": model, "threads": threads, "precision": net.precision, "inputs": inputs}, file)
    return path


class Worker:
    """Raises Unavailable, with what the process said last, where it does not load or answer."""

    def __init__(self, engine, job):
        self.title, self.log = engine.title, job + ".log"
        environment = dict(os.environ, PYTHONPATH=os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(engine.command(job), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                                            env=environment)
        self.pid, self.answers, self.unread = self.process.pid, job + ".out", b""
        self.started = self.read()

    def read(self):
        """The next answer; what a library prints for itself is no JSON and passed over."""
        while True:
            line, end, rest = self.unread.partition(b"\n")
            if end:
                self.unread = rest
                try:
                    return json.loads(line)
                except ValueError:
                    continue
            # Below Python's buffers, in which a line could lie that select does not see.
            ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE_S)
            more = os.read(self.process.stdout.fileno(), 1 << 16) if ready else b""
            if not more: self.fail("stopped" if ready else f"gave no answer in {PATIENCE_S} s", bool(ready))
            self.unread += more

    def fail(self, what, by_itself):
        """Ends the process and raises, with what it said last."""
        if not by_itself: self.process.kill()
        code = self.process.wait()
        with contextlib.suppress(BrokenPipeError): self.process.stdin.close()  # what it did not read is still in it
        self.process.stdout.close()
        with open(self.log, errors="replace") as log: said = trouble(log.read(), min(code, 0) if by_itself else 0)
        raise Unavailable(f"{what}: {said}")

    def ask(self, line):
        try:
            self.process.stdin.write(line.encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # read() says what happened
        return self.read()

    def burst(self, seconds):
        return self.ask(f"burst {seconds:g}")

    def outputs(self):
        """All outputs of the first run, in the engine's own order."""
        import numpy as np
        kinds, arrays, at = self.ask(f"outputs {self.answers}"), [], 0
        with open(self.answers, "rb") as file: data = file.read()
        os.remove(self.answers)
        for kind, shape in kinds:
            count = int(np.prod(shape, dtype=np.int64))
            arrays.append(np.frombuffer(data, kind, count, at).reshape(shape))
            at += arrays[-1].nbytes
        return arrays

    def ended(self):
        return self.process.poll() is not None

    def stop(self):
        if self.ended(): return
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()


def main(path):
    import numpy as np
    with open(path) as file: job = json.load(file)
    engine, threads = engines.PEERS[job["engine"]](), job["threads"]
    feeds = {x["name"]: np.fromfile(x["file"], x["type"]).reshape(x["shape"]) for x in job["inputs"]}
    engine.prepare(threads)
    start = time.perf_counter()
    since = lambda begin: (time.perf_counter() - begin) * 1e3
    run = engine.load(job["model"], threads, job["precision"], feeds)
    load_ms = since(start)
    results = [np.array(y) for y in run()]
    print(json.dumps({"load_ms": load_ms, "ready_ms": since(start)}), flush=True)
    for line in sys.stdin:
        command, argument = line.split()
        if command == "burst":
            times, begin = [], time.perf_counter()
            while not times or time.perf_counter() - begin < float(argument):
                t = time.perf_counter()
                run()
                times.append(since(t))
            print(json.dumps(times), flush=True)
        elif command == "outputs":
            with open(argument, "wb") as file:
                for y in results: file.write(np.ascontiguousarray(y).tobytes())
            print(json.dumps([[y.dtype.name, list(y.shape)] for y in results]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
