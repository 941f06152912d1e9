#!/usr/bin/env python3
"""Writes testdata/tflite/<family>.tflite: small cases for every TFLite op that the importer lowers.

  python3 -m venv v && v/bin/pip install ai-edge-litert==2.3.0
  v/bin/python tests/models/make_tflite_cases.py testdata/tflite [family..]

A family is a module of tests/models/tflite_cases; what a case is stands in tflite_recorder.py there.
tests/unit/import/tflite_ops_test.cc runs the cases of all files and compares. No LiteRT is needed to run the tests."""

import importlib
import os
import sys

folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tflite_cases")
sys.path.insert(0, folder)
from tflite_recorder import state, write  # noqa: E402

known = sorted(f[:-3] for f in os.listdir(folder) if f.endswith(".py") and f != "tflite_recorder.py")
target, families = sys.argv[1], sys.argv[2:] or known
os.makedirs(target, exist_ok=True)
for family in families:
    if family not in known:
        sys.exit(f"no family {family}; there are {', '.join(known)}")
    state.begin()
    importlib.import_module(family)
    write(os.path.join(target, family + ".tflite"))
