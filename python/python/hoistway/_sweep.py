"""Sweeps: thousands of runs on any executor of Python's futures."""

from __future__ import annotations

import concurrent.futures
import json
import os
import shutil
import tempfile
import tomllib
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future
from typing import Any

from . import _hoistway, _workers
from ._compare import check_threads
from ._errors import DataSetError, Error
from ._load import Job, Load

TASK_SECONDS = 1.0
"""Target duration of a task: long compared with the cost of sending it, short if it is lost with a worker."""

TASK_RUNS_MAX = 4096
"""Maximum runs of a task, however short they are, as the figures of a task are held in memory."""

Tell = Callable[[int, int], None]
"""A function that gets the number of finished runs, and the number of all runs."""


class Sweep:
    """The finished runs of a space."""

    def __init__(self, data: _hoistway.DataSet, runs: int, made: int, notices: list[str]) -> None:
        self._data = data
        self.runs = runs
        """Number of runs."""
        self.made = made
        """Number of runs made by this call; the others were in the cache."""
        self.notices = notices
        """Notices, each of them a sentence."""

    def save(self, file: str | os.PathLike[str]) -> None:
        """Writes a table with a row for each figure of each run, in the order of the space: Parquet, or comma-separated values if the name
        ends in `.csv`. The file is written atomically. The same space gives the same bytes, wherever its runs were made.

        Raises:
            Error: The name has another suffix.
            DataSetError: Runs are missing or damaged, or the file cannot be written.
            ImportError: Parquet without polars.
        """
        name = os.fspath(file)
        if not name.endswith((".parquet", ".csv")):
            raise Error(f"file {name}: expected a name that ends in .parquet or .csv", option="file")
        if name.endswith(".csv"):
            self._data.save(name)
        else:
            _write_parquet(self._data, name)

    def figures(self) -> _hoistway.Table:
        """The same table in memory, some 100 bytes per row, for pyarrow, polars, pandas or DuckDB.

        Raises:
            DataSetError: Runs are missing or damaged.
        """
        return self._data.figures()

    def __len__(self) -> int:
        return self.runs

    def __repr__(self) -> str:
        return f"<hoistway.Sweep of {self.runs} runs, {self.made} of them new>"


def sweep(
    space: Mapping[str, Any] | str | os.PathLike[str],
    *,
    executor: Executor | Callable[[], Executor] | None = None,
    cache: str | os.PathLike[str] | None = None,
    limit: int = 100_000,
    in_flight: int | None = None,
    threads: int | None = None,
    progress: Tell | None = None,
) -> Sweep:
    """Makes every run of a space: each load on each device, kernel and host, under each scheduler with each of its settings, with
    each seed.

    A run depends only on the experiment and the seed: order, place and number of workers do not change a bit of its results.

    Args:
        space: What is varied, as `docs/sweeps.md` describes it: a dictionary, or the path of a file in TOML; file names in
            it are relative to its folder.
        executor: Where runs are made: any executor of `concurrent.futures`, such as `distributed.Client().get_executor()`; or a
            function that creates one, which is called again after a worker's death has broken the executor. None: threads of this process.
        cache: A folder for finished runs. Existing runs are not repeated, even after a kill; it may contain runs of other sweeps,
            and is the folder that `hoistway sweep -o` fills and `hoistway merge` reads. None: a temporary folder, deleted with the result.
        limit: Maximum number of runs.
        in_flight: Maximum tasks in flight. None: two per worker, if the executor reports its workers.
        threads: Maximum parallel runs without an executor. Default: the number of cores.
        progress: A function that gets the number of finished runs, and the number of all runs.

    Raises:
        Error: The space is invalid, or has more runs than `limit`.
        VersionError: A worker has another version of hoistway.
        DataSetError: The cache is damaged: the error names the file, which is left unchanged.
        BrokenExecutor: Workers died repeatedly. Finished runs are in the cache.
    """
    check_threads(threads)
    text, beside = _text(space)
    plan, notices = _hoistway.plan(text, beside, limit)
    folder = tempfile.mkdtemp(prefix="hoistway-") if cache is None else os.fspath(cache)
    data = _hoistway.DataSet(folder, plan)
    result = Sweep(data, len(plan), 0, notices)
    if cache is None:
        weakref.finalize(result, shutil.rmtree, folder, ignore_errors=True)
    missing, others = data.missing()
    notices += [f"{file}: runs of another version of hoistway; ignored" for file in others]
    there = len(plan) - len(missing)

    def tell(done: int) -> None:
        if progress is not None:
            progress(there + done, len(plan))

    if executor is None:
        data.make(missing, threads, tell)
    elif missing:
        _Tasks(data, plan.json(), missing, executor, in_flight, tell).make()
    result.made = len(missing)
    return result


def _text(space: Mapping[str, Any] | str | os.PathLike[str]) -> tuple[str, str]:
    """A space as JSON, and the folder of its files."""
    if isinstance(space, Mapping):
        try:
            return json.dumps(space, default=_load), ""
        except (TypeError, ValueError) as error:
            raise Error(f"space: {error} (expected strings, numbers, lists and dictionaries)", option="space") from None
    name = os.fspath(space)
    with open(name, "rb") as opened:
        try:
            return json.dumps(tomllib.load(opened)), os.path.dirname(name)
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, TypeError) as error:
            raise Error(f"{name}: {error} (expected a plan in TOML)", file=name) from None


def _load(job: object) -> Any:
    """A load of Python objects, in the form of a space."""
    if isinstance(job, Job):
        job = Load([job])
    if isinstance(job, Load):
        return {"text": {"name": "load", "text": job.fio()}}
    raise TypeError(f"{job!r} cannot be in a space")


def _make(sweep: str, version: str, points: list[int], attempt: int) -> tuple[bytes, float]:
    """Makes the runs of a task, on a worker. The attempt distinguishes tasks for executors that identify them by their arguments."""
    _workers.check_sources(version)
    return _hoistway.make(sweep, points)


class _Tasks:
    """Runs the tasks of a sweep, a limited number at a time, and repeats a task if its worker dies."""

    def __init__(
        self,
        data: _hoistway.DataSet,
        sweep: str,
        missing: list[int],
        executor: Executor | Callable[[], Executor],
        in_flight: int | None,
        tell: Callable[[int], None],
    ) -> None:
        self.data = data
        self.sweep = sweep
        self.missing = missing
        self.next = 0
        self.again: deque[tuple[list[int], int]] = deque()
        """Points to be sent again, with the number of attempts."""
        self.factory = None if isinstance(executor, Executor) else executor
        self.executor = executor if isinstance(executor, Executor) else executor()
        self.in_flight = in_flight
        self.sent: dict[Future[tuple[bytes, float]], tuple[list[int], int]] = {}
        self.runs = 1
        """The next points: as many as fit into the target duration of a task."""
        self.done = 0
        self.tell = tell

    def make(self) -> None:
        try:
            while self._send() or self.sent:
                self._wait()
                self.tell(self.done)
        finally:
            for future in self.sent:
                future.cancel()
            if self.factory is not None:
                self.executor.shutdown(wait=True, cancel_futures=True)

    def _wait(self) -> None:
        """Collects the tasks that have ended. If the executor is broken and has forgotten its tasks, all count as lost."""
        # Checked before the wait: if the pool was intact until then, breaking it ends the futures during the wait.
        broken = _workers.is_broken(self.executor)
        ended, _ = concurrent.futures.wait(self.sent, _workers.POLL_SECONDS, FIRST_COMPLETED)
        for future in ended:
            self._take(future)
        if broken and not ended:
            for task in [self.sent.pop(future) for future in list(self.sent)]:
                self._lost(*task, BrokenExecutor(_workers.FORGOTTEN))

    def _send(self) -> bool:
        """Submits as many tasks as may be in flight; returns whether there are any."""
        while len(self.sent) < self._allowed():
            task = self._next()
            if task is None:
                break
            try:
                future = self.executor.submit(_make, self.sweep, _workers.SOURCES, *task)
            except BrokenExecutor as error:
                self._lost(*task, error)
                self._renew(error)
                continue
            self.sent[future] = task
        return bool(self.sent)

    def _next(self) -> tuple[list[int], int] | None:
        if self.again:
            return self.again.popleft()
        left = len(self.missing) - self.next
        # Fewer at the end, so that all workers finish at about the same time.
        share = -(-left // (2 * self._allowed()))
        points = self.missing[self.next : self.next + min(self.runs, max(share, 1))]
        self.next += len(points)
        return (points, 1) if points else None

    def _allowed(self) -> int:
        return _workers.in_flight(self.executor, self.in_flight)

    def _take(self, future: Future[tuple[bytes, float]]) -> None:
        points, attempt = self.sent.pop(future)
        try:
            made, seconds = future.result()
        except Exception as error:
            if not _workers.died(error):
                raise
            self._lost(points, attempt, error)
        else:
            runs = self.data.add(made)
            if runs != len(points):
                raise DataSetError(f"a worker made {runs} of {len(points)} runs")
            self.done += runs
            fitting = int(runs * TASK_SECONDS / max(seconds, 1e-6))
            # The number at most doubles, since the first runs may have been unusually short.
            self.runs = max(1, min(fitting, 2 * max(self.runs, runs), TASK_RUNS_MAX))

    def _lost(self, points: list[int], attempt: int, error: BaseException) -> None:
        """Queues the points of a task whose worker died, for any reason."""
        if attempt >= _workers.ATTEMPTS:
            raise BrokenExecutor(
                f"the workers of {len(points)} runs died {attempt} times; finished runs are kept in the cache"
            ) from error
        # Small tasks, so that a run that kills its worker takes few others with it.
        middle = len(points) // 2
        self.again.extend((part, attempt + 1) for part in (points[:middle], points[middle:]) if part)

    def _renew(self, error: BaseException) -> None:
        """Replaces a broken executor."""
        if self.factory is None:
            raise BrokenExecutor(_workers.ANOTHER_ONE.format(place="in the cache")) from error
        while self.sent:
            self._wait()
        self.executor = self.factory()


def _write_parquet(data: _hoistway.DataSet, name: str) -> None:
    try:
        import polars
    except ImportError as error:
        raise ImportError("Parquet needs polars (pip install 'hoistway[parquet]')") from error
    frame = polars.DataFrame(data.figures()).with_columns(polars.col(polars.Categorical).cast(polars.String))
    folder, last = os.path.split(name)
    try:
        handle, unfinished = tempfile.mkstemp(prefix=f".{last}.", dir=folder or ".")
        os.close(handle)
        try:
            frame.write_parquet(unfinished, compression="snappy", metadata=dict(data.metadata()))
            os.chmod(unfinished, 0o666 & ~_umask())
            os.replace(unfinished, name)
        except BaseException:
            os.unlink(unfinished)
            raise
    except OSError as error:
        raise DataSetError(f"{name}: cannot be written: {error.strerror or error}") from error


def _umask() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return umask
