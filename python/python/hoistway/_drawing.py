"""Common parts of pictures."""

from __future__ import annotations

from typing import Any

Point = tuple[str, float, float]
"""A name and its position (x, y)."""


def is_latency(figure: str) -> bool:
    """Whether smaller values of a figure are better."""
    return figure not in ("iops", "bandwidth")


def _is_better(one: tuple[str, float, float], other: tuple[str, float, float], is_less_better: tuple[bool, bool]) -> bool:
    """Whether one point dominates another: nowhere worse, and somewhere better."""
    y, x = (-1 if less else 1 for less in is_less_better)
    gains = (x * (one[1] - other[1]), y * (one[2] - other[2]))
    return min(gains) >= 0 and max(gains) > 0


def axis(name: tuple[str, str, str]) -> str:
    """The label of an axis."""
    job, operation, figure = name
    unit = "ms" if is_latency(figure) else "I/Os per second" if figure == "iops" else "bytes per second"
    return f"{job}, {operation}: {figure}, {unit}"


def axes(ax: Any) -> Any:
    """The given axes, or new ones."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError("pictures need matplotlib (pip install 'hoistway[plot]')") from error
    return pyplot.subplots(layout="constrained")[1]


def draw_front(ax: Any, points: list[Point], is_less_better: tuple[bool, bool]) -> None:
    """Draws a line through the points that no other point dominates."""
    front = [point for point in points if not any(_is_better(other, point, is_less_better) for other in points)]
    front.sort(key=lambda point: point[1])
    ax.plot([point[1] for point in front], [point[2] for point in front], color="grey", zorder=1)


def annotate(ax: Any, label: str, x: float, y: float) -> None:
    """Writes a name next to a point."""
    ax.annotate(label, (x, y), xytext=(5, 5), textcoords="offset points")
