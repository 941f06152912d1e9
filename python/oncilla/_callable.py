"""Callables with OpenCL objects of the program: methods added to the types of the extension module."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from . import _oncilla
from ._result import TRACE_FORMATS

Callable = _oncilla.Callable
EnqueuedRun = _oncilla.EnqueuedRun
for _type in (Callable, EnqueuedRun, _oncilla.Prefetcher, _oncilla.Cancellation):
    _type.__module__ = "oncilla"


def _run_into(self: _oncilla.Callable, *values: Any, outputs: Sequence[_oncilla.Tensor | None],
              timeout: float | None = None, cancel: _oncilla.Cancellation | None = None) -> dict[str, int]:
    """Like a call, but writes the results to tensors of Session.wrap_opencl, which have exactly their types and shapes; None
    drops an output. Returns what was copied. See docs/opencl_interop.md."""
    return _oncilla._run_into(self, values, outputs, timeout, cancel)


def _enqueue(self: _oncilla.Callable, queue: int, *values: Any, outputs: Sequence[_oncilla.Tensor],
             wait_for: Iterable[int] = (), trace: bool = False) -> _oncilla.EnqueuedRun:
    """Enqueues the run on an in-order command queue of the program's, given by its address, and returns. It begins after the
    commands that are in the queue and after the events `wait_for`, given by their addresses."""
    return _oncilla._enqueue(self, queue, values, outputs, list(wait_for), trace)


def _finish(self: _oncilla.EnqueuedRun, timeout: float | None = None) -> None:
    """Flushes the queue, waits for the run, at most `timeout` seconds, and raises what failed."""
    self._finish(-1 if timeout is None else round(timeout * 1000))


def _trace(self: _oncilla.EnqueuedRun, format: str = "chrome") -> bytes:
    """The trace of a run that was enqueued with `trace`, after finish()."""
    return self._trace(TRACE_FORMATS[format])


for _to, _name, _value in ((Callable, "run_into", _run_into), (Callable, "enqueue", _enqueue),
                           (EnqueuedRun, "finish", _finish), (EnqueuedRun, "trace", _trace)):
    setattr(_to, _name, _value)
