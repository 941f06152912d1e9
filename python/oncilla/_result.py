"""What a run returns."""
from __future__ import annotations

import os
from typing import Any

from . import _html, _oncilla

TRACE_FORMATS = {"chrome": 0, "step_stats": 1}


class Result(dict[str, Any]):
    """The outputs of a run by name: NumPy arrays, which are read-only where they share memory with the model or with
    each other; tensors on devices where the run kept them there; lists and None for sequences and optional values.
    """

    __slots__ = ("_native",)
    _native: _oncilla.NativeResult

    @property
    def report(self) -> str:
        """One line: which nodes ran where, why, and what was copied."""
        return self._native.report()

    def trace(self, format: str = "chrome") -> bytes:
        """The trace of a run that was made with `trace`: JSON for Perfetto ("chrome"), or a serialized
        tensorflow.RunMetadata ("step_stats"). FailedPreconditionError for other runs."""
        if format not in TRACE_FORMATS:
            raise ValueError(f"there is no format {format!r}; there are {', '.join(TRACE_FORMATS)}")
        return self._native.trace(TRACE_FORMATS[format])

    def save_trace(self, path: str | os.PathLike[str], format: str = "chrome") -> None:
        """Writes trace() to a file."""
        with open(path, "wb") as file:
            file.write(self.trace(format))

    def __reduce__(self) -> tuple[type[dict[str, Any]], tuple[dict[str, Any]]]:
        # The report and trace exist in this process only: when pickled or copied, a result is a dict of its arrays.
        return dict, (dict(self),)

    def _repr_html_(self) -> str:
        return _html.result(self)
