"""Pictures, and the output in notebooks."""

import sys
import xml.etree.ElementTree
from html.parser import HTMLParser
from typing import Any

import matplotlib

matplotlib.use("Agg")

import pytest
from matplotlib import pyplot

import hoistway
from hoistway import Comparison


@pytest.fixture(autouse=True)
def closed() -> Any:
    yield
    pyplot.close("all")


def test_latencies_are_drawn_for_each_scheduler_in_ms(comparison: Comparison) -> None:
    ax = comparison.plot.latency()
    assert [label.get_text() for label in ax.get_xticklabels()] == ["none", "mq-deadline"]
    assert ax.get_title() == "quiet, read" and ax.get_ylabel() == "latency, ms"
    heights = {container.get_label(): container[0].get_ydata() for container in ax.containers}
    assert heights["p99"][0] == pytest.approx(comparison.figure("quiet:read:p99")["none"].mean / 1e6)
    assert list(heights) == ["p50", "mean", "p99", "p99.9", "max"]
    ax.figure.canvas.draw()


def test_a_timeline_has_a_line_for_each_scheduler(comparison: Comparison) -> None:
    ax = comparison.plot.timeline("flood:read", figure="iops")
    lines = {line.get_label(): line for line in ax.get_lines()}
    assert set(lines) == {"none", "mq-deadline"}
    mean = sum(lines["none"].get_ydata()) / len(lines["none"].get_ydata())
    assert mean == pytest.approx(comparison.figure("flood:read:iops")["none"].mean, rel=0.2)
    assert comparison.plot.timeline().get_ylabel() == "mean latency, ms"


def test_the_pareto_front_joins_those_that_no_other_beats(comparison: Comparison) -> None:
    ax = comparison.plot.pareto()
    assert sorted(text.get_text() for text in ax.texts) == ["mq-deadline", "none"]
    (front,) = ax.get_lines()
    points = {text.get_text(): text.xy for text in ax.texts}
    at_x, at_y = points["none"]
    other_x, other_y = points["mq-deadline"]
    none_is_beaten = other_x >= at_x and other_y <= at_y
    assert (points["none"] in zip(front.get_xdata(), front.get_ydata(), strict=True)) != none_is_beaten
    given = pyplot.subplots()[1]
    assert comparison.plot.pareto("flood:read:p99", "quiet:read:max", ax=given) is given
    assert given.get_xlabel() == "quiet, read: max, ms" and given.get_ylabel() == "flood, read: p99, ms"


def test_a_plot_of_a_missing_figure_is_refused(comparison: Comparison) -> None:
    for draw in (
        lambda: comparison.plot.latency("nobody:read:p99"),
        lambda: comparison.plot.latency("quiet:write:p99"),
        lambda: comparison.plot.timeline("quiet:sync"),
        lambda: comparison.plot.timeline(figure="p99"),
        lambda: comparison.plot.pareto("quiet:read:speed"),
    ):
        with pytest.raises(hoistway.Error) as raised:
            draw()
        assert raised.value.option in ("name", "figure")


def test_without_matplotlib_pictures_say_what_to_install(comparison: Comparison, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'hoistway\[plot\]'"):
        comparison.plot.latency()


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)
        self.seen.add(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def tags(page: str) -> set[str]:
    parser = Tags()
    parser.feed(page)
    assert parser.open == [], "all tags are closed"
    return parser.seen


def test_notebooks_show_verdict_table_and_picture(comparison: Comparison) -> None:
    page = comparison._repr_html_()
    assert {"table", "svg", "rect"} <= tags(page)
    assert comparison.conclusion[0].split(":")[0] in page
    assert page.count("<caption>") == 2 and "mq-deadline" in page
    svg = page[page.index("<svg") : page.index("</svg>") + 6]
    root = xml.etree.ElementTree.fromstring(svg)
    bars = [float(bar.attrib["width"]) for bar in root.iter("{http://www.w3.org/2000/svg}rect")]
    means = [estimate.mean for estimate in comparison.figure("quiet:read:p99").values()]
    assert bars[0] / bars[1] == pytest.approx(means[0] / means[1], rel=0.01)


def test_names_that_are_html_are_shown_and_not_obeyed() -> None:
    job = "[<script>alert(1)</script>&\"']\nfilename=/dev/sda\ndirect=1\nruntime=20ms\ntime_based\nrw=randread\n"
    page = hoistway.compare(job, device=hoistway.device("null") | {"name": "<b>disk</b>"}, repeats=2)._repr_html_()
    assert "<script>" not in page and "&lt;script&gt;" in page and "<b>disk" not in page
    assert "script" not in tags(page)


def test_a_document_without_figures_is_shown_all_the_same() -> None:
    job = "[a]\nfilename=/dev/sda\ndirect=1\nstartdelay=10\nruntime=1\ntime_based\n"
    nothing = hoistway.compare(job + "[b]\nfilename=/dev/sda\ndirect=1\nsize=4k\n", device="null", schedulers=["none"], repeats=1)
    assert "table" in tags(nothing._repr_html_())
