"""Tensors from values other than plain contiguous arrays: lists, strings, types of ml_dtypes, DLPack, sequences."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from . import _oncilla, _types

_Declared = Mapping[str, tuple[int, Any, int]]
_TENSOR, _SEQUENCE, _OPTIONAL, _OPTIONAL_SEQUENCE = range(4)


def string_bytes(value: Any) -> bytes:
    """The bytes of a string. A str is encoded as UTF-8; surrogates become the bytes that they stand for."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape")
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise TypeError(f"an element of a tensor of strings must be str or bytes, not {type(value).__name__}")


def strings_array(strings: list[Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    array = np.empty(len(strings), dtype=object)
    array[:] = strings
    array = array.reshape(shape)
    array.flags.writeable = False
    return array


def extended_array(tensor: _oncilla.Tensor) -> np.ndarray[Any, Any]:
    """An array of a type that only ml_dtypes has, where packed types take a byte for each element."""
    dtype = _types.numpy_dtype(tensor.code)
    raw = np.asarray(tensor)
    bits = _types.PACKED_BITS.get(tensor.code)
    if bits is None:
        return raw.view(dtype)
    per_byte = 8 // bits
    shifts = np.arange(per_byte, dtype=np.uint8) * np.uint8(bits)
    count = int(np.prod(tensor.shape, dtype=np.int64))
    values = ((raw[:, None] >> shifts) & np.uint8((1 << bits) - 1)).reshape(-1)[:count]
    made: np.ndarray[Any, Any]
    if _types.NAMES[tensor.code].startswith("int"):  # the sign is the highest of the bits
        half = 1 << (bits - 1)
        made = ((values.astype(np.int8) ^ half) - half).astype(dtype)
    elif _types.NAMES[tensor.code].startswith("float"):
        made = values.view(dtype)
    else:
        made = values.astype(dtype)
    return made.reshape(tensor.shape)


def _pack(array: np.ndarray[Any, Any], code: int) -> _oncilla.Tensor:
    bits = _types.PACKED_BITS[code]
    flat = np.ascontiguousarray(array).reshape(-1)
    raw = flat.view(np.uint8) if _types.NAMES[code].startswith("float") else flat.astype(np.int8).view(np.uint8)
    per_byte = 8 // bits
    padded = np.zeros(-(-len(raw) // per_byte) * per_byte, np.uint8)
    padded[: len(raw)] = raw & np.uint8((1 << bits) - 1)
    shifts = np.arange(per_byte, dtype=np.uint8) * np.uint8(bits)
    packed = np.bitwise_or.reduce(padded.reshape(-1, per_byte) << shifts, axis=1).astype(np.uint8)
    return _oncilla.wrap_bytes(packed, code, list(array.shape))


def from_array(array: np.ndarray[Any, Any], name: str = "") -> _oncilla.Tensor:
    """An array of any layout as a tensor; without a copy where it is dense, row-major, aligned and in this machine's
    byte order."""
    array = array.view(np.ndarray)
    if array.dtype.kind in "OSUT":
        return _oncilla.make_strings(array.reshape(-1).tolist(), list(array.shape))
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    try:
        code = _types.code_of(array.dtype)
    except TypeError as wrong:
        raise TypeError(f"input '{name}': {wrong}" if name else str(wrong)) from None
    if code in _types.PACKED_BITS:
        return _pack(array, code)
    if not array.flags.c_contiguous or not array.flags.aligned:
        array = array.copy("C")
    if _types.is_extended(code):
        return _oncilla.wrap_bytes(array.view(f"u{array.itemsize}"), code, list(array.shape))
    tensor = _oncilla.wrap(array)
    if tensor is None:  # aligned for NumPy but not to the element size: complex numbers
        tensor = _oncilla.wrap_bytes(array, code, list(array.shape))
    return tensor


def _fits(array: np.ndarray[Any, Any], dtype: np.dtype[Any], kind: str) -> bool:
    """Whether all values are in the range of a type of this kind. Floats are rounded; infinities and NaN always fit."""
    if kind in "iu":
        low, high = _types.integer_range(dtype)
        # Compared as Python's numbers: a cast between int64 and uint64 and back wraps around twice, and would seem exact.
        return int(array.min()) >= low and int(array.max()) <= high
    if kind not in "fc" or array.dtype.kind not in "iufc":
        return True
    with np.errstate(over="ignore", invalid="ignore"):
        cast = array.astype(dtype).astype(np.complex128 if kind == "c" else np.float64)
        fits = np.isfinite(cast) | ~np.isfinite(array)
        if dtype.name.startswith("float4"):  # has no infinity: larger values become the largest
            fits &= np.abs(array) <= 6
        return bool(np.all(fits))


def _from_numbers(name: str, value: Any, code: int | None) -> _oncilla.Tensor:
    """Converts Python's lists and numbers to the type that the model declares, where their values fit that type."""
    array = np.asarray(value)
    if array.dtype == object or array.dtype.kind in "SUT":
        if code not in (None, _types.STRING):
            if array.dtype == object and array.size and all(isinstance(item, int) for item in array.flat):
                raise OverflowError(f"input '{name}': a value is out of the range of {_types.NAMES[code]}")
            raise TypeError(f"input '{name}': {type(value).__name__} does not give numbers of one shape, and the model "
                            f"declares {_types.NAMES[code]}")
        return from_array(array, name)
    if code is None or code == _types.STRING:
        if code == _types.STRING:
            raise TypeError(f"input '{name}' must be str or bytes, or an array or list of them")
        return from_array(array, name)
    dtype = _types.numpy_dtype(code)
    if array.size == 0:
        return from_array(array.astype(dtype), name)
    kinds = "biufc"
    extended = _types.is_extended(code)
    kind = "f" if extended and "float" in dtype.name else "i" if extended else dtype.kind
    if kinds.index(array.dtype.kind) > kinds.index(kind) and not (array.dtype.kind in "iu" and kind in "iu"):
        raise TypeError(f"input '{name}': values of {array.dtype} are not converted to {dtype.name}; convert them first")
    if not _fits(array, dtype, kind):
        raise OverflowError(f"input '{name}': a value is out of the range of {dtype.name}")
    return from_array(array.astype(dtype), name)


def to_tensor(name: str, value: Any, code: int | None = None) -> _oncilla.Tensor:
    """Converts any value for one tensor. `code` is the type that the model declares, if it does."""
    if isinstance(value, _oncilla.Tensor):
        return value
    if isinstance(value, np.ndarray):
        if isinstance(value, np.ma.MaskedArray):
            raise TypeError(f"input '{name}' is a masked array: fill it first")
        return from_array(value, name)
    if isinstance(value, (np.generic, str, bytes)):
        if isinstance(value, (str, bytes)):
            return _oncilla.make_strings([value], [])
        return from_array(np.asarray(value), name)
    if isinstance(value, (bool, int, float, complex, list, tuple)):
        return _from_numbers(name, value, code)
    # TensorFlow ends the process when it is asked for a DLPack capsule of strings.
    strings = getattr(getattr(value, "dtype", None), "name", "") == "string"
    if hasattr(value, "__dlpack__") and not strings:
        try:
            return tensor_from_dlpack(value)
        except (BufferError, RuntimeError, TypeError, ValueError):
            if not hasattr(value, "__array__"):
                raise
    if hasattr(value, "__array__"):
        return from_array(np.asarray(value), name)
    if value is None:
        raise TypeError(f"input '{name}' is None, and the model does not declare it as optional")
    raise TypeError(f"input '{name}': {type(value).__name__} is not an array, list, number or string")


def tensor_from_dlpack(value: Any) -> _oncilla.Tensor:
    """A tensor over the memory of another library's tensor in host memory, by either version of DLPack."""
    device = getattr(value, "__dlpack_device__", None)
    if device is not None and int(device()[0]) != 1:
        raise BufferError("the tensor is not in host memory: copy it there first")
    try:
        capsule = value.__dlpack__(max_version=(1, 0))
    except TypeError:  # a library older than version 1
        capsule = value.__dlpack__()
    return _oncilla.from_dlpack(capsule)


def _sequence(name: str, value: Any, code: int) -> _oncilla.Tensor:
    if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
        raise TypeError(f"input '{name}' is a sequence: give a list, not {type(value).__name__}")
    return _oncilla.make_sequence(code, [to_tensor(f"{name}[{i}]", item, code) for i, item in enumerate(value)])


def converter(declared: _Declared) -> Callable[[str, Any], _oncilla.Tensor]:
    """The function that converts a model's inputs other than plain arrays, by what the model declares for the name."""

    def convert(name: str, value: Any) -> _oncilla.Tensor:
        if isinstance(value, _oncilla.Tensor):
            return value
        code, _, kind = declared.get(name, (None, None, _TENSOR))
        if kind == _TENSOR or code is None:
            return to_tensor(name, value, code)
        if kind == _SEQUENCE:
            return _sequence(name, value, code)
        if value is None:
            return _oncilla.make_optional(code, None)
        inner = _sequence(name, value, code) if kind == _OPTIONAL_SEQUENCE else to_tensor(name, value, code)
        return _oncilla.make_optional(code, inner)

    return convert
