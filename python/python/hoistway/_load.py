"""Loads built from Python objects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

from ._errors import Error


@dataclass(frozen=True, kw_only=True)
class Job:
    """A job of one or more processes. Fields have the names and meanings of fio's options; None stands for fio's default.

    For options without a field here, pass the text of a job file to `compare`.
    """

    name: str
    """The name in results."""
    rw: str = "read"
    """`read`, `write`, `randread`, `randwrite`, `rw`, `randrw`, `trim`, `randtrim`."""
    bs: int | str | None = None
    """Bytes per I/O, or a string such as `64k` (4096)."""
    size: int | str | None = None
    """Bytes of its part of the device, or a string such as `10g` (the whole device)."""
    iodepth: int = 1
    """Maximum I/Os that a process has in flight."""
    numjobs: int = 1
    """Number of identical processes."""
    filename: str = "/dev/sda"
    """The device, by the name for which `compare(files=...)` may give a device."""
    rate: int | str | None = None
    """Maximum bytes per second of a process, or a string such as `10m` (no limit)."""
    rate_iops: int | None = None
    """Maximum I/Os per second of a process (no limit)."""
    thinktime_us: int | None = None
    """Length in us of the pause after every `thinktime_blocks` I/Os."""
    thinktime_blocks: int | None = None
    """I/Os between two pauses (1)."""
    prioclass: int | None = None
    """1 real time, 2 best effort, 3 idle (not set)."""
    prio: int | None = None
    """0 (best) to 7 (not set)."""
    fsync: int | None = None
    """Writes between two `fsync`s (none)."""
    rwmixread: int | None = None
    """Percentage of reads, for `rw` and `randrw` (50)."""
    startdelay: float | None = None
    """Start delay in seconds (0)."""
    runtime: float = 5.0
    """Duration in seconds, during which the process repeats its part of the device."""

    def fio(self) -> str:
        """The job as a section of a job file."""
        lines = [f"[{_harmless('name', self.name)}]", "direct=1", "ioengine=libaio", "time_based"]
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "name" or value is None:
                continue
            option, text = field.name, str(value)
            if option == "thinktime_us":
                option = "thinktime"
            elif option in ("runtime", "startdelay"):
                text = f"{_microseconds(option, value)}us"
            lines.append(f"{option}={_harmless(option, text)}")
        return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Load:
    """Jobs that run at the same time."""

    jobs: Sequence[Job]
    """The jobs, in order."""

    def fio(self) -> str:
        """The jobs as the text of a job file; errors of `compare` refer to its lines."""
        jobs = self.jobs if isinstance(self.jobs, (str, Job)) else list(self.jobs)
        if isinstance(jobs, (str, Job)) or not all(isinstance(job, Job) for job in jobs):
            raise Error(f"jobs {jobs!r}: expected a list of Jobs", option="jobs")
        return "\n".join(job.fio() for job in jobs)


def _harmless(option: str, text: str) -> str:
    """Checks that a text has no line breaks, so that it cannot contain other options."""
    if not isinstance(text, str) or option == "name" and (not text or "]" in text) or any(character in text for character in "\r\n\0"):
        raise Error(f"{option} {text!r}: expected a string of one line, and in a name no ]", option=option)
    return text


def _microseconds(option: str, seconds: float) -> int:
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 <= seconds < 1e9:
        raise Error(f"{option} {seconds!r}: expected a time in seconds, from 0 to below 1e9", option=option)
    return round(seconds * 1e6)
