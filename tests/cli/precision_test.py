#!/usr/bin/env python3
"""16-bit storage: how the program selects it and compares its results.
    precision_test.py --oncilla PROGRAM [unittest arguments]"""

import json
import os
import sys
import unittest

import cli_test
from cli_test import COFFEE, MODEL, MODELS, CliTest


class Precision(CliTest):
    def test_run_says_what_narrow_storage_costs(self):
        image = f"image={COFFEE}"
        for storage, most in (("fp16", 0.01), ("bf16", 0.08)):
            out = self.ok("run", MODEL, "--input", image, "--device", "cpu", "--precision", storage,
                          "--compare", "fp32", "--compare-nodes", 2, "--json")
            precision = self.document("run", out)["steps"][0]["precision"]
            errors = {e["name"]: e for e in precision["outputs"]}
            self.assertEqual(errors["label"]["others_that_differ"], 0)
            self.assertEqual(errors["logits"]["top1_agreement"], 1)
            self.assertEqual(errors["logits"]["overflowed"], 0)
            self.assertGreater(errors["logits"]["relative_error"], 0)
            self.assertLess(errors["logits"]["relative_error"], most)
            self.assertEqual(len(precision["nodes"]), 2)
        out = self.ok("run", MODEL, "--input", image, "--device", "cpu", "--precision", "fp16",
                      "--compare", "fp32")
        self.assertIn("precision, against fp32", out.stdout)

    def test_inspect_says_what_stays_fp32(self):
        size = ["--shape", "image=1x64x64x3", "--device", "cpu"]
        plain = json.loads(self.ok("inspect", MODEL, *size, "--json").stdout)
        self.assertNotIn("precision", plain)
        out = self.ok("inspect", MODEL, *size, "--precision", "fp16", "--keep-fp32",
                      "op:DepthwiseConv2dNative", "--keep-fp32", "nowhere*", "--json")
        precision = self.document("inspect", out)["precision"]
        self.assertEqual(precision["storage"], "fp16")
        why = [k["why"] for k in precision["kept"] if k["op"] == "Conv"]
        self.assertEqual(why, ["denied by 'op:DepthwiseConv2dNative'"] * 16)
        self.assertEqual(precision["unmatched"], ["deny 'nowhere*'"])
        self.assertIn("deny 'nowhere*' names no node", out.stderr)
        halved = self.ok("inspect", MODEL, *size, "--precision", "fp16", "--json").stdout
        half, full = (json.loads(t)["memory"][0] for t in (halved, json.dumps(plain)))
        self.assertLess(half["constant_bytes"], 0.51 * full["constant_bytes"])
        # In fp32 the CPU computes several layers at once and keeps nothing between them.
        self.assertLess(half["peak_bytes"], 0.65 * full["peak_bytes"])
        text = self.ok("inspect", MODEL, "--device", "cpu", "--precision", "bf16").stdout
        self.assertIn("precision bf16\n", text)

    def test_state_keeps_step(self):
        steps = self.write("steps.json", json.dumps([{"signature": "counting"}] * 2))
        out = self.ok("run", MODELS / "counter", "--steps", steps, "--random", "--device", "cpu",
                      "--precision", "fp16", "--compare", "fp32", "--json")
        compared = [e for step in self.document("run", out)["steps"]
                    for e in step["precision"]["outputs"]]
        self.assertGreaterEqual(len(compared), 2)
        for errors in compared:
            self.assertLess(errors["relative_error"], 0.01)

    def test_flags_that_contradict(self):
        for flags, said in ((["--keep-fp32", "x"], "without --precision"),
                            (["--precision", "fp8"], "fp8"),
                            (["--compare-nodes", 3], "needs --compare")):
            out = self.run_cli("run", self.small, "--random", "--shape", "x=1x3", *flags)
            self.assertEqual(out.returncode, 2, out.stderr)
            self.assertIn(said, out.stderr)


if __name__ == "__main__":
    at = sys.argv.index("--oncilla")
    cli_test.PROGRAM = os.path.abspath(sys.argv[at + 1])
    del sys.argv[at:at + 2]
    unittest.main()
