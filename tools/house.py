"""Rules about the source tree that are checked automatically: lists of sources sorted and without duplicates, one name for
a family everywhere, facts about ops in their rows, short functions, folders of limited size, and no allowed edge between
folders that nobody uses. tools/tidy runs it."""

import re

MAX_ROOM = 45         # source files of a folder; a pair of .h and .cc is two
MAX_FUNCTION = 80     # lines between the braces
SOURCES = {".h", ".hpp", ".c", ".cc", ".inc"}

# Files of an importer's ops that lower to several families.
ACROSS_FAMILIES = {"activation", "attention", "einsum", "gradient", "loss", "signal", "state", "window", "xla"}
# Folders of cl_kernels that belong to no family.
NO_FAMILY = {"common", "probe"}
# Where a table of op names would say again what a row of engine/ops says.
NO_OP_TABLES = ("engine/passes/", "engine/compile/", "engine/run/", "engine/placement/",
                "engine/session/", "engine/memory/", "tools/oncilla/")
# Patterns of passes name the ops that they match.
PATTERNS = {"engine/passes/recognise_activations.cc", "engine/passes/recurrent_loop.cc"}


def read(root, path):
    return (root / path).read_text()


def check_lists(root, files, finding):
    """Sources in a CMakeLists.txt are sorted, and each is listed once."""
    for path in files:
        if path.name != "CMakeLists.txt":
            continue
        for block in re.finditer(r"^(?:target_sources|add_library|add_executable)\((\w+)(.*?)^\)",
                                 read(root, path), re.S | re.M):
            names = re.findall(r"^  ([\w./]+\.(?:cc|c))$", block[2], re.M)
            for name in sorted({n for n in names if names.count(n) > 1}):
                finding(path, f"lists {name} twice for {block[1]}")
            if names != sorted(names):
                late = next(b for a, b in zip(names, names[1:]) if b < a)
                finding(path, f"lists the sources of {block[1]} unsorted: {late}")


def family_of(path):
    return path.stem.split("_")[0]


def check_families(root, files, finding):
    """An op's family has one name in every part of the tree, and files are named after families."""
    wings = {"engine/ops": {}, "backends/cpu/kernels": {}, "backends/opencl/recipes": {}}
    families = set()
    for path in files:
        wing = next((w for w in wings if str(path).startswith(w + "/")), None)
        if wing is None or path.suffix not in {".cc", ".inc"}:
            continue
        text = read(root, path)
        row = r'\bOp<[^>]*>+\(\s*"(\w+)"' if wing == "engine/ops" else r'Row(?:<[^;]*?>)?\(\s*"(\w+)"'
        for op in re.findall(row, text):
            wings[wing].setdefault(op, path)
        if path.name == "elementwise_table.inc":
            for op in re.findall(r"^ELEMENTWISE\((\w+),", text, re.M):
                wings[wing].setdefault(op, path)
    for op, path in wings["engine/ops"].items():
        families.add(family_of(path))
        for wing in ("backends/cpu/kernels", "backends/opencl/recipes"):
            other = wings[wing].get(op)
            if other is not None and family_of(other) != family_of(path):
                finding(other, f"has the kernel of {op}, whose family is {family_of(path)}")
    for path in files:
        parts = path.parts
        if parts[0] == "cl_kernels" and len(parts) > 2:
            if parts[1] not in families | NO_FAMILY:
                finding(path, f"{parts[1]} is no family of ops")
        if parts[:2] == ("engine", "import") and path.parent.name == "ops" and path.suffix == ".cc":
            if family_of(path) not in families | ACROSS_FAMILIES:
                finding(path, f"{family_of(path)} is no family of ops")
    return set(wings["engine/ops"])


def check_op_tables(root, files, ops, finding):
    """Facts about ops are in their rows: no table elsewhere lists three ops or more."""
    names = "|".join(sorted(ops, key=len, reverse=True))
    listed = re.compile(rf'(?:\{{?\s*"(?:{names})"(?:,[^"{{}}]*)?\}}?,\s*){{3}}')
    for path in files:
        if path.suffix not in {".cc", ".h"} or not str(path).startswith(NO_OP_TABLES) or \
                str(path) in PATTERNS:
            continue
        text = read(root, path)
        for found in listed.finditer(text):
            line = text.count("\n", 0, found.start()) + 1
            finding(f"{path}:{line}", "lists ops by name: a fact about ops belongs in their rows")


def functions(text):
    """(first line, name, lines) of each function body, found by its braces and indentation."""
    lines = text.splitlines()
    start = name = None
    for number, line in enumerate(lines, 1):
        if start is None:
            # A body at the left margin or one level in, as the formatter leaves it.
            if line.endswith("{") and not re.match(
                    r"\s*(namespace|class|struct|enum|union|extern|if|for|while|switch|do|else|"
                    r"constexpr \w+ \w+\[|const \w+ \w+\[|\}|static const|return|case|default)\b",
                    line) and "(" in signature(lines, number) and " = " not in line:
                indent = len(line) - len(line.lstrip())
                head = signature(lines, number)
                indent = len(head) - len(head.lstrip())
                if indent <= 2:
                    start, depth = number, indent
                    name = head.strip()
        elif line.startswith(" " * depth + "}") and not line[depth + 1:].startswith((" else",)):
            yield start, name, number - start
            start = None


def signature(lines, number):
    """The first line of the signature of a body that opens on line `number`."""
    at = number - 1
    while at > 0 and lines[at].startswith("    ") and not lines[at - 1].rstrip().endswith((";", "}", "{", ":")) \
            and lines[at - 1].strip():
        at -= 1
    return lines[at]


def check_functions(root, files, finding):
    for path in files:
        if path.suffix not in {".cc", ".h"} or path.parts[0] not in ("engine", "backends", "tools"):
            continue
        for start, name, lines in functions(read(root, path)):
            if lines > MAX_FUNCTION and not name.startswith("static void Fields("):  # a list
                finding(f"{path}:{start}", f"has a function of {lines} lines ({name[:60]})")


def check_rooms(files, finding):
    rooms = {}
    for path in files:
        if path.suffix in SOURCES | {".cl", ".clh"} and path.parts[0] in ("engine", "backends", "tools",
                                                                        "cl_kernels", "server", "tests"):
            rooms.setdefault(path.parent, []).append(path)
    for room, inside in sorted(rooms.items()):
        if len(inside) > MAX_ROOM:
            finding(room, f"has {len(inside)} source files, more than {MAX_ROOM}: make rooms in it")


def check_edges(root, files, layers, layer_of, finding):
    """Each edge that tools/layers.txt allows is used by somebody."""
    used = {}
    for path in files:
        if path.suffix not in SOURCES or path.parts[0] == "testdata":
            continue
        layer = layer_of(path, layers)
        names = re.findall(r'^\s*#\s*include\s+"([^"]+)"', read(root, path), re.M)
        used.setdefault(layer, set()).update(names)
    for layer, allowed in layers.items():
        for edge in allowed:
            if not any(n == edge or n.startswith(edge + "/") for n in used.get(layer, ())):
                finding("tools/layers.txt", f"allows {layer} to include {edge}, which it never does")


def check_recipes(root, files, finding):
    """Recipes write dispatches with the builder, which names arguments, and take sizes from tuning."""
    for path in files:
        if path.parent.parts != ("backends", "opencl", "recipes") or path.suffix != ".cc" or \
                path.stem in ("dispatch_builder", "tuning"):
            continue
        for number, line in enumerate(read(root, path).splitlines(), 1):
            if re.search(r"\bDispatch \w+\s*[{;=]|\.args\.(push_back|insert)|\.args = ", line):
                finding(f"{path}:{number}", "fills a dispatch by hand: DispatchBuilder names arguments")
            if re.search(r"\.Group\(\d+\)", line):
                finding(f"{path}:{number}", "has the size of a group as a number: it belongs in tuning.cc")


def check(root, files, layers, layer_of, finding):
    check_lists(root, files, finding)
    ops = check_families(root, files, finding)
    check_op_tables(root, files, ops, finding)
    check_functions(root, files, finding)
    check_recipes(root, files, finding)
    check_rooms(files, finding)
    check_edges(root, files, layers, layer_of, finding)
