"""The results of a comparison."""

from __future__ import annotations

import json
import os
import shutil
from functools import cached_property
from typing import Any, NamedTuple

from . import _hoistway
from ._html import page
from ._plot import Plots
from ._written import write


class Estimate(NamedTuple):
    """A figure over the repeats, in its unit: ns, bytes a second, or I/Os a second."""

    mean: float
    """The mean; of maxima the largest."""
    half_width: float | None
    """Half the width of the mean's 95 % interval; None of a single run and of maxima."""


class Comparison:
    """What came out of a comparison. `print` shows its tables and what they mean; notebooks show them with a picture."""

    def __init__(self, results: _hoistway.Results) -> None:
        self._results = results

    def __reduce__(self) -> tuple[Any, ...]:
        # Between processes it goes as the document: without I/Os that were logged.
        return _again, (self.json(),)

    @cached_property
    def document(self) -> dict[str, Any]:
        """Everything, as `docs/results.md` describes it: with what is needed to repeat the runs."""
        document: dict[str, Any] = json.loads(self._results.json(False))
        return document

    def json(self, *, stable: bool = False) -> str:
        """The document as JSON, as `hoistway compare --format json` writes it. If it is to be `stable`, it leaves out what
        depends on when and how fast it was made: the same arguments give the same bytes."""
        return self._results.json(stable)

    def save(self, file: str | os.PathLike[str], *, stable: bool = False) -> None:
        """Writes the document to a file, which is complete or as it was before.

        Raises:
            OSError: It cannot be written.
        """
        write(file, self.json(stable=stable))

    def report(self, file: str | os.PathLike[str]) -> None:
        """Writes a page that needs nothing else: verdict, tables, charts, and, of a comparison with `excerpts=True`, a timeline
        of some thousand requests with why each waited. The file is complete or as it was before.

        Raises:
            OSError: It cannot be written.
        """
        write(file, self._results.page())

    @property
    def conclusion(self) -> list[str]:
        """What the results mean, and what makes that uncertain, in sentences."""
        return list(self.document["conclusion"])

    def figure(self, name: str) -> dict[str, Estimate]:
        """A figure by its name, such as `mixed:read:p99`, under each scheduler (with its setting). Latencies are in ns.

        Raises:
            Error: There is no such figure.
        """
        return {label: Estimate(mean, half_width) for label, mean, half_width in self._results.figure(name)}

    def figures(self) -> _hoistway.Table:
        """One row for each figure of each run: which run, job, operation and figure, its unit (ns, B/s, 1/s) and value."""
        return self._results.figures()

    def intervals(self) -> _hoistway.Table:
        """One row for each interval of each run: `start_seconds`, `length_seconds`, I/Os that ended in it and their mean latency in
        ns (null without any)."""
        return self._results.intervals()

    def ios(self) -> _hoistway.Table:
        """One row for each I/O, in the order of the runs and processes: when it ended (`end_ms`, since its process began), its latencies in ns, its size.
        With `log_avg_msec` in the job file, one for each window.

        Raises:
            ValueError: The comparison was without `logs=True`, or was loaded from a file.
        """
        return self._results.ios()

    def markdown(self) -> str:
        """The tables in Markdown."""
        return self._results.markdown()

    @property
    def plot(self) -> Plots:
        """Pictures, drawn by matplotlib."""
        return Plots(self)

    def __str__(self) -> str:
        columns = shutil.get_terminal_size((100, 24)).columns
        return self._results.text(False, max(columns, 80)).rstrip("\n")

    def __repr__(self) -> str:
        runs = self.document["runs"]
        labels = dict.fromkeys(run["variant"]["label"] for run in runs)
        return f"<hoistway.Comparison of {self.document['job_file']}: {', '.join(labels)}; {len(runs)} runs>"

    def _repr_html_(self) -> str:
        return page(self.document)


def _again(text: str) -> Comparison:
    return Comparison(_hoistway.read(text, "(results)"))
