"""Results as a piece of a page, for notebooks: what to do, a picture of what decides it, and the tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

from ._document import Row, focus_of, rows
from ._hoistway import shown

_FIGURES = ("iops", "bandwidth", "mean", "p99", "max")
_STYLE = "text-align: right; padding: 0.1em 0.7em; border: none;"


def page(document: dict[str, Any]) -> str:
    """The document for people."""
    return "\n".join(_parts(document))


def _parts(document: dict[str, Any]) -> Iterator[str]:
    yield '<div class="hoistway">'
    place = document["device"]
    device = place.get("name", "") if isinstance(place, dict) else ", ".join(one.get("name", "") for one in place)
    yield f"<p><b>{escape(document['job_file'])}</b> on {escape(device)}, Linux {escape(document['kernel'])}</p>"
    for sentence in document["conclusion"]:
        yield f"<p>{escape(sentence)}</p>"
    of_document = rows(document)
    focus = focus_of(document)
    in_focus = [row for row in of_document if focus and (row.job, row.operation) == focus[:2]]
    if focus and in_focus:
        yield _picture(in_focus, focus[2], f"{focus[0]}: {focus[2]} of {focus[1]}")
    for job in dict.fromkeys(row.job for row in of_document):
        yield _table(job, [row for row in of_document if row.job == job])
    if document["notices"]:
        notices = "".join(f"<li>{escape(notice)}</li>" for notice in document["notices"])
        yield f"<details><summary>Notices</summary><ul>{notices}</ul></details>"
    yield "</div>"


def _table(job: str, of_job: Sequence[Row]) -> str:
    def cells(kind: str, texts: Sequence[str]) -> str:
        return "".join(f'<{kind} style="{_STYLE}">{text}</{kind}>' for text in texts)

    def value(row: Row, figure: str) -> str:
        estimate = row.figures.get(figure)
        if estimate is None:
            return "-"
        text = escape(shown(figure, estimate.mean))
        if estimate.half_width is not None and estimate.mean:
            text += f" <small>&plusmn;{100 * estimate.half_width / abs(estimate.mean):.1f} %</small>"
        return f"<b>{text}</b>" if estimate.best else text

    head = cells("th", ["scheduler", "", *(("IOPS", *_FIGURES[1:]))])
    lines = (
        f"<tr>{cells('td', [escape(row.label), row.operation, *(value(row, figure) for figure in _FIGURES)])}</tr>"
        for row in of_job
    )
    return f"<table><caption>{escape(job)}</caption><tr>{head}</tr>{''.join(lines)}</table>"


def _picture(in_focus: Sequence[Row], figure: str, title: str) -> str:
    """A bar for each scheduler, with the interval of its mean."""
    known = [(row, row.figures[figure]) for row in in_focus if figure in row.figures]
    largest = max((estimate.mean + (estimate.half_width or 0) for _, estimate in known), default=0) or 1
    left, width, line = 190, 330, 22
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 110}" height="{line * (len(known) + 1) + 6}" '
        f'font-family="sans-serif" font-size="12" role="img"><title>{escape(title)}</title>'
        f'<text x="0" y="14" fill="currentColor">{escape(title)}</text>'
    ]
    for number, (row, estimate) in enumerate(known, start=1):
        top, end = number * line, left + width * estimate.mean / largest
        colour = "#2a7f3f" if estimate.best else "#7a8aa0"
        parts.append(f'<text x="{left - 8}" y="{top + 14}" text-anchor="end" fill="currentColor">{escape(row.label)}</text>')
        parts.append(f'<rect x="{left}" y="{top + 3}" width="{end - left:.1f}" height="{line - 8}" fill="{colour}"/>')
        half = width * (estimate.half_width or 0) / largest
        if half:
            parts.append(
                f'<line x1="{end - half:.1f}" x2="{end + half:.1f}" y1="{top + 10}" y2="{top + 10}" stroke="currentColor"/>'
            )
        value = escape(shown(figure, estimate.mean))
        parts.append(f'<text x="{end + half + 8:.1f}" y="{top + 14}" fill="currentColor">{value}</text>')
    return "".join([*parts, "</svg>"])
