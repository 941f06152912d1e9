"""What cores of GPUs can do, for the estimates of estimate.py. Numbers are from data sheets, vendors' guides and
published microbenchmarks; "reasoned" marks those that were not found written down. Rates are per core: an SM of NVIDIA,
a compute unit of AMD, an Xe-core (16 execution units) of Intel, a shader core of a phone."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Arch:
    vendor: str
    warp: int             # lanes; Intel's compiler chooses them per kernel
    schedulers: int       # of a core
    fma_clocks: float     # of a scheduler's pipe for the multiply-adds of one warp
    vector_clocks: float  # of a scheduler to issue one vector instruction
    registers: int        # 32-bit ones of a core
    register_step: int    # allocation per lane
    max_registers: int    # of a lane
    warps: int            # of a core, at most
    groups: int           # of a core, at most
    local: int            # bytes of local memory of a core
    local_rate: float = 128   # bytes a clock, of local memory and the first-level cache together
    fill: float = 64          # bytes a clock from the second-level cache
    both_issue: bool = False  # memory and scalar instructions issue beside vector ones
    local_latency: int = 28
    global_latency: int = 500
    barrier: int = 30
    fma_flops: int = 256      # of the core a clock, by ordinary instructions
    matrix_flops: int = 0     # by matrix instructions: 16-bit, float sums
    spills: str = ""          # of phones: what stands for a spill, see phones below
    proxy: str = ""           # the architecture whose compiler stands in


# mma.sync and not wgmma on sm_90. The local memory of phones is the cache's (Mali) or small (Adreno).
ARCH = {
    "sm_75": Arch("nvidia", 32, 4, 2, 1, 65536, 8, 255, 32, 16, 65536, fma_flops=128, matrix_flops=1024),
    "sm_80": Arch("nvidia", 32, 4, 2, 1, 65536, 8, 255, 64, 32, 167936, fma_flops=128, matrix_flops=2048),
    "sm_86": Arch("nvidia", 32, 4, 1, 1, 65536, 8, 255, 48, 16, 102400, matrix_flops=1024),
    "sm_90": Arch("nvidia", 32, 4, 1, 1, 65536, 8, 255, 64, 32, 233472, matrix_flops=2560),
    # Packed multiply-adds: two of a lane in one instruction.
    "gfx90a": Arch("amd", 64, 4, 4, 4, 131072, 8, 512, 32, 16, 65536, both_issue=True, local_latency=64,
                   global_latency=700, barrier=60, matrix_flops=1024),
    "gfx1030": Arch("amd", 32, 2, 1, 1, 65536, 8, 256, 32, 16, 65536, both_issue=True, local_latency=64, barrier=60,
                    fma_flops=128),
    "gfx1100": Arch("amd", 32, 2, 1, 1, 98304, 16, 256, 32, 16, 65536, both_issue=True, local_latency=64, barrier=60,
                    fma_flops=128, matrix_flops=512),
    # Eight hardware threads an execution unit, each with 128 registers of 32 bytes.
    "dg2": Arch("intel", 8, 16, 1, 1, 16 * 8 * 1024, 1, 128, 128, 64, 131072, both_issue=True, local_latency=40,
                global_latency=600, matrix_flops=2048),
    "xelp": Arch("intel", 8, 16, 1, 1, 16 * 7 * 1024, 1, 128, 112, 64, 65536, both_issue=True, local_latency=60),
    # Arm's guides 101574 and 102849: at most 64 registers a work-item, twice the threads with 32; one access to one
    # line of 64 bytes a clock, local memory among them. Clocks of waiting: reasoned.
    "mali": Arch("phone", 16, 4, 1, 1, 65536, 32, 64, 128, 64, 32768, local_rate=64, fill=32, local_latency=120,
                 global_latency=300, barrier=60, fma_flops=128, spills="registers", proxy="gfx1030"),
    # Qualcomm's guide 80-NB295-11 gives waves of 64 or 128 and 32 KiB; the register file is reasoned from the work
    # groups that drivers allow.
    "adreno": Arch("phone", 64, 4, 1, 1, 98304, 4, 128, 16, 16, 32768, local_rate=128, fill=64, local_latency=60,
                   global_latency=400, barrier=60, fma_flops=512, spills="registers", proxy="gfx1030"),
}


@dataclass(frozen=True)
class Device:
    arch: str
    cores: int
    ghz: float
    memory: float    # GB/s
    cache: float     # second level, GB/s
    cache_mb: float
    launch_us: float = 1.5  # from the end of one kernel to the begin of the next: reasoned

    @property
    def peak(self):
        """Floating-point operations a second in float, by ordinary instructions."""
        return self.cores * self.ghz * 1e9 * ARCH[self.arch].fma_flops


# By the names of backends/opencl/simulated/devices.cc. Clocks are what cards hold under load, not their best.
DEVICES = {
    "h200": Device("sm_90", 132, 1.83, 4800, 7000, 50),
    "a100": Device("sm_80", 108, 1.41, 1555, 4500, 40),
    "rtx3060": Device("sm_86", 28, 1.78, 360, 1100, 3),
    "mi250": Device("gfx90a", 104, 1.7, 1638, 4400, 8),  # one of its two chips
    "rx6700": Device("gfx1030", 40, 2.4, 384, 1600, 96),
    "rx7900": Device("gfx1100", 96, 2.3, 960, 3500, 96),
    "a770": Device("dg2", 32, 2.1, 560, 2000, 16),
    "iris_xe": Device("xelp", 6, 1.3, 60, 200, 3.8, 3),
    "adreno740": Device("adreno", 6, 0.68, 67, 250, 8, 10),
    "mali_g710": Device("mali", 10, 0.85, 51, 220, 6, 10),
}
