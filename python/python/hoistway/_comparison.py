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
    """A figure over the repeats, in ns, bytes per second or I/Os per second."""

    mean: float
    """The mean; if the figure is a maximum, the largest value."""
    half_width: float | None
    """Half the width of the mean's 95 % confidence interval; None after a single run, and if the figure is a maximum."""


class Comparison:
    """The results of a comparison. `print` shows its tables and conclusion; notebooks also show a picture."""

    def __init__(self, results: _hoistway.Results) -> None:
        self._results = results

    def __reduce__(self) -> tuple[Any, ...]:
        # Only the document is pickled; logged I/Os are lost.
        return _again, (self.json(),)

    @cached_property
    def document(self) -> dict[str, Any]:
        """The whole document, as `docs/results.md` describes it, including everything needed to repeat the runs."""
        document: dict[str, Any] = json.loads(self._results.json(False))
        return document

    def json(self, *, stable: bool = False) -> str:
        """The document as JSON, as `hoistway compare --format json` writes it. If `stable`, it leaves out everything that
        depends on the time and speed of the runs: the same arguments give the same bytes."""
        return self._results.json(stable)

    def save(self, file: str | os.PathLike[str], *, stable: bool = False) -> None:
        """Writes the document to a file atomically.

        Raises:
            OSError: The file cannot be written.
        """
        write(file, self.json(stable=stable))

    def report(self, file: str | os.PathLike[str]) -> None:
        """Writes a self-contained page: verdict, tables, charts, and, for a comparison with `excerpts=True`, a timeline
        of a few thousand requests with the reason why each waited. The file is written atomically.

        Raises:
            OSError: The file cannot be written.
        """
        write(file, self._results.page())

    @property
    def conclusion(self) -> list[str]:
        """The conclusion, and what makes it uncertain: a list of sentences."""
        return list(self.document["conclusion"])

    def figure(self, name: str) -> dict[str, Estimate]:
        """A figure by its name, such as `mixed:read:p99`, under each scheduler with each of its settings. Latencies are in ns.

        Raises:
            Error: There is no such figure.
        """
        return {label: Estimate(mean, half_width) for label, mean, half_width in self._results.figure(name)}

    def figures(self) -> _hoistway.Table:
        """One row for each figure of each run: the run, job, operation and figure, and the figure's unit (ns, B/s, 1/s) and value."""
        return self._results.figures()

    def intervals(self) -> _hoistway.Table:
        """One row for each interval of each run: `start_seconds`, `length_seconds`, the I/Os that completed in it and their mean latency in
        ns (null if there were none)."""
        return self._results.intervals()

    def ios(self) -> _hoistway.Table:
        """One row for each I/O, in the order of the runs and processes: its end (`end_ms`, since the start of its process), latencies in ns, size.
        With `log_avg_msec` in the job file there is one row for each averaging window.

        Raises:
            ValueError: The comparison did not have `logs=True`, or was loaded from a file.
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
