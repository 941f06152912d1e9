#!/usr/bin/env python3
"""tools/gpu_check on PoCL instead of a card, and without any device.
    gpu_check_test.py --oncilla PROGRAM [unittest arguments]"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAM = pathlib.Path(sys.argv.pop(sys.argv.index("--oncilla") + 1)).resolve()
sys.argv.remove("--oncilla")


class GpuCheck(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.out = pathlib.Path(self.folder.name, "out")

    def check(self, *arguments, build=PROGRAM.parent, **environment):
        command = [ROOT / "tools/gpu_check", "--build", build, "--out", self.out, *arguments]
        return subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=300,
                              env={**os.environ, **environment})

    def test_misuse_and_trace_leave_a_report(self):
        done = self.check("--opencl-cpu-devices", "--minutes", "4", "--only", "misuse", "--only", "trace", OCL_ICD_VENDORS="pocl.icd")
        if done.returncode == 3:
            self.skipTest("not run: no PoCL")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        document = json.loads((self.out / "report.json").read_text())
        self.assertEqual([step["outcome"] for step in document["steps"]], ["ok", "ok"])
        facts = document["steps"][0]["facts"]
        self.assertEqual(facts["interrupted"], 130)
        self.assertEqual(facts["little_memory"], 6)
        self.assertGreater(document["steps"][1]["facts"]["events"], 10)
        text = (self.out / "report.md").read_text()
        self.assertIn(document["device"]["device"], text)
        self.assertIn("| misuse | ok |", text)

    def test_the_driver_is_measured_and_its_views_tried(self):
        done = self.check("--opencl-cpu-devices", "--minutes", "4", "--only", "driver", OCL_ICD_VENDORS="pocl.icd")
        if done.returncode == 3:
            self.skipTest("not run: no PoCL")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        step, = json.loads((self.out / "report.json").read_text())["steps"]
        self.assertEqual(step["outcome"], "ok", step)
        self.assertEqual(set(step["facts"]["views"].values()), {"fine"})
        self.assertGreater(step["facts"]["costs"]["launch_s"], 0)
        self.assertEqual([t["bytes"] for t in step["facts"]["costs"]["transfers"]][:2], [4096, 602112])

    def test_time_that_is_over_leaves_steps_out_by_name(self):
        done = self.check("--opencl-cpu-devices", "--minutes", "0.01", "--only", "trace", OCL_ICD_VENDORS="pocl.icd")
        if done.returncode == 3:
            self.skipTest("not run: no PoCL")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("no time left", (self.out / "report.md").read_text())

    def test_no_card_no_program_no_such_step(self):
        done = self.check("--device", "gpu:7")
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertIn("there is no gpu:7; there is: CPU:0", done.stderr)
        done = self.check(build=self.folder.name)
        self.assertEqual(done.returncode, 3)
        self.assertIn("oncilla is not there: build it", done.stderr)
        self.assertEqual(self.check("--only", "nothing").returncode, 2)
        self.assertEqual(self.check("--like", "banana").returncode, 2)


if __name__ == "__main__":
    unittest.main()
