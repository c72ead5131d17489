"""Runs in real time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from . import _hoistway
from ._compare import COMPARE
from ._comparison import Comparison
from ._errors import Error
from ._experiment import JobLike, experiment, is_, needed


def run(
    job: JobLike,
    *,
    target: str,
    replay: Mapping[str, object] = {},
    schedulers: Sequence[str] = ("none",),
    set: Mapping[str, object] = {},
    queue: Mapping[str, object] = {},
    vary: Mapping[str, Sequence[object]] = {},
    techniques: Sequence[str] = ("single-dispatcher", "try-merge", "batch-dispatch"),
    workers: int | None = None,
    queue_depth: int | None = None,
    runtime: float | None = None,
    ramp: float | None = None,
    repeats: int = 1,
    from_start: bool = False,
    baseline: str | None = None,
    focus: str | Sequence[str] = (),
    smallest_effect: float | None = None,
    seed: int = 1,
    logs: bool = False,
    force: bool = False,
) -> Comparison:
    """Runs a load in real time, through the block layer and its schedulers, and compares the schedulers as `compare` does.

    The schedulers run one after the other on the same target, which is not reset between them. The same seed gives the same I/Os, but
    not the same figures.

    Args:
        job: The path of a fio job file or of a recording of block I/O; the text of a job file; the name of a bundled load; or a `Load` or
            `Job`. `direct=1` is needed.
        target: The target: `file:PATH` (created and filled if it does not exist), `blk:PATH`, `mem:SIZE`, `null:`, or `sim:PRESET`,
            a device model in real time, which stores no data.
        replay: How a recording is replayed, as for `compare`.
        schedulers: Names, each as often as it is to run: `none`, `mq-deadline`, `kyber` or `bfq`.
        set: Tunables, such as `{"mq-deadline.fifo_batch": 1}`.
        queue: Files of `/sys/block/DEV/queue/`, such as `{"nr_requests": 32}`.
        vary: Tunables and files of `queue/` with several values to compare, such as `{"mq-deadline.fifo_batch": [1, 16]}`.
        techniques: Contention options for the lock of mq-deadline and bfq.
        workers: Worker threads, 1 to 256. None: one per process, at most one per CPU.
        queue_depth: Commands per hardware queue at the target. None: the target's maximum.
        runtime: Replaces the runtime of every process, seconds.
        ramp: Replaces the ramp time of every process, seconds.
        repeats: Number of rounds, in each of which all schedulers run.
        from_start: Whether to measure as fio does, from the start of each job to its end. By default, and without `logs`, only the time
            counts in which all jobs run.
        baseline: The baseline. None: the first scheduler.
        focus: The ranking figures, such as `mixed:read:p99`, with weights as in `wal:sync:p99*2`.
        smallest_effect: Differences below this fraction are ignored. None: 0.02.
        seed: The seed of all random numbers of the load.
        logs: Whether every I/O is kept, for `Comparison.ios()`.
        force: Whether a block device, or a file that no earlier run created, may be overwritten.

    Raises:
        Error: An argument is invalid.
        KeyboardInterrupt: Ctrl-C ended the runs early.
    """
    asked = experiment(
        job=job,
        **(
            COMPARE
            | {
                "replay": replay,
                "schedulers": schedulers,
                "set": set,
                "queue": queue,
                "vary": vary,
                "techniques": techniques,
                "runtime": runtime,
                "ramp": ramp,
                "repeats": needed("repeats", repeats, 32),
                "from_start": from_start,
                "baseline": baseline,
                "focus": focus,
                "smallest_effect": smallest_effect,
                "seed": seed,
                "logs": logs,
            }
        ),
    )
    if asked.classes:
        name = asked.classes[0]["name"]
        raise Error(f"schedulers {name}: schedulers written in Python run in virtual time only (expected names)", option="schedulers")
    results = _hoistway.run_real(
        asked.json(),
        is_("target", target, str),
        _within("workers", workers, 256),
        _within("queue_depth", queue_depth, 10_240),
        is_("force", force, bool),
    )
    return Comparison(results)


def _within(argument: str, number: int | None, most: int) -> int | None:
    if number is None:
        return None
    if not 1 <= needed(argument, number, 64) <= most:
        raise Error(f"{argument} {number}: expected a number from 1 to {most}", option=argument)
    return int(number)
