"""The card under test: its name, the simulated device that it resembles, and running programs on it within a time limit."""

import json
import os
import pathlib
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

# Words of a card's name, and the simulated device that is most like it. The first match counts.
RESEMBLES = [("h200", "h200"), ("h100", "h200"), ("gh200", "h200"), ("a100", "a100"), ("a30", "a100"), ("rtx 30", "rtx3060"),
             ("rtx 40", "rtx3060"), ("rtx a", "rtx3060"), ("a10", "rtx3060"), ("mi2", "mi250"), ("gfx90a", "mi250"),
             ("gfx11", "rx7900"), ("rx 7", "rx7900"), ("gfx10", "rx6700"), ("rx 6", "rx6700"), ("arc", "a770"),
             ("iris", "iris_xe"), ("uhd", "iris_xe"), ("adreno", "adreno740"), ("mali", "mali_g710")]


class NotThere(Exception):
    pass


class Card:
    def __init__(self, options):
        self.options = options
        self.build = pathlib.Path(options.build).resolve()
        self.jobs = max(2, min(12, len(os.sched_getaffinity(0)) - 2))  # processes that share the card
        self.end = float("inf")  # no limit until the card is found
        self.environment = dict(os.environ)
        if options.opencl_cpu_devices:
            self.environment["ONCILLA_OPENCL_CPU_DEVICES"] = "1"
        self.program = self.build / "oncilla"
        if not self.program.exists():
            raise NotThere(f"{self.program} is not there: build it, or name its folder with --build")
        self.facts = self.find(options.device)
        self.end = time.monotonic() + 60 * options.minutes
        self.name, self.driver = self.facts["device"], self.facts["driver"]
        self.like = self.resembled() if options.like is None else options.like.replace("none", "")
        out = options.out or ROOT / "build/gpu_check" / time.strftime("%Y%m%d-%H%M%S")
        self.out = pathlib.Path(out).resolve()
        self.out.mkdir(parents=True, exist_ok=True)

    def find(self, device):
        done = self.oncilla("devices", "--json", limit=120)
        if done is None or done.returncode != 0:
            raise NotThere("'oncilla devices' does not end" if done is None else done.stderr.strip())
        document = json.loads(done.stdout)
        kind, _, number = device.partition(":")
        wanted = f"{kind.upper()}:{number or 0}"
        for found in document["devices"]:
            if found["name"].endswith(f"device:{wanted}"):
                if not found["usable"]:
                    raise NotThere(f"{device} cannot be used: {found['problem']}")
                return found
        there = ", ".join(d["name"].rpartition("/device:")[2] for d in document["devices"])
        raise NotThere(f"there is no {device}; there is: {there}" + "".join(f"\n  {note}" for note in document["notes"]))

    def resembled(self):
        name = self.name.lower()
        return next((like for word, like in RESEMBLES if word in name), "")

    def left(self):
        return self.end - time.monotonic()

    def run(self, command, limit, log=None):
        """The finished process, or None when it took longer than `limit` seconds or the time that is left. Its output is in
        the file `log`, and in its stdout and stderr."""
        limit = max(1.0, min(limit, self.left()))
        try:
            done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=limit, cwd=ROOT,
                                  env=self.environment, errors="replace")
        except subprocess.TimeoutExpired as late:
            if log:
                (self.out / log).write_bytes((late.stdout or b"") + (late.stderr or b""))
            return None
        if log:
            (self.out / log).write_text(done.stdout + done.stderr)
        return done

    def oncilla(self, *arguments, limit=600, log=None):
        return self.run([self.program, *arguments], limit, log)
