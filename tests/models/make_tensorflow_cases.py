#!/usr/bin/env python3
"""Writes testdata/tensorflow/<family>.pb: GraphDefs with small cases for every TensorFlow op that the importer lowers.

  python3 -m venv v && v/bin/pip install tensorflow-cpu==2.21.0
  v/bin/python tests/models/make_tensorflow_cases.py testdata/tensorflow [family..]

A family is a module of tests/models/tensorflow_cases; what a case is stands in recorder.py there.
tests/unit/import/tf_ops_test.cc imports the cases of all files and compares. No TensorFlow is needed to run the tests."""
import importlib, os, sys

folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tensorflow_cases")
sys.path.insert(0, folder)
from recorder import state, write

known = sorted(f[:-3] for f in os.listdir(folder) if f.endswith(".py") and f != "recorder.py")
target, families = sys.argv[1], sys.argv[2:] or known
os.makedirs(target, exist_ok=True)
for family in families:
    if family not in known: sys.exit("no family %s; there are %s" % (family, ", ".join(known)))
    state.begin(family)
    importlib.import_module(family)
    write(os.path.join(target, family + ".pb"))
