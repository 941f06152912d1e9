#!/usr/bin/env python3
"""Writes testdata/stablehlo/*.mlirbc: StableHLO modules in their portable form, for the tests of the reader's checks.

  python3 -m venv v && v/bin/pip install jax==0.4.35
  v/bin/python tests/models/make_stablehlo.py testdata/stablehlo"""
import os, sys
import jax, jax.numpy as jnp, numpy as np
from jax import export, lax
from jax._src.export import _export
from jax._src.interpreters import mlir
from jaxlib.mlir import ir, passmanager


def write(name, f, *args):
    e = export.export(jax.jit(f), platforms=["cpu"])(*args)
    with mlir.make_ir_context():
        m = ir.Module.parse(e.mlir_module())
        passmanager.PassManager.parse("builtin.module(strip-debuginfo)").run(m.operation)  # no places in this file
        open(os.path.join(sys.argv[1], name + ".mlirbc"), "wb").write(_export._module_to_bytecode(m))


f32 = lambda *s: jax.ShapeDtypeStruct(s, np.float32)
os.makedirs(sys.argv[1], exist_ok=True)
write("net", lambda x, w: jax.nn.softmax(lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")).mean((1, 2)) @ np.ones((3, 2), np.float32)), f32(1, 4, 4, 2), f32(2, 2, 2, 3))
write("control", lambda x: lax.fori_loop(0, 3, lambda i, c: lax.cond(c[0] > 2, lambda d: d.at[i].add(1.), lambda d: jnp.sort(d)[::-1] * 2, c), x), f32(4))
write("open", lambda x: (x.reshape((-1,)), jnp.argmax(x, 1), jnp.ones((x.shape[0],), bool)), jax.ShapeDtypeStruct(export.symbolic_shape("b, 3"), np.float32))
