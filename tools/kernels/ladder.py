#!/usr/bin/env python3
"""The model of estimate.py against published figures: the steps of S. Boehm's "How to optimize a CUDA matmul kernel"
(github.com/siboehm/SGEMM_CUDA, RTX A6000, 4096^3, percent of cuBLAS), written again in OpenCL (ladder.cl).
    tools/kernels/ladder.py [CACHE-FOLDER]
The card's clock under load is not known, so only shares of one another count: model and measurement are both set to
93.7 at the last step. Needs what vendors.py needs for NVIDIA."""

import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import estimate  # noqa: E402
import hardware  # noqa: E402
import vendors   # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
SIZE = 4096
# Name, published, defines, tile, work-items.
STEPS = [
    ("local memory, one sum", 12.8, "STEP=3", (32, 32, 32), 1024),
    ("a column of 8 sums", 36.5, "STEP=4 BM=64 BN=64 BK=8 TM=8", (64, 64, 8), 512),
    ("8x8 sums", 68.7, "STEP=5 BM=128 BN=128 BK=8 TM=8 TN=8", (128, 128, 8), 256),
    ("8x8 by float4", 78.4, "STEP=6 BM=128 BN=128 BK=8 TM=8 TN=8", (128, 128, 8), 256),
    ("8x8 by float4, deeper", 84.8, "STEP=6 BM=128 BN=128 BK=16 TM=8 TN=8", (128, 128, 16), 256),
    ("warp tiles", 93.7, "STEP=7 BM=128 BN=128 BK=16 WM=64 WN=64 WNITER=4 TM=8 TN=4", (128, 128, 16), 128),
]


def launch_of(tile, threads):
    groups = (SIZE // tile[0]) * (SIZE // tile[1])
    return {"source": "ladder", "defines": {}, "tile": tile, "local": [threads, 1, 1], "global": [threads * groups, 1, 1],
            "longest_loop": SIZE // tile[2], "arguments": [], "work": "multiply-adds", "operations": 2 * SIZE ** 3,
            "output_elements": SIZE ** 2, "read_bytes": 8 * SIZE ** 2, "written_bytes": 4 * SIZE ** 2}


def main():
    if needs := vendors.missing("nvidia"):
        sys.exit(f"ladder: not installed: {', '.join(needs)}")
    hardware.DEVICES["a6000"] = hardware.Device("sm_86", 84, 1.50, 768, 2600, 6)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        compiled = vendors.Compiled(sys.argv[1] if len(sys.argv) > 1 else folder)
        for name, published, defines, tile, threads in STEPS:
            program = pathlib.Path(folder, "step.cl")
            text = "".join(f"#define {d.replace('=', ' ')}\n" for d in defines.split())
            program.write_text(text + (HERE / "ladder.cl").read_text())
            kernel = compiled.kernel(program, "ladder", "sm_86", "nvidia")
            rows.append((name, published, estimate.Estimate(kernel, launch_of(tile, threads), "a6000")))
    scale = rows[-1][1] / rows[-1][2].share() / 100
    errors = []
    print(f"{'step':24}{'published':>10}{'model':>8}{'error':>8}{'of peak':>9}{'registers':>11}{'groups':>8}")
    for name, published, e in rows:
        model = 100 * e.share() * scale
        errors.append(abs(model - published))
        print(f"{name:24}{published:10.1f}{model:8.1f}{model - published:+8.1f}{100 * e.share():9.1f}"
              f"{e.kernel.registers:11}{e.resident:8}")
    print(f"mean error {sum(errors) / len(errors):.1f} points, worst {max(errors):.1f}")


main()
