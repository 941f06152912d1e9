#!/usr/bin/env python3
"""tools/quickstart on a terminal and without one: what it asks, what it installs, and its advice
without root or network. A copy of the script runs with substitutes for dpkg-query,
apt-get, sudo, id and cmake; the program and the model are the real ones.
    quickstart_test.py --oncilla PROGRAM [unittest arguments]"""

import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAM = None
# ld is what PoCL links its kernels with.
REAL = "bash cat dirname env grep ld ln mkdir mktemp rm sed tail".split()
STUBS = {
    "dpkg-query": 'for last; do :; done; grep -qx "$last" "$FAKE/missing" || printf "install ok installed"',
    "apt-get": 'echo "apt-get $*" >>"$FAKE/calls"; [ -e "$FAKE/offline" ] && '
               '{ echo "E: Unable to fetch some archives" >&2; exit 100; }; '
               'case " $* " in *" install "*) : >"$FAKE/missing";; esac',
    "sudo": 'echo sudo >>"$FAKE/calls"; "$@"',
    "id": 'cat "$FAKE/uid"',
    "sleep": "exit 0",
    "nproc": "echo 2",
    "cmake": 'echo "cmake $*" >>"$FAKE/calls"; [ -e "$FAKE/broken" ] && { echo "no compiler"; exit 1; }; '
             'case "$1" in --build) echo "[1/2, 50%] Building"; echo "[2/2, 100%] Linking"; '
             'ln -sf "$FAKE_PROGRAM" "$2/oncilla";; *) : >"$ONCILLA_BUILD_DIR/CMakeCache.txt";; esac',
}


class QuickstartTest(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="oncilla-quickstart-"))
        self.addCleanup(shutil.rmtree, self.dir)
        self.tree, self.bin, self.fake = (self.dir / n for n in ("tree", "bin", "fake"))
        for folder in (self.tree / "tools", self.bin, self.fake):
            folder.mkdir(parents=True)
        for name in ("quickstart", "packages.sh", "packages.txt"):
            shutil.copy(ROOT / "tools" / name, self.tree / "tools" / name)
        (self.tree / "testdata").symlink_to(ROOT / "testdata")
        for name in REAL:
            (self.bin / name).symlink_to(shutil.which(name))
        for name, body in STUBS.items():
            (self.bin / name).write_text(f"#!/bin/sh\n{body}\n")
            (self.bin / name).chmod(0o755)
        self.env = {"PATH": str(self.bin), "FAKE": str(self.fake), "FAKE_PROGRAM": PROGRAM,
                    "HOME": str(self.dir), "LANG": "C.UTF-8",
                    "ONCILLA_BUILD_DIR": str(self.dir / "build")}
        self.machine(missing=[], root=True)

    def machine(self, missing, root, sudo=True, offline=False):
        (self.fake / "missing").write_text("".join(f"{m}\n" for m in missing))
        (self.fake / "uid").write_text("0\n" if root else "1000\n")
        (self.fake / "calls").write_text("")
        if not sudo:
            (self.bin / "sudo").unlink()
        if offline:
            (self.fake / "offline").touch()

    def calls(self):
        return (self.fake / "calls").read_text()

    def command(self, *args):
        return [str(self.tree / "tools/quickstart"), *args]

    def piped(self, *args):
        out = subprocess.run(self.command(*args), env=self.env, cwd=self.dir, text=True,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, timeout=600)
        return out.returncode, out.stdout

    def on_terminal(self, *args, answer=None):
        """Runs on a pseudo-terminal and types `answer` at the question."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.dir)
            os.execve(self.command()[0], self.command(*args), self.env)
        shown, asked, deadline = b"", False, time.monotonic() + 600
        while time.monotonic() < deadline:
            if not select.select([terminal], [], [], 1)[0]:
                continue
            try:
                data = os.read(terminal, 65536)
            except OSError:  # the other side is gone
                break
            if not data:
                break
            shown += data
            if answer is not None and not asked and b"[Y/n]" in shown:
                asked = True
                os.write(terminal, answer.encode() + b"\n")
        _, status = os.waitpid(pid, 0)
        os.close(terminal)
        self.assertEqual(asked, answer is not None, shown.decode())
        return os.waitstatus_to_exitcode(status), shown.decode()

    def check_pictures(self, text, backends=2):
        self.assertEqual(text.count("espresso 0.95"), backends, text)
        self.assertEqual(len(re.findall(r"tiger cat 0\.4", text)), backends, text)
        # One line per run on what ran where and what it cost.
        self.assertEqual(len(re.findall(r"ran \d+ nodes.*cop(y|ies).*memory peak", text)),
                         2 * backends, text)
        self.assertIn("<svg", (self.dir / "espresso.svg").read_text())
        self.assertIn(str(self.dir / "espresso.svg"), text)

    def test_everything_there_needs_neither_root_nor_network(self):
        self.machine(missing=[], root=False, sudo=False, offline=True)
        for _ in range(2):  # must work when run twice
            code, text = self.piped()
            self.assertEqual(code, 0, text)
            self.assertIn("Everything that is needed is installed.", text)
            self.assertIn("no GPU was found, so OpenCL runs on the processor", text)
            self.check_pictures(text)
        self.assertNotIn("apt-get", self.calls())

    def test_on_a_terminal(self):
        code, text = self.on_terminal()
        self.assertEqual(code, 0, text)
        self.check_pictures(text)
        self.assertIn("\u2588", text)  # bars of blocks

    def test_asks_before_sudo(self):
        self.machine(missing=["libabsl-dev", "pocl-opencl-icd"], root=False)
        code, text = self.on_terminal(answer="n")
        self.assertEqual(code, 1, text)
        for part in ("libabsl-dev", "containers", "pocl-opencl-icd",
                     "sudo apt-get install libabsl-dev pocl-opencl-icd"):
            self.assertIn(part, text)
        self.assertEqual(self.calls(), "")

    def test_installs_after_a_yes(self):
        self.machine(missing=["libabsl-dev"], root=False)
        code, text = self.on_terminal("--build-only", answer="y")
        self.assertEqual(code, 0, text)
        self.assertRegex(self.calls(), r"sudo\napt-get -q update\nsudo\n"
                                       r"apt-get -q install -y --no-install-recommends libabsl-dev\n")
        self.assertIn(str(self.dir / "build/oncilla"), text)

    def test_root_is_not_asked(self):
        self.machine(missing=["libabsl-dev"], root=True)
        code, text = self.piped("--build-only")
        self.assertEqual(code, 0, text)
        self.assertIn("install -y --no-install-recommends libabsl-dev", self.calls())
        self.assertNotIn("sudo", self.calls())

    def test_no_terminal_is_never_asked(self):
        self.machine(missing=["libabsl-dev"], root=False)
        code, text = self.piped()
        self.assertEqual(code, 1, text)
        self.assertNotIn("[Y/n]", text)
        self.assertIn("sudo apt-get install libabsl-dev", text)

    def test_no_root_and_no_sudo(self):
        self.machine(missing=["libabsl-dev"], root=False, sudo=False)
        code, text = self.on_terminal()
        self.assertEqual(code, 1, text)
        self.assertIn("Ask somebody who is", text)
        self.assertIn("apt-get install libabsl-dev", text)

    def test_no_network(self):
        self.machine(missing=["libabsl-dev"], root=True, offline=True)
        code, text = self.piped()
        self.assertEqual(code, 1, text)
        self.assertIn("Unable to fetch", text)
        self.assertIn("Is there a network?", text)
        self.assertEqual(self.calls().count("update"), 3)

    def test_goes_on_without_opencl(self):
        self.machine(missing=["pocl-opencl-icd"], root=True, offline=True)
        self.env["OCL_ICD_VENDORS"] = "/nonexistent"
        code, text = self.piped()
        self.assertEqual(code, 0, text)
        self.assertIn("OpenCL: none here, so the CPU alone", text)
        self.check_pictures(text, backends=1)

    def test_a_failed_build_shows_why(self):
        (self.fake / "broken").touch()
        code, text = self.piped()
        self.assertEqual(code, 1, text)
        self.assertIn("no compiler", text)
        self.assertIn("quickstart.log", text)

    def test_arguments(self):
        code, text = self.piped("--bild-only")
        self.assertEqual(code, 2, text)
        self.assertIn("--build-only", text)
        self.assertEqual(self.piped("--help")[0], 0)


if __name__ == "__main__":
    at = sys.argv.index("--oncilla")
    PROGRAM = os.path.abspath(sys.argv[at + 1])
    del sys.argv[at:at + 2]
    unittest.main()
