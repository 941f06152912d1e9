#!/usr/bin/env python3
"""Plans for simulated devices, and the reports of tools/kernel_report on them; no compiler is needed.
    kernel_report_test.py --plan KERNEL_PLAN [unittest arguments]"""

import copy
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools/kernels"))
import estimate  # noqa: E402
import golden    # noqa: E402
import isa       # noqa: E402
import nets      # noqa: E402
import picture   # noqa: E402
import plans     # noqa: E402
import report    # noqa: E402
import variants  # noqa: E402
from hardware import ARCH, DEVICES  # noqa: E402

PLAN = sys.argv.pop(sys.argv.index("--plan") + 1)
sys.argv.remove("--plan")


def product_kernel(arch="sm_86", registers=100, fma=256):
    """A kernel with one slice loop that loads, stores to local memory, waits and multiplies."""
    body = [("ldg", 16)] * 2 + [("barrier", 0)] + ([("lds", 16)] + [("fma", 0)] * 16) * (fma // 16)
    body += [("sts", 16)] * 2 + [("barrier", 0), ("branch", 0)]
    code = [("vec", 0)] * 20 + body + [("stg", 16)] * 16
    return isa.Kernel("k", arch, registers=registers, code=code, loops=[[20, 20 + len(body) - 1]])


def product_launch(size=1024):
    groups = (size // 128) ** 2
    return {"node": "n", "op": "MatMul", "source": "matmul/tiled.cl", "kernel": "tiled", "program": "p_1",
            "defines": dict(TX="16", TY="16", WM="8", WN="8", TILE_K="4"), "local": [16, 16, 1],
            "global": [16 * groups, 16, 1], "longest_loop": size, "work": "multiply-adds", "operations": 2 * size ** 3,
            "output_elements": size ** 2, "read_bytes": 8 * size ** 2, "written_bytes": 4 * size ** 2,
            "arguments": [{"name": "memory", "kind": "local", "bytes": 8192},
                          {"name": "b", "kind": "constant", "bytes": 4 * size ** 2}]}


class Plans(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.devices = list(DEVICES)
        cls.plans = plans.plans_of(["mobilenet_v2", "minilm_s128", "decoder_decode_256", "quickstart"], cls.devices,
                                   cls.folder.name, PLAN)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_every_device_runs_the_nets_whole(self):
        for net, by_device in self.plans.items():
            self.assertEqual(list(by_device), self.devices)
            for device, plan in by_device.items():
                self.assertTrue(plan["complete"], (net, device))
                # The quickstart's labels are text.
                elsewhere = [e for e in plan["elsewhere"] if e["reason"] != "host only"]
                self.assertEqual(elsewhere, [], (net, device))

    def test_launches_are_told_in_full(self):
        plan = self.plans["mobilenet_v2"]["rtx3060"]
        for launch in plan["launches"]:
            self.assertTrue((pathlib.Path(self.folder.name, "programs") / f"{launch['program']}.cl").exists())
            for total, group in zip(launch["global"], launch["local"]):
                self.assertEqual(total % group, 0)
            self.assertGreater(launch["written_bytes"], 0)
            named = [a["bytes"] for a in launch["arguments"] if a["kind"] in ("input", "constant", "scratch")]
            self.assertLessEqual(launch["read_bytes"], sum(named))
        self.assertEqual(sum(l["operations"] for l in plan["launches"]), plan["operations"])
        # 300 million multiply-adds, as its paper says.
        self.assertAlmostEqual(plan["operations"] / 6e8, 1, delta=0.02)

    def test_devices_are_planned_for_as_they_are(self):
        sizes = ("TM", "TN", "WARPS_M", "WARPS_N")
        tiles = {device: {tuple(l["defines"].get(size) for size in sizes) for l in plan["launches"]}
                 for device, plan in self.plans["mobilenet_v2"].items()}
        self.assertGreater(len({str(sorted(t, key=str)) for t in tiles.values()}), 1)
        for device in ("mi250", "rx6700", "rx7900"):
            for launch in self.plans["mobilenet_v2"][device]["launches"]:
                self.assertLessEqual(math.prod(launch["local"]), 256)

    def test_what_is_wrong_is_said(self):
        model = nets.write("gemm_512", self.folder.name)
        for arguments, says in ((["--device", "voodoo"], "no simulated device 'voodoo'"),
                                (["--device", "h200", "--shape", "y=1"], "y")):
            done = subprocess.run([PLAN, model, *arguments], capture_output=True, text=True)
            self.assertEqual(done.returncode, 1)
            self.assertIn(says, done.stderr)

    def test_planning_leaves_no_variant_list(self):
        command = [str(ROOT / "tools/kernel_report"), "--variants", "--plan", PLAN]
        for net in ("resnet50_b1", "resnet50_b64", "efficientnet_b0", "gemm_512", "gemm_4096"):
            command += ["--net", net]
        done = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class Variants(unittest.TestCase):
    def test_sizes_must_stand_together(self):
        launch = {"source": "x.cl", "defines": {"T": "f16", "VEC": "4", "PIXELS": "2"}}
        lists = {"x.cl": [{"T": "f32", "VEC": "4", "PIXELS": "2"}]}
        self.assertIsNone(variants.unnamed(launch, lists))
        apart = {"x.cl": [{"T": "f32", "VEC": "4", "PIXELS": "1"}, {"T": "f32", "VEC": "1", "PIXELS": "2"}]}
        self.assertIn("-DPIXELS=2 -DVEC=4", variants.unnamed(launch, apart))
        flags = {"x.cl": [{"T": "f32", "VEC": "4", "PIXELS": "2", "AXES": "3", "CLIP": "1"}]}
        self.assertIsNone(variants.unnamed(launch, flags))
        more = {"x.cl": [{"T": "f32", "VEC": "4", "PIXELS": "2", "ROWS": "3"}]}
        self.assertIsNotNone(variants.unnamed(launch, more))

    def test_epilogues_must_be_there(self):
        launch = {"source": "x.cl", "defines": {"BIAS": "1"}}
        self.assertIn("no VARIANT has BIAS", variants.unnamed(launch, {"x.cl": [{}]}))
        self.assertIsNone(variants.unnamed(launch, {"x.cl": [{"BIAS": "1"}]}))

    def test_every_list_is_read(self):
        with tempfile.TemporaryDirectory() as folder:
            paths = variants.write_programs(folder)
            self.assertGreater(len(paths), 100)
            for path in paths:
                self.assertNotIn("#include", pathlib.Path(path).read_text())


class Instructions(unittest.TestCase):
    def test_nvidia(self):
        for text, expected in (("FFMA R1, R2, R3, R4", ("fma", 0)), ("@P0 LDS.128 R4, [R2]", ("lds", 16)),
                               ("LDG.E.64.CONSTANT R4, [R2.64]", ("ldg", 8)), ("STL [R1], R5", ("spill", 4)),
                               ("HFMA2.MMA R1, -RZ, RZ, 0, 0", ("vec", 0)), ("HFMA2 R1, R2, R3, R4", ("fma2", 0)),
                               ("BAR.SYNC.DEFER_BLOCKING 0x0", ("barrier", 0)), ("IMAD.WIDE R2, R3, 4, R6", ("vec", 0)),
                               ("HMMA.16816.F32 R0, R4, R8, R0", ("mma", 64)),
                               ("IMMA.16832.S8.S8 R0, R4.ROW, R8.COL, R0", ("mma", 128))):
            self.assertEqual(isa.nvidia_class(text), expected, text)
        listing = ("\t.section\t.text.k,\"ax\"\n        /*0000*/   MOV R1, c[0x0][0x28] ;\n.L_x_1:\n"
                   "        /*0010*/   FFMA R1, R2, R3, R4 ;\n        /*0020*/   @P0 BRA `(.L_x_1) ;\n.L_x_2:\n"
                   "        /*0030*/   BRA `(.L_x_2);\n")
        kernel, = isa.nvidia_kernels(listing, {"k": {"registers": 9}}, "sm_86")
        self.assertEqual((kernel.registers, kernel.loops), (9, [[1, 2]]))

    def test_amd(self):
        for text, expected in (("v_fmac_f32_e32", ("fma", 0)), ("v_pk_fma_f32", ("fma2", 0)), ("ds_read2_b64", ("lds", 16)),
                               ("ds_write_b32", ("sts", 4)), ("global_load_dwordx4", ("ldg", 16)),
                               ("global_store_short", ("stg", 2)), ("s_waitcnt", ("scalar", 0)), ("scratch_load_b32", ("spill", 4)),
                               ("v_mad_u64_u32", ("vec", 0)), ("s_barrier", ("barrier", 0))):
            self.assertEqual(isa.amd_class(text), expected, text)

    def test_loops_are_backward_branches(self):
        self.assertEqual(isa.find_loops([(9, "a"), (5, "b"), (7, "a")], {"a": 2, "b": 8}), [[2, 9]])


class Estimates(unittest.TestCase):
    def time(self, kernel=None, launch=None, device="rtx3060"):
        return estimate.Estimate(kernel or product_kernel(), launch or product_launch(), device)

    def test_a_queue_is_never_more_than_busy(self):
        self.assertEqual(estimate.queue(10, 0, 1), 1.0)
        self.assertAlmostEqual(estimate.queue(10, 10, 1), 0.5)
        self.assertGreater(estimate.queue(10, 10, 4), estimate.queue(10, 10, 2))
        self.assertLessEqual(estimate.queue(10, 10, 100), 1.0)

    def test_no_device_beats_its_peak_or_its_memory(self):
        for device, d in DEVICES.items():
            kernel = product_kernel(ARCH[d.arch].proxy or d.arch)
            kernel.simd = 8 if ARCH[d.arch].vendor == "intel" else 0
            e = self.time(kernel, product_launch(4096), device)
            self.assertLessEqual(e.share(), 1.0, device)
            self.assertGreaterEqual(e.time, e.bytes / (d.memory * 1e9 + d.cache * 1e9), device)

    def test_what_costs_costs(self):
        base = self.time().time
        crowded = product_kernel(registers=250)
        self.assertEqual(self.time(crowded).resident, 1)
        self.assertGreater(self.time(crowded).time, base)
        busy = product_kernel()
        busy.code[21:21] = [("vec", 0)] * 256
        busy.loops = [[20, busy.loops[0][1] + 256]]
        self.assertGreater(self.time(busy).time, 1.3 * base)
        self.assertGreater(self.time(launch=product_launch(2048)).time, 6 * base)
        self.assertGreater(self.time(product_kernel("gfx1030", 126), device="mali_g710").time,
                           1.5 * self.time(product_kernel("gfx1030", 62), device="mali_g710").time)

    def test_moving_takes_what_memory_takes(self):
        kernel = isa.Kernel("k", "sm_86", registers=16, code=[("ldg", 16), ("vec", 0), ("stg", 16)])
        size = 1 << 28
        launch = dict(product_launch(), source="movement/move.cl", work="movement", operations=0, arguments=[], local=[256, 1, 1],
                      read_bytes=size, written_bytes=size, **{"global": [size // 16, 1, 1]})
        e = self.time(kernel, launch)
        self.assertEqual(e.bound, "memory")
        self.assertAlmostEqual(e.time, 2 * size / 360e9 / estimate.MEMORY_SHARE, delta=1e-5)


class Golden(unittest.TestCase):
    def test_worse_by_more_than_three_percent_fails(self):
        kernel = {"registers": 100, "spills": 0, "fma_share": 0.5}
        before = {"nets": {"n": {"launches": 1, "time_us": 100.0}}, "kernels": {"k": kernel}}
        for path, value, worse, better in ((("nets", "n", "time_us"), 102.9, 0, 0), (("nets", "n", "time_us"), 103.1, 1, 0),
                                           (("nets", "n", "time_us"), 90.0, 0, 1), (("kernels", "k", "registers"), 104, 1, 0),
                                           (("kernels", "k", "spills"), 4, 1, 0), (("kernels", "k", "fma_share"), 0.48, 1, 0),
                                           (("kernels", "k", "fma_share"), 0.49, 0, 0), (("kernels", "k", "fma_share"), 0.6, 0, 1)):
            after = copy.deepcopy(before)
            after[path[0]][path[1]][path[2]] = value
            found = golden.compare("d", before, after)
            self.assertEqual([len(f) for f in found], [worse, better], (path, value))

    def test_what_is_kept_is_read_again(self):
        folder, golden.FOLDER = golden.FOLDER, pathlib.Path(tempfile.mkdtemp())
        try:
            net = {"launches": 1, "time_s": 1e-4, "rows": [report.row_of(product_launch(), product_kernel(), "rtx3060")]}
            made = golden.document({"net": net}, "clang")
            golden.write("rtx3060", made)
            self.assertEqual(golden.load("rtx3060"), json.loads(json.dumps(made)))
            self.assertEqual(golden.compare("rtx3060", golden.load("rtx3060"), made), ([], []))
        finally:
            golden.path_of("rtx3060").unlink()
            golden.FOLDER.rmdir()
            golden.FOLDER = folder

    def test_pictures_and_tables_have_each_launch(self):
        rows = [report.row_of(product_launch(size), product_kernel(), "rtx3060") for size in (256, 512, 1024)]
        net = {"device": "rtx3060", "launches": 3, "programs": 1, "operations": 1, "time_s": 1e-3, "roof_s": 1e-4,
               "share_of_peak": 0.1, "spilling_launches": 0, "complete": True, "elsewhere": [], "rows": rows}
        self.assertEqual(picture.svg("a <net>", net).count("<title>"), 3)
        self.assertIn("a &lt;net&gt;", picture.svg("a <net>", net))
        self.assertIn("% in 3\n", report.text("net", net))  # the sum by kernel
        self.assertEqual(report.text("net", net).count("\n  n  "), 3)


if __name__ == "__main__":
    unittest.main()
