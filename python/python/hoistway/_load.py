"""Loads that are made of Python objects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

from ._errors import Error


@dataclass(frozen=True, kw_only=True)
class Job:
    """What the processes of a job do. Fields are called as fio's options are and mean the same; None leaves fio's default.

    For anything that has no field here, give fio's text to `compare`: it takes all options of a job file.
    """

    name: str
    """Its name in results."""
    rw: str = "read"
    """`read`, `write`, `randread`, `randwrite`, `rw`, `randrw`, `trim`, `randtrim`."""
    bs: int | str | None = None
    """Bytes of an I/O, or a text such as `64k` (4096)."""
    size: int | str | None = None
    """Bytes of its part of the device, or a text such as `10g` (the whole device)."""
    iodepth: int = 1
    """I/Os that a process has under way at a time."""
    numjobs: int = 1
    """Processes that do this."""
    filename: str = "/dev/sda"
    """The device; several are distinguished by `compare(files=...)`."""
    rate: int | str | None = None
    """Most bytes a second of a process, or a text such as `10m` (no limit)."""
    rate_iops: int | None = None
    """Most I/Os a second of a process (no limit)."""
    thinktime_us: int | None = None
    """How long a process pauses after `thinktime_blocks` I/Os, us."""
    thinktime_blocks: int | None = None
    """I/Os between two pauses (1)."""
    prioclass: int | None = None
    """1 real time, 2 best effort, 3 idle (not set)."""
    prio: int | None = None
    """0 (best) to 7 (not set)."""
    fsync: int | None = None
    """Writes between two `fsync`s (none)."""
    rwmixread: int | None = None
    """Percent of reads, with `rw` and `randrw` (50)."""
    startdelay: float | None = None
    """Seconds after which it begins (0)."""
    runtime: float = 5.0
    """How long it goes on, seconds: as often over its part as that takes."""

    def fio(self) -> str:
        """It as a section of a job file."""
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
    """Jobs that run side by side."""

    jobs: Sequence[Job]
    """The jobs, in their order."""

    def fio(self) -> str:
        """They as the text of a job file, which errors of `compare` name the lines of."""
        jobs = self.jobs if isinstance(self.jobs, (str, Job)) else list(self.jobs)
        if isinstance(jobs, (str, Job)) or not all(isinstance(job, Job) for job in jobs):
            raise Error(f"jobs {jobs!r}: expected a list of Jobs", option="jobs")
        return "\n".join(job.fio() for job in jobs)


def _harmless(option: str, text: str) -> str:
    """A text that does not end its line, and so says nothing of other options."""
    if not isinstance(text, str) or option == "name" and (not text or "]" in text) or any(character in text for character in "\r\n\0"):
        raise Error(f"{option} {text!r}: expected a text of one line, in names without ]", option=option)
    return text


def _microseconds(option: str, seconds: float) -> int:
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 <= seconds < 1e9:
        raise Error(f"{option} {seconds!r}: expected seconds from 0 to below 1e9", option=option)
    return round(seconds * 1e6)
