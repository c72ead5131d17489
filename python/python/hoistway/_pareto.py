"""Pictures of a search, drawn by matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._document import label_of, split
from ._drawing import annotate, axes, axis, draw_front, is_latency
from ._errors import Error

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAMED_MAX = 12
"""The maximum number of settings of the front that are named, as more names would overlap."""


class SearchPlots:
    """Each method draws into `ax`, or into new axes, and returns them.

    Raises:
        ImportError: matplotlib is not installed.
        Error: The objective does not name such a figure.
    """

    def __init__(self, document: dict[str, Any], names: list[str]) -> None:
        self._document = document
        self._names = names

    def pareto(self, y: str | None = None, x: str | None = None, *, ax: Axes | None = None) -> Axes:
        """Two figures of the objective against each other, with a point for each setting of the first round, which has the most. A line joins those
        that no other setting dominates; the setting found is a star.

        `y` defaults to the objective's figure, and `x` to the first other one in its conditions.
        """
        standings = self._document["rounds"][0]["settings"]
        y = self._chosen("y", y, self._names[0])
        x = self._chosen("x", x, next((name for name in self._names if name != y), None))
        y_name, x_name = split(y), split(x)
        of_y, of_x = (1e6 if is_latency(name[2]) else 1 for name in (y_name, x_name))
        points = [
            (label_of(one["setting"]), one["figures"][x]["mean"] / of_x, one["figures"][y]["mean"] / of_y)
            for one in standings
            if x in one["figures"] and y in one["figures"]
        ]
        ax = axes(ax)
        is_less_better = is_latency(y_name[2]), is_latency(x_name[2])
        draw_front(ax, points, is_less_better)
        for scheduler in dict.fromkeys(label.split()[0] for label, _, _ in points):
            of_scheduler = [point for point in points if point[0].split()[0] == scheduler]
            ax.scatter([point[1] for point in of_scheduler], [point[2] for point in of_scheduler], s=18, label=scheduler, zorder=2)
        best = label_of(self._document["found"]["best"]["setting"])
        front = {label_of(one["setting"]) for one in self._document["front"]}
        named = 0
        for label, at_x, at_y in points:
            if label == best:
                ax.scatter([at_x], [at_y], marker="*", s=160, color="black", zorder=3)
            if label == best or (label in front and named < NAMED_MAX):
                annotate(ax, label, at_x, at_y)
                named += 1
        ax.set_xlabel(axis(x_name))
        ax.set_ylabel(axis(y_name))
        ax.legend()
        return ax

    def _chosen(self, argument: str, wanted: str | None, otherwise: str | None) -> str:
        if wanted is None and otherwise is None:
            expected = "expected an objective with conditions, or its figures as y and x"
            raise Error(f"{argument}: the objective names only one figure ({expected})", option=argument)
        chosen = otherwise if wanted is None else wanted
        if chosen is None or chosen not in self._names:
            known = ", ".join(self._names)
            raise Error(f"{argument} {chosen}: not a figure of the objective (expected one of {known})", option=argument)
        return chosen
