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
    stacks: Sequence[str] = (),
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
    fill_percent: float | None = None,
    trimmed: bool = False,
    submitter_dispatches: bool = False,
    techniques: Sequence[str] = (),
    at: Sequence[tuple[float, str, object]] = (),
    io_max: Mapping[str, str] = {},
    io_cost: Sequence[str] = (),
    io_weight: Mapping[str, int] = {},
    io_latency: Mapping[str, str] = {},
    io_prio_class: Mapping[str, str] = {},
    guest_schedulers: Sequence[SchedulerLike] = (),
    virtual_disk: Profile | None = None,
    guest_weights: Mapping[str, int] = {},
    elevator: str | None = None,
    runtime: float | None = None,
    ramp: float | None = None,
    repeats: int = 5,
    from_start: bool = False,
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
        replay: Options of the replay of a recording, such as `{"speed": 2.0, "streams": ["postgres"], "window": (10.0, 40.0)}`: also `mode`
            (`recorded-program`, `timed`, `fast`), `copies`, `depths`, `priorities`, `recorded_under`, `device`, `columns`, `scale_to_fit`, `lossy`
            (`docs/recordings.md`).
        device: The device: the name of a preset (`hoistway.devices()`), a dictionary from `hoistway.device(name)`, a preset in
            TOML, or the path of a `.toml` file. None: a device that suits the load.
        devices: Several devices to compare.
        files: Devices of single files of the load, by the file names in the load; `device` applies to all others.
        stacks: Block devices over the devices, such as `["/dev/md0 = raid1(/dev/sda, /dev/sdb)"]` (docs/stacks.md).
        schedulers: Names, `all`, `default` for the kernel's default for the device, or subclasses of `Scheduler`. Default: all
            that the kernel has.
        kernels: Linux releases, or outputs of `uname -r`; several are compared.
        hosts: Host profiles, in the same forms as devices; several are compared.
        cpus: CPUs of each host, instead of the number in its profile.
        memory_bytes: Memory of each host, bytes.
        sysctl: `vm.dirty_bytes`, `vm.dirty_background_bytes`, `vm.dirty_ratio` and `vm.dirty_background_ratio` of each host.
        journal: Whether jobs without direct I/O use a file system with a journal, which their fsyncs commit.
        set: Tunables, such as `{"mq-deadline.fifo_batch": 1}`.
        queue: Files of `/sys/block/DEV/queue/`, such as `{"nr_requests": 32}`.
        vary: Tunables and files of `queue/` with several values to compare, such as
            `{"mq-deadline.fifo_batch": [1, 16], "queue.nr_requests": [64, 256]}`. All combinations run, as does the
            kernel's default.
        hw_queues: Number of hardware queues of each device, instead of its own.
        read_queues: Number of additional hardware queues for reads.
        poll_queues: Number of additional hardware queues for polled I/O.
        shared_tags: Whether all devices share the tags of one controller.
        fill_percent: The share of the addresses of each SSD that hold data, percent. None: as the drive was measured, written over at random
            as a whole.
        trimmed: Whether each SSD was trimmed and had the time to erase what holds no data; without `fill_percent` all of it.
        submitter_dispatches: Whether a submitting task itself runs the hardware queues that Linux would leave to a kernel worker.
        techniques: Contention options for the lock of mq-deadline and bfq, which no Linux release has: some of
            `single-dispatcher`, `try-merge`, `batch-dispatch`, and `insertion-buckets` or `pending-lists`, or `all`.
        at: Writes to files while the load runs, such as `[(10.0, "scheduler", "bfq"), (20.0, "bfq.slice_idle", 0)]`, in seconds.
        io_max: Writes to `io.max` of cgroups that the load names, such as `{"backup": "wbps=10485760"}`.
        io_cost: Writes to `io.cost.qos` and `io.cost.model`, such as `["enable=1 rpct=95 rlat=5000 min=50 max=150"]`, of every device,
            or after the name of one of the load's files of that one.
        io_weight: `io.weight` of cgroups that the load names, such as `{"backup": 50}`; matters with `io_cost`.
        io_latency: Writes to `io.latency` of such cgroups, such as `{"db": "target=2000"}` in microseconds, of every device.
        io_prio_class: Writes to `io.prio.class` of such cgroups, such as `{"backup": "idle"}`.
        guest_schedulers: Runs the load in virtual machines with these schedulers, each combined with each scheduler of the host.
        virtual_disk: The type of the guests' disks, in the same forms as `device`. None: `virtio-blk`.
        guest_weights: Weights of the guests' cgroups on the host, by the file that serves as the guest's disk.
        elevator: The kernel's boot option `elevator=`.
        runtime: Replaces the runtime of every process, seconds.
        ramp: Replaces the ramp time of every process, seconds.
        repeats: Number of runs of each variant. In each repeat all variants have the same seed.
        from_start: Whether to measure as fio does, from the start of each job to its end. By default only the time counts in which all
            jobs run and what happens only after their start is over, as in `hoistway compare` (`Comparison.document["window"]`); with
            `logs` or a scheduler written in Python, and of events, everything does.
        baseline: The baseline: a scheduler, or the label of a variant. None: the kernel's default.
        focus: The ranking figures, such as `mixed:read:p99`, with weights as in `wal:sync:p99*2`. Default: the figure of the
            bundled load, or the figure most likely to be waited on.
        smallest_effect: Differences below this fraction are ignored. None: 0.02.
        seed: The seed of all random numbers.
        logs: Whether every I/O is kept, for `Comparison.ios()`. It takes 40 bytes of memory per I/O.
        excerpts: Whether a few thousand requests of each variant are recorded individually, for `Comparison.report()`.
        threads: Maximum parallel runs. Default: the number of cores.
        progress: Whether to show progress; or a function that gets, several times per second, the virtual seconds
            that have passed in all runs together, and the expected number (None if unknown). None: shown in terminals and
            notebooks after two seconds.

    Raises:
        Error: An argument is invalid.
        SchedulerError: A scheduler written in Python lost a request or dispatched one twice. Any other exception of it is
            raised unchanged.
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
    """Every event of the runs, and the reason for each choice of a request, as a table for pyarrow, polars, pandas or DuckDB.

    The arguments are those of `compare`, with only one kernel, host and device. An I/O has about eight events, so use a short
    `runtime`. `docs/trace.md` describes the columns; `time_ns` is virtual time in ns, and `sector` counts units of 512 bytes.

    Raises:
        The exceptions of `compare`.
    """
    unknown = [name for name in arguments if name not in COMPARE or name == "threads"]
    if unknown:
        raise TypeError(f"trace() has no argument {unknown[0]!r}")
    asked = experiment(job=job, repeats=repeats, **(COMPARE | arguments | {"from_start": True}))
    table = _run(asked, 1, progress, traced=True)[1]
    assert table is not None, "a traced run has events"
    return table


def load(file: str | os.PathLike[str]) -> Comparison:
    """Reads a document written by `Comparison.save` or `hoistway compare --format json`.

    Raises:
        Error: The file contains something else, or has another format.
        OSError: It cannot be read.
    """
    path = os.fsdecode(file)
    # File names are bytes, so they are decoded for messages.
    name = path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    with open(path, encoding="utf-8") as opened:
        try:
            text = opened.read()
        except UnicodeDecodeError:
            raise Error(f"{name}: not text (expected a result document)", file=name) from None
    return Comparison(_hoistway.read(text, name))


def _arguments(given: dict[str, Any]) -> dict[str, Any]:
    """The arguments of `compare` that define what is compared."""
    return {name: value for name, value in given.items() if name not in ("threads", "progress")}


def check_threads(threads: int | None) -> None:
    """Checks the number of threads."""
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
"""The arguments that define what is compared, with their defaults."""
