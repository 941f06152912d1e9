"""Runtimes: the devices of the machine."""
from __future__ import annotations

import dataclasses
import logging
import os
import threading
import weakref

from . import _log, _oncilla


@dataclasses.dataclass(frozen=True)
class Device:
    """A device of the machine. `name` is "" where it cannot be used, and `note` says why."""

    name: str
    note: str
    driver_name: str
    vendor: str
    driver_version: str
    backend: str
    memory_bytes: int
    max_allocation_bytes: int
    compute_units: int
    id: str

    @property
    def short_name(self) -> str:
        """ "GPU:0", as options take it."""
        return self.name.rpartition("device:")[2]


@dataclasses.dataclass(frozen=True)
class ClosedSessions:
    """What Runtime.close_sessions freed, and what handles the program still holds."""

    released_bytes: int
    still_held: tuple[str, ...]


class Runtime(_oncilla.RuntimeBase):
    """The devices of this machine, which are listed without opening any. Sessions of one runtime share its threads, and a
    limit on the memory that they take of a device together.

    `opencl_cpu_devices` lists OpenCL devices of type CPU as GPU:n too, to use OpenCL without a GPU. `threads` is the size of
    the pool (0: all processors), `cache_dir` where compiled OpenCL programs are kept. Messages go to the logger "oncilla";
    `log_level` is the lowest level of messages that it makes, by default the logger's level now.

    >>> runtime = oncilla.Runtime(threads=2)
    >>> runtime.devices()[0].short_name
    'CPU:0'
    """

    def __init__(self, *, opencl_cpu_devices: bool = False, threads: int = 0,
                 cache_dir: str | os.PathLike[str] | None = None, log_level: int | None = None) -> None:
        super().__init__()
        folder = None if cache_dir is None else os.fsencode(cache_dir)
        self._create(opencl_cpu_devices, threads, folder, _native_level(log_level))
        self._pid = os.getpid()
        _all.add(self)

    @classmethod
    def from_opencl(cls, context: int, device: int = 0, *, library: str | None = None, threads: int = 0,
                    log_level: int | None = None) -> Runtime:
        """A runtime with the CPU and, as GPU:0, a device of the program's own OpenCL context. `context` and `device` are
        addresses, as pyopencl's `int_ptr` gives them; device 0 is the context's only one. `library` is the shared library
        that made the context, where that is not libOpenCL.so.1."""
        runtime = cls.__new__(cls)
        _oncilla.RuntimeBase.__init__(runtime)
        _oncilla._opencl_runtime(runtime, context, device, library, threads, _native_level(log_level))
        runtime._pid = os.getpid()
        _all.add(runtime)
        return runtime

    def devices(self) -> list[Device]:
        """The CPU first, then the GPUs, then devices that cannot be used, with the reason."""
        return [Device(**fields) for fields in self._devices()]

    def close_sessions(self) -> ClosedSessions:
        """Closes all sessions after waiting for their runs; objects that are still held refuse to run."""
        released, held = self._close_sessions()
        return ClosedSessions(released, tuple(held.splitlines()))

    def __repr__(self) -> str:
        return f"<oncilla.Runtime of {', '.join(d.short_name or d.driver_name for d in self.devices())}>"


def _native_level(level: int | None) -> int:
    if level is None:
        return _log.native_level()
    known = {logging.DEBUG: 0, logging.INFO: 1, logging.WARNING: 2, logging.ERROR: 3}
    if level not in known:
        raise ValueError("log_level is one of logging.DEBUG, INFO, WARNING and ERROR")
    return known[level]


_all: weakref.WeakSet[Runtime] = weakref.WeakSet()
_default: Runtime | None = None
_lock = threading.Lock()


def default_runtime() -> Runtime:
    """The runtime that load() and Session() use by default."""
    global _default
    with _lock:
        if _default is None or _default._pid != os.getpid():  # a forked child needs its own
            _default = Runtime()
        return _default


def devices() -> list[Device]:
    """The devices of this machine: the CPU first, then GPUs, then what cannot be used, with the reason.

    >>> [device.short_name for device in oncilla.devices()][0]
    'CPU:0'
    """
    return default_runtime().devices()


def has_device(name: str) -> bool:
    """Whether there is a usable device of that name: "/GPU:0", "gpu:0", or a type, "GPU".

    >>> oncilla.has_device("CPU")
    True
    """
    return default_runtime().has_device(name)
