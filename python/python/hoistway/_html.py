"""Results as HTML for notebooks: the conclusion, a picture of the figure in focus, and the tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any, NamedTuple

from ._document import Row, focus_of, label_of, rows, split
from ._hoistway import shown

_FIGURES = ("iops", "bandwidth", "mean", "p99", "max")
_STYLE = "text-align: right; padding: 0.1em 0.7em; border: none;"


ROWS_MAX = 12
"""The maximum number of settings, and of tunables, shown."""

SHARE_MIN = 0.01
"""Tunables that explain less than this share of the variance are left out."""


class Bar(NamedTuple):
    """A figure with half the width of its confidence interval."""

    label: str
    mean: float
    half_width: float
    best: bool


def page(document: dict[str, Any]) -> str:
    """The document as HTML."""
    return "\n".join(_parts(document))


def _parts(document: dict[str, Any]) -> Iterator[str]:
    yield '<div class="hoistway">'
    yield from _head(document)
    of_document = rows(document)
    focus = focus_of(document)
    in_focus = [row for row in of_document if focus and (row.job, row.operation) == focus[:2]]
    if focus and in_focus:
        figure = focus[2]
        known = [(row.label, row.figures[figure]) for row in in_focus if figure in row.figures]
        bars = [Bar(label, value.mean, value.half_width or 0, value.best) for label, value in known]
        yield _picture(bars, figure, f"{focus[0]}: {figure} of {focus[1]}")
    for job in dict.fromkeys(row.job for row in of_document):
        yield _table(job, [row for row in of_document if row.job == job])
    yield from _foot(document)


def tuning_page(document: dict[str, Any], names: Sequence[str]) -> str:
    """The document of a search as HTML. `names` are the figures of its objective."""
    return "\n".join(_parts_of_search(document, names))


def _parts_of_search(document: dict[str, Any], names: Sequence[str]) -> Iterator[str]:
    yield '<div class="hoistway">'
    yield from _head(document)
    last = document["rounds"][-1]["settings"][:ROWS_MAX]
    labels = [label_of(one["setting"]) for one in last]
    job, operation, figure = split(names[0])
    values = [one["figures"].get(names[0]) for one in last]
    bars = [
        Bar(label, value["mean"], value["half_width"] or 0, place == 0)
        for place, (label, value) in enumerate(zip(labels, values, strict=True))
        if value is not None
    ]
    yield _picture(bars, figure, f"{job}: {figure} of {operation}, the last round")
    head = ["setting", *names, *(["conditions"] if last[0]["margins"] else [])]
    lines = []
    for label, one in zip(labels, last, strict=True):
        found = [one["figures"].get(name) for name in names]
        cells = [_estimate(split(name)[2], value) for name, value in zip(names, found, strict=True)]
        lines.append([escape(label), *cells, *(["kept" if one["holds"] else "missed"] if one["margins"] else [])])
    yield _lines("the last round, best first", head, lines)
    effects = [effect for effect in document["effects"] if effect["share"] >= SHARE_MIN][:ROWS_MAX]
    if effects:
        head = ["tunable", "of the variance", "best", "worst", "between them"]
        mattered = [
            [
                escape(".".join([effect["scheduler"]] * bool(effect["scheduler"]) + [effect["knob"]])),
                f"{100 * effect['share']:.0f} %",
                escape(effect["best"]),
                escape(effect["worst"]),
                f"{effect['factor']:.3g} times",
            ]
            for effect in effects
        ]
        yield _lines("what mattered", head, mattered)
    yield from _foot(document)


def _head(document: dict[str, Any]) -> Iterator[str]:
    place = document["device"]
    device = place.get("name", "") if isinstance(place, dict) else ", ".join(one.get("name", "") for one in place)
    yield f"<p><b>{escape(document['job_file'])}</b> on {escape(device)}, Linux {escape(document['kernel'])}</p>"
    for sentence in document["conclusion"]:
        yield f"<p>{escape(sentence)}</p>"


def _foot(document: dict[str, Any]) -> Iterator[str]:
    if document["notices"]:
        notices = "".join(f"<li>{escape(notice)}</li>" for notice in document["notices"])
        yield f"<details><summary>Notices</summary><ul>{notices}</ul></details>"
    yield "</div>"


def _lines(caption: str, head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A table of cells in HTML."""

    def cells(kind: str, texts: Sequence[str]) -> str:
        return "".join(f'<{kind} style="{_STYLE}">{text}</{kind}>' for text in texts)

    body = "".join(f"<tr>{cells('td', line)}</tr>" for line in lines)
    return f"<table><caption>{escape(caption)}</caption><tr>{cells('th', [escape(one) for one in head])}</tr>{body}</table>"


def _estimate(figure: str, value: dict[str, Any] | None) -> str:
    if value is None:
        return "-"
    text = escape(shown(figure, value["mean"]))
    if value["half_width"] is not None and value["mean"]:
        text += f" <small>&plusmn;{100 * value['half_width'] / abs(value['mean']):.1f} %</small>"
    return text


def _table(job: str, of_job: Sequence[Row]) -> str:
    def value(row: Row, figure: str) -> str:
        estimate = row.figures.get(figure)
        if estimate is None:
            return "-"
        text = _estimate(figure, {"mean": estimate.mean, "half_width": estimate.half_width})
        return f"<b>{text}</b>" if estimate.best else text

    head = ["scheduler", "", "IOPS", *_FIGURES[1:]]
    lines = [[escape(row.label), row.operation, *(value(row, figure) for figure in _FIGURES)] for row in of_job]
    return _lines(job, head, lines)


def _picture(bars: Sequence[Bar], figure: str, title: str) -> str:
    """A bar for each scheduler or setting, with the confidence interval of its mean."""
    largest = max((bar.mean + bar.half_width for bar in bars), default=0) or 1
    left, width, line = _left(bars), 330, 22
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 110}" height="{line * (len(bars) + 1) + 6}" '
        f'font-family="sans-serif" font-size="12" role="img"><title>{escape(title)}</title>'
        f'<text x="0" y="14" fill="currentColor">{escape(title)}</text>'
    ]
    for number, bar in enumerate(bars, start=1):
        top, end = number * line, left + width * bar.mean / largest
        colour = "#2a7f3f" if bar.best else "#7a8aa0"
        parts.append(f'<text x="{left - 8}" y="{top + 14}" text-anchor="end" fill="currentColor">{escape(bar.label)}</text>')
        parts.append(f'<rect x="{left}" y="{top + 3}" width="{end - left:.1f}" height="{line - 8}" fill="{colour}"/>')
        half = width * bar.half_width / largest
        if half:
            parts.append(
                f'<line x1="{end - half:.1f}" x2="{end + half:.1f}" y1="{top + 10}" y2="{top + 10}" stroke="currentColor"/>'
            )
        value = escape(shown(figure, bar.mean))
        parts.append(f'<text x="{end + half + 8:.1f}" y="{top + 14}" fill="currentColor">{value}</text>')
    return "".join([*parts, "</svg>"])


def _left(bars: Sequence[Bar]) -> int:
    """The horizontal position at which bars start: after the longest name."""
    return max(190, 7 * max((len(bar.label) for bar in bars), default=0))
