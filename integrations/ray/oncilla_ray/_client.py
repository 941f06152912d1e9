"""A client of a handle that loses no request when a replica dies."""
from __future__ import annotations

import asyncio
import logging
import random
import time
from typing import Any

from ray import exceptions
from ray.exceptions import RayTaskError
from ray.serve.exceptions import ReplicaUnavailableError

log = logging.getLogger("oncilla_ray")
# The worker, its node, or an object that only it held was lost. Serve itself sends a request to another replica as long as
# the first has not accepted it; a request that was accepted fails at its caller.
_LOST = (exceptions.RayActorError, exceptions.WorkerCrashedError, exceptions.NodeDiedError, exceptions.ObjectLostError,
         ReplicaUnavailableError)


def is_lost(failure: BaseException) -> bool:
    """Whether a replica died under the request, as opposed to having answered with a failure."""
    # Exceptions of a replica arrive as RayTaskError, also where the replica itself lost a worker that it called.
    if isinstance(failure, RayTaskError):
        return isinstance(failure.cause, _LOST)
    return isinstance(failure, _LOST)


class Client:
    """Calls a deployment by its handle, and sends a request again when the replica that had it dies.

    A request is tried `retries` times more, so that a request that kills its worker does not kill them all, and for at most
    `timeout` seconds in all; then TimeoutError. Where a worker was lost after computing, the request is computed twice: use
    `retries=0` for models that change their variables.

    `client(x=array)` waits; `await client.call(x=array)` is for other deployments. Inputs may also be one dict.
    """

    def __init__(self, handle: Any, *, timeout: float = 60.0, retries: int = 3) -> None:
        if timeout <= 0 or retries < 0:
            raise ValueError(f"timeout is {timeout} and must be above 0; retries is {retries} and must not be below 0")
        self.handle, self.timeout, self.retries = handle, timeout, retries

    def _pause(self, failure: BaseException, attempt: int, deadline: float) -> float:
        """How long to wait before the next attempt; raises the failure where there is none."""
        pause = random.uniform(0.5, 1.0) * min(0.05 * 2 ** attempt, 1.0)
        if not is_lost(failure) or attempt >= self.retries or time.monotonic() + pause >= deadline:
            raise failure
        log.warning("a replica died, and its request is sent again: %s", failure)
        return pause

    def _give_up(self, response: Any, failure: Exception) -> None:
        # A replica's own time limit arrives as RayTaskError, and is a response.
        if isinstance(failure, (TimeoutError, asyncio.TimeoutError)) and not isinstance(failure, RayTaskError):
            response.cancel()
            raise TimeoutError(f"no answer within {self.timeout} s") from None

    def __call__(self, inputs: dict[str, Any] | None = None, /, **named: Any) -> dict[str, Any]:
        deadline = time.monotonic() + self.timeout
        attempt = 0
        while True:
            response = self.handle.remote({**(inputs or {}), **named})
            try:
                return response.result(timeout_s=max(deadline - time.monotonic(), 0.001))
            except Exception as failure:  # noqa: BLE001: _pause raises what is not lost
                self._give_up(response, failure)
                time.sleep(self._pause(failure, attempt, deadline))
            attempt += 1

    async def call(self, inputs: dict[str, Any] | None = None, /, **named: Any) -> dict[str, Any]:
        deadline = time.monotonic() + self.timeout
        attempt = 0
        while True:
            response = self.handle.remote({**(inputs or {}), **named})
            try:
                return await asyncio.wait_for(_result(response), max(deadline - time.monotonic(), 0.001))
            except Exception as failure:  # noqa: BLE001
                self._give_up(response, failure)
                await asyncio.sleep(self._pause(failure, attempt, deadline))
            attempt += 1


async def _result(response: Any) -> Any:
    return await response
