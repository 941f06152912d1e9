#!/usr/bin/env python3
"""The program as users run it: right outputs, clear messages, exit codes.
    cli_test.py --oncilla PROGRAM [unittest arguments]"""

import json
import os
import pathlib
import shutil
import signal
import struct
import stat
import subprocess
import sys
import tempfile
import time
import unittest

import graphdef as g
import schema

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
QUICKSTART = ROOT / "testdata/quickstart"
MODEL = QUICKSTART / "efficientnet_lite0"
COFFEE = QUICKSTART / "coffee.png"
MODELS = ROOT / "testdata/tensorflow/models"
RECORDED = QUICKSTART / "recorded"
PROGRAM = None

# x: f32[?,3] -> softmax; indices: i32[?] -> rows of a table of two.
SMALL = g.graph(
    g.placeholder("x", g.FLOAT, [None, 3]),
    g.node("probs", "Softmax", ["x"], g.type_attr("T", g.FLOAT)),
    g.placeholder("a=b", g.INT32, [None]),
    g.const("table", g.FLOAT, [2, 2], g.floats(1, 2, 3, 4)),
    g.const("axis", g.INT32, [], b"\0\0\0\0"),
    g.node("rows", "GatherV2", ["table", "a=b", "axis"], g.type_attr("Tparams", g.FLOAT),
           g.type_attr("Tindices", g.INT32), g.type_attr("Taxis", g.INT32)),
)


class CliTest(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="oncilla-cli-"))
        self.addCleanup(shutil.rmtree, self.dir)
        self.small = self.write("small.pb", SMALL)

    def write(self, name, data):
        path = self.dir / name
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return str(path)

    def run_cli(self, *args, env=None, **kw):
        full = {**os.environ, "ONCILLA_CACHE_DIR": str(self.dir / "cache"), **(env or {})}
        return subprocess.run([PROGRAM, *map(str, args)], capture_output=True, text=True, env=full,
                              timeout=300, cwd=self.dir, **kw)

    def ok(self, *args, **kw):
        out = self.run_cli(*args, **kw)
        self.assertEqual(out.returncode, 0, out.stderr)
        return out

    def fails(self, code, *args, says=(), **kw):
        """Fails with `code`, nothing on stdout, and the error as the last line of stderr."""
        out = self.run_cli(*args, **kw)
        self.assertEqual(out.returncode, code, out.stderr)
        last = out.stderr.splitlines()[-1]
        self.assertRegex(last, r"^oncilla.*: error: ")
        for text in says:
            self.assertIn(text, out.stderr)
        return out

    def document(self, name, out):
        document = json.loads(out.stdout)
        path = ROOT / f"tools/oncilla/schema/{name}.schema.json"
        self.assertEqual(schema.problems(document, json.loads(path.read_text())), [])
        return document

    def close(self, actual, expected, tolerance=1e-4):
        most = max(abs(v) for v in expected)
        self.assertEqual(len(actual), len(expected))
        for a, b in zip(actual, expected):
            self.assertLessEqual(abs(a - b), tolerance * (abs(b) + 0.1 * most))


class CommandLine(CliTest):
    def test_help_and_version(self):
        out = self.ok("--help")
        for command in ("run", "inspect", "convert", "devices", "bench", "cache"):
            self.assertIn(command, out.stdout)
            self.assertIn("Example", self.ok(command, "--help").stdout)
        self.assertRegex(self.ok("--version").stdout, r"^oncilla \d+\.\d+\.\d+\n.*OpenCL")

    def test_unknown_words_name_the_nearest(self):
        self.fails(2, "rnu", "x", says=["unknown command 'rnu'", "did you mean 'run'?"])
        self.fails(2, "run", MODEL, "--devise", "cpu", says=["--devise", "did you mean '--device'?"])
        self.fails(2, "run", "--topk=3", "--labelz=x", MODEL, says=["did you mean '--labels'?"])
        self.fails(2, "cache", "clean", says=["unknown command 'clean'", "'clear'"])
        self.fails(2, "run", MODEL, "more", says=["unexpected argument 'more'"])
        self.fails(2, "run", says=["MODEL"])
        self.fails(2, "run", MODEL, "--topk", "many", says=["--topk"])
        self.fails(2, says=["a command is missing"])

    def test_flags_that_need_each_other(self):
        self.fails(2, "run", MODEL, "--svg", "x.svg", says=["--svg needs --topk"])
        self.fails(2, "run", MODEL, "--labels", "x", says=["--labels needs --topk"])
        steps = self.write("steps.json", "[]")
        self.fails(2, "run", MODEL, "--steps", steps, "--output", "logits", says=["--steps"])


class RunQuickstart(CliTest):
    def check_outputs(self, folder):
        descr, sizes, logits = g.read_npy(folder / "logits.npy")
        self.assertEqual((descr, sizes), ("<f4", (1, 1000)))
        self.close(logits, g.read_npy(RECORDED / "coffee.logits.npy")[2])
        label = json.loads((folder / "label.json").read_text())
        self.assertEqual(label, json.loads((RECORDED / "coffee.label.json").read_text()))

    def test_recorded_answers(self):
        out = self.ok("run", MODEL, "--input", f"image={COFFEE}", "--output-dir", "out")
        self.check_outputs(self.dir / "out")
        self.assertRegex(out.stdout, r"label +string\[1,5\] +\"espresso\"")
        self.assertIn("CPU:0 ran", out.stderr)
        self.assertIn("wrote 3 files to out", out.stderr)

    def test_what_one_run_writes_another_reads(self):
        self.ok("run", MODEL, "--input", f"image={COFFEE}", "--output", "probability",
                "--output-dir", "one", "-q")
        self.assertEqual(os.listdir(self.dir / "one"), ["probability.npy"])
        (self.dir / "in").mkdir()
        (self.dir / "in/x%3A0.npy").write_bytes(g.npy("<f4", [1, 3], g.floats(1, 2, 3)))
        self.ok("run", self.small, "--input-dir", "in", "--output", "probs", "--output-dir", "out")
        self.close(g.read_npy(self.dir / "out/probs.npy")[2], [0.09003057, 0.24472848, 0.66524094])

    def test_top_classes_and_picture(self):
        out = self.ok("run", MODEL, "--input", f"image={COFFEE}", "--topk", "3", "--svg", "e.svg")
        lines = out.stdout.splitlines()
        self.assertRegex(lines[1], r"^  espresso 0\.95 +#+$")
        self.assertEqual(len(lines), 4)
        svg = (self.dir / "e.svg").read_text()
        self.assertIn("espresso", svg)
        self.assertIn("data:image/png;base64,", svg)
        labels = self.write("labels.txt", "".join(f"label {i}\n" for i in range(1000)))
        out = self.ok("run", MODEL, "--input", f"image={COFFEE}", "--output", "logits", "--topk",
                      "1", "--labels", labels)
        self.assertRegex(out.stdout, r"label 967 0\.9")
        self.assertIn("softmax applied", out.stderr)
        short = self.write("short.txt", "one\ntwo\n")
        self.fails(2, "run", MODEL, "--input", f"image={COFFEE}", "--topk", "1", "--labels", short,
                   says=["1000 classes", "2"])

    def test_trace(self):
        out = self.ok("run", MODEL, "--input", f"image={COFFEE}", "--trace", "t.json")
        self.assertRegex(out.stderr, r"device:CPU:0: \d+ % of the run in kernels")
        events = json.loads((self.dir / "t.json").read_text())["traceEvents"]
        rows = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
        self.assertEqual(rows[1], "host")
        kernels = [e for e in events if e["ph"] == "X" and rows[e["tid"]] == "CPU:0"]
        self.assertGreater(len(kernels), 30)
        run = next(e for e in events if e["name"] == "run")
        for e in kernels:
            self.assertLessEqual(e["ts"] + e["dur"], run["dur"] + 1)
        document = self.document("run", self.ok("run", MODEL, "--input", f"image={COFFEE}",
                                                "--trace", "t.json", "--json"))
        self.assertGreater(document["steps"][0]["shares"][0]["busy"], 0.1)
        steps = self.write("steps.json", "[]")
        self.fails(2, "run", MODEL, "--steps", steps, "--trace", "t.json", says=["--trace"])

    def test_json(self):
        out = self.ok("run", MODEL, "--input", f"image={COFFEE}", "--topk", "2", "--json")
        document = self.document("run", out)
        step = document["steps"][0]
        self.assertEqual(step["top"]["rows"][0][0]["label"], "espresso")
        self.assertEqual([o["name"] for o in step["outputs"]], ["label", "logits", "probability"])
        self.assertEqual(document["counters"]["graphs_compiled"], 1)
        self.assertEqual(document["counters"]["plans_made"], 1)
        self.assertGreater(step["run"]["planned_nodes"], 0)  # the sizes of its resize
        self.assertRegex(out.stderr, r"CPU:0 ran \d+ nodes.*, \d+ computed while planning")

    def test_steps(self):
        steps = [{"inputs": {"image": str(QUICKSTART / f"{name}.png")}, "outputs": ["label"],
                  "output_dir": f"out/{name}"} for name in ("coffee", "chelsea")]
        self.ok("run", MODEL, "--steps", self.write("steps.json", json.dumps(steps)))
        for name, label in (("coffee", "espresso"), ("chelsea", "tiger cat")):
            data = json.loads((self.dir / f"out/{name}/label.json").read_text())
            self.assertEqual(data["data"][0], label)
        for bad, says in (("{}", "not a JSON list"), ('[{"input": {}}]', "did you mean 'inputs'"),
                          ('[{"outputs": "x"}]', "wrong type")):
            self.fails(9, "run", MODEL, "--steps", self.write("bad.json", bad), says=[says])

    def test_quiet(self):
        out = self.ok("run", MODEL, "--input", f"image={COFFEE}", "-q")
        self.assertEqual(out.stderr, "")

    def test_placement(self):
        out = self.ok("run", MODEL, "--input", f"image={COFFEE}", "--placement")
        self.assertRegex(out.stderr, r"\(Conv\): /job:localhost/replica:0/task:0/device:CPU:0")

    def test_places_and_fallbacks(self):
        two = self.write("two.txt", b"device_count { key: 'CPU' value: 2 }")
        run = ("run", MODEL, "--input", f"image={COFFEE}", "--output", "logits", "--config", two,
               "--device", "cpu")
        out = self.ok(*run, "--place", "op:Conv2D=/CPU:1", "--place", "*head*=cpu:0", "--placement")
        self.assertRegex(out.stderr, r"\(Conv\): \S+/device:CPU:1  requested: /CPU:1 for nodes of type Conv2D")
        self.assertRegex(out.stderr, r"CPU:0 ran \d+ nodes, CPU:1 ran \d+ nodes")
        out = self.ok(*run, "--place", "*=/GPU:9")
        self.assertIn("not on '/GPU:9': there is no such device", out.stderr)
        self.fails(5, *run, "--place", "*=/GPU:9", "--strict", says=["there is no device '/GPU:9'"])
        self.fails(2, *run, "--place", "conv", says=["--place conv: expected NODES=SPEC"])
        self.fails(2, *run, "--place", "*=/gpu:x", says=["expected a number"])
        small = self.write("small.txt", b"""
            logical_devices { physical: 'CPU:0' memory_limit_bytes: 100000 }
            logical_devices { physical: 'CPU:0' }""")
        run = ("run", MODEL, "--input", f"image={COFFEE}", "--output", "logits", "--config", small,
               "--device", "cpu")
        self.fails(6, *run, says=["of a limit of 97.66 KiB"])
        out = self.ok(*run, "--fallback", "gpu:7,cpu:1")
        self.assertIn("not on CPU:0: ", out.stderr)


class RunSmall(CliTest):
    def test_names_with_equal_signs_and_without_index(self):
        index = self.write("i=1.npy", g.npy("<i4", [2], b"\1\0\0\0\0\0\0\0"))
        out = self.ok("run", self.small, "--input", f"a=b={index}", "--output", "rows")
        self.assertIn("3 4 1 2", out.stdout)

    def test_random_is_the_same_everywhere(self):
        args = ("run", self.small, "--random", "--seed", "7", "--shape", "x:0=2x3", "--output",
                "probs:0", "--json")
        first, second = self.ok(*args), self.ok(*args)
        data = [json.loads(o.stdout)["steps"][0]["outputs"][0]["data"] for o in (first, second)]
        self.assertEqual(data[0], data[1])
        # From the header of tools/oncilla/files/random_tensor.h by a few lines of Python.
        import math
        def splitmix(state):
            mask = (1 << 64) - 1
            while True:
                state = (state + 0x9E3779B97F4A7C15) & mask
                z = state
                z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & mask
                z = ((z ^ z >> 27) * 0x94D049BB133111EB) & mask
                yield z ^ z >> 31
        name_hash = 0xCBF29CE484222325
        for c in b"x:0":
            name_hash = ((name_hash ^ c) * 0x100000001B3) & (1 << 64) - 1
        numbers = splitmix(name_hash ^ (7 * 0x9E3779B97F4A7C15) & (1 << 64) - 1)
        x = [(next(numbers) >> 40) / (1 << 24) for _ in range(6)]
        expected = []
        for row in (x[:3], x[3:]):
            total = sum(math.exp(v) for v in row)
            expected += [math.exp(v) / total for v in row]
        self.close(data[0], expected)

    def test_seeds_are_whole_numbers(self):
        args = ("run", self.small, "--random", "--shape", "x:0=2x3", "--output", "probs:0")
        self.ok(*args, "--seed", str(2**64 - 1))
        for seed in ("99999999999999999999", "-1", "1.5", "7x", ""):
            self.fails(2, *args, "--seed", seed, says=["--seed", "is not a whole number"])

    def test_closed_standard_streams_are_no_files_of_ours(self):
        args = [PROGRAM, "run", self.small, "--random", "--shape", "x:0=2x3", "--output", "probs:0"]
        env = {**os.environ, "ONCILLA_CACHE_DIR": str(self.dir / "cache"),
               "OCL_ICD_VENDORS": "pocl.icd", "ONCILLA_OPENCL_CPU_DEVICES": "1"}
        for device in ("cpu", "auto"):
            for closed in ("<&- >&- 2>&-", ">&-"):
                out = subprocess.run(["sh", "-c", f'exec "$@" {closed}', "sh", *args, "--device",
                                      device], env=env, capture_output=True, timeout=300,
                                     cwd=self.dir)
                self.assertEqual(out.returncode, 9, (device, closed))

    @unittest.skipUnless(os.geteuid() == 0, "needs to become somebody who may not read")
    def test_a_folder_that_may_not_be_read_says_so(self):
        self.dir.chmod(0o755)
        for mode in (0o000, 0o444):
            folder = self.dir / f"model{mode}"
            folder.mkdir()
            (folder / "saved_model.pb").write_bytes(SMALL)
            folder.chmod(mode)
            out = subprocess.run([PROGRAM, "inspect", str(folder)], capture_output=True, text=True,
                                 user=65534, cwd="/", timeout=300)
            self.assertEqual(out.returncode, 3, out.stderr)
            self.assertIn("ermission denied", out.stderr)

    def test_other_formats(self):
        raw = self.write("x.bin", g.floats(1, 2, 3, 1, 2, 3))
        out = self.ok("run", self.small, "--input", f"x={raw}", "--output", "probs")
        self.assertIn("f32[2,3]", out.stdout)
        tensor = g.field(1, 1) + g.field(1, 3) + g.field(2, 1) + g.field(9, g.floats(1, 2, 3))
        out = self.ok("run", self.small, "--input", f"x={self.write('x.pb', tensor)}", "--output",
                      "probs")
        self.assertIn("0.0900306", out.stdout)

    def test_intermediate_output(self):
        out = self.ok("run", MODEL, "--input", f"image={COFFEE}", "--output", "logits", "--json")
        self.assertEqual(self.document("run", out)["steps"][0]["outputs"][0]["shape"], [1, 1000])

    def test_full_disk(self):
        with open("/dev/full", "w") as full:
            env = {**os.environ, "ONCILLA_CACHE_DIR": str(self.dir)}
            out = subprocess.run([PROGRAM, "inspect", self.small], stdout=full, env=env,
                                 stderr=subprocess.PIPE, text=True)
        self.assertEqual(out.returncode, 9)
        self.assertIn("standard output", out.stderr.splitlines()[-1])


class BadModels(CliTest):
    def test_not_a_model(self):
        self.fails(3, "run", self.write("x", "hello"), says=["not a model"])
        self.fails(3, "inspect", self.write("empty", b""), says=["empty"])
        self.fails(3, "run", "absent", says=["absent"])
        self.fails(3, "run", self.dir, says=["saved_model.pb"])
        self.fails(4, "run", self.write("k.h5", b"\x89HDF\r\n\x1a\n" + bytes(100)), says=["HDF5"])

    def test_truncated(self):
        folder = self.dir / "cut"
        shutil.copytree(MODEL, folder)
        path = folder / "saved_model.pb"
        data = path.read_bytes()
        for part in (0.99, 0.5, 0.01):
            path.write_bytes(data[:int(len(data) * part)])
            self.fails(3, "run", folder, "--input", f"image={COFFEE}", says=["saved_model.pb"])
        for part in range(1, len(SMALL), 7):
            out = self.run_cli("run", self.write("cut.pb", SMALL[:part]), "--random", "--shape",
                               "x=1x3")
            self.assertIn(out.returncode, (0, 2, 3), (part, out.stderr))

    def test_missing_and_damaged_shard(self):
        folder = self.dir / "copy"
        shutil.copytree(MODEL, folder)
        shard = folder / "variables/variables.data-00000-of-00001"
        data = shard.read_bytes()
        args = ("run", folder, "--input", f"image={COFFEE}")
        shard.write_bytes(data[:len(data) // 2])
        self.fails(3, *args, says=["variables.data-00000-of-00001"])
        shard.unlink()
        self.fails(3, *args, says=["variables.data-00000-of-00001"])
        (folder / "variables/variables.index").unlink()
        self.fails(3, *args, says=["variables"])

    def test_unsupported_ops_are_all_listed(self):
        nodes = [g.placeholder("x", g.FLOAT, [2])]
        for op in ("EncodeProto", "MadeUpOp", "RngReadAndSkip"):
            nodes.append(g.node(f"n_{op}", op, ["x"]))
        path = self.write("u.pb", g.graph(*nodes))
        out = self.run_cli("run", path, "--random")
        self.assertEqual(out.returncode, 4, out.stderr)
        for text in ("EncodeProto", "MadeUpOp", "RngReadAndSkip", "n_MadeUpOp"):
            self.assertIn(text, out.stderr)
        self.assertRegex(out.stderr.splitlines()[-1], r"^oncilla run: error: ")
        self.assertEqual(self.run_cli("inspect", path).returncode, 4)


class BadInput(CliTest):
    def test_names(self):
        self.fails(2, "run", MODEL, "--input", f"imag={COFFEE}", says=["'imag'", "'image'?"])
        self.fails(2, "run", MODEL, "--input", f"image={COFFEE}", "--output", "logit",
                   says=["'logit'", "'logits'"])
        self.fails(2, "run", MODEL, "--signature", "serving", says=["serving_default"])
        self.fails(2, "run", MODEL, "--tags", "train", says=["train", "serve"])
        self.fails(2, "run", MODEL, says=["image", "no value", "--random"])
        self.fails(2, "run", MODEL, "--input", f"image={COFFEE}", "--input", "image=x",
                   says=["twice"])

    def test_types_and_shapes(self):
        wrong = self.write("x.npy", g.npy("<f8", [1, 3], bytes(24)))
        self.fails(2, "run", self.small, "--input", f"x={wrong}", says=["f32[?,3]", "f64[1,3]"])
        wrong = self.write("x.npy", g.npy("<f4", [1, 4], bytes(16)))
        self.fails(2, "run", self.small, "--input", f"x={wrong}", says=["f32[?,3]", "f32[1,4]"])
        self.fails(2, "run", self.small, "--random", "--shape", "x=1x4", says=["[1,4]"])
        self.fails(2, "run", self.small, "--random", "--shape", "x=1xa", says=["1xa"])
        self.fails(2, "run", MODEL, "--random", says=["--shape image="])

    def test_users_files(self):
        self.fails(9, "run", MODEL, "--input", "image=absent.png", says=["absent.png"])
        cut = self.write("cut.png", COFFEE.read_bytes()[:5000])
        self.fails(9, "run", MODEL, "--input", f"image={cut}", says=["cut.png", "PNG"])
        objects = ROOT / "testdata/files/objects.npy"
        self.fails(9, "run", self.small, "--input", f"x={objects}", says=["Python objects"])
        self.fails(9, "run", self.small, "--input-dir", "absent", "--output", "probs",
                   says=["absent"])
        labels = ("--topk", "1", "--labels", "absent.txt")
        self.fails(9, "run", MODEL, "--input", f"image={COFFEE}", *labels, says=["absent.txt"])
        self.fails(9, "run", MODEL, "--input", f"image={COFFEE}", "--output-dir",
                   self.write("file", "x"), says=["--output-dir"])

    def test_index_out_of_range(self):
        index = self.write("i.npy", g.npy("<i4", [1], b"\x07\0\0\0"))
        out = self.fails(1, "run", self.small, "--input", f"a=b={index}", "--output", "rows",
                         says=["rows", "7"])
        self.assertEqual(out.stdout, "")

    def test_memory_report(self):
        run = ["run", MODEL, "--input", f"image={COFFEE}", "-q"]
        text = self.ok(*run, "--memory-report", "-").stdout
        for words in ("taken of a limit of", "constants on CPU:0", "while node '", "over time"):
            self.assertIn(words, text)
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "memory.json")
            self.fails(6, *run, "--memory-limit", "19MiB", "--memory-report", file,
                       says=["the run takes ", "while node '"])
            with open(file, encoding="utf-8") as report:
                shortage = json.load(report)["last_shortage"]
            self.assertGreater(shortage["asked_bytes"], 0)

    def test_memory_limit(self):
        self.fails(6, "run", MODEL, "--input", f"image={COFFEE}", "--memory-limit", "1MiB",
                   says=["1.00 MiB"])
        for bad in ("many", "1XB", "0", "1e30"):
            self.fails(2, "run", MODEL, "--memory-limit", bad)


class Inspect(CliTest):
    def test_text(self):
        out = self.ok("inspect", MODEL)
        for text in ("SavedModel", "serving_default", "image  u8[?,?,?,3]", "parameters 4.6", "Conv",
                     "CPU:0"):
            self.assertIn(text, out.stdout)

    def test_parts(self):
        shape = ("--shape", "image=1x224x224x3")
        self.assertIn("== imported", self.ok("inspect", MODEL, "--graph").stdout)
        self.assertIn("Conv", self.ok("inspect", MODEL, "--plan", *shape).stdout)
        self.assertIn("Conv", self.ok("inspect", MODEL, "--kernels", *shape).stdout)
        self.assertIn("peak", self.ok("inspect", MODEL, "--memory", *shape).stdout)
        self.assertIn("CPU:0", self.ok("inspect", MODEL, "--placement").stdout)
        self.fails(2, "inspect", MODEL, "--memory", says=["--shape image="])

    def test_json(self):
        shape = ("--shape", "image=1x224x224x3")
        document = self.document("inspect", self.ok("inspect", MODEL, "--json", *shape))
        self.assertEqual(document["signatures"][0]["inputs"][0]["dtype"], "u8")
        # EfficientNet-Lite0 is known for 4.65 million parameters and 407 million multiply-adds.
        self.assertAlmostEqual(document["parameters"] / 1e6, 4.65, delta=0.1)
        self.assertAlmostEqual(document["operations"] / 2e6, 407, delta=40)
        open_sizes = self.document("inspect", self.ok("inspect", MODEL, "--json"))
        self.assertIsNone(open_sizes["operations"])

    def test_an_input_that_is_a_shape(self):
        model = self.write("reshape.pb", g.graph(
            g.placeholder("x", 1, (6,)), g.placeholder("s", 3, (2,)),
            g.node("neg", "Neg", ("x",), g.type_attr("T", 1)),
            g.node("y", "Reshape", ("neg", "s"), g.type_attr("T", 1), g.type_attr("Tshape", 3))))
        self.assertIn("--input s", self.ok("inspect", model).stdout)
        self.fails(2, "inspect", model, "--plan", says=["shapes depend on the values of input 's"])
        sizes = self.write("s.npy", g.npy("<i4", (2,), struct.pack("<2i", 3, 2)))
        plan = self.ok("inspect", model, "--plan", "--input", f"s={sizes}").stdout
        self.assertIn("f32[3,2]", plan)
        self.ok("inspect", model, "--memory", "--json", "--input", f"s={sizes}")

    def test_what_is_computed_has_a_bound(self):
        # 2^40 times 16 letters, whose number is a size: planning computes the text.
        text = g.field(1, g.STRING) + g.field(2, b"") + g.field(8, "x" * 16)
        nodes = [g.node("s0", "Const", (), g.type_attr("dtype", g.STRING), g.attr("value", g.field(8, text)))]
        for i in range(40):
            nodes.append(g.node(f"s{i + 1}", "StringJoin", (f"s{i}", f"s{i}"), g.attr("N", g.field(3, 2))))
        model = self.write("join.pb", g.graph(*nodes, g.node("size", "StringLength", ("s40",))))
        self.fails(6, "inspect", model, "--plan", says=["--memory-limit", "1.00 GiB"])
        self.fails(6, "inspect", model, "--plan", "--memory-limit", "64MiB", says=["67108864"])


class Bench(CliTest):
    def test_text_and_json(self):
        args = ("bench", self.small, "--output", "probs", "--shape", "x=64x3", "--samples", "7")
        out = self.ok(*args)
        for text in ("load", "first run", "median", "of 7 samples", "Softmax", "outside kernels"):
            self.assertIn(text, out.stdout)
        document = self.document("bench", self.ok(*args, "--json"))
        self.assertEqual(len(document["samples_s"]), 7)
        self.assertLessEqual(document["summary"]["min_s"], document["summary"]["median_s"])
        self.assertAlmostEqual(sum(op["share"] for op in document["ops"]), 1, places=6)
        self.assertGreater(document["outside_kernels_share"], 0)  # of so small a model, most
        self.assertLess(document["outside_kernels_share"], 1)

    def test_time_limit(self):
        model = QUICKSTART / "efficientnet_lite0"
        for command in (("bench",), ("run", "--random")):
            self.fails(7, *command, model, "--shape", "image=1x224x224x3", "--device", "cpu", "--timeout", "1",
                       says=["the run took longer than its time limit"])

    def test_terminated_while_a_file_is_written(self):
        # Unfinished files must be removed when a signal ends the process.
        for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
            process = subprocess.Popen([PROGRAM, "bench", self.small, "--output", "probs", "--samples",
                                        "1000000"], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            time.sleep(1.5)
            process.send_signal(number)
            process.communicate(timeout=30)
            self.assertEqual(process.returncode, code)

    def test_scores_that_are_no_numbers(self):
        # y = x / 0: NaN, infinities of both signs, all at once and alone.
        def npy(values):
            header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, %d), }" % len(values)
            header += " " * (63 - (len(header) + 10) % 64) + "\n"
            return (b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() +
                    struct.pack("<%df" % len(values), *values))
        model = self.dir / "same.pbtxt"
        model.write_text('node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }\n'
                         'node { name: "y" op: "Neg" input: "x" attr { key: "T" value { type: DT_FLOAT } } }\n')
        for values in ((float("nan"), 1.0, 2.0), (float("inf"), 1.0, 2.0), (float("-inf"),) * 3,
                       (float("nan"),) * 3):
            given = self.dir / "scores.npy"
            given.write_bytes(npy(values))
            run = ("run", model, "--input", f"x={given}", "--output", "y:0", "--topk", "2", "--device", "cpu")
            self.ok(*run)
            self.ok(*run, "--json")
            self.ok(*run, "--svg", self.dir / "bars.svg")

    def test_convert_replaces_no_device_and_follows_links(self):
        pipe = self.dir / "pipe"
        os.mkfifo(pipe)
        self.fails(9, "convert", MODEL, "-o", pipe, says=["pipe"])
        self.assertTrue(stat.S_ISFIFO(os.stat(pipe).st_mode))
        target, link = self.dir / "target.oncilla", self.dir / "link.oncilla"
        target.write_text("old")
        link.symlink_to(target)
        self.ok("convert", MODEL, "-o", link, "--no-verify")
        self.assertTrue(link.is_symlink())
        self.assertGreater(target.stat().st_size, 1000)
        out = self.fails(9, "convert", MODEL, "-o", self.dir / "none" / "x", says=[f"{self.dir}/none/x'"])
        self.assertNotIn("unverified", out.stderr)

    def test_wrong_arguments_are_told_with_their_flag(self):
        self.fails(2, says=["a command is missing. There is: run, inspect"])
        self.fails(2, "help", says=["'--help'"])
        self.fails(2, "version", says=["'--version'"])
        self.fails(2, "run", MODEL, "--random", "--shape", "image=axb", says=["--shape: 'axb'"])
        self.fails(2, "run", MODEL, "--random", "--memory-limit", "12XB", says=["--memory-limit: '12XB'"])
        self.fails(2, "run", MODEL, "--random", "--memory-limit", "999999999999GB", says=["below 2^63"])
        self.fails(2, "bench", MODEL, "--duration", "nan", says=["'nan' is not a number of seconds"])
        plain = self.dir / "plain"
        plain.write_text("")
        self.fails(2, "cache", "list", "--cache-dir", plain, says=["is a file"])
        for wrong in ("''", "z"):
            out = self.fails(2, "run", self.small, "--input", f"{wrong}=1", "--device", "cpu")
            self.assertNotIn("did you mean", out.stderr)

    def test_convert_never_replaces_its_source(self):
        folder = self.dir / "saved"
        shutil.copytree(MODEL, folder)
        graph = folder / "saved_model.pb"
        before = graph.read_bytes()
        for out in (graph, folder / "variables" / "new.oncilla", folder / "other.oncilla"):
            self.fails(2, "convert", folder, "-o", out, says=["the model's own folder"])
            self.fails(2, "convert", folder, "-o", out, "--to", "graphdef", says=["the model's own folder"])
        self.assertEqual(graph.read_bytes(), before)
        self.ok("convert", folder, "-o", "own.oncilla", "--no-verify")
        own, link = self.dir / "own.oncilla", self.dir / "link"
        link.symlink_to(own)
        before = own.read_bytes()
        for out in (own, link, self.dir / "saved" / ".." / "own.oncilla"):
            self.fails(2, "convert", own, "-o", out, says=["is the model itself"])
        self.assertEqual(own.read_bytes(), before)

    def test_names_are_shown_safely(self):
        model = self.dir / "names.pbtxt"
        model.write_text('node { name: "x" op: "No\\033[31mSuch" }\n')
        out = self.fails(4, "run", model, "--random", "--device", "cpu", says=["\\x1b[31m"])
        self.assertNotIn("\x1b", out.stderr)
        model.write_text('node { name: "x\\ny" op: "No\\nSuch" }\n')
        self.fails(4, "run", model, "--random", "--device", "cpu", says=["'No\\nSuch' in 1 node: 'x\\ny'"])
        relu = self.write("names.pb", g.graph(g.placeholder("x", g.FLOAT, [2]),
                                              g.node("y\nz", "Relu", ["x"], g.type_attr("T", g.FLOAT))))
        for part in ("--graph", "--placement", "--kernels"):
            self.assertNotIn("y\nz", self.ok("inspect", relu, part).stdout)
        self.assertIn("  y\\nz:0  f32[2]", self.ok("inspect", relu).stdout)
        self.assertIn("y\\nz:0  f32[2]", self.ok("run", relu, "--random").stdout)

    def test_interrupt(self):
        process = subprocess.Popen([PROGRAM, "bench", self.small, "--output", "probs", "--samples",
                                    "1000000"], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        time.sleep(1.5)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 130)
        self.assertIn("interrupted", err.splitlines()[-1])


class Cache(CliTest):
    def test_list_and_clear(self):
        listed = self.document("cache_list", self.ok("cache", "list", "--json"))
        self.assertEqual(listed["entries"], [])
        self.ok("devices", "--opencl-cpu-devices")
        self.ok("cache", "list")
        cleared = self.document("cache_clear", self.ok("cache", "clear", "--json"))
        self.assertGreaterEqual(cleared["freed_bytes"], 0)
        again = self.document("cache_list", self.ok("cache", "list", "--json"))
        self.assertEqual(again["bytes"], 0)


class Ops(CliTest):
    def test_json(self):
        document = self.document("ops", self.ok("ops", "--json"))
        self.assertIn("Softmax", [op["name"] for op in document["ops"]])


if __name__ == "__main__":
    at = sys.argv.index("--oncilla")
    PROGRAM = os.path.abspath(sys.argv[at + 1])
    del sys.argv[at:at + 2]
    unittest.main()
