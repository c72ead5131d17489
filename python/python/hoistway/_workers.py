"""Workers of executors: their number, their version, and their failures."""

from __future__ import annotations

import os
import socket
from concurrent.futures import BrokenExecutor, CancelledError, Executor

from . import _hoistway
from ._errors import VersionError

ATTEMPTS = 4
"""Attempts after which a task is given up, as it would only kill more workers."""

POLL_SECONDS = 0.5
"""The interval in seconds at which a caller that waits for tasks checks whether they are still wanted and the executor is intact."""

SOURCES: str = _hoistway.SOURCES
"""The version with a fingerprint of the sources; the runs of another version may differ."""

FORGOTTEN = "the executor is broken, and a task got no result"

ANOTHER_ONE = (
    "the executor is broken, since a worker of it died; finished runs are kept {place} (to continue after such a death, pass "
    "a function that creates executors, such as executor=lambda: ProcessPoolExecutor(2))"
)


def check_sources(expected: str) -> None:
    """Checks, on a worker, that it has the same sources."""
    if SOURCES != expected:
        worker = f"{socket.gethostname()}, process {os.getpid()}"
        raise VersionError(f"the worker on {worker} has hoistway {SOURCES} (expected {expected}, as here)")


def count(executor: Executor) -> int | None:
    """The number of workers, if the executor reports it."""
    workers = getattr(executor, "_max_workers", None)
    if isinstance(workers, int):
        return workers
    client = getattr(executor, "_client", None)
    if client is not None:
        return sum(client.ncores().values()) or None
    return None


def in_flight(executor: Executor, wanted: int | None) -> int:
    """Maximum tasks in flight: enough that no worker waits for its next task."""
    return wanted or 2 * (count(executor) or os.cpu_count() or 1)


def is_broken(executor: Executor) -> bool:
    """Whether a pool of `concurrent.futures` is broken. If one breaks during a call of `submit`, that call's future may be lost: it
    never ends (CPython before 3.13)."""
    return bool(getattr(executor, "_broken", False))


def died(error: BaseException) -> bool:
    """Whether a worker died, for any reason. Dask's and Ray's exceptions need not be installed here."""
    names = ("KilledWorker", "CommClosedError", "FutureCancelledError", "WorkerCrashedError")
    return isinstance(error, (BrokenExecutor, CancelledError, MemoryError)) or type(error).__name__ in names
