"""Shared by tests: a short comparison, made once, and a cluster."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import pytest

import hoistway

JOB = """[global]
filename=/dev/sda
rw=randread
direct=1
ioengine=libaio
runtime=100ms
time_based
[quiet]
iodepth=1
[flood]
iodepth=64
"""


@pytest.fixture(scope="session")
def job() -> str:
    """The job file of a process that reads one block at a time beside one that floods the device."""
    return JOB


@pytest.fixture(scope="session")
def comparison(job: str) -> hoistway.Comparison:
    return hoistway.compare(
        job, device="intel-s3520-1600gb", schedulers=["none", "mq-deadline"], repeats=3, focus="quiet:read:p99", logs=True
    )


@pytest.fixture
def cluster() -> Iterator[Any]:
    """A Dask cluster with two worker processes."""
    distributed = pytest.importorskip("distributed") if "CI" not in os.environ else __import__("distributed")
    with distributed.LocalCluster(2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        yield cluster


class Forgetting(ThreadPoolExecutor):
    """Breaks during its fifth call of `submit` and forgets that call's future, as a process pool can."""

    calls = 0

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.calls += 1
        if self.calls > 5:
            raise BrokenProcessPool("broken")
        if self.calls == 5:
            self._broken = "broken"
            return Future()
        return super().submit(fn, *args, **kwargs)


@pytest.fixture
def forgetting() -> tuple[Callable[[], Executor], list[Executor]]:
    """A function that creates executors, of which the first breaks, and those that it made."""
    made: list[Executor] = []

    def another() -> Executor:
        made.append(ThreadPoolExecutor(2) if made else Forgetting(2))
        return made[-1]

    return another, made
