#!/usr/bin/env python3
"""What the program does with TensorFlow's models in particular, and what it makes of any model: convert, inspect --all, stored
devices, tensors inside a graph.
    tensorflow_test.py --oncilla PROGRAM [unittest arguments]"""

import json
import os
import struct
import sys
import unittest

import cli_test
import graphdef as g
from cli_test import COFFEE, MODEL, MODELS, RECORDED, CliTest


class Convert(CliTest):
    def converted(self, *flags, model=MODEL):
        out = self.ok("convert", model, "-o", "m.oncilla", *flags)
        self.assertEqual(list(self.dir.glob("*.unverified")), [])
        return out

    def test_quickstart(self):
        out = self.converted("--input", f"image={COFFEE}")
        self.assertRegex(out.stdout, r"m.oncilla: .*, from SavedModel, 1 signature")
        self.assertRegex(out.stdout, r"logits  max error 0 ")
        inspected = self.document("inspect", self.ok("inspect", "m.oncilla", "--json"))
        self.assertEqual(inspected["model"]["format"], "Oncilla")
        self.ok("run", "m.oncilla", "--input", f"image={COFFEE}", "--output-dir", "out")
        label = json.loads((self.dir / "out/label.json").read_text())
        self.assertEqual(label, json.loads((RECORDED / "coffee.label.json").read_text()))

    def test_shapes_names_and_precision(self):
        weights = g.floats(*[i / 7 for i in range(96)])
        model = self.write("w.pb", g.graph(
            g.placeholder("x", g.FLOAT, [None, 8]), g.const("w", g.FLOAT, [8, 12], weights),
            g.node("y", "MatMul", ["x", "w"], g.type_attr("T", g.FLOAT)),
            g.node("z", "Relu", ["y"], g.type_attr("T", g.FLOAT))))
        whole = self.converted("--shape", "x=4x8", "--outputs", "y,z", model=model)
        self.assertIn("x:0 f32[4,8]", whole.stdout)
        self.assertIn("  y  max error 0", whole.stdout)
        self.assertIn("f32[4,12]", self.ok("inspect", "m.oncilla").stdout)
        half = self.converted("--precision", "fp16", model=model)
        self.assertIn("1 constants stored as f16", half.stdout)
        self.ok("run", "m.oncilla", "--random", "--output-dir", "half")
        self.ok("run", model, "--random", "--output-dir", "full")
        name = next((self.dir / "full").iterdir()).name
        full = g.read_npy(self.dir / "full" / name)[2]
        self.close(g.read_npy(self.dir / "half" / name)[2], full, 2e-3)
        self.assertNotEqual(g.read_npy(self.dir / "half" / name)[2], full)
        for flags, says in ((["--shape", "x=4x9"], "4x9"), (["--shape", "xx=4x8"], "'xx'"),
                            (["--outputs", "q"], "'q'"), (["--precision", "int3"], "int3")):
            with self.subTest(flags=flags):
                self.fails(2, "convert", model, "-o", "n.oncilla", *flags)
        self.assertFalse((self.dir / "n.oncilla").exists())

    def test_whole_numbers_are_compared_as_such(self):
        model = self.write("n.pb", g.graph(g.placeholder("n", g.INT32, [None, 3]),
                                           g.node("m", "Neg", ["n"], g.type_attr("T", g.INT32))))
        self.assertIn("  m:0  no value differs\n", self.converted("--shape", "n=2x3", model=model).stdout)

    def test_damaged(self):
        self.converted(model=self.small)
        whole = (self.dir / "m.oncilla").read_bytes()
        self.fails(3, "run", self.write("cut.oncilla", whole[:200]), "--random", says=["cut.oncilla"])
        self.fails(3, "run", self.write("flip.oncilla", whole[:70] + b"x" + whole[71:]), "--random",
                   says=["checksum"])
        self.fails(3, "inspect", self.write("bits.oncilla", whole[:-1] + b"x"), says=["checksum"])

    def test_bfloat16(self):
        weights = [1 + i / 97 for i in range(96)]
        model = self.write("w.pb", g.graph(
            g.placeholder("x", g.FLOAT, [1, 8]), g.const("w", g.FLOAT, [8, 12], g.floats(*weights)),
            g.node("y", "MatMul", ["x", "w"], g.type_attr("T", g.FLOAT))))
        out = self.converted("--precision", "bf16", model=model)
        self.assertIn("1 constants stored as bf16", out.stdout)
        ones = self.write("x.npy", g.npy("<f4", (1, 8), g.floats(*[1] * 8)))
        self.ok("run", "m.oncilla", "--input", f"x={ones}", "--output-dir", "out")
        rounded = [struct.unpack("<f", struct.pack("<I", bits & ~0xFFFF))[0] for bits in (
            bits + 0x7FFF + (bits >> 16 & 1) for bits in
            (struct.unpack("<I", struct.pack("<f", w))[0] for w in weights))]
        expected = [sum(rounded[12 * k + j] for k in range(8)) for j in range(12)]
        self.close(g.read_npy(next((self.dir / "out").iterdir()))[2], expected, 1e-6)

    def test_targets(self):
        state = MODELS.parent / "runs/state/model"
        add, reset = "StatefulPartitionedCall", "StatefulPartitionedCall_2"
        out = self.ok("convert", state, "-o", "m.oncilla", "--targets", f"{add},{reset}", "--no-verify")
        self.assertIn("4 signatures, 2 targets", out.stdout)
        x = self.write("x.npy", g.npy("<f4", (3,), g.floats(1, 2, 3)))
        steps = [{"signature": "add", "inputs": {"x": str(x)}},
                 {"signature": "add", "inputs": {"x": str(x)}, "targets": [add]},
                 {"signature": "get", "outputs": ["sum"], "output_dir": "before"},
                 {"signature": "get", "targets": [reset]},
                 {"signature": "get", "outputs": ["sum"], "output_dir": "after"}]
        for model in state, "m.oncilla":
            self.ok("run", model, "--steps", self.write("steps.json", json.dumps(steps)))
            self.assertEqual(g.read_npy(self.dir / "before/sum.npy")[2], (2, 4, 6))
            self.assertEqual(g.read_npy(self.dir / "after/sum.npy")[2], (0, 0, 0))
        run = ("run", "m.oncilla", "--signature", "get", "--target")
        self.fails(2, *run, "StatefulPartitionedCall_9", says=["did you mean", reset])
        self.fails(2, *run, reset, "--output", "sum", says=["one target at a time"])
        self.fails(2, "convert", state, "-o", "n.oncilla", "--targets", "nope", says=["Some target nodes not found"])

    def test_to_graphdef(self):
        out = self.ok("convert", MODEL, "-o", "frozen.pb", "--to", "graphdef", "--input", f"image={COFFEE}")
        for text in ("frozen.pb: ", "a GraphDef with 150 variables", "input   image:0  for 'image'", "logits  max error 0 "):
            self.assertIn(text, out.stdout)
        self.ok("run", "frozen.pb", "--input", f"image={COFFEE}", "--output", "label", "--output-dir", "out")
        label = json.loads((self.dir / "out/label.json").read_text())
        self.assertEqual(label, json.loads((RECORDED / "coffee.label.json").read_text()))
        counter = MODELS / "counter"
        self.fails(2, "convert", counter, "-o", "n.pb", "--to", "graphdef", says=["'counting', 'plain'"])
        self.fails(4, "convert", counter, "-o", "n.pb", "--to", "graphdef", "--signature", "counting",
                   says=["AssignAddVariableOp", "no state"])
        self.ok("convert", counter, "-o", "p.pb", "--to", "graphdef", "--signature", "plain")
        self.fails(2, "convert", counter, "-o", "n.pb", "--to", "graphdef", "--precision", "fp16", says=["--precision"])
        self.converted(model=self.small)
        self.fails(4, "convert", "m.oncilla", "-o", "n.pb", "--to", "graphdef", says=["this is Oncilla"])
        self.assertFalse((self.dir / "n.pb").exists())

    def test_inputs_that_cannot_be_made_up(self):
        model = self.write("index.pb", g.graph(
            g.const("table", g.FLOAT, [2, 2], g.floats(1, 2, 3, 4)),
            g.placeholder("i", g.INT32, [40]), g.const("axis", g.INT32, [], b"\0\0\0\0"),
            g.node("rows", "GatherV2", ["table", "i", "axis"], g.type_attr("Tparams", g.FLOAT),
                   g.type_attr("Tindices", g.INT32), g.type_attr("Taxis", g.INT32))))
        out = self.fails(1, "convert", model, "-o", "n.oncilla", says=["--input NAME=FILE"])
        self.assertFalse((self.dir / "n.oncilla").exists())
        self.ok("convert", model, "-o", "n.oncilla", "--no-verify")


class InspectAll(CliTest):
    def test_sizes_of_outputs_that_the_file_does_not_state(self):
        out = self.ok("inspect", self.small).stdout
        self.assertRegex(out, r"outputs, as their sizes follow from the graph\n(  .*\n)*  probs:0  f32\[\?,3\]\n")
        document = self.document("inspect", self.ok("inspect", self.small, "--json"))
        shapes = {o["name"]: o["shape"] for o in document["signatures"][0]["outputs"]}
        self.assertEqual(shapes["probs:0"][1:], [3])

    def test_all(self):
        out = self.ok("inspect", MODEL, "--all").stdout
        for text in ("tags {serve}", "signature 'serving_default' (the default), method tensorflow/serving/predict",
                     "input   image  uint8[?,?,?,3]  serving_default_image:0", "Conv2D 66", "'serving_default'  yes"):
            self.assertIn(text, out)
        document = self.document("inspect_all", self.ok("inspect", MODEL, "--all", "--json"))
        self.assertEqual(document["meta_graphs"][0]["tags"], ["serve"])
        counter = MODELS / "counter"
        out = self.ok("inspect", counter, "--all").stdout
        for text in ("function counting(x: f32[?,3])", "Variable_1  float[]  4 B  changes", "'/device:CPU:*'  5 nodes",
                     "in the checkpoint 2 tensors, 16 B", "'counting'  yes; state: Variable_1"):
            self.assertIn(text, out)
        graph = self.document("inspect_all", self.ok("inspect", counter, "--all", "--json"))["meta_graphs"][0]
        self.assertEqual(sum(device["nodes"] for device in graph["stored_devices"]), 25)
        self.assertEqual(graph["checkpoint"], {"tensors": 2, "bytes": 16})
        tables = MODELS.parent / "runs/old_tables/model"
        self.assertIn("state: hash_table", self.ok("inspect", tables, "--all").stdout)

    def test_all_of_what_is_not_supported(self):
        path = self.write("u.pb", g.graph(g.placeholder("x", g.FLOAT, [2]), g.node("y", "MadeUpOp", ["x"])))
        self.assertRegex(self.ok("inspect", path, "--all").stdout, "no: .*'MadeUpOp' in 1 node: 'y'")
        found = self.document("inspect_all", self.ok("inspect", path, "--all", "--json"))["supported"]
        self.assertFalse(found[0]["supported"])
        self.fails(3, "inspect", self.write("bad.pb", b"nothing"), "--all", says=["not a model"])


class InnerTensors(CliTest):
    def test_feeds_and_fetches(self):
        graph = MODELS.parent / "text/frozen.pbtxt"
        y = self.write("y.npy", g.npy("<f4", (1, 2), g.floats(3, -1)))
        self.ok("run", graph, "--input", f"y:0={y}", "--output", "z:0", "--output-dir", "out")
        # z is y where that is positive, else the largest constant less y.
        self.close(g.read_npy(self.dir / "out/z%3A0.npy")[2], (3, 1e10))
        module = MODELS / "module"
        k = self.write("k.npy", g.npy("<f4", (), g.floats(2)))
        x = self.write("x.npy", g.npy("<f4", (1, 5), g.floats(1, 2, 3, 4, 5)))
        self.ok("run", module, "--input", f"k={k}", "--input", f"x={x}", "--output-dir", "keys")
        self.ok("run", module, "--input", f"serving_default_k:0={k}", "--input", f"serving_default_x:0={x}",
                "--output", "StatefulPartitionedCall:1", "--output-dir", "names")
        self.assertEqual((self.dir / "keys/z.npy").read_bytes(),
                         (self.dir / "names/StatefulPartitionedCall%3A1.npy").read_bytes())
        self.fails(2, "run", module, "--input", f"serving_default_k:0={k}", "--output", "y",
                   says=["You must feed a value for placeholder tensor 'serving_default_x' with dtype float"])
        self.fails(2, "run", graph, "--input", f"nope:0={y}", says=["FeedInputs: unable to find feed output nope:0"])
        self.fails(2, "run", graph, "--input", f"nope={y}", says=["there is no input 'nope'"])


class Defaults(CliTest):
    def test_an_input_that_is_not_given(self):
        model = self.write("d.pb", g.graph(
            g.const("c", g.FLOAT, [2], g.floats(1, 2)),
            g.node("p", "PlaceholderWithDefault", ["c"], g.type_attr("dtype", g.FLOAT)),
            g.node("y", "Neg", ["p"], g.type_attr("T", g.FLOAT)), g.placeholder("x", g.FLOAT, [2]),
            g.node("z", "AddV2", ["y", "x"], g.type_attr("T", g.FLOAT))))
        x = self.write("x.npy", g.npy("<f4", (2,), g.floats(5, 7)))

        def value(name, *flags):
            self.ok("run", model, "--output", f"{name}:0", "--output-dir", "out", *flags)
            return g.read_npy(self.dir / f"out/{name}%3A0.npy")[2]
        self.close(value("y"), (-1, -2))
        self.close(value("y", "--random"), (-1, -2))
        self.close(value("y", "--input", f"p={x}"), (-5, -7))
        self.close(value("z", "--input", f"x={x}"), (4, 5))
        self.close(value("z", "--input", f"x={x}", "--input", f"p:0={x}"), (0, 0))
        self.fails(2, "run", model, "--input", f"p={x}", says=["input 'x:0'", "has no value"])
        # Converted, it is an input like others, unless it is left out.
        for chosen, inputs in ((("--inputs", "x"), {"x:0"}), (("--inputs", "x,p"), {"x:0", "p:0"}), ((), {"x:0", "p:0"})):
            self.ok("convert", model, "-o", "m.oncilla", *chosen, "--shape", "p=2")
            signature = self.document("inspect", self.ok("inspect", "m.oncilla", "--json"))["signatures"][0]
            self.assertEqual({i["name"] for i in signature["inputs"]}, inputs)


class StoredDevices(CliTest):
    def test_modes(self):
        t = g.type_attr("T", g.FLOAT)
        model = self.write("d.pb", g.graph(
            g.placeholder("x", g.FLOAT, [2]), g.node("a", "Relu", ["x"], t, g.field(4, "/cpu:0")),
            g.node("b", "Softmax", ["a"], t, g.field(4, "/device:GPU:3"))))
        self.assertIn("2 nodes have stored devices", self.ok("inspect", model, "--device", "cpu").stdout)
        self.assertIn("'/device:GPU:3'  1 node: Softmax 1", self.ok("inspect", model, "--all").stdout)
        run = ("run", model, "--random", "--device", "cpu", "--stored-devices")
        self.assertNotIn("stored", self.ok(*run, "ignore").stderr)
        soft = self.ok(*run, "soft", "--placement").stderr
        self.assertIn("a (Relu): /job:localhost/replica:0/task:0/device:CPU:0  stored: /cpu:0", soft)
        self.assertIn("1 not on '/device:GPU:3': there is no such device", soft)
        report = self.document("run", self.ok(*run, "soft", "--json"))["steps"][0]["run"]
        self.assertEqual(report["relaxed"], [{"reason": "'/device:GPU:3': there is no such device", "nodes": 1}])
        self.fails(5, *run, "respect", says=["explicitly assigned to /device:GPU:3 but available devices are [ /job"])


class Parameters(CliTest):
    def test_batch_norm_has_one_per_channel(self):
        vectors = [g.const(n, g.FLOAT, [1], g.floats(v)) for n, v in (("s", 2), ("b", 5), ("m", 1), ("v", 1))]
        model = self.write("norm.pb", g.graph(
            g.placeholder("x", g.FLOAT, [None, 2, 2, None]), *vectors,
            g.node("y", "FusedBatchNormV3", ("x", "s", "b", "m", "v"), g.type_attr("T", g.FLOAT),
                   g.type_attr("U", g.FLOAT), g.attr("is_training", g.field(5, 0)))))
        run = ("run", model, "--device", "cpu", "--random", "--output", "y", "--shape")
        self.ok(*run, "x=1x2x2x1")
        self.fails(2, *run, "x=1x2x2x3", says=["node 'y'", "scale has 1 elements for 3 channels"])


class FedGraphs(CliTest):
    def test_a_graph_for_the_shapes_that_are_given(self):
        # How many groups the convolution has, only the input's channels say.
        strides = g.attr("strides", g.field(1, b"".join(g.field(3, 1) for _ in range(4))))
        model = self.write("groups.pb", g.graph(
            g.placeholder("x", g.FLOAT, [None] * 4), g.const("w", g.FLOAT, [1, 1, 2, 4], g.floats(*[1] * 8)),
            g.node("y", "Conv2D", ["x", "w"], g.type_attr("T", g.FLOAT), strides,
                   g.attr("padding", g.field(2, "SAME")))))
        for channels in (2, 4):
            shape = ("--shape", f"x=1x3x3x{channels}")
            self.assertIn("f32[1,3,3,4] from", self.ok("inspect", model, "--plan", *shape).stdout)
            document = self.document("inspect", self.ok("inspect", model, "--json", *shape))
            self.assertEqual(document["operations"], 2 * 9 * 4 * 2)
            self.assertEqual(self.ok("inspect", model, "--graph", *shape).stdout.count("== imported"), 1)
            x = self.write("x.npy", g.npy("<f4", (1, 3, 3, channels), g.floats(*[1] * 9 * channels)))
            self.ok("run", model, "--input", f"x={x}", "--output-dir", "out")
            self.assertEqual(g.read_npy(next((self.dir / "out").iterdir()))[1:], ((1, 3, 3, 4), (2,) * 36))
            self.ok("bench", model, "--samples", "5", "--duration", "0.01", *shape)
        self.fails(1, "inspect", model, "--plan", "--shape", "x=1x3x3x3", says=["'y' (Conv)"])
        x = self.write("x.npy", g.npy("<f4", (1, 3, 3, 3), g.floats(*[1] * 27)))
        self.fails(2, "run", model, "--input", f"x={x}", says=["'y' (Conv)"])


if __name__ == "__main__":
    at = sys.argv.index("--oncilla")
    cli_test.PROGRAM = os.path.abspath(sys.argv[at + 1])
    del sys.argv[at:at + 2]
    unittest.main()
