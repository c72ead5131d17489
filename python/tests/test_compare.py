"""Comparisons: what runs is what was requested."""

import concurrent.futures
import json
import multiprocessing
import pathlib
import subprocess
import sys

import pytest

import hoistway


def test_a_comparison_has_the_requested_runs(comparison: hoistway.Comparison) -> None:
    runs = comparison.document["runs"]
    assert [(run["scheduler"], run["repeat"]) for run in runs[:3]] == [("none", 0), ("mq-deadline", 0), ("none", 1)]
    assert len(runs) == 6
    assert comparison.document["focuses"][0]["figure"] == "quiet:read:p99"
    assert comparison.conclusion[0].startswith("For this load on intel-s3520-1600gb:")
    assert "quiet" in str(comparison) and "none, mq-deadline; 6 runs" in repr(comparison)


def test_the_same_arguments_give_the_same_bytes_with_any_number_of_threads(job: str) -> None:
    texts = {
        hoistway.compare(job, device="null", schedulers=["none", "bfq"], repeats=2, threads=threads).json(stable=True)
        for threads in (1, 2, 7)
    }
    assert len(texts) == 1
    other = hoistway.compare(job, device="intel-s3520-1600gb", schedulers=["none"], seed=2).document
    assert other["seed"] == 2 and len(set(other["seeds"])) == 5


def test_a_figure_is_the_mean_of_the_runs_in_the_document(comparison: hoistway.Comparison) -> None:
    figures = comparison.figure("quiet:read:p99")
    rows = {
        row["scheduler"]: row["figures"]["lat_p99_ns"]
        for row in comparison.document["statistics"]["rows"]
        if row["job"] == "quiet"
    }
    assert set(figures) == {"none", "mq-deadline"}
    for label, estimate in figures.items():
        runs = [run for run in comparison.document["runs"] if run["scheduler"] == label]
        quiet = [job for run in runs for job in run["jobs"] if job["name"] == "quiet"]
        assert estimate.mean == pytest.approx(sum(job["operations"][0]["lat_ns"]["p99"] for job in quiet) / 3)
        assert estimate.half_width == rows[label]["half_width"]


def test_every_argument_reaches_the_simulation(job: str) -> None:
    document = hoistway.compare(
        job.replace("[quiet]", "[quiet]\ncgroup=g").replace("filename=/dev/sda", "filename=/dev/sda:/dev/sdb"),
        files={"/dev/sda": "null"},
        device="intel-s3520-1600gb",
        schedulers=["bfq", "mq-deadline", "none"],
        kernels=["6.12"],
        hosts=["desktop"],
        cpus=3,
        set={"mq-deadline.fifo_batch": 1},
        queue={"nr_requests": 32},
        hw_queues=1,
        at=[(0.01, "bfq.slice_idle", 0)],
        io_max={"g": "riops=100"},
        io_prio_class={"g": "idle"},
        runtime=0.3,
        ramp=0.2,
        repeats=2,
        baseline="bfq",
        smallest_effect=0.1,
    ).document
    assert [device["name"] for device in document["device"]] == ["null", "intel-s3520-1600gb"]
    assert document["kernel"] == "6.12" and document["host"]["name"] == "desktop" and document["cpus"] == 3
    assert document["nr_requests"] == 32 and document["baseline"] == "bfq" and document["smallest_effect"] == 0.1
    assert [run["tunables"] for run in document["runs"][:2]] == [{}, {"fifo_batch": 1}]
    assert document["runs"][0]["simulated_seconds"] == pytest.approx(0.5, abs=0.2)
    quiet = document["runs"][0]["jobs"][0]
    assert quiet["operations"][0]["iops"] < 600, "io.max holds it back"
    assert any("io.prio.class" in notice or "io_prio_class" in notice for notice in document["notices"])


def test_contention_options_are_used_and_reported(job: str) -> None:
    batches = "iodepth=4\niodepth_batch_submit=4\niodepth_batch_complete=4\nnumjobs=8"
    flood = job.replace("iodepth=64", batches).replace("100ms", "20ms")

    def flooded(techniques: list[str]) -> tuple[float, str]:
        result = hoistway.compare(flood, device="null", schedulers=["mq-deadline"], techniques=techniques, repeats=1)
        return result.figure("flood:read:iops")["mq-deadline"].mean, " ".join(result.document["notices"])

    (plain, told), (with_all, told_of_all), (merging, told_of_one) = map(flooded, ([], ["all"], ["try-merge", "batch-dispatch"]))
    assert with_all > 1.1 * plain and merging > 1.1 * plain
    assert "Techniques" not in told and "(all)" in told_of_all and "(try-merge,batch-dispatch)" in told_of_one


def test_several_places_are_compared_and_named(job: str) -> None:
    document = hoistway.compare(
        job, devices=["null", "intel-s3520-1600gb"], kernels=["6.12", "4.19"], schedulers=["none"], repeats=1
    )
    labels = [run["variant"]["label"] for run in document.document["runs"]]
    assert len(labels) == 4 and "none device=null kernel=4.19" in labels


def test_settings_that_vary_are_compared_with_each_other(job: str) -> None:
    document = hoistway.compare(
        job,
        device="null",
        schedulers=["none", "mq-deadline"],
        vary={"mq-deadline.fifo_batch": [1, 16], "queue.nr_requests": [32, "64"]},
        repeats=1,
    ).document
    settings = [(run["scheduler"], run["variant"]["settings"]) for run in document["runs"]]
    # Two of none, four of mq-deadline, and the kernel's default unchanged, for comparison.
    assert len(settings) == 7 and ("none", {"nr_requests": 32}) in settings and ("mq-deadline", {}) in settings
    assert ("mq-deadline", {"fifo_batch": 16, "nr_requests": 64}) in settings


def test_a_report_is_a_page_with_a_timeline_if_there_are_excerpts(job: str, tmp_path: pathlib.Path) -> None:
    recorded = hoistway.compare(job, device="null", schedulers=["none", "bfq"], repeats=2, runtime=0.02, excerpts=True)
    assert recorded.document["runs"][0]["excerpt"]
    recorded.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert page.lower().startswith("<!doctype html>") and recorded.conclusion[0][:30] in page
    with pytest.raises(OSError):
        recorded.report(tmp_path / "none" / "page.html")


def test_guests_run_over_hosts(job: str) -> None:
    document = hoistway.compare(
        job, device="null", guest_schedulers=["none"], schedulers=["bfq"], guest_weights={"/dev/sda": 200}, repeats=1
    ).document
    assert [run["scheduler"] for run in document["runs"]] == ["none-over-bfq"]
    assert document["guests"]["weights"] == {"/dev/sda": 200}


def test_devices_and_hosts_are_names_dictionaries_texts_or_files(job: str, tmp_path: pathlib.Path) -> None:
    preset = hoistway.device("intel-s3520-1600gb")
    preset["name"] = "mine"
    preset["shape"]["queue_depth"] = 7
    described = hoistway.compare(job, device=preset, schedulers=["none"], repeats=1).document["device"]
    assert described["name"] == "mine" and described["shape"]["queue_depth"] == 7
    host = hoistway.host("server") | {"name": "my-host"}
    file = tmp_path / "host.toml"
    file.write_text(
        "name = 'of-file'\ndescription = 'a host'\nsubmit_ns = 1\ncomplete_ns = 1\nwake_ns = [0, 0]\nworker_ns = [0, 0]\n"
    )
    document = hoistway.compare(
        job,
        device="null",
        hosts=[host, file, file.read_text().replace("of-file", "of-text")],
        schedulers=["none"],
        runtime=0.01,
        repeats=1,
    ).document
    assert [setup["host"]["name"] for setup in document["setups"]] == ["my-host", "of-file", "of-text"]


def test_jobs_are_paths_texts_bundled_loads_or_objects(job: str, tmp_path: pathlib.Path) -> None:
    file = tmp_path / "my.fio"
    file.write_text(job)
    names = [
        hoistway.compare(load, device="null", schedulers=["none"], repeats=1, runtime=0.01).document["job_file"]
        for load in (None, job, file, str(file), "database", hoistway.Job(name="a", rw="randwrite"))
    ]
    assert names == ["example.fio (bundled)", "(text)", str(file), str(file), "database.fio (bundled)", "(load)"]


def test_a_load_matches_its_jobs() -> None:
    load = hoistway.Load(
        [
            hoistway.Job(name="w", rw="randwrite", bs="64k", size="1g", iodepth=4, numjobs=2, rate="8m", fsync=8, runtime=0.2),
            hoistway.Job(
                name="r", rw="randread", prioclass=3, prio=0, thinktime_us=500, thinktime_blocks=2, startdelay=0.05, runtime=0.1
            ),
        ]
    )
    document = hoistway.compare(load, device="intel-s3520-1600gb", schedulers=["none"], repeats=1).document
    writes, reads = document["runs"][0]["jobs"]
    assert writes["processes"] == 2 and writes["operations"][1]["operation"] == "sync"
    assert writes["operations"][0]["bytes_per_second"] == pytest.approx(2 * 8 * 2**20, rel=0.3)
    assert reads["operations"][0]["iops"] < 2 / 500e-6
    assert document["job_text"] == load.fio()


def test_a_saved_comparison_loads_and_equals_the_command_line_output(
    comparison: hoistway.Comparison, tmp_path: pathlib.Path
) -> None:
    file = tmp_path / "results.json"
    comparison.save(file)
    again = hoistway.load(file)
    assert again.document == comparison.document == json.loads(file.read_text())
    assert str(again) == str(comparison) and again.conclusion == comparison.conclusion
    assert [entry.name for entry in tmp_path.iterdir()] == ["results.json"]
    with pytest.raises(ValueError, match="logs=True"):
        again.ios()


def _in_a_process(job: str) -> hoistway.Comparison:
    return hoistway.compare(job, device="null", schedulers=["none"], repeats=2)


@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_forked_processes_can_compare_after_a_comparison_and_return_results(job: str) -> None:
    here = _in_a_process(job).json(stable=True)
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as pool:
        assert [there.json(stable=True) for there in pool.map(_in_a_process, [job] * 3)] == [here] * 3


def test_progress_is_reported_during_the_comparison(job: str) -> None:
    told: list[tuple[float, float | None]] = []
    hoistway.compare(job, device="intel-s3520-1600gb", repeats=3, runtime=2.0, progress=lambda *now: told.append(now))
    assert told and told == sorted(told)
    assert told[-1][1] == pytest.approx(4 * 3 * 2.0), "four schedulers, three repeats, two seconds"
    assert told[-1][0] <= 24.1


def test_an_exception_in_the_progress_callback_ends_the_comparison(job: str) -> None:
    def tell(reached: float, expected: float | None) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        hoistway.compare(job, runtime=3600.0, progress=tell)


def test_no_progress_is_shown_without_a_terminal(job: str) -> None:
    script = f"import hoistway; hoistway.compare({job!r}, device='null', repeats=1)"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert (ended.stdout, ended.stderr) == (b"", b"")


def test_names_of_built_in_devices_hosts_and_loads_are_available() -> None:
    assert "intel-s3520-1600gb" in hoistway.devices() and "server" in hoistway.hosts()
    assert "database" in hoistway.scenarios() and "bfq" in hoistway.schedulers()
    assert hoistway.load.__doc__ and hoistway.__version__
