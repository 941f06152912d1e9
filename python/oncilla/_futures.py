"""Asynchronous runs as futures. One Python thread completes them all, and ends with the interpreter."""
from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import contextlib
import itertools
import os
import threading
from collections.abc import Callable, Generator
from typing import Any

from . import _oncilla
from ._result import Result

_numbers = itertools.count(1)
_lock = threading.Lock()
_pending: dict[int, tuple[Run, _oncilla.PendingRun]] = {}
_thread: threading.Thread | None = None
_ending = False


class Run(concurrent.futures.Future[Result]):
    """A run on a thread of the session: a future, which can also be awaited.

    cancel() ends the run within milliseconds, also while it computes; so does cancelling a task that awaits it.
    """

    _native: _oncilla.PendingRun | None = None

    def cancel(self) -> bool:
        """Cancels the run; False when it is over already."""
        if self.done():
            return self.cancelled()
        if self._native is not None:
            self._native.cancel()
        return super().cancel()

    def __await__(self) -> Generator[Any, None, Result]:
        return asyncio.wrap_future(self).__await__()


def _complete(number: int) -> None:
    with _lock:
        found = _pending.pop(number, None)
    if found is None:
        return
    run, native = found
    run._native = None
    with contextlib.suppress(concurrent.futures.InvalidStateError):  # the future was cancelled
        try:
            result = native.wait()
        except Exception as failure:
            run.set_exception(failure)
        else:
            run.set_result(result)


def _serve() -> None:
    while not _ending:
        for number in _oncilla.wait_for_runs():
            _complete(number)
        _oncilla.drain()


def _end() -> None:
    global _ending
    _ending = True
    for run, _ in list(_pending.values()):
        run.cancel()
    _oncilla.wake_waiting()
    if _thread is not None and _thread.is_alive():
        _thread.join(5)


def _forked() -> None:
    """In a child process: the thread and the runs stayed in the parent."""
    global _lock, _thread
    _lock = threading.Lock()
    _thread = None
    _pending.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


def start(begin: Callable[[int], _oncilla.PendingRun]) -> Run:
    """Starts a run, given its number, and returns its future."""
    global _thread
    run, number = Run(), next(_numbers)
    with _lock:
        if _ending:
            raise RuntimeError("the interpreter is ending")
        if _thread is None:
            _thread = threading.Thread(target=_serve, name="oncilla", daemon=True)
            _thread.start()
            atexit.register(_end)
        native = begin(number)
        run._native = native
        _pending[number] = (run, native)
    return run
