"""Exceptions: a class for each status code, named as TensorFlow names them."""
from __future__ import annotations


class Error(Exception):
    """A failure of the library. `code` is the status code's name ("NOT_FOUND"), `stage` where it happened ("options", "file",
    "load", "compile", "run", "device"), `node` and `device` what it is about ("" where there is none), `driver_code` the
    OpenCL driver's own number or None.

    >>> import oncilla
    >>> try:
    ...     oncilla.load("no/such/model.onnx", device="cpu")
    ... except oncilla.Error as error:
    ...     print(error.code, error.stage)
    NOT_FOUND file
    """

    code: str = "UNKNOWN"

    def __init__(self, message: str = "", *, stage: str = "unknown", node: str = "", device: str = "",
                 driver_code: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.stage = stage
        self.node = node
        self.device = device
        self.driver_code = driver_code

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (type(self), self.message, self.stage, self.node, self.device, self.driver_code)


def _restore(kind: type[Error], message: str, stage: str, node: str, device: str, driver_code: int | None) -> Error:
    return kind(message, stage=stage, node=node, device=device, driver_code=driver_code)


class CancelledError(Error):
    """A run was cancelled."""

    code = "CANCELLED"


class UnknownError(Error):
    """A failure of an unknown kind."""


class InvalidArgumentError(Error, ValueError):
    """An argument, an option or an input is wrong."""

    code = "INVALID_ARGUMENT"


class DeadlineExceededError(Error, TimeoutError):
    """A run took longer than its time limit."""

    code = "DEADLINE_EXCEEDED"


class NotFoundError(Error, LookupError):
    """There is no such device, name or file."""

    code = "NOT_FOUND"


class ModelFileNotFoundError(NotFoundError, FileNotFoundError):
    """There is no such file."""


class AlreadyExistsError(Error):
    """A name is already taken."""

    code = "ALREADY_EXISTS"


class PermissionDeniedError(Error, PermissionError):
    """A file may not be read or written."""

    code = "PERMISSION_DENIED"


class ResourceExhaustedError(Error, MemoryError):
    """Memory ran out, or too many runs are waiting."""

    code = "RESOURCE_EXHAUSTED"


class FailedPreconditionError(Error):
    """This cannot be done now: the model is closed, the process was forked, a variable has no value."""

    code = "FAILED_PRECONDITION"


class AbortedError(Error):
    """A source of inputs failed."""

    code = "ABORTED"


class OutOfRangeError(Error):
    """An index is out of range."""

    code = "OUT_OF_RANGE"


class UnimplementedError(Error, NotImplementedError):
    """The model needs something that is not supported."""

    code = "UNIMPLEMENTED"


class InternalError(Error):
    """A bug in the library."""

    code = "INTERNAL"


class UnavailableError(Error):
    """A device was lost, or a file cannot be read now."""

    code = "UNAVAILABLE"


class DataLossError(Error):
    """A file is damaged."""

    code = "DATA_LOSS"


# By the numbers of oncilla_code.
_CLASSES: tuple[type[Error], ...] = (
    UnknownError, CancelledError, UnknownError, InvalidArgumentError, DeadlineExceededError, NotFoundError,
    AlreadyExistsError, PermissionDeniedError, ResourceExhaustedError, FailedPreconditionError, AbortedError,
    OutOfRangeError, UnimplementedError, InternalError, UnavailableError, DataLossError)


def make_error(code: int, message: str, stage: str, node: str, device: str, driver_code: int | None) -> Error:
    kind = _CLASSES[code] if 0 <= code < len(_CLASSES) else UnknownError
    if kind is NotFoundError and stage == "file":
        kind = ModelFileNotFoundError
    return kind(message, stage=stage, node=node, device=device, driver_code=driver_code)


for _class in (*_CLASSES, Error, ModelFileNotFoundError):
    _class.__module__ = "oncilla"
