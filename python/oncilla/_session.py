"""Sessions: devices in use, memory and limits."""
from __future__ import annotations

import atexit
import dataclasses
import json
import operator
import os
import weakref
from collections.abc import Callable as _Callable, Iterable, Mapping
from typing import Any, Protocol, runtime_checkable

from . import _arrays, _oncilla, _types
from ._graph import Graph
from ._model import Model
from ._runtime import Runtime, default_runtime

Progress = _Callable[[str, float], None]
@runtime_checkable
class SerializedModel(Protocol):
    """A protobuf message of any package."""

    def SerializeToString(self) -> bytes: ...


_STORED_DEVICES = {"default": 0, "soft": 1, "respect": 2, "ignore": 3}


@dataclasses.dataclass(frozen=True)
class SessionDevice:
    """A device as a session sees it; `limit_bytes` and `pool_bytes` are 0 until it is in use."""

    name: str
    driver_name: str
    in_use: bool
    preferred: bool
    limit_bytes: int
    pool_bytes: int


@dataclasses.dataclass(frozen=True)
class MemoryInfo:
    """The memory of a device in use, in bytes; `fragmentation` is a share, 0 to 1. See docs/memory.md."""

    in_use_bytes: int
    pool_bytes: int
    peak_bytes: int
    limit_bytes: int
    largest_free_bytes: int
    fragmentation: float
    reserve_bytes: int
    total_bytes: int
    total_limit_bytes: int
    abandoned_bytes: int


def _config_bytes(config: Any) -> bytes | None:
    if config is None:
        return None
    if isinstance(config, str):
        return config.encode()
    if isinstance(config, (bytes, bytearray, memoryview)):
        return bytes(config)
    if isinstance(config, Mapping):
        return json.dumps(dict(config)).encode()
    if hasattr(config, "SerializeToString"):  # a message: tensorflow.compat.v1.ConfigProto
        return bytes(config.SerializeToString())
    raise TypeError(f"config is text, bytes, a dict or a ConfigProto, not {type(config).__name__}")


def _byte_count(name: str, value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is a number of bytes, as 512 << 20, not {value!r}") from None


class Session(_oncilla.SessionBase):
    """Devices in use, their memory and limits. Models are loaded into a session and share it.

    `device` is "auto" (the first GPU, else the CPU), "cpu", "gpu", "gpu:1" or a TensorFlow device name; None leaves it to
    `config`. `strict` refuses to run a node on another device where its own has no kernel for it. `threads` is a pool of the
    session's own. `memory_limit` is the most bytes taken on each device, `max_concurrent_runs` the most runs at once per
    model and shapes. `config` is everything else (docs/config.md): text, JSON, a dict of the same fields, or TensorFlow's
    ConfigProto as an object, text or bytes. A `with` statement closes the session.

    >>> with oncilla.Session(device="cpu", memory_limit=100_000_000, config={"run_timeout_ms": 5000}) as session:
    ...     session.memory("cpu").limit_bytes
    100000000
    """

    def __init__(self, *, device: str | None = None, strict: bool = False, threads: int = 0, memory_limit: int = 0,
                 max_concurrent_runs: int = 0, config: Any = None, runtime: Runtime | None = None) -> None:
        super().__init__()
        _types.check_text("device", device)
        if runtime is not None and not isinstance(runtime, Runtime):
            raise TypeError(f"runtime must be an oncilla.Runtime, not {type(runtime).__name__}")
        self.runtime: Runtime = default_runtime() if runtime is None else runtime
        self._closed_bytes: int | None = None
        self._create(self.runtime, device, strict, threads, _byte_count("memory_limit", memory_limit),
                     max_concurrent_runs, _config_bytes(config))
        self._pid = os.getpid()
        _open.add(self)

    def load(self, model: str | os.PathLike[str] | bytes | bytearray | memoryview | Graph | SerializedModel, *,
             tags: str | Iterable[str] = (), stored_devices: str = "default", eager: bool = False,
             progress: Progress | None = None, strings: str = "str", name: str = "bytes") -> Model:
        """Loads a model: a path (SavedModel folder, GraphDef, ONNX, TFLite or Oncilla's own), the bytes of a model in one
        file, which `name` stands for in messages, a Graph, or a message of another package that holds a model
        (onnx.ModelProto, a GraphDef). See oncilla.load for the rest."""
        if stored_devices not in _STORED_DEVICES:
            raise ValueError(f"stored_devices is one of {', '.join(_STORED_DEVICES)}, not {stored_devices!r}")
        loaded = Model()
        loaded._prepare_for(self, strings)
        tag_text = tags if isinstance(tags, str) else ",".join(tags)
        stored = _STORED_DEVICES[stored_devices]
        if isinstance(model, SerializedModel):
            model = model.SerializeToString()
        if isinstance(model, Graph):
            _oncilla._load_graph(loaded, self, model, stored, eager, progress)
        elif isinstance(model, (bytes, bytearray, memoryview)):
            # Bytes that could change are copied, because the engine reads weights as long as the model lives.
            held = model if isinstance(model, bytes) else bytes(model)
            loaded._load_bytes(self, held, name, tag_text, stored, eager, progress)
        else:
            loaded._load(self, os.fsencode(model), tag_text, stored, eager, progress)
        loaded._loaded()
        return loaded

    def close(self, *, cancel: bool = False, timeout: float | None = None) -> int:
        """Waits for the session's runs (`cancel`: ends them at once; `timeout`: those that take longer than so many
        seconds), frees all its memory and returns how many bytes that was. Its models then refuse to run."""
        if self._closed_bytes is None:
            limit = 0 if timeout is None else max(1, round(timeout * 1000))
            self._closed_bytes = self._close(cancel, limit)
            _open.discard(self)
            return self._closed_bytes
        return 0

    @property
    def closed(self) -> bool:
        """Whether close() was called."""
        return self._closed_bytes is not None

    @property
    def closed_bytes(self) -> int | None:
        """How many bytes close() freed; None as long as the session is open."""
        return self._closed_bytes

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def config(self) -> dict[str, Any]:
        """All options that were set."""
        fields: dict[str, Any] = json.loads(self._config() or "{}")
        return fields

    def devices(self) -> list[SessionDevice]:
        """The devices that the session sees: the CPU first, then GPUs."""
        return [SessionDevice(**fields) for fields in self._devices()]

    def memory(self, device: str = "cpu") -> MemoryInfo:
        """The memory of a device in use."""
        return MemoryInfo(**self._memory(device))

    def set_memory_limit(self, device: str, limit_bytes: int) -> None:
        """Sets the memory limit of a device in use, from now on. Memory above it stays until it is freed."""
        self._set_memory_limit(device, _byte_count("limit_bytes", limit_bytes))

    def memory_report(self) -> str:
        """Who holds how much memory: limits, owners, weights, plans with the node at their peak, the latest changes."""
        return self._report(False)

    def memory_data(self) -> dict[str, Any]:
        """memory_report() as data."""
        data: dict[str, Any] = json.loads(self._report(True))
        return data

    def upload(self, value: Any, device: str | None = None) -> _oncilla.Tensor:
        """Copies an array to a device in use (None: the session's), to be an input of many runs. On the CPU the copy is a
        tensor in host memory."""
        _types.check_text("device", device)
        return self._upload(_arrays.to_tensor("", value), device)

    def wrap_opencl(self, buffer: int, dtype: Any, shape: Iterable[int], offset: int = 0) -> _oncilla.Tensor:
        """A tensor in a cl_mem of the session's own context, given by its address (pyopencl: `buffer.int_ptr`), without a
        copy; see docs/opencl_interop.md."""
        return _oncilla._opencl_wrap(self, buffer, offset, _types.code_of(dtype), list(shape))

    def __repr__(self) -> str:
        if self.closed:
            return "<oncilla.Session, closed>"
        return f"<oncilla.Session on {', '.join(d.name.rpartition('device:')[2] for d in self.devices() if d.in_use)}>"


_open: weakref.WeakSet[Session] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """Ends runs on other threads, because nothing may run while the process shuts down. Threads that return from the
    library from now on wait for the end of the process (python/src/unlock.h)."""
    _oncilla.begin_end()
    for session in list(_open):
        if session._pid == os.getpid():
            try:
                session.close(cancel=True)
            except Exception:  # there is nobody left to report it to
                pass


def load(path: str | os.PathLike[str] | bytes | bytearray | memoryview | Graph | SerializedModel, *,
         device: str | None = "auto", session: Session | None = None, tags: str | Iterable[str] = (), stored_devices: str = "default",
         eager: bool = False, progress: Progress | None = None, strings: str = "str", config: Any = None,
         memory_limit: int = 0) -> Model:
    """Loads a model into a session of its own, on "auto" (the first GPU, else the CPU), "cpu", "gpu:1" or a device name;
    or into `session`. Closing the model closes that session of its own.

    `path` is a SavedModel folder, a frozen GraphDef, an ONNX or TFLite file or Oncilla's own, told apart by content; or
    the bytes of a file; or a Graph; or a message of another package that holds a model (onnx.ModelProto, a GraphDef).
    `tags` choose a SavedModel's meta graph. `stored_devices` says what to do with the devices on a TensorFlow model's
    nodes: "ignore" (the default for files), "soft" or "respect". `eager` compiles at once what the default signature
    needs, so that an unsupported model fails here. `progress` is called with "load" and, where `eager`, "compile", and
    the share of it that is done, from 0.0 to 1.0. `strings` is how strings come back: "str" or "bytes".

    >>> graph = oncilla.Graph()
    >>> x = graph.placeholder("float32", [None], name="x")
    >>> y = graph.op("Neg", x, name="y")
    >>> model = oncilla.load(graph, device="cpu")
    >>> model.run({"x:0": [1.0, 2.0]}, outputs=["y:0"])["y:0"]
    array([-1., -2.], dtype=float32)
    """
    own = session is None
    if session is None:
        session = Session(device=None if device == "auto" and config is not None else device, config=config,
                          memory_limit=memory_limit)
    elif device not in ("auto", None) or config is not None or memory_limit:
        raise ValueError("device, config and memory_limit belong to the session that is given")
    try:
        model = session.load(path, tags=tags, stored_devices=stored_devices, eager=eager, progress=progress,
                             strings=strings)
    except BaseException:
        if own:
            session.close()
        raise
    model._owns_session = own
    return model
