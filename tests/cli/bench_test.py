#!/usr/bin/env python3
"""oncilla bench against the peak rates of a device: peaks, the page, and ops that run plain code. No test asserts a speed.
    bench_test.py --oncilla PROGRAM [unittest arguments]"""

import os
import re
import sys
import unittest
import xml.etree.ElementTree as ElementTree

import browser
import cli_test
import graphdef as g

POCL = {"OCL_ICD_VENDORS": "pocl.icd", "ONCILLA_OPENCL_CPU_DEVICES": "1"}

# x: f32[256,512] in a product, whose rows are turned into shares; nodes' names hold marks of HTML.
NET = g.graph(
    g.placeholder("x", g.FLOAT, [256, 512]),
    g.const("w", g.FLOAT, [512, 96], g.floats(*((i * 7 % 23) / 23 - 0.5 for i in range(512 * 96)))),
    g.node("a<b>&\"c\"/{{ops}}", "MatMul", ["x", "w"], g.type_attr("T", g.FLOAT)),
    g.node("shares", "Softmax", ["a<b>&\"c\"/{{ops}}"], g.type_attr("T", g.FLOAT)),
)
QUICK = ("--samples", "3", "--warmup", "1", "--duration", "0", "--threads", "2")


class Roofline(cli_test.CliTest):
    def setUp(self):
        super().setUp()
        self.net = self.write("net.pb", NET)

    def page(self, *args, **kw):
        """The JSON document and the page's elements."""
        out = self.ok("bench", self.net, *QUICK, "--roofline", "page.html", "--json", *args, **kw)
        text = (self.dir / "page.html").read_text()
        return self.document("bench", out), ElementTree.fromstring(text), text

    def test_the_page_has_every_op(self):
        document, page, text = self.page("--device", "cpu")
        self.assertEqual(sorted(op["op"] for op in document["ops"]), ["MatMul", "Softmax"])
        rows = [[" ".join(cell.itertext()) for cell in row.iter("td")] for row in page.iter("tr")]
        for op in document["ops"]:
            shown = [row for row in rows if row and row[0].startswith(op["node"])]
            self.assertEqual(len(shown), 1, op["node"])
            self.assertEqual(shown[0][1], op["op"])
            self.assertIn(op["kernel"], shown[0][2])
        dots = [dot.find("title").text for dot in page.iter("circle")]
        self.assertEqual(len(dots), 2)
        product = next(dot for dot in dots if "MatMul" in dot)
        self.assertIn("256x512, 512x96 -> 256x96 f32", product)
        self.assertRegex(product, r"\nMatMul: gemm[^\n]*\n")
        self.assertRegex(product, r"roof .* by (arithmetic|memory)")
        bars = [group.find("title").text for group in page.iter("g") if "data-op" in group.attrib]
        self.assertEqual(len(bars), 2)
        self.assertNotIn("{{", text.replace("{{ops}}", ""))
        # The page must not load anything.
        self.assertNotRegex(text, r"https?://|src=|@import|<link|url\(")

    def test_times_add_up(self):
        roofline = self.page("--device", "cpu")[0]["roofline"]
        causes = roofline["causes_s"]
        total = max(roofline["run_s"], roofline["kernels_s"])
        self.assertAlmostEqual(sum(causes.values()) / total, 1, places=6)
        self.assertTrue(all(time >= 0 for time in causes.values()), causes)
        self.assertEqual(causes["unknown"], 0)
        for kind in roofline["kinds"]:
            self.assertAlmostEqual(kind["roof_s"] + kind["above_s"], kind["time_s"], places=9)
        self.assertEqual({op["bound"] for op in roofline["ops"]} - {"arithmetic", "memory"}, set())
        self.assertEqual([peaks["device"][-5:] for peaks in roofline["peaks"]], ["CPU:0"])

    def test_text(self):
        out = self.ok("bench", self.net, *QUICK, "--device", "cpu", "--roofline", "page.html").stdout
        for text in ("roofline", "peaks of CPU:0", "GFLOP/s fp32", "most above the roof"):
            self.assertIn(text, out)
        # Kernels are timed in separate runs: on a busy machine the time outside of them may be 0.
        self.assertRegex(out, r"outside of kernels|outside kernels: 0\.0 %")

    def test_on_opencl_kernels_have_short_names(self):
        document, page, text = self.page("--device", "gpu", env=POCL)
        kernels = {op["op"]: op["kernel"] for op in document["ops"]}
        self.assertRegex(kernels["MatMul"], r"^matmul/\w+( \w+=\d+)*$")
        self.assertRegex(kernels["Softmax"], r"^norm/[\w:]+( \w+=\d+)*$")
        self.assertFalse(any(op["plain"] for op in document["ops"]))
        self.assertIsNone(document["roofline"]["peaks"][0]["int8_ops_per_s"])

    @unittest.skipIf(browser.BROWSER is None, "chromium-headless-shell is not installed")
    def test_in_a_browser(self):
        self.page("--device", "cpu")
        shown = browser.browse(f"file://{self.dir}/page.html", self.dir, "--dump-dom")
        # The script has taken the titles for its tip.
        self.assertNotRegex(shown, r"<circle[^>]*><title>")
        self.assertEqual(len(re.findall(r"<circle", shown)), 2)

    def test_a_file_that_cannot_be_written_is_told_first(self):
        out = self.fails(9, "bench", "no_such_model.pb", "--roofline", "no/such/folder/page.html",
                         says=["--roofline", "no/such/folder"])
        self.assertNotIn("no_such_model", out.stderr)
        pipe = self.dir / "pipe"
        os.mkfifo(pipe)
        self.fails(9, "bench", self.net, "--roofline", pipe, says=["--roofline", "pipe"])
        # The previous file must stay when the measurement fails.
        kept = self.dir / "kept.html"
        kept.write_text("before")
        self.fails(3, "bench", "no_such_model.pb", "--roofline", kept)
        self.assertEqual(kept.read_text(), "before")
        self.assertEqual([path.name for path in self.dir.iterdir() if "kept" in path.name], ["kept.html"])

    def test_wrong_flags(self):
        self.fails(2, "bench", says=["MODEL is required"])
        self.fails(2, "bench", "--roofline", "page.html", says=["--roofline needs a MODEL"])
        self.fails(2, "bench", self.net, "--peaks", says=["--peaks measures a device", "net.pb"])
        self.fails(2, "bench", "--peaks", "--roofline", "page.html", says=["--roofline needs a model"])
        self.fails(2, "bench", "--peaks", "--fail-on-plain", "5", says=["--fail-on-plain needs a model"])
        for percent in ("-1", "101", "half"):
            self.fails(2, "bench", self.net, "--fail-on-plain", percent, says=["--fail-on-plain"])
        self.fails(2, "bench", self.net, "--device", "cpu:plain", "--fail-on-plain", "5", says=["everything is plain"])
        self.fails(5, "bench", "--peaks", "--device", "gpu:99", says=["gpu:99"])


class Peaks(cli_test.CliTest):
    def test_json(self):
        document = self.document("bench_peaks", self.ok("bench", "--peaks", "--json", "--threads", "2"))
        self.assertEqual(document["threads"], 2)
        self.assertTrue(document["cpu"])
        peaks = document["peaks"]
        for key in ("fp32_flops_per_s", "copy_bytes_per_s", "read_bytes_per_s"):
            self.assertGreater(peaks[key], 0)
        for key in ("bf16_flops_per_s", "int8_ops_per_s"):
            self.assertTrue(peaks[key] is None or peaks[key] > 0)
        sizes = [copy["bytes"] for copy in peaks["copies"]]
        self.assertEqual(sizes, sorted(set(sizes)))

    def test_what_the_processor_may_not_use_is_null(self):
        out = self.ok("bench", "--peaks", "--json", env={"ONCILLA_CPU_TARGET": "baseline"})
        peaks = self.document("bench_peaks", out)["peaks"]
        self.assertIsNone(peaks["bf16_flops_per_s"])
        self.assertIsNone(peaks["int8_ops_per_s"])

    def test_text_names_the_cpu_unless_another_device_is_asked_for(self):
        out = self.ok("bench", "--peaks", env=POCL).stdout
        self.assertIn("CPU:0", out)
        self.assertIn("GFLOP/s fp32", out)
        out = self.ok("bench", "--peaks", "--device", "gpu", env=POCL).stdout
        self.assertIn("GPU:0", out)


class PlainCode(cli_test.CliTest):
    RUN = ("--shape", "x=20000x30", *QUICK)

    def setUp(self):
        super().setUp()
        # Numbers of 64 bits are for plain code.
        self.small = self.write("doubles.pb", g.graph(g.placeholder("x", g.DOUBLE, [None, 30]), g.node(
            "probs", "Softmax", ["x"], g.type_attr("T", g.DOUBLE))))

    def test_a_warning_names_the_op(self):
        out = self.ok("bench", self.small, *self.RUN, "--device", "cpu", "--json")
        document = self.document("bench", out)
        self.assertRegex(out.stderr, r"warning: 'probs' \(Softmax\) takes [\d.]+ % of a run in plain code")
        self.assertEqual(document["plain_ops"], ["probs"])
        self.assertEqual([(op["kernel"], op["plain"]) for op in document["ops"]], [("plain", True)])

    def test_it_may_be_a_failure(self):
        out = self.fails(1, "bench", self.small, *self.RUN, "--device", "cpu", "--fail-on-plain", "5",
                         says=["1 op takes more than 5 % of a run in plain code"])
        self.assertIn("median", out.stdout)  # the results are there all the same
        net = self.write("net.pb", NET)
        self.ok("bench", net, *QUICK, "--device", "cpu", "--fail-on-plain", "0")

    def test_plain_code_that_was_asked_for_is_none_to_warn_of(self):
        out = self.ok("bench", self.small, *self.RUN, "--device", "cpu:plain")
        self.assertNotIn("warning", out.stderr)

    def test_host_ops_are_in_the_table(self):
        # The number of what is found depends on the data, so the host computes it.
        model = self.write("where.pb", g.graph(g.placeholder("x", g.FLOAT, [4096]), g.node(
            "found", "Where", ["x"], g.type_attr("T", g.FLOAT))))
        document = self.document("bench", self.ok("bench", model, *QUICK, "--device", "cpu", "--json"))
        found = next(op for op in document["ops"] if op["node"].startswith("found"))
        self.assertTrue(found["plain"])
        self.assertIn("host", found["kernel"])
        self.assertGreater(found["time_s"], 0)


if __name__ == "__main__":
    at = sys.argv.index("--oncilla")
    cli_test.PROGRAM = os.path.abspath(sys.argv[at + 1])
    del sys.argv[at:at + 2]
    unittest.main()
