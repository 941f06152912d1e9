#!/usr/bin/env python3
"""Which devices the program finds, opens and uses, and how a session is configured.
    devices_test.py --oncilla PROGRAM [unittest arguments]"""

import json
import os
import pathlib
import sys
import unittest

import cli_test
import graphdef as g
from cli_test import COFFEE, MODEL, CliTest


class Devices(CliTest):
    def test_no_such_device(self):
        for spec in ("gpu:7", "/device:TPU:0", "nonsense"):
            self.fails(5, "run", MODEL, "--device", spec, says=[spec, "CPU:0"])

    def test_no_opencl(self):
        env = {"OCL_ICD_VENDORS": "/nonexistent", "ONCILLA_OPENCL_CPU_DEVICES": "1"}
        out = self.ok("devices", env=env)
        self.assertIn("--device auto takes CPU:0", out.stdout)
        self.assertIn("note:", out.stdout)
        self.fails(5, "run", MODEL, "--device", "gpu", env=env, says=["CPU:0"])
        self.ok("run", self.small, "--random", "--output", "probs", env=env)

    @unittest.skipUnless("RECORDING_DRIVER" in os.environ, "needs the driver that ctest names")
    def test_who_names_the_cpu_loads_no_driver(self):
        log = self.dir / "loaded"
        env = {"ONCILLA_OPENCL_LIBRARY": os.environ["RECORDING_DRIVER"],
               "RECORDING_DRIVER_LOG": str(log)}
        for spec in ("cpu", "cpu:plain", "/device:CPU:0"):
            self.ok("run", self.small, "--random", "--output", "probs", "--device", spec, env=env)
            self.ok("inspect", self.small, "--placement", "--shape", "x=1x3", "--output", "probs",
                    "--device", spec, env=env)
            self.assertFalse(log.exists(), spec)
        none = self.write("none.txt", 'device_count { key: "GPU" value: 0 }')
        self.ok("run", self.small, "--random", "--output", "probs", "--config", none, env=env)
        self.ok("run", self.small, "--random", "--output", "probs",
                env={**env, "ONCILLA_VISIBLE_DEVICES": ""})
        self.assertFalse(log.exists(), "no GPU is allowed")
        self.ok("run", self.small, "--random", "--output", "probs", "--device", "auto", env=env)
        self.assertTrue(log.exists())

    @unittest.skipUnless("RECORDING_DRIVER" in os.environ, "needs the driver that ctest names")
    def test_a_named_driver_is_the_only_one_loaded(self):
        log = self.dir / "loaded"
        vendor = self.write("vendor.icd", os.environ["RECORDING_DRIVER"] + "\n")
        env = {"OCL_ICD_VENDORS": str(vendor), "RECORDING_DRIVER_LOG": str(log),
               "ONCILLA_OPENCL_CPU_DEVICES": "1"}
        out = self.ok("devices", env={**env, "ONCILLA_OPENCL_LIBRARY": "libpocl.so.2"})
        if "GPU:0" not in out.stdout:
            self.skipTest("needs PoCL")
        self.assertFalse(log.exists())
        self.ok("devices", env=env)
        self.assertTrue(log.exists(), "the loader loads what is installed")

    def test_configuration(self):
        text = self.write("config.txt", 'threads: 1\ndevice_count { key: "GPU" value: 0 }\n'
                                        "log_device_placement: true")
        out = self.ok("run", self.small, "--random", "--output", "probs", "--config", text)
        self.assertIn("Device mapping:", out.stderr)
        self.assertIn("probs: (Softmax): /job:localhost/replica:0/task:0/device:CPU:0", out.stderr)
        self.fails(5, "run", self.small, "--random", "--config", text, "--device", "gpu",
                   says=["device_count allows no GPU"])
        dumped = self.ok("bench", "--config", text, "--threads", "2", "--dump-config").stdout
        self.assertEqual(json.loads(dumped), {"threads": 2, "device_count": {"GPU": 0},
                                              "log_device_placement": True})
        again = self.write("again.json", dumped)
        self.assertEqual(self.ok("run", "--config", again, "--dump-config").stdout, dumped)
        bad = self.write("bad.txt", "threads: 1\nstrikt: true")
        self.fails(2, "run", self.small, "--config", bad, says=["bad.txt", "line 2", "strikt"])
        self.fails(2, "run", "--config", bad, "--dump-config", says=["strikt"])
        self.fails(9, "run", self.small, "--config", self.dir / "none", says=["none"])
        # A ConfigProto: settings without effect are reported, even if nothing is run.
        proto = self.write("config.pb", bytes([0x10, 2, 0x28, 3]))
        out = self.ok("run", "--config", proto, "--dump-config")
        self.assertEqual(json.loads(out.stdout), {"threads": 2})
        told = self.ok("run", self.small, "--random", "--config", proto, "--device", "cpu")
        note = "ConfigProto: inter_op_parallelism_threads has no effect"
        self.assertIn(note, out.stderr)
        self.assertIn(note, told.stderr)

    def test_names_that_match_nothing(self):
        run = ("run", self.small, "--random", "--output", "probs", "--device", "cpu")
        out = self.ok(*run, "--place", "prbs=cpu", "--place", "op:Softmux=cpu")
        self.assertIn("placement: nodes 'prbs' match no node; did you mean 'probs'?", out.stderr)
        self.assertIn("nodes of type Softmux match no node; did you mean 'Softmax'?", out.stderr)
        self.fails(2, *run, "--fallback", "banana", says=["'banana' is not a device name"])
        self.fails(2, *run, "--fallback", "gpux", says=["did you mean 'gpu'"])
        out = self.ok(*run, "--fallback", "gpu:99,cpu")
        self.assertIn("fallback: there is no device 'gpu:99'", out.stderr)
        config = self.write("memory.txt", 'device_memory { key: "CPU:7" value { limit_bytes: 9 } }')
        out = self.ok(*run, "--config", config)
        self.assertIn("device_memory: 'CPU:7' is not there; did you mean 'CPU:0'?", out.stderr)
        chain = self.write("chain.txt", "fallback { chain: 'bananas' }")
        self.fails(2, "run", "--config", chain, "--dump-config", says=["'bananas' is not a device name"])

    def test_visible_devices(self):
        env = {"OCL_ICD_VENDORS": "pocl.icd", "ONCILLA_OPENCL_CPU_DEVICES": "1",
               "ONCILLA_VISIBLE_DEVICES": "5"}
        out = self.ok("devices", env=env)
        self.assertIn("visible devices: there is no GPU '5'", out.stdout)
        self.assertIn("--device auto takes CPU:0", out.stdout)

    def test_json(self):
        document = self.document("devices", self.ok("devices", "--json"))
        self.assertEqual(document["devices"][0]["backend"], "cpu")
        self.assertTrue(document["devices"][0]["usable"])

    def test_doctor(self):
        env = {"OCL_ICD_VENDORS": "pocl.icd", "ONCILLA_OPENCL_CPU_DEVICES": "1"}
        document = self.document("doctor", self.ok("doctor", "--json", env=env))
        self.assertEqual(document["devices"][0]["device"], json.loads(self.ok("devices", "--json").stdout)["devices"][0]["device"])
        for device in document["devices"]:
            self.assertGreaterEqual(len(device["families"]), 12, device["problem"])
            for family in device["families"]:
                self.assertEqual(family["outcome"], "ok", (device["name"], family))
                self.assertGreater(family["again_s"], 0)
                self.assertLess(family["error"], 1e-4)
        errors = [family["error"] for device in document["devices"] for family in device["families"]]
        self.assertGreater(max(errors), 0, "fast code rounds otherwise than exact code")
        text = self.ok("doctor", "--device", "cpu").stdout
        self.assertRegex(text, r"\n    matrix products +ok, [0-9.]+ .s at first")
        self.assertIn("families compute what they should", text)
        report = self.dir / "report.json"
        row = self.ok("doctor", "--device", "gpu", "--row", "--report", report, env=env).stdout
        self.assertRegex(row, r"^\| .* \| Portable Computing Language .* \| cpu \| double, groups of .* \| 12 of 12 families \|")
        sent = report.read_text()
        for private in (str(self.dir), str(pathlib.Path.home()) + "/", os.uname().nodename, "uuid:"):
            self.assertNotIn(private, sent)
        opencl = json.loads(sent)["devices"][0]["opencl"]
        self.assertTrue(opencl["probe"]["fp64"])
        self.assertGreater(opencl["claims"]["max_work_group"], 0)
        known = self.ok("doctor", "--device", "gpu", "--new", env=env).stdout
        self.assertIn("this driver has passed before", known)
        fresh = {**env, "ONCILLA_CACHE_DIR": str(self.dir / "fresh")}
        self.assertIn("families compute", self.ok("doctor", "--device", "gpu", "--new", env=fresh).stdout)
        self.fails(5, "doctor", "--device", "gpu:7", says=["gpu:7", "CPU:0"])
        self.fails(2, "doctor", "--timeout", "0", says=["--timeout"])

    def test_plain_and_fast_agree(self):
        answers = []
        for device in ("cpu", "cpu:plain"):
            self.ok("run", MODEL, "--input", f"image={COFFEE}", "--output", "logits",
                    "--output-dir", "out", "--device", device)
            answers.append(g.read_npy(self.dir / "out/logits.npy")[2])
        self.close(answers[0], answers[1])

    def test_one_thread_gives_the_same_bytes(self):
        answers = []
        for threads in (1, 3):
            self.ok("run", MODEL, "--input", f"image={COFFEE}", "--output", "logits",
                    "--output-dir", "out", "--threads", threads)
            answers.append((self.dir / "out/logits.npy").read_bytes())
        self.assertEqual(answers[0], answers[1])


if __name__ == "__main__":
    at = sys.argv.index("--oncilla")
    cli_test.PROGRAM = os.path.abspath(sys.argv[at + 1])
    del sys.argv[at:at + 2]
    unittest.main()
