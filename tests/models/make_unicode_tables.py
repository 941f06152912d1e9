#!/usr/bin/env python3
"""Writes backends/cpu/text/unicode_tables.inc: the script of each character, and its lower and upper case, as TensorFlow's ops answer for one
character alone (the facts are the Unicode Character Database's).

  python3 -m venv v && v/bin/pip install tensorflow-cpu==2.21.0
  v/bin/python tests/models/make_unicode_tables.py backends/cpu/text/unicode_tables.inc"""
import os, sys
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np, tensorflow as tf

codes = np.array([c for c in range(0x110000) if not 0xD800 <= c < 0xE000], np.int32)
scripts = tf.raw_ops.UnicodeScript(input=codes).numpy()
texts = np.array([chr(c).encode() for c in codes], object)


def runs(values):
    """(first code, value) wherever the value changes."""
    out = []
    for code, value in zip(codes.tolist(), values):
        if not out or out[-1][1] != value: out.append((code, value))
    return out


def rows(items, form):
    lines, line = [], ""
    for item in items:
        text = form(item) + ","
        if len(line) + len(text) > 96:
            lines.append(line)
            line = ""
        line += (" " if line else "") + text
    return "\n".join("    " + l for l in lines + [line])


with open(sys.argv[1], "w") as file:
    file.write("// Made by tests/models/make_unicode_tables.py. Characters from `first` on up to the next row are of one script, by ICU's number.\n")
    file.write("constexpr ValueRun kScripts[] = {\n%s\n};\n" % rows(runs(scripts.tolist()), lambda r: "{0x%x, %d}" % r))
    # A capital sigma shows it: at the end of a word, behind a cased letter and any ignorable characters, it becomes another small one.
    final = lambda before: np.array([t.endswith("\u03c2".encode()) for t in tf.raw_ops.StringLower(input=np.array([before + t + "\u03a3".encode() for t in texts], object), encoding="utf-8").numpy()])
    cased, passed = final(b""), final(b"a")
    kinds = np.where(cased, 1, np.where(passed, 2, 0))
    file.write("// For what becomes of a sigma: 1 cased letters, 2 characters that are passed over.\n")
    file.write("constexpr ValueRun kCaseKinds[] = {\n%s\n};\n" % rows(runs(kinds.tolist()), lambda r: "{0x%x, %d}" % r))
    for name, op in (("Lower", tf.raw_ops.StringLower), ("Upper", tf.raw_ops.StringUpper)):
        changed = [t.decode() for t in op(input=texts, encoding="utf-8").numpy()]
        changed[0] = "\0"
        simple = [(c, ord(t)) for c, t in zip(codes.tolist(), changed) if len(t) == 1 and ord(t) != c]
        longer = [(c, [ord(x) for x in t]) for c, t in zip(codes.tolist(), changed) if len(t) != 1]
        assert all(len(t) <= 3 for _, t in longer)
        # Runs of characters, `step` apart, that move by the same distance.
        moves = []
        for c, t in simple:
            last = moves[-1] if moves else None
            if last and last[3] == t - c and (c - last[1] == last[2] if last[1] != last[0] else c - last[1] <= 2):
                last[2], last[1] = c - last[1], c
            else:
                moves.append([c, c, 1, t - c])
        file.write("// From first to last, each `step` characters, by a distance.\n")
        file.write("constexpr CaseRun k%s[] = {\n%s\n};\n" % (name, rows(moves, lambda m: "{0x%x, 0x%x, %d, %d}" % tuple(m))))
        file.write("// Characters that become several.\n")
        file.write("constexpr LongCase kLong%s[] = {\n%s\n};\n" % (name, rows(longer, lambda m: "{0x%x, {%s}}" % (m[0], ", ".join("0x%x" % x for x in m[1])))))
