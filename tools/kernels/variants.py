"""The VARIANT lines of kernel files: which sets of defines a kernel is compiled with offline, and whether they name what
planning chooses.

A line names a launch when it gives the launch's sizes together, no more and no others. Sizes (tiles, vectors, rows of a
work-item) decide how much code and how many registers there are: all whole numbers above 1 except those of NO_SIZES.
Every other define (types, epilogues, flags) changes the code in one place; some line must have its name."""

import pathlib
import re
import shlex

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
KERNELS = ROOT / "cl_kernels"

GROUPS = {"GROUP", "GX", "GY"}  # work-items, which tools/compile_kernels does not tell apart either
AXES = {"AXES", "KEPT", "REDUCED"}  # counts of axes: loops that are unrolled where places are computed
CHOICES = {"BYTES", "HAS_OFFSET", "HAS_SCALE", "KIND", "MASK", "MODE", "MOST", "P", "PADDING", "REDUCTION", "SAMPLES"}  # of ways
MODELS = {"SIZE", "VALUES"}  # of heads, of which kernels take the next multiple of something
NO_SIZES = GROUPS | AXES | CHOICES | MODELS


def listed(source, kernels=KERNELS):
    """The sets of defines of a kernel file's VARIANT lines, as dictionaries."""
    found = []
    for line in pathlib.Path(kernels, source).read_text().splitlines():
        if not line.startswith("// VARIANT:"):
            continue
        defines = {}
        for word in shlex.split(line.removeprefix("// VARIANT:")):
            if not word.startswith("-D"):
                raise ValueError(f"{source}: '{word}' of a VARIANT line is no define")
            name, _, value = word[2:].partition("=")
            defines[name] = value if "=" in word else "1"
        found.append(defines)
    return found


def sizes(defines):
    return {name: value for name, value in defines.items() if value.isdecimal() and int(value) > 1 and name not in NO_SIZES}


def unnamed(launch, lists):
    """Why no VARIANT line names a launch; nothing when one does. `lists`: the results of listed(), by source."""
    source, defines = launch["source"], launch["defines"]
    if source not in lists:
        lists[source] = listed(source)
    names = {name for variant in lists[source] for name in variant}
    for name in sorted(defines):
        if name not in names:
            return f"{source}: no VARIANT has {name}"
    if not any(sizes(variant) == sizes(defines) for variant in lists[source]):
        text = " ".join(f"-D{name}={value}" for name, value in sorted(sizes(defines).items()))
        return f"{source}: no VARIANT has {text or 'no sizes'}"
    return None


def findings(plans):
    """{what: who chooses it} for the plans of nets by name and device."""
    lists, found = {}, {}
    for net, devices in plans.items():
        for device, plan in devices.items():
            for launch in plan["launches"]:
                if what := unnamed(launch, lists):
                    found.setdefault(what, f"{net} on {device}, node '{launch['node']}'")
    return found


def expanded(path, kernels, seen):
    """A kernel file's text with its headers in front, as tools/embed_kernels.cmake puts them."""
    body, headers = pathlib.Path(kernels, path).read_text(), ""
    for include in re.findall(r'#include "([^"\n]*)"', body):
        body = body.replace(f'#include "{include}"', "")
        if include not in seen:
            seen.add(include)
            headers += expanded(include, kernels, seen)
    return f'{headers}#line 1 "{path}"\n{body}'


def write_programs(folder, kernels=KERNELS):
    """The program of every VARIANT line as a file of its own; returns their paths."""
    paths = []
    for file in sorted(pathlib.Path(kernels).glob("*/*.cl")):
        source = str(file.relative_to(kernels))
        text = expanded(source, kernels, set())
        for number, defines in enumerate(listed(source, kernels)):
            path = pathlib.Path(folder, f"{source[:-3].replace('/', '_')}_variant{number}.cl")
            path.write_text("".join(f"#define {n} {v}\n" for n, v in defines.items()) + text)
            paths.append(str(path))
    return paths
