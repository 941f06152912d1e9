"""What a model declares for a name."""
from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from . import _arrays, _types
from ._errors import InvalidArgumentError

_KINDS = ("tensor", "sequence", "optional", "optional sequence")


@dataclasses.dataclass(frozen=True)
class TensorSpec:
    """An input, an output or a variable: its name, type and shape as far as they are known.

    `shape` is None where the rank is not known, and holds None for sizes that are not. `kind` is "tensor", "sequence",
    "optional" or "optional sequence"; for all but the first, dtype and shape are those of their tensors.
    """

    name: str
    dtype: str
    shape: tuple[int | None, ...] | None
    kind: str = "tensor"

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        """NumPy's dtype: object for strings; types of ml_dtypes need that package."""
        return _types.numpy_dtype(_types.CODES[self.dtype])

    def array(self, value: Any) -> np.ndarray[Any, Any]:
        """`value` as an array of the declared type, as a run takes it: lists and numbers take that type where they have a
        value of it, arrays must have it and are returned without a copy where they are dense. The shape is not checked.

        >>> oncilla.TensorSpec("x", "float32", (None,)).array([1, 2])
        array([1., 2.], dtype=float32)
        """
        if self.kind != "tensor":
            raise TypeError(f"'{self.name}' is {self.kind} of {self.dtype}, not a tensor")
        code = _types.CODES[self.dtype]
        tensor = _arrays.to_tensor(self.name, value, code)
        if tensor.code != code:
            raise InvalidArgumentError(f"input '{self.name}' is {_types.NAMES.get(tensor.code, 'unknown')}, and the model takes "
                                       f"{self.dtype}")
        return np.asarray(tensor.value(kind=0))

    def __str__(self) -> str:
        shape = "of any shape" if self.shape is None else f"[{', '.join('?' if s is None else str(s) for s in self.shape)}]"
        kind = "" if self.kind == "tensor" else f"{self.kind} of "
        return f"{self.name}: {kind}{self.dtype} {shape}"


Info = tuple[str, int, Any, int]  # as the extension module returns it


def spec_of(info: Info) -> TensorSpec:
    name, code, shape, kind = info
    return TensorSpec(name, _types.NAMES.get(code, "unknown"), shape, _KINDS[kind])
