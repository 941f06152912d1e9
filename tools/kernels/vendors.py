"""The compilers of devices that this machine lacks: how they are called, and what they make of a program. Their output is
kept by the hash of all inputs, so that a second run needs no compiler. Needed: clang 15 with libclc and
rocm-device-libs (Debian), ptxas and nvdisasm (CUDA, or PyPI's nvidia-cuda-nvcc and nvidia-cuda-nvdisasm), ocloc (Debian's
intel-opencl-icd). $ONCILLA_PTXAS and $ONCILLA_NVDISASM name those that are neither in PATH nor fetched."""

import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import isa

# Builtins come from a table in the compiler: reading the header that declares them takes longer than
# compiling most programs.
CL = ["-x", "cl", "-cl-std=CL1.2", "-Xclang", "-finclude-default-header", "-Xclang", "-fdeclare-opencl-builtins"]
CLANG = "clang-15"  # whose bitcode libclc-15 and rocm-device-libs fit
NVIDIA_BUILTINS = "/usr/lib/clc/nvptx64--nvidiacl.bc"
AMD_LIBRARIES = "/usr/lib/x86_64-linux-gnu/amdgcn/bitcode"
OCLOC_NAMES = {"xelp": "tgllp"}
SECONDS = 300
FORMAT = {"amd": 2, "intel": 2, "nvidia": 2}  # of what is kept; to be raised when these functions learn more


class Failed(Exception):
    pass


def cuda_tool(name, variable, folder):
    """Where a program of CUDA is: named by the environment, in PATH, of a toolkit, or fetched by tools/downloads.sh."""
    found = os.environ.get(variable) or shutil.which(name) or shutil.which(f"/usr/local/cuda/bin/{name}")
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    fetched = pathlib.Path(os.environ.get("ONCILLA_DOWNLOADS") or f"{cache}/oncilla-downloads", folder)
    return found or next((str(path) for path in sorted(fetched.glob(f"lib/python*/site-packages/nvidia/*/bin/{name}"))), None)


def ptxas():
    return cuda_tool("ptxas", "ONCILLA_PTXAS", "nvidia-nvcc")


def nvdisasm():
    return cuda_tool("nvdisasm", "ONCILLA_NVDISASM", "nvidia-nvdisasm")


def run(*command, environment=None):
    """What a command printed, on both its outputs; Failed with its first errors."""
    try:
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=SECONDS, env=environment)
    except subprocess.TimeoutExpired:
        raise Failed(f"{pathlib.Path(command[0]).name}: no end after {SECONDS} s") from None
    except OSError as error:
        raise Failed(f"{command[0]}: {error.strerror}") from None
    if done.returncode != 0:
        lines = (done.stderr + done.stdout).strip().splitlines()
        said = [x for x in lines if "error" in x.lower()] or lines
        raise Failed(f"{pathlib.Path(command[0]).name}: " + " | ".join(said[:3]))
    return done.stdout + done.stderr


def nvidia(source, folder, arch):
    # clang 15 does not know sm_90; its code for sm_86 is correct there too, and ptxas schedules for the chip.
    cpu = arch if arch in ("sm_75", "sm_80") else "sm_86"
    ptx, cubin = folder / "k.ptx", folder / "k.cubin"
    run(CLANG, *CL, "--target=nvptx64--nvidiacl", "-Xclang", "-target-cpu", "-Xclang", cpu, "-Xclang", "-target-feature",
        "-Xclang", "+ptx75", "-Xclang", "-mlink-builtin-bitcode", "-Xclang", NVIDIA_BUILTINS, "-O3", "-S", "-o", ptx, source)
    text = re.sub(r"\.target sm_\d+", f".target {arch}", ptx.read_text())
    ptx.write_text(re.sub(r"\.version [\d.]+", ".version 7.8", text))
    facts, name = {}, ""
    for line in run(ptxas(), "-v", f"-arch={arch}", ptx, "-o", cubin).splitlines():
        if found := re.search(r"Compiling entry function '(\w+)'", line):
            name = found[1]
        elif found := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line):
            facts.setdefault(name, {}).update(stack=int(found[1]), spills=int(found[2]) + int(found[3]))
        elif found := re.search(r"Used (\d+) registers", line):
            local = re.search(r"(\d+) bytes smem", line)
            facts.setdefault(name, {}).update(registers=int(found[1]), local=int(local[1]) if local else 0)
    return isa.nvidia_kernels(run(nvdisasm(), "-c", cubin), facts, arch)


def amd(source, folder, arch):
    listing = folder / "k.s"
    libraries = [f"--rocm-device-lib-path={AMD_LIBRARIES}"]
    if not pathlib.Path(AMD_LIBRARIES, f"oclc_isa_version_{arch[3:]}.bc").exists():
        # Chips that are newer than the libraries use those of a relative, which differ only in the chip's number.
        names = ["opencl", "ocml", "ockl", "oclc_daz_opt_off", "oclc_unsafe_math_off", "oclc_finite_only_off",
                 "oclc_correctly_rounded_sqrt_off", "oclc_wavefrontsize64_off", "oclc_isa_version_1030"]
        libraries = ["-nogpulib"]
        for name in names:
            libraries += ["-Xclang", "-mlink-builtin-bitcode", "-Xclang", f"{AMD_LIBRARIES}/{name}.bc"]
    said = run(CLANG, *CL, "--target=amdgcn-amd-amdhsa", f"-mcpu={arch}", *libraries, "-O3",
               "-Rpass-analysis=kernel-resource-usage", "-S", "-o", listing, source)
    facts, name = {}, ""
    wanted = (("VGPRs", "registers"), (r"ScratchSize \[bytes/lane\]", "stack"), ("VGPRs Spill", "spills"),
              (r"LDS Size \[bytes/block\]", "local"))
    for line in said.splitlines():
        if found := re.search(r"Function Name: (\w+)", line):
            name = found[1]
            facts[name] = {}
        for key, what in wanted:
            if found := re.search(rf"\s{key}: (\d+)", line):
                facts[name][what] = int(found[1])
    return isa.amd_kernels(listing.read_text(), facts, arch)


def intel(source, folder, arch):
    dump = folder / "dump"
    dump.mkdir()
    environment = dict(os.environ, IGC_ShaderDumpEnable="1", IGC_DumpToCustomDir=str(dump))
    run("ocloc", "compile", "-file", source, "-device", OCLOC_NAMES.get(arch, arch), "-options", "-cl-std=CL1.2",
        "-out_dir", folder, environment=environment)
    kernels = [isa.intel_kernel(file.read_text(), arch, int(re.search(r"simd(\d+)", file.name)[1]))
               for file in sorted(dump.glob("*simd*.asm"))]
    if not kernels:
        raise Failed("ocloc: left no assembly of the kernels")
    for file in dump.glob("*_beforeUnification.ll"):
        add_local_memory(kernels, file.read_text())
    return kernels


def add_local_memory(kernels, code):
    """The arrays in local memory by LLVM's text of a program, since Intel's assembly does not tell."""
    sizes = {"i8": 1, "i16": 2, "half": 2, "i32": 4, "float": 4, "i64": 8, "double": 8}
    for name, kind in re.findall(r"^@(\w+)\.[\w.]+ = .*?addrspace\(3\) global ([\[<].*?[\]>]|\w+)(?:,| undef| zero)", code, re.M):
        scalar = re.search(r"(\w+)[\]>]*$", kind)[1]
        size = sizes.get(scalar, 4)
        for count in re.findall(r"(\d+) x", kind):
            size *= int(count)
        for kernel in kernels:
            if kernel.name == name:
                kernel.local += size


COMPILERS = {"nvidia": nvidia, "amd": amd, "intel": intel}


def missing(vendor):
    """What the vendor's compilers need and this machine lacks."""
    needs = {"nvidia": [CLANG, NVIDIA_BUILTINS, ptxas() or "ptxas", nvdisasm() or "nvdisasm"],
             "amd": [CLANG, AMD_LIBRARIES], "intel": ["ocloc"]}[vendor]
    return [need for need in needs if not (os.path.exists(need) or shutil.which(need))]


class Compiled:
    """Kernels of programs by architecture, kept in `folder`. Thread-safe: two that ask for one program compile it
    twice and keep the same."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.made = 0
        self.versions = {}

    def version(self, vendor):
        """The versions of the vendor's compilers, as far as they tell."""
        if vendor not in self.versions:
            asked = {"nvidia": [[CLANG, "--version"], [ptxas(), "--version"]], "amd": [[CLANG, "--version"]],
                     "intel": [["dpkg-query", "-W", "-f", "${Package} version ${Version}\\n", "intel-opencl-icd", "libigc1"]]}
            told = []
            for command in asked[vendor]:
                name = pathlib.Path(command[0]).name
                try:
                    found = re.findall(r"(?:version |V)(\d\S*)", run(*command))
                except Failed:
                    found = []
                told.append(f"{'ocloc' if vendor == 'intel' else name} {' '.join(found) or 'of unknown version'}")
            self.versions[vendor] = ", ".join(told)
        return self.versions[vendor]

    def kernel(self, program, entry, arch, vendor):
        """The kernels of the file `program`; Failed when it does not compile."""
        text = pathlib.Path(program).read_bytes()
        parts = [str(FORMAT[vendor]).encode(), arch.encode(), self.version(vendor).encode(), text]
        key = hashlib.sha256(b"\0".join(parts)).hexdigest()[:32]
        path = self.folder / f"{key}.json"
        if not path.exists():
            with tempfile.TemporaryDirectory() as folder:
                kernels = [k.to_json() for k in COMPILERS[vendor](program, pathlib.Path(folder), arch)]
            self.made += 1
            part = path.with_suffix(f".{os.getpid()}.{id(kernels)}")
            part.write_text(json.dumps(kernels, separators=(",", ":")))
            part.rename(path)
        found = [k for k in json.loads(path.read_text()) if k["name"] == entry]
        if not found:
            raise Failed(f"the compiler for {arch} left no kernel '{entry}'")
        return isa.Kernel(**found[0])
