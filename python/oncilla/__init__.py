"""Oncilla runs TensorFlow, ONNX and TFLite models on OpenCL devices and on the CPU.

    import oncilla
    model = oncilla.load("model.onnx")
    outputs = model(image=array)        # a dict of arrays

Sessions own devices, memory and limits; models run in them; see help(oncilla.load), help(oncilla.Session), and docs/python.md.
"""
from __future__ import annotations

import importlib as _importlib
import signal as _signal
import threading as _threading

import numpy as _numpy

from . import _oncilla
from ._arrays import extended_array, string_bytes, strings_array
from ._callable import Callable, EnqueuedRun
from ._errors import (AbortedError, AlreadyExistsError, CancelledError, DataLossError, DeadlineExceededError, Error,
                      FailedPreconditionError, InternalError, InvalidArgumentError, ModelFileNotFoundError, NotFoundError,
                      OutOfRangeError, PermissionDeniedError, ResourceExhaustedError, UnavailableError, UnimplementedError,
                      UnknownError, make_error)
from ._futures import Run
from ._graph import Graph
from ._log import log
from ._model import Model, Signature
from ._oncilla import Cancellation
from ._plan import Plan
from ._precision import PrecisionReport, check_precision
from ._result import Result
from ._runtime import Device, Runtime, default_runtime, devices, has_device
from ._session import Session, load
from ._spec import TensorSpec
from ._tensor import Tensor

__version__: str = _oncilla.version()
build_info: str = _oncilla.build_info()

_oncilla.set_helpers({"make_error": make_error, "log": log, "string_bytes": string_bytes, "strings_array": strings_array,
                      "extended_array": extended_array, "Result": Result, "ndarray": _numpy.ndarray,
                      "asarray": _numpy.asarray, "main_thread": _threading.main_thread().ident,
                      "getsignal": _importlib.import_module("_signal").getsignal, "default_int_handler": _signal.default_int_handler,
                      "SIGINT": int(_signal.SIGINT)})

__all__ = [
    "AbortedError", "AlreadyExistsError", "Callable", "Cancellation", "CancelledError", "DataLossError",
    "DeadlineExceededError", "Device", "EnqueuedRun", "Error", "FailedPreconditionError", "Graph", "InternalError",
    "InvalidArgumentError", "Model", "ModelFileNotFoundError", "NotFoundError", "OutOfRangeError",
    "PermissionDeniedError", "Plan", "PrecisionReport", "ResourceExhaustedError", "Result", "Run", "Runtime", "Session",
    "Signature", "Tensor", "TensorSpec", "UnavailableError", "UnimplementedError", "UnknownError", "__version__",
    "build_info", "check_precision", "default_runtime", "devices", "has_device", "load",
]
