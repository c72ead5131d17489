"""The search for the best setting."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any

from . import _hoistway
from ._compare import COMPARE
from ._errors import Error
from ._experiment import JobLike, Profile, experiment, is_, mapping, nanoseconds, number, sequence, varied
from ._progress import Counted, Progress, chosen
from ._runs import Runs
from ._tuning import Tuning

BUDGET = 200
"""Default budget, in runs."""


def tune(
    job: JobLike = None,
    *,
    objective: str,
    over: Sequence[str] = (),
    vary: Mapping[str, Sequence[object] | None] = {},
    budget: int | None = None,
    budget_seconds: float | None = None,
    state: str | os.PathLike[str] | None = None,
    device: Profile | None = None,
    files: Mapping[str, Profile] = {},
    kernel: str | None = None,
    host: Profile | None = None,
    cpus: int | None = None,
    memory_bytes: int | None = None,
    set: Mapping[str, object] = {},
    queue: Mapping[str, object] = {},
    runtime: float | None = None,
    ramp: float | None = None,
    from_start: bool = False,
    seed: int = 1,
    executor: Executor | Callable[[], Executor] | None = None,
    in_flight: int | None = None,
    threads: int | None = None,
    progress: bool | Counted | None = None,
) -> Tuning:
    """Searches schedulers and their tunables for the best setting for a load, by successive halving: settings run briefly at
    first, the better ones longer and with more seeds. `docs/tune.md` describes the search; it is the same as `hoistway tune`.

    The same arguments give the same result, to the bit, on every machine, with any number of threads and on any executor.

    Args:
        job: The load, as for `compare`.
        objective: The figure to optimize, with conditions, such as `min backends:read:p99 subject to writers:write:iops >= 0.9*none`.
        over: Names of the schedulers to search, or `all`. Default: those that the kernel has.
        vary: The tunables to search, such as `{"mq-deadline.fifo_batch": [1, 4, 16], "kyber.read_lat_nsec": None, "queue.nr_requests": None}`;
            None stands for suitable values. If no tunable of a scheduler is named, all its tunables are searched.
        budget: Maximum number of runs. None: 200, unless there are `budget_seconds`.
        budget_seconds: Maximum virtual time in seconds, instead of a number of runs.
        state: A file that keeps the runs: an interrupted or killed search continues from there, also with a larger budget.
        device: The device, as for `compare`.
        files: Devices of single files of the load.
        kernel: A Linux release. None: the newest one.
        host: The host profile.
        cpus: CPUs of the host, instead of the number in its profile.
        memory_bytes: Memory of the host, bytes.
        set: Fixed tunables, which are not searched, such as `{"mq-deadline.fifo_batch": 1}`.
        queue: Files of `/sys/block/DEV/queue/` in all runs.
        runtime: Replaces the runtime of every process, seconds.
        ramp: Replaces the ramp time of every process, seconds.
        from_start: Whether to measure as fio does, as for `compare`.
        seed: The seed of all random numbers.
        executor: Where runs are made, as for `sweep`. None: threads of this process.
        in_flight: Maximum runs in flight. None: two per worker, if the executor reports its workers.
        threads: Maximum parallel runs without an executor. Default: the number of cores.
        progress: Whether to show progress; or a function that gets the number of finished runs, and the minimum number
            in total. None: shown in terminals and notebooks after two seconds.

    Raises:
        Error: An argument is invalid.
        VersionError: A worker has another version of hoistway.
        BrokenExecutor: Workers died repeatedly. With `state`, finished runs are kept.
        OSError: The state cannot be written.
        KeyboardInterrupt: Ctrl-C ended the search. With `state`, the same call continues it.
    """
    search = search_of(locals())
    if budget is not None and budget_seconds is not None:
        raise Error("budget: cannot be combined with budget_seconds (expected one of them)", option="budget")
    if executor is not None and threads is not None:
        raise Error(f"threads {threads!r}: the executor makes the runs (expected in_flight)", option="threads")
    workers = None if executor is None else Runs(search.portable(), executor, at_least_one("in_flight", in_flight))
    kept = None if state is None else os.path.realpath(state)
    shown = chosen(progress, Progress("runs", "runs", 0))
    try:
        if workers is None:
            return Tuning(search.tune(at_least_one("threads", threads), None, kept, shown))
        with workers:
            return Tuning(search.tune(workers.in_flight, workers, kept, shown))
    finally:
        if isinstance(shown, Progress):
            shown.close()


def search_of(given: Mapping[str, Any]) -> _hoistway.Search:
    """Checks the arguments of `tune`, and makes a search of them."""
    asked = COMPARE | {name: value for name, value in given.items() if name in COMPARE}
    one = {"kernels": given["kernel"], "hosts": given["host"]}
    several = {name: () if value is None else (value,) for name, value in one.items()}
    over = [is_("over", name, str) for name in sequence("over", given["over"])]
    # What varies is searched, and does not vary within a comparison.
    fixed = {"job": given["job"], "schedulers": over, "repeats": 5, "vary": {}}
    fields = experiment(**asked | several | fixed).fields
    tunables = [varied("vary", name, values or ()) for name, values in mapping("vary", given["vary"]).items()]
    for tunable in tunables:
        if tunable["of"] in ("io.cost", "io.latency"):
            problem = "is not searched from Python (expected a tunable or a file of queue/; `hoistway tune` searches it)"
            raise Error(f"vary {tunable['of']}.{tunable['name']}: {problem}", option="vary")
    seconds = given.get("budget_seconds")
    if seconds is not None:
        spend = {"virtual_ns": nanoseconds("budget_seconds", seconds)}
    else:
        budget = given.get("budget")
        spend = {"runs": BUDGET if budget is None else number("budget", budget, 64)}
    objective = is_("objective", given["objective"], str)
    return _hoistway.Search(json.dumps({"comparison": fields, "vary": tunables, "objective": objective, "budget": spend}))


def at_least_one(argument: str, value: int | None) -> int | None:
    """Checks the number of things that are done at a time."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise Error(f"{argument} {value!r}: expected a whole number of at least 1", option=argument)
    return value
