"""ONNX Runtime's execution provider of Oncilla: OpenCL on any GPU, and a threaded CPU.

    import onnxruntime, oncilla_onnxruntime
    oncilla_onnxruntime.register()
    options = onnxruntime.SessionOptions()
    options.add_provider_for_devices(oncilla_onnxruntime.devices("gpu"), {})
    session = onnxruntime.InferenceSession("model.onnx", options)

The package contains the provider's library and nothing of ONNX Runtime, which it imports when it is first asked for
something that needs it.
"""

import ctypes
import json
import os
import pathlib

__all__ = ["EP_NAME", "NAME", "devices", "library_path", "provider_options", "register", "report", "unregister"]

NAME = "oncilla"  # the name under which the library is registered
EP_NAME = "OncillaExecutionProvider"


def library_path() -> str:
    """The provider's library; $ONCILLA_ORT_EP where that is set, for builds from source."""
    named = os.environ.get("ONCILLA_ORT_EP")
    path = pathlib.Path(named) if named else pathlib.Path(__file__).parent / "liboncilla_ort_ep.so"
    if not path.is_file():
        raise FileNotFoundError(f"there is no provider library at {path}")
    return str(path.resolve())


def register(name: str = NAME) -> None:
    """Makes the devices known to ONNX Runtime; a second call changes nothing."""
    import onnxruntime

    if not _known():
        onnxruntime.register_execution_provider_library(name, library_path())


def unregister(name: str = NAME) -> None:
    """Removes the devices from ONNX Runtime. Sessions that use them must have been destroyed."""
    import onnxruntime

    onnxruntime.unregister_execution_provider_library(name)


def _known() -> list:
    import onnxruntime

    return [device for device in onnxruntime.get_ep_devices() if device.ep_name == EP_NAME]


def devices(name: str = "auto") -> list:
    """Devices for SessionOptions.add_provider_for_devices, one in a list: by their name in the engine ("cpu", "gpu", "gpu:1"), by
    a part of what the driver calls them, or "auto", the first. LookupError, which lists the devices, where none has the name."""
    register()
    known = _known()
    wanted = name.lower()
    for device in known:
        metadata = device.ep_metadata
        own = metadata["oncilla_device"]
        if wanted in ("auto", own, own.split(":")[0]) or wanted in metadata["name"].lower():
            return [device]
    listed = ", ".join(f"{d.ep_metadata['oncilla_device']} ({d.ep_metadata['name']})" for d in known)
    raise LookupError(f"there is no device {name!r}; there are: {listed or 'none'}")


def provider_options(session_options, **options) -> dict:
    """Options as add_provider_for_devices takes them: texts. Unless `threads` is given, the number of threads is ONNX Runtime's
    intra_op_num_threads, which providers do not get by themselves."""
    if "threads" not in options and "config" not in options and session_options.intra_op_num_threads > 0:
        options["threads"] = session_options.intra_op_num_threads
    return {name: _text(value) for name, value in options.items()}


def _text(value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value) if isinstance(value, dict) else str(value)


def report(form: str = "text"):
    """The nodes that each open session took, those it left with their reasons, and its memory: as text, or for "json" as a list
    with an entry for each session."""
    library = ctypes.CDLL(library_path())
    call = library.oncilla_ort_report
    call.restype, call.argtypes = ctypes.c_size_t, [ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t]
    as_json = int(form == "json")
    size = call(as_json, None, 0)
    while True:
        text = ctypes.create_string_buffer(size)
        needed = call(as_json, text, size)
        if needed <= size:
            break
        size = needed
    return json.loads(text.value.decode()) if as_json else text.value.decode()
