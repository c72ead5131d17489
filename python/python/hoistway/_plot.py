"""Pictures of results, drawn by matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._document import Row, focus_of, rows, split
from ._drawing import annotate, axes, axis, draw_front, is_latency
from ._errors import Error

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ._comparison import Comparison

_LATENCIES = {"p50": "_", "mean": "o", "p99": "s", "p99.9": "^", "max": "x"}


class Plots:
    """Each method draws into `ax`, or into new axes, and returns them, so that they can be changed or saved: `ax.figure.savefig("a.png")`.

    A figure is named `JOB:OPERATION:FIGURE`, such as `mixed:read:p99`. The default is the figure of the
    verdict.

    Raises:
        ImportError: matplotlib is not installed.
        Error: There is no such figure.
    """

    def __init__(self, comparison: Comparison) -> None:
        self._document = comparison.document
        self._rows = rows(self._document)

    def latency(self, name: str | None = None, *, ax: Axes | None = None) -> Axes:
        """Latencies of an operation under each scheduler, in ms: the mean, percentiles and the maximum, with the confidence interval of each."""
        job, operation, _ = self._focus(name)
        ax = axes(ax)
        chosen = self._of(job, operation)
        for figure, marker in _LATENCIES.items():
            known = [(place, row.figures[figure]) for place, row in enumerate(chosen) if figure in row.figures]
            ax.errorbar(
                [place for place, _ in known],
                [value.mean / 1e6 for _, value in known],
                yerr=[(value.half_width or 0) / 1e6 for _, value in known],
                fmt=marker,
                capsize=3,
                label=figure,
            )
        ax.set_xticks(range(len(chosen)), [row.label for row in chosen], rotation=20, ha="right")
        ax.set_yscale("log")
        ax.set_ylabel("latency, ms")
        ax.set_title(f"{job}, {operation}")
        ax.legend()
        return ax

    def timeline(self, name: str | None = None, *, figure: str = "mean", ax: Axes | None = None) -> Axes:
        """An operation over time under each scheduler: its mean latency in ms or, with `figure="iops"`, its I/Os per second.
        The lines are means over the repeats."""
        if figure not in ("mean", "iops"):
            raise Error(f"figure {figure!r}: expected mean or iops", option="figure")
        job, operation, _ = self._focus(name)
        ax = axes(ax)
        lines: dict[str, dict[float, list[float]]] = {}
        for run in self._document["runs"]:
            of_job = (one for one in run["jobs"] if one["name"] == job)
            for direction in (found for one in of_job for found in one["operations"] if found["operation"] == operation):
                series = direction["series"]
                length = series["interval_seconds"]
                points = lines.setdefault(run["variant"]["label"], {})
                for number, (ios, latency_ns) in enumerate(zip(series["ios"], series["mean_lat_ns"], strict=True)):
                    if figure == "iops":
                        points.setdefault(number * length, []).append(ios / length)
                    elif ios:
                        points.setdefault(number * length, []).append(latency_ns / 1e6)
        if not lines:
            raise Error(f"{job}:{operation}: has no time series (expected a job with read, write or trim)", option="name")
        for label, points in lines.items():
            begins = sorted(points)
            ax.plot(begins, [sum(points[begin]) / len(points[begin]) for begin in begins], label=label)
        ax.set_xlabel("virtual time, s")
        ax.set_ylabel("mean latency, ms" if figure == "mean" else "I/Os per second")
        ax.set_title(f"{job}, {operation}")
        ax.legend()
        return ax

    def pareto(self, y: str | None = None, x: str | None = None, *, ax: Axes | None = None) -> Axes:
        """One figure against another, with a point for each scheduler; a line joins those that no other scheduler dominates.

        `y` and `x` are latencies or rates; by default `x` is the I/Os per second of all jobs together.
        """
        y_name = self._focus(y)
        ys = self._figure(y_name)
        xs = self._all_iops() if x is None else self._figure(split(x))
        points = [(label, xs[label], ys[label]) for label in ys if label in xs]
        ax = axes(ax)
        is_less_better = is_latency(y_name[2]), x is not None and is_latency(split(x)[2])
        draw_front(ax, points, is_less_better)
        for label, at_x, at_y in points:
            ax.scatter([at_x], [at_y], zorder=2)
            annotate(ax, label, at_x, at_y)
        ax.set_xlabel(axis(split(x)) if x is not None else "I/Os per second, all jobs")
        ax.set_ylabel(axis(y_name))
        return ax

    def _focus(self, name: str | None) -> tuple[str, str, str]:
        if name is not None:
            # A picture of all figures of an operation needs no name of a figure.
            return split(name if name.count(":") >= 2 else f"{name}:mean")
        focus = focus_of(self._document)
        if focus is None:
            raise Error("the results have no ranking figure (expected the name of a figure)", option="name")
        return focus

    def _of(self, job: str, operation: str) -> list[Row]:
        chosen = [row for row in self._rows if (row.job, row.operation) == (job, operation)]
        if not chosen:
            known = ", ".join(dict.fromkeys(f"{row.job}:{row.operation}" for row in self._rows))
            raise Error(f"{job}:{operation}: not measured (expected one of {known})", option="name")
        return chosen

    def _figure(self, name: tuple[str, str, str]) -> dict[str, float]:
        job, operation, figure = name
        scale = 1e6 if is_latency(figure) else 1
        return {row.label: row.figures[figure].mean / scale for row in self._of(job, operation) if figure in row.figures}

    def _all_iops(self) -> dict[str, float]:
        sums: dict[str, float] = {}
        for row in self._rows:
            if row.operation != "sync":
                sums[row.label] = sums.get(row.label, 0) + row.figures["iops"].mean
        return sums
