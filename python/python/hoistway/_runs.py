"""Runs of a search on the workers of an executor."""

from __future__ import annotations

import concurrent.futures
import threading
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError, Executor
from types import TracebackType
from typing import Any

from . import _hoistway, _workers

class Runs:
    """Makes one run per call, and repeats it if its worker dies. It may be called on several threads."""

    def __init__(self, search: str, executor: Executor | Callable[[], Executor], in_flight: int | None) -> None:
        self._search = search
        self._factory = None if isinstance(executor, Executor) else executor
        self._executor = executor if isinstance(executor, Executor) else executor()
        self._renewing = threading.Lock()
        self._is_over = False
        self.in_flight = _workers.in_flight(self._executor, in_flight)
        """The number of threads that may call it at a time."""

    def __enter__(self) -> Runs:
        # Worker processes are forked now, before there are threads, since a fork does not copy those.
        self._done(_workers.check_sources, _workers.SOURCES)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()
        if self._factory is not None:
            self._executor.shutdown(wait=True, cancel_futures=True)

    def __call__(self, setting: str, seed: int, runtime_ns: int | None) -> str:
        """The figures of a run by name, as JSON."""
        figures: str = self._done(_figures, _workers.SOURCES, self._search, setting, seed, runtime_ns)
        return figures

    def stop(self) -> None:
        """Stops waiting for runs."""
        self._is_over = True

    def _done(self, function: Callable[..., Any], *arguments: Any) -> Any:
        for attempt in range(_workers.ATTEMPTS):
            executor = self._executor
            try:
                # The attempt changes the arguments, since some executors identify tasks by them.
                future = executor.submit(_task, attempt, function, *arguments)
                while True:
                    # Checked before the wait: if the pool was intact until then, breaking it ends the future during the wait.
                    broken = _workers.is_broken(executor)
                    if concurrent.futures.wait([future], timeout=_workers.POLL_SECONDS).done:
                        break
                    if self._is_over:
                        future.cancel()
                        raise KeyboardInterrupt
                    if broken:
                        raise BrokenExecutor(_workers.FORGOTTEN)
                return future.result()
            except Exception as error:
                if not _workers.died(error):
                    raise
                self._renew(executor, error)
                last = error
        message = f"the workers of a run died {_workers.ATTEMPTS} times; finished runs are kept in the state, if there is one"
        raise BrokenExecutor(message) from last

    def _renew(self, executor: Executor, error: BaseException) -> None:
        """Replaces a broken executor, unless another thread has done that."""
        with self._renewing:
            if not isinstance(error, BrokenExecutor) or self._executor is not executor:
                return
            if self._factory is None:
                raise BrokenExecutor(_workers.ANOTHER_ONE.format(place="in the state, if there is one")) from error
            self._executor = self._factory()


def _task(attempt: int, function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments)


def _figures(sources: str, search: str, setting: str, seed: int, runtime_ns: int | None) -> str:
    """Makes a run, on a worker."""
    _workers.check_sources(sources)
    return _hoistway.figures(search, setting, seed, runtime_ns)
