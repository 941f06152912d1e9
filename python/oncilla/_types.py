"""Element types by number, name and NumPy's dtype."""
from __future__ import annotations

from typing import Any

import numpy as np

# By the numbers of oncilla_dtype. The names are NumPy's and ml_dtypes'.
NAMES: dict[int, str] = dict(enumerate((
    "float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "bool", "string", "int4", "uint4", "int2", "uint2", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
    "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn", "complex64", "complex128"), 1))
CODES: dict[str, int] = {name: code for code, name in NAMES.items()}
STRING = CODES["string"]
# Elements of fewer than 8 bits, which are packed: how many bits they have.
PACKED_BITS: dict[int, int] = {CODES["int4"]: 4, CODES["uint4"]: 4, CODES["int2"]: 2, CODES["uint2"]: 2,
                               CODES["float4_e2m1fn"]: 4}
_OF_NUMPY = {"float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
             "bool", "complex64", "complex128"}


def check_text(name: str, value: Any) -> None:
    """TypeError for an argument that is neither a str nor None."""
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{name} must be a str, not {type(value).__name__}")


def is_extended(code: int) -> bool:
    """Whether only ml_dtypes has the type."""
    return code != STRING and NAMES[code] not in _OF_NUMPY


def numpy_dtype(code: int) -> np.dtype[Any]:
    """NumPy's dtype of a type; ImportError if it needs ml_dtypes and that is not installed."""
    name = NAMES[code]
    if name in _OF_NUMPY:
        return np.dtype(name)
    if code == STRING:
        return np.dtype(object)
    try:
        import ml_dtypes
    except ImportError as missing:
        raise ImportError(f"arrays of {name} need the package ml_dtypes: pip install ml_dtypes") from missing
    kind = getattr(ml_dtypes, name, None)
    if kind is None:
        raise ImportError(f"this version of ml_dtypes has no {name}")
    made: np.dtype[Any] = np.dtype(kind)
    return made


def integer_range(dtype: np.dtype[Any]) -> tuple[int, int]:
    """The least and the largest value of a type of integers, those of ml_dtypes included."""
    unsigned = dtype.name.startswith("uint")
    bits = int(dtype.name.removeprefix("uint" if unsigned else "int"))
    return (0, (1 << bits) - 1) if unsigned else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def code_of(dtype: Any) -> int:
    """The number of a dtype, given as NumPy takes it or by name ("float32", "bfloat16", "string")."""
    if isinstance(dtype, str) and dtype in CODES:
        return CODES[dtype]
    if dtype is str or dtype is bytes:
        return STRING
    given = np.dtype(dtype)
    if given.kind in "OSUT":
        return STRING
    if given.name in CODES:
        return CODES[given.name]
    raise TypeError(f"{given} is not a type of tensors; the types are: {', '.join(CODES)}")
