"""TensorFlow graphs built in code."""
from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from . import _arrays, _oncilla, _types


class Graph(_oncilla.GraphBase):
    """A TensorFlow graph built node by node; each call returns the name of the node's first output ("add:0"). A name that is
    taken already gets a number appended, and one that is not given is made from the op.

    >>> graph = oncilla.Graph()
    >>> x = graph.placeholder("float32", [None, 2], name="x")
    >>> y = graph.op("MatMul", x, graph.constant([[1.0], [2.0]], "float32"), name="y", transpose_a=False)
    >>> oncilla.load(graph, device="cpu").run({"x:0": [[3.0, 4.0]]}, outputs=[y])[y].tolist()
    [[11.0]]
    """

    def constant(self, value: Any, dtype: Any = None, name: str | None = None) -> str:
        """A constant; lists take the given dtype, else NumPy's."""
        array = value if dtype is None else np.asarray(value).astype(_types.numpy_dtype(_types.code_of(dtype)))
        return self._constant(_arrays.to_tensor(name or "", array), name)

    def placeholder(self, dtype: Any, shape: Iterable[int | None], name: str | None = None) -> str:
        """An input; None stands for a size that is not known."""
        return self._placeholder(_types.code_of(dtype), [-1 if size is None else size for size in shape], name)

    def op(self, op: str, *inputs: str, name: str | None = None, dtype: Any = None, **attributes: Any) -> str:
        """Any op of TensorFlow. `dtype` is the type of its first output, by default that of its first input. Attributes for
        types that follow from the inputs need not be given. A dtype is a type, a str a string, a tuple of integers a list of
        them, and Graph.shape(..) a shape."""
        for key, value in attributes.items():
            self._set(key, value)
        return self._op(op, list(inputs), 0 if dtype is None else _types.code_of(dtype), name)

    class shape(tuple[int, ...]):
        """A shape, as the value of an attribute; None stands for a size that is not known."""

        def __new__(cls, sizes: Iterable[int | None]) -> Graph.shape:
            return super().__new__(cls, tuple(-1 if size is None else size for size in sizes))

    def _set(self, key: str, value: Any) -> None:
        if isinstance(value, bool):
            self._attr_bool(key, value)
        elif isinstance(value, int):
            self._attr_int(key, value)
        elif isinstance(value, float):
            self._attr_float(key, value)
        elif isinstance(value, str):
            self._attr_string(key, value)
        elif isinstance(value, Graph.shape):
            self._attr_shape(key, list(value))
        elif isinstance(value, (np.dtype, type)):
            self._attr_type(key, _types.code_of(value))
        elif isinstance(value, np.ndarray):
            self._attr_tensor(key, _arrays.to_tensor(key, value))
        elif isinstance(value, Sequence):
            self._set_list(key, value)
        else:
            raise TypeError(f"attribute '{key}': {type(value).__name__} is not a type of attributes")

    def _set_list(self, key: str, values: Sequence[Any]) -> None:
        if all(isinstance(v, int) for v in values):
            self._attr_ints(key, list(values))
        elif all(isinstance(v, (int, float)) for v in values):
            self._attr_floats(key, list(values))
        elif all(isinstance(v, str) for v in values):
            self._attr_strings(key, list(values))
        elif all(isinstance(v, (np.dtype, type)) for v in values):
            self._attr_types(key, [_types.code_of(v) for v in values])
        else:
            raise TypeError(f"attribute '{key}': a list holds integers, floats, strings or types, of one kind")

    @contextlib.contextmanager
    def device(self, name: str) -> Iterator[None]:
        """Nodes that are added in the `with` block are stored for this device; "" stands for none."""
        self._push_device(name)
        try:
            yield
        finally:
            self._pop_device()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a serialized GraphDef."""
        self._save(os.fspath(path))
