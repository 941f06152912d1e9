#!/usr/bin/env python3
"""bench/peers without any other engine: its arithmetic, reports and refusals, on invented rows.
    peers_test.py [unittest arguments]      (needs numpy)"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.dom.minidom

import numpy as np

sys.dont_write_bytecode = True
BENCH = pathlib.Path(__file__).resolve().parent.parent.parent / "bench"
sys.path.insert(0, str(BENCH))
from side_by_side import engines, formats, machine, measure, nets, picture, report, run, worker  # noqa: E402

TITLES = {"oncilla": "Oncilla", "ort": "ONNX Runtime", "mnn": "MNN"}
FACTS = {"cpu": "A <fast> CPU", "simd": ["avx2"], "processors": 2, "threads": 2, "round_trip_ns": 120.0, "missing": {}, "busy_before": 0.0,
         "peaks": {"fp32_flops_per_s": 2e11, "bf16_flops_per_s": None, "int8_ops_per_s": 8e11, "copy_bytes_per_s": 1e10,
                   "read_bytes_per_s": 2e10}}


def row(net, engine, times, **more):
    """An engine that takes so many times as long as the reference's 10 ms."""
    ratio = times
    return {"net": net, "engine": engine, "precision": "fp32", "reference": "ort", "ms": 10 * ratio, "median_ms": 10 * ratio,
            "rounds": 8, "ratio": ratio, "ratio_low": ratio * 0.95, "ratio_high": ratio * 1.1, "load_ms": 5.0, "first_ms": 9.0,
            "agrees": True, "distance": 1e-6, "busy_before": 0.0, "gflops": 100.0, "of_roof": 0.5, **more}


def made(rows=None, **options):
    rows = rows or [row("a", "oncilla", 0.8), row("a", "ort", 1.0), row("b", "ort", 1.0), row("b", "oncilla", 3.1),
                    {"net": "a", "engine": "mnn", "precision": "fp32", "reason": "its converter failed"},
                    {"net": "b", "engine": "mnn", "precision": "fp32", "reason": "its converter failed"}]
    options = {"threads": 2, "rounds": 8, "burst_seconds": 0.3, "loaded": False, "even_if_busy": False, **options}
    return report.document(FACTS, {"oncilla": "0.1.0", "ort": "1.31.1", "mnn": "3.6.1"}, rows, options)


class Statistics(unittest.TestCase):
    def test_ratio_is_the_median_over_rounds_that_both_have(self):
        got = measure.summary([2.0, None, 3.0, 8.0], [1.0, 1.0, None, 2.0])
        self.assertEqual((got["ratio"], got["rounds"], got["ms"]), (3.0, 2, 2.0))
        self.assertEqual((got["ratio_low"], got["ratio_high"]), (2.5, 3.5))

    def test_no_quiet_round_gives_no_figure(self):
        got = measure.summary([None], [None])
        self.assertEqual((got["ratio"], got["ms"], got["rounds"]), (None, None, 0))

    def test_disturbed_bursts_are_taken_again_and_then_left_out(self):
        class Fake:
            pid = 1

            def burst(self, seconds):
                return [5.0, 7.0, 6.0]

        others, kept = iter([0.5, 0.0, 0.5, 0.5, 0.5]), measure.burst
        measure.burst = lambda w, seconds, own: (w.burst(seconds), next(others))
        try:
            self.assertEqual(measure.rounds({"x": Fake()}, 2, 0.1), {"x": [6.0, None]})
        finally:
            measure.burst = kept

    def test_answers_in_other_orders_and_layouts_are_the_same(self):
        rng = np.random.default_rng(0)
        picture_, line = rng.random((1, 3, 4, 5), np.float32), rng.random((1, 7), np.float32)
        got = measure.compare([line[0], picture_.transpose(0, 2, 3, 1)], [picture_, line], "fp32")
        self.assertEqual(got, {"agrees": True, "distance": 0.0})
        self.assertFalse(measure.compare([line], [line * 1.01], "fp32")["agrees"])
        self.assertTrue(measure.compare([line], [line * 1.01], "bf16")["agrees"])
        self.assertEqual(measure.compare([line], [picture_], "fp32"), {"agrees": False, "distance": None})
        self.assertFalse(measure.compare([line * np.nan], [line], "fp32")["agrees"])

    def test_share_of_the_roof_is_that_of_the_precision(self):
        got = run.rates(row("a", "oncilla", 1.0, ms=10.0), 1e9, FACTS["peaks"])
        self.assertEqual(got, {"gflops": 100.0, "of_roof": 0.5})
        self.assertIsNone(run.rates(row("a", "oncilla", 1.0, ms=10.0, precision="bf16"), 1e9, FACTS["peaks"])["of_roof"])
        self.assertIsNone(run.rates(row("a", "oncilla-opencl", 1.0, ms=10.0), 1e9, FACTS["peaks"])["of_roof"])
        self.assertEqual(run.rates(row("a", "oncilla", 1.0, ms=None), 1e9, FACTS["peaks"]), {})


class Reports(unittest.TestCase):
    def test_text_names_who_is_missing_and_why(self):
        text = report.text(made(), TITLES)
        self.assertIn("| a | 0.80 [50] | 10.00 ms [50] |", text)
        self.assertIn("MNN: its converter failed: a, b", text)
        self.assertIn("fp32 200 GFLOP/s, bf16 - GFLOP/s, int8 800 GOP/s, copy 10 GB/s", text)

    def test_rows_say_what_is_wrong_with_them(self):
        self.assertIn("DIFFERS by 0.2", report.line(row("a", "oncilla", 1.0, agrees=False, distance=0.2)))
        self.assertIn("BUSY MACHINE (1.5)", report.line(row("a", "oncilla", 1.0, busy_before=1.5)))
        self.assertIn("- ", report.line(row("a", "oncilla", 1.0, ms=None, ratio=None)))

    def test_a_missing_roof_is_said(self):
        facts = {**FACTS, "peaks": {}, "round_trip_ns": None, "missing": {"peaks": "too old", "round_trip_ns": "one processor"}}
        words = report.machine_words(facts)
        self.assertIn("roof: missing (too old)", words[1])
        self.assertIn("missing (one processor)", words[2])

    def test_the_picture_is_well_formed_and_shows_each_measured_engine(self):
        document = made([*made()["rows"], row("c", "mnn", 40.0, agrees=False), row("c", "ort", 1.0), row("d", "ort", 1.0, ratio=None)])
        drawn = xml.dom.minidom.parseString(picture.svg(document, TITLES))
        words = " ".join(node.firstChild.data for node in drawn.getElementsByTagName("text") if node.firstChild)
        for word in ("A <fast> CPU", "0.80", "3.10", "40.00", "ONNX Runtime 10 ms"): self.assertIn(word, words)

    def test_everything_goes_through_json(self):
        self.assertEqual(json.loads(json.dumps(made()))["rows"][0]["ratio"], 0.8)


class History(unittest.TestCase):
    def test_one_line_per_machine_and_release(self):
        with tempfile.TemporaryDirectory() as folder:
            path = str(pathlib.Path(folder, "peers.jsonl"))
            report.keep(path, made())
            report.keep(path, made([row("a", "oncilla", 0.7), row("a", "ort", 1.0)]))
            newer = made()
            newer["engines"]["oncilla"] = "0.2.0"
            report.keep(path, newer)
            lines = [json.loads(line) for line in pathlib.Path(path).read_text().splitlines()]
        self.assertEqual([line["release"] for line in lines], ["0.1.0", "0.2.0"])
        self.assertEqual(lines[0]["nets"], {"a": {"oncilla": [7.0, 0.7, 0.5], "ort": [10.0, 1.0, 0.5]}})

    def test_what_is_no_figure_is_refused(self):
        self.assertEqual(report.trustworthy(made()), "")
        self.assertIn("--even-if-busy", report.trustworthy(made(even_if_busy=True)))
        for trouble, more in (("busy", {"busy_before": 0.4}), ("quiet rounds", {"rounds": 2}), ("differ", {"agrees": False})):
            self.assertIn(trouble, report.trustworthy(made([row("a", "oncilla", 1.0, **more)])))
        hot = made()
        hot["machine"] = {**FACTS, "busy_before": 1.0}
        self.assertIn("roof", report.trustworthy(hot))
        self.assertIn("nothing", report.trustworthy(made([{"net": "a", "engine": "mnn", "reason": "x"}])))

    def test_lines_that_are_kept_can_be_read(self):
        for file in (BENCH / "history").glob("*.jsonl"):
            for line in file.read_text().splitlines():
                entry = json.loads(line)
                self.assertEqual(set(entry), set(report.history_line(made())), file)


class Machine(unittest.TestCase):
    def test_names_of_processors(self):
        self.assertEqual(machine.cpu_name("processor\t: 0\nmodel name\t: Some  CPU @ 2 GHz\nmodel name\t: x\n"), "Some CPU @ 2 GHz")
        self.assertEqual(machine.cpu_name("CPU implementer\t: 0x41\nCPU part\t: 0xd0c\n"), "CPU implementer 0x41, part 0xd0c")
        self.assertEqual(machine.simd("flags\t: fpu avx2 avx512f\n"), ["avx2", "avx512f"])

    def test_what_a_program_does_not_say_is_a_reason(self):
        self.assertEqual(machine.answer([sys.executable, "-c", "print('[1]')"]), ([1], ""))
        self.assertEqual(machine.answer([sys.executable, "-c", "raise SystemExit('too old')"]), (None, "too old"))
        self.assertIn("no JSON", machine.answer([sys.executable, "-c", "print('hello')"])[1])
        self.assertIn("there is no", machine.round_trip_ns("/nowhere")[1])

    def test_idleness_is_measured(self):
        self.assertGreaterEqual(machine.Watch([1]).others(), 0.0)


class Programs(unittest.TestCase):
    def test_conversions_that_fail_are_remembered_with_their_reason(self):
        net = nets.NETS["mobilenet_v2"]
        calls = []

        def fail(formats_, net_, work):
            calls.append(net_.name)
            return formats.convert("the tool", [sys.executable, "-c", "print('Error: no such op'); raise SystemExit(1)"], work, "out")

        with tempfile.TemporaryDirectory() as folder:
            kept, formats.CONVERTERS["mnn"] = formats.CONVERTERS["mnn"], fail
            try:
                for _ in range(2):
                    with self.assertRaisesRegex(formats.Unavailable, "the tool failed: Error: no such op"):
                        formats.Formats(folder, None).find(net, "mnn")
            finally:
                formats.CONVERTERS["mnn"] = kept
            with self.assertRaisesRegex(formats.Unavailable, "not installed"):
                formats.Formats(folder, None).tool("onnx2tf")
        self.assertEqual(calls, ["mobilenet_v2"])

    def test_an_engine_that_stops_gives_its_last_words(self):
        class Broken(engines.Engine):
            title = "Broken"

            def command(self, job):
                return [sys.executable, "-c", "import sys; sys.exit('Error: cannot load it')"]

        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaisesRegex(formats.Unavailable, "stopped: Error: cannot load it"):
                worker.Worker(Broken(), str(pathlib.Path(folder, "job")))

    def test_a_worker_passes_over_what_a_library_prints(self):
        program = """
import sys
print("[12:00:01] a library starts", flush=True)
print('{"load_ms": 1, "ready_ms": 2}', flush=True)
for line in sys.stdin:
    command, argument = line.split()
    if command == "outputs":
        open(argument, "wb").write(bytes(range(8)))
        print('[["uint8", [2, 3]], ["uint8", [2]]]', flush=True)
    elif argument == "1": print("[1.5, 2.5]", flush=True)
    else: sys.exit("Error: out of luck")
"""

        class Talker(engines.Engine):
            title = "Talker"

            def command(self, job):
                return [sys.executable, "-c", program]

        with tempfile.TemporaryDirectory() as folder:
            talker = worker.Worker(Talker(), str(pathlib.Path(folder, "job")))
            self.assertEqual(talker.started, {"load_ms": 1, "ready_ms": 2})
            self.assertEqual([y.tolist() for y in talker.outputs()], [[[0, 1, 2], [3, 4, 5]], [6, 7]])
            self.assertEqual(talker.burst(1), [1.5, 2.5])
            with self.assertRaisesRegex(formats.Unavailable, "out of luck"): talker.burst(2)
            self.assertTrue(talker.ended())
            talker.stop()

    def test_each_net_says_who_is_asked(self):
        for net in nets.NETS.values():
            self.assertIn(net.reference, engines.PEERS)
            self.assertIn(net.precision, engines.Oncilla.precisions)
            if net.float_net: self.assertIn(net.float_net, nets.NETS)

    def test_the_command_line(self):
        peers = [sys.executable, str(BENCH / "peers")]
        listed = subprocess.run([*peers, "--list"], capture_output=True, text=True)
        self.assertEqual([line.split()[0] for line in listed.stdout.splitlines()], list(nets.NETS), listed.stderr)
        wrong = subprocess.run([*peers, "--engines", "nobody"], capture_output=True, text=True)
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("no engines called nobody", wrong.stderr)


if __name__ == "__main__":
    unittest.main()
