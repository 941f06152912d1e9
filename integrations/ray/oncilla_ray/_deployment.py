"""Serve deployments: replicas that hold a model, and a gateway for HTTP."""
from __future__ import annotations

import asyncio
import concurrent.futures
import json
import logging
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import oncilla
from ray import serve
from ray.exceptions import RayTaskError
from ray.serve.exceptions import BackPressureError

from ._client import Client
from ._worker import Worker

log = logging.getLogger("oncilla_ray")


def _rows(request: Any) -> int:
    """The number of rows of a request. A request that is not a batch counts as one row, and is refused later."""
    first = next(iter(request.values()), None) if isinstance(request, Mapping) else None
    shape = getattr(first, "shape", None)
    return max(1, shape[0] if shape else len(first) if isinstance(first, (list, tuple)) else 1)


class Replica:
    """One replica: a model in a session of its own. Requests that arrive together are joined (`max_batch_size` rows)."""

    def __init__(self, path: str, *, max_batch_size: int, batch_wait_timeout_s: float, concurrent_batches: int,
                 health_inputs: Mapping[str, Any] | None, health_timeout_s: float, worker: dict[str, Any]) -> None:
        self._worker = Worker(path, max_batch_size=max_batch_size, **worker)
        self._worker.prove(health_inputs)
        self._most = max_batch_size
        self._batch = self._batching(batch_wait_timeout_s, concurrent_batches)
        self._health_timeout = health_timeout_s
        # Runs release the interpreter's lock, so that the loop takes requests meanwhile.
        self._runs = concurrent.futures.ThreadPoolExecutor(concurrent_batches, "oncilla-run")
        self._health = concurrent.futures.ThreadPoolExecutor(1, "oncilla-health")

    def _batching(self, wait_s: float, at_once: int) -> Any:
        def size(requests: list[Any]) -> int:
            # Serve would refuse a request that is larger than a batch; here it is a batch of its own.
            total = sum(map(_rows, requests))
            return min(total, self._most) if len(requests) == 1 else total

        @serve.batch(max_batch_size=self._most, batch_wait_timeout_s=wait_s, max_concurrent_batches=at_once, batch_size_fn=size)
        async def batch(requests: list[Any]) -> list[Any]:
            return await self._run(requests)

        return batch

    async def _run(self, requests: list[Any]) -> list[Any]:
        return await asyncio.get_running_loop().run_in_executor(self._runs, self._worker.run_many, requests)

    def reconfigure(self, user_config: Mapping[str, Any]) -> None:
        """What Serve changes without a new replica: max_batch_size, batch_wait_timeout_s."""
        unknown = user_config.keys() - {"max_batch_size", "batch_wait_timeout_s"}
        if unknown:
            raise ValueError(f"user_config has {', '.join(sorted(unknown))}; there are: max_batch_size, batch_wait_timeout_s")
        if "max_batch_size" in user_config:
            if user_config["max_batch_size"] > 1 and not self._worker.joins:
                raise ValueError("max_batch_size is 1 where the deployment was made with 1: the model was not checked for batches")
            self._most = user_config["max_batch_size"]
            self._batch.set_max_batch_size(self._most)
        if "batch_wait_timeout_s" in user_config:
            self._batch.set_batch_wait_timeout_s(user_config["batch_wait_timeout_s"])

    async def __call__(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """The outputs by name. A wrong input fails this request and no other."""
        # An exception would fail all requests of a batch, so failures are returned as values.
        answer = (await self._batch(inputs)) if self._most > 1 else (await self._run([inputs]))[0]
        if isinstance(answer, BaseException):
            raise answer
        return answer

    async def describe(self) -> dict[str, Any]:
        """The model's inputs and outputs, where it runs, and its memory."""
        worker = self._worker
        devices = [d for d in worker.session.devices() if d.in_use]
        return {"inputs": {n: {"dtype": s.dtype, "shape": s.shape} for n, s in worker.inputs.items()},
                "outputs": worker.outputs, "devices": [{"name": d.name, "driver_name": d.driver_name, "limit_bytes":
                d.limit_bytes, "pool_bytes": d.pool_bytes} for d in devices], "pid": os.getpid()}

    async def check_health(self) -> None:
        """Runs the model unless it ran lately. Serve replaces a replica for which this fails or does not return."""
        loop = asyncio.get_running_loop()
        await asyncio.wait_for(loop.run_in_executor(self._health, self._worker.probe), self._health_timeout)

    def __del__(self) -> None:
        if hasattr(self, "_worker"):
            self._worker.close()


def deployment(path: str | os.PathLike[str], *, name: str = "oncilla", num_replicas: int | str = 1, num_cpus: float = 1,
               num_gpus: float = 0, resources: Mapping[str, float] | None = None, device: str | None = None,
               memory_limit: int | str | None = None, threads: int | None = None, signature: str | None = None,
               tags: str = "", outputs: Sequence[str] | None = None, config: Mapping[str, Any] | None = None,
               max_batch_size: int = 1, batch_wait_timeout_s: float = 0.005, concurrent_batches: int = 1,
               run_timeout_s: float | None = None, health_inputs: Mapping[str, Any] | None = None,
               health_timeout_s: float = 20.0, ray_actor_options: Mapping[str, Any] | None = None, **options: Any) -> Any:
    """A Serve application that answers dicts of arrays with dicts of arrays.

    Each replica reserves `num_cpus`, `num_gpus` (parts are allowed) and `resources`, and keeps to them: as many threads as
    processors, a GPU only where a part of one is reserved, and of its memory as much as that part; `threads`, `device` and
    `memory_limit` (bytes, or "512MiB") say otherwise. `config` has further options of the session (docs/config.md).

    With `max_batch_size` above 1, requests are joined along the first axis, up to so many rows, waiting at most
    `batch_wait_timeout_s`; use it only where rows do not depend on each other. `health_inputs` is a request that the health
    check runs; the default is zeros of the declared shapes. Other keywords go to serve.deployment
    (`autoscaling_config`, `max_ongoing_requests`, ..).
    """
    if concurrent_batches < 1 or max_batch_size < 1:
        raise ValueError(f"max_batch_size is {max_batch_size}, concurrent_batches {concurrent_batches}: both must be 1 or more")
    actor = {"num_cpus": num_cpus, "num_gpus": num_gpus, **({"resources": dict(resources)} if resources else {}),
             **(ray_actor_options or {})}
    # Twice the rows that are computed at once, so that the next batch gathers meanwhile.
    options.setdefault("max_ongoing_requests", max(8, 2 * max_batch_size * concurrent_batches))
    options.setdefault("health_check_timeout_s", health_timeout_s + 10)
    if "autoscaling_config" not in options:
        options["num_replicas"] = num_replicas
    made = serve.deployment(Replica, name=name, ray_actor_options=actor, **options)
    worker = {"device": device, "memory_limit": memory_limit, "threads": threads, "signature": signature, "tags": tags,
              "outputs": outputs, "config": config, "timeout": run_timeout_s}
    return made.bind(os.fspath(path), max_batch_size=max_batch_size, batch_wait_timeout_s=batch_wait_timeout_s,
                     concurrent_batches=concurrent_batches, health_inputs=health_inputs, health_timeout_s=health_timeout_s,
                     worker=worker)


class Gateway:
    """HTTP with JSON in front of a deployment. It holds no model, and sends the requests of a dying replica again."""

    def __init__(self, handle: Any, timeout: float, retries: int, max_body_bytes: int) -> None:
        self._handle, self._client, self._most = handle, Client(handle, timeout=timeout, retries=retries), max_body_bytes

    async def __call__(self, request: Any) -> Any:
        from starlette.responses import JSONResponse

        if request.method == "GET":
            described = await asyncio.wait_for(_await(self._handle.describe.remote()), self._client.timeout)
            return JSONResponse({key: described[key] for key in ("inputs", "outputs")})
        if request.method != "POST":
            return JSONResponse({"error": "POST has inputs, GET tells which"}, 405)
        try:
            answer = await self._client.call(await self._inputs(request))
            return JSONResponse({"outputs": {name: _json(name, value) for name, value in answer.items()}})
        except Exception as failure:  # noqa: BLE001: every failure has an answer
            code, message = _told(failure)
            return JSONResponse({"error": message}, code)

    async def _inputs(self, request: Any) -> dict[str, Any]:
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > self._most:
                raise _TooLarge(f"the body has more than {self._most} bytes")
        try:
            document = json.loads(bytes(body))
        except (ValueError, RecursionError) as wrong:
            raise oncilla.InvalidArgumentError(f"the body is not JSON: {wrong}") from None
        if not isinstance(document, dict) or document.keys() != {"inputs"} or not isinstance(document["inputs"], dict):
            raise oncilla.InvalidArgumentError('the body must be {"inputs": {name: values, ..}}')
        return document["inputs"]


class _TooLarge(Exception):
    pass


async def _await(response: Any) -> Any:
    return await response


def _json(name: str, value: Any) -> Any:
    array = np.asarray(value)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise oncilla.OutOfRangeError(f"output '{name}' has numbers that are not finite, which JSON cannot represent")
    if array.dtype.kind not in "biufO":
        raise oncilla.UnimplementedError(f"output '{name}' has the type {array.dtype}, which JSON cannot represent")
    return array.tolist()


def _told(failure: Exception) -> tuple[int, str]:
    """The HTTP status and the message of a failure."""
    cause = failure.cause if isinstance(failure, RayTaskError) and failure.cause is not None else failure
    if isinstance(cause, _TooLarge):
        return 413, str(cause)
    if isinstance(cause, BackPressureError):
        return 503, str(cause)
    if isinstance(cause, TimeoutError):
        return 504, str(cause)
    if isinstance(cause, (oncilla.InvalidArgumentError, oncilla.OutOfRangeError, TypeError, ValueError, OverflowError)):
        return 400, str(cause)
    if isinstance(cause, (oncilla.ResourceExhaustedError, oncilla.UnavailableError)):
        return 503, str(cause)
    if isinstance(cause, oncilla.UnimplementedError):
        return 501, str(cause)
    log.error("a request failed: %s", failure)
    # Other failures are not caused by the client, and their messages may name files and hosts.
    return 500, f"the request failed ({type(cause).__name__})"


def http(application: Any, *, name: str = "gateway", num_replicas: int | str = 1, num_cpus: float = 0.1, timeout: float = 60.0,
         retries: int = 3, max_body_bytes: int = 64 << 20, **options: Any) -> Any:
    """An application that takes HTTP for one of `deployment`: POST {"inputs": {name: values}} is answered with
    {"outputs": {name: values}}, or {"error": message}; GET tells what there is. Lists take the declared types."""
    made = serve.deployment(Gateway, name=name, num_replicas=num_replicas, ray_actor_options={"num_cpus": num_cpus},
                            max_ongoing_requests=options.pop("max_ongoing_requests", 256), **options)
    return made.bind(application, timeout, retries, max_body_bytes)
