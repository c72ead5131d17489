"""Access to a document for pages and pictures."""

from __future__ import annotations

from typing import Any, NamedTuple

from ._errors import Error

KEYS = {
    "iops": "iops",
    "bandwidth": "bytes_per_second",
    "mean": "lat_mean_ns",
    "p50": "lat_p50_ns",
    "p99": "lat_p99_ns",
    "p99.9": "lat_p99_9_ns",
    "max": "lat_max_ns",
}
"""The keys of figures in `statistics`, by their names."""


class Value(NamedTuple):
    """A figure over the repeats."""

    mean: float
    half_width: float | None
    best: bool


class Row(NamedTuple):
    """An operation of a job under one scheduler."""

    label: str
    job: str
    operation: str
    figures: dict[str, Value]


def rows(document: dict[str, Any]) -> list[Row]:
    """All operations, in the order of tables."""

    def row(found: dict[str, Any]) -> Row:
        figures = {
            name: Value(found["figures"][key]["mean"], found["figures"][key]["half_width"], found["figures"][key]["best"])
            for name, key in KEYS.items()
            if key in found["figures"]
        }
        return Row(found["scheduler"], found["job"], found["operation"], figures)

    statistics = document["statistics"] or {"rows": []}
    return [row(found) for found in statistics["rows"]]


def focus_of(document: dict[str, Any]) -> tuple[str, str, str] | None:
    """Job, operation and figure of the first verdict; None without a verdict."""
    for verdict in document.get("verdicts", []):
        for focus in verdict["focus"]:
            return split(focus["figure"])
    return None


def split(name: str) -> tuple[str, str, str]:
    """The parts of `JOB:OPERATION:FIGURE`. A job with a colon or a blank in its name is quoted."""
    parts = name.rsplit(":", 2)
    if len(parts) != 3 or parts[2] not in KEYS:
        raise Error(f"{name!r}: expected JOB:OPERATION:FIGURE, such as mixed:read:p99", option="name")
    job = parts[0]
    if len(job) >= 2 and job[0] == job[-1] == '"':
        job = job[1:-1].replace('\\"', '"').replace("\\\\", "\\")
    return job, parts[1], parts[2]


def label_of(setting: dict[str, Any]) -> str:
    """The name of a search's setting in tables."""
    tunables = setting.get("tunables", {}) | setting.get("queue_files", {})
    return " ".join([setting["scheduler"], *(f"{name}={value}" for name, value in tunables.items())])
