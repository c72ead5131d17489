"""Tables, as other libraries read them, have the values of the document."""

import json
import pathlib

import duckdb
import pandas
import polars
import pyarrow
import pytest

import hoistway
from hoistway import Comparison, Table, trace

KEYS = ["scheduler", "label", "block_layer", "kernel", "device", "host", "settings", "seed", "repeat", "job", "operation"]


def dictionaries(table: Table) -> list[dict[str, object]]:
    return list(pyarrow.table(table).to_pylist())


def test_there_is_a_row_for_each_figure_of_each_run(comparison: Comparison) -> None:
    rows = dictionaries(comparison.figures())
    # Two schedulers, three repeats, and two jobs, each with seven figures of reads.
    assert len(rows) == len(comparison.figures()) == 2 * 3 * 2 * 7
    assert list(rows[0]) == [*KEYS, "figure", "unit", "value", "ios", "failed_processes"] == comparison.figures().column_names
    for run in comparison.document["runs"]:
        for job in run["jobs"]:
            (reads,) = job["operations"]
            mine = {
                row["figure"]: row
                for row in rows
                if (row["label"], row["repeat"], row["job"]) == (run["scheduler"], run["repeat"], job["name"])
            }
            expected = {
                "iops": ("1/s", reads["iops"]),
                "bandwidth": ("B/s", reads["bytes_per_second"]),
                "mean": ("ns", reads["lat_ns"]["mean"]),
                "p50": ("ns", reads["lat_ns"]["p50"]),
                "p99": ("ns", reads["lat_ns"]["p99"]),
                "p99.9": ("ns", reads["lat_ns"]["p99_9"]),
                "max": ("ns", reads["lat_ns"]["max"]),
            }
            assert {name: (row["unit"], row["value"]) for name, row in mine.items()} == expected
            assert {(row["seed"], row["ios"], row["device"], row["kernel"]) for row in mine.values()} == {
                (run["seed"], reads["ios"], "intel-s3520-1600gb", comparison.document["kernel"])
            }


def test_there_is_a_row_for_each_interval_of_each_run(comparison: Comparison) -> None:
    rows = dictionaries(comparison.intervals())
    run = comparison.document["runs"][1]
    series = run["jobs"][0]["operations"][0]["series"]
    mine = [row for row in rows if (row["scheduler"], row["repeat"], row["job"]) == ("mq-deadline", 0, "quiet")]
    assert [row["ios"] for row in mine] == series["ios"] and sum(series["ios"]) > 0
    assert [row["mean_lat_ns"] or 0 for row in mine] == series["mean_lat_ns"]
    assert [row["start_seconds"] for row in mine] == [n * series["interval_seconds"] for n in range(len(mine))]
    assert {row["length_seconds"] for row in mine} == {series["interval_seconds"]}


def test_there_is_a_row_for_each_io_if_they_were_logged(comparison: Comparison) -> None:
    ios = polars.DataFrame(comparison.ios())
    measured = sum(run["simulated_ios"] for run in comparison.document["runs"])
    assert 0.9 * measured < len(ios) <= measured
    quiet = ios.filter((polars.col("scheduler") == "none") & (polars.col("repeat") == 1) & (polars.col("job") == "quiet"))
    reads = comparison.document["runs"][2]["jobs"][0]["operations"][0]
    assert len(quiet) == reads["ios"]
    assert quiet["lat_ns"].mean() == pytest.approx(reads["lat_ns"]["mean"])
    assert (quiet["lat_ns"].max(), quiet["lat_ns"].min()) == (reads["lat_ns"]["max"], reads["lat_ns"]["min"])
    assert (ios["lat_ns"] == ios["clat_ns"] + ios["slat_ns"]).all()
    assert set(ios["bytes"]) == {4096} and set(ios["process"]) == {0, 1} and ios["offset_bytes"].null_count() == len(ios)
    assert list(quiet["end_ms"]) == sorted(quiet["end_ms"]) and int(quiet["end_ms"].max()) <= 110  # type: ignore[arg-type]


def test_offsets_are_there_if_the_job_file_asks_for_them(job: str) -> None:
    logged = hoistway.compare(
        job.replace("[quiet]", "log_offset=1\n[quiet]"), device="null", schedulers=["none"], repeats=1, logs=True
    )
    assert {offset % 4096 for offset in polars.DataFrame(logged.ios())["offset_bytes"]} == {0}


def test_pyarrow_polars_pandas_and_duckdb_read_the_same_values(comparison: Comparison) -> None:
    rows = comparison.figures()
    values = [row["value"] for row in dictionaries(rows)]
    labels = [row["label"] for row in dictionaries(rows)]
    assert polars.DataFrame(rows)["value"].to_list() == values
    assert polars.DataFrame(rows)["label"].cast(polars.String).to_list() == labels
    frame = pandas.DataFrame.from_arrow(rows) if hasattr(pandas.DataFrame, "from_arrow") else pyarrow.table(rows).to_pandas()
    assert (frame["value"].tolist(), frame["label"].tolist()) == (values, labels)
    found = duckdb.sql("select label, value from rows").fetchall()
    assert found == list(zip(labels, values, strict=True))
    (best,) = duckdb.sql("select min(value) from rows where figure = 'p99' and job = 'quiet'").fetchall()
    assert best[0] == min(row["value"] for row in dictionaries(rows) if (row["figure"], row["job"]) == ("p99", "quiet"))


def test_a_table_is_read_without_copying_and_repeatedly(comparison: Comparison) -> None:
    table = comparison.figures()
    first, second = pyarrow.table(table), pyarrow.table(table)
    del table
    addresses = {one.column("value").chunk(0).buffers()[1].address for one in (first, second)}
    assert len(addresses) == 1, "both look at the same memory"
    assert first.schema == pyarrow.schema(comparison.figures())


def test_a_trace_has_every_event_and_why_each_request_was_chosen(job: str) -> None:
    table = trace(job, device="intel-s3520-1600gb", schedulers=["none", "mq-deadline"], runtime=0.02)
    events = polars.DataFrame(table)
    assert set(events["scheduler"].cast(polars.String)) == {"none", "mq-deadline"}
    # Each issued request completes.
    counts = {name: count for name, count in events.group_by("event").len().rows()}
    assert counts["block_rq_issue"] == counts["block_rq_complete"] > 100
    chosen = events.filter(polars.col("event") == "dispatch")
    assert set(chosen["scheduler"].cast(polars.String)) == {"mq-deadline"}, "none is never asked"
    assert chosen["reason"].null_count() == 0 and chosen["why"].null_count() == 0
    of_run = events.filter(polars.col("run") == 0)["time_ns"]
    assert of_run.is_sorted() and of_run.max() < 25_000_000  # type: ignore[operator]
    assert set(events["job"].drop_nulls().cast(polars.String)) == {"quiet", "flood"}


def test_a_trace_matches_the_untraced_run(job: str) -> None:
    arguments = {"device": "intel-s3520-1600gb", "schedulers": ["bfq"], "runtime": 0.05}
    events = polars.DataFrame(trace(job, **arguments))
    run = hoistway.compare(job, repeats=1, **arguments).document["runs"][0]  # type: ignore[arg-type]
    ends = events.filter(polars.col("event") == "block_rq_complete")
    assert len(ends) == run["disks"][0]["read_ios"] == run["simulated_ios"]


def test_a_trace_of_a_scheduler_in_python_says_that_it_chose(job: str) -> None:
    class First(hoistway.Scheduler):
        def __init__(self) -> None:
            self.queue: list[hoistway.Request] = []

        def insert(self, request: hoistway.Request) -> None:
            self.queue.append(request)

        def dispatch(self, now_ns: int) -> hoistway.Request | None:
            return self.queue.pop(0) if self.queue else None

    events = polars.DataFrame(trace(job, device="null", schedulers=[First], runtime=0.01))
    whys = set(events.filter(polars.col("event") == "dispatch")["why"].cast(polars.String))
    assert "the scheduler chose it, for a reason of its own" in whys


def test_a_loaded_document_has_the_same_tables(comparison: Comparison, tmp_path: pathlib.Path) -> None:
    comparison.save(tmp_path / "a.json", stable=True)
    again = hoistway.load(tmp_path / "a.json")
    assert dictionaries(again.figures()) == dictionaries(comparison.figures())
    assert json.loads(again.json(stable=True)) == again.document
