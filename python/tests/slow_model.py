"""A slow model: many products of large matrices in sequence."""
import numpy as np
import oncilla


def make(products=400, size=1024):
    """x:0 of [size, size] -> y:0, some seconds of work in pieces of milliseconds."""
    graph = oncilla.Graph()
    value = x = graph.placeholder("float32", [size, size], name="x")
    for _ in range(products):
        value = graph.op("MatMul", value, x)
    graph.op("Identity", value, name="y")
    return graph


def feed(size=1024):
    return {"x:0": np.eye(size, dtype=np.float32)}
