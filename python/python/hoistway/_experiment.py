"""Converts the arguments of `compare` to an experiment that can be serialized as JSON."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

from . import _hoistway
from ._errors import Error
from ._load import Job, Load
from ._scheduler import Scheduler, scheduler_class, scheduler_name

Path = os.PathLike[str]
JobLike = str | Path | Load | Job | None
Profile = str | Path | Mapping[str, Any]
SchedulerLike = str | type[Scheduler]

_ARGUMENTS = {
    "load": "job",
    "guests": "guest_schedulers",
    "tunables": "set",
    "queue_files": "queue",
    "writes": "at",
    "sysctls": "sysctl",
}
"""The arguments, by the library's names, that have other names here."""

_ALLOWED: dict[type, str] = {str: "a string", int: "a whole number", bool: "True or False"}


class Experiment:
    """A requested comparison, of which only the types of the arguments are checked."""

    def __init__(self, fields: dict[str, Any], classes: list[dict[str, Any]]) -> None:
        self.fields = fields
        """The library's `Comparison` in serialized form."""
        self.classes = classes
        """Schedulers written in Python."""

    def json(self) -> str:
        """The fields.

        Raises:
            Error: A string contains surrogates, which only Python allows.
        """
        for field, value in self.fields.items():
            try:
                json.dumps(value, ensure_ascii=False).encode()
            except UnicodeEncodeError:
                argument = _ARGUMENTS.get(field, field)
                raise Error(f"{argument}: contains a surrogate (expected a string that can be encoded as UTF-8)", option=argument) from None
        return json.dumps(self.fields)


def experiment(
    job: JobLike,
    *,
    replay: Mapping[str, object],
    device: Profile | None,
    devices: Sequence[Profile],
    files: Mapping[str, Profile],
    stacks: Sequence[str],
    schedulers: Sequence[SchedulerLike],
    kernels: Sequence[str],
    hosts: Sequence[Profile],
    cpus: int | None,
    memory_bytes: int | None,
    sysctl: Mapping[str, object],
    journal: bool,
    set: Mapping[str, object],
    queue: Mapping[str, object],
    vary: Mapping[str, Sequence[object]],
    hw_queues: int | None,
    read_queues: int,
    poll_queues: int,
    shared_tags: bool,
    fill_percent: float | None,
    trimmed: bool,
    submitter_dispatches: bool,
    techniques: Sequence[str],
    at: Sequence[tuple[float, str, object]],
    io_max: Mapping[str, str],
    io_cost: Sequence[str],
    io_weight: Mapping[str, int],
    io_latency: Mapping[str, str],
    io_prio_class: Mapping[str, str],
    guest_schedulers: Sequence[SchedulerLike],
    virtual_disk: Profile | None,
    guest_weights: Mapping[str, int],
    elevator: str | None,
    runtime: float | None,
    ramp: float | None,
    repeats: int,
    from_start: bool,
    baseline: SchedulerLike | None,
    focus: str | Sequence[str],
    smallest_effect: float | None,
    seed: int,
    logs: bool,
    excerpts: bool,
) -> Experiment:
    """The comparison for the arguments of `compare`."""
    classes: dict[str, type[Scheduler]] = {}

    def names(argument: str, chosen: Sequence[SchedulerLike]) -> list[str]:
        return [_scheduler(argument, one, classes) for one in sequence(argument, chosen)]

    if device is not None and devices:
        raise Error("devices: cannot be combined with device (expected one of them)", option="devices")
    places = [device] if device is not None else list(sequence("devices", devices))
    of_files = {is_("files", file, str): _profile("files", profile) for file, profile in mapping("files", files).items()}
    chosen_devices: list[dict[str, Any]] = [{"common": _profile("device", place), "files": of_files} for place in places]
    if not chosen_devices and of_files:
        chosen_devices = [{"common": None, "files": of_files}]
    chosen_techniques = sequence("techniques", techniques)
    fields = {
        "load": _load(job),
        "replay": _replay(replay),
        "devices": chosen_devices,
        "stacks": [is_("stacks", one, str) for one in sequence("stacks", stacks)],
        "kernels": [is_("kernels", kernel, str) for kernel in sequence("kernels", kernels)],
        "hosts": [_profile("hosts", host) for host in sequence("hosts", hosts)],
        "cpus": number("cpus", cpus, 16),
        "memory_bytes": number("memory_bytes", memory_bytes, 64),
        "sysctls": [
            {"name": is_("sysctl", name, str), "text": _text("sysctl", value)} for name, value in mapping("sysctl", sysctl).items()
        ],
        "journal": is_("journal", journal, bool),
        "schedulers": names("schedulers", schedulers),
        "elevator": None if elevator is None else is_("elevator", elevator, str),
        "guests": {
            "schedulers": names("guest_schedulers", guest_schedulers),
            "virtual_disk": None if virtual_disk is None else _profile("virtual_disk", virtual_disk),
            "weights": [
                [is_("guest_weights", file, str), needed("guest_weights", weight, 32)]
                for file, weight in mapping("guest_weights", guest_weights).items()
            ],
        },
        "tunables": [_tunable(name, value) for name, value in mapping("set", set).items()],
        "queue_files": [
            {"file": is_("queue", file, str), "text": _text("queue", value)} for file, value in mapping("queue", queue).items()
        ],
        "vary": [varied("vary", name, values) for name, values in mapping("vary", vary).items()],
        "hw_queues": number("hw_queues", hw_queues, 16),
        "read_queues": needed("read_queues", read_queues, 16),
        "poll_queues": needed("poll_queues", poll_queues, 16),
        "shared_tags": is_("shared_tags", shared_tags, bool),
        "fill_percent": None if fill_percent is None else _real("fill_percent", fill_percent),
        "trimmed": is_("trimmed", trimmed, bool),
        "submitter_dispatches": is_("submitter_dispatches", submitter_dispatches, bool),
        "techniques": ",".join(is_("techniques", one, str) for one in chosen_techniques) if chosen_techniques else None,
        "writes": [_write(write) for write in sequence("at", at)],
        "io_max": _cgroup_files("io_max", io_max),
        "io_cost": [is_("io_cost", one, str) for one in sequence("io_cost", io_cost)],
        "io_weight": _cgroup_files(
            "io_weight", {cgroup: _text("io_weight", weight) for cgroup, weight in mapping("io_weight", io_weight).items()}
        ),
        "io_latency": _cgroup_files("io_latency", io_latency),
        "io_prio_class": _cgroup_files("io_prio_class", io_prio_class),
        "runtime_ns": nanoseconds("runtime", runtime),
        "ramp_ns": nanoseconds("ramp", ramp),
        "repeats": needed("repeats", repeats, 32),
        "baseline": None if baseline is None else _scheduler("baseline", baseline, classes),
        "focus": [
            json.loads(_hoistway.focus(is_("focus", one, str)))
            for one in ([focus] if isinstance(focus, str) else sequence("focus", focus))
        ],
        "smallest_effect": None if smallest_effect is None else _real("smallest_effect", smallest_effect),
        "seed": needed("seed", seed, 64),
        "logs": is_("logs", logs, bool),
        "excerpts": is_("excerpts", excerpts, bool),
        # A scheduler written in Python is too slow for longer runs.
        "measured": "as_fio" if is_("from_start", from_start, bool) or logs or classes else "lasting",
    }
    return Experiment(fields, [scheduler_class(one) for one in classes.values()])


def _scheduler(argument: str, scheduler: SchedulerLike, classes: dict[str, type[Scheduler]]) -> str:
    if isinstance(scheduler, str):
        return scheduler
    if not isinstance(scheduler, type) or not issubclass(scheduler, Scheduler):
        raise Error(f"{argument} {scheduler!r}: expected a name, or a subclass of hoistway.Scheduler", option=argument)
    name = scheduler_name(scheduler)
    if classes.setdefault(name, scheduler) is not scheduler:
        raise Error(f"{argument} {name}: two classes have this name (expected a different `name` for each)", option=argument)
    return name


def _load(job: JobLike) -> Any:
    if job is None:
        return "example"
    if isinstance(job, Job):
        job = Load([job])
    if isinstance(job, Load):
        return {"text": {"name": "(load)", "text": job.fio()}}
    if isinstance(job, str) and "\n" in job:
        return {"text": {"name": "(text)", "text": job}}
    if not isinstance(job, (str, os.PathLike)):
        expected = "expected the path of a fio job file or of a recording, the text of a job file, the name of a bundled load, a Load or a Job"
        raise Error(f"job {job!r}: {expected}", option="job")
    path = os.fspath(job)
    if isinstance(job, str) and path in _hoistway.scenarios() and not os.path.exists(path):
        return {"scenario": path}
    return {"file": path}


_REPLAY: dict[str, str] = {
    "mode": "recorded-program, timed or fast",
    "speed": "a factor",
    "copies": "a whole number",
    "depths": "a mapping of streams to depths",
    "priorities": "a mapping of streams to priorities, such as rt:4",
    "window": "its beginning and end, in seconds",
    "streams": "a list of names",
    "recorded_under": "the name of a scheduler",
    "device": "MAJOR,MINOR",
    "columns": "the name of a public set of recordings, or the place of each column",
    "scale_to_fit": "True or False",
    "lossy": "True or False",
}
"""The options of a replay, with descriptions of their values."""


def _replay(replay: Mapping[str, object]) -> dict[str, Any]:
    """The options of a replay."""
    fields: dict[str, Any] = {}
    for name, value in mapping("replay", replay).items():
        if name not in _REPLAY:
            raise Error(f"replay: {name!r} is not an option (expected some of {', '.join(_REPLAY)})", option="replay")

        def refuse(of: str = name, given: object = value) -> Error:
            return Error(f"replay: {of} {given!r} (expected {_REPLAY[of]})", option="replay")

        is_right = {
            "speed": isinstance(value, Real) and not isinstance(value, bool),
            "copies": isinstance(value, Integral) and not isinstance(value, bool) and 0 <= int(value) < 2**32,
            "depths": isinstance(value, Mapping)
            and all(isinstance(depth, Integral) and 0 <= int(depth) < 2**32 for depth in value.values()),
            "priorities": isinstance(value, Mapping) and all(isinstance(text, str) for text in value.values()),
            "window": isinstance(value, Sequence)
            and len(value) == 2
            and all(isinstance(end, Real) and 0 <= float(end) < 1e9 for end in value),
            "streams": isinstance(value, Sequence)
            and not isinstance(value, str)
            and all(isinstance(stream, str) for stream in value),
            "scale_to_fit": isinstance(value, bool),
            "lossy": isinstance(value, bool),
        }.get(name, isinstance(value, str))
        if not is_right or (name == "mode" and value not in ("recorded-program", "timed", "fast")):
            raise refuse()
        if name == "window":
            fields["window_ns"] = [round(float(end) * 1e9) for end in value]
        elif name == "speed":
            fields[name] = float(value)
        elif name == "copies":
            fields[name] = int(value)
        elif name == "depths":
            fields[name] = {str(stream): int(depth) for stream, depth in value.items()}
        elif isinstance(value, Mapping):
            fields[name] = dict(value)
        elif isinstance(value, Sequence) and not isinstance(value, str):
            fields[name] = list(value)
        else:
            fields[name] = value
    return fields


def _profile(argument: str, profile: Profile) -> Any:
    """A name, a file or a TOML text, in the library's form."""
    if isinstance(profile, Mapping):
        try:
            as_json = json.dumps(profile)
        except (TypeError, ValueError) as error:
            raise Error(f"{argument}: cannot be written as TOML: {error}", option=argument) from None
        return {"name": f"({argument})", "text": _hoistway.toml_text(argument, as_json)}
    if isinstance(profile, str) and "\n" in profile:
        return {"name": f"({argument})", "text": profile}
    if isinstance(profile, str):
        return profile
    if isinstance(profile, os.PathLike):
        path = os.fspath(profile)
        # The library would take a path without a slash or this suffix for a name.
        return path if "/" in path or path.endswith(".toml") else f"./{path}"
    raise Error(f"{argument} {profile!r}: expected a name, a path, a dictionary or TOML", option=argument)


def _tunable(name: object, value: object) -> dict[str, str]:
    scheduler, dot, tunable = is_("set", name, str).partition(".")
    if not dot:
        raise Error(f"set {name}: expected SCHED.TUNABLE, such as mq-deadline.fifo_batch", option="set")
    return {"scheduler": scheduler, "name": tunable, "text": _text("set", value)}


def varied(argument: str, name: object, values: Sequence[object]) -> dict[str, Any]:
    """A tunable or a file of `queue/`, with several values."""
    label = is_(argument, name, str)
    of, dot, tunable = label.partition(".")
    for controller in ("io.cost", "io.latency"):
        if label.startswith(f"{controller}."):
            of, tunable = controller, label.removeprefix(f"{controller}.")
    if not dot:
        expected = "expected SCHED.TUNABLE or queue.FILE, such as mq-deadline.fifo_batch or queue.nr_requests"
        raise Error(f"{argument} {name}: {expected}", option=argument)
    return {"of": of, "name": tunable, "texts": [_text(argument, value) for value in sequence(argument, values)]}


def _write(write: tuple[float, str, object]) -> dict[str, Any]:
    try:
        at, key, value = write
    except (TypeError, ValueError):
        expected = 'expected (seconds, file, value), such as (10, "scheduler", "bfq")'
        raise Error(f"at {write!r}: {expected}", option="at") from None
    under, dot, tunable = is_("at", key, str).partition(".")
    file = f"iosched/{tunable}" if dot else under
    return {"at_ns": nanoseconds("at", at), "under": under if dot else None, "file": file, "text": _text("at", value)}


def _cgroup_files(argument: str, texts: Mapping[str, str]) -> list[dict[str, str]]:
    return [
        {"cgroup": is_(argument, cgroup, str), "text": is_(argument, text, str)}
        for cgroup, text in mapping(argument, texts).items()
    ]


def _text(argument: str, value: object) -> str:
    """The text to write to a file of the kernel."""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, str):
        return value
    raise Error(f"{argument} {value!r}: expected a string or a whole number", option=argument)


def is_(argument: str, value: object, kind: type) -> Any:
    """A value of exactly this type, excluding subclasses."""
    if type(value) is not kind:
        raise Error(f"{argument} {value!r}: expected {_ALLOWED[kind]}", option=argument)
    return value


def number(argument: str, number: int | None, bits: int) -> int | None:
    """An unsigned integer of this number of bits, or None."""
    return None if number is None else needed(argument, number, bits)


def needed(argument: str, number: int, bits: int) -> int:
    """An unsigned integer of this number of bits; numpy's integers are accepted, too."""
    if isinstance(number, bool) or not isinstance(number, Integral) or not 0 <= number < 1 << bits:
        raise Error(f"{argument} {number!r}: expected a whole number from 0 to {(1 << bits) - 1}", option=argument)
    return int(number)


def _real(argument: str, number: float) -> float:
    try:
        real = float(number) if isinstance(number, Real) and not isinstance(number, bool) else math.nan
    except OverflowError:
        real = math.inf
    if not math.isfinite(real):
        raise Error(f"{argument} {number!r}: expected a number", option=argument)
    return real


def nanoseconds(argument: str, seconds: float | None) -> int | None:
    """Converts a time in seconds."""
    if seconds is None:
        return None
    real = _real(argument, seconds)
    if not 0 <= real < 1e10:
        raise Error(f"{argument} {seconds!r}: expected a time in seconds, from 0 to below 1e10", option=argument)
    return round(real * 1e9)


def sequence(argument: str, values: Iterable[Any]) -> list[Any]:
    """A list of values."""
    # A string is a sequence of characters, which is never meant here.
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise Error(f"{argument} {values!r}: expected a list", option=argument)
    return list(values)


def mapping(argument: str, values: Mapping[str, Any]) -> Mapping[str, Any]:
    """A dictionary."""
    if not isinstance(values, Mapping):
        raise Error(f"{argument} {values!r}: expected a dictionary", option=argument)
    return values
