"""The result of a search."""

from __future__ import annotations

import json
import os
import shutil
from functools import cached_property
from typing import Any, NamedTuple

from . import _hoistway
from ._html import tuning_page
from ._pareto import SearchPlots
from ._written import write


class Setting(NamedTuple):
    """A scheduler with the values of the tunables that were searched. `str` gives its name in tables."""

    scheduler: str
    tunables: dict[str, str]
    """Its tunables, as written to their files; all others have the kernel's defaults."""
    queue: dict[str, str]
    """Files of `/sys/block/DEV/queue/`."""

    @classmethod
    def of(cls, written: dict[str, Any]) -> Setting:
        """Converts the setting of a document."""
        return cls(written["scheduler"], written.get("tunables", {}), written.get("queue_files", {}))

    def arguments(self) -> dict[str, Any]:
        """The arguments of `compare` to run it: `hoistway.compare(job, **setting.arguments())`."""
        tunables = {f"{self.scheduler}.{name}": value for name, value in self.tunables.items()}
        return {"schedulers": [self.scheduler], "set": tunables, "queue": dict(self.queue)}

    def __str__(self) -> str:
        tunables = [*sorted(self.tunables.items()), *sorted(self.queue.items())]
        return " ".join([self.scheduler, *(f"{name}={value}" for name, value in tunables)])


class Tuning:
    """A search and its result. `print` shows it; notebooks also show a picture."""

    def __init__(self, tuned: _hoistway.Tuned) -> None:
        self._tuned = tuned

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.json(),)

    @cached_property
    def document(self) -> dict[str, Any]:
        """The whole document, as `docs/tune.md` describes it: rounds, front, effects, and every run."""
        document: dict[str, Any] = json.loads(self._tuned.json())
        return document

    def json(self) -> str:
        """The document as JSON, as `hoistway tune --format json --stable` writes it."""
        return self._tuned.json()

    def save(self, file: str | os.PathLike[str]) -> None:
        """Writes the document to a file atomically.

        Raises:
            OSError: The file cannot be written.
        """
        write(file, self.json())

    @property
    def conclusion(self) -> list[str]:
        """The conclusion, and how certain it is: a list of sentences."""
        return list(self.document["conclusion"])

    @property
    def best(self) -> Setting:
        """The best setting; if none meets all conditions, the one that comes closest."""
        return Setting.of(self.document["found"]["best"]["setting"])

    @property
    def holds(self) -> bool:
        """Whether the best setting meets all conditions."""
        return bool(self.document["found"]["holds"])

    @property
    def front(self) -> list[Setting]:
        """The settings of the first round that no other dominates in the figures of the objective."""
        return [Setting.of(standing["setting"]) for standing in self.document["front"]]

    @property
    def effects(self) -> list[dict[str, Any]]:
        """The effect of each tunable in the first round, largest first: `share` is the share of the variance of the figure's logarithm."""
        return list(self.document["effects"])

    def figures(self) -> _hoistway.Table:
        """One row for each figure of each run: `scheduler`, `setting`, `seed`, `runtime_ns` (null for full-length runs), `job`, `operation`,
        `figure`, `unit` (ns, B/s, 1/s) and `value`, for pyarrow, polars, pandas or DuckDB."""
        return self._tuned.figures()

    @property
    def plot(self) -> SearchPlots:
        """Pictures, drawn by matplotlib."""
        return SearchPlots(self.document, self._tuned.names())

    def __str__(self) -> str:
        columns = shutil.get_terminal_size((100, 24)).columns
        return self._tuned.text(max(columns, 80)).rstrip("\n")

    def __repr__(self) -> str:
        document = self.document
        return f"<hoistway.Tuning of {document['job_file']}: {document['objective']}: {self.best}; {len(document['runs'])} runs>"

    def _repr_html_(self) -> str:
        return tuning_page(self.document, self._tuned.names())


def _again(text: str) -> Tuning:
    return Tuning(_hoistway.read_tuning(text, "(search)"))
