"""A model in one worker of Ray's: its session within the worker's share of the machine, and batches of requests."""
from __future__ import annotations

import logging
import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import oncilla
import ray

log = logging.getLogger("oncilla_ray")
Arrays = dict[str, np.ndarray]
# A request must not fail only because it was joined with others: after these failures each is tried by itself.
_REPEATED = (oncilla.InvalidArgumentError, oncilla.OutOfRangeError, oncilla.ResourceExhaustedError)


def _share() -> dict[str, float]:
    """The resources that Ray reserved for this worker; none outside of a worker."""
    if not ray.is_initialized() or ray.get_runtime_context().get_actor_id() is None:
        return {}
    return dict(ray.get_runtime_context().get_assigned_resources())


def session_options(share: Mapping[str, float], *, device: str | None = None, memory_limit: int | str | None = None,
                    threads: int | None = None, config: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The options of a session that keeps to a worker's share: a GPU only where a part of one is reserved, as much of
    its memory as that part, and as many threads as processors."""
    gpus, cpus = share.get("GPU", 0.0), share.get("CPU", 0.0)
    options = dict(config or {})
    if memory_limit is not None:
        options["memory_limit_bytes"] = memory_limit
    elif 0 < gpus < 1 and not {"memory_limit_bytes", "memory_limit_fraction"} & options.keys():
        options["memory_limit_fraction"] = gpus
    if device is None and "device" not in options:
        device = "gpu" if gpus > 0 else "cpu"
    if threads is None:
        threads = max(1, math.ceil(cpus)) if share and "threads" not in options else 0
    return {"device": device, "threads": threads, "config": options or None}


class Worker:
    """The model, and runs of it. Threads may share it."""

    def __init__(self, path: str, *, signature: str | None = None, tags: str = "", outputs: Sequence[str] | None = None,
                 max_batch_size: int = 1, timeout: float | None = None, **options: Any) -> None:
        share = _share()
        # A thread pool of this worker's size, instead of one with a thread for each processor of the machine.
        made = session_options(share, **options)
        self.session = oncilla.Session(runtime=oncilla.Runtime(threads=made["threads"]), **made)
        self.model = self.session.load(path, tags=tags, eager=signature is None)
        signatures = self.model.signatures
        if signature is not None and signature not in signatures:
            raise ValueError(f"'{path}' has no signature '{signature}'; it has {', '.join(map(repr, signatures))}")
        self.signature = signature
        declared = signatures[signature] if signature is not None else None
        self.inputs = declared.inputs if declared else self.model.inputs
        declared_outputs = declared.outputs if declared else self.model.outputs
        if not self.inputs and not declared_outputs:
            raise ValueError(f"'{path}' has several signatures; choose one of {', '.join(map(repr, signatures))}")
        self.outputs = list(outputs) if outputs is not None else list(declared_outputs)
        for name in self.outputs:
            if name not in declared_outputs:
                raise ValueError(f"'{path}' has no output '{name}'; it has {', '.join(declared_outputs)}")
        self.joins = max_batch_size > 1
        if self.joins:
            for spec in [*self.inputs.values(), *(declared_outputs[name] for name in self.outputs)]:
                if spec.kind != "tensor" or (spec.shape is not None and (not spec.shape or spec.shape[0] is not None)):
                    raise ValueError(f"max_batch_size is {max_batch_size}, but '{spec.name}' of '{path}' ({spec}) has no "
                                     "open first axis for a batch")
        self.timeout = timeout
        self._example: Arrays | None = None
        self._last_success = 0.0

    # ---- requests ----

    def arrays_of(self, request: Mapping[str, Any]) -> Arrays:
        """The inputs as arrays of the declared types; raises a failure that names a wrong input."""
        if not isinstance(request, Mapping):
            raise TypeError(f"a request is a dict of inputs by name, not {type(request).__name__}")
        unknown, missing = request.keys() - self.inputs.keys(), self.inputs.keys() - request.keys()
        if unknown or missing:
            said = [f"there is no input {', '.join(map(repr, sorted(unknown)))}"] if unknown else []
            said += [f"input {', '.join(map(repr, sorted(missing)))} is missing"] if missing else []
            raise oncilla.InvalidArgumentError(f"{' and '.join(said)}; the model takes {', '.join(map(str, self.inputs.values()))}")
        # Kinds without a NumPy array are passed to the engine unchanged.
        return {name: spec.array(request[name]) if spec.kind == "tensor" else request[name]
                for name, spec in self.inputs.items()}

    def _key(self, arrays: Arrays) -> Any:
        """Equal for requests that can be joined; None for one that cannot."""
        if not self.joins or any(array.ndim == 0 for array in arrays.values()):
            return None
        if len({len(array) for array in arrays.values()}) != 1:
            return None
        return tuple((name, array.dtype.str, array.shape[1:]) for name, array in arrays.items())

    def run(self, arrays: Mapping[str, Any]) -> Arrays:
        result = dict(self.model.run(arrays, signature=self.signature, outputs=self.outputs, timeout=self.timeout))
        self._last_success = time.monotonic()
        return result

    def run_many(self, requests: Sequence[Mapping[str, Any]]) -> list[Arrays | Exception]:
        """The answer or the failure of each request. Requests of equal shapes and types are joined along the first axis."""
        answers: list[Any] = [None] * len(requests)
        groups: dict[Any, list[tuple[int, Arrays]]] = {}
        for number, request in enumerate(requests):
            try:
                arrays = self.arrays_of(request)
                key = self._key(arrays)
                groups.setdefault(("alone", number) if key is None else key, []).append((number, arrays))
            except Exception as failure:  # noqa: BLE001: any failure is the answer to that request
                answers[number] = failure
        for members in groups.values():
            for (number, _), answer in zip(members, self._run_group([arrays for _, arrays in members])):
                answers[number] = answer
        return answers

    def _run_group(self, members: list[Arrays]) -> list[Arrays | Exception]:
        try:
            if len(members) == 1:
                return [self.run(members[0])]
            joined = self.run({name: np.concatenate([m[name] for m in members]) for name in members[0]})
            return self._divide(joined, [len(next(iter(m.values()))) for m in members])
        except _REPEATED as failure:
            if len(members) == 1:
                return [failure]
        except Exception as failure:  # noqa: BLE001
            return [failure] * len(members)
        return [answer for member in members for answer in self._run_group([member])]

    def _divide(self, joined: Arrays, rows: list[int]) -> list[Arrays | Exception]:
        for name, array in joined.items():
            if array.ndim == 0 or len(array) != sum(rows):
                raise oncilla.InternalError(f"output '{name}' has the shape {array.shape} for a batch of {sum(rows)}: its "
                                            "first axis is not a batch, and max_batch_size must be 1")
        ends = np.cumsum(rows)
        return [{name: array[end - count:end] for name, array in joined.items()} for end, count in zip(ends, rows)]

    # ---- health ----

    def prove(self, example: Mapping[str, Any] | None = None) -> None:
        """Runs the model once. Without an example, on zeros of the declared shapes, where the model takes these; `probe`
        then repeats it."""
        given = example is not None
        arrays = self.arrays_of(example) if example is not None else self._zeros()
        if arrays is None:
            return
        try:
            self.run(arrays)
            self._example = arrays
        except oncilla.InvalidArgumentError as failure:
            if given:
                raise
            log.info("no health run: the model does not take zeros (%s); give health_inputs", failure)

    def _zeros(self) -> Arrays | None:
        if any(spec.kind != "tensor" or spec.shape is None for spec in self.inputs.values()):
            return None
        return {name: np.full([1 if size is None else size for size in spec.shape or ()],
                              "" if spec.dtype == "string" else 0, spec.numpy_dtype) for name, spec in self.inputs.items()}

    def probe(self, fresh: float = 5.0) -> None:
        """Fails where the model does not run. A run that succeeded in the last `fresh` seconds is sufficient."""
        if time.monotonic() - self._last_success < fresh:
            return
        if self._example is not None:
            self.run(self._example)
        else:
            self.session.memory_report()  # fails for a session that is closed, and says no more than that

    def close(self) -> int:
        return self.session.close(cancel=True)
