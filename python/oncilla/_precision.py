"""The cost of 16-bit storage in accuracy."""
from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

from . import _arrays, _oncilla
from ._runtime import Runtime, default_runtime


@dataclasses.dataclass(frozen=True)
class NumberErrors:
    """The errors of a value relative to fp32; see docs/precision.md."""

    largest: float
    max_error: float
    rms_error: float
    relative_error: float
    top1_agreement: float
    overflowed: int
    others_that_differ: int


@dataclasses.dataclass(frozen=True)
class PrecisionReport:
    """The result of check_precision: a table as text, and numbers for each output and intermediate value."""

    text: str
    outputs: dict[str, NumberErrors]
    inner: dict[str, NumberErrors]

    def __str__(self) -> str:
        return self.text


def check_precision(path: str | os.PathLike[str], inputs: Mapping[str, Any], storage: str = "fp16", *,
                    device: str = "auto", inner_values: int = 0, runtime: Runtime | None = None) -> PrecisionReport:
    """Runs a model in 16 bits ("fp16" or "bf16") and in fp32 and compares the results; `inner_values` is how many
    intermediate values to compare as well, at the cost of one more run each."""
    text, outputs, inner = _oncilla._check_precision(default_runtime() if runtime is None else runtime, os.fsencode(path),
                                                     dict(inputs), storage, device, inner_values, _arrays.to_tensor)
    return PrecisionReport(text, {n: NumberErrors(**e) for n, e in outputs.items()},
                           {n: NumberErrors(**e) for n, e in inner.items()})
