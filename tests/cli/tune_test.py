#!/usr/bin/env python3
"""oncilla tune on PoCL: the table that it writes, its effect on later runs, and tables from elsewhere.
    tune_test.py --oncilla PROGRAM [unittest arguments]"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

import cli_test
import graphdef as g

POCL = {"OCL_ICD_VENDORS": "pocl.icd", "ONCILLA_OPENCL_CPU_DEVICES": "1"}
GPU = ("--device", "gpu")

# x: f32[64,512] in two products.
NET = g.graph(
    g.placeholder("x", g.FLOAT, [64, 512]),
    g.const("w", g.FLOAT, [512, 96], g.floats(*((i * 7 % 23) / 23 - 0.5 for i in range(512 * 96)))),
    g.node("y", "MatMul", ["x", "w"], g.type_attr("T", g.FLOAT)),
    g.const("v", g.FLOAT, [96, 40], g.floats(*((i * 5 % 19) / 19 - 0.5 for i in range(96 * 40)))),
    g.node("z", "MatMul", ["y", "v"], g.type_attr("T", g.FLOAT)),
)


class TuneTest(cli_test.CliTest):
    def setUp(self):
        super().setUp()
        self.net = self.write("net.pb", NET)
        self.table = self.dir / "cache/tuning.json"

    def run_cli(self, *args, env=None, **kw):
        return super().run_cli(*args, env={**POCL, **(env or {})}, **kw)

    def tune(self, *args, **kw):
        return self.document("tune", self.ok("tune", self.net, *GPU, "--budget", "30s", "--json", *args, **kw))

    def answer(self, *args):
        self.ok("run", self.net, *GPU, "--random", "--output-dir", "out", *args)
        return (self.dir / "out/z%3A0.npy").read_bytes()

    def kernels(self, *args):
        return self.ok("inspect", self.net, *GPU, "--kernels", *args)

    def change(self, edit, path=None):
        """The table with each row and layer as `edit` leaves it."""
        path = path or self.table
        table = json.loads(path.read_text())
        for row in table["devices"]:
            for layer in row["layers"].values():
                edit(row, layer)
        path.write_text(json.dumps(table))

    def test_a_model_is_tuned_and_uses_its_table(self):
        generic = self.answer()
        self.assertNotIn("tuned", self.kernels().stdout)
        document = self.tune()
        self.assertEqual(document["table"], str(self.table))
        self.assertEqual([layer["measured"] for layer in document["layers"]], [True, True])
        self.assertLessEqual(document["best_us"], document["generic_us"])
        self.assertLess(document["seconds"], 60)
        for layer in document["layers"]:
            self.assertGreaterEqual(layer["choices"], 2)
            self.assertGreater(layer["best_us"], 0)
            self.assertEqual((layer["faults"], layer["problem"]), ([], ""))
        text = self.kernels().stdout
        self.assertEqual(text.count("tuned: panels "), 2)
        self.assertNotIn("another driver", text)
        self.assertNotIn("tuned", self.kernels("--tuning", "off").stdout)
        shapes = [self.answer(), self.answer()]
        self.assertEqual(shapes[0], shapes[1], "the same table gives the same bits")
        self.assertEqual(self.answer("--tuning", "off"), generic)
        # The other shape of kernels has rows of its own, beside these.
        self.assertIn("tuned: product ", self.other_shape())
        shown = self.document("tune", self.ok("tune", "--show", "--json"))
        self.assertEqual(sorted(row["shape"] for row in shown["devices"]), ["cpu", "gpu"])
        self.assertIn("tuned", self.ok("doctor", *GPU).stdout)

    def other_shape(self):
        env = {"ONCILLA_CL_SHAPE": "gpu"}
        self.tune("--export", "card.json", env=env)
        exported = json.loads((self.dir / "card.json").read_text())
        self.assertEqual([row["shape"] for row in exported["devices"]], ["gpu"])
        return self.ok("inspect", self.net, *GPU, "--kernels", "--tuning", "card.json", env=env).stdout

    def test_another_driver_is_marked(self):
        self.tune()
        self.change(lambda row, layer: row.update(driver="0.1"))
        self.assertIn("(measured with another driver, 0.1)", self.kernels().stdout)
        self.assertIn("(measured with another driver, 0.1)", self.ok("inspect", self.net, *GPU, "--plan").stdout)
        self.assertIn("2 of them with another driver", self.ok("doctor", *GPU).stdout)
        # When measured again, its own rows come first and the others stay.
        self.tune()
        self.assertNotIn("another driver", self.kernels().stdout)
        self.assertEqual(self.ok("tune", "--show").stdout.count("driver 0.1"), 1)

    def test_tables_that_are_wrong(self):
        generic = self.answer()
        self.tune()
        self.change(lambda row, layer: layer.update(choice="ROWS=4096 TILES=-1"))
        out = self.kernels()
        self.assertNotIn("tuned", out.stdout)
        self.assertEqual(out.stderr.count("'ROWS=4096 TILES=-1' is not a choice for 'panels"), 2)
        self.assertEqual(self.answer(), generic)
        self.change(lambda row, layer: layer.update(choice=5))
        out = self.kernels()
        self.assertIn("is ignored: line", out.stderr)
        good = self.table.read_text()
        for bad in ("", good[:-20], '{"oncilla_tuning": 2}', "[1]", good.replace("[", "{", 1), "\0" * 100):
            self.table.write_text(bad)
            out = self.kernels()
            self.assertIn("generic choices are used", out.stderr)
            self.assertIn("tuning.json", out.stderr)
            self.fails(9, "inspect", self.net, *GPU, "--tuning", self.table, says=["tuning.json"])
            self.fails(9, "tune", self.net, *GPU, says=["move it away or give another --table"])
            self.assertEqual(self.table.read_text(), bad)
        self.fails(9, "run", self.net, *GPU, "--random", "--tuning", "none.json", says=["none.json"])

    def test_what_is_asked_for(self):
        self.fails(2, "tune", says=["give a MODEL, --ops, --show or --export"])
        self.fails(2, "tune", self.net, *GPU, "--budget", "soon", says=["--budget soon", "60s"])
        self.fails(2, "tune", self.net, *GPU, "--budget", "-1s", says=["--budget"])
        self.fails(5, "tune", self.net, "--device", "cpu", says=["only OpenCL devices", "--opencl-cpu-devices"])
        self.fails(9, "tune", *GPU, "--export", "x.json", says=["has nothing for"])
        self.assertIn("no table yet", self.ok("tune", "--show").stdout)
        # Far too little time: layers that were not measured must be reported, and the budget must hold.
        begin = time.monotonic()
        out = self.ok("tune", "--ops", *GPU, "--budget", "2s", "--table", "other/ops.json")
        self.assertLess(time.monotonic() - begin, 40)
        self.assertRegex(out.stdout, r"\d+ of \d+ classes of layers in .*; a larger --budget measures the others")
        self.assertFalse(self.table.exists())

    def test_an_interrupt_keeps_what_there_is(self):
        process = subprocess.Popen(
            [cli_test.PROGRAM, "tune", "--ops", *GPU, "--budget", "120s"], cwd=self.dir, stderr=subprocess.PIPE,
            env={**os.environ, **POCL, "ONCILLA_CACHE_DIR": str(self.dir / "cache")}, text=True)
        end = time.monotonic() + 100
        while not self.table.exists() and time.monotonic() < end:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        self.assertIn("interrupted", process.communicate(timeout=60)[1])
        self.assertEqual(process.returncode, 130)
        shown = self.document("tune", self.ok("tune", "--show", "--json"))
        self.assertGreaterEqual(len(shown["devices"][0]["layers"]), 1)


if __name__ == "__main__":
    at = sys.argv.index("--oncilla")
    cli_test.PROGRAM = os.path.abspath(sys.argv[at + 1])
    del sys.argv[at:at + 2]
    unittest.main()
