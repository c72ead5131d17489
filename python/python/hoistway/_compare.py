"""Comparisons, and the events of their runs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from . import _hoistway
from ._comparison import Comparison
from ._errors import Error
from ._experiment import Experiment, JobLike, Profile, SchedulerLike, experiment
from ._progress import Progress, Tell, chosen


def compare(
    job: JobLike = None,
    *,
    replay: Mapping[str, object] = {},
    device: Profile | None = None,
    devices: Sequence[Profile] = (),
    files: Mapping[str, Profile] = {},
    schedulers: Sequence[SchedulerLike] = (),
    kernels: Sequence[str] = (),
    hosts: Sequence[Profile] = (),
    cpus: int | None = None,
    memory_bytes: int | None = None,
    sysctl: Mapping[str, object] = {},
    journal: bool = False,
    set: Mapping[str, object] = {},
    queue: Mapping[str, object] = {},
    vary: Mapping[str, Sequence[object]] = {},
    hw_queues: int | None = None,
    read_queues: int = 0,
    poll_queues: int = 0,
    shared_tags: bool = False,
    submitter_dispatches: bool = False,
    techniques: Sequence[str] = (),
    at: Sequence[tuple[float, str, object]] = (),
    io_max: Mapping[str, str] = {},
    io_prio_class: Mapping[str, str] = {},
    guest_schedulers: Sequence[SchedulerLike] = (),
    virtual_disk: Profile | None = None,
    guest_weights: Mapping[str, int] = {},
    elevator: str | None = None,
    runtime: float | None = None,
    ramp: float | None = None,
    repeats: int = 5,
    baseline: SchedulerLike | None = None,
    focus: str | Sequence[str] = (),
    smallest_effect: float | None = None,
    seed: int = 1,
    logs: bool = False,
    excerpts: bool = False,
    threads: int | None = None,
    progress: bool | Tell | None = None,
) -> Comparison:
    """Runs a load under several schedulers, in virtual time, and compares them.

    The same arguments give the same results, to the bit, on every machine and with any number of threads.

    Args:
        job: The path of a fio job file or of a recording of block I/O; the text of a job file; the name of a bundled load
            (`hoistway.scenarios()`); or a `Load` or `Job`. None: the bundled example.
        replay: How a recording is replayed, as `{"speed": 2.0, "streams": ["postgres"], "window": (10.0, 40.0)}`: also `mode`
            (`recorded-program`, `timed`, `fast`), `copies`, `depths`, `priorities`, `recorded_under`, `device`, `columns`, `scale_to_fit`, `lossy`
            (`docs/recordings.md`).
        device: The device: a preset's name (`hoistway.devices()`), a dictionary such as `hoistway.device(name)` gives, a text in
            TOML, or the path of a `.toml` file. None: what fits the load.
        devices: Several of them, which are compared.
        files: Devices of single files of the load, by their names there; `device` is that of all others.
        schedulers: Names, `all`, `default` for the one that the kernel gives the device, and classes made of `Scheduler`. Without
            any: those that the kernel has.
        kernels: Linux releases, or what `uname -r` prints; several are compared.
        hosts: Host profiles, as devices are given; several are compared.
        cpus: CPUs of each host, instead of what its profile says.
        memory_bytes: Memory of each host, bytes.
        sysctl: `vm.dirty_bytes`, `vm.dirty_background_bytes`, `vm.dirty_ratio` and `vm.dirty_background_ratio` of each host.
        journal: Whether jobs without direct I/O lie on a file system with a journal, which their fsyncs commit.
        set: Tunables, as `{"mq-deadline.fifo_batch": 1}`.
        queue: Files of `/sys/block/DEV/queue/`, as `{"nr_requests": 32}`.
        vary: Tunables and files of `queue/` with several values, which are compared with each other: as
            `{"mq-deadline.fifo_batch": [1, 16], "queue.nr_requests": [64, 256]}`. Every value runs with every other one, and the
            kernel's default as it is beside them.
        hw_queues: Hardware queues of each device, instead of its own number.
        read_queues: So many hardware queues more for reads alone.
        poll_queues: So many hardware queues more for I/O whose submitter polls.
        shared_tags: Whether all devices share the tags of one controller.
        submitter_dispatches: Whether processes run the hardware queues that the kernel leaves to its workers.
        techniques: What mq-deadline and bfq do so that CPUs wait less for their lock, which no Linux does: some of
            `single-dispatcher`, `try-merge`, `batch-dispatch`, and `insertion-buckets` or `pending-lists`, or `all`.
        at: Files that are written while the load runs, as `[(10.0, "scheduler", "bfq"), (20.0, "bfq.slice_idle", 0)]`, in seconds.
        io_max: What is written to `io.max` of cgroups that the load names, as `{"backup": "wbps=10485760"}`.
        io_prio_class: What is written to their `io.prio.class`, as `{"backup": "idle"}`.
        guest_schedulers: Puts the load into virtual machines with these schedulers, each over every one of the host.
        virtual_disk: What the disks of the guests are, as devices are given. None: `virtio-blk`.
        guest_weights: Weights of the guests' cgroups on the host, by the files that are their disks.
        elevator: What the kernel was booted with as `elevator=`.
        runtime: Replaces the runtime of every process, seconds.
        ramp: Replaces the time of every process before measuring begins, seconds.
        repeats: Runs of each variant, each with a seed of its own that all variants share.
        baseline: What others are compared with: a scheduler, or the label of a variant. None: the kernel's default.
        focus: What they are judged by: figures such as `mixed:read:p99`, with weights as in `wal:sync:p99*2`. Without any: what the
            load is about, or the figure most likely to be waited on.
        smallest_effect: What is less, as a fraction, is no difference. None: 0.02.
        seed: Everything random is drawn from it.
        logs: Whether every I/O is kept, for `Comparison.ios()`: 40 bytes of memory each.
        excerpts: Whether some thousand requests of each variant are recorded one by one, for `Comparison.report()`.
        threads: Runs at a time. None: as many as there are cores.
        progress: Whether it is shown how far the runs are; or a function that gets, some times a second, the virtual seconds
            that have passed in all runs together, and how many are expected (None, if nobody knows). None: shown in terminals and
            notebooks after two seconds.

    Raises:
        Error: What is asked for cannot be.
        SchedulerError: A scheduler written in Python lost a request or gave one out twice; whatever else one raises is raised
            as it is.
        KeyboardInterrupt: Ctrl-C ended the runs early.
    """
    asked = experiment(**_arguments(locals()))
    return _run(asked, threads, progress, traced=False)[0]


def trace(
    job: JobLike = None,
    *,
    progress: bool | Tell | None = None,
    repeats: int = 1,
    **arguments: Any,
) -> _hoistway.Table:
    """Every event of the runs, and why each request was chosen, as a table for pyarrow, polars, pandas or DuckDB.

    Arguments are those of `compare`, of which one kernel, host and device must be chosen. An I/O has about eight events: take a short
    `runtime`. `docs/trace.md` says what the columns mean; `time_ns` is virtual time in ns, `sector` counts 512 bytes.

    Raises:
        As `compare`.
    """
    unknown = [name for name in arguments if name not in COMPARE or name == "threads"]
    if unknown:
        raise TypeError(f"trace() has no argument {unknown[0]!r}")
    asked = experiment(job=job, repeats=repeats, **(COMPARE | arguments))
    table = _run(asked, 1, progress, traced=True)[1]
    assert table is not None, "a traced run has events"
    return table


def load(file: str | os.PathLike[str]) -> Comparison:
    """Reads what `Comparison.save` or `hoistway compare --format json` wrote.

    Raises:
        Error: The file holds something else, or is of another format.
        OSError: It cannot be read.
    """
    path = os.fsdecode(file)
    # As it can be said: names of files are bytes.
    name = path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    with open(path, encoding="utf-8") as opened:
        try:
            text = opened.read()
        except UnicodeDecodeError:
            raise Error(f"{name}: not text (expected a result document)", file=name) from None
    return Comparison(_hoistway.read(text, name))


def _arguments(given: dict[str, Any]) -> dict[str, Any]:
    """Those of `compare` that say what is compared."""
    return {name: value for name, value in given.items() if name not in ("threads", "progress")}


def check_threads(threads: int | None) -> None:
    """Refuses a number of threads that cannot be."""
    if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int) or threads < 1):
        raise Error(f"threads {threads!r}: expected a whole number of at least 1", option="threads")


def _run(
    asked: Experiment, threads: int | None, progress: bool | Tell | None, *, traced: bool
) -> tuple[Comparison, _hoistway.Table | None]:
    check_threads(threads)
    shown = chosen(progress, Progress())
    tell = None
    if shown is not None:

        def tell(reached_ns: int, expected_ns: int | None) -> None:
            shown(reached_ns / 1e9, None if expected_ns is None else expected_ns / 1e9)

    try:
        results, events = _hoistway.run(asked.json(), asked.classes, threads, tell, traced)
    finally:
        if isinstance(shown, Progress):
            shown.close()
    return Comparison(results), events


COMPARE: dict[str, Any] = {
    name: value for name, value in (compare.__kwdefaults__ or {}).items() if name not in ("threads", "progress", "repeats")
}
"""What says what is compared, with what it is if nobody says."""
