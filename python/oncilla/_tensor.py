"""The Python part of the class Tensor: methods added to the type of the extension module."""
from __future__ import annotations

from typing import Any

import numpy as np

from . import _arrays, _oncilla, _types

Tensor = _oncilla.Tensor
Tensor.__module__ = "oncilla"


def _dtype(self: _oncilla.Tensor) -> str:
    """The element type by name: "float32", "bfloat16", "string"."""
    return _types.NAMES.get(self.code, "unknown")


def _numpy(self: _oncilla.Tensor) -> Any:
    """The values as an array without a copy, which is read-only; a tensor on a device is copied to the host. A sequence is
    a list."""
    return self.value(kind=1 if self.is_sequence else 0)


def _array(self: _oncilla.Tensor, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
    if copy is False and self.device:
        raise ValueError("a tensor on a device cannot be an array without a copy")
    array = np.asarray(_numpy(self))
    if dtype is not None and array.dtype != np.dtype(dtype):
        if copy is False:
            raise ValueError("another dtype needs a copy")
        return array.astype(dtype)
    return array.copy() if copy else array


def _dlpack(self: _oncilla.Tensor, *, stream: Any = None, max_version: tuple[int, int] | None = None,
            dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any:
    """A capsule of DLPack: memory of the host or, of a tensor on a GPU, its cl_mem (kDLOpenCL). Before version 1 a capsule
    cannot express that memory is read-only, and gets a copy unless `copy` is False."""
    if stream is not None:
        raise BufferError("host memory and OpenCL have no streams")
    here = self.dlpack_device()
    if dl_device is not None and tuple(map(int, dl_device)) != here:
        if int(dl_device[0]) != 1 or copy is False:
            raise BufferError(f"the tensor is on device {here}, not on {tuple(dl_device)}")
        return _dlpack(self.read(), max_version=max_version, copy=copy)
    version = 0 if max_version is None else int(max_version[0])
    if copy is None:
        copy = version < 1 and here[0] == 1
    return self.dlpack(version, copy)


def _from(value: Any) -> _oncilla.Tensor:
    """A tensor from an array, a list, strings, or anything that speaks DLPack, without a copy where the memory allows."""
    return _arrays.to_tensor("", value)


def _repr(self: _oncilla.Tensor) -> str:
    where = f" on {self.device}" if self.device else ""
    kind = "sequence of " if self.is_sequence else ""
    return f"<oncilla.Tensor {kind}{_dtype(self)} {list(self.shape)}{where}>"


for _name, _value in {
    "dtype": property(_dtype, doc=_dtype.__doc__), "numpy": _numpy, "__array__": _array, "__dlpack__": _dlpack,
    "__dlpack_device__": lambda self: self.dlpack_device(), "of": staticmethod(_from), "__repr__": _repr,
    "__len__": lambda self: self.shape[0] if self.shape else _no_length(),
}.items():
    setattr(Tensor, _name, _value)


def _no_length() -> int:
    raise TypeError("a tensor without axes has no length")
