"""A compiled kernel for the estimates: its resources, and the class of each instruction, by vendor.

Classes: fma, fma2 (two of a lane in one instruction), mma (matrix), vec (other vector arithmetic), int (of Intel, which
has a pipe for it), scalar, uniform, lds and sts (local memory), ldg and stg (global memory), spill, copy (global to
local memory without registers), barrier, branch. The number beside a class is the bytes of a lane for memory
instructions, NVIDIA's multiply-adds of a lane for matrix ones, and for Intel the clocks of the others."""

import collections
import re
from dataclasses import asdict, dataclass, field

MULTIPLIES = ("fma", "fma2", "mma")


@dataclass
class Kernel:
    name: str
    arch: str
    registers: int = 0
    stack: int = 0   # bytes of a lane
    spills: int = 0  # bytes; of AMD, registers
    local: int = 0   # bytes of a group, beside what arguments ask for
    simd: int = 0    # lanes of a hardware thread where the compiler chooses them
    code: list = field(default_factory=list)   # [class, number]
    loops: list = field(default_factory=list)  # [first, last], both in the loop

    def mix(self, first, last, weights=None):
        count = collections.Counter()
        for i in range(first, last + 1):
            count[self.code[i][0]] += 1 if weights is None else weights[i]
        return count

    def to_json(self):
        return asdict(self)


def find_loops(targets, labels):
    """Loops from backward branches; those that begin at one place are one loop with several ways round."""
    ends = {}
    for at, label in targets:
        if label in labels and labels[label] <= at:
            ends[labels[label]] = max(at, ends.get(labels[label], 0))
    return sorted([first, last] for first, last in ends.items())


def nvidia_class(text):
    op = re.sub(r"^@!?U?P\w+\s+", "", text).split()[0]
    width = 16 if ".128" in op else 8 if ".64" in op else 2 if re.search(r"\.[US]16", op) else \
        1 if re.search(r"\.[US]8", op) else 4
    root = op.split(".")[0]
    if root in ("FFMA", "DFMA"):
        return "fma", 0
    if root == "HFMA2":  # of zeros: how constants are made
        return ("vec" if re.search(r"RZ, -?RZ", text) else "fma2"), 0
    if root in ("HMMA", "IMMA", "BMMA"):
        return "mma", 128 if "16832" in op else 64
    if root == "LDSM":
        return "lds", 16 if ".4" in op else 8 if ".2" in op else 4
    memory = {"LDS": "lds", "STS": "sts", "LDG": "ldg", "LD": "ldg", "STG": "stg", "ST": "stg", "LDL": "spill",
              "STL": "spill"}
    if root in memory:
        return memory[root], width
    if root == "LDGSTS":
        return "copy", 16
    if root == "BAR":
        return "barrier", 0
    if root in ("BRA", "BSSY", "BSYNC", "EXIT", "WARPSYNC", "NOP"):
        return "branch", 0
    return ("uniform" if root.startswith("U") and root != "UNDEF" else "vec"), 0


def nvidia_kernels(listing, facts, arch):
    """From nvdisasm's listing; `facts` are ptxas's words about each entry."""
    kernels, kernel, labels, targets = [], None, {}, []
    for line in listing.splitlines() + ["\t.section\t.text.end"]:
        if found := re.match(r"\s*\.section\s+\.text\.(\w+)", line):
            if kernel:
                kernel.loops = find_loops(targets, labels)
                kernels.append(kernel)
            kernel = Kernel(found[1], arch, **facts.get(found[1], {}))
            labels, targets = {}, []
        elif kernel is None:
            continue
        elif found := re.match(r"^(\.L_x_\d+):", line):
            labels[found[1]] = len(kernel.code)
        elif found := re.match(r"\s+/\*[0-9a-f]+\*/\s+(.*?)\s*;", line):
            if "BRA" in found[1] and (to := re.search(r"(\.L_x_\d+)", found[1])):
                targets.append((len(kernel.code), to[1]))
            kernel.code.append(nvidia_class(found[1]))
    # A branch to itself behind the end fills the last cache line.
    for kernel in kernels:
        kernel.loops = [loop for loop in kernel.loops if loop[1] > loop[0]]
    return kernels


def amd_class(op):
    if re.match(r"v_(pk_fma|pk_fmac)_f(32|16)|v_dot2", op):
        return "fma2", 0
    if re.match(r"v_(fma|fmac|mad|mac|dual_fmac)_(f|legacy|mix)", op):
        return "fma", 0
    if re.match(r"v_(mfma|wmma)", op):
        return "mma", 0
    if op.startswith("v_accvgpr"):
        return "spill", 4
    if op.startswith("v_"):
        return "vec", 0
    if op.startswith("ds_"):
        width = 16 if "b128" in op else 8 if "b64" in op else 4
        width *= 2 if "2" in op.split("_")[1] else 1
        return ("sts" if "write" in op or "store" in op else "lds"), width
    if op.startswith(("global_", "flat_", "buffer_")):
        width = 16 if re.search(r"x4|b128", op) else 8 if re.search(r"x2|b64", op) else \
            2 if re.search(r"short|[ui]16|b16", op) else 1 if "byte" in op else 4
        return ("stg" if "store" in op else "ldg"), width
    if op.startswith("scratch_"):
        return "spill", 4
    if op.startswith("s_barrier"):
        return "barrier", 0
    return ("branch" if op.startswith(("s_cbranch", "s_branch")) else "scalar"), 0


def amd_kernels(listing, facts, arch):
    """From clang's assembly; `facts` are its remarks about resources."""
    kernels, kernel, labels, targets = [], None, {}, []
    for line in listing.splitlines() + ["end:"]:
        if (found := re.match(r"^(\w+):", line)) and (found[1] in facts or found[1] == "end"):
            if kernel:
                kernel.loops = find_loops(targets, labels)
                kernels.append(kernel)
            kernel = Kernel(found[1], arch, **facts.get(found[1], {}))
            labels, targets = {}, []
        elif kernel is None:
            continue
        elif found := re.match(r"^(\.LBB\d+_\d+):", line):
            labels[found[1]] = len(kernel.code)
        elif found := re.match(r"^\t([vsdgfb]\w*_\w+)\s*(.*)", line):
            if "branch" in found[1] and (to := re.search(r"(\.LBB\d+_\d+)", found[2])):
                targets.append((len(kernel.code), to[1]))
            kernel.code.append(amd_class(found[1]))
    return kernels


def intel_instruction(line, simd, lanes, register_bytes):
    """The class of one line of Intel's final assembly, or nothing; `lanes` take a clock."""
    found = re.match(r"^(?:\([^)]*\))?\s+(\w[\w.]*) \((\d+)\|", line)
    if not found:
        return None
    op, width = found[1], int(found[2])
    clocks = max(1, width / lanes)
    if op == "mad" and (":f" in line or ":hf" in line):
        return "fma", clocks
    if op == "dpas":
        return "mma", clocks
    if op.startswith("send"):
        words = 4 if "xyzw" in line else 1
        if (back := re.search(r"rd:(\d+)", line)) and int(back[1]):  # registers that come back
            words = int(back[1]) * register_bytes / 4 / simd
        write = "write" in line or "store" in line
        local = re.search(r"0x[0-9a-fA-F]*FE\b", line.split("//")[0]) is not None
        if "barrier" in line:
            return "barrier", 0
        if "scratch" in line:
            return "spill", 4
        if "fence" in line:
            return "branch", 0
        return (("sts" if write else "lds") if local else ("stg" if write else "ldg")), 4 * words
    if op.split(".")[0] in ("goto", "join", "while", "if", "else", "endif", "break", "sync", "nop"):
        return "branch", 0
    if line.startswith("(W)") and width == 1:
        return "scalar", clocks
    return ("vec" if ":f" in line else "int"), clocks


def intel_kernel(text, arch, simd):
    """From the dump of a kernel's final assembly."""
    lanes, register_bytes = 8, 32
    kernel = Kernel(re.search(r"//\.kernel (\S+)", text)[1], arch, simd=simd)
    kernel.registers = int(re.search(r"numGRF=(\d+)", text)[1])
    if found := re.search(r"//\.spill size (\d+)", text):
        kernel.spills = int(found[1])
    labels, targets = {}, []
    for line in text.splitlines():
        if found := re.match(r"^(\w+):", line):
            labels[found[1]] = len(kernel.code)
            continue
        if found := re.match(r"^(?:\([^)]*\))?\s+jmpi\s+(\w+)", line):
            targets.append((len(kernel.code), found[1]))
            kernel.code.append(("branch", 0))
            continue
        instruction = intel_instruction(line, simd, lanes, register_bytes)
        if instruction is None:
            continue
        if re.match(r"^(?:\([^)]*\))?\s+(goto|while)[. ]", line) and (to := re.findall(r"\b(_0_\d+|L\d+)\b", line)):
            targets.append((len(kernel.code), to[-1]))
        kernel.code.append(instruction)
    kernel.loops = find_loops(targets, labels)
    return kernel
